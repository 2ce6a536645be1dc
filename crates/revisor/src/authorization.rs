//! Who decides about requests: what `--authorization-mode` and the flags beside it name, or a file of kind
//! `AuthorizationConfiguration` (`--authorization-config`), which is followed while the server runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use revisor_auth::{
    AbacPolicy, AuthorizationMode, AuthorizationModes, Authorizer, Step, WebhookAuthorizer, WebhookAuthorizerOptions,
    WebhookCondition,
};
use revisor_catalog::CatalogOptions;
use revisor_object::names::dns1123_subdomain;
use revisor_object::{BadValue, FieldError, FieldPath, Object, Value, aggregate_message};
use revisor_version::Release;
use revisor_webhook::WebhookClient;

use crate::config_file::{Kind, Member, Type, read};
use crate::flags::ServeFlags;
use crate::kubeconfig::Kubeconfig;
use crate::live_config::{LiveConfig, follow};
use crate::reload_metrics::ReloadMetrics;
use crate::webhook_users::current_webhook;

/// How long a webhook that flags name may take.
const FLAG_TIMEOUT: Duration = Duration::from_secs(30);

/// How many conditions a webhook may have.
const MOST_CONDITIONS: usize = 64;

const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];

const KIND: Kind = Kind {
    name: "AuthorizationConfiguration",
    versions: &["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"],
    members: &[Member(
        "authorizers",
        Type::List,
        &[
            Member("type", Type::Text, &[]),
            Member("name", Type::Text, &[]),
            Member(
                "webhook",
                Type::Object,
                &[
                    Member("authorizedTTL", Type::Text, &[]),
                    Member("cacheAuthorizedRequests", Type::Bool, &[]),
                    Member("unauthorizedTTL", Type::Text, &[]),
                    Member("cacheUnauthorizedRequests", Type::Bool, &[]),
                    Member("timeout", Type::Text, &[]),
                    Member("subjectAccessReviewVersion", Type::Text, &[]),
                    Member("matchConditionSubjectAccessReviewVersion", Type::Text, &[]),
                    Member("failurePolicy", Type::Text, &[]),
                    Member(
                        "connectionInfo",
                        Type::Object,
                        &[Member("type", Type::Text, &[]), Member("kubeConfigFile", Type::Text, &[])],
                    ),
                    Member("matchConditions", Type::List, &[Member("expression", Type::Text, &[])]),
                ],
            ),
        ],
    )],
};

/// What configured steps need.
struct Surroundings {
    release: Release,
    client: WebhookClient,
    has_selectors: bool,
    policy: Option<Arc<AbacPolicy>>,
}

/// Has `authorizer` ask whom the flags or the file name. Answers what follows the file, if there is one.
pub(crate) fn install(
    flags: &ServeFlags,
    options: &CatalogOptions,
    authorizer: &Authorizer,
    client: &WebhookClient,
) -> anyhow::Result<Option<AuthorizationFile>> {
    let policy = match &flags.authorization_policy_file {
        Some(path) => {
            let text = read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let text = String::from_utf8(text).with_context(|| format!("{} is no text", path.display()))?;
            let policy = AbacPolicy::parse(&text).map_err(|problem| anyhow!("{}: {problem}", path.display()))?;
            Some(Arc::new(policy))
        }
        None => None,
    };
    let surroundings = Surroundings {
        release: options.version.emulation(),
        client: client.clone(),
        has_selectors: options.gates.is_enabled("AuthorizeWithSelectors"),
        policy,
    };
    let Some(path) = &flags.authorization_config else {
        authorizer.replace(surroundings.of_flags(flags)?);
        return Ok(None);
    };
    if flags.authorization_webhook_config_file.is_some() || flags.authorization_mode_given {
        bail!(
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
        );
    }
    let text = read(path).with_context(|| format!("failed to load authorization configuration from file {path:?}"))?;
    authorizer.replace(surroundings.of_file(path, &text)?);
    Ok(Some(AuthorizationFile { path: path.clone(), text, authorizer: authorizer.clone(), surroundings }))
}

/// The modes that a file names, for what depends on them at the start.
pub(crate) fn modes(flags: &ServeFlags) -> anyhow::Result<AuthorizationModes> {
    let Some(path) = &flags.authorization_config else { return Ok(flags.authorization_mode.clone()) };
    let object = read(path).and_then(|text| KIND.decode(&text));
    let object = object.with_context(|| format!("failed to load authorization configuration from file {path:?}"))?;
    let mut names: Vec<&str> = Vec::new();
    for authorizer in object.array("authorizers").iter().filter_map(Value::as_object) {
        names.extend(authorizer.str("type").filter(|name| TYPES.contains(name)).filter(|name| !names.contains(name)));
    }
    if names.is_empty() {
        let typeless = object.array("authorizers").iter().filter_map(Value::as_object).enumerate();
        let root = FieldPath::root("authorizers");
        let errors: Vec<FieldError> =
            typeless.filter_map(|(index, authorizer)| type_problem(&root.index(index), authorizer)).collect();
        if !errors.is_empty() {
            bail!("invalid authorization configuration {path:?}: {}", aggregate_message(&errors));
        }
        bail!(
            "invalid authorization configuration {path:?}: authorizers: Required value: at least one authorization mode must be defined"
        );
    }
    Ok(names.join(",").parse()?)
}

