//! Making a value fit its type, as the original's decoder does: unknown fields go, nulls go, numbers must be integers
//! where integers are asked for, times and base64 are brought to one form.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use revisor_object::{Duration, DurationError, FieldNames, Object, Quantity, RawJson, Value};

use crate::timestamp::{Precision, parse_timestamp, timestamp_problem};
use crate::{Alternative, Field, Presence, Shape, StructId, Types};

pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true),
);

/// Bytes as values hold them.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Why a value is not of its type. The text is what the original tells its clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(String);

/// How many unknown fields of a built-in type are told of.
const MAX_UNKNOWN_FIELDS: usize = 100;

/// What was odd about a value that could be made to fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Paths of fields that the type does not have (`spec.containers[0].nmae`), in order. They were dropped. Kubernetes
    /// tells of a hundred at most.
    pub unknown_fields: FieldNames,
}

impl Types {
    /// Makes `value` fit the type `id`: drops unknown fields and nulls, brings times and base64 to their canonical
    /// form, drops zero values that are not written.
    pub fn conform(&self, id: StructId, value: &mut Value) -> Result<Findings, Mismatch> {
        self.walk(id, value)
    }

    fn walk(&self, id: StructId, value: &mut Value) -> Result<Findings, Mismatch> {
        let mut walk = Walk { types: self, path: String::new(), go_path: String::new(), findings: Findings::default() };
        let holder = Holder { of: self.get(id).short_name(), field: "" };
        walk.structure(id, value, holder)?;
        Ok(walk.findings)
    }
}

/// The types whose `uid` has a type of its own.
const UID_HOLDERS: [&str; 4] = ["ObjectMeta", "OwnerReference", "ObjectReference", "Preconditions"];

/// The structs that types embed, outermost first, by the fields of Go: its decoder names them on the way to a field that
/// JSON shows beside the others.
const EMBEDDED: [(&str, &[&str]); 17] = [
    ("ConfigMapEnvSource", &["LocalObjectReference"]),
    ("ConfigMapKeySelector", &["LocalObjectReference"]),
    ("ConfigMapProjection", &["LocalObjectReference"]),
    ("ConfigMapVolumeSource", &["LocalObjectReference"]),
    ("DeviceAllocationConfiguration", &["DeviceConfiguration"]),
    ("DeviceClaimConfiguration", &["DeviceConfiguration"]),
    ("DeviceClassConfiguration", &["DeviceConfiguration"]),
    ("EphemeralContainer", &["EphemeralContainerCommon"]),
    ("IngressRule", &["IngressRuleValue"]),
    ("NamedRuleWithOperations", &["RuleWithOperations", "Rule"]),
    ("PersistentVolumeSpec", &["PersistentVolumeSource"]),
    ("Probe", &["ProbeHandler"]),
    ("RuleWithOperations", &["Rule"]),
    ("SecretEnvSource", &["LocalObjectReference"]),
    ("SecretKeySelector", &["LocalObjectReference"]),
    ("SecretProjection", &["LocalObjectReference"]),
    ("Volume", &["VolumeSource"]),
];

/// The type and field whose value is looked at, for messages.
#[derive(Clone, Copy)]
struct Holder<'a> {
    of: &'a str,
    field: &'a str,
}

struct Walk<'t> {
    types: &'t Types,
    /// Where the value is, with the positions in lists and the keys of maps.
    path: String,
    /// The same as Go's decoder tells it: fields only.
    go_path: String,
    findings: Findings,
}

