//! Making a value fit its type, as the original's decoder does: unknown fields go, nulls go, numbers must be integers
//! where integers are asked for, times and base64 are brought to one form.

mod trail;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use revisor_object::{Duration, DurationError, FieldNames, Object, Quantity, RawJson, Value};

use self::trail::Trail;
use crate::timestamp::{Precision, is_canonical, parse_timestamp, timestamp_problem};
use crate::{Alternative, Presence, Shape, Struct, StructId, Types};

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

impl Mismatch {
    pub(crate) fn new(text: String) -> Mismatch {
        Mismatch(text)
    }
}

/// The field of metadata that says who manages an object.
const MANAGERS: &str = "managedFields";

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
        let (findings, fits) = self.conform_partly(id, value);
        fits.map(|()| findings)
    }

    /// The same; where something does not fit, what stands before it was made to, and what was odd about that is told too.
    pub(crate) fn conform_partly(&self, id: StructId, value: &mut Value) -> (Findings, Result<(), Mismatch>) {
        self.walk(id, value, Empties::Dropped)
    }

    /// The same, but lists and maps that were given with nothing in them are [marked](Object::is_sent_empty): who
    /// validates an object may tell them from those that were not given. Those that are shown as `null` stay, because
    /// who sends them owns them, until they are [forgotten](Types::forget_empty).
    pub fn conform_as_sent(&self, id: StructId, value: &mut Value) -> Result<Findings, Mismatch> {
        let (findings, fits) = self.walk(id, value, Empties::Owned);
        fits.map(|()| findings)
    }

    /// The same where it is known already who owns what: all of them are marked.
    pub fn conform_as_applied(&self, id: StructId, value: &mut Value) -> Result<Findings, Mismatch> {
        let (findings, fits) = self.walk(id, value, Empties::Marked);
        fits.map(|()| findings)
    }

    fn walk(&self, id: StructId, value: &mut Value, empties: Empties) -> (Findings, Result<(), Mismatch>) {
        let mut walk = Walk { types: self, findings: Findings::default(), empties, tells: true };
        let holder = Holder { of: self.get(id), field: "", go_type: None };
        let fits = walk.structure(id, value, holder, &Trail::ROOT);
        (walk.findings, fits)
    }
}

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
    of: &'a Struct,
    field: &'a str,
    /// The original's name for the type of the value, where its shape does not tell.
    go_type: Option<&'a str>,
}

impl Holder<'_> {
    /// The same for the elements of the list or map that is looked at.
    fn of_elements(self) -> Self {
        let elements = |go| match go {
            Some(go) => str::strip_prefix(go, "[]").or_else(|| Some(go.strip_prefix("map[")?.split_once(']')?.1)),
            None => None,
        };
        Holder { go_type: elements(self.go_type), ..self }
    }
}

/// What becomes of lists and maps with nothing in them.
#[derive(Clone, Copy, PartialEq)]
enum Empties {
    /// They are lost, as in what was stored.
    Dropped,
    /// They are marked.
    Marked,
    /// They are marked, but for those that are shown as `null`: these stay.
    Owned,
}

struct Walk<'t> {
    types: &'t Types,
    findings: Findings,
    /// How far what is empty is told apart from what was not given.
    empties: Empties,
    /// Whether what is unknown is told. What types read by code of their own is dropped without a word.
    tells: bool,
}

