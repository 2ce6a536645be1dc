//! [`GroupResource`]: a resource as a configuration names it, and the resource that a key belongs to.

use std::collections::HashMap;
use std::fmt;

use revisor_store::embedded::resource_of;

/// A resource by its group and its plural; either may be `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural.
    pub resource: String,
}

impl GroupResource {
    /// A resource of a group.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> GroupResource {
        GroupResource { group: group.into(), resource: resource.into() }
    }

    /// `deployments.apps`, `secrets`, `*.apps`, `*.` or `*.*`, as `schema.ParseGroupResource` reads it.
    pub(crate) fn parse(text: &str) -> GroupResource {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        GroupResource::new(group, resource)
    }

    /// All resources of all groups.
    pub(crate) fn any() -> GroupResource {
        GroupResource::new("*", "*")
    }

    /// All resources of the group of this one.
    pub(crate) fn any_of_group(&self) -> GroupResource {
        GroupResource::new(self.group.clone(), "*")
    }

    /// How a configuration spells it (`grYAMLString`).
    pub(crate) fn spelled(&self) -> String {
        if self.group.is_empty() && self.resource == "*" { "*.".to_owned() } else { self.to_string() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Which resources keys belong to.
pub(crate) struct ResourceNames {
    built_in: HashMap<String, GroupResource>,
}

impl ResourceNames {
    /// `built_in` are the prefixes of keys whose resources do not follow from their text.
    pub(crate) fn new(built_in: impl IntoIterator<Item = (String, GroupResource)>) -> ResourceNames {
        ResourceNames { built_in: built_in.into_iter().collect() }
    }

    /// The part of a key that tells its resource.
    pub(crate) fn prefix_of(key: &str) -> &str {
        resource_of(key)
    }

    /// The resource of the keys with this prefix; nothing for keys that belong to none. Custom resources are stored
    /// under their group and plural.
    pub(crate) fn of_prefix(&self, prefix: &str) -> Option<GroupResource> {
        if let Some(known) = self.built_in.get(prefix) {
            return Some(known.clone());
        }
        let (group, resource) = prefix.strip_prefix("/registry/")?.strip_suffix('/')?.split_once('/')?;
        let is_custom = group.contains('.') && !resource.is_empty() && !resource.contains('/');
        is_custom.then(|| GroupResource::new(group, resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_as_a_configuration_spells_them() {
        for (text, group, resource) in [
            ("secrets", "", "secrets"),
            ("deployments.apps", "apps", "deployments"),
            ("widgets.stable.example.com", "stable.example.com", "widgets"),
            ("*.", "", "*"),
            ("*.apps", "apps", "*"),
            ("*.*", "*", "*"),
        ] {
            let parsed = GroupResource::parse(text);
            assert_eq!(parsed, GroupResource::new(group, resource));
            assert_eq!(parsed.spelled(), text);
        }
    }

    #[test]
    fn keys_tell_their_resources() {
        let built_in = [("/registry/secrets/".to_owned(), GroupResource::new("", "secrets"))];
        let names = ResourceNames::new(built_in);
        for (key, want) in [
            ("/registry/secrets/default/a", Some("secrets")),
            ("/registry/example.com/widgets/default/a", Some("widgets.example.com")),
            ("/registry/unknown/default/a", None),
            ("/other/a", None),
        ] {
            let found = names.of_prefix(ResourceNames::prefix_of(key)).map(|found| found.to_string());
            assert_eq!(found.as_deref(), want, "{key}");
        }
    }
}
