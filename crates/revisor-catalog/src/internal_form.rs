//! Values as the original's messages show them.
//!
//! The original validates objects of its internal types, and what is at fault it quotes as Go's encoder writes such a
//! value: with the names of the fields in Go, in their order, and with all that is not set. Most internal types have the
//! fields of the types that clients see, under the same names with a capital; `tables/internal_types.csv` has the others.
//! Types that all groups share (`meta`) are quoted as clients see them.

use std::cell::OnceCell;
use std::collections::HashMap;

use revisor_object::{BadValue, FieldError, FieldErrors, MAX_TEXT_BYTES, clip, push_json_text, unified_diff};
use revisor_schema::{Field, Presence, Shape, StructId, Types};
use serde_json::{Map, Value};

use crate::Resource;

const TABLE: &str = include_str!("../tables/internal_types.csv");

/// The groups whose messages are made of what clients see, or by rules of their own.
const SHOWN_AS_SENT: [&str; 4] = ["meta", "apiextensions", "versioning", "apidiscovery"];

/// A field of an internal type, as the table writes it.
#[derive(Debug, Clone, Copy)]
enum Member {
    /// `Name`, or `Name=json` where the names differ by more than capitals.
    Own { name: &'static str, json: &'static str },
    /// `^Name=json`: a field that clients see in the object around this one.
    Outer { name: &'static str, json: &'static str },
    /// `+metadata`: all the members of the metadata, as if they were those of the type.
    Metadata,
}

impl Member {
    fn parse(text: &'static str) -> Member {
        if text == "+metadata" {
            return Member::Metadata;
        }
        let (text, is_outer) = text.strip_prefix('^').map_or((text, false), |text| (text, true));
        let (name, json) = text.split_once('=').unwrap_or((text, text));
        if is_outer { Member::Outer { name, json } } else { Member::Own { name, json } }
    }
}

/// The internal types that are no mere copies, by group and name: `core.Volume`.
type InternalTypes = HashMap<&'static str, Vec<Member>>;

/// Read where a value is quoted, which few requests come to.
fn internal_types() -> InternalTypes {
    let rows = TABLE.lines().skip(1).filter_map(|line| line.split_once(','));
    rows.map(|(name, fields)| (name, fields.split(' ').map(Member::parse).collect())).collect()
}

/// How much of a value is written: more than of any text is told. Zeros take far more room than nothing does.
const ENOUGH: usize = 2 * MAX_TEXT_BYTES;

/// Of a value that changed all is written, or nothing: as much as whole pods take, and no more lines than can be compared.
const MOST_OF_CHANGED: usize = 16 * MAX_TEXT_BYTES;
const MOST_LINES_OF_CHANGED: usize = 2000;

/// Where changes of the source of a volume are told. It is no field: its members stand in the spec, beside these.
const SOURCE_OF_VOLUME: &str = "spec.persistentvolumesource";
const BESIDE_SOURCE: [&str; 9] = [
    "Capacity",
    "AccessModes",
    "ClaimRef",
    "PersistentVolumeReclaimPolicy",
    "StorageClassName",
    "MountOptions",
    "VolumeMode",
    "NodeAffinity",
    "VolumeAttributesClassName",
];

impl Resource {
    /// The errors with the values that they quote in the original's form.
    pub fn quoting_internal_values(&self, errors: FieldErrors) -> FieldErrors {
        if self.custom().is_some() {
            return errors;
        }
        let known = OnceCell::new();
        errors.into_iter().map(|error| self.quoting_internal_value(error, &known)).collect()
    }

