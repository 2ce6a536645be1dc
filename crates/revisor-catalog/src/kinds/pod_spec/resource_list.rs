//! The resources of a pod's containers (`{cpu: 500m, memory: 1Gi}`), and what they come to together.

use std::collections::BTreeMap;

use revisor_object::{Object, Quantity, Value};

use crate::kinds::amounts::amount;
use crate::kinds::resource_names::is_huge_page;

/// Whether pods as a whole can ask for this resource.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// The `requests` or `limits` of a container.
pub(crate) fn of_container<'a>(container: &'a Object, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    container.object("resources").and_then(|resources| resources.object(list)).into_iter().flat_map(Object::iter)
}

/// Whether a container requests a resource.
pub(crate) fn requests(container: &Object, name: &str) -> bool {
    container
        .object("resources")
        .and_then(|resources| resources.object("requests"))
        .is_some_and(|all| all.contains(name))
}

/// Whether an init container keeps running beside the others.
pub(crate) fn is_sidecar(container: &Object) -> bool {
    container.str("restartPolicy") == Some("Always")
}

/// The `requests` or `limits` of all containers together. Init containers run one after the other, before the others
/// and beside the sidecars that were started earlier; so the most that any moment needs counts.
pub(crate) fn sum_of_containers<'a>(spec: &'a Object, list: &str) -> BTreeMap<&'a str, Quantity> {
    let mut total = BTreeMap::new();
    for container in objects(spec, "containers") {
        add(&mut total, of_container(container, list));
    }
    let mut sidecars: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut most: BTreeMap<&str, Quantity> = BTreeMap::new();
    for container in objects(spec, "initContainers") {
        let own = || of_container(container, list);
        if is_sidecar(container) {
            add(&mut total, own());
            add(&mut sidecars, own());
        }
        // What this container does not ask for is needed no more than before.
        for (name, value) in own() {
            let needed = match (sidecars.get(name), is_sidecar(container)) {
                (Some(sidecars), true) => sidecars.clone(),
                (Some(sidecars), false) => sidecars.add(&amount(value)),
                (None, _) => amount(value),
            };
            raise(&mut most, name, needed);
        }
    }
    for (name, amount) in most {
        raise(&mut total, name, amount);
    }
    total
}

fn add<'a>(sum: &mut BTreeMap<&'a str, Quantity>, list: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (name, value) in list {
        let amount = amount(value);
        let amount = sum.get(name).map_or(amount.clone(), |before| before.add(&amount));
        sum.insert(name, amount);
    }
}

fn raise<'a>(most: &mut BTreeMap<&'a str, Quantity>, name: &'a str, amount: Quantity) {
    if most.get(name).is_none_or(|before| amount > *before) {
        most.insert(name, amount);
    }
}

/// The objects in the list `name`.
pub(crate) fn objects<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = &'a Object> {
    object.array(name).iter().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn the_most_that_any_moment_needs_counts() {
        for (spec, want) in [
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}]}"#,
                "1500m",
            ),
            (
                r#"{"initContainers":[{"resources":{"requests":{"cpu":"3"}}}],
                    "containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#,
                "3",
            ),
            (
                r#"{"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                                      {"resources":{"requests":{"cpu":"3"}}}],
                    "containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#,
                "4",
            ),
        ] {
            let spec = object(spec);
            assert_eq!(sum_of_containers(&spec, "requests")["cpu"].to_string(), want);
        }
    }
}
