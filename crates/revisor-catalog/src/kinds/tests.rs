//! What the tests of kinds share.

mod sent_empty;

use std::sync::Arc;

use revisor_cel::{Environment, RuleEnvironments};
use revisor_object::{FieldError, Object, Value, parse_json};
use revisor_schema::Types;
use revisor_version::FeatureGates;

use super::Terms;
use crate::disabled_fields::DisabledFields;
use crate::rows::FIELDS;
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

/// Drops the fields of an object of a kind (`core.v1.Pod`) whose feature is off.
pub(crate) fn drop_disabled_fields(kind: &str, object: &mut Object, old: Option<&Object>, features: Features) {
    let types = Arc::new(Types::parse(FIELDS).expect("is well formed"));
    let kind = types.id(kind).expect("is a kind");
    DisabledFields::of(&types, kind, features).drop(object, old);
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
