//! How well a pod is served when a node runs short: its class of service, which follows from its resources.

use std::collections::BTreeMap;

use revisor_object::{Object, Quantity, Value};

use super::resource_list::{objects, of_container};
use crate::kinds::amounts::amount;
use crate::{Feature, Features};

const BEST_EFFORT: &str = "BestEffort";
const BURSTABLE: &str = "Burstable";
const GUARANTEED: &str = "Guaranteed";

/// The class of a pod with this spec. Ephemeral containers have no resources and do not count.
pub(super) fn qos_class(spec: &Object, features: Features) -> &'static str {
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut has_all_limits = true;
    let of_pod = spec.object("resources").filter(|_| features.has(Feature::PodLevelResources));
    if let Some(resources) = of_pod {
        count(&mut requests, resources.object("requests").into_iter().flat_map(Object::iter));
        let given = resources.object("limits");
        let counted = count(&mut limits, given.into_iter().flat_map(Object::iter));
        has_all_limits = counted == 2 || given.is_none_or(Object::is_empty);
    } else {
        for container in objects(spec, "containers").chain(objects(spec, "initContainers")) {
            count(&mut requests, of_container(container, "requests"));
            has_all_limits &= count(&mut limits, of_container(container, "limits")) == 2;
        }
    }
    if requests.is_empty() && limits.is_empty() {
        BEST_EFFORT
    } else if has_all_limits && requests == limits {
        GUARANTEED
    } else {
        BURSTABLE
    }
}

/// Adds what matters to the class, and answers how many resources that were.
fn count<'a>(sum: &mut BTreeMap<&'a str, Quantity>, list: impl Iterator<Item = (&'a str, &'a Value)>) -> usize {
    let mut counted = 0;
    for (name, value) in list.filter(|(name, _)| matches!(*name, "cpu" | "memory")) {
        let amount = amount(value);
        if amount.sign() > 0 {
            counted += 1;
            let amount = sum.get(name).map_or(amount.clone(), |before| before.add(&amount));
            sum.insert(name, amount);
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        for (spec, want) in [
            (r#"{"containers":[{}]}"#, BEST_EFFORT),
            (r#"{"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}]}"#, BEST_EFFORT),
            (r#"{"containers":[{"resources":{"requests":{"cpu":"0"}}}]}"#, BEST_EFFORT),
            (r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#, BURSTABLE),
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1000m","memory":"1Gi"}}}]}"#,
                GUARANTEED,
            ),
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}},{}]}"#,
                BURSTABLE,
            ),
            (
                r#"{"containers":[{}],"resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}}"#,
                GUARANTEED,
            ),
            (r#"{"containers":[{}],"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}"#, BURSTABLE),
        ] {
            assert_eq!(qos_class(&object(spec), terms().features), want, "{spec}");
        }
        let of_pod = object(r#"{"containers":[{}],"resources":{"requests":{"cpu":"1"}}}"#);
        assert_eq!(qos_class(&of_pod, terms().features.without(Feature::PodLevelResources)), BEST_EFFORT);
    }
}
