//! [`EncryptionConfiguration`]: which objects are encrypted, with what, and whether a configuration can be meant. The
//! rules and their words are those of `ValidateEncryptionConfiguration`; a secret is never repeated.

use std::collections::HashSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{BadValue, FieldError, FieldPath, Object, Url, Value};

use crate::group_resource::GroupResource;

/// How long a call to a key service may take if a configuration does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);

const AES_KEY_SIZES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_SIZES: &[usize] = &[32];

/// Resources that the original keeps in storage and does not serve.
const WITHOUT_API: [&str; 3] = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

/// What a configuration says, after it was checked.
#[derive(PartialEq, Eq)]
pub struct EncryptionConfiguration {
    pub(crate) resources: Vec<ResourceConfig>,
}

/// The providers of some resources. The first of them writes.
#[derive(PartialEq, Eq)]
pub(crate) struct ResourceConfig {
    pub(crate) resources: Vec<GroupResource>,
    pub(crate) providers: Vec<ProviderConfig>,
}

/// One provider.
#[derive(PartialEq, Eq)]
pub(crate) enum ProviderConfig {
    Identity,
    AesGcm(Vec<KeyConfig>),
    AesCbc(Vec<KeyConfig>),
    Secretbox(Vec<KeyConfig>),
    Kms(KmsConfig),
}

/// A key with its name.
#[derive(PartialEq, Eq)]
pub(crate) struct KeyConfig {
    pub(crate) name: String,
    pub(crate) secret: Vec<u8>,
}

/// A service that holds keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KmsConfig {
    /// Which version of the protocol it speaks.
    pub api_version: String,
    /// What it is called in stored data.
    pub name: String,
    /// Where it listens.
    pub endpoint: String,
    /// How long a call may take.
    pub timeout: Duration,
}

// Keys stand in it.
impl std::fmt::Debug for EncryptionConfiguration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptionConfiguration").field("resources", &self.resources.len()).finish_non_exhaustive()
    }
}

impl EncryptionConfiguration {
    /// What an object of this kind says, whose members are known to be of their types; or all that is wrong with it.
    /// With `reload` the rules for configurations hold that are read while the server runs.
    pub fn of(object: &Object, reload: bool) -> Result<EncryptionConfiguration, Vec<FieldError>> {
        let root = FieldPath::root("resources");
        let resources = object.array("resources");
        let mut reader = Reader { errors: Vec::new(), kms_names: HashSet::new(), reload };
        if resources.is_empty() {
            reader.at_least_one(&root, "resources");
        }
        let members = resources.iter().filter_map(Value::as_object).enumerate();
        let resources = members.map(|(index, member)| reader.resource(member, &root.index(index))).collect();
        if reader.errors.is_empty() { Ok(EncryptionConfiguration { resources }) } else { Err(reader.errors) }
    }

    /// The key services that it names.
    pub fn kms(&self) -> impl Iterator<Item = &KmsConfig> {
        self.resources.iter().flat_map(|resource| &resource.providers).filter_map(|provider| match provider {
            ProviderConfig::Kms(kms) => Some(kms),
            _ => None,
        })
    }
}

struct Reader {
    errors: Vec<FieldError>,
    kms_names: HashSet<String>,
    reload: bool,
}

impl Reader {
    fn at_least_one(&mut self, path: &FieldPath<'_>, what: &str) {
        self.errors.push(FieldError::required(path, format!("at least one {what} is required")));
    }

    fn invalid(&mut self, path: &FieldPath<'_>, value: impl Into<BadValue>, detail: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    fn resource(&mut self, member: &Object, path: &FieldPath<'_>) -> ResourceConfig {
        let (at, providers_at) = (path.child("resources"), path.child("providers"));
        let names: Vec<&str> = member.array("resources").iter().filter_map(Value::as_str).collect();
        if names.is_empty() {
            self.at_least_one(&at, &at.to_string());
        }
        let resources: Vec<GroupResource> = names.iter().map(|name| GroupResource::parse(name)).collect();
        self.check_overlap(&names, &resources, &at);
        for (index, name) in names.iter().enumerate() {
            if let Some(problem) = name_problem(name, &resources[index]) {
                self.invalid(&at.index(index), *name, problem);
            }
        }
        let members = member.array("providers");
        if members.is_empty() {
            self.at_least_one(&providers_at, &providers_at.to_string());
        }
        let members = members.iter().filter_map(Value::as_object).enumerate();
        let providers = members.filter_map(|(index, member)| self.provider(member, &providers_at.index(index)));
        let providers = providers.collect();
        ResourceConfig { resources, providers }
    }

