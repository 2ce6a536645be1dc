//! [`Types`]: the struct types of the API, read from a table once at start-up.
//!
//! A row is `type,field,shape,presence,number,merge,list,required,default`; columns at the end may be left out. Fields
//! stand in the order in which the original writes them, because that is the order of the stored and served bytes.
//!
//! A row with nothing but a type stands for one that has no fields.
//!
//! - `shape`: `string`, `bool`, `int32`, `int64`, `double`, `bytes`, `time`, `microtime`, `duration`, `quantity`,
//!   `intorstring`, `any`, `raw`, `list:SHAPE`, `map:SHAPE`, `orbool:TYPE`, `orlist:TYPE`, `ortexts:TYPE`, or the name of
//!   another type.
//! - `presence`: see [`Presence`].
//! - `number`: that of the field in protobuf, `2/1` for field 1 of an embedded message that is field 2.
//! - `merge`: how a strategic merge patch changes the field: nothing for the usual way, `merge` for a list of scalars
//!   that is a set, `merge:KEY` for a list of objects told apart by their field KEY, `replace` for an object that is
//!   replaced as a whole; `retainKeys` stands alone or behind one of these and a `+`.
//! - `list`: how server-side apply sees a list, map or object: `atomic`, `granular`, `set`, `map:KEY+KEY`.
//!   A row with the field `*` and nothing but `atomic` says so of all values of its type.
//! - `required`: `yes` if clients are told that they must give the field.
//! - `default`: the JSON value that an absent field gets, whatever stands beside it.

use std::collections::HashMap;

use compact_str::CompactString;
use revisor_object::{Value, parse_json};

use crate::Fields;
use crate::protobuf::Layout;

/// What a value must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    String,
    /// A boolean.
    Bool,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// A number.
    Double,
    /// Bytes, written as base64.
    Bytes,
    /// A point in time, to the second.
    Time,
    /// A point in time, to the microsecond.
    MicroTime,
    /// A span of time, such as `1m30s`.
    Duration,
    /// An amount of something, such as `500m` or `2Gi`.
    Quantity,
    /// An integer or a text.
    IntOrString,
    /// Any JSON value.
    Any,
    /// Any JSON value, kept as the text that it was sent as.
    Raw,
    /// An array.
    List(Box<Shape>),
    /// An object with names of the client's choice.
    Map(Box<Shape>),
    /// An object with the fields of a type.
    Struct(StructId),
    /// An object with the fields of a type, or something else in its place.
    Either(Alternative, StructId),
}

/// What may stand where an object of a type does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternative {
    /// A boolean.
    Bool,
    /// A list of objects of the type.
    List,
    /// A list of texts.
    Texts,
}

/// When a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Always, with its zero value if it was not given.
    Always,
    /// Unless it has its zero value: an empty string, list or map, 0, false.
    NonZero,
    /// When it was given, whatever its value.
    Given,
    /// Always, with null if it was not given.
    Nullable,
}

/// How server-side apply sees a list, a map or an object: as one value or as many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Topology {
    /// As the shape has it: lists are one value, maps and objects are many.
    #[default]
    Usual,
    /// One value.
    Atomic,
    /// Many values, although its type is seen as one elsewhere.
    Granular,
    /// A list of distinct scalars.
    Set,
    /// A list of objects told apart by the fields with these names.
    ByKeys(Vec<Box<str>>),
}

/// How a strategic merge patch changes a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Merge {
    /// Objects are merged member by member, everything else is replaced.
    #[default]
    Plain,
    /// An object that is replaced as a whole.
    Replace,
    /// A list of scalars to which the elements that it lacks are added.
    Set,
    /// A list of objects that are merged when the field with this name has the same value in both.
    ByKey(Box<str>),
}

