//! PriorityLevelConfigurations: how much of the server a sort of requests gets, and what happens to those beyond it.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::{mandatory_spec, name_of, number, validate_status};
use crate::checks::{in_range, required_one_of};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const EXEMPT: &str = "exempt";

/// An annotation that only means something in a version of the past.
const ROUND_TRIP: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

const MAX_QUEUES: i64 = 10_000_000;

/// How many bits of a hash can be spent on dealing a hand of queues.
const MAX_HASH_BITS: u32 = 60;

pub(crate) struct PriorityLevelConfigurations {
    /// The specs that may not be changed, by name.
    pub(super) mandatory: Vec<(String, Object)>,
}

impl Strategy for PriorityLevelConfigurations {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if object.at(&["metadata", "annotations", ROUND_TRIP]).is_some() {
            let detail = format!("annotation '{ROUND_TRIP}' is forbidden");
            errors.push(FieldError::forbidden("metadata.annotations", detail));
        }
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        validate_spec(name_of(object), spec, &mut errors);
        errors.extend(mandatory_spec(&self.mandatory, object).and_then(|fixed| changed(name_of(object), spec, fixed)));
        errors.extend(validate_status(object));
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::Whole { self.validate(object) } else { validate_status(object) }
    }
}

/// The error that a fixed spec was changed. How much the exempt level lends is for its owner to say.
fn changed(name: &str, spec: &Object, fixed: &Object) -> Option<FieldError> {
    let is_free = |member: &str| name == EXEMPT && member == EXEMPT;
    let parts = |spec: &Object| {
        spec.iter()
            .filter(|(member, _)| !is_free(member))
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect::<Vec<_>>()
    };
    let except = if name == EXEMPT { " except the 'spec.exempt' field" } else { "" };
    (parts(spec) != parts(fixed)).then(|| {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        FieldError::invalid("spec", BadValue::of(spec), detail)
    })
}

fn validate_spec(name: &str, spec: &Object, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let kind = spec.str("type").unwrap_or_default();
    if (name == EXEMPT) != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(path.child("type"), kind, detail));
    }
    let (limited, exempt) = (spec.object("limited"), spec.object("exempt"));
    match kind {
        "Exempt" => {
            if limited.is_some() {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(path.child("limited"), detail));
            }
            if let Some(exempt) = exempt {
                validate_shares(path.child("exempt"), exempt, errors);
            }
        }
        "Limited" => {
            if exempt.is_some() {
                errors.push(FieldError::forbidden(path.child("exempt"), "must be nil if the type is Limited"));
            }
            match limited {
                Some(limited) => validate_limited(path.child("limited"), limited, errors),
                None => {
                    let detail = "must not be empty when type is Limited";
                    errors.push(FieldError::required(path.child("limited"), detail));
                }
            }
        }
        _ => errors.extend(required_one_of(path.child("type"), kind, &["Exempt", "Limited"])),
    }
}

fn validate_shares(path: FieldPath<'_>, level: &Object, errors: &mut FieldErrors) {
    let shares = number(level, "nominalConcurrencyShares");
    if shares < 0 {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(path.child("nominalConcurrencyShares"), shares, detail));
    }
    errors.extend(in_range(path.child("lendablePercent"), number(level, "lendablePercent"), 0, 100));
}

fn validate_limited(path: FieldPath<'_>, limited: &Object, errors: &mut FieldErrors) {
    validate_shares(path, limited, errors);
    let borrowed = limited.get("borrowingLimitPercent").and_then(Value::as_i64);
    if let Some(percent) = borrowed.filter(|percent| *percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(path.child("borrowingLimitPercent"), percent, detail));
    }
    let empty = Object::new();
    let response = limited.object("limitResponse").unwrap_or(&empty);
    let at_response = path.child("limitResponse");
    let at_queuing = at_response.child("queuing");
    match (response.str("type").unwrap_or_default(), response.object("queuing")) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(at_queuing, detail));
        }
        ("Reject", None) => {}
        ("Queue", Some(queuing)) => validate_queuing(at_queuing, queuing, errors),
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(at_queuing, detail));
        }
        (kind, _) => errors.extend(required_one_of(at_response.child("type"), kind, &["Queue", "Reject"])),
    }
}

