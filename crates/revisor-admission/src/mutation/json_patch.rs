//! `JSONPatch{…}` values as a JSON patch.

use revisor_cel::{CelValue, EvalError, Structure};
use revisor_merge::JsonPatch;
use revisor_object::{Object, Value};

use super::check_type_names;

/// The largest integer that a JSON number can stand for in every program. Larger ones become texts.
const LARGEST_NUMBER: u64 = (1 << 53) - 1;

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
        let value = json_of(value).map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })?;
        object.insert("value", value);
    }
    Ok(Value::Object(object))
}

/// A value as it passes through JSON on its way into a patch, where all numbers are doubles.
fn json_of(value: &CelValue<'_>) -> Result<Value, String> {
    Ok(match value {
        CelValue::Int(number) if number.unsigned_abs() > LARGEST_NUMBER => Value::from(number.to_string()),
        CelValue::Double(number) if number.fract() == 0.0 && number.abs() <= LARGEST_NUMBER as f64 => {
            Value::Int(*number as i64)
        }
        CelValue::Duration(duration) => Value::from(format!("{}s", duration.nanos() as f64 / 1e9)),
        CelValue::Optional(Some(value)) => json_of(value)?,
        CelValue::List(list) => {
            let element = |element: Result<CelValue<'_>, _>| json_of(&element.map_err(text)?);
            Value::Array(list.iter().map(element).collect::<Result<_, String>>()?)
        }
        CelValue::Map(map) => {
            let mut object = Object::new();
            for key in map.keys() {
                let Some(name) = key.as_str() else { return value.to_json().map_err(text) };
                if let Some(value) = map.get(&key).map_err(text)? {
                    object.insert(name, json_of(&value)?);
                }
            }
            Value::Object(object)
        }
        CelValue::Structure(structure) => {
            let mut object = Object::new();
            for (name, value) in &structure.fields {
                object.insert(name, json_of(value)?);
            }
            Value::Object(object)
        }
        CelValue::Opaque(_) => {
            let name = value.type_name();
            let name = name.rsplit('.').next().unwrap_or(name);
            return Err(format!("type conversion error from '{name}' to '*structpb.Value'"));
        }
        other => other.to_json().map_err(text)?,
    })
}

fn text(error: EvalError) -> String {
    error.to_string()
}
