//! What the tests of kinds share.

use revisor_cel::{Environment, RuleEnvironments};
use revisor_object::{FieldError, Object, Value, parse_json};
use revisor_version::FeatureGates;

use super::Terms;
use crate::{BINARY, Features};

/// The terms of a server of which nothing is asked.
pub(crate) fn terms() -> Terms {
    Terms {
        allow_privileged: true,
        features: Features::of(&FeatureGates::of(BINARY)),
        expressions: RuleEnvironments { new: Environment::new(BINARY.minus(1)), stored: Environment::new(BINARY) },
        min_compatibility: BINARY.minus(1),
        binary: BINARY,
    }
}

/// The object that a text describes.
#[track_caller]
pub(crate) fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).map(|parsed| parsed.value) {
        Ok(Value::Object(object)) => object,
        other => panic!("{text}: {other:?}"),
    }
}

/// Compares errors with `REASON FIELD` texts, in any order.
#[track_caller]
pub(crate) fn check(case: &str, errors: &[FieldError], want: &[&str]) {
    let mut got: Vec<String> = errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect();
    let mut want: Vec<&str> = want.to_vec();
    got.sort();
    want.sort_unstable();
    assert_eq!(got, want, "{case}: {errors:?}");
}
