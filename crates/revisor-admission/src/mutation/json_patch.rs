//! `JSONPatch{…}` values as a JSON patch.

use revisor_cel::{CelValue, Structure};
use revisor_merge::JsonPatch;
use revisor_object::{Object, Value};

use super::check_type_names;

/// The largest integer that a JSON number can stand for in every program. Larger ones become texts.
const LARGEST_NUMBER: i64 = (1 << 53) - 1;

/// The patch that a list of operations is.
pub(crate) fn patch_of(value: &CelValue<'_>) -> Result<JsonPatch, String> {
    let CelValue::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::with_capacity(list.len());
    for element in list.iter() {
        let element = element.map_err(|error| error.to_string())?;
        let CelValue::Structure(operation) = element else {
            return Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {}",
                element.type_name()
            ));
        };
        operations.push(operation_of(&operation)?);
    }
    JsonPatch::parse(Value::Array(operations)).map_err(|error| format!("JSON Patch: {error}"))
}

fn operation_of(operation: &Structure<'_>) -> Result<Value, String> {
    let text = |name: &str| operation.field(name).and_then(CelValue::as_str).unwrap_or_default();
    let mut object = Object::new();
    object.insert("op", text("op"));
    object.insert("path", text("path"));
    if !text("from").is_empty() {
        object.insert("from", text("from"));
    }
    if let Some(value) = operation.field("value") {
        if let CelValue::Structure(structure) = value {
            check_type_names(structure)?;
        }
        let mut value = value.to_json().map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })?;
        keep_to_numbers(&mut value);
        object.insert("value", value);
    }
    Ok(Value::Object(object))
}

/// Values pass through JSON on their way into a patch, where all numbers are doubles.
fn keep_to_numbers(value: &mut Value) {
    match value {
        Value::Int(number) if number.unsigned_abs() > LARGEST_NUMBER.unsigned_abs() => {
            *value = Value::from(number.to_string());
        }
        Value::Float(number) if number.fract() == 0.0 && number.abs() <= LARGEST_NUMBER as f64 => {
            *value = Value::Int(*number as i64);
        }
        Value::Array(elements) => elements.iter_mut().for_each(keep_to_numbers),
        Value::Object(object) => object.iter_mut().for_each(|(_, value)| keep_to_numbers(value)),
        _ => {}
    }
}
