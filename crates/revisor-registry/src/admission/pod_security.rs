//! PodSecurity: the labels of a namespace say how much its pods may be trusted with. What a level forbids is in
//! `checks.rs`.

mod checks;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use revisor_catalog::BINARY;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value, aggregate_message};

use self::checks::{Violation, violations};
use super::pod_fields::{labels, objects, text};
use super::{Admission, Attributes, Operation, SecuredWrite};
use crate::{Registry, RegistryError};

/// What the labels of a namespace begin with, and the names of notes for audits.
const PREFIX: &str = "pod-security.kubernetes.io/";

/// So many pods are looked at when the level of a namespace is raised.
const MAX_PODS: usize = 3000;

/// How much pods are trusted with, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn named(name: &str) -> Option<Level> {
        match name {
            "privileged" => Some(Level::Privileged),
            "baseline" => Some(Level::Baseline),
            "restricted" => Some(Level::Restricted),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

/// A level as some release understood it; `None` for the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LevelVersion {
    level: Level,
    minor: Option<u32>,
}

/// A level of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodSecurityLevel(LevelVersion);

impl PodSecurityLevel {
    /// Reads a level and a version; answers what is wrong with the one and with the other.
    pub fn parse(level: &str, version: &str) -> Result<PodSecurityLevel, (Option<String>, Option<String>)> {
        let (level, minor) = (Level::named(level), read_version(version));
        match (level, minor) {
            (Some(level), Some(minor)) => Ok(PodSecurityLevel(LevelVersion { level, minor })),
            _ => Err((
                level.is_none().then(|| "must be one of privileged, baseline, restricted".to_owned()),
                minor.is_none().then(|| "must be \"latest\" or \"v1.x\"".to_owned()),
            )),
        }
    }
}

/// What goes for namespaces that say nothing, and for whom nothing goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSecurityConfig {
    /// What pods are held to.
    pub enforce: PodSecurityLevel,
    /// What is noted for audits.
    pub audit: PodSecurityLevel,
    /// What is warned about.
    pub warn: PodSecurityLevel,
    /// Users whose writes are not looked at.
    pub exempt_users: Vec<String>,
    /// Namespaces that are not looked at.
    pub exempt_namespaces: Vec<String>,
    /// Runtime classes whose pods are not looked at.
    pub exempt_runtime_classes: Vec<String>,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.name())?;
        match self.minor {
            Some(minor) => write!(f, ":v1.{minor}"),
            None => f.write_str(":latest"),
        }
    }
}

/// What the labels of a namespace say.
#[derive(Debug, Clone, PartialEq)]
struct Policy {
    enforce: LevelVersion,
    audit: LevelVersion,
    warn: LevelVersion,
    errors: FieldErrors,
}

impl Policy {
    fn of(namespace: &Object, defaults: &PodSecurityConfig) -> Policy {
        let labels = labels(namespace);
        let metadata = FieldPath::root("metadata");
        let path = metadata.child("labels");
        let mut errors = FieldErrors::new();
        let is_labelled = labels.iter().any(|(label, _)| label.starts_with(PREFIX));
        let mut read = |mode: &str| {
            if !is_labelled {
                return (None, None);
            }
            let label = format!("{PREFIX}{mode}");
            let level = labels.str(&label).map(|name| {
                let level = Level::named(name);
                if level.is_none() {
                    let detail = "must be one of privileged, baseline, restricted";
                    errors.push(FieldError::invalid(path.key(&label), name, detail));
                }
                level
            });
            let label = format!("{label}-version");
            let version = labels.str(&label).map(|name| {
                let version = read_version(name);
                if version.is_none() {
                    errors.push(FieldError::invalid(path.key(&label), name, "must be \"latest\" or \"v1.x\""));
                }
                version.flatten()
            });
            (level, version)
        };
        let (enforce_level, enforce_version) = read("enforce");
        let (audit_level, audit_version) = read("audit");
        let (warn_level, warn_version) = read("warn");
        // What cannot be understood is enforced as strictly as can be, and neither noted nor warned about.
        let settle = |level: Option<Option<Level>>, version: Option<Option<u32>>, default: LevelVersion, odd: Level| {
            let level = level.map_or(default.level, |level| level.unwrap_or(odd));
            LevelVersion { level, minor: version.unwrap_or(default.minor) }
        };
        let enforce = settle(enforce_level, enforce_version, defaults.enforce.0, Level::Restricted);
        let audit = settle(audit_level, audit_version, defaults.audit.0, Level::Privileged);
        let mut warn = settle(warn_level, warn_version, defaults.warn.0, Level::Privileged);
        if warn_level.is_none() && enforce_level.flatten().is_some_and(|level| level > warn.level) {
            warn.level = enforce.level;
            if warn_version.is_none() {
                warn.minor = enforce.minor;
            }
        }
        Policy { enforce, audit, warn, errors }
    }
}

