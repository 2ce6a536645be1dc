//! [`RuntimeConfig`]: which versions and resources are switched on and off, beside those that are served by default.

use std::collections::BTreeMap;
use std::fmt;

use revisor_version::{ApiVersion, Stability};

/// What `--runtime-config` says: `KEY=BOOL`, where KEY is `api/all`, `api/ga`, `api/beta`, `api/alpha`, a version
/// (`apps/v1`, `v1`) or a resource (`apps/v1/deployments`). The more exact key wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeConfig {
    /// What was said, for those who want to see it again.
    said: BTreeMap<String, String>,
    /// What it says of `api/all` and of each stage.
    groups: BTreeMap<&'static str, bool>,
    /// What it says of versions.
    versions: BTreeMap<String, bool>,
    /// What it says of resources: a version and a name.
    resources: BTreeMap<(String, String), bool>,
}

/// Why a text is no [`RuntimeConfig`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    /// All would be off.
    #[error("invalid runtime-config with only api/all=false")]
    NothingLeft,
    /// What limits requests would be off.
    #[error("--runtime-config={0}=false conflicts with --enable-priority-and-fairness=true")]
    Indispensable(&'static str),
    /// A key has too many parts, or too few.
    #[error(
        "runtime-config invalid key {0}: expected api/all, api/ga, api/beta, api/alpha, VERSION, GROUP/VERSION or GROUP/VERSION/RESOURCE"
    )]
    MalformedKey(String),
    /// A value for many is neither true nor false.
    #[error("invalid value {key}={value}")]
    NotABool {
        /// The key.
        key: String,
        /// What stands behind it.
        value: String,
    },
    /// A value for one version or resource is neither true nor false.
    #[error("invalid value of {key}: {value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax")]
    NotABoolOfOne {
        /// The key.
        key: String,
        /// What stands behind it.
        value: String,
    },
    /// A resource is not named as it is in paths.
    #[error("invalid key {key}: group/version/resource and resource is always lowercase plural, not {resource:?}")]
    NotPlural {
        /// The key.
        key: String,
        /// The resource in it.
        resource: String,
    },
    /// Keys name groups that nobody knows.
    #[error("unknown api groups {}", .0.join(","))]
    UnknownGroups(Vec<String>),
    /// A key names a version that its group never had.
    #[error("group version {0} that has not been registered")]
    UnknownVersion(String),
}

const EVERYTHING: &str = "api/all";

/// The keys that speak of many versions.
const MANY: [&str; 4] = [EVERYTHING, "api/ga", "api/beta", "api/alpha"];

/// The keys that decide whether requests can be limited by stored rules, which the original insists on, in the order of
/// their weight. Nobody runs a server without the versions that the second and the third take with them.
const INDISPENSABLE: [&str; 3] = ["flowcontrol.apiserver.k8s.io/v1", "api/ga", EVERYTHING];

/// Versions that were served by releases that are too old to be emulated. To speak of them is no mistake, and has no
/// effect.
const BYGONE: &[(&str, &str)] = &[
    ("apiextensions.k8s.io", "v1beta1"),
    ("apiregistration.k8s.io", "v1beta1"),
    ("apps", "v1beta1"),
    ("apps", "v1beta2"),
    ("authentication.k8s.io", "v1alpha1"),
    ("authentication.k8s.io", "v1beta1"),
    ("authorization.k8s.io", "v1beta1"),
    ("batch", "v1beta1"),
    ("discovery.k8s.io", "v1beta1"),
    ("events.k8s.io", "v1beta1"),
    ("extensions", "v1beta1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2"),
    ("flowcontrol.apiserver.k8s.io", "v1beta3"),
    ("node.k8s.io", "v1alpha1"),
    ("node.k8s.io", "v1beta1"),
    ("policy", "v1beta1"),
    ("rbac.authorization.k8s.io", "v1alpha1"),
    ("rbac.authorization.k8s.io", "v1beta1"),
    ("scheduling.k8s.io", "v1beta1"),
];