    fn check_overlap(&mut self, names: &[&str], resources: &[GroupResource], path: &FieldPath<'_>) {
        let pairs = || {
            let others = |at: usize| resources.iter().enumerate().filter(move |(other, _)| *other != at);
            resources.iter().enumerate().flat_map(move |(at, one)| others(at).map(move |(_, other)| (one, other)))
        };
        let overlaps = |(one, other): (&GroupResource, &GroupResource)| {
            let same_group = one.group == other.group;
            *one == GroupResource::any() || (same_group && (one.resource == "*" || other.resource == "*"))
        };
        let value = || BadValue::of(&names);
        if pairs().any(|(one, other)| one == other) {
            self.invalid(path, value(), "the same resource cannot be specified multiple times");
        }
        if pairs().filter(|(one, other)| one != other).any(overlaps) {
            let detail = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not \
                          allowed as they will be masked";
            self.invalid(path, value(), detail);
        }
    }

    fn provider(&mut self, member: &Object, path: &FieldPath<'_>) -> Option<ProviderConfig> {
        const KINDS: [&str; 5] = ["kms", "aesgcm", "aescbc", "secretbox", "identity"];
        let given: Vec<&str> = KINDS.into_iter().filter(|kind| member.object(kind).is_some()).collect();
        if given.is_empty() {
            let detail = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, \
                          Identity";
            self.invalid(path, BadValue::Omitted, detail);
        }
        if given.len() > 1 {
            let detail = "more than one provider specified in a single element, should split into different list \
                          elements";
            self.invalid(path, BadValue::Omitted, detail);
        }
        let kind = *given.first()?;
        let (inner, at) = (member.object(kind)?, path.child(kind));
        match kind {
            "kms" => Some(ProviderConfig::Kms(self.kms(inner, &at)?)),
            "aesgcm" => Some(ProviderConfig::AesGcm(self.keys(inner, &at, AES_KEY_SIZES))),
            "aescbc" => Some(ProviderConfig::AesCbc(self.keys(inner, &at, AES_KEY_SIZES))),
            "secretbox" => Some(ProviderConfig::Secretbox(self.keys(inner, &at, SECRETBOX_KEY_SIZES))),
            _ => Some(ProviderConfig::Identity),
        }
    }

    fn keys(&mut self, member: &Object, path: &FieldPath<'_>, sizes: &[usize]) -> Vec<KeyConfig> {
        let at = path.child("keys");
        let keys = member.array("keys");
        if keys.is_empty() {
            self.at_least_one(&at, "keys");
        }
        let keys = keys.iter().filter_map(Value::as_object).enumerate();
        keys.map(|(index, key)| self.key(key, &at.index(index), sizes)).collect()
    }

    fn key(&mut self, member: &Object, path: &FieldPath<'_>, sizes: &[usize]) -> KeyConfig {
        let name = member.str("name").unwrap_or_default();
        if name.is_empty() {
            self.errors.push(FieldError::required(path.child("name"), "name is a mandatory field for a key"));
        }
        let (at, text) = (path.child("secret"), member.str("secret").unwrap_or_default());
        if text.is_empty() {
            self.errors.push(FieldError::required(at, "secret is a mandatory field for a key"));
        }
        // As in the original's language, line ends in the text are nothing.
        let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
        let secret = STANDARD.decode(text);
        match &secret {
            Err(_) => self.invalid(&at, "REDACTED", "secrets must be base64 encoded"),
            Ok(secret) if !secret.is_empty() && !sizes.contains(&secret.len()) => {
                let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
                let (length, sizes) = (secret.len(), sizes.join(" "));
                let detail = format!("secret is not of the expected length, got {length}, expected one of [{sizes}]");
                self.invalid(&at, "REDACTED", detail);
            }
            Ok(_) => {}
        }
        KeyConfig { name: name.to_owned(), secret: secret.unwrap_or_default() }
    }