impl<'t> Walk<'t> {
    fn structure(&mut self, id: StructId, value: &mut Value, holder: Holder<'_>) -> Result<(), Mismatch> {
        let structure = self.types.get(id);
        if value.is_null() {
            *value = Value::Object(Object::new());
        }
        let Value::Object(object) = value else {
            return Err(self.mismatch(value, holder, &go_struct_name(&structure.name)));
        };
        let mut failure = None;
        object.retain(|name, value| {
            if failure.is_some() {
                return true;
            }
            let Some(field) = structure.field(name) else {
                let unknown = &mut self.findings.unknown_fields;
                if unknown.len() < MAX_UNKNOWN_FIELDS {
                    unknown.push(join(&self.path, name));
                }
                return false;
            };
            if value.is_null() {
                return false;
            }
            let holder = Holder { of: structure.short_name(), field: &field.name };
            let (before, go_before) = (self.path.len(), self.go_path.len());
            push(&mut self.path, name);
            push_go_field(&mut self.go_path, structure.short_name(), field);
            let result = self.value(&field.shape, value, holder);
            self.path.truncate(before);
            self.go_path.truncate(go_before);
            match result {
                Ok(()) => !value.is_null() && !is_lost(&field.shape, field.presence, value),
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn value(&mut self, shape: &Shape, value: &mut Value, holder: Holder<'_>) -> Result<(), Mismatch> {
        match shape {
            Shape::Any => Ok(()),
            Shape::Raw => {
                if !matches!(value, Value::Raw(_)) {
                    *value = Value::Raw(Box::new(RawJson::of(std::mem::take(value))));
                }
                Ok(())
            }
            Shape::Struct(id) => self.structure(*id, value, holder),
            Shape::Either(alternative, id) => self.either(*alternative, *id, value, holder),
            Shape::List(element) => {
                let Value::Array(items) = value else {
                    return Err(self.mismatch(value, holder, &go_name(self.types, shape)));
                };
                for (at, item) in items.iter_mut().enumerate() {
                    let before = self.path.len();
                    self.path.push_str(&format!("[{at}]"));
                    self.element(element, item, holder)?;
                    self.path.truncate(before);
                }
                Ok(())
            }
            Shape::Map(element) => {
                let Value::Object(object) = value else {
                    return Err(self.mismatch(value, holder, &go_name(self.types, shape)));
                };
                for (name, item) in object.iter_mut() {
                    let before = self.path.len();
                    push(&mut self.path, name);
                    self.element(element, item, holder)?;
                    self.path.truncate(before);
                }
                Ok(())
            }
            scalar => self.scalar(scalar, value, holder),
        }
    }

    /// An object of a type or what may stand in its place. Where the original reads neither, it reads nothing.
    fn either(
        &mut self,
        alternative: Alternative,
        id: StructId,
        value: &mut Value,
        holder: Holder<'_>,
    ) -> Result<(), Mismatch> {
        match (alternative, &*value) {
            (_, Value::Object(_)) => self.structure(id, value, holder),
            (Alternative::Bool, Value::Bool(_)) => Ok(()),
            (Alternative::Bool, _) => Err(Mismatch("boolean or JSON schema expected".to_owned())),
            (Alternative::List, Value::Array(_)) => {
                self.value(&Shape::List(Box::new(Shape::Struct(id))), value, holder)
            }
            (Alternative::Texts, Value::Array(_)) => self.value(&Shape::List(Box::new(Shape::String)), value, holder),
            (Alternative::List | Alternative::Texts, _) => {
                *value = Value::Null;
                Ok(())
            }
        }
    }

    /// An element of a list or map: null stands for the zero value there.
    fn element(&mut self, shape: &Shape, value: &mut Value, holder: Holder<'_>) -> Result<(), Mismatch> {
        if value.is_null() {
            *value = zero(shape);
        }
        self.value(shape, value, holder)
    }

    fn scalar(&self, shape: &Shape, value: &mut Value, holder: Holder<'_>) -> Result<(), Mismatch> {
        match (shape, &mut *value) {
            (Shape::String, Value::String(_)) | (Shape::Bool, Value::Bool(_)) | (Shape::Int64, Value::Int(_)) => Ok(()),
            (Shape::Int32, Value::Int(number)) if i32::try_from(*number).is_ok() => Ok(()),
            (Shape::Int32 | Shape::Int64, Value::Int(_) | Value::Float(_)) => {
                let kind = if *shape == Shape::Int32 { "int32" } else { "int64" };
                Err(self.misplaced(&format!("number {}", value.to_json()), holder, kind))
            }
            (Shape::Bytes, Value::String(text)) => {
                let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
                let bytes = BASE64.decode(&compact).map_err(|error| Mismatch(describe_base64(&error, &compact)))?;
                *text = BASE64.encode(bytes).into();
                Ok(())
            }
            (Shape::Time | Shape::MicroTime, Value::String(text)) => {
                let precision = if *shape == Shape::Time { Precision::Seconds } else { Precision::Microseconds };
                let canonical =
                    parse_timestamp(text, precision).ok_or_else(|| Mismatch(timestamp_problem(text, precision)))?;
                *text = canonical.into();
                Ok(())
            }
            // A number without a fraction is written without one.
            (Shape::Double, Value::Float(number)) => {
                if number.fract() == 0.0 && number.abs() < 9.0e15 {
                    *value = Value::Int(*number as i64);
                }
                Ok(())
            }
            (Shape::Double, Value::Int(_)) | (Shape::IntOrString, Value::String(_)) => Ok(()),
            (Shape::IntOrString, Value::Int(number)) if i32::try_from(*number).is_ok() => Ok(()),
            (Shape::IntOrString, Value::Int(_) | Value::Float(_)) => {
                Err(self.misplaced(&format!("number {}", value.to_json()), holder, "int32"))
            }
            (Shape::Quantity, Value::String(_) | Value::Int(_) | Value::Float(_)) => {
                let text = match &*value {
                    Value::String(text) => text.to_string(),
                    number => number.to_json(),
                };
                // An empty text is the zero quantity.
                let text = if text.is_empty() { "0" } else { &text };
                let quantity = Quantity::parse(text).map_err(|error| Mismatch(error.to_string()))?;
                *value = Value::from(quantity.to_string());
                Ok(())
            }
            (Shape::Duration, Value::String(text)) => {
                let duration: Duration = text.parse().map_err(|error: DurationError| Mismatch(error.to_string()))?;
                *value = Value::from(duration.to_string());
                Ok(())
            }
            _ if holder.field == "uid" && UID_HOLDERS.contains(&holder.of) => {
                Err(self.mismatch(value, holder, "types.UID"))
            }
            _ => Err(self.mismatch(value, holder, scalar_go_name(shape))),
        }
    }

    fn mismatch(&self, value: &Value, holder: Holder<'_>, wanted: &str) -> Mismatch {
        self.misplaced(value.type_name(), holder, wanted)
    }

    /// What was found where something else belongs, in the words of Go's decoder: it names the innermost struct, and all
    /// fields on the way there.
    fn misplaced(&self, found: &str, holder: Holder<'_>, wanted: &str) -> Mismatch {
        Mismatch(if holder.field.is_empty() {
            format!("json: cannot unmarshal {found} into Go value of type {wanted}")
        } else {
            let (of, path) = (holder.of, &self.go_path);
            format!("json: cannot unmarshal {found} into Go struct field {of}.{path} of type {wanted}")
        })
    }
}

fn describe_base64(error: &base64::DecodeError, text: &str) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding if text.contains('=') => text.len(),
        // What is left over of four characters is wrong from its beginning.
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

/// Adds a field to the way that Go's decoder tells.
fn push_go_field(path: &mut String, of: &str, field: &Field) {
    let depth = field.number.as_ref().map_or(0, |number| number.0.len().saturating_sub(1));
    if depth > 0
        && let Some((_, embedded)) = EMBEDDED.iter().find(|(name, _)| *name == of)
    {
        embedded.iter().take(depth).for_each(|name| push(path, name));
    }
    push(path, &field.name);
}

/// What the original's messages call a shape.
fn go_name(types: &Types, shape: &Shape) -> String {
    match shape {
        Shape::List(element) => format!("[]{}", go_name(types, element)),
        Shape::Map(element) => format!("map[string]{}", go_name(types, element)),
        Shape::Struct(id) | Shape::Either(_, id) => go_struct_name(&types.get(*id).name),
        scalar => scalar_go_name(scalar).to_owned(),
    }
}

/// `v1.Pod` of `core.v1.Pod`.
fn go_struct_name(name: &str) -> String {
    name.split_once('.').map_or(name, |(_, rest)| rest).to_owned()
}

fn scalar_go_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "bool",
        // What is no text is read as a number.
        Shape::Int32 | Shape::IntOrString => "int32",
        Shape::Int64 => "int64",
        Shape::Double => "float64",
        Shape::Bytes => "[]uint8",
        _ => "string",
    }
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::String | Shape::Bytes => Value::from(""),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => Value::Int(0),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        Shape::Time | Shape::MicroTime | Shape::Any | Shape::Raw | Shape::Either(..) => Value::Null,
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Map(_) | Shape::Struct(_) => Value::Object(Object::new()),
    }
}

/// Whether a value is the same as none at all: zero where zero is not written, and what is empty where nothing is shown
/// as `null`, because stored objects of the original do not tell these apart.
fn is_lost(shape: &Shape, presence: Presence, value: &Value) -> bool {
    match presence {
        _ if matches!(shape, Shape::Either(..)) => matches!(value, Value::Array(items) if items.is_empty()),
        Presence::NonZero => is_zero(value),
        Presence::Nullable => matches!(shape, Shape::List(_) | Shape::Map(_) | Shape::Bytes) && is_zero(value),
        Presence::Always | Presence::Given => false,
    }
}

pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Raw(_) => false,
    }
}

fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn join(path: &str, name: &str) -> String {
    let mut joined = path.to_owned();
    push(&mut joined, name);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,name,string,nonzero,,
T,count,int32,nonzero,,
T,flag,bool,given,,
T,data,map:string,nonzero,,
T,blob,bytes,nonzero,,
T,at,time,given,,
T,parts,list:P,nonzero,,
T,most,double,given,,
T,more,orbool:P,given,,
T,some,orlist:P,given,,
T,names,ortexts:P,given,,
T,probe,Probe,given,,
P,x,string,always,,
Probe,exec,P,given,1/1,
Probe,inner,P,given,2,
";

    fn conform(text: &str) -> Result<(String, Vec<String>), String> {
        let types = Types::parse(TABLE).expect("a good table");
        let mut value = parse_json(text.as_bytes()).expect("is JSON").value;
        let findings =
            types.conform(types.id("T").expect("is there"), &mut value).map_err(|error| error.to_string())?;
        Ok((value.to_json(), findings.unknown_fields.to_vec()))
    }

    #[test]
    fn values_are_made_to_fit() {
        for (text, want) in [
            (r#"{"name":null,"flag":false,"data":{},"count":0}"#, r#"{"flag":false}"#),
            (r#"{"data":{"a":null}}"#, r#"{"data":{"a":""}}"#),
            (r#"{"parts":[null,{"x":"y"}]}"#, r#"{"parts":[{},{"x":"y"}]}"#),
            (r#"{"most":2.0}"#, r#"{"most":2}"#),
            (r#"{"most":2.5,"more":false}"#, r#"{"more":false,"most":2.5}"#),
            (
                r#"{"more":{"x":"y"},"some":{"x":"y"},"names":{"x":"y"}}"#,
                r#"{"more":{"x":"y"},"names":{"x":"y"},"some":{"x":"y"}}"#,
            ),
            (r#"{"some":[{"x":"y"},null],"names":["a"]}"#, r#"{"names":["a"],"some":[{"x":"y"},{}]}"#),
            (r#"{"some":[],"names":5}"#, "{}"),
            (r#"{"blob":"YW\nJj"}"#, r#"{"blob":"YWJj"}"#),
            (r#"{"at":"2026-11-15T22:05:00.5+02:00"}"#, r#"{"at":"2026-11-15T20:05:00Z"}"#),
        ] {
            assert_eq!(conform(text), Ok((want.to_owned(), vec![])), "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_dropped_and_reported_by_path() {
        let (value, unknown) = conform(r#"{"nmae":1,"parts":[{"x":"a"},{"z":{"q":1}}]}"#).expect("fits");
        assert_eq!(value, r#"{"parts":[{"x":"a"},{}]}"#);
        assert_eq!(unknown, ["nmae", "parts[1].z"]);
    }

    #[test]
    fn wrong_types_are_refused_in_the_words_of_the_original() {
        for (text, want) in [
            (r#"{"more":5}"#, "boolean or JSON schema expected"),
            (r#"{"data":{"a":1}}"#, "json: cannot unmarshal number into Go struct field T.data of type string"),
            (r#"{"data":[]}"#, "json: cannot unmarshal array into Go struct field T.data of type map[string]string"),
            (r#"{"count":2.0}"#, "json: cannot unmarshal number 2.0 into Go struct field T.count of type int32"),
            (
                r#"{"count":4294967296}"#,
                "json: cannot unmarshal number 4294967296 into Go struct field T.count of type int32",
            ),
            (
                r#"{"parts":[{"x":"a"},{"x":1}]}"#,
                "json: cannot unmarshal number into Go struct field P.parts.x of type string",
            ),
            (r#"{"parts":[[]]}"#, "json: cannot unmarshal array into Go struct field T.parts of type P"),
            (r#"{"flag":"yes"}"#, "json: cannot unmarshal string into Go struct field T.flag of type bool"),
            (r#"{"blob":"a!"}"#, "illegal base64 data at input byte 1"),
            (
                r#"{"parts":[{},{"x":1}]}"#,
                "json: cannot unmarshal number into Go struct field P.parts.x of type string",
            ),
            (
                r#"{"probe":{"inner":{"x":1}}}"#,
                "json: cannot unmarshal number into Go struct field P.probe.inner.x of type string",
            ),
            (
                r#"{"probe":{"exec":5}}"#,
                "json: cannot unmarshal number into Go struct field Probe.probe.ProbeHandler.exec of type P",
            ),
            (r#"[]"#, "json: cannot unmarshal array into Go value of type T"),
        ] {
            assert_eq!(conform(text), Err(want.to_owned()), "{text}");
        }
    }
}
