//! The roles and bindings that every server has: `tables/roles.csv` with one row per rule, `tables/role_bindings.csv`,
//! and `tables/role_aggregations.csv` for the roles that gather others. Lists in them are joined by `+`.

use revisor_object::{Object, Value};

use super::GROUP;
use crate::BootstrapRole;

const ROLES: &str = include_str!("../../../tables/roles.csv");
const BINDINGS: &str = include_str!("../../../tables/role_bindings.csv");
const AGGREGATIONS: &str = include_str!("../../../tables/role_aggregations.csv");

/// What marks a role as part of one that gathers others, before the name of that.
const PART_OF: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// All of them, first the roles and then the bindings.
pub(crate) fn bootstrap_objects() -> Vec<BootstrapRole> {
    let mut objects = roles();
    for [role, part_of, gathers] in rows(AGGREGATIONS) {
        let at = objects.iter().position(|known| known.plural == "clusterroles" && known.name == role);
        let at = at.unwrap_or_else(|| {
            // What only gathers has no rules of its own.
            objects.push(empty("clusterroles", "", role));
            objects.len() - 1
        });
        let object = &mut objects[at].object;
        for whole in list(part_of) {
            let labels = object.object_mut("metadata").object_mut("labels");
            labels.insert(&format!("{PART_OF}{whole}"), "true");
        }
        let selectors: Vec<Value> = list(gathers).map(selector).collect();
        if !selectors.is_empty() {
            object.object_mut("aggregationRule").insert("clusterRoleSelectors", selectors);
        }
    }
    objects.extend(rows(BINDINGS).map(binding));
    objects
}

/// Roles with the rules of their rows, which stand together.
fn roles() -> Vec<BootstrapRole> {
    let mut roles: Vec<BootstrapRole> = Vec::new();
    for [namespace, name, verbs, groups, resources, names, urls] in rows(ROLES) {
        let plural = if namespace.is_empty() { "clusterroles" } else { "roles" };
        if roles.last().is_none_or(|last| (last.namespace.unwrap_or_default(), last.name) != (namespace, name)) {
            roles.push(empty(plural, namespace, name));
        }
        let mut rule = Object::new();
        for (field, texts) in [
            ("verbs", verbs),
            ("apiGroups", groups),
            ("resources", resources),
            ("resourceNames", names),
            ("nonResourceURLs", urls),
        ] {
            if !texts.is_empty() {
                let core = |text| if text == "core" { "" } else { text };
                rule.insert(field, list(texts).map(core).map(Value::from).collect::<Vec<_>>());
            }
        }
        if let Some(BootstrapRole { object, .. }) = roles.last_mut() {
            match object.array_mut("rules") {
                Some(rules) => rules.push(rule.into()),
                None => {
                    object.insert("rules", vec![Value::from(rule)]);
                }
            }
        }
    }
    roles
}

fn binding([namespace, name, kind, role, subjects]: [&'static str; 5]) -> BootstrapRole {
    let plural = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
    let mut binding = empty(plural, namespace, name);
    let subject = |text: &str| {
        let (sort, name) = text.split_once(':').unwrap_or_default();
        let members: [(&str, &str); 3] = match sort {
            "account" => {
                let (namespace, name) = name.split_once('/').unwrap_or_default();
                [("kind", "ServiceAccount"), ("name", name), ("namespace", namespace)]
            }
            "user" => [("kind", "User"), ("apiGroup", GROUP), ("name", name)],
            _ => [("kind", "Group"), ("apiGroup", GROUP), ("name", name)],
        };
        Value::from(members.into_iter().map(|(name, value)| (name, Value::from(value))).collect::<Object>())
    };
    let subjects: Vec<Value> = list(subjects).map(subject).collect();
    if !subjects.is_empty() {
        binding.object.insert("subjects", subjects);
    }
    let role = [("apiGroup", Value::from(GROUP)), ("kind", kind.into()), ("name", role.into())];
    binding.object.insert("roleRef", role.into_iter().collect::<Object>());
    binding
}

fn empty(plural: &'static str, namespace: &'static str, name: &'static str) -> BootstrapRole {
    let mut object = Object::new();
    let metadata = object.object_mut("metadata");
    metadata.insert("name", name);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace {
        metadata.insert("namespace", namespace);
    }
    metadata.object_mut("labels").insert("kubernetes.io/bootstrapping", "rbac-defaults");
    metadata.object_mut("annotations").insert("rbac.authorization.kubernetes.io/autoupdate", "true");
    BootstrapRole { plural, namespace, name, object }
}

fn selector(whole: &str) -> Value {
    let mut selector = Object::new();
    selector.object_mut("matchLabels").insert(&format!("{PART_OF}{whole}"), "true");
    selector.into()
}

/// The rows of a table.
///
/// # Panics
/// If the table is malformed: a fault of the program that its tests find.
fn rows<const COLUMNS: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    table.lines().skip(1).map(|line| {
        let columns: Vec<&'static str> = line.split(',').collect();
        columns.try_into().unwrap_or_else(|_| panic!("a malformed row: {line}"))
    })
}