    fn kms(&mut self, member: &Object, path: &FieldPath<'_>) -> Option<KmsConfig> {
        let text = |name: &str| member.str(name).unwrap_or_default().to_owned();
        let (name, endpoint) = (text("name"), text("endpoint"));
        let api_version = Some(text("apiVersion")).filter(|version| !version.is_empty());
        let api_version = api_version.unwrap_or_else(|| "v1".to_owned());
        let name_at = path.child("name");
        if name.is_empty() {
            self.errors.push(FieldError::required(name_at, "name is a mandatory field for a provider"));
        }
        if api_version != "v1" && name.contains(':') {
            self.invalid(&name_at, &*name, format!("invalid KMS provider name {name}, must not contain ':'"));
        }
        let is_taken = !self.kms_names.insert(name.clone());
        if is_taken && (self.reload || api_version != "v1") {
            self.invalid(&name_at, &*name, format!("duplicate KMS provider name {name}, names must be unique"));
        }
        let timeout = self.timeout(member, &path.child("timeout"));
        self.endpoint(&endpoint, &path.child("endpoint"));
        let cache_size = member.get("cachesize").and_then(Value::as_i64);
        let cache_at = path.child("cachesize");
        match cache_size {
            Some(size) if api_version != "v1" => {
                self.invalid(&cache_at, number(size), "cachesize is not supported in v2");
            }
            Some(0) => {
                let detail = "cachesize should be a positive value, or negative to disable";
                self.invalid(&cache_at, number(0), detail);
            }
            _ => {}
        }
        if !matches!(&*api_version, "v1" | "v2") {
            let detail = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
            self.invalid(&path.child("apiVersion"), &*api_version, detail);
        }
        Some(KmsConfig { api_version, name, endpoint, timeout })
    }

    fn timeout(&mut self, member: &Object, path: &FieldPath<'_>) -> Duration {
        let Some(text) = member.str("timeout") else { return DEFAULT_TIMEOUT };
        match text.parse::<revisor_object::Duration>() {
            Err(error) => self.invalid(path, text, error.to_string()),
            Ok(duration) if duration.nanos() <= 0 => {
                self.invalid(path, duration.to_string(), "timeout should be a positive value");
            }
            Ok(duration) => return Duration::from_nanos(duration.nanos().unsigned_abs()),
        }
        DEFAULT_TIMEOUT
    }

    fn endpoint(&mut self, endpoint: &str, path: &FieldPath<'_>) {
        if endpoint.is_empty() {
            return self.invalid(path, "", "endpoint is a mandatory field for a kms");
        }
        match Url::parse(endpoint) {
            Err(problem) => {
                self.invalid(path, endpoint, format!("invalid endpoint for kms provider, error: {problem}"))
            }
            Ok(url) if url.scheme != "unix" => {
                let scheme = url.scheme;
                let detail = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
                self.invalid(path, endpoint, detail);
            }
            Ok(_) => {}
        }
    }
}

fn number(number: i64) -> BadValue {
    BadValue::of(&number)
}