/// What is wrong with the type of an authorizer.
fn type_problem(path: &FieldPath<'_>, authorizer: &Object) -> Option<FieldError> {
    match authorizer.str("type").unwrap_or_default() {
        "" => Some(FieldError::required(path.child("type"), "")),
        known if TYPES.contains(&known) => None,
        other => Some(FieldError::not_supported(path.child("type"), other, &TYPES)),
    }
}

/// What all but webhooks must be called (upstream: `GetNameForAuthorizerMode`).
fn refuse_other_names(object: &Object) -> anyhow::Result<()> {
    let refused = |authorizer: &Object| {
        let text = |name| authorizer.str(name).unwrap_or_default();
        let (kind, name, expected) = (text("type"), text("name"), text("type").to_ascii_lowercase());
        (kind != "Webhook" && name != expected)
            .then(|| format!("expected name {expected} for authorizer {kind} instead of {name}"))
    };
    let refusals: Vec<String> =
        object.array("authorizers").iter().filter_map(Value::as_object).filter_map(refused).collect();
    match &refusals[..] {
        [] => Ok(()),
        [only] => bail!("{only}"),
        several => bail!("[{}]", several.join(", ")),
    }
}

/// A file that says who decides, followed while the server runs.
pub(crate) struct AuthorizationFile {
    path: PathBuf,
    text: Vec<u8>,
    authorizer: Authorizer,
    surroundings: Surroundings,
}

impl AuthorizationFile {
    /// Follows the file.
    pub(crate) async fn run(self, metrics: ReloadMetrics) {
        metrics.in_force(&self.text);
        follow(self, |change| metrics.reloaded(change)).await;
    }
}

impl LiveConfig for AuthorizationFile {
    const NAME: &'static str = "authorization";

    fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> &[u8] {
        &self.text
    }

    fn put_in_force(&mut self, text: Vec<u8>) -> anyhow::Result<()> {
        self.authorizer.replace(self.surroundings.of_file(&self.path, &text)?);
        self.text = text;
        Ok(())
    }
}

impl Surroundings {
    fn abac(&self) -> anyhow::Result<Step> {
        let policy = self.policy.clone();
        policy.map(Step::Abac).context("authorization-mode ABAC's authorization policy file not passed")
    }

    fn of_flags(&self, flags: &ServeFlags) -> anyhow::Result<Vec<Step>> {
        let modes = flags.authorization_mode.as_slice();
        if flags.authorization_policy_file.is_some() && !modes.contains(&AuthorizationMode::Abac) {
            bail!("cannot specify --authorization-policy-file without mode ABAC");
        }
        if flags.authorization_webhook_config_file.is_some() && !modes.contains(&AuthorizationMode::Webhook) {
            bail!("cannot specify --authorization-webhook-config-file without mode Webhook");
        }
        let step = |mode: &AuthorizationMode| {
            Ok(match mode {
                AuthorizationMode::AlwaysAllow => Step::AlwaysAllow,
                AuthorizationMode::AlwaysDeny => Step::AlwaysDeny,
                AuthorizationMode::Node => Step::Node,
                AuthorizationMode::Rbac => Step::Rbac,
                AuthorizationMode::Abac => self.abac()?,
                AuthorizationMode::Webhook => {
                    let path = flags.authorization_webhook_config_file.as_ref();
                    let path = path.context("authorization-mode Webhook's authorization config file not passed")?;
                    let (config, credentials) = current_webhook(&Kubeconfig::open(path)?)?;
                    let options = WebhookAuthorizerOptions {
                        name: "default".to_owned(),
                        config,
                        credentials: Arc::new(credentials),
                        version: flags.authorization_webhook_version.clone(),
                        timeout: FLAG_TIMEOUT,
                        denies_on_failure: false,
                        authorized_ttl: Some(flags.authorization_webhook_cache_authorized_ttl),
                        unauthorized_ttl: Some(flags.authorization_webhook_cache_unauthorized_ttl),
                        conditions: Vec::new(),
                        has_selectors: self.has_selectors,
                    };
                    Step::Webhook(Arc::new(WebhookAuthorizer::new(options, self.client.clone())))
                }
            })
        };
        modes.iter().map(step).collect()
    }

