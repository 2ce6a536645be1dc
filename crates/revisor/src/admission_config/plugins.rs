//! What each plugin can be told, and what is wrong with that.

use std::collections::HashSet;

use anyhow::{anyhow, bail};
use revisor_object::{BadValue, FieldError, FieldPath, Object, Value, aggregate_message, names};
use revisor_registry::{
    AdmissionConfig, AdmissionPlugin, EventLimit, EventLimitType, LimitedResource, PodSecurityConfig, PodSecurityLevel,
    TolerationDefaults, validate_node_selector,
};
use revisor_webhook::CredentialBook;

use super::image_policy;
use crate::config_file::{Kind, Member, Type};
use crate::kubeconfig::Kubeconfig;
use crate::webhook_users::credential_book;

/// How many keys a limit of events counts if it does not say.
const DEFAULT_CACHE_SIZE: usize = 4096;

const POD_SECURITY: Kind = Kind {
    name: "PodSecurityConfiguration",
    versions: &[
        "pod-security.admission.config.k8s.io/v1",
        "pod-security.admission.config.k8s.io/v1beta1",
        "pod-security.admission.config.k8s.io/v1alpha1",
    ],
    members: &[
        Member(
            "defaults",
            Type::Object,
            &[
                Member("enforce", Type::Text, &[]),
                Member("enforce-version", Type::Text, &[]),
                Member("audit", Type::Text, &[]),
                Member("audit-version", Type::Text, &[]),
                Member("warn", Type::Text, &[]),
                Member("warn-version", Type::Text, &[]),
            ],
        ),
        Member(
            "exemptions",
            Type::Object,
            &[
                Member("usernames", Type::Texts, &[]),
                Member("namespaces", Type::Texts, &[]),
                Member("runtimeClasses", Type::Texts, &[]),
            ],
        ),
    ],
};

const EVENT_RATE_LIMIT: Kind = Kind {
    name: "Configuration",
    versions: &["eventratelimit.admission.k8s.io/v1alpha1"],
    members: &[Member(
        "limits",
        Type::List,
        &[
            Member("type", Type::Text, &[]),
            Member("qps", Type::Number, &[]),
            Member("burst", Type::Number, &[]),
            Member("cacheSize", Type::Number, &[]),
        ],
    )],
};

const TOLERATION: &[Member] = &[
    Member("key", Type::Text, &[]),
    Member("operator", Type::Text, &[]),
    Member("value", Type::Text, &[]),
    Member("effect", Type::Text, &[]),
    Member("tolerationSeconds", Type::Number, &[]),
];

const POD_TOLERATION_RESTRICTION: Kind = Kind {
    name: "Configuration",
    versions: &["podtolerationrestriction.admission.k8s.io/v1alpha1"],
    members: &[Member("default", Type::List, TOLERATION), Member("whitelist", Type::List, TOLERATION)],
};

const LIMITED_RESOURCES: &[Member] = &[Member(
    "limitedResources",
    Type::List,
    &[
        Member("apiGroup", Type::Text, &[]),
        Member("resource", Type::Text, &[]),
        Member("matchContains", Type::Texts, &[]),
        Member(
            "matchScopes",
            Type::List,
            &[
                Member("scopeName", Type::Text, &[]),
                Member("operator", Type::Text, &[]),
                Member("values", Type::Texts, &[]),
            ],
        ),
    ],
)];

const RESOURCE_QUOTA: [Kind; 2] = [
    Kind { name: "ResourceQuotaConfiguration", versions: &["apiserver.config.k8s.io/v1"], members: LIMITED_RESOURCES },
    Kind {
        name: "Configuration",
        versions: &[
            "resourcequota.admission.k8s.io/v1",
            "resourcequota.admission.k8s.io/v1beta1",
            "resourcequota.admission.k8s.io/v1alpha1",
        ],
        members: LIMITED_RESOURCES,
    },
];

const WEBHOOK_MEMBERS: &[Member] =
    &[Member("kubeConfigFile", Type::Text, &[]), Member("staticManifestsDir", Type::Text, &[])];

const WEBHOOKS: [Kind; 2] = [
    Kind { name: "WebhookAdmissionConfiguration", versions: &["apiserver.config.k8s.io/v1"], members: WEBHOOK_MEMBERS },
    Kind { name: "WebhookAdmission", versions: &["apiserver.config.k8s.io/v1alpha1"], members: WEBHOOK_MEMBERS },
];