fn list(texts: &'static str) -> impl Iterator<Item = &'static str> {
    texts.split('+').filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::check;
    use crate::kinds::tests::object;

    #[test]
    fn what_a_server_starts_with_is_valid_and_named_once() {
        let mut seen = std::collections::HashSet::new();
        let mut counts = std::collections::BTreeMap::new();
        for BootstrapRole { plural, namespace, name, object } in bootstrap_objects() {
            assert!(seen.insert((plural, namespace, name)), "{plural} {name} comes twice");
            *counts.entry(plural).or_insert(0) += 1;
            let kind = super::super::kind(plural).expect("is known");
            check(name, &kind.strategy.validate(&object), &[]);
        }
        let counts: Vec<_> = counts.into_iter().collect();
        assert_eq!(counts, [("clusterrolebindings", 50), ("clusterroles", 69), ("rolebindings", 7), ("roles", 7)]);
    }

    #[test]
    fn every_binding_names_a_role_that_is_there() {
        let objects = bootstrap_objects();
        for binding in &objects {
            let Some(role) = binding.object.object("roleRef") else { continue };
            let (plural, namespace) = match role.str("kind") {
                Some("ClusterRole") => ("clusterroles", None),
                _ => ("roles", binding.namespace),
            };
            let is_it = |known: &BootstrapRole| {
                known.plural == plural && known.namespace == namespace && Some(known.name) == role.str("name")
            };
            assert!(objects.iter().any(is_it), "{}", binding.name);
        }
    }

    #[test]
    fn rows_become_objects() {
        let objects = bootstrap_objects();
        let shown = |plural, name| {
            let found = objects.iter().find(|known| known.plural == plural && known.name == name);
            found.expect("is there").object.clone()
        };
        let metadata = |name: &str, labels: &str| {
            format!(
                r#""metadata":{{"name":"{name}","labels":{{"kubernetes.io/bootstrapping":"rbac-defaults"{labels}}},"annotations":{{"rbac.authorization.kubernetes.io/autoupdate":"true"}}}}"#
            )
        };
        let edit = metadata("edit", r#","rbac.authorization.k8s.io/aggregate-to-admin":"true""#);
        for (plural, name, want) in [
            (
                "clusterroles",
                "cluster-admin",
                format!(
                    r#"{{{},"rules":[{{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}},{{"verbs":["*"],"nonResourceURLs":["*"]}}]}}"#,
                    metadata("cluster-admin", "")
                ),
            ),
            (
                "clusterroles",
                "edit",
                format!(
                    r#"{{{edit},"aggregationRule":{{"clusterRoleSelectors":[{{"matchLabels":{{"rbac.authorization.k8s.io/aggregate-to-edit":"true"}}}}]}}}}"#
                ),
            ),
            (
                "clusterrolebindings",
                "cluster-admin",
                format!(
                    r#"{{{},"subjects":[{{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:masters"}}],"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}}}"#,
                    metadata("cluster-admin", "")
                ),
            ),
        ] {
            assert_eq!(shown(plural, name), object(&want));
        }
    }
}
