//! Random values for the laws of this crate. Few names and short arrays, so that a random patch often meets something.

use proptest::prelude::*;
use revisor_object::{Object, Value};

/// Any value, a few levels deep.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    value_of(any_scalar())
}

/// Any value in which nothing is `null`.
pub(crate) fn any_value_without_null() -> impl Strategy<Value = Value> {
    value_of(any_scalar().prop_filter("is null", |scalar| !scalar.is_null()))
}

/// Any object.
pub(crate) fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((any_name(), any_value()), 0..5).prop_map(object)
}

/// A member's name out of few; some of them mean an index, or need an escape in a pointer.
pub(crate) fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "0", "-", "", "~", "x/y"])
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => any::<i64>().prop_map(Value::Int),
        1 => any::<i16>().prop_map(|number| Value::Float(f64::from(number) / 4.0)),
        1 => "[a-z\"\\\\\n<é]{0,6}".prop_map(Value::from),
    ]
}

fn value_of(scalar: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((any_name(), inner), 0..4).prop_map(object),
        ]
    })
}

fn object(members: Vec<(&'static str, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Object>())
}
