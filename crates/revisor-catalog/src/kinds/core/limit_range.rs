//! Limit ranges: what containers, pods and claims of a namespace may ask for, and what they get if they do not ask.

use std::collections::BTreeSet;

use compact_str::CompactString;
use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Notation, Object, Quantity, Seen, Value};

use crate::checks::problems;
use crate::kinds::amounts::{self, amount_of};
use crate::kinds::resource_names::{allows_overcommit, container_resource_name, resource_name};
use crate::{Part, Strategy};

const TYPES: &[&str] = &["Container", "PersistentVolumeClaim", "Pod"];

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/// Up to this many units, amounts are compared in thousandths.
const MAX_IN_MILLIS: i64 = i64::MAX / 1000;

pub(crate) struct LimitRanges;

impl Strategy for LimitRanges {
    fn default(&self, object: &mut Object) {
        let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
        for limit in spec.array_mut("limits").into_iter().flatten().filter_map(Value::as_object_mut) {
            if limit.str("type") == Some("Container") {
                derive(limit);
            }
            for list in LISTS {
                amounts::round(limit, list);
            }
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let path = FieldPath::root("spec.limits");
        let limits = object.object("spec").map(|spec| spec.array("limits")).unwrap_or_default();
        let mut seen = Seen::default();
        for (at, limit) in limits.iter().filter_map(Value::as_object).enumerate() {
            let path = path.index(at);
            let kind = limit.str("type").unwrap_or_default();
            errors.extend(validate_type(path.child("type"), kind));
            if !seen.is_new(kind) {
                errors.push(FieldError::duplicate(path.child("type"), kind));
            }
            errors.extend(validate_limit(path, limit, kind));
        }
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        self.validate(object)
    }
}

/// Fills in the defaults of containers: the limit from the maximum, the request from the limit or the minimum.
fn derive(limit: &mut Object) {
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(source) = limit.object(from) else { continue };
        let target = limit.object(to);
        let missing: Vec<(CompactString, Value)> = source
            .iter()
            .filter(|(name, _)| target.is_none_or(|target| !target.contains(name)))
            .map(|(name, value)| (name.into(), value.clone()))
            .collect();
        if !missing.is_empty() {
            limit.object_mut(to).insert_all(missing);
        }
    }
}

fn validate_type(path: FieldPath<'_>, kind: &str) -> FieldErrors {
    let mut errors = problems(path, kind, qualified_name(kind));
    if errors.is_empty() && !kind.contains('/') && !TYPES.contains(&kind) {
        errors.push(FieldError::invalid(path, kind, "must be a standard limit type or fully qualified"));
    }
    errors
}