const POLICY_MEMBERS: &[Member] = &[Member("staticManifestsDir", Type::Text, &[])];

const VALIDATING_POLICIES: [Kind; 1] = [Kind {
    name: "ValidatingAdmissionPolicyConfiguration",
    versions: &["apiserver.config.k8s.io/v1"],
    members: POLICY_MEMBERS,
}];

const MUTATING_POLICIES: [Kind; 1] = [Kind {
    name: "MutatingAdmissionPolicyConfiguration",
    versions: &["apiserver.config.k8s.io/v1"],
    members: POLICY_MEMBERS,
}];

/// Takes what a plugin is told into the configuration. Plugins that cannot be told anything are not looked at.
pub(super) fn take(
    plugin: AdmissionPlugin,
    told: Option<&Value>,
    config: &mut AdmissionConfig,
    reads_manifests: bool,
) -> anyhow::Result<()> {
    match (plugin, told) {
        (AdmissionPlugin::ImagePolicyWebhook, told) => {
            config.image_policy = Some(image_policy::read(told.ok_or_else(|| anyhow!("no config specified"))?)?);
        }
        (AdmissionPlugin::EventRateLimit, told) => {
            let object = match told {
                Some(told) => EVENT_RATE_LIMIT.decode_value_leniently(told.clone())?,
                None => Object::new(),
            };
            config.event_limits = event_limits(&object)?;
        }
        (AdmissionPlugin::PodSecurity, Some(told)) => {
            config.pod_security = pod_security(&POD_SECURITY.decode_value(told.clone())?)?;
        }
        (AdmissionPlugin::PodNodeSelector, Some(told)) => {
            let selectors = told.as_object().and_then(|told| told.object("podNodeSelectorPluginConfig"));
            for (namespace, selector) in selectors.into_iter().flat_map(Object::iter) {
                let path = FieldPath::root("podNodeSelectorPluginConfig").key(namespace).to_string();
                let Some(text) = selector.as_str() else {
                    bail!(FieldError::type_invalid(path, selector.type_name(), "it must be a text"))
                };
                validate_node_selector(text).map_err(|problem| FieldError::invalid(path, text, problem))?;
                config.pod_node_selectors.insert(namespace.to_owned(), text.to_owned());
            }
        }
        (AdmissionPlugin::PodTolerationRestriction, Some(told)) => {
            let object = POD_TOLERATION_RESTRICTION.decode_value_leniently(told.clone())?;
            let list = |name| object.array(name).to_vec();
            config.tolerations = TolerationDefaults { default: list("default"), whitelist: list("whitelist") };
            refuse("invalid config: ", tolerations(&config.tolerations))?;
        }
        (AdmissionPlugin::ResourceQuota, Some(told)) => {
            config.limited_resources = limited_resources(&one_of(&RESOURCE_QUOTA, told)?)?;
        }
        (AdmissionPlugin::MutatingAdmissionWebhook, Some(told)) => {
            let object = one_of(&WEBHOOKS, told)?;
            config.mutating_webhook_credentials = webhook_credentials(&object)?;
            take_manifests(plugin, &object, config, reads_manifests)?;
        }
        (AdmissionPlugin::ValidatingAdmissionWebhook, Some(told)) => {
            let object = one_of(&WEBHOOKS, told)?;
            config.validating_webhook_credentials = webhook_credentials(&object)?;
            take_manifests(plugin, &object, config, reads_manifests)?;
        }
        (AdmissionPlugin::ValidatingAdmissionPolicy, Some(told)) => {
            take_manifests(plugin, &one_of(&VALIDATING_POLICIES, told)?, config, reads_manifests)?;
        }
        (AdmissionPlugin::MutatingAdmissionPolicy, Some(told)) => {
            take_manifests(plugin, &one_of(&MUTATING_POLICIES, told)?, config, reads_manifests)?;
        }
        _ => {}
    }
    Ok(())
}

/// Decodes what is of one of several kinds; what is of none is told as the first would tell it.
fn one_of(kinds: &[Kind], told: &Value) -> anyhow::Result<Object> {
    let is_one = |kind: &&Kind| told.as_object().is_some_and(|object| kind.is_kind_of(object));
    let kind = kinds.iter().find(is_one).or(kinds.first()).ok_or_else(|| anyhow!("there is no such kind"))?;
    kind.decode_value(told.clone())
}