    fn quoting_internal_value(&self, mut error: FieldError, known: &OnceCell<InternalTypes>) -> FieldError {
        if let Some(change) = error.change() {
            let difference = self.difference(&error.field, change, known.get_or_init(internal_types));
            let detail = clip(format!("{}\n{}", error.detail, difference.unwrap_or_default()));
            return FieldError { detail, bad_value: BadValue::Omitted, ..error };
        }
        let BadValue::Json(value @ (Value::Null | Value::Array(_) | Value::Object(_))) = &error.bad_value else {
            return error;
        };
        let known = known.get_or_init(internal_types);
        let quoted = self.places(&error.field, value).find_map(|place| place.quote(&self.types, known, value));
        if let Some(text) = quoted {
            error.bad_value = BadValue::Text(text);
        }
        error
    }

    /// What is different between two values of what stands at a path, line by line (upstream: `diff.Diff`); `None` if it
    /// is too much to be compared.
    fn difference(&self, path: &str, change: [&Value; 2], known: &InternalTypes) -> Option<String> {
        let (path, without): (_, &[&str]) =
            if path == SOURCE_OF_VOLUME { ("spec", &BESIDE_SOURCE) } else { (path, &[]) };
        let place = self.place(path)?;
        let [old, new] = change.map(|value| place.lines(&self.types, known, without, value));
        Some(unified_diff(&old?, &new?))
    }

    /// What a rule that names this path may quote: what is found there or, of objects, what that is in. Some rules of
    /// volumes name fields of the spec as if they were the object's own, and one of nodes as if they were of its metadata.
    fn places<'p>(&'p self, path: &'p str, value: &Value) -> impl Iterator<Item = Place> + 'p {
        let own = path.strip_prefix("metadata.").unwrap_or(path);
        let outer = path.rsplit_once('.').map(|(outer, _)| outer).filter(|_| value.is_object());
        let paths = [Some(path.to_owned()), Some(format!("spec.{own}")), outer.map(str::to_owned)];
        paths.into_iter().flatten().filter_map(|path| self.place(&path))
    }

    /// What is found at a path such as `spec.containers[0].ports[1]`.
    fn place(&self, path: &str) -> Option<Place> {
        let root = Place { shape: Shape::Struct(self.root), can_be_nil: false };
        steps(path).try_fold(root, |place, step| place.step(&self.types, step))
    }
}

/// What a value in an object looks like.
#[derive(Debug)]
struct Place {
    shape: Shape,
    /// Whether nothing is told apart from zero.
    can_be_nil: bool,
}

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'p> {
    Field(&'p str),
    /// To an item of a list or of a map.
    Item,
}

/// The steps of a path. Keys of maps may have dots in them.
fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(item) = rest.strip_prefix('[') {
            rest = item.split_once(']')?.1;
            return Some(Step::Item);
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        rest = behind;
        (!name.is_empty()).then_some(Step::Field(name))
    })
}

impl Place {
    fn step(self, types: &Types, step: Step<'_>) -> Option<Place> {
        match (self.shape, step) {
            (Shape::Struct(id), Step::Field(name)) => {
                let field = types.get(id).field(name)?;
                Some(Place { shape: field.shape.clone(), can_be_nil: can_be_nil(field) })
            }
            (Shape::List(element) | Shape::Map(element), Step::Item) => {
                Some(Place { shape: *element, can_be_nil: false })
            }
            _ => None,
        }
    }

    /// The value as the original quotes it; `None` where that is as it stands, or where it does not fit.
    fn quote(&self, types: &Types, known: &InternalTypes, value: &Value) -> Option<String> {
        let shape: &Shape = match (&self.shape, value) {
            (_, Value::Null) if self.can_be_nil => return None,
            // Some rules name the list and quote the item.
            (Shape::List(element), Value::Object(_)) => element,
            (shape, _) => shape,
        };
        if value.is_object() && !matches!(shape, Shape::Struct(_) | Shape::Map(_)) {
            return None;
        }
        if let (Shape::Struct(id), Value::Object(object)) = (shape, value)
            && !object.keys().all(|name| types.get(*id).field(name).is_some())
        {
            return None;
        }
        let mut quote = Quote { types, known, text: Vec::new(), without: &[], enough: ENOUGH };
        quote.value(shape, Some(value), &Map::new());
        String::from_utf8(quote.text).ok()
    }

