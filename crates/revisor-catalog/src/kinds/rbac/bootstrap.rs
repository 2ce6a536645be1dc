//! The roles and bindings that every server has: `tables/roles.csv` with one row per rule, `tables/role_bindings.csv`,
//! and `tables/role_aggregations.csv` for the roles that gather others. Lists in them are joined by `+`.
//!
//! A rule is there if all features are on that it needs, and so is an element of a list that names one after a `?`. A
//! role whose rules all need features goes with the last of them, and so do its bindings.

use revisor_object::{Object, Value};

use super::GROUP;
use crate::{BootstrapRole, Feature, Features};

const ROLES: &str = include_str!("../../../tables/roles.csv");
const BINDINGS: &str = include_str!("../../../tables/role_bindings.csv");
const AGGREGATIONS: &str = include_str!("../../../tables/role_aggregations.csv");

/// What marks a role as part of one that gathers others, before the name of that.
const PART_OF: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// All of them where these features are on, first the roles and then the bindings.
pub(crate) fn bootstrap_objects(features: Features) -> Vec<BootstrapRole> {
    let mut objects = roles(features);
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
    let bindings = rows(BINDINGS).filter(|[namespace, _, kind, role, _]| {
        let namespace = if *kind == "ClusterRole" { "" } else { namespace };
        objects.iter().any(|known| known.namespace.unwrap_or_default() == namespace && known.name == *role)
    });
    let bindings: Vec<BootstrapRole> = bindings.map(binding).collect();
    objects.extend(bindings);
    objects
}

/// Whether the feature of this gate is on.
fn has(features: Features, gate: &str) -> bool {
    Feature::named(gate).is_some_and(|feature| features.has(feature))
}

/// Roles with the rules of their rows, which stand together.
fn roles(features: Features) -> Vec<BootstrapRole> {
    let mut roles: Vec<BootstrapRole> = Vec::new();
    let given = rows(ROLES).filter(|[.., needs]: &[&str; 8]| list(needs).all(|gate| has(features, gate)));
    for [namespace, name, verbs, groups, resources, names, urls, _] in given {
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
                let given = list(texts).filter_map(|text| match text.split_once('?') {
                    Some((text, gate)) => has(features, gate).then_some(text),
                    None => Some(text),
                });
                rule.insert(field, given.map(core).map(Value::from).collect::<Vec<_>>());
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
    use revisor_version::{FeatureGates, Release};

    use super::*;
    use crate::kinds::tests::{check, object, terms};

    /// How many there are of each resource.
    fn counts(features: Features) -> Vec<(&'static str, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        for BootstrapRole { plural, .. } in bootstrap_objects(features) {
            *counts.entry(plural).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// The numbers are those that the original starts with as each release.
    #[test]
    fn roles_follow_the_features_of_the_release() {
        for (minor, bindings, roles) in [(33, 47, 66), (34, 49, 68), (35, 49, 68), (36, 50, 69)] {
            let features = Features::of(&FeatureGates::of(Release { major: 1, minor }));
            let counts = counts(features);
            let want = [("clusterrolebindings", bindings), ("clusterroles", roles), ("rolebindings", 7), ("roles", 7)];
            assert_eq!(counts, want, "1.{minor}");
        }
    }

    #[test]
    fn rules_and_their_elements_need_features() {
        let urls = |features| {
            let objects = bootstrap_objects(features);
            let role = objects.into_iter().find(|role| role.name == "system:monitoring").expect("is there");
            let rule = role.object.array("rules")[0].as_object().expect("is a rule").clone();
            rule.array("nonResourceURLs").iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let features = terms().features;
        assert!(urls(features).iter().any(|url| url == "/flagz"));
        assert!(!urls(features.without(Feature::ComponentFlagz)).iter().any(|url| url.starts_with("/flagz")));
        let has = |features, name: &str| bootstrap_objects(features).iter().filter(|known| known.name == name).count();
        let bundles = "system:cluster-trust-bundle-discovery";
        assert_eq!(has(features, bundles), 0);
        assert_eq!(has(features.with(Feature::ClusterTrustBundle), bundles), 2, "a role and its binding");
    }

    #[test]
    fn every_row_names_features_that_there_are() {
        let elements = rows(ROLES).flat_map(|row: [&str; 8]| row.into_iter().flat_map(list));
        let marked = elements.filter_map(|element| Some(element.split_once('?')?.1));
        let gates: Vec<&str> = rows(ROLES).flat_map(|[.., needs]: [&str; 8]| list(needs)).chain(marked).collect();
        assert!(gates.len() > 20, "{}", gates.len());
        for gate in gates {
            assert!(Feature::named(gate).is_some(), "{gate}");
        }
    }

    #[test]
    fn what_a_server_starts_with_is_valid_and_named_once() {
        let mut seen = std::collections::HashSet::new();
        let everything = Feature::ALL.iter().fold(terms().features, |features, feature| features.with(*feature));
        for BootstrapRole { plural, namespace, name, object } in bootstrap_objects(everything) {
            assert!(seen.insert((plural, namespace, name)), "{plural} {name} comes twice");
            let kind = super::super::kind(plural).expect("is known");
            check(name, &kind.strategy.validate(&object), &[]);
        }
    }

    #[test]
    fn every_binding_names_a_role_that_is_there() {
        let everything = Feature::ALL.iter().fold(terms().features, |features, feature| features.with(*feature));
        let objects = bootstrap_objects(everything);
        let bindings = objects.iter().filter(|known| known.plural.ends_with("bindings")).count();
        assert_eq!(bindings, rows(BINDINGS).map(|_: [&str; 5]| ()).count());
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
        let objects = bootstrap_objects(terms().features);
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
