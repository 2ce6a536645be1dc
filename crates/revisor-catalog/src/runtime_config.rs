//! [`RuntimeConfig`]: which versions and resources are switched on and off, beside those that are served by default.

use std::collections::HashMap;

/// What `--runtime-config` says: `KEY=BOOL`, where KEY is `api/all`, `api/ga`, `api/beta`, `api/alpha`, a version
/// (`apps/v1`, `v1`) or a resource (`apps/v1/deployments`). The more exact key wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeConfig(HashMap<String, bool>);

/// Why a text is no [`RuntimeConfig`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    /// A value is neither true nor false.
    #[error("invalid value of {key}={value}, expected true or false")]
    NoBool {
        /// The key.
        key: String,
        /// What stands behind it.
        value: String,
    },
    /// A key names nothing that this program knows.
    #[error(
        "unknown api group, version or resource {0:?}; known are api/all, api/ga, api/beta, api/alpha, VERSION, GROUP/VERSION and GROUP/VERSION/RESOURCE"
    )]
    UnknownKey(String),
}

const EVERYTHING: &str = "api/all";

impl RuntimeConfig {
    /// Reads `KEY=BOOL,KEY=BOOL`; a key alone means true. `knows` says whether there is a version or resource: it gets
    /// the group, the version and perhaps the resource.
    pub fn parse(
        text: &str,
        knows: impl Fn(&str, &str, Option<&str>) -> bool,
    ) -> Result<RuntimeConfig, RuntimeConfigError> {
        let mut config = RuntimeConfig::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let truth = match value {
                "" | "true" => true,
                "false" => false,
                _ => return Err(RuntimeConfigError::NoBool { key: key.to_owned(), value: value.to_owned() }),
            };
            let key = key.strip_prefix("api/").filter(|rest| rest.starts_with('v')).unwrap_or(key);
            let is_known = match key.split('/').collect::<Vec<_>>()[..] {
                ["api", "all" | "ga" | "beta" | "alpha"] => true,
                [version] => knows("", version, None),
                [group, version] => knows(group, version, None) || knows("", group, Some(version)),
                [group, version, resource] => knows(group, version, Some(resource)),
                _ => false,
            };
            if !is_known {
                return Err(RuntimeConfigError::UnknownKey(key.to_owned()));
            }
            config.0.insert(key.to_owned(), truth);
        }
        Ok(config)
    }

    /// Whether a resource is served.
    pub(crate) fn serves(&self, group: &str, version: &str, resource: &str) -> bool {
        let qualified = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let stage = match version {
            alpha if alpha.contains("alpha") => "api/alpha",
            beta if beta.contains("beta") => "api/beta",
            _ => "api/ga",
        };
        let exact = format!("{qualified}/{resource}");
        let said = [exact.as_str(), &qualified, stage, EVERYTHING].into_iter().find_map(|key| self.0.get(key));
        said.copied().unwrap_or(stage == "api/ga")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knows(group: &str, version: &str, resource: Option<&str>) -> bool {
        matches!(
            (group, version, resource),
            ("", "v1", None | Some("pods")) | ("apps", "v1" | "v1beta1" | "v1alpha1", None | Some("deployments"))
        )
    }

    #[test]
    fn the_more_exact_key_wins() {
        for (text, alpha, beta, ga) in [
            ("", false, false, true),
            ("api/all=true", true, true, true),
            ("api/all=false", false, false, false),
            ("api/all=false,apps/v1", false, false, true),
            ("api/beta=true", false, true, true),
            ("api/all=true,api/alpha=false", false, true, true),
            ("apps/v1beta1=true,apps/v1beta1/deployments=false", false, false, true),
            ("apps/v1=false", false, false, false),
        ] {
            let config = RuntimeConfig::parse(text, knows).unwrap_or_else(|error| panic!("{text}: {error}"));
            let found = ["v1alpha1", "v1beta1", "v1"].map(|version| config.serves("apps", version, "deployments"));
            assert_eq!(found, [alpha, beta, ga], "{text}");
        }
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for text in ["apps/v9", "nonsense", "api/nonsense", "apps/v1=maybe", "apps/v1/pods", "a/b/c/d"] {
            assert!(RuntimeConfig::parse(text, knows).is_err(), "{text}");
        }
        for text in ["v1", "api/v1=false", "v1/pods=false"] {
            assert!(RuntimeConfig::parse(text, knows).is_ok(), "{text}");
        }
    }
}
