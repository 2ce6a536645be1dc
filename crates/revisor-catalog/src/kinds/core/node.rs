//! Nodes: the machines of a cluster, as those who run them describe them.

mod config_source;

use revisor_object::{
    BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value, cidr_warnings, legacy_cidr_problems,
    parse_cidr_sloppy, parse_json,
};

use crate::checks::{self, problems, put_back};
use crate::kinds::{addresses, amounts, taints};
use crate::strategy::spec_or_status;
use crate::{Circumstances, Feature, Features, Part, Places, Strategy};

const METADATA: FieldPath<'static> = FieldPath::root("metadata");
const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

const TAINTS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// The longest name of a feature that a node declares.
const MAX_FEATURE_NAME: usize = 253;

pub(crate) struct Nodes {
    pub(crate) features: Features,
}

impl Strategy for Nodes {
    fn default(&self, object: &mut Object) {
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            settle_ranges(spec);
        }
        if let Some(Value::Object(status)) = object.get_mut("status") {
            if !status.is_sent("allocatable")
                && let Some(capacity) = status.get("capacity").cloned()
            {
                status.insert("allocatable", capacity);
            }
            amounts::round(status, "capacity");
            amounts::round(status, "allocatable");
        }
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn prepare_create(&self, object: &mut Object, _: Circumstances<'_>) {
        drop_member(object, "spec", "configSource");
        drop_member(object, "status", "config");
        self.drop_features(object, None);
        show_allocatable(object);
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, _: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        let (holder, name) = if part == Part::Whole { ("spec", "configSource") } else { ("status", "config") };
        if old.at(&[holder, name]).is_none() {
            drop_member(object, holder, name);
        }
        // In the original, writes of the status are not held to features.
        if part == Part::Whole {
            self.drop_features(object, Some(old));
        }
        show_allocatable(object);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let mut errors = validate_annotations(object);
        errors.extend(taints::validate_taints(METADATA.child("taints"), spec.array("taints")));
        errors.extend(validate_status(object));
        let swap = object.at(&["status", "nodeInfo", "swap", "capacity"]).and_then(Value::as_i64);
        let swap_path = METADATA.child("nodeSwapStatus");
        errors.extend(swap.and_then(|capacity| checks::positive(swap_path.child("capacity"), capacity)));
        errors.extend(validate_ranges(spec, self.features));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        let mut errors = if part == Part::Whole { self.validate(object) } else { FieldErrors::new() };
        errors.extend(validate_change(object, old));
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let Some(spec) = object.object("spec") else { return Vec::new() };
        let mut warnings = Vec::new();
        if spec.contains("configSource") {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if spec.contains("externalID") {
            warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
        }
        let path = SPEC.child("podCIDRs");
        for (at, range) in spec.array("podCIDRs").iter().filter_map(Value::as_str).enumerate() {
            warnings.extend(cidr_warnings(path.index(at), range));
        }
        warnings
    }
}

impl Nodes {
    /// Drops what nodes say of features that are off, unless the old one says it already.
    fn drop_features(&self, object: &mut Object, old: Option<&Object>) {
        for (feature, name) in
            [(Feature::SupplementalGroupsPolicy, "features"), (Feature::NodeDeclaredFeatures, "declaredFeatures")]
        {
            let was_said = old.is_some_and(|old| old.at(&["status", name]).is_some());
            if !self.features.has(feature) && !was_said {
                drop_member(object, "status", name);
            }
        }
    }
}

fn drop_member(object: &mut Object, holder: &str, name: &str) {
    if let Some(Value::Object(holder)) = object.get_mut(holder) {
        holder.remove(name);
    }
}

/// There is a field for one range, which is older, and one for all. The older decides where they disagree, and then
/// shows the first of all.
/// Defaults are filled in again whenever a node is read, and nobody manages what they say: so what was sent empty and is
/// not stored shows the capacity.
fn show_allocatable(object: &mut Object) {
    if let Some(Value::Object(status)) = object.get_mut("status")
        && status.is_sent_empty("allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable", capacity);
    }
}

fn settle_ranges(spec: &mut Object) {
    let first = spec.array("podCIDRs").first().cloned();
    match (spec.get("podCIDR"), first) {
        (Some(single), first) if first.as_ref() != Some(single) => {
            let all = vec![single.clone()];
            spec.insert("podCIDRs", all);
        }
        (None, Some(first)) => {
            spec.insert("podCIDR", first);
        }
        _ => {}
    }
}