/// One field of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in JSON.
    pub name: Box<str>,
    /// The step to it in a set of fields: `f:` and its name.
    pub step: CompactString,
    /// What its value must look like.
    pub shape: Shape,
    /// When it is written.
    pub presence: Presence,
    /// Its number in protobuf; the kind and version of an object stand elsewhere there and have none.
    pub number: Option<FieldNumber>,
    /// How a strategic merge patch changes it.
    pub merge: Merge,
    /// Whether clients that compute a strategic merge patch list in it the members that are to stay. Patches may do so
    /// everywhere; this tells clients where they should.
    pub retain_keys: bool,
    /// How server-side apply sees it.
    pub topology: Topology,
    /// Whether clients are told that they must give it.
    pub required: bool,
    /// What it is when it is absent, whatever stands beside it.
    pub default: Option<Value>,
    /// The original's name for its type, where that is not told by the shape: `v1.RestartPolicy` of a text.
    pub go_type: Option<Box<str>>,
}

/// Where a field stands in protobuf: its number, behind the numbers of the embedded messages that it is in. JSON shows
/// the fields of embedded messages beside those around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldNumber(pub(crate) Box<[u32]>);

impl FieldNumber {
    fn parse(text: &str) -> Option<FieldNumber> {
        text.split('/').map(|number| number.parse().ok()).collect::<Option<_>>().map(FieldNumber)
    }
}

/// One type: a name and its fields in the order in which they are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// The name of the type: `core.v1.Pod`.
    pub name: Box<str>,
    /// Its fields.
    pub fields: Fields,
    /// Whether server-side apply sees its values as one, unless a field says otherwise.
    pub is_atomic: bool,
    /// What members beside the fields look like, in types of custom objects. Its name says nothing.
    pub others: Option<Box<Field>>,
    /// Whether values that are no objects are of the type too, in types of custom objects.
    pub is_open: bool,
    /// What is found in it.
    pub(crate) inside: Inside,
    /// The places of the fields that have a default, or hold something that has one.
    pub(crate) defaulted: Box<[u32]>,
}

/// What a type has among its fields or those of the types that it is made of, so that nobody looks for it in the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Inside {
    /// A default.
    pub(crate) defaults: bool,
    /// JSON that is kept as its text.
    pub(crate) raw: bool,
    /// A field that is always written.
    pub(crate) always_written: bool,
    /// A list or map that is shown as `null` if there is nothing in it.
    pub(crate) shown_as_null: bool,
}

impl Inside {
    fn of(field: &Field) -> Inside {
        Inside {
            defaults: field.default.is_some(),
            raw: field.shape == Shape::Raw,
            always_written: field.is_always_written(),
            shown_as_null: field.is_shown_as_null_if_empty(),
        }
    }

    fn or(self, other: Inside) -> Inside {
        Inside {
            defaults: self.defaults || other.defaults,
            raw: self.raw || other.raw,
            always_written: self.always_written || other.always_written,
            shown_as_null: self.shown_as_null || other.shown_as_null,
        }
    }
}

/// A row of a table.
#[derive(Clone, Copy)]
struct Row<'a> {
    line: usize,
    of: StructId,
    text: &'a str,
    /// What stands behind the name of the type.
    rest: &'a str,
}

impl Struct {
    fn without_fields(name: &str) -> Struct {
        Struct {
            name: name.into(),
            fields: Fields::default(),
            is_atomic: false,
            others: None,
            is_open: false,
            inside: Inside::default(),
            defaulted: Box::default(),
        }
    }

    /// The last part of the name: `Pod`.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// The field `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.find(name)
    }

    /// What a member `name` looks like: the field with this name, or what is said of all others.
    pub fn member(&self, name: &str) -> Option<&Field> {
        self.field(name).or(self.others.as_deref())
    }
}

/// A type of one [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StructId(u32);

/// All types of one table.
#[derive(Debug, Clone, Default)]
pub struct Types {
    structs: Vec<Struct>,
    /// Where the fields of the types of a table stand in protobuf. Those that are added later have no such form.
    layouts: Vec<Layout>,
    by_name: HashMap<Box<str>, StructId>,
}

/// What is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// The line, counted from one.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

