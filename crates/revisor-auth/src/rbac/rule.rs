//! [`PolicyRule`]: one rule of a role.

use std::fmt;

use revisor_object::{Object, Value};

use crate::quoted::quoted;
use crate::{Attributes, ResourceAttributes};

/// Stands for everything of its sort.
const ALL: &str = "*";

/// What may be done: verbs on resources of groups, or verbs on bare paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRule {
    /// What may be done; `*` for everything.
    pub verbs: Vec<String>,
    /// In these groups; empty text for the core group, `*` for all.
    pub groups: Vec<String>,
    /// To these resources: `pods`, `pods/log`, `*/scale` for a part of whatever has it, `*` for all.
    pub resources: Vec<String>,
    /// To objects of these names only; none for all.
    pub names: Vec<String>,
    /// On these paths; with a star at the end for all that begin so.
    pub paths: Vec<String>,
}

impl PolicyRule {
    /// The rules of a role as it is stored.
    pub fn all_of(role: &Object) -> Vec<PolicyRule> {
        role.array("rules").iter().filter_map(Value::as_object).map(PolicyRule::read).collect()
    }

    fn read(rule: &Object) -> PolicyRule {
        let texts = |name| rule.array(name).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        PolicyRule {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            paths: texts("nonResourceURLs"),
        }
    }

    /// The rule as an object has it.
    pub fn to_object(&self) -> Object {
        let mut object = Object::new();
        for (name, texts) in [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ] {
            if !texts.is_empty() {
                object.insert(name, texts.iter().map(|text| Value::from(&**text)).collect::<Vec<_>>());
            }
        }
        object
    }

    /// Whether the rule allows what is asked. Where it holds is not the rule's to know.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, asked.verb) {
            return false;
        }
        match asked.resource {
            Some(resource) => {
                has(&self.groups, resource.group) && self.is_about(&resource) && self.is_about_name(&resource)
            }
            None => self.paths.iter().any(|path| path_covers(path, asked.path)),
        }
    }

    fn is_about(&self, asked: &ResourceAttributes<'_>) -> bool {
        let subresource = asked.subresource.filter(|subresource| !subresource.is_empty());
        self.resources.iter().any(|resource| {
            let Some(subresource) = subresource else { return resource == ALL || resource == asked.resource };
            // A resource does not include its parts, and `pods/*` is only a name that nothing has.
            resource == ALL
                || resource.strip_prefix("*/") == Some(subresource)
                || resource.strip_prefix(asked.resource).and_then(|rest| rest.strip_prefix('/')) == Some(subresource)
        })
    }

    fn is_about_name(&self, asked: &ResourceAttributes<'_>) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == asked.name.unwrap_or_default())
    }
}

/// The rule in short, as messages show it.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "{";
        for (name, texts) in [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ] {
            if !texts.is_empty() {
                write!(f, "{separator}{name}:{}", quoted_list(texts))?;
                separator = ", ";
            }
        }
        f.write_str(if separator == "{" { "{}" } else { "}" })
    }
}

/// Texts as messages show a list of them: `["a" "b"]`.
pub(crate) fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(" "))
}

/// Whether `texts` have this one, or all.
pub(crate) fn has(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == ALL || text == wanted)
}

/// Whether a path of a rule stands for this one.
pub(crate) fn path_covers(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    fn texts(list: &str) -> Vec<String> {
        list.split_terminator(',').map(|text| if text == "core" { "" } else { text }.to_owned()).collect()
    }

    #[test]
    fn a_rule_allows_what_it_says_and_nothing_else() {
        let user = Identity::anonymous();
        for (verbs, groups, resources, names, asked, allowed) in [
            ("get", "core", "pods", "", ("get", "", "pods", "", "a"), true),
            ("get,list", "core,apps", "pods,deployments", "", ("list", "apps", "deployments", "", ""), true),
            ("get", "core", "pods", "", ("list", "", "pods", "", ""), false),
            ("get", "core", "pods", "", ("get", "apps", "pods", "", ""), false),
            ("get", "core", "pods", "", ("get", "", "secrets", "", ""), false),
            ("*", "*", "*", "", ("anything", "any.group", "things", "part", "x"), true),
            ("get", "core", "pods", "", ("get", "", "pods", "log", "a"), false),
            ("get", "core", "pods/log", "", ("get", "", "pods", "log", "a"), true),
            ("get", "core", "pods/log", "", ("get", "", "pods", "", "a"), false),
            ("get", "core", "*", "", ("get", "", "pods", "log", "a"), true),
            ("get", "apps", "*/scale", "", ("get", "apps", "deployments", "scale", "a"), true),
            ("get", "apps", "*/scale", "", ("get", "apps", "deployments", "status", "a"), false),
            ("get", "apps", "*/scale", "", ("get", "apps", "deployments", "", "a"), false),
            ("get", "core", "pods/*", "", ("get", "", "pods", "log", "a"), false),
            ("get", "core", "pods/*", "", ("get", "", "pods", "*", "a"), true),
            ("get", "core", "pods", "a,b", ("get", "", "pods", "", "b"), true),
            ("get", "core", "pods", "a,b", ("get", "", "pods", "", "c"), false),
            ("create", "core", "pods", "a", ("create", "", "pods", "", ""), false),
            ("get", "core", "pods", "*", ("get", "", "pods", "", "a"), false),
            ("get", "", "pods", "", ("get", "", "pods", "", "a"), false),
        ] {
            let rule = PolicyRule {
                verbs: texts(verbs),
                groups: texts(groups),
                resources: texts(resources),
                names: texts(names),
                ..PolicyRule::default()
            };
            let (verb, group, resource, subresource, name) = asked;
            let resource = ResourceAttributes {
                group,
                resource,
                subresource: Some(subresource).filter(|text| !text.is_empty()),
                name: Some(name).filter(|text| !text.is_empty()),
                ..ResourceAttributes::default()
            };
            let attributes = Attributes { user: &user, verb, path: "", resource: Some(resource) };
            assert_eq!(rule.allows(&attributes), allowed, "{rule}: {asked:?}");
        }
    }

    #[test]
    fn paths_are_meant_exactly_or_by_what_they_begin_with() {
        let user = Identity::anonymous();
        for (path, asked, allowed) in [
            ("/metrics", "/metrics", true),
            ("/metrics", "/metrics/slis", false),
            ("/logs/*", "/logs/a/b", true),
            ("/logs/*", "/logs/", true),
            ("/logs/*", "/logs", false),
            ("/lo*", "/logs", true),
            ("/*/a", "/b/a", false),
            ("*", "/anything", true),
        ] {
            let rule = PolicyRule { verbs: texts("get"), paths: texts(path), ..PolicyRule::default() };
            let attributes = Attributes { user: &user, verb: "get", path: asked, resource: None };
            assert_eq!(rule.allows(&attributes), allowed, "{path}: {asked}");
        }
    }

    #[test]
    fn a_rule_is_shown_in_short_and_comes_back_from_its_object() {
        let rule = PolicyRule {
            verbs: texts("get,list"),
            groups: texts("core"),
            resources: texts("pods"),
            names: texts("a"),
            paths: Vec::new(),
        };
        let shown = r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}"#;
        assert_eq!(rule.to_string(), shown);
        assert_eq!(PolicyRule::read(&rule.to_object()), rule);
        assert_eq!(PolicyRule::default().to_string(), "{}");
    }
}
