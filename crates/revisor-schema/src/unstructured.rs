//! Reading a value into its type without JSON, as the original reads what a strategic merge patch came to (upstream:
//! `fromUnstructured`): whole numbers are cut to the bits that their type has, and what does not fit is told in other
//! words.

use revisor_object::Value;

use crate::conform::{BASE64, Mismatch, describe_base64};
use crate::{Shape, StructId, Types};

impl Types {
    /// Converts the numbers of a value of type `id` that are out of the bounds of theirs. Times, quantities and others
    /// that read JSON themselves are left to [`conform`](Types::conform).
    ///
    /// # Errors
    /// Where something is not of its type and cannot be converted to it.
    pub fn convert_unstructured(&self, id: StructId, value: &mut Value) -> Result<(), Mismatch> {
        convert(self, &Shape::Struct(id), value, None)
    }
}

fn convert(types: &Types, shape: &Shape, value: &mut Value, go_type: Option<&str>) -> Result<(), Mismatch> {
    let found = kind_of(value);
    match (shape, &mut *value) {
        (_, Value::Null) => Ok(()),
        (Shape::Struct(id), Value::Object(object)) => {
            for field in &types.get(*id).fields {
                if let Some(member) = object.get_mut(&field.name) {
                    convert(types, &field.shape, member, field.go_type.as_deref())?;
                }
            }
            Ok(())
        }
        (Shape::Struct(_), _) => Err(Mismatch::new(format!("cannot restore struct from: {found}"))),
        (Shape::List(element), Value::Array(items)) => {
            items.iter_mut().try_for_each(|item| convert(types, element, item, None))
        }
        (Shape::List(_), _) => Err(Mismatch::new(format!("cannot restore slice from {found}"))),
        (Shape::Map(element), Value::Object(object)) => {
            object.iter_mut().try_for_each(|(_, item)| convert(types, element, item, None))
        }
        (Shape::Map(_), _) => Err(Mismatch::new(format!("cannot restore map from {found}"))),
        (Shape::Bytes, Value::String(text)) => {
            let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let read = base64::Engine::decode(&BASE64, &compact);
            let wrong =
                |error| Mismatch::new(format!("error decoding from json: {}", describe_base64(&error, &compact)));
            read.map(drop).map_err(wrong)
        }
        (Shape::Bytes, _) => Err(Mismatch::new(format!("cannot restore slice from {found}"))),
        (Shape::Int32 | Shape::Int64, Value::Int(number)) => {
            *value = Value::Int(cut(*number, shape));
            Ok(())
        }
        (Shape::Int32 | Shape::Int64, Value::Float(number)) if number.fract() == 0.0 => {
            // What an `i64` has no room for becomes the least of them.
            let is_in_bounds = number.abs() < -(i64::MIN as f64);
            let whole = if is_in_bounds { *number as i64 } else { i64::MIN };
            *value = Value::Int(cut(whole, shape));
            Ok(())
        }
        (Shape::String, Value::Int(_)) | (Shape::Int32 | Shape::Int64, Value::Float(_)) => {
            let wanted = go_type.unwrap_or(go_kind(shape));
            Err(Mismatch::new(format!("cannot convert {found} to {wanted}")))
        }
        (Shape::String, Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Double, Value::Int(_) | Value::Float(_)) => Ok(()),
        (Shape::String | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double, _) => {
            Err(Mismatch::new(format!("unrecognized type: {}", go_kind(shape))))
        }
        // What reads JSON itself is given JSON, and does not know where that stands.
        (Shape::Time | Shape::MicroTime | Shape::Duration, wrong) if wrong.as_str().is_none() => {
            Err(unread(wrong.type_name(), "string"))
        }
        (Shape::IntOrString, Value::Int(number)) if i32::try_from(*number).is_err() => {
            Err(unread(&format!("number {number}"), "int32"))
        }
        (Shape::IntOrString, Value::Float(_)) => Err(unread(&format!("number {}", value.to_json()), "int32")),
        (Shape::IntOrString, wrong @ (Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            Err(unread(wrong.type_name(), "int32"))
        }
        _ => Ok(()),
    }
}

fn unread(found: &str, wanted: &str) -> Mismatch {
    Mismatch::new(format!("json: cannot unmarshal {found} into Go value of type {wanted}"))
}

fn cut(number: i64, shape: &Shape) -> i64 {
    if *shape == Shape::Int32 { i64::from(number as i32) } else { number }
}

/// What Go calls the kind of what was read.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Nothing => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) | Value::Raw(_) => "map",
    }
}

fn go_kind(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Double => "float64",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,spec,S,nonzero,,
T,items,list:S,nonzero,,
T,labels,map:string,nonzero,,
S,few,int32,nonzero,,
S,many,int64,nonzero,,
S,on,bool,given,,
S,who,string,nonzero,,
S,data,bytes,nonzero,,
S,seen,time,nonzero,,
S,port,intorstring,nonzero,,
";

    #[test]
    fn numbers_are_cut_and_all_else_is_told() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        let read = |text: &str| parse_json(text.as_bytes()).expect("JSON").value;
        for (sent, want) in [
            (
                r#"{"spec":{"few":2147483648,"many":2147483648}}"#,
                Ok(r#"{"spec":{"few":-2147483648,"many":2147483648}}"#),
            ),
            (r#"{"items":[null,{"few":-2147483649}]}"#, Ok(r#"{"items":[null,{"few":2147483647}]}"#)),
            (r#"{"spec":{"few":3.0,"many":1e19}}"#, Ok(r#"{"spec":{"few":3,"many":-9223372036854775808}}"#)),
            (r#"{"spec":{"few":1e19,"port":"a"}}"#, Ok(r#"{"spec":{"few":0,"port":"a"}}"#)),
            (r#"{"spec":{"seen":1}}"#, Err("json: cannot unmarshal number into Go value of type string")),
            (r#"{"spec":{"port":true}}"#, Err("json: cannot unmarshal bool into Go value of type int32")),
            (r#"{"spec":{"few":1.5}}"#, Err("cannot convert float64 to int32")),
            (r#"{"spec":{"few":"1"}}"#, Err("unrecognized type: int32")),
            (r#"{"spec":{"who":1}}"#, Err("cannot convert int64 to string")),
            (r#"{"spec":{"who":true}}"#, Err("unrecognized type: string")),
            (r#"{"spec":{"on":"a"}}"#, Err("unrecognized type: bool")),
            (r#"{"spec":[]}"#, Err("cannot restore struct from: slice")),
            (r#"{"items":{}}"#, Err("cannot restore slice from map")),
            (r#"{"labels":"a"}"#, Err("cannot restore map from string")),
            (r#"{"spec":{"data":"a b"}}"#, Err("error decoding from json: illegal base64 data at input byte 1")),
        ] {
            let mut value = read(sent);
            let converted = types.convert_unstructured(id, &mut value).map_err(|mismatch| mismatch.to_string());
            assert_eq!(converted.map(|()| value), want.map(read).map_err(str::to_owned), "{sent}");
        }
    }
}