impl Types {
    /// Reads a table. Its first line names the columns.
    pub fn parse(table: &str) -> Result<Types, TableError> {
        let mut types = Types::default();
        let lines = table.lines().enumerate().skip(1);
        let mut rows: Vec<Row<'_>> = Vec::new();
        for (at, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            let name = text.split(',').next().unwrap_or_default();
            // The rows of a type stand together, nearly always.
            let before = rows.last().map(|row| row.of).filter(|of| *types.get(*of).name == *name);
            let of = before.or_else(|| types.id(name)).unwrap_or_else(|| types.push(Struct::without_fields(name)));
            rows.push(Row { line: at + 1, of, text, rest: &text[name.len()..] });
        }
        let mut fields_of: Vec<Vec<Field>> = vec![Vec::new(); types.structs.len()];
        for &Row { line, of: id, text, rest } in &rows {
            if rest.bytes().all(|byte| byte == b',') {
                continue;
            }
            if rest == ",*,,,,,atomic,," {
                types.structs[id.0 as usize].is_atomic = true;
                continue;
            }
            let field = types.field(text).map_err(|problem| TableError { line, problem })?;
            let (of, fields) = (&types.structs[id.0 as usize].name, &mut fields_of[id.0 as usize]);
            let is_known =
                |known: &Field| known.name == field.name || (field.number.is_some() && known.number == field.number);
            if fields.iter().any(is_known) {
                let problem = format!("{of}.{} or its number stands here twice", field.name);
                return Err(TableError { line, problem });
            }
            fields.push(field);
        }
        for (of, fields) in types.structs.iter_mut().zip(fields_of) {
            of.fields = fields.into();
        }
        for &Row { line, of, text, .. } in &rows {
            types.check_key(of, text).map_err(|problem| TableError { line, problem })?;
        }
        types.find_insides();
        types.layouts = types.structs.iter().map(|of| Layout::of(&of.fields)).collect();
        Ok(types)
    }

    fn field(&self, row: &str) -> Result<Field, String> {
        // A default may hold commas; it is the last column.
        let mut columns = row.splitn(9, ',');
        let mut column = || columns.next();
        let (Some(_), Some(name), Some(shape), Some(presence), Some(number), Some(merge)) =
            (column(), column(), column(), column(), column(), column())
        else {
            return Err("expected at least 6 columns".to_owned());
        };
        let (topology, required, default) = (column(), column(), column());
        let number = match number {
            "" => None,
            text => Some(FieldNumber::parse(text).ok_or_else(|| format!("no number of a field: {text:?}"))?),
        };
        let presence = match presence {
            "always" => Presence::Always,
            "nonzero" => Presence::NonZero,
            "given" => Presence::Given,
            "nullable" => Presence::Nullable,
            other => return Err(format!("no such presence: {other:?}")),
        };
        let shape = self.shape(shape).ok_or_else(|| format!("no such shape or type: {shape:?}"))?;
        let (merge, retain_keys) =
            self.merge(merge, &shape).ok_or_else(|| format!("no way to merge this field: {merge:?}"))?;
        let topology = match topology.unwrap_or_default() {
            "" => Topology::Usual,
            "atomic" => Topology::Atomic,
            "granular" => Topology::Granular,
            "set" => Topology::Set,
            text => match text.strip_prefix("map:") {
                Some(keys) => Topology::ByKeys(keys.split('+').map(Box::from).collect()),
                None => return Err(format!("no way to apply this field: {text:?}")),
            },
        };
        let required = match required.unwrap_or_default() {
            "" => false,
            "yes" => true,
            other => return Err(format!("neither required nor not: {other:?}")),
        };
        let default = match default.unwrap_or_default() {
            "" => None,
            text => Some(parse_json(text.as_bytes()).map_err(|_| format!("no JSON: {text:?}"))?.value),
        };
        Ok(Field {
            name: name.into(),
            step: format!("f:{name}").into(),
            shape,
            presence,
            number,
            merge,
            retain_keys,
            topology,
            required,
            default,
            go_type: None,
        })
    }

    /// Reads the names that the original has for the types of fields, which its messages tell: rows of `type,field,go`
    /// behind a line that names the columns. Fields that are not in the table of types are passed over.
    pub fn name_go_types(&mut self, table: &str) {
        for row in table.lines().skip(1) {
            let mut columns = row.split(',');
            let (Some(of), Some(name), Some(go)) = (columns.next(), columns.next(), columns.next()) else { continue };
            let Some(id) = self.id(of) else { continue };
            if let Some(field) = self.get_mut(id).fields.find_mut(name) {
                field.go_type = Some(go.into());
            }
        }
    }

