//! Lists of resources (`{cpu: 500m, memory: 1Gi}`): which names there are, and sums over the containers of a pod.

use std::collections::BTreeMap;

use revisor_object::{Object, Quantity, Value};

const HUGE_PAGES: &str = "hugepages-";

/// The quantity that a member of a list of resources stands for.
pub(crate) fn quantity(value: &Value) -> Quantity {
    // Values have been read as quantities before, when the object was made to fit its type.
    value.as_str().and_then(|text| Quantity::parse(text).ok()).unwrap_or(Quantity::ZERO)
}

/// Whether a resource is memory in huge pages of some size.
pub(crate) fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether pods as a whole can ask for this resource.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// Whether a resource is one of Kubernetes' own: without a domain, or of a domain of kubernetes.io.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is one that nodes have beyond Kubernetes' own.
pub(crate) fn is_extended(name: &str) -> bool {
    if is_native(name) || name.starts_with("requests.") {
        return false;
    }
    // A quota must be able to name it too.
    revisor_object::names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether more of a resource can be promised than there is.
pub(crate) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// The `requests` or `limits` of a container.
pub(crate) fn of_container<'a>(container: &'a Object, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    container.object("resources").and_then(|resources| resources.object(list)).into_iter().flat_map(Object::iter)
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
        if is_sidecar(container) {
            add(&mut total, of_container(container, list));
            add(&mut sidecars, of_container(container, list));
            raise(&mut most, &sidecars);
        } else {
            let mut moment = sidecars.clone();
            add(&mut moment, of_container(container, list));
            raise(&mut most, &moment);
        }
    }
    raise(&mut total, &most);
    total
}

fn add<'a>(sum: &mut BTreeMap<&'a str, Quantity>, list: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (name, value) in list {
        let amount = quantity(value);
        let amount = sum.get(name).map_or(amount.clone(), |before| before.add(&amount));
        sum.insert(name, amount);
    }
}

fn raise<'a>(most: &mut BTreeMap<&'a str, Quantity>, list: &BTreeMap<&'a str, Quantity>) {
    for (name, amount) in list {
        if most.get(name).is_none_or(|before| amount > before) {
            most.insert(name, amount.clone());
        }
    }
}

/// The objects in the list `name`.
pub(crate) fn objects<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = &'a Object> {
    object.array(name).iter().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::pod_spec::testing::object;

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

    #[test]
    fn names_are_told_apart() {
        for (name, native, extended, overcommit) in [
            ("cpu", true, false, true),
            ("hugepages-2Mi", true, false, false),
            ("example.com/gpu", false, true, false),
            ("kubernetes.io/x", true, false, true),
            ("requests.example.com/gpu", false, false, false),
        ] {
            assert_eq!(
                (is_native(name), is_extended(name), may_overcommit(name)),
                (native, extended, overcommit),
                "{name}"
            );
        }
    }
}
