//! [`Unserved`]: a version that a definition has, and that clients cannot use.
//!
//! The original answers as if there were no such version. So does Revisor; beside that, clients are told why, and where
//! to go.

use std::fmt;

use compact_str::CompactString;

use crate::Catalog;

/// A version that a definition has and does not serve, and those that it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// `group/version`, as objects show it.
    api_version: String,
    /// The resource that is not served in it.
    plural: CompactString,
    /// The versions in which it is, best first.
    served: Vec<CompactString>,
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unserved { api_version, plural, served } = self;
        write!(f, "{plural} of {api_version} are defined but not served; ")?;
        match &served[..] {
            [] => f.write_str("no version of them is"),
            served => write!(f, "versions that are served: {}", served.join(", ")),
        }
    }
}

impl Catalog {
    /// The resources of this name, or of any if there is none, whose definitions have a version of the group that they
    /// do not serve.
    pub(crate) fn unserved(&self, group: &str, version: &str, plural: Option<&str>) -> Vec<Unserved> {
        let api_version = format!("{group}/{version}");
        let mut found: Vec<Unserved> = Vec::new();
        for known in self.versions_of(group) {
            let wanted = known.resources.iter().filter(|known| plural.is_none_or(|plural| known.plural == plural));
            for resource in wanted {
                let is_defined =
                    resource.custom().is_some_and(|custom| custom.api_versions().any(|defined| defined == api_version));
                if !is_defined || self.resource(group, version, &resource.plural).is_some() {
                    continue;
                }
                match found.iter_mut().find(|other| other.plural == resource.plural) {
                    Some(other) => other.served.push(known.version.clone()),
                    None => found.push(Unserved {
                        api_version: api_version.clone(),
                        plural: resource.plural.clone(),
                        served: vec![known.version.clone()],
                    }),
                }
            }
        }
        for ((known_group, known), versions) in &self.hidden {
            let is_wanted = known_group == group && plural.is_none_or(|plural| known == plural);
            if is_wanted && versions.iter().any(|defined| defined == version) {
                let (api_version, plural) = (api_version.clone(), known.clone());
                found.push(Unserved { api_version, plural, served: Vec::new() });
            }
        }
        found
    }
}