    /// The value as the original writes it in lines, without some of its members.
    fn lines(&self, types: &Types, known: &InternalTypes, without: &[&str], value: &Value) -> Option<Vec<String>> {
        let shape: &Shape = match (&self.shape, value) {
            (Shape::List(element), Value::Object(_)) => element,
            (shape, _) => shape,
        };
        let mut quote = Quote { types, known, text: Vec::new(), without, enough: MOST_OF_CHANGED };
        quote.value(shape, Some(value), &Map::new());
        let lines = (quote.text.len() <= MOST_OF_CHANGED).then(|| lines(&quote.text))?;
        (lines.len() <= MOST_LINES_OF_CHANGED).then_some(lines)
    }
}

/// Compact JSON in lines, as Go's `json.Indent` writes it with one blank for each level.
fn lines(compact: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut depth = 0;
    let mut bytes = compact.iter().copied().peekable();
    let mut is_in_text = false;
    let mut finish = |line: &mut Vec<u8>, depth: usize| {
        lines.push(String::from_utf8_lossy(line).into_owned());
        line.clear();
        line.resize(depth, b' ');
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                is_in_text = !is_in_text;
                line.push(byte);
            }
            b'\\' if is_in_text => {
                line.push(byte);
                line.extend(bytes.next());
            }
            _ if is_in_text => line.push(byte),
            b'{' | b'[' => {
                line.push(byte);
                match bytes.next_if(|next| matches!(next, b'}' | b']')) {
                    Some(end) => line.push(end),
                    None => {
                        depth += 1;
                        finish(&mut line, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                finish(&mut line, depth);
                line.push(byte);
            }
            b',' => {
                line.push(byte);
                finish(&mut line, depth);
            }
            b':' => line.extend(*b": "),
            other => line.push(other),
        }
    }
    finish(&mut line, 0);
    lines
}

fn can_be_nil(field: &Field) -> bool {
    matches!(field.presence, Presence::Given | Presence::Nullable)
}

/// A value while it is written.
struct Quote<'t> {
    types: &'t Types,
    known: &'t InternalTypes,
    text: Vec<u8>,
    /// Members of the value itself that are left out.
    without: &'t [&'t str],
    /// From so many bytes on, lists and maps are not written to their end.
    enough: usize,
}