impl RuntimeConfig {
    /// Reads `KEY=BOOL,KEY=BOOL`; a version or resource alone means true. `known` are the groups and versions that can
    /// be served.
    pub(crate) fn parse(text: &str, known: &[(&str, &str)]) -> Result<RuntimeConfig, RuntimeConfigError> {
        let mut config = RuntimeConfig::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            config.said.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        if config.said.len() == 1 && config.said.get(EVERYTHING).is_some_and(|value| value == "false") {
            return Err(RuntimeConfigError::NothingLeft);
        }
        let mut said = INDISPENSABLE.iter().filter_map(|key| Some((*key, config.said.get(*key)?.as_str())));
        if let Some((key, "false")) = said.find(|(_, value)| matches!(*value, "true" | "false")) {
            return Err(RuntimeConfigError::Indispensable(key));
        }
        let exact = config.said.iter().filter(|(key, _)| !MANY.contains(&key.as_str()));
        let exact: Vec<(&str, &str, Key<'_>)> = exact
            .map(|(key, value)| Key::parse(key).map(|parsed| (&**key, &**value, parsed)).ok_or_else(|| key.clone()))
            .collect::<Result<_, _>>()
            .map_err(RuntimeConfigError::MalformedKey)?;
        let is_known = |group: &str, version: Option<&str>| {
            let mut all = known.iter().chain(BYGONE);
            all.any(|(other, of)| *other == group && version.is_none_or(|version| *of == version))
        };
        let strange = exact.iter().filter(|(_, _, key)| !is_known(key.group, None));
        let strange: Vec<String> = strange.map(|(_, _, key)| key.group_version()).collect();
        if !strange.is_empty() {
            return Err(RuntimeConfigError::UnknownGroups(strange));
        }
        let mut groups = BTreeMap::new();
        for many in MANY {
            let Some(value) = config.said.get(many) else { continue };
            let truth = match value.as_str() {
                "true" => true,
                "false" => false,
                _ => return Err(RuntimeConfigError::NotABool { key: many.to_owned(), value: value.clone() }),
            };
            groups.insert(many, truth);
        }
        let (mut versions, mut resources) = (BTreeMap::new(), BTreeMap::new());
        for (key, value, parsed) in exact {
            if !is_known(parsed.group, Some(parsed.version)) {
                return Err(RuntimeConfigError::UnknownVersion(parsed.group_version()));
            }
            let truth = match value {
                "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => return Err(RuntimeConfigError::NotABoolOfOne { key: key.to_owned(), value: value.to_owned() }),
            };
            match parsed.resource {
                None => {
                    versions.insert(parsed.group_version(), truth);
                }
                Some(resource) if resource.to_lowercase() != resource => {
                    let resource = resource.to_owned();
                    return Err(RuntimeConfigError::NotPlural { key: key.to_owned(), resource });
                }
                Some(resource) => {
                    resources.insert((parsed.group_version(), resource.to_owned()), truth);
                }
            }
        }
        Ok(RuntimeConfig { groups, versions, resources, ..config })
    }

    /// Whether a resource is served as far as this is concerned.
    pub(crate) fn serves(&self, group_version: &str, stability: Stability, resource: &str) -> bool {
        let stage = match stability {
            Stability::Stable => "api/ga",
            Stability::Beta => "api/beta",
            Stability::Alpha => "api/alpha",
            Stability::Other => EVERYTHING,
        };
        self.says_of_resource(group_version, resource)
            .or_else(|| self.says_of_version(group_version))
            .or_else(|| self.groups.get(stage).copied())
            .or_else(|| self.groups.get(EVERYTHING).copied())
            .unwrap_or(stability == Stability::Stable)
    }

    /// What is said of a resource by its own name.
    pub(crate) fn says_of_resource(&self, group_version: &str, resource: &str) -> Option<bool> {
        self.resources.get(&(group_version.to_owned(), resource.to_owned())).copied()
    }

    /// What is said of a version by its own name.
    pub(crate) fn says_of_version(&self, group_version: &str) -> Option<bool> {
        self.versions.get(group_version).copied()
    }

    /// Whether everything is switched on by one word, alpha included.
    pub fn asks_for_everything(&self) -> bool {
        self.groups.get(EVERYTHING) == Some(&true) && !self.groups.contains_key("api/alpha")
    }

    /// The resources that it names: their versions and names.
    pub(crate) fn named_resources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.resources.keys().map(|(version, resource)| (version.as_str(), resource.as_str()))
    }

    /// The first key that switches something on that is alpha and nothing else.
    pub(crate) fn alpha_key(&self) -> Option<String> {
        let is_alpha = |group_version: &str| {
            let version = group_version.rsplit('/').next().unwrap_or_default();
            version.parse::<ApiVersion>().is_ok_and(|version| version.stability() == Stability::Alpha)
        };
        let all = self.groups.get("api/alpha").filter(|is_on| **is_on).map(|_| "api/alpha".to_owned());
        let mut versions = self.versions.iter().filter(|(version, is_on)| **is_on && is_alpha(version));
        let mut resources = self.resources.iter().filter(|((version, _), is_on)| **is_on && is_alpha(version));
        all.or_else(|| versions.next().map(|(version, _)| version.clone()))
            .or_else(|| resources.next().map(|((version, resource), _)| format!("{version}/{resource}")))
    }
}

impl fmt::Display for RuntimeConfig {
    /// What was said, in the order of the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.said.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{key}={value}")?;
        }
        Ok(())
    }
}

/// A key that speaks of one version or resource.
struct Key<'k> {
    group: &'k str,
    version: &'k str,
    resource: Option<&'k str>,
}

