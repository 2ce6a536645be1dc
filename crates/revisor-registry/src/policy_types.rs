//! The types that a ValidatingAdmissionPolicy is about, and what they make odd about its expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use revisor_admission::{CheckedType, GroupVersionKind, MOST_TYPES, TypeCheck};
use revisor_catalog::{Catalog, Resource};
use revisor_cel::SchemaType;
use revisor_object::{Object, Value};

use crate::Registry;

impl Registry {
    /// What is odd about the expressions of a policy: where they stand, and what it is.
    pub fn policy_warnings(&self, policy: &Object) -> Vec<(String, String)> {
        let catalog = self.catalog();
        let resources = checked_resources(&catalog, policy);
        let types: Vec<CheckedType<'_>> = resources
            .iter()
            .map(|resource| CheckedType { kind: kind_of(resource), schema: schema_of(resource) })
            .collect();
        let params = policy.at(&["spec", "paramKind"]).and_then(Value::as_object).and_then(|kind| {
            let api_version = kind.str("apiVersion").unwrap_or_default();
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let versions = catalog.versions_of(group).filter(|known| known.version == version);
            let found =
                versions.flat_map(|known| &known.resources).find(|known| Some(&*known.kind) == kind.str("kind"));
            found.and_then(schema_of)
        });
        let check = TypeCheck { environment: &self.expressions, types: &types, params };
        check.check(policy).into_iter().map(|warning| (warning.field, warning.warning)).collect()
    }
}

/// The resources that a policy names, in the order of their kinds (upstream: `typesToCheck`). Rules that mean many at
/// once are passed over, and so are parts of objects.
fn checked_resources(catalog: &Catalog, policy: &Object) -> Vec<Arc<Resource>> {
    let rules = policy.at(&["spec", "matchConstraints", "resourceRules"]).and_then(Value::as_array).unwrap_or_default();
    let mut found = BTreeMap::new();
    for rule in rules.iter().filter_map(Value::as_object) {
        let texts = |name| {
            let mut texts: Vec<&str> = rule.array(name).iter().filter_map(Value::as_str).collect();
            texts.sort_unstable();
            texts
        };
        let (groups, versions, mut plurals) = (texts("apiGroups"), texts("apiVersions"), texts("resources"));
        if groups.iter().chain(&versions).any(|text| text.contains('*')) {
            continue;
        }
        plurals.retain(|plural| !plural.contains(['*', '/']));
        let named = groups.iter().flat_map(|group| {
            let versions = versions.iter();
            let plurals = &plurals;
            versions.flat_map(move |version| plurals.iter().map(move |plural| (*group, *version, *plural)))
        });
        let mut count = 0;
        for (group, version, plural) in named {
            let Some(resource) = catalog.resource(group, version, plural) else { continue };
            let key = (resource.group.to_string(), resource.version.to_string(), resource.kind.to_string());
            found.insert(key, resource.clone());
            count += 1;
            if count == MOST_TYPES {
                return found.into_values().collect();
            }
        }
    }
    found.into_values().collect()
}

fn kind_of(resource: &Resource) -> GroupVersionKind<'_> {
    GroupVersionKind { group: &resource.group, version: &resource.version, kind: &resource.kind }
}

/// What is known of the objects of a resource.
fn schema_of(resource: &Arc<Resource>) -> Option<Arc<SchemaType>> {
    match resource.custom() {
        Some(custom) => SchemaType::of(custom.schema().structural(), true),
        None => {
            let (types, id) = resource.typed();
            Some(SchemaType::of_built_in(types, id))
        }
    }
}