fn validate_queuing(path: FieldPath<'_>, queuing: &Object, errors: &mut FieldErrors) {
    let (length, queues, hand) =
        (number(queuing, "queueLengthLimit"), number(queuing, "queues"), number(queuing, "handSize"));
    let mut invalid =
        |name, value: i64, detail: String| errors.push(FieldError::invalid(path.child(name), value, detail));
    for (name, value) in [("queueLengthLimit", length), ("queues", queues), ("handSize", hand)] {
        if value <= 0 {
            invalid(name, value, "must be positive".to_owned());
        }
    }
    if queues > MAX_QUEUES {
        invalid("queues", queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand > queues && hand > 0 {
        invalid("handSize", hand, format!("should not be greater than queues ({queues})"));
    } else if hand > 0 && needed_bits(queues, hand) > f64::from(MAX_HASH_BITS) {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        invalid("handSize", hand, detail);
    }
}

/// How many bits of a hash are spent on dealing a hand out of a deck of queues.
fn needed_bits(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::mandatory_specs;
    use super::*;
    use crate::kinds::tests::{check, object};

    fn errors_of(name: &str, spec: &str) -> FieldErrors {
        let levels = PriorityLevelConfigurations { mandatory: mandatory_specs("prioritylevelconfigurations") };
        levels.validate(&object(&format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#)))
    }

    #[test]
    fn levels_are_checked() {
        let queuing = |queuing| {
            format!(r#"{{"type":"Limited","limited":{{"limitResponse":{{"type":"Queue","queuing":{queuing}}}}}}}"#)
        };
        let good = r#"{"queues":64,"handSize":8,"queueLengthLimit":50}"#;
        for (spec, want) in [
            (queuing(good), &[][..]),
            ("{}".to_owned(), &["FieldValueRequired spec.type"]),
            (r#"{"type":"Odd"}"#.to_owned(), &["FieldValueNotSupported spec.type"]),
            (r#"{"type":"Exempt"}"#.to_owned(), &["FieldValueInvalid spec.type"]),
            (r#"{"type":"Limited","exempt":{}}"#.to_owned(), &["FieldValueForbidden spec.exempt", "FieldValueRequired spec.limited"]),
            (
                r#"{"type":"Limited","limited":{"nominalConcurrencyShares":-1,"lendablePercent":101,"borrowingLimitPercent":-1}}"#.to_owned(),
                &[
                    "FieldValueInvalid spec.limited.nominalConcurrencyShares",
                    "FieldValueInvalid spec.limited.lendablePercent",
                    "FieldValueInvalid spec.limited.borrowingLimitPercent",
                    "FieldValueRequired spec.limited.limitResponse.type",
                ],
            ),
            (
                r#"{"type":"Limited","limited":{"limitResponse":{"type":"Reject","queuing":{}}}}"#.to_owned(),
                &["FieldValueForbidden spec.limited.limitResponse.queuing"],
            ),
            (
                queuing(r#"{"queues":4,"handSize":8,"queueLengthLimit":-1}"#),
                &[
                    "FieldValueInvalid spec.limited.limitResponse.queuing.handSize",
                    "FieldValueInvalid spec.limited.limitResponse.queuing.queueLengthLimit",
                ],
            ),
            (
                queuing(r#"{"queues":10000000,"handSize":9,"queueLengthLimit":1}"#),
                &["FieldValueInvalid spec.limited.limitResponse.queuing.handSize"],
            ),
            (
                queuing(r#"{"queues":10000001,"handSize":1,"queueLengthLimit":1}"#),
                &["FieldValueInvalid spec.limited.limitResponse.queuing.queues"],
            ),
        ] {
            check(&spec, &errors_of("a", &spec), want);
        }
    }

    #[test]
    fn the_exempt_level_lends_as_its_owner_likes() {
        for (spec, want) in [
            (r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":3}}"#, &[][..]),
            (
                r#"{"type":"Exempt","exempt":{"lendablePercent":101}}"#,
                &["FieldValueInvalid spec.exempt.lendablePercent"],
            ),
            (
                r#"{"type":"Limited","exempt":{}}"#,
                &[
                    "FieldValueForbidden spec.exempt",
                    "FieldValueInvalid spec",
                    "FieldValueInvalid spec.type",
                    "FieldValueRequired spec.limited",
                ],
            ),
        ] {
            check(spec, &errors_of("exempt", spec), want);
        }
    }
}