impl Policy {
    /// Whether everything is let in (upstream: `FullyPrivileged`).
    fn demands_nothing(&self) -> bool {
        let strictest = self.enforce.level.max(self.audit.level).max(self.warn.level);
        strictest == Level::Privileged && self.errors.is_empty()
    }
}

impl LevelVersion {
    /// The version that metrics tell: there may be any number of those to come.
    fn counted_version(&self) -> String {
        match self.minor {
            None => "latest".to_owned(),
            Some(_) if self.level == Level::Privileged => "latest".to_owned(),
            Some(minor) if minor <= u32::from(BINARY.minor) => format!("v1.{minor}"),
            Some(_) => "future".to_owned(),
        }
    }
}

/// `latest` or `v1.N`; the outer `None` if it is neither.
fn read_version(text: &str) -> Option<Option<u32>> {
    if text == "latest" {
        return Some(None);
    }
    let minor = text.strip_prefix("v1.")?;
    let is_regular = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = minor == "0" || !minor.starts_with('0');
    if is_regular && is_plain { minor.parse().ok().map(Some) } else { None }
}

pub(crate) struct PodSecurity(pub(super) PodSecurityConfig);

impl Admission for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        let config = &self.0;
        if attributes.is_about("", "namespaces") {
            validate_labels(attributes, object, config)?;
            if !config.exempt_namespaces.iter().any(|exempt| exempt == attributes.name) {
                let warnings = raised_level_warnings(registry, attributes, object, config);
                warnings.into_iter().for_each(|warning| attributes.warn(warning));
            }
            return Ok(());
        }
        let template = template_of(attributes, object);
        let is_pod = template.is_none();
        let pod = match template {
            Some(template) => template,
            None if is_evaluated(attributes, object) => object,
            None => return Ok(()),
        };
        let metrics = &registry.admission_metrics;
        let write = SecuredWrite {
            operation: attributes.operation,
            resource: if is_pod { "pod" } else { "controller" },
            subresource: attributes.subresource.unwrap_or_default(),
        };
        if let Some(dimension) = config.exemption(attributes, pod) {
            metrics.exempted_from_security(write);
            attributes.annotate(format!("{PREFIX}exempt"), dimension);
            return Ok(());
        }
        let Some(policy) = policy_of(registry, attributes, config) else { return Ok(()) };
        if policy.demands_nothing() {
            if is_pod {
                metrics.undemanding(write);
                attributes.annotate(format!("{PREFIX}enforce-policy"), policy.enforce.to_string());
            }
            return Ok(());
        }
        if !policy.errors.is_empty() {
            metrics.failed_security(write);
            let note = format!("Failed to parse policy: {}", aggregate_message(&policy.errors));
            attributes.annotate(format!("{PREFIX}error"), note);
        }
        let evaluate = |level: LevelVersion, mode: &str, is_counted: bool| {
            let found = violations(level.level, level.minor, pod);
            if is_counted || !found.is_empty() {
                let version = level.counted_version();
                metrics.evaluated_security(write, found.is_empty(), [level.level.name(), &version, mode]);
            }
            found
        };
        let mut refused = Ok(());
        // Templates are only warned about: their pods are refused when they are made.
        if is_pod {
            attributes.annotate(format!("{PREFIX}enforce-policy"), policy.enforce.to_string());
            let found = evaluate(policy.enforce, "enforce", true);
            if !found.is_empty() {
                let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, detailed(&found));
                refused = Err(attributes.forbidden(why));
            }
        }
        let found = evaluate(policy.audit, "audit", false);
        if !found.is_empty() {
            let note = format!("would violate PodSecurity \"{}\": {}", policy.audit, detailed(&found));
            attributes.annotate(format!("{PREFIX}audit-violations"), note);
        }
        // Who is refused need not be warned.
        if refused.is_ok() {
            let found = evaluate(policy.warn, "warn", false);
            if !found.is_empty() {
                attributes.warn(format!("would violate PodSecurity \"{}\": {}", policy.warn, detailed(&found)));
            }
        }
        refused
    }
}