impl<'t> Walk<'t> {
    fn structure(
        &mut self,
        id: StructId,
        value: &mut Value,
        holder: Holder<'_>,
        trail: &Trail<'_>,
    ) -> Result<(), Mismatch> {
        let structure = self.types.get(id);
        if value.is_null() {
            *value = Value::Object(Object::new());
        }
        let Value::Object(object) = value else {
            return Err(mismatch(value, holder, &go_struct_name(&structure.name), trail));
        };
        let mut cursor = structure.fields.cursor();
        let mut failure = None;
        object.retain(|name, value| {
            if failure.is_some() {
                return true;
            }
            let Some(field) = cursor.find(name) else {
                let unknown = &mut self.findings.unknown_fields;
                if self.tells && unknown.len() < MAX_UNKNOWN_FIELDS {
                    unknown.push(join(trail.path(), name));
                }
                return false;
            };
            if value.is_null() {
                return false;
            }
            // Who sends an object says with an empty list that nobody manages it; of its parts that says nothing.
            if &*field.name == MANAGERS && is_zero(value) && trail.path() != "metadata" {
                return false;
            }
            let holder = Holder { of: structure, field: &field.name, go_type: field.go_type.as_deref() };
            match self.value(&field.shape, value, holder, &trail.field(structure, field)) {
                Ok(()) => {
                    if value.is_null() {
                        return false;
                    }
                    let is_kept = self.empties == Empties::Owned && field.is_shown_as_null_if_empty();
                    if is_kept || !is_lost(&field.shape, field.presence, value) {
                        return true;
                    }
                    let is_marked = self.empties != Empties::Dropped && field.can_be_sent_empty();
                    if is_marked {
                        *value = Value::Nothing;
                    }
                    is_marked
                }
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn value(
        &mut self,
        shape: &Shape,
        value: &mut Value,
        holder: Holder<'_>,
        trail: &Trail<'_>,
    ) -> Result<(), Mismatch> {
        match shape {
            Shape::Any => Ok(()),
            Shape::Raw => {
                if !matches!(value, Value::Raw(_)) {
                    *value = Value::Raw(Box::new(RawJson::of(std::mem::take(value))));
                }
                Ok(())
            }
            Shape::Struct(id) => self.structure(*id, value, holder, trail),
            Shape::Either(alternative, id) => {
                let tells = std::mem::replace(&mut self.tells, false);
                let fits = self.either(*alternative, *id, value, holder, trail);
                self.tells = tells;
                fits
            }
            Shape::List(element) => {
                let Value::Array(items) = value else {
                    return Err(mismatch(value, holder, &go_name(self.types, shape), trail));
                };
                for (at, item) in items.iter_mut().enumerate() {
                    self.element(element, item, holder.of_elements(), &trail.item(at))?;
                }
                Ok(())
            }
            Shape::Map(element) => {
                let Value::Object(object) = value else {
                    return Err(mismatch(value, holder, &go_name(self.types, shape), trail));
                };
                for (name, item) in object.iter_mut() {
                    self.element(element, item, holder.of_elements(), &trail.key(name))?;
                }
                Ok(())
            }
            scalar => scalar_value(scalar, value, holder, trail),
        }
    }

    /// An object of a type or what may stand in its place. Where the original reads neither, it reads nothing.
    fn either(
        &mut self,
        alternative: Alternative,
        id: StructId,
        value: &mut Value,
        holder: Holder<'_>,
        trail: &Trail<'_>,
    ) -> Result<(), Mismatch> {
        match (alternative, &*value) {
            (_, Value::Object(_)) => self.structure(id, value, holder, trail),
            (Alternative::Bool, Value::Bool(_)) => Ok(()),
            (Alternative::Bool, _) => Err(Mismatch("boolean or JSON schema expected".to_owned())),
            (Alternative::List, Value::Array(_)) => {
                self.value(&Shape::List(Box::new(Shape::Struct(id))), value, holder, trail)
            }
            (Alternative::Texts, Value::Array(_)) => {
                self.value(&Shape::List(Box::new(Shape::String)), value, holder, trail)
            }
            (Alternative::List | Alternative::Texts, _) => {
                *value = Value::Null;
                Ok(())
            }
        }
    }

    /// An element of a list or map: null stands for the zero value there.
    fn element(
        &mut self,
        shape: &Shape,
        value: &mut Value,
        holder: Holder<'_>,
        trail: &Trail<'_>,
    ) -> Result<(), Mismatch> {
        if value.is_null() {
            *value = zero(shape);
            // A time that is none stays none.
            if value.is_null() && matches!(shape, Shape::Time | Shape::MicroTime) {
                return Ok(());
            }
        }
        self.value(shape, value, holder, trail)
    }
}

fn scalar_value(shape: &Shape, value: &mut Value, holder: Holder<'_>, trail: &Trail<'_>) -> Result<(), Mismatch> {
    match (shape, &mut *value) {
        (Shape::String, Value::String(_)) | (Shape::Bool, Value::Bool(_)) | (Shape::Int64, Value::Int(_)) => Ok(()),
        (Shape::Int32, Value::Int(number)) if i32::try_from(*number).is_ok() => Ok(()),
        (Shape::Int32 | Shape::Int64, Value::Int(_) | Value::Float(_)) => {
            let kind = if *shape == Shape::Int32 { "int32" } else { "int64" };
            Err(misplaced(&format!("number {}", value.to_json()), holder, kind, trail))
        }
        (Shape::Bytes, Value::String(text)) => {
            let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let bytes = BASE64.decode(&compact).map_err(|error| Mismatch(describe_base64(&error, &compact)))?;
            *text = BASE64.encode(bytes).into();
            Ok(())
        }
        (Shape::Time, Value::String(text)) if is_canonical(text) => Ok(()),
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
            Err(misplaced(&format!("number {}", value.to_json()), holder, "int32", trail))
        }
        (Shape::Quantity, Value::String(text)) if Quantity::is_surely_canonical(text) => Ok(()),
        // Whatever it is, its text is read (upstream: `Quantity.UnmarshalJSON`).
        (Shape::Quantity, _) => {
            let text = match &*value {
                Value::String(text) => text.to_string(),
                other => other.to_json(),
            };
            let quantity = Quantity::parse(text.trim()).map_err(|error| Mismatch(error.to_string()))?;
            *value = Value::from(quantity.to_string());
            Ok(())
        }
        (Shape::Duration, Value::String(text)) => {
            let duration: Duration = text.parse().map_err(|error: DurationError| Mismatch(error.to_string()))?;
            *value = Value::from(duration.to_string());
            Ok(())
        }
        _ => Err(mismatch(value, holder, scalar_go_name(shape), trail)),
    }
}

fn mismatch(value: &Value, holder: Holder<'_>, wanted: &str, trail: &Trail<'_>) -> Mismatch {
    misplaced(value.type_name(), holder, holder.go_type.unwrap_or(wanted), trail)
}

/// What was found where something else belongs, in the words of Go's decoder: it names the innermost struct, and all
/// fields on the way there.
fn misplaced(found: &str, holder: Holder<'_>, wanted: &str, trail: &Trail<'_>) -> Mismatch {
    Mismatch(if holder.field.is_empty() {
        format!("json: cannot unmarshal {found} into Go value of type {wanted}")
    } else {
        let (of, path) = (holder.of.short_name(), trail.go_path());
        format!("json: cannot unmarshal {found} into Go struct field {of}.{path} of type {wanted}")
    })
}

pub(crate) fn describe_base64(error: &base64::DecodeError, text: &str) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding if text.contains('=') => text.len(),
        // What is left over of four characters is wrong from its beginning.
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

/// What the original's messages call a shape.
pub(crate) fn go_name(types: &Types, shape: &Shape) -> String {
    match shape {
        Shape::List(element) => format!("[]{}", go_name(types, element)),
        Shape::Map(element) => format!("map[string]{}", go_name(types, element)),
        Shape::Struct(id) | Shape::Either(_, id) => go_struct_name(&types.get(*id).name),
        Shape::Time => "v1.Time".to_owned(),
        Shape::MicroTime => "v1.MicroTime".to_owned(),
        Shape::Duration => "v1.Duration".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::Any => "v1.JSON".to_owned(),
        scalar => scalar_go_name(scalar).to_owned(),
    }
}

/// `v1.Pod` of `core.v1.Pod`.
pub(crate) fn go_struct_name(name: &str) -> String {
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
        Value::Null | Value::Nothing => true,
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

fn join(mut path: String, name: &str) -> String {
    push(&mut path, name);
    path
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
T,policy,string,nonzero,,
T,modes,list:string,nonzero,,
T,limits,map:quantity,nonzero,,
T,times,map:time,nonzero,,
P,x,string,always,,
Probe,exec,P,given,1/1,
Probe,inner,P,given,2,
";

    const GO_TYPES: &str = "type,field,go
T,policy,v1.Policy
T,modes,[]v1.Mode
T,limits,v1.ResourceList
T,unknown,v1.Unknown
";

    fn conform(text: &str) -> Result<(String, Vec<String>), String> {
        let mut types = Types::parse(TABLE).expect("a good table");
        types.name_go_types(GO_TYPES);
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
        // What may be one thing or another is read by code that does not tell.
        let (value, unknown) = conform(r#"{"more":{"x":"a","q":1},"nmae":1,"some":[{"q":1}]}"#).expect("fits");
        assert_eq!(value, r#"{"more":{"x":"a"},"some":[{}]}"#);
        assert_eq!(unknown, ["nmae"]);
    }

    const NO_QUANTITY: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

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
            (r#"{"policy":1}"#, "json: cannot unmarshal number into Go struct field T.policy of type v1.Policy"),
            (r#"{"modes":{}}"#, "json: cannot unmarshal object into Go struct field T.modes of type []v1.Mode"),
            (r#"{"modes":[true]}"#, "json: cannot unmarshal bool into Go struct field T.modes of type v1.Mode"),
            (
                r#"{"limits":"x"}"#,
                "json: cannot unmarshal string into Go struct field T.limits of type v1.ResourceList",
            ),
            (
                r#"{"times":"x"}"#,
                "json: cannot unmarshal string into Go struct field T.times of type map[string]v1.Time",
            ),
            (r#"{"limits":{"cpu":""}}"#, NO_QUANTITY),
            (r#"{"limits":{"cpu":{}}}"#, NO_QUANTITY),
        ] {
            assert_eq!(conform(text), Err(want.to_owned()), "{text}");
        }
    }
}
