//! [`Rule`]: a row of `rules` or `resourceRules`, which says of which writes a webhook or policy wants to hear.

use revisor_object::{Object, Value};

use crate::{GroupVersionResource, Operation};

/// Everything.
const ANY: &str = "*";

/// What of a write matters to rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleTarget<'a> {
    /// The resource.
    pub resource: GroupVersionResource<'a>,
    /// The part of the object; empty for the whole.
    pub subresource: &'a str,
    /// The namespace; of a namespace its own name, and empty for what is in none.
    pub namespace: &'a str,
    /// The name of the object; empty if it is to be generated.
    pub name: &'a str,
    /// What is done.
    pub operation: Operation,
}

impl RuleTarget<'_> {
    /// Whether it is a namespace itself.
    pub(crate) fn is_namespace(&self) -> bool {
        self.resource == GroupVersionResource { group: "", version: "v1", resource: "namespaces" }
    }
}

/// Of which writes somebody wants to hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Each with its subresource, which is empty for the whole object.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    scope: Scope,
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
    Unknown,
}

impl Rule {
    /// The rule that this object describes.
    pub fn read(rule: &Object) -> Rule {
        Rule {
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            resources: texts(rule, "resources").into_iter().map(|name| split(&name)).collect(),
            operations: texts(rule, "operations"),
            scope: match rule.str("scope") {
                None | Some(ANY) => Scope::All,
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                Some(_) => Scope::Unknown,
            },
            names: texts(rule, "resourceNames"),
        }
    }

    /// All rules of a list.
    pub fn read_all(rules: &[Value]) -> Vec<Rule> {
        rules.iter().filter_map(Value::as_object).map(Rule::read).collect()
    }

    /// Whether a write is meant, as `rules.Matcher` of the original decides it.
    pub fn matches(&self, target: &RuleTarget<'_>) -> bool {
        let GroupVersionResource { group, version, resource } = target.resource;
        let names = |list: &[String], one: &str| list.iter().any(|name| name == ANY || name == one);
        let of_resource = |(name, part): &(String, String)| {
            (name == ANY || name == resource) && (part == ANY || part == target.subresource)
        };
        let is_clustered = || target.is_namespace() || target.namespace.is_empty();
        names(&self.operations, target.operation.as_str())
            && names(&self.groups, group)
            && names(&self.versions, version)
            && self.resources.iter().any(of_resource)
            && match self.scope {
                Scope::All => true,
                Scope::Namespaced => !is_clustered(),
                Scope::Cluster => is_clustered(),
                Scope::Unknown => false,
            }
            && (self.names.is_empty() || self.names.iter().any(|name| name == target.name))
    }
}

/// The texts of a list.
pub(crate) fn texts(object: &Object, name: &str) -> Vec<String> {
    object.array(name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn split(name: &str) -> (String, String) {
    let (resource, part) = name.split_once('/').unwrap_or((name, ""));
    (resource.to_owned(), part.to_owned())
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn rule(change: &str) -> Rule {
        let mut rule = parse_json(
            br#"{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE"]}"#,
        )
        .expect("is JSON")
        .value;
        let change = parse_json(change.as_bytes()).expect("is JSON").value;
        for (name, value) in change.as_object().expect("is an object").iter() {
            rule.as_object_mut().expect("is an object").insert(name, value.clone());
        }
        Rule::read(rule.as_object().expect("is an object"))
    }

    #[test]
    fn a_rule_is_about_what_all_of_it_names() {
        let deployment = RuleTarget {
            resource: GroupVersionResource { group: "apps", version: "v1", resource: "deployments" },
            subresource: "",
            namespace: "n",
            name: "a",
            operation: Operation::Create,
        };
        let scale = RuleTarget { subresource: "scale", ..deployment };
        let namespace = RuleTarget {
            resource: GroupVersionResource { group: "", version: "v1", resource: "namespaces" },
            namespace: "a",
            ..deployment
        };
        let everything = r#""apiGroups":["*"],"apiVersions":["*"],"operations":["*"]"#;
        for (change, target, want) in [
            ("{}".to_owned(), deployment, true),
            ("{}".to_owned(), scale, false),
            ("{}".to_owned(), RuleTarget { operation: Operation::Update, ..deployment }, false),
            (r#"{"apiGroups":[""]}"#.to_owned(), deployment, false),
            (r#"{"apiVersions":["v1beta1"]}"#.to_owned(), deployment, false),
            (r#"{"resources":["*"]}"#.to_owned(), deployment, true),
            (r#"{"resources":["*"]}"#.to_owned(), scale, false),
            (r#"{"resources":["*/*"]}"#.to_owned(), scale, true),
            (r#"{"resources":["*/*"]}"#.to_owned(), deployment, true),
            (r#"{"resources":["*/scale"]}"#.to_owned(), scale, true),
            (r#"{"resources":["deployments/*"]}"#.to_owned(), deployment, true),
            (r#"{"resources":["deployments/scale"]}"#.to_owned(), deployment, false),
            (r#"{"scope":"Namespaced"}"#.to_owned(), deployment, true),
            (r#"{"scope":"Cluster"}"#.to_owned(), deployment, false),
            (format!(r#"{{{everything},"resources":["*"],"scope":"Cluster"}}"#), namespace, true),
            (format!(r#"{{{everything},"resources":["*"],"scope":"Namespaced"}}"#), namespace, false),
            (r#"{"resourceNames":["a","b"]}"#.to_owned(), deployment, true),
            (r#"{"resourceNames":["b"]}"#.to_owned(), deployment, false),
        ] {
            assert_eq!(rule(&change).matches(&target), want, "{change} {target:?}");
        }
    }
}