fn refuse(words: &str, errors: Vec<FieldError>) -> anyhow::Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(anyhow!("{words}{}", aggregate_message(&errors))) }
}

fn event_limits(object: &Object) -> anyhow::Result<Vec<EventLimit>> {
    let path = FieldPath::root("limits");
    let mut errors = Vec::new();
    let listed = object.array("limits");
    if listed.is_empty() {
        errors.push(FieldError::invalid(path, BadValue::of(&None::<()>), "must not be empty"));
    }
    let mut limits = Vec::new();
    for (at, limit) in listed.iter().enumerate() {
        let Some(limit) = limit.as_object() else { continue };
        let here = path.index(at);
        let name = limit.str("type").unwrap_or_default();
        let number = |name| limit.get(name).and_then(Value::as_i64).unwrap_or_default();
        let kind = EventLimitType::ALL.into_iter().find(|kind| kind.name() == name);
        if kind.is_none() {
            errors.push(FieldError::not_supported(
                here.child("type"),
                name,
                &EventLimitType::ALL.map(EventLimitType::name),
            ));
        }
        let mut positive = |name| {
            let positive = u32::try_from(number(name)).ok().filter(|number| *number > 0);
            if positive.is_none() {
                errors.push(FieldError::invalid(here.child(name), number(name), "must be positive"));
            }
            positive.unwrap_or_default()
        };
        let (burst, qps) = (positive("burst"), positive("qps"));
        let cache_size = usize::try_from(number("cacheSize"));
        if cache_size.is_err() && kind != Some(EventLimitType::Server) {
            errors.push(FieldError::invalid(here.child("cacheSize"), number("cacheSize"), "must not be negative"));
        }
        if let Some(kind) = kind {
            let cache_size = cache_size.ok().filter(|size| *size > 0).unwrap_or(DEFAULT_CACHE_SIZE);
            limits.push(EventLimit { kind, qps, burst, cache_size });
        }
    }
    refuse("", errors)?;
    Ok(limits)
}

fn pod_security(object: &Object) -> anyhow::Result<PodSecurityConfig> {
    let mut errors = Vec::new();
    let empty = Object::new();
    let (defaults, exemptions) =
        (object.object("defaults").unwrap_or(&empty), object.object("exemptions").unwrap_or(&empty));
    let mut level = |mode: &str| {
        let versioned = format!("{mode}-version");
        let text = |name: &str, default: &'static str| {
            defaults.str(name).filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
        };
        let (level, version) = (text(mode, "privileged"), text(&versioned, "latest"));
        PodSecurityLevel::parse(&level, &version).unwrap_or_else(|(of_level, of_version)| {
            let path = |name: &str| FieldPath::root("defaults").child(name).to_string();
            errors.extend(of_level.map(|problem| FieldError::invalid(path(mode), level.as_str(), problem)));
            errors.extend(of_version.map(|problem| FieldError::invalid(path(&versioned), version.as_str(), problem)));
            PodSecurityLevel::default()
        })
    };
    let (enforce, warn, audit) = (level("enforce"), level("warn"), level("audit"));
    let mut list = |name: &str, check: &dyn Fn(&str) -> Vec<String>| {
        let mut seen = HashSet::new();
        for (at, exempt) in exemptions.array(name).iter().filter_map(Value::as_str).enumerate() {
            let path = FieldPath::root("exemptions").child(name).index(at).to_string();
            let problems = check(exempt);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(path, exempt, problems.join(", ")));
            } else if !seen.insert(exempt.to_owned()) {
                errors.push(FieldError::duplicate(path, exempt));
            }
        }
        exemptions.array(name).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let texts = |problems: names::Problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let exempt_namespaces = list("namespaces", &|name| texts(names::dns1123_label(name)));
    let exempt_runtime_classes = list("runtimeClasses", &|name| texts(names::dns1123_subdomain(name)));
    let exempt_users = list("usernames", &|name| match name {
        "" => vec!["username must not be empty".to_owned()],
        _ => Vec::new(),
    });
    refuse("", errors)?;
    Ok(PodSecurityConfig { enforce, audit, warn, exempt_users, exempt_namespaces, exempt_runtime_classes })
}