fn validate_limit(path: FieldPath<'_>, limit: &Object, kind: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut names = BTreeSet::new();
    for list in LISTS {
        let list_path = path.child(list);
        if kind == "Pod" && matches!(list, "default" | "defaultRequest") {
            if limit.contains(list) {
                errors.push(FieldError::forbidden(list_path, "may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        if kind == "PersistentVolumeClaim" && list == "maxLimitRequestRatio" {
            let bounds = |list| limit.object(list).is_some_and(|list| list.contains("storage"));
            if !bounds("min") && !bounds("max") {
                let detail = "either minimum or maximum storage value is required, but neither was provided";
                errors.push(FieldError::required(path.child("limits"), detail));
            }
        }
        for (name, _) in limit.object(list).into_iter().flat_map(Object::iter) {
            errors.extend(match kind {
                "Pod" | "Container" => container_resource_name(list_path.key(name), name),
                _ => resource_name(list_path.key(name), name),
            });
            names.insert(name);
        }
    }
    for name in names {
        errors.extend(validate_amounts(path, limit, kind, name));
    }
    errors
}

/// What is wrong with the bounds of one resource, compared with each other.
fn validate_amounts(path: FieldPath<'_>, limit: &Object, kind: &str, name: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let of = |list: &str| amount_of(limit.object(list), name);
    let of_default = |list| if kind == "Pod" { None } else { of(list) };
    let (min, max, ratio) = (of("min"), of("max"), of("maxLimitRequestRatio"));
    let (default, request) = (of_default("default"), of_default("defaultRequest"));
    let mut invalid = |list: &str, shown: &Quantity, detail: String| {
        errors.push(FieldError::invalid(path.child(list).key(name), shown.to_string(), detail));
    };
    if let (Some(min), Some(max)) = (&min, &max)
        && min > max
    {
        invalid("min", min, format!("min value {min} is greater than max value {max}"));
    }
    if let (Some(request), Some(min)) = (&request, &min)
        && min > request
    {
        let detail = format!("min value {min} is greater than default request value {request}");
        invalid("defaultRequest", request, detail);
    }
    if let (Some(request), Some(max)) = (&request, &max)
        && request > max
    {
        let detail = format!("default request value {request} is greater than max value {max}");
        invalid("defaultRequest", request, detail);
    }
    if let (Some(request), Some(default)) = (&request, &default)
        && request > default
    {
        let detail = format!("default request value {request} is greater than default limit value {default}");
        invalid("defaultRequest", request, detail);
    }
    if let (Some(default), Some(min)) = (&default, &min)
        && min > default
    {
        invalid("default", min, format!("min value {min} is greater than default value {default}"));
    }
    if let (Some(default), Some(max)) = (&default, &max)
        && default > max
    {
        invalid("default", max, format!("default value {default} is greater than max value {max}"));
    }
    if let Some(ratio) = &ratio {
        if *ratio < Quantity::from_units(1, Notation::DecimalSi) {
            invalid("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
        }
        if let (Some(min), Some(max)) = (&min, &max)
            && let Some(most) = ratio_above(ratio, min, max)
        {
            invalid("maxLimitRequestRatio", ratio, format!("ratio {ratio} is greater than max/min = {most:.6}"));
        }
    }
    if let (Some(request), Some(default)) = (&request, &default)
        && !allows_overcommit(name)
        && request != default
    {
        let detail = format!("default value {default} must equal to defaultRequest value {request} in {name}");
        invalid("defaultRequest", request, detail);
    }
    errors
}

/// The ratio of the bounds, if the given ratio is above it.
fn ratio_above(ratio: &Quantity, min: &Quantity, max: &Quantity) -> Option<f64> {
    let is_small = [ratio, min, max].iter().all(|quantity| quantity.value() < MAX_IN_MILLIS);
    let (ratio, most) = if is_small {
        (ratio.milli_value() as f64 / 1000.0, max.milli_value() as f64 / min.milli_value() as f64)
    } else {
        (ratio.value() as f64, max.value() as f64 / min.value() as f64)
    };
    (ratio > most).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    fn range(limits: &str) -> Object {
        match parse_json(format!(r#"{{"spec":{{"limits":{limits}}}}}"#).as_bytes()).expect("good JSON").value {
            Value::Object(object) => object,
            other => panic!("not an object: {other:?}"),
        }
    }

    #[test]
    fn defaults_of_containers_are_derived() {
        let mut range = range(
            r#"[{"type":"Container","max":{"cpu":"2","memory":"1Gi"},"min":{"cpu":"100m","a.b/c":"1"},"default":{"memory":"512Mi"}},
                {"type":"Pod","max":{"cpu":"2"}}]"#,
        );
        LimitRanges.default(&mut range);
        let limits = range.object("spec").map(|spec| spec.array("limits").to_vec()).unwrap_or_default();
        assert_eq!(
            limits[0].to_json(),
            r#"{"default":{"cpu":"2","memory":"512Mi"},"defaultRequest":{"a.b/c":"1","cpu":"2","memory":"512Mi"},"max":{"cpu":"2","memory":"1Gi"},"min":{"a.b/c":"1","cpu":"100m"},"type":"Container"}"#
        );
        assert_eq!(limits[1].to_json(), r#"{"max":{"cpu":"2"},"type":"Pod"}"#);
    }

    #[test]
    fn bounds_are_compared_with_each_other() {
        for (limits, want) in [
            (r#"[{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"1"}}]"#, vec![]),
            (
                r#"[{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"2"}}]"#,
                vec!["FieldValueInvalid spec.limits[0].min[cpu]"],
            ),
            (
                r#"[{"type":"Pod","default":{"cpu":"1"},"max":{"storage":"1"}},{"type":"Pod"}]"#,
                vec![
                    "FieldValueInvalid spec.limits[0].max[storage]",
                    "FieldValueForbidden spec.limits[0].default",
                    "FieldValueDuplicate spec.limits[1].type",
                ],
            ),
            (
                r#"[{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"3"}}]"#,
                vec!["FieldValueInvalid spec.limits[0].maxLimitRequestRatio[cpu]"],
            ),
            (
                r#"[{"type":"Container","default":{"a.b/c":"2"},"defaultRequest":{"a.b/c":"1"}}]"#,
                vec!["FieldValueInvalid spec.limits[0].defaultRequest[a.b/c]"],
            ),
            (r#"[{"type":"PersistentVolumeClaim"}]"#, vec!["FieldValueRequired spec.limits[0].limits"]),
        ] {
            let errors = LimitRanges.validate(&range(limits));
            let causes: Vec<String> =
                errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect();
            assert_eq!(causes, want, "{limits}");
        }
    }
}