    /// Finds out what is inside of the types, which are made of each other.
    fn find_insides(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.structs.len() {
                let within = |field: &Field| self.struct_in(&field.shape).map(|id| self.get(id).inside);
                let found = |field| Inside::of(field).or(within(field).unwrap_or_default());
                let inside = self.structs[at].fields.iter().map(found).fold(Inside::default(), Inside::or);
                changed |= inside != self.structs[at].inside;
                self.structs[at].inside = inside;
            }
        }
        for at in 0..self.structs.len() {
            let fields = self.structs[at].fields.iter().zip(0_u32..);
            let defaulted = fields.filter(|(field, _)| field.default.is_some() || self.may_default(&field.shape));
            self.structs[at].defaulted = defaulted.map(|(_, place)| place).collect();
        }
    }

    /// The type that a shape is made of.
    fn struct_in(&self, shape: &Shape) -> Option<StructId> {
        match shape {
            Shape::Struct(id) | Shape::Either(_, id) => Some(*id),
            Shape::List(element) | Shape::Map(element) => self.struct_in(element),
            _ => None,
        }
    }

    fn shape(&self, text: &str) -> Option<Shape> {
        if let Some(element) = text.strip_prefix("list:") {
            return Some(Shape::List(Box::new(self.shape(element)?)));
        }
        if let Some(element) = text.strip_prefix("map:") {
            return Some(Shape::Map(Box::new(self.shape(element)?)));
        }
        for (prefix, alternative) in
            [("orbool:", Alternative::Bool), ("orlist:", Alternative::List), ("ortexts:", Alternative::Texts)]
        {
            if let Some(of) = text.strip_prefix(prefix) {
                return Some(Shape::Either(alternative, self.id(of)?));
            }
        }
        Some(match text {
            "string" => Shape::String,
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "double" => Shape::Double,
            "bytes" => Shape::Bytes,
            "time" => Shape::Time,
            "microtime" => Shape::MicroTime,
            "duration" => Shape::Duration,
            "quantity" => Shape::Quantity,
            "intorstring" => Shape::IntOrString,
            "any" => Shape::Any,
            "raw" => Shape::Raw,
            name => Shape::Struct(self.id(name)?),
        })
    }

    fn merge(&self, text: &str, shape: &Shape) -> Option<(Merge, bool)> {
        let (text, retain_keys) = match text.strip_suffix("retainKeys") {
            Some("") => ("", true),
            Some(rest) => (rest.strip_suffix('+').filter(|rest| !rest.is_empty())?, true),
            None => (text, false),
        };
        let element = match shape {
            Shape::List(element) => Some(&**element),
            _ => None,
        };
        let merge = match (text.split_once(':'), text, element) {
            (None, "", _) => Merge::Plain,
            (None, "replace", None) => Merge::Replace,
            (None, "merge", Some(Shape::String | Shape::Bool | Shape::Int32 | Shape::Int64)) => Merge::Set,
            (Some(("merge", key)), _, Some(Shape::Struct(_))) => Merge::ByKey(key.into()),
            _ => return None,
        };
        Some((merge, retain_keys))
    }

    /// Checks that the elements of a merged list have the field that tells them apart. Types may stand in any order,
    /// so this waits until all are read.
    fn check_key(&self, of: StructId, row: &str) -> Result<(), String> {
        // Few rows speak of keys.
        if !row.contains(",merge:") {
            return Ok(());
        }
        let field = row.split(',').nth(1).and_then(|name| self.get(of).field(name));
        let Some(Field { shape: Shape::List(element), merge: Merge::ByKey(key), .. }) = field else { return Ok(()) };
        match &**element {
            Shape::Struct(id) if self.get(*id).field(key).is_some() => Ok(()),
            _ => Err(format!("the elements have no field {key:?}")),
        }
    }

    /// Adds a type; one with its name is found by it no longer.
    pub(crate) fn push(&mut self, of: Struct) -> StructId {
        let id = StructId(self.structs.len() as u32);
        self.by_name.insert(of.name.clone(), id);
        self.structs.push(of);
        id
    }

    /// The type behind an id, to be changed.
    pub(crate) fn get_mut(&mut self, id: StructId) -> &mut Struct {
        &mut self.structs[id.0 as usize]
    }

    /// Adds a type of another table, with all that it is made of.
    pub(crate) fn copy(&mut self, from: &Types, id: StructId) -> StructId {
        let mut of = from.get(id).clone();
        if let Some(known) = self.id(&of.name) {
            return known;
        }
        // Known by its name before it is filled, because types refer to themselves.
        let copied = self.push(Struct { fields: Fields::default(), ..of.clone() });
        of.fields.iter_mut().for_each(|field| self.copy_within(from, &mut field.shape));
        self.get_mut(copied).fields = of.fields;
        copied
    }

    fn copy_within(&mut self, from: &Types, shape: &mut Shape) {
        match shape {
            Shape::Struct(id) => *id = self.copy(from, *id),
            Shape::List(element) | Shape::Map(element) => self.copy_within(from, element),
            _ => {}
        }
    }

    /// The type with this name.
    pub fn id(&self, name: &str) -> Option<StructId> {
        self.by_name.get(name).copied()
    }

    /// Where the fields of a type stand in protobuf.
    pub(crate) fn layout(&self, id: StructId) -> &Layout {
        const NOTHING: &Layout = &Layout::NOTHING;
        self.layouts.get(id.0 as usize).unwrap_or(NOTHING)
    }

    /// The type behind an id of this table.
    pub fn get(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_with_references_in_any_order() {
        let types = Types::parse(
            "type,field,shape,presence,number,merge\nA,b,list:B,nonzero,1,\nB,n,int32,given,1,\nB,a,A,given,2,\n",
        )
        .expect("a good table");
        let a = types.get(types.id("A").expect("is there"));
        assert_eq!(
            a.field("b").map(|field| &field.shape),
            types.id("B").map(|b| Shape::List(Box::new(Shape::Struct(b)))).as_ref()
        );
    }

    #[test]
    fn ways_to_merge_are_read() {
        for (shape, text, want) in [
            ("B", "", (Merge::Plain, false)),
            ("B", "replace", (Merge::Replace, false)),
            ("B", "retainKeys", (Merge::Plain, true)),
            ("list:string", "", (Merge::Plain, false)),
            ("list:string", "merge", (Merge::Set, false)),
            ("list:B", "merge:n", (Merge::ByKey("n".into()), false)),
            ("list:B", "merge:n+retainKeys", (Merge::ByKey("n".into()), true)),
        ] {
            let table =
                format!("type,field,shape,presence,number,merge\nA,b,{shape},given,1,{text}\nB,n,int32,given,1,\n");
            let types = Types::parse(&table).unwrap_or_else(|error| panic!("{text}: {error}"));
            let field = types.id("A").and_then(|id| types.get(id).field("b")).expect("is there");
            assert_eq!((field.merge.clone(), field.retain_keys), want, "{shape} {text}");
        }
    }

    #[test]
    fn bad_tables_are_refused_with_their_line() {
        for (rows, line) in [
            ("A,b,string,always,", 2),
            ("A,b,string,always,,\nA,b,string,always,,", 3),
            ("A,b,string,always,1,\nA,c,string,always,1,", 3),
            ("A,b,Nowhere,always,,", 2),
            ("A,b,string,sometimes,,", 2),
            ("A,b,string,always,first,", 2),
            ("A,b,string,always,1/x,", 2),
            ("A,b,list:string,always,,,heap", 2),
            ("A,b,string,always,,,,maybe", 2),
            ("A,b,string,always,,,,,oops", 2),
            ("A,b,string,always,,merge", 2),
            ("A,b,list:string,always,,merge:name", 2),
            ("A,b,list:string,always,,replace", 2),
            ("A,b,list:string,always,,concat", 2),
            ("A,b,list:string,always,,+retainKeys", 2),
            ("A,b,list:string,always,,mergeretainKeys", 2),
            ("A,b,list:B,always,,merge\nB,name,string,always,,", 2),
            ("B,name,string,always,,\nA,b,list:B,always,,merge:uid", 3),
        ] {
            let error = Types::parse(&format!("type,field,shape,presence,number,merge\n{rows}\n")).expect_err(rows);
            assert_eq!(error.line, line, "{error}");
        }
    }
}