impl PodSecurityConfig {
    /// Why a write is not looked at, if it is not.
    fn exemption(&self, attributes: &Attributes<'_>, pod: &Object) -> Option<&'static str> {
        let is_in = |list: &[String], name: &str| !name.is_empty() && list.iter().any(|known| known == name);
        let class = pod.object("spec").map(|spec| text(spec, "runtimeClassName")).unwrap_or_default();
        if is_in(&self.exempt_namespaces, attributes.namespace.unwrap_or_default()) {
            Some("namespace")
        } else if is_in(&self.exempt_users, attributes.requester.name) {
            Some("user")
        } else if is_in(&self.exempt_runtime_classes, class) {
            Some("runtimeClass")
        } else {
            None
        }
    }
}

fn policy_of(registry: &Registry, attributes: &Attributes<'_>, config: &PodSecurityConfig) -> Option<Policy> {
    let namespace = registry.read_once("", "v1", "namespaces", None, attributes.namespace?)?;
    Some(Policy::of(&namespace, config))
}

/// Whether a write to a pod can make it less secure: a new one, other images, or one more container to look inside.
fn is_evaluated(attributes: &Attributes<'_>, pod: &Object) -> bool {
    let is_pod = attributes.resource.group.is_empty() && attributes.resource.plural == "pods";
    if !is_pod || !matches!(attributes.subresource, None | Some("ephemeralcontainers" | "resize")) {
        return false;
    }
    let Some(old) = attributes.old.filter(|_| attributes.operation == Operation::Update) else { return true };
    let empty = Object::new();
    let (new, old) = (pod.object("spec").unwrap_or(&empty), old.object("spec").unwrap_or(&empty));
    let has_other_images = |list: &&str| {
        !objects(new, list).map(|it| text(it, "image")).eq(objects(old, list).map(|it| text(it, "image")))
    };
    ["containers", "initContainers"].iter().any(has_other_images) || {
        let before: HashSet<(&str, &str)> = named_images(old).collect();
        !named_images(new).all(|container| before.contains(&container))
    }
}

/// The containers to look inside, by their names and images.
fn named_images(spec: &Object) -> impl Iterator<Item = (&str, &str)> {
    objects(spec, "ephemeralContainers").map(|it| (text(it, "name"), text(it, "image")))
}

/// The pod template of an object that makes pods.
fn template_of<'a>(attributes: &Attributes<'_>, object: &'a Object) -> Option<&'a Object> {
    if attributes.subresource.is_some() {
        return None;
    }
    let path: &[&str] = match attributes.resource.name() {
        ("", "podtemplates") => &["template"],
        ("", "replicationcontrollers")
        | ("apps", "deployments" | "daemonsets" | "replicasets" | "statefulsets")
        | ("batch", "jobs") => &["spec", "template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    };
    object.at(path).and_then(Value::as_object)
}

fn detailed(violations: &[Violation]) -> String {
    let shown: Vec<String> = violations
        .iter()
        .map(|Violation { reason, detail }| match detail.as_str() {
            "" => (*reason).to_owned(),
            detail => format!("{reason} ({detail})"),
        })
        .collect();
    shown.join(", ")
}

/// Labels must be well formed, unless they were malformed in the same way before.
fn validate_labels(
    attributes: &Attributes<'_>,
    namespace: &Object,
    config: &PodSecurityConfig,
) -> Result<(), RegistryError> {
    let errors = Policy::of(namespace, config).errors;
    let is_known = || attributes.old.is_some_and(|old| Policy::of(old, config).errors == errors);
    if errors.is_empty() || is_known() {
        return Ok(());
    }
    Err(RegistryError::Invalid { resource: attributes.resource.clone(), name: attributes.name.to_owned(), errors })
}

/// A level that is raised has no effect on pods that run; which of them would not be let in again is told.
fn raised_level_warnings(
    registry: &Registry,
    attributes: &Attributes<'_>,
    namespace: &Object,
    config: &PodSecurityConfig,
) -> Vec<String> {
    let Some(old) = attributes.old.filter(|_| attributes.operation == Operation::Update) else { return Vec::new() };
    let (new, old) = (Policy::of(namespace, config).enforce, Policy::of(old, config).enforce);
    let is_relaxed = new.minor == old.minor && new.level <= old.level;
    if new == old || new.level == Level::Privileged || is_relaxed {
        return Vec::new();
    }
    let pods = registry.all_stored("", "v1", "pods", Some(attributes.name));
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in pods.iter().take(MAX_PODS) {
        let found = violations(new.level, new.minor, pod);
        if !found.is_empty() {
            let reasons: Vec<&str> = found.iter().map(|violation| violation.reason).collect();
            let name = pod.object("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default();
            by_reason.entry(reasons.join(", ")).or_default().push(name.to_owned());
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > MAX_PODS {
        let total = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {total} existing pods"
        ));
    }
    if !by_reason.is_empty() {
        let name = attributes.name;
        warnings
            .push(format!("existing pods in namespace {name:?} violate the new PodSecurity enforce level \"{new}\""));
    }
    let mut told: Vec<String> = by_reason
        .into_iter()
        .map(|(reasons, names)| {
            let first = names.iter().min().map(String::as_str).unwrap_or_default();
            match names.len() {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                many => format!("{first} (and {} other pods): {reasons}", many - 1),
            }
        })
        .collect();
    told.sort();
    warnings.extend(told);
    warnings
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn namespace(labels: &str) -> Object {
        match parse_json(format!("{{\"metadata\":{{\"labels\":{labels}}}}}").as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    #[test]
    fn labels_say_what_is_enforced_and_warned_about() {
        for (labels, want) in [
            ("{}", "privileged:latest privileged:latest 0"),
            (r#"{"pod-security.kubernetes.io/enforce":"baseline"}"#, "baseline:latest baseline:latest 0"),
            (
                r#"{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/enforce-version":"v1.20","pod-security.kubernetes.io/warn":"restricted"}"#,
                "baseline:v1.20 restricted:latest 0",
            ),
            (r#"{"pod-security.kubernetes.io/enforce":"strict"}"#, "restricted:latest privileged:latest 1"),
            (r#"{"pod-security.kubernetes.io/audit-version":"1.2"}"#, "privileged:latest privileged:latest 1"),
            (r#"{"pod-security.kubernetes.io/warn-version":"v1.02"}"#, "privileged:latest privileged:latest 1"),
        ] {
            let policy = Policy::of(&namespace(labels), &PodSecurityConfig::default());
            assert_eq!(format!("{} {} {}", policy.enforce, policy.warn, policy.errors.len()), want, "{labels}");
        }
    }
}