    fn of_file(&self, path: &Path, text: &[u8]) -> anyhow::Result<Vec<Step>> {
        let object = KIND.decode(text);
        let object =
            object.with_context(|| format!("failed to load authorization configuration from file {path:?}"))?;
        let mut reader = Reader { errors: Vec::new(), surroundings: self };
        let steps = reader.steps(&object);
        if reader.errors.is_empty() {
            refuse_other_names(&object)?;
            return steps;
        }
        bail!("invalid authorization configuration {path:?}: {}", aggregate_message(&reader.errors))
    }
}

/// Reads a configuration; the rules and their words are those of `ValidateAuthorizationConfiguration`.
struct Reader<'a> {
    errors: Vec<FieldError>,
    surroundings: &'a Surroundings,
}

impl Reader<'_> {
    fn required(&mut self, path: &FieldPath<'_>, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn steps(&mut self, object: &Object) -> anyhow::Result<Vec<Step>> {
        let root = FieldPath::root("authorizers");
        let authorizers = object.array("authorizers");
        if authorizers.is_empty() {
            self.required(&root, "at least one authorization mode must be defined");
        }
        let (mut types, mut names) = (HashSet::new(), HashSet::new());
        let mut steps = Vec::new();
        for (index, authorizer) in authorizers.iter().filter_map(Value::as_object).enumerate() {
            let path = root.index(index);
            let kind = authorizer.str("type").unwrap_or_default();
            if let Some(problem) = type_problem(&path, authorizer) {
                self.errors.push(problem);
                continue;
            }
            if !types.insert(kind) && kind != "Webhook" {
                self.errors.push(FieldError::duplicate(path.child("type"), kind));
                continue;
            }
            let (name, at) = (authorizer.str("name").unwrap_or_default(), path.child("name"));
            let problems = dns1123_subdomain(name);
            if name.is_empty() {
                self.required(&at, "");
            } else if names.contains(name) {
                self.errors.push(FieldError::duplicate(at, name));
            } else if !problems.is_empty() {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let detail = format!("authorizer name is invalid: {}", problems.join(", "));
                self.errors.push(FieldError::invalid(at, name, detail));
            }
            names.insert(name);
            let webhook = authorizer.object("webhook");
            match (kind, webhook) {
                ("Webhook", None) => self.required(&path.child("webhook"), "required when type=Webhook"),
                ("Webhook", Some(webhook)) => steps.extend(self.webhook(name, webhook, &path)?),
                (_, Some(_)) => {
                    let detail = "may only be specified when type=Webhook";
                    self.errors.push(FieldError::invalid(path.child("webhook"), "non-null", detail));
                }
                ("ABAC", None) => steps.push(self.surroundings.abac()?),
                ("AlwaysAllow", None) => steps.push(Step::AlwaysAllow),
                ("AlwaysDeny", None) => steps.push(Step::AlwaysDeny),
                ("Node", None) => steps.push(Step::Node),
                (_, None) => steps.push(Step::Rbac),
            }
        }
        Ok(steps)
    }

    fn duration(&mut self, webhook: &Object, name: &str, default: Option<Duration>, path: &FieldPath<'_>) -> Duration {
        let at = path.child(name);
        let Some(text) = webhook.str(name) else {
            if default.is_none() {
                self.required(&at, "");
            }
            return default.unwrap_or_default();
        };
        match text.parse::<revisor_object::Duration>() {
            Ok(duration) if duration.nanos() == 0 => {
                if default.is_none() {
                    self.required(&at, "");
                }
                default.unwrap_or_default()
            }
            Ok(duration) if duration.nanos() > 0 => Duration::from_nanos(duration.nanos().unsigned_abs()),
            Ok(duration) => {
                let detail = if name == "timeout" { "must be > 0s and <= 30s" } else { "must be > 0s" };
                self.errors.push(FieldError::invalid(at, duration.to_string(), detail));
                Duration::ZERO
            }
            Err(error) => {
                self.errors.push(FieldError::invalid(at, text, error.to_string()));
                Duration::ZERO
            }
        }
    }

    fn webhook(&mut self, name: &str, webhook: &Object, path: &FieldPath<'_>) -> anyhow::Result<Option<Step>> {
        let timeout = self.duration(webhook, "timeout", None, path);
        if timeout > Duration::from_secs(30) {
            let shown = webhook.str("timeout").unwrap_or_default();
            self.errors.push(FieldError::invalid(path.child("timeout"), shown, "must be > 0s and <= 30s"));
        }
        let authorized = self.duration(webhook, "authorizedTTL", Some(Duration::from_secs(300)), path);
        let unauthorized = self.duration(webhook, "unauthorizedTTL", Some(Duration::from_secs(30)), path);
        let caches = |name: &str| webhook.get(name).and_then(Value::as_bool) != Some(false);
        let version = self.choice(webhook, "subjectAccessReviewVersion", &["v1", "v1beta1"], path);
        self.condition_version(webhook, path);
        let failure = self.choice(webhook, "failurePolicy", &["NoOpinion", "Deny"], path);
        let connection = self.connection(webhook, path)?;
        let conditions = self.conditions(webhook, path);
        let Some((config, credentials)) = connection else { return Ok(None) };
        let options = WebhookAuthorizerOptions {
            name: name.to_owned(),
            config,
            credentials: Arc::new(credentials),
            version,
            timeout,
            denies_on_failure: failure == "Deny",
            authorized_ttl: caches("cacheAuthorizedRequests").then_some(authorized),
            unauthorized_ttl: caches("cacheUnauthorizedRequests").then_some(unauthorized),
            conditions,
            has_selectors: self.surroundings.has_selectors,
        };
        Ok(Some(Step::Webhook(Arc::new(WebhookAuthorizer::new(options, self.surroundings.client.clone())))))
    }

    fn choice(&mut self, webhook: &Object, name: &str, known: &[&str], path: &FieldPath<'_>) -> String {
        let value = webhook.str(name).unwrap_or_default();
        if value.is_empty() {
            self.required(&path.child(name), "");
        } else if !known.contains(&value) {
            self.errors.push(FieldError::not_supported(path.child(name), value, known));
        }
        value.to_owned()
    }

    /// The version of the reviews that conditions look at.
    fn condition_version(&mut self, webhook: &Object, path: &FieldPath<'_>) {
        let at = path.child("matchConditionSubjectAccessReviewVersion");
        match webhook.str("matchConditionSubjectAccessReviewVersion").unwrap_or_default() {
            "" if webhook.array("matchConditions").is_empty() => {}
            "" => self.required(&at, "required if match conditions are specified"),
            "v1" => {}
            other => self.errors.push(FieldError::not_supported(at, other, &["v1"])),
        }
    }

    fn conditions(&mut self, webhook: &Object, path: &FieldPath<'_>) -> Vec<WebhookCondition> {
        let at = path.child("matchConditions");
        let conditions = webhook.array("matchConditions");
        if conditions.len() > MOST_CONDITIONS {
            self.errors.push(FieldError::too_many(at, conditions.len(), MOST_CONDITIONS));
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let mut compiled = Vec::new();
        for (index, condition) in conditions.iter().filter_map(Value::as_object).enumerate() {
            let item = at.index(index);
            let at = item.child("expression");
            let text = condition.str("expression").unwrap_or_default();
            if text.trim().is_empty() {
                self.required(&at, "");
            } else if !seen.insert(text) {
                self.errors.push(FieldError::duplicate(at, text));
            } else {
                match WebhookCondition::compile(text, self.surroundings.release) {
                    Ok(condition) => compiled.push(condition),
                    Err(problem) => self.errors.push(FieldError::invalid(at, text, problem)),
                }
            }
        }
        compiled
    }

    fn connection(
        &mut self,
        webhook: &Object,
        path: &FieldPath<'_>,
    ) -> anyhow::Result<Option<(revisor_webhook::ClientConfig, revisor_webhook::Credentials)>> {
        let empty = Object::new();
        let info = webhook.object("connectionInfo").unwrap_or(&empty);
        let path = path.child("connectionInfo");
        let (kind_at, file_at) = (path.child("type"), path.child("kubeConfigFile"));
        let file = info.str("kubeConfigFile").filter(|file| !file.is_empty());
        match info.str("type").unwrap_or_default() {
            "" => self.required(&kind_at, ""),
            "InClusterConfig" => {
                let detail = "this server runs in no cluster: use KubeConfigFile";
                self.errors.push(FieldError::invalid(kind_at, "InClusterConfig", detail));
            }
            "KubeConfigFile" => match file {
                None => self.required(&file_at, ""),
                Some(file) if !Path::new(file).is_absolute() => {
                    self.errors.push(FieldError::invalid(file_at, file, "must be an absolute path"));
                }
                Some(file) => match std::fs::metadata(file) {
                    Err(error) => {
                        let detail = format!("error loading file: {error}");
                        self.errors.push(FieldError::invalid(file_at, file, detail));
                    }
                    Ok(found) if !found.is_file() => {
                        self.errors.push(FieldError::invalid(file_at, file, "must be a regular file"));
                    }
                    Ok(_) => return Ok(Some(current_webhook(&Kubeconfig::open(file.as_ref())?)?)),
                },
            },
            other => {
                let known = ["InClusterConfig", "KubeConfigFile"];
                self.errors.push(FieldError::not_supported(kind_at, BadValue::from(other), &known));
            }
        }
        Ok(None)
    }
}