fn tolerations(told: &TolerationDefaults) -> Vec<FieldError> {
    let root = FieldPath::root("podtolerationrestriction");
    let mut errors = Vec::new();
    for (name, list) in [("default", &told.default), ("whitelist", &told.whitelist)] {
        for (at, toleration) in list.iter().enumerate() {
            let Some(toleration) = toleration.as_object() else { continue };
            let (list_path, text) = (root.child(name), |name| toleration.str(name).unwrap_or_default());
            let path = list_path.index(at);
            if !text("key").is_empty() {
                let problems = names::qualified_name(text("key"));
                errors.extend(
                    problems
                        .iter()
                        .map(|problem| FieldError::invalid(path.child("key"), text("key"), problem.to_string())),
                );
            } else if text("operator") != "Exists" {
                let detail =
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.push(FieldError::invalid(path.child("operator"), text("operator"), detail));
            }
            match text("operator") {
                "Exists" if !text("value").is_empty() => {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(path.child("operator"), text("value"), detail));
                }
                "Exists" => {}
                "Equal" | "" => {
                    let problems = names::label_value(text("value"));
                    let joined: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    if !joined.is_empty() {
                        errors.push(FieldError::invalid(path.child("operator"), text("value"), joined.join(";")));
                    }
                }
                other => errors.push(FieldError::not_supported(path.child("operator"), other, &["Equal", "Exists"])),
            }
            if toleration.contains("tolerationSeconds") && text("effect") != "NoExecute" {
                let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
                errors.push(FieldError::invalid(path.child("effect"), text("effect"), detail));
            }
            if !matches!(text("effect"), "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
                let known = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
                errors.push(FieldError::not_supported(path.child("effect"), text("effect"), known));
            }
        }
    }
    errors
}

fn limited_resources(object: &Object) -> anyhow::Result<Vec<LimitedResource>> {
    let mut errors = Vec::new();
    let mut limited = Vec::new();
    for (at, entry) in object.array("limitedResources").iter().enumerate() {
        let Some(entry) = entry.as_object() else { continue };
        let text = |name| entry.str(name).unwrap_or_default().to_owned();
        if text("resource").is_empty() {
            let root = FieldPath::root("limitedResources");
            errors.push(FieldError::required(root.index(at).child("resource"), ""));
        }
        let texts = entry.array("matchContains").iter().filter_map(Value::as_str).map(str::to_owned);
        limited.push(LimitedResource {
            group: text("apiGroup"),
            plural: text("resource"),
            match_contains: texts.collect(),
            match_scopes: entry.array("matchScopes").iter().filter_map(Value::as_object).cloned().collect(),
        });
    }
    refuse("", errors)?;
    Ok(limited)
}

fn webhook_credentials(object: &Object) -> anyhow::Result<CredentialBook> {
    let Some(file) = object.str("kubeConfigFile").filter(|file| !file.is_empty()) else {
        return Ok(CredentialBook::default());
    };
    if !file.starts_with('/') {
        bail!(FieldError::invalid("kubeConfigFile", file, "must be an absolute file path"));
    }
    credential_book(&Kubeconfig::open(file.as_ref())?)
}

/// Notes down where a plugin has its manifests (upstream: `ValidateStaticManifestsDir`).
fn take_manifests(
    plugin: AdmissionPlugin,
    object: &Object,
    config: &mut AdmissionConfig,
    reads_manifests: bool,
) -> anyhow::Result<()> {
    const FIELD: &str = "staticManifestsDir";
    let Some(folder) = object.str(FIELD).filter(|folder| !folder.is_empty()) else { return Ok(()) };
    if !reads_manifests {
        let detail = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
        bail!(FieldError::forbidden(FIELD, detail));
    }
    if !folder.starts_with('/') {
        bail!(FieldError::invalid(FIELD, folder, "must be an absolute file path"));
    }
    match std::fs::metadata(folder) {
        Err(error) => bail!(FieldError::invalid(FIELD, folder, format!("unable to read: {error}"))),
        Ok(found) if !found.is_dir() => bail!(FieldError::invalid(FIELD, folder, "must be a directory")),
        Ok(_) => {}
    }
    config.manifest_folders.insert(plugin, folder.into());
    Ok(())
}