impl Quote<'_> {
    /// Writes a value, or the zero value of its shape.
    fn value(&mut self, shape: &Shape, value: Option<&Value>, outer: &Map<String, Value>) {
        match (shape, value) {
            (Shape::Struct(id), Some(Value::Object(object))) => self.structure(*id, object, outer),
            (Shape::Struct(id), None | Some(Value::Null)) => self.structure(*id, &Map::new(), outer),
            (Shape::List(element), Some(Value::Array(items))) => {
                self.text.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if self.text.len() > self.enough {
                        break;
                    }
                    self.comma(at > 0);
                    self.value(element, Some(item), outer);
                }
                self.text.push(b']');
            }
            // What was sent empty comes as a list, whatever it is.
            (Shape::Map(_), Some(Value::Array(_))) => self.text.extend_from_slice(b"{}"),
            (Shape::Bytes, Some(Value::Array(_))) => self.text.extend_from_slice(b"\"\""),
            (Shape::Map(element), Some(Value::Object(members))) => {
                self.text.push(b'{');
                for (at, (name, member)) in members.iter().enumerate() {
                    if self.text.len() > self.enough {
                        break;
                    }
                    self.comma(at > 0);
                    self.name(name);
                    self.value(element, Some(member), outer);
                }
                self.text.push(b'}');
            }
            (_, Some(Value::String(text))) => push_json_text(text, &mut self.text),
            (Shape::String, None | Some(Value::Null)) => self.text.extend_from_slice(b"\"\""),
            (Shape::Bool, None | Some(Value::Null)) => self.text.extend_from_slice(b"false"),
            (Shape::Quantity, None | Some(Value::Null)) => self.text.extend_from_slice(b"\"0\""),
            (Shape::Duration, None | Some(Value::Null)) => self.text.extend_from_slice(b"\"0s\""),
            (Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString, None | Some(Value::Null)) => {
                self.text.push(b'0');
            }
            (_, None) => self.text.extend_from_slice(b"null"),
            (_, Some(other)) => self.text.extend_from_slice(other.to_string().as_bytes()),
        }
    }

    fn structure(&mut self, id: StructId, object: &Map<String, Value>, outer: &Map<String, Value>) {
        let types = self.types;
        let of = types.get(id);
        self.text.push(b'{');
        let begin = self.text.len();
        let (group, short_name) = (of.name.split('.').next().unwrap_or_default(), of.short_name());
        if SHOWN_AS_SENT.contains(&group) {
            self.as_sent(id, object);
        } else if let Some(members) = self.known.get(&*format!("{group}.{short_name}")) {
            self.members(id, members, object, outer);
        } else {
            for field in &of.fields {
                let mut letters = field.name.chars();
                let first = letters.next().map(|first| first.to_ascii_uppercase());
                let name: String = first.into_iter().chain(letters).collect();
                self.member(begin, &name, Some(field), object, object);
            }
        }
        self.text.push(b'}');
    }

    /// Writes the members of a type that has others inside.
    fn members(&mut self, id: StructId, members: &[Member], object: &Map<String, Value>, outer: &Map<String, Value>) {
        let types = self.types;
        let of = types.get(id);
        let begin = self.text.len();
        let without = std::mem::take(&mut self.without);
        for member in members {
            match *member {
                Member::Own { name, .. } if without.contains(&name) => {}
                Member::Own { name, json } => {
                    let field = of.fields.iter().find(|field| field.name.eq_ignore_ascii_case(json));
                    self.member(begin, name, field, object, object);
                }
                Member::Outer { name, json } => {
                    // It is a member of the pod's spec, wherever that stands.
                    let spec = types.id("core.v1.PodSpec").map(|id| types.get(id));
                    self.member(begin, name, spec.and_then(|spec| spec.field(json)), outer, outer);
                }
                Member::Metadata => self.metadata(of.field("metadata"), object),
            }
        }
    }

    fn member(
        &mut self,
        begin: usize,
        name: &str,
        field: Option<&Field>,
        of: &Map<String, Value>,
        outer: &Map<String, Value>,
    ) {
        let Some(field) = field else { return };
        self.comma(self.text.len() > begin);
        self.name(name);
        match of.get(&*field.name) {
            None | Some(Value::Null) if can_be_nil(field) => self.text.extend_from_slice(b"null"),
            value => self.value(&field.shape, value, outer),
        }
    }

    fn metadata(&mut self, field: Option<&Field>, object: &Map<String, Value>) {
        if let Some(Shape::Struct(id)) = field.map(|field| &field.shape)
            && let Some(Value::Object(metadata)) = object.get("metadata")
        {
            self.as_sent(*id, metadata);
        }
    }

    /// The members that clients see, in the order of the type.
    fn as_sent(&mut self, id: StructId, object: &Map<String, Value>) {
        let (types, null) = (self.types, Value::Null);
        for field in &types.get(id).fields {
            let zero = field.is_always_written().then_some(&null);
            if let Some(value) = object.get(&*field.name).or(zero) {
                self.comma(!self.text.ends_with(b"{"));
                self.name(&field.name);
                match value {
                    Value::Null if field.presence == Presence::Nullable => self.text.extend_from_slice(b"null"),
                    value => self.value(&field.shape, Some(value), object),
                }
            }
        }
    }

    fn comma(&mut self, is_needed: bool) {
        if is_needed {
            self.text.push(b',');
        }
    }

    fn name(&mut self, name: &str) {
        push_json_text(name, &mut self.text);
        self.text.push(b':');
    }
}

#[cfg(test)]
mod tests;
