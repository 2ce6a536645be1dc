//! Device taint rules: taints that an administrator puts on devices, whatever their driver says.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::{names, resource_slice};
use crate::kinds::conditions;
use crate::kinds::workload::{NOTHING, spec, status, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Circumstances, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");
const MAX_CONDITIONS: usize = 8;

/// Since when the taint has its effect.
const SINCE: &str = "timeAdded";

pub(crate) struct DeviceTaintRules;

impl Strategy for DeviceTaintRules {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, circumstances: Circumstances<'_>) {
        stamp(object, old, circumstances.now);
    }

    /// In the original the time is a default, which its writer manages.
    fn as_managed(&self, object: &Object) -> Option<Object> {
        let mut object = object.clone();
        stamp(&mut object, None, "");
        Some(object)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = spec(object);
        let path = SPEC.child("deviceSelector");
        let selector = spec.object("deviceSelector").unwrap_or(NOTHING);
        let mut errors = FieldErrors::new();
        if let Some(driver) = selector.str("driver") {
            errors.extend(names::driver(path.child("driver"), driver));
        }
        if let Some(pool) = selector.str("pool") {
            errors.extend(names::pool(path.child("pool"), pool));
        }
        if let Some(device) = selector.str("device") {
            errors.extend(names::label(path.child("device"), device));
        }
        errors.extend(resource_slice::validate_taint(SPEC.child("taint"), spec.object("taint").unwrap_or(NOTHING)));
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::Whole {
            return self.validate(object);
        }
        let (path, list) = (STATUS.child("conditions"), status(object).array("conditions"));
        let mut errors = conditions::validate(path, list);
        if list.len() > MAX_CONDITIONS {
            errors.push(FieldError::too_many(path, list.len(), MAX_CONDITIONS));
        }
        errors
    }
}

/// Notes since when the taint has its effect, unless the client says so. Pods are tolerated for so long from then on.
fn stamp(object: &mut Object, old: Option<&Object>, now: &str) {
    let taint = object.object_mut("spec").object_mut("taint");
    let was = old.and_then(|old| spec(old).object("taint"));
    let has_turned =
        was.is_some_and(|was| text(was, "effect") != text(taint, "effect") && was.get(SINCE) == taint.get(SINCE));
    if has_turned || !taint.contains(SINCE) {
        taint.insert(SINCE, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn rules_select_devices_by_good_names() {
        for (spec, want) in [
            (r#"{"taint":{"key":"k","effect":"NoExecute"}}"#, vec![]),
            (
                r#"{"deviceSelector":{"driver":"d.example.com","pool":"p/q","device":"dev"},"taint":{"key":"k","effect":"None"}}"#,
                vec![],
            ),
            (
                r#"{"deviceSelector":{"driver":"","pool":"P","device":"a.b"},"taint":{"value":"?","effect":"Other"}}"#,
                vec![
                    "FieldValueRequired spec.deviceSelector.driver",
                    "FieldValueInvalid spec.deviceSelector.pool",
                    "FieldValueInvalid spec.deviceSelector.device",
                    "FieldValueInvalid spec.taint.key",
                    "FieldValueInvalid spec.taint.key",
                    "FieldValueInvalid spec.taint.value",
                    "FieldValueNotSupported spec.taint.effect",
                ],
            ),
        ] {
            check(spec, &DeviceTaintRules.validate(&object(&format!(r#"{{"spec":{spec}}}"#))), &want);
        }
    }

    #[test]
    fn taints_are_dated_by_their_effect() {
        let rule = |effect: &str, since: &str| {
            let since = if since.is_empty() { String::new() } else { format!(r#","timeAdded":"{since}""#) };
            object(&format!(r#"{{"spec":{{"taint":{{"effect":"{effect}"{since}}}}}}}"#))
        };
        for (old, new, want) in [
            (None, rule("A", ""), "now"),
            (None, rule("A", "then"), "then"),
            (Some(rule("A", "then")), rule("A", "then"), "then"),
            (Some(rule("A", "then")), rule("B", "then"), "now"),
            (Some(rule("A", "then")), rule("B", "later"), "later"),
            (Some(rule("A", "then")), rule("A", ""), "now"),
        ] {
            let mut stamped = new.clone();
            stamp(&mut stamped, old.as_ref(), "now");
            let since = stamped.at(&["spec", "taint", SINCE]).and_then(revisor_object::Value::as_str);
            assert_eq!(since, Some(want), "{old:?} to {new:?}");
        }
    }
}