fn validate_ranges(spec: &Object, features: Features) -> FieldErrors {
    let path = SPEC.child("podCIDRs");
    let ranges = || spec.array("podCIDRs").iter().filter_map(Value::as_str);
    let mut errors = FieldErrors::new();
    for (at, range) in ranges().enumerate() {
        errors.extend(problems(path.index(at), range, legacy_cidr_problems(range, addresses::strictness(features))));
    }
    if ranges().count() > 1 {
        let parsed: Vec<_> = ranges().map(parse_cidr_sloppy).collect();
        if let Some(at) = parsed.iter().position(Option::is_none) {
            let bad = ranges().nth(at).unwrap_or_default();
            let detail = format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{at}]: <nil> (invalid CIDR address: {bad})"
            );
            errors.push(FieldError::internal(path, detail));
        }
        let is_v4 = |cidr: &revisor_object::Cidr| cidr.network().is_ipv4();
        let known: Vec<bool> = parsed.iter().flatten().map(is_v4).collect();
        let is_dual = known.len() == parsed.len() && known.contains(&true) && known.contains(&false);
        if !is_dual || parsed.len() > 2 {
            let value = spec.get("podCIDRs").map_or(BadValue::Omitted, BadValue::of);
            errors.push(FieldError::invalid(path, value, "may specify no more than one CIDR for each IP family"));
        }
    }
    errors
}

/// Taints and hints once stood in annotations, which are still looked at.
fn validate_annotations(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = METADATA.child("annotations");
    let annotation = |name| object.at(&["metadata", "annotations", name]).and_then(Value::as_str).unwrap_or_default();
    let taints = annotation(TAINTS_ANNOTATION);
    if !taints.is_empty() {
        match taints::TAINTS.read(taints) {
            Ok(list) => errors.extend(taints::validate_taints(path.child(TAINTS_ANNOTATION), &list)),
            Err(detail) => errors.push(FieldError::invalid(path, TAINTS_ANNOTATION, detail)),
        }
    }
    let avoid = annotation(AVOID_PODS_ANNOTATION);
    if !avoid.is_empty() {
        errors.extend(validate_avoid_pods(path, avoid));
    }
    errors
}

fn validate_avoid_pods(path: FieldPath<'_>, text: &str) -> FieldErrors {
    let root = match parse_json(text.as_bytes()).map(|parsed| parsed.value) {
        Ok(Value::Object(root)) => root,
        Ok(Value::Null) => return FieldErrors::new(),
        Ok(other) => {
            let detail = format!("json: cannot unmarshal {} into Go value of type v1.AvoidPods", other.type_name());
            return FieldErrors::from([FieldError::invalid(path.child("AvoidPods"), AVOID_PODS_ANNOTATION, detail)]);
        }
        Err(error) => {
            return FieldErrors::from([FieldError::invalid(
                path.child("AvoidPods"),
                AVOID_PODS_ANNOTATION,
                error.to_string(),
            )]);
        }
    };
    let path = path.child(AVOID_PODS_ANNOTATION);
    let entries = root.array("preferAvoidPods").iter().filter_map(Value::as_object).enumerate();
    entries
        .filter_map(|(at, entry)| {
            let path = path.index(at);
            let signature = path.child("PodSignature");
            match entry.object("podSignature").and_then(|signed| signed.object("podController")) {
                None => Some(FieldError::required(signature, "")),
                Some(controller) if controller.get("controller").and_then(Value::as_bool) == Some(true) => None,
                Some(_) => {
                    let owner = signature.child("PodController");
                    Some(FieldError::invalid(owner.child("Controller"), false, "must point to a controller"))
                }
            }
        })
        .collect()
}

/// What is looked at of a status, whichever way it came.
fn validate_status(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let Some(status) = object.object("status") else { return errors };
    for list in ["capacity", "allocatable"] {
        let path = STATUS.child(list);
        for (name, value) in status.object(list).into_iter().flat_map(Object::iter) {
            errors.extend(amounts::of_resource(path.child(name), name, &amounts::amount(value)));
        }
    }
    errors.extend(validate_features(status.array("declaredFeatures")));
    errors
}

/// The names of features that a node declares, in order and each once.
fn validate_features(features: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = STATUS.child("declaredFeatures");
    let names: Vec<&str> = features.iter().filter_map(Value::as_str).collect();
    for (at, name) in names.iter().enumerate() {
        let fault = if name.len() > MAX_FEATURE_NAME {
            Some(format!("must be no more than {MAX_FEATURE_NAME} characters"))
        } else if !is_feature_name(name) {
            Some(
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
                 MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
                    .to_owned(),
            )
        } else {
            None
        };
        if let Some(fault) = fault {
            let detail = format!("invalid feature name {name:?}: {fault}");
            errors.push(FieldError::invalid(path.index(at), *name, detail));
        }
        match names.get(at + 1) {
            Some(next) if next == name => errors.push(FieldError::duplicate(path.index(at + 1), *next)),
            Some(next) if next < name => {
                let detail = "list must be sorted alphabetically";
                errors.push(FieldError::invalid(path.index(at + 1), *next, detail));
            }
            _ => {}
        }
    }
    errors
}

