//! Resource quotas: how much a namespace may hold. The status is what counts; a controller fills it in.

use std::cell::LazyCell;
use std::collections::HashSet;

use revisor_object::{BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::kinds::amounts::{self, amount_of};
use crate::kinds::resource_names::{is_quota_resource, quota_resource_name};
use crate::strategy::spec_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

/// Which objects a quota is about. Those in the first column can only be asked for, not be compared with values.
const SCOPES: &[(&str, bool)] = &[
    ("BestEffort", true),
    ("CrossNamespacePodAffinity", true),
    ("NotBestEffort", true),
    ("NotTerminating", true),
    ("PriorityClass", false),
    ("Terminating", true),
    ("VolumeAttributesClass", false),
];

const CONFLICTING_SCOPES: [(&str, &str); 2] = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

const POD_COMPUTE: &[&str] = &["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

pub(crate) struct ResourceQuotas;

impl Strategy for ResourceQuotas {
    fn default(&self, object: &mut Object) {
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            amounts::round(spec, "hard");
        }
        if let Some(Value::Object(status)) = object.get_mut("status") {
            amounts::round(status, "hard");
            amounts::round(status, "used");
        }
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_spec(object);
        errors.extend(validate_status(object));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part != Part::Whole {
            return validate_status(object);
        }
        let mut errors = validate_spec(object);
        let scopes = |object: &Object| -> Vec<Value> {
            object.object("spec").map(|spec| spec.array("scopes").to_vec()).unwrap_or_default()
        };
        let (new, old) = (scopes(object), scopes(old));
        let new_scopes: HashSet<ByValue<'_>> = new.iter().map(ByValue).collect();
        if new_scopes != old.iter().map(ByValue).collect() {
            errors.push(FieldError::invalid(SPEC.child("scopes"), BadValue::of(&new), "field is immutable"));
        }
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let hard = object.object("spec").and_then(|spec| spec.object("hard"));
        if old.is_some() || hard.is_none() {
            return Vec::new();
        }
        let warning = |resource: &str| {
            let mut name = format!("requests.{resource}");
            let mut request = amount_of(hard, &name);
            if request.is_none() && matches!(resource, "cpu" | "memory") {
                request = amount_of(hard, resource);
                name = resource.to_owned();
            }
            let (request, limit) = (request?, amount_of(hard, &format!("limits.{resource}"))?);
            (request > limit)
                .then(|| format!("ResourceQuota {name} ({request}) should be less than limits.{resource} ({limit})"))
        };
        ["cpu", "memory", "storage", "ephemeral-storage"].into_iter().filter_map(warning).collect()
    }
}

fn validate_amounts(path: FieldPath<'_>, list: Option<&Object>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (name, value) in list.into_iter().flat_map(Object::iter) {
        errors.extend(quota_resource_name(path.key(name), name));
        errors.extend(amounts::of_resource(path.key(name), name, &amounts::amount(value)));
    }
    errors
}

fn validate_status(object: &Object) -> FieldErrors {
    let Some(status) = object.object("status") else { return FieldErrors::new() };
    let mut errors = validate_amounts(STATUS.child("hard"), status.object("hard"));
    errors.extend(validate_amounts(STATUS.child("used"), status.object("used")));
    errors
}

fn validate_spec(object: &Object) -> FieldErrors {
    let Some(spec) = object.object("spec") else { return FieldErrors::new() };
    let mut errors = validate_amounts(SPEC.child("hard"), spec.object("hard"));
    let scopes: Vec<&str> = spec.array("scopes").iter().filter_map(Value::as_str).collect();
    let path = SPEC.child("scopes");
    // All errors show the whole list.
    let given = given_scopes(spec);
    let unsuited = Unsuited::of(spec);
    for scope in &scopes {
        if !is_scope(scope) {
            errors.push_with(|| FieldError::invalid(path, given.clone(), "unsupported scope"));
        }
        let detail = "unsupported scope applied to resource";
        errors.push_times(unsuited.by(scope), || FieldError::invalid(path, given.clone(), detail));
    }
    errors.extend(conflicts(&scopes).map(|()| FieldError::invalid(path, given.clone(), "conflicting scopes")));
    if let Some(selector) = spec.object("scopeSelector") {
        errors.extend(validate_selector(spec, &unsuited, selector));
    }
    errors
}

/// The scopes as errors show them, put into words at the first.
fn given_scopes(spec: &Object) -> LazyCell<BadValue, impl FnOnce() -> BadValue> {
    LazyCell::new(|| spec.get("scopes").map_or(BadValue::of(&Value::Null), BadValue::of).clipped())
}