fn name_problem(name: &str, resource: &GroupResource) -> Option<&'static str> {
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    if name == "*" {
        return Some("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources");
    }
    if WITHOUT_API.contains(&name) {
        return Some("resources which do not have REST API/s cannot be encrypted");
    }
    match (&*resource.group, &*resource.resource) {
        ("events.k8s.io", _) => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file",
        ),
        ("extensions", _) => Some("'extensions' group has been removed and cannot be used for encryption"),
        ("*", resource) if resource != "*" => Some("encrypting the same resource across groups is not supported"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::{aggregate_message, parse_yaml};

    use super::*;

    fn read(text: &str, reload: bool) -> Result<EncryptionConfiguration, String> {
        let Value::Object(object) = parse_yaml(text.as_bytes()).expect("is YAML").value else { panic!("{text}") };
        EncryptionConfiguration::of(&object, reload).map_err(|errors| aggregate_message(&errors))
    }

    const GOOD_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

    #[test]
    fn a_configuration_says_what_is_encrypted_with_what() {
        let text = format!(
            "resources:\n- resources: [secrets, widgets.example.com]\n  providers:\n  - aescbc: {{keys: [{{name: a, \
             secret: {GOOD_KEY}}}]}}\n  - kms: {{apiVersion: v2, name: k, endpoint: 'unix:///run/k', timeout: 1500ms}}\n  \
             - identity: {{}}\n"
        );
        let config = read(&text, true).expect("is good");
        let names: Vec<String> = config.resources[0].resources.iter().map(GroupResource::to_string).collect();
        assert_eq!(names, ["secrets", "widgets.example.com"]);
        let kms: Vec<&KmsConfig> = config.kms().collect();
        assert_eq!((kms.len(), kms[0].timeout), (1, Duration::from_millis(1500)));
        assert!(!format!("{config:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_place_and_without_secrets() {
        let with = |resources: &str, providers: &str| {
            format!("resources: [{{resources: {resources}, providers: {providers}}}]")
        };
        let key = |name: &str, secret: &str| format!("[{{secretbox: {{keys: [{{name: {name}, secret: {secret}}}]}}}}]");
        for (text, want) in [
            ("resources: []".to_owned(), "resources: Required value: at least one resources is required"),
            (
                with("[]", "[]"),
                "[resources[0].resources: Required value: at least one resources[0].resources is required, \
                 resources[0].providers: Required value: at least one resources[0].providers is required]",
            ),
            (
                with("[secrets]", &key("a", GOOD_KEY)),
                "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the \
                 expected length, got 16, expected one of [32]",
            ),
            (
                with("[secrets]", &key("a", "'%%'")),
                "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secrets must be base64 \
                 encoded",
            ),
            (
                with("[secrets]", &key("''", "''")),
                "[resources[0].providers[0].secretbox.keys[0].name: Required value: name is a mandatory field for a key, \
                 resources[0].providers[0].secretbox.keys[0].secret: Required value: secret is a mandatory field for a \
                 key]",
            ),
            (
                with("[secrets, '*.']", "[{identity: {}}]"),
                "resources[0].resources: Invalid value: [\"secrets\",\"*.\"]: using overlapping resources such as \
                 'secrets' and '*.' in the same resource list is not allowed as they will be masked",
            ),
            (
                with("['*', Secrets.apps, a.events.k8s.io, a.extensions, 'a.*']", "[{identity: {}}]"),
                "[resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API \
                 group or *.* to encrypt all resources, resources[0].resources[1]: Invalid value: \"Secrets.apps\": resource \
                 name should not contain capital letters, resources[0].resources[2]: Invalid value: \"a.events.k8s.io\": \
                 '*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
                 config file, resources[0].resources[3]: Invalid value: \"a.extensions\": 'extensions' group has been \
                 removed and cannot be used for encryption, resources[0].resources[4]: Invalid value: \"a.*\": encrypting \
                 the same resource across groups is not supported]",
            ),
            (
                with(
                    "[secrets]",
                    "[{kms: {apiVersion: v2, name: 'a:b', endpoint: 'tcp://x', timeout: 0s, cachesize: 1}}]",
                ),
                "[resources[0].providers[0].kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not \
                 contain ':', resources[0].providers[0].kms.timeout: Invalid value: \"0s\": timeout should be a positive \
                 value, resources[0].providers[0].kms.endpoint: Invalid value: \"tcp://x\": unsupported scheme \"tcp\" for \
                 KMS provider, only unix is supported, resources[0].providers[0].kms.cachesize: Invalid value: 1: cachesize \
                 is not supported in v2]",
            ),
        ] {
            assert_eq!(read(&text, false).expect_err(&text), want, "{text}");
        }
    }
}