fn is_feature_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.split('/').all(|segment| {
            segment.starts_with(|first: char| first.is_ascii_alphabetic())
                && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

fn validate_change(object: &Object, old: &Object) -> FieldErrors {
    let empty = Object::new();
    let (spec, old_spec) = (object.object("spec").unwrap_or(&empty), old.object("spec").unwrap_or(&empty));
    let status = object.object("status").unwrap_or(&empty);
    let mut errors = validate_annotations(object);
    errors.extend(validate_status(object));
    let addresses = status.array("addresses");
    let path = STATUS.child("addresses");
    let mut seen = Seen::default();
    for (at, address) in addresses.iter().enumerate() {
        if !seen.is_new(ByValue(address)) {
            errors.push(FieldError::duplicate(path.index(at), BadValue::of(address)));
        }
    }
    let (ranges, old_ranges) = (spec.array("podCIDRs"), old_spec.array("podCIDRs"));
    if !old_ranges.is_empty() {
        let changed = if ranges.len() == old_ranges.len() {
            ranges.iter().zip(old_ranges).filter(|(new, old)| new != old).count()
        } else {
            1
        };
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.extend((0..changed).map(|_| FieldError::forbidden(SPEC.child("podCIDRs"), detail)));
    }
    if old_spec.contains("providerID") && spec.get("providerID") != old_spec.get("providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(SPEC.child("providerID"), detail));
    }
    if let Some(source) = spec.object("configSource") {
        errors.extend(config_source::validate_spec(SPEC.child("configSource"), source));
    }
    if let Some(config) = status.object("config") {
        errors.extend(config_source::validate_status(STATUS.child("config"), config));
    }
    errors.extend(taints::validate_taints(METADATA.child("taints"), spec.array("taints")));
    if spec.get("externalID") != old_spec.get("externalID") {
        errors.push(FieldError::forbidden(SPEC.child("externalID"), "may not be updated"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    fn nodes() -> Nodes {
        Nodes { features: terms().features }
    }
    use crate::kinds::tests::object;

    fn causes(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
    }

    #[test]
    fn one_range_and_all_ranges_agree() {
        for (spec, want) in [
            (r#"{"podCIDR":"a"}"#, r#"{"podCIDR":"a","podCIDRs":["a"]}"#),
            (r#"{"podCIDRs":["a","b"]}"#, r#"{"podCIDR":"a","podCIDRs":["a","b"]}"#),
            (r#"{"podCIDR":"c","podCIDRs":["a","b"]}"#, r#"{"podCIDR":"c","podCIDRs":["c"]}"#),
            ("{}", "{}"),
        ] {
            let mut spec = object(spec);
            settle_ranges(&mut spec);
            assert_eq!(Value::from(spec).to_json(), want);
        }
    }

    #[test]
    fn what_is_wrong_with_a_node_is_found() {
        for (node, want) in [
            ("{}", vec![]),
            (
                r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"},{"key":"b c"}]}}"#,
                vec![
                    "FieldValueDuplicate metadata.taints[1]",
                    "FieldValueInvalid metadata.taints[2].key",
                    "FieldValueRequired metadata.taints[2].effect",
                ],
            ),
            (r#"{"spec":{"podCIDRs":["10.1.0.0/24","10.2.0.0/24"]}}"#, vec!["FieldValueInvalid spec.podCIDRs"]),
            (r#"{"spec":{"podCIDRs":["10.1.0.0/24","fd00::/64"]}}"#, vec![]),
            (
                r#"{"status":{"capacity":{"cpu":"-1","example.com/a":"500m"},"declaredFeatures":["B","A","a"]}}"#,
                vec![
                    "FieldValueInvalid status.capacity.cpu",
                    "FieldValueInvalid status.capacity.example.com/a",
                    "FieldValueInvalid status.declaredFeatures[1]",
                    "FieldValueInvalid status.declaredFeatures[2]",
                ],
            ),
        ] {
            assert_eq!(causes(&nodes().validate(&object(node))), want, "{node}");
        }
    }

    #[test]
    fn ranges_and_provider_are_set_once() {
        let node = |range: &str, provider: &str| {
            object(&format!(r#"{{"spec":{{"podCIDRs":["{range}"],"providerID":"{provider}"}}}}"#))
        };
        let bare = object(r#"{"spec":{}}"#);
        let new = node("10.1.0.0/24", "a");
        assert!(nodes().validate_update(&new, &bare, Part::Whole).is_empty());
        let errors = nodes().validate_update(&node("10.2.0.0/24", "b"), &new, Part::Whole);
        assert_eq!(causes(&errors), ["FieldValueForbidden spec.podCIDRs", "FieldValueForbidden spec.providerID"]);
    }

    #[test]
    fn features_of_nodes_are_told_where_they_may_be_or_were() {
        let nobody = Circumstances { now: "", requester: crate::Requester::default() };
        for (feature, name) in
            [(Feature::SupplementalGroupsPolicy, "features"), (Feature::NodeDeclaredFeatures, "declaredFeatures")]
        {
            let given = object(&format!(r#"{{"status":{{"{name}":["a"]}}}}"#));
            let (on, off) = (terms().features.with(feature), terms().features.without(feature));
            for (features, is_kept) in [(on, true), (off, false)] {
                let mut new = given.clone();
                Nodes { features }.prepare_create(&mut new, nobody);
                assert_eq!(new.at(&["status", name]).is_some(), is_kept, "{feature:?}");
            }
            let mut new = given.clone();
            Nodes { features: off }.prepare_update(&mut new, &given, Part::Whole, nobody);
            assert_eq!(new, given);
        }
    }
}