impl<'k> Key<'k> {
    fn parse(text: &'k str) -> Option<Key<'k>> {
        // The core group has no name; some write its place instead.
        let core =
            |version: &str| version.parse::<ApiVersion>().is_ok_and(|version| version.stability() != Stability::Other);
        let text =
            text.strip_prefix("api/").filter(|rest| core(rest.split('/').next().unwrap_or_default())).unwrap_or(text);
        let parts: Vec<&str> = text.split('/').collect();
        let (group, version, resource) = match parts[..] {
            [version] if core(version) => ("", version, None),
            [version, resource] if core(version) => ("", version, Some(resource)),
            [group, version] => (group, version, None),
            [group, version, resource] => (group, version, Some(resource)),
            _ => return None,
        };
        Some(Key { group, version, resource })
    }

    fn group_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[(&str, &str)] = &[
        ("", "v1"),
        ("apps", "v1"),
        ("apps", "v1beta3"),
        ("apps", "v1alpha1"),
        ("flowcontrol.apiserver.k8s.io", "v1"),
    ];

    #[test]
    fn the_more_exact_key_wins() {
        for (text, alpha, beta, ga) in [
            ("", false, false, true),
            ("api/all=true", true, true, true),
            ("api/all=false,flowcontrol.apiserver.k8s.io/v1=true,v1", false, false, false),
            ("api/all=false,flowcontrol.apiserver.k8s.io/v1=true,apps/v1", false, false, true),
            ("api/ga=true,api/all=false", false, false, true),
            ("api/ga=false,flowcontrol.apiserver.k8s.io/v1=true", false, false, false),
            ("api/beta=true", false, true, true),
            ("api/all=true,api/alpha=false", false, true, true),
            ("apps/v1beta3=true,apps/v1beta3/deployments=false", false, false, true),
            ("apps/v1=false", false, false, false),
            ("apps/v1=0,apps/v1alpha1=t", true, false, false),
        ] {
            let config = RuntimeConfig::parse(text, KNOWN).unwrap_or_else(|error| panic!("{text}: {error}"));
            let found = [("v1alpha1", Stability::Alpha), ("v1beta3", Stability::Beta), ("v1", Stability::Stable)]
                .map(|(version, stability)| config.serves(&format!("apps/{version}"), stability, "deployments"));
            assert_eq!(found, [alpha, beta, ga], "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, want) in [
            ("widgets.example.com/v1=true", "unknown api groups widgets.example.com/v1"),
            ("b.com/v1,a.com/v2=true", "unknown api groups a.com/v2,b.com/v1"),
            ("apps/v7=true", "group version apps/v7 that has not been registered"),
            ("v7=true", "group version v7 that has not been registered"),
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            ("api/ga=false", "--runtime-config=api/ga=false conflicts with --enable-priority-and-fairness=true"),
            (
                "api/all=false,v1=true",
                "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true",
            ),
            (
                "flowcontrol.apiserver.k8s.io/v1=false,api/ga=true",
                "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with \
                 --enable-priority-and-fairness=true",
            ),
            ("api/beta=perhaps", "invalid value api/beta=perhaps"),
            (
                "apps/v1=perhaps",
                "invalid value of apps/v1: perhaps, err: strconv.ParseBool: parsing \"perhaps\": invalid syntax",
            ),
            (
                "apps/v1/Deployments",
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \"Deployments\"",
            ),
        ] {
            let error = RuntimeConfig::parse(text, KNOWN).expect_err(text);
            assert_eq!(error.to_string(), want);
        }
        for text in ["a/b/c/d=true", "nonsense"] {
            let error = RuntimeConfig::parse(text, KNOWN).expect_err(text).to_string();
            let want = format!("runtime-config invalid key {}:", text.trim_end_matches("=true"));
            assert!(error.starts_with(&want), "{error}");
        }
    }

    #[test]
    fn the_core_group_is_named_by_its_version() {
        for text in ["v1", "api/v1=false", "v1/pods=false", "/v1/pods", "apps/v1beta1=true", "apps/v1/anything=true"] {
            assert!(RuntimeConfig::parse(text, KNOWN).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_was_said_can_be_seen_again() {
        let config = RuntimeConfig::parse("v1, apps/v1=false,api/beta=true", KNOWN).expect("is known");
        assert_eq!(config.to_string(), "api/beta=true,apps/v1=false,v1=");
    }

    #[test]
    fn what_is_asked_for_can_be_told() {
        for (text, everything, named) in [
            ("api/all=true", true, 0),
            ("api/all=true,api/alpha=false", false, 0),
            ("api/beta=true,apps/v1/deployments=false", false, 1),
        ] {
            let config = RuntimeConfig::parse(text, KNOWN).expect("is known");
            assert_eq!((config.asks_for_everything(), config.named_resources().count()), (everything, named), "{text}");
        }
    }
}