fn validate_selector(spec: &Object, unsuited: &Unsuited, selector: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = SPEC.child("scopeSelector");
    // None of these paths says which expression it is about.
    let path = path.child("matchExpressions");
    let whole = LazyCell::new(|| BadValue::of(selector).clipped());
    let mut scopes = Vec::new();
    for expression in selector.array("matchExpressions").iter().filter_map(Value::as_object) {
        let scope = expression.str("scopeName").unwrap_or_default();
        let operator = expression.str("operator").unwrap_or_default();
        if !is_scope(scope) {
            errors.push(FieldError::invalid(path.child("scopeName"), scope, "unsupported scope"));
        }
        let detail = "unsupported scope applied to resource";
        errors.push_times(unsuited.by(scope), || FieldError::invalid(path, whole.clone(), detail));
        if SCOPES.contains(&(scope, true)) && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(path.child("operator"), operator, detail));
        }
        let values = expression.array("values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(path.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(path.child("values"), BadValue::of(&values), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(FieldError::invalid(path.child("operator"), operator, "not a valid selector operator")),
        }
        scopes.push(scope);
    }
    let given = given_scopes(spec);
    errors.extend(conflicts(&scopes).map(|()| FieldError::invalid(path, given.clone(), "conflicting scopes")));
    errors
}

fn is_scope(scope: &str) -> bool {
    SCOPES.iter().any(|(name, _)| *name == scope)
}

fn conflicts<'a>(scopes: &'a [&str]) -> impl Iterator<Item = ()> + 'a {
    CONFLICTING_SCOPES.iter().filter(|(one, two)| scopes.contains(one) && scopes.contains(two)).map(|_| ())
}

/// How many of the limited resources each scope has nothing to do with.
struct Unsuited([usize; SCOPES.len()]);

impl Unsuited {
    fn of(spec: &Object) -> Unsuited {
        let names = || spec.object("hard").into_iter().flat_map(Object::iter).map(|(name, _)| name);
        let limited: Vec<&str> = names().filter(|name| is_quota_resource(name)).collect();
        let count = |scope: &str| limited.iter().filter(|name| !is_suited(scope, name)).count();
        Unsuited(std::array::from_fn(|at| count(SCOPES[at].0)))
    }

    /// By this scope; none by one that does not exist.
    fn by(&self, scope: &str) -> usize {
        SCOPES.iter().position(|(name, _)| *name == scope).map_or(0, |at| self.0[at])
    }
}

fn is_suited(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            resource == "pods" || POD_COMPUTE.contains(&resource)
        }
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    fn quota(spec: &str) -> Object {
        match parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("good JSON").value {
            Value::Object(object) => object,
            other => panic!("not an object: {other:?}"),
        }
    }

    fn causes(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
    }

    #[test]
    fn amounts_and_scopes_are_checked() {
        for (spec, want) in [
            (r#"{"hard":{"pods":"5","count/deployments.apps":"3"}}"#, vec![]),
            (r#"{"hard":{"pods":"500m"}}"#, vec!["FieldValueInvalid spec.hard[pods]"]),
            (r#"{"hard":{"pods":"1"},"scopes":["Sometimes"]}"#, vec!["FieldValueInvalid spec.scopes"]),
            (r#"{"hard":{"secrets":"1"},"scopes":["BestEffort"]}"#, vec!["FieldValueInvalid spec.scopes"]),
            (
                r#"{"scopes":["BestEffort","NotBestEffort","Terminating","NotTerminating"]}"#,
                vec!["FieldValueInvalid spec.scopes", "FieldValueInvalid spec.scopes"],
            ),
            (
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"Terminating","operator":"In"}]}}"#,
                vec![
                    "FieldValueInvalid spec.scopeSelector.matchExpressions.operator",
                    "FieldValueRequired spec.scopeSelector.matchExpressions.values",
                ],
            ),
            (
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["a"]}]}}"#,
                vec![],
            ),
        ] {
            assert_eq!(causes(&ResourceQuotas.validate(&quota(spec))), want, "{spec}");
        }
    }

    #[test]
    fn a_request_above_its_limit_is_pointed_out() {
        let quota = quota(r#"{"hard":{"cpu":"3","limits.cpu":"2","requests.memory":"1Gi","limits.memory":"2Gi"}}"#);
        assert_eq!(ResourceQuotas.warnings(&quota, None), ["ResourceQuota cpu (3) should be less than limits.cpu (2)"]);
        assert!(ResourceQuotas.warnings(&quota, Some(&quota)).is_empty());
    }
}
