//! [`Outline`]: where the values of an object stand in its canonical JSON.
//!
//! A message of an object that lies there as text can be made without making the object: texts are copied from where
//! they stand, and JSON that is a message's own, such as sets of managed fields, is stepped over. Only what
//! [`Types::encode`] writes is looked through, along the types that it was written by. It decides nothing: anything
//! unexpected, and be it a blank, is left to those who read JSON thoroughly.

use std::borrow::Cow;

use revisor_object::{Value, parse_json, plain_text_length};

use super::source::{self, Source};
use crate::fields::Fields;
use crate::{Alternative, Shape, StructId, Types};

/// How deep objects and arrays may nest here.
const DEPTH: usize = 128;

/// How many bytes of a text there are for each value at least, as a rule.
const EACH: usize = 24;

/// The values of a text, those within another behind it.
pub(super) struct Outline<'t> {
    text: &'t str,
    parts: Vec<Part>,
}

/// A value and where it stands.
#[derive(Clone, Copy)]
struct Part {
    kind: Kind,
    start: u32,
    end: u32,
    /// The name of a member, without its quotes. It has no escapes.
    name: (u32, u32),
    /// The field that a member is the value of.
    field: u32,
    /// The last value within this one, and the one before it in the same object or array.
    last: Option<Place>,
    before: Option<Place>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Bool,
    Number,
    /// A text that means what stands there; `start` and `end` are within its quotes.
    Plain,
    /// A text with escapes, with its quotes.
    Escaped,
    Array,
    Object,
    /// JSON that is not looked into.
    Any,
}

/// A value of an outline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(std::num::NonZeroU32);

impl Place {
    fn new(at: usize) -> Option<Place> {
        u32::try_from(at + 1).ok().and_then(std::num::NonZeroU32::new).map(Place)
    }

    fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl<'t> Outline<'t> {
    /// Looks through an object of the type `id`; nothing if there is something unexpected in it.
    pub(super) fn of(types: &Types, id: StructId, text: &'t str) -> Option<(Outline<'t>, Place)> {
        // Places are numbers of four bytes.
        u32::try_from(text.len()).ok()?;
        let parts = Vec::with_capacity(text.len() / EACH + 1);
        let mut reader = Reader { types, at: 0, depth: 0, outline: Outline { text, parts } };
        let root = reader.value(&Shape::Struct(id))?;
        let is_whole = reader.at == text.len() && reader.outline.is_object(root);
        is_whole.then_some((reader.outline, root))
    }

    fn part(&self, place: Place) -> &Part {
        &self.parts[place.at()]
    }

    fn stands(&self, place: Place) -> &'t str {
        let part = self.part(place);
        &self.text[part.start as usize..part.end as usize]
    }

    fn number(&self, place: Place) -> Value {
        match self.stands(place).parse() {
            Ok(number) => Value::Int(number),
            Err(_) => parse_json(self.stands(place).as_bytes()).map(|parsed| parsed.value).unwrap_or_default(),
        }
    }

    fn name(&self, place: Place) -> &'t str {
        let (start, end) = self.part(place).name;
        &self.text[start as usize..end as usize]
    }

    fn within(&self, place: Place, kind: Kind) -> Option<impl Iterator<Item = Place>> {
        let part = self.part(place);
        (part.kind == kind).then(|| std::iter::successors(part.last, |place| self.part(*place).before))
    }
}

/// The text that a token with escapes stands for.
fn unescaped(token: &str) -> Cow<'_, str> {
    match parse_json(token.as_bytes()).map(|parsed| parsed.value) {
        Ok(Value::String(text)) => Cow::Owned(text.into()),
        _ => Cow::Borrowed(""),
    }
}

impl Source for Outline<'_> {
    type Node = Place;

    fn is_null(&self, place: Place) -> bool {
        self.part(place).kind == Kind::Null
    }

    fn is_object(&self, place: Place) -> bool {
        self.part(place).kind == Kind::Object
    }

    fn truth(&self, place: Place) -> bool {
        self.stands(place) == "true"
    }

    fn integer(&self, place: Place) -> i64 {
        if self.part(place).kind == Kind::Number { source::integer(&self.number(place)) } else { 0 }
    }

    fn float(&self, place: Place) -> f64 {
        if self.part(place).kind == Kind::Number { source::float(&self.number(place)) } else { 0.0 }
    }

    fn text(&self, place: Place) -> Option<Cow<'_, str>> {
        match self.part(place).kind {
            Kind::Plain => Some(Cow::Borrowed(self.stands(place))),
            Kind::Escaped => Some(unescaped(self.stands(place))),
            _ => None,
        }
    }

    fn json(&self, place: Place) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.stands(place).as_bytes())
    }

    fn items(&self, place: Place) -> Option<impl Iterator<Item = Place>> {
        self.within(place, Kind::Array)
    }

    fn members(&self, place: Place) -> Option<impl Iterator<Item = (&str, Place)>> {
        self.within(place, Kind::Object).map(|members| members.map(|member| (self.name(member), member)))
    }

    fn gather(&self, place: Place, _: &Fields, values: &mut [Option<Place>]) {
        for member in self.within(place, Kind::Object).into_iter().flatten() {
            values[self.part(member).field as usize] = Some(member);
        }
    }
}

struct Reader<'t, 's> {
    types: &'s Types,
    at: usize,
    depth: usize,
    outline: Outline<'t>,
}

impl Reader<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.outline.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self, shape: &Shape) -> Option<Place> {
        let place = Place::new(self.outline.parts.len())?;
        let start = self.at as u32;
        let nothing = Part { kind: Kind::Null, start, end: start, name: (0, 0), field: 0, last: None, before: None };
        self.outline.parts.push(nothing);
        let (kind, last) = match (self.peek()?, shape) {
            (b'n', _) => (self.literal("null", Kind::Null)?, None),
            (_, Shape::Any | Shape::Raw) => (self.any()?, None),
            (
                b'"',
                Shape::String
                | Shape::Bytes
                | Shape::Time
                | Shape::MicroTime
                | Shape::Duration
                | Shape::Quantity
                | Shape::IntOrString,
            ) => {
                let (start, end, kind) = self.string()?;
                let part = &mut self.outline.parts[place.at()];
                (part.kind, part.start, part.end) = (kind, start, end);
                return Some(place);
            }
            (b't', Shape::Bool | Shape::Either(Alternative::Bool, _)) => (self.literal("true", Kind::Bool)?, None),
            (b'f', Shape::Bool | Shape::Either(Alternative::Bool, _)) => (self.literal("false", Kind::Bool)?, None),
            (b'-' | b'0'..=b'9', Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString) => {
                let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let rest = &self.outline.text.as_bytes()[self.at..];
                self.at += rest.iter().take_while(|byte| is_of_number(byte)).count();
                (Kind::Number, None)
            }
            (b'{', Shape::Struct(id) | Shape::Either(_, id)) => (Kind::Object, self.nested(|it| it.structure(*id))?),
            (b'{', Shape::Map(element)) => (Kind::Object, self.nested(|it| it.map(element))?),
            (b'[', Shape::List(element)) => (Kind::Array, self.nested(|it| it.array(element))?),
            (b'[', Shape::Either(Alternative::List, id)) => {
                (Kind::Array, self.nested(|it| it.array(&Shape::Struct(*id)))?)
            }
            (b'[', Shape::Either(Alternative::Texts, _)) => (Kind::Array, self.nested(|it| it.array(&Shape::String))?),
            _ => return None,
        };
        let part = &mut self.outline.parts[place.at()];
        (part.kind, part.end, part.last) = (kind, self.at as u32, last);
        Some(place)
    }

    fn literal(&mut self, word: &str, kind: Kind) -> Option<Kind> {
        self.outline.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            kind
        })
    }

    /// A text: where what is in it stands, or the whole of it if there are escapes.
    fn string(&mut self) -> Option<(u32, u32, Kind)> {
        let start = self.at;
        let has_escapes = self.skip_string()?;
        let end = self.at;
        Some(match has_escapes {
            true => (start as u32, end as u32, Kind::Escaped),
            false => (start as u32 + 1, end as u32 - 1, Kind::Plain),
        })
    }

    /// Steps over a text. Answers whether it has escapes.
    fn skip_string(&mut self) -> Option<bool> {
        self.expect(b'"')?;
        let bytes = self.outline.text.as_bytes();
        let mut has_escapes = false;
        loop {
            self.at += plain_text_length(&bytes[self.at..]);
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(has_escapes);
                }
                b'\\' => {
                    has_escapes = true;
                    self.at += 2;
                    bytes.get(self.at)?;
                }
                _ => return None,
            }
        }
    }

    /// Steps over any JSON.
    fn any(&mut self) -> Option<Kind> {
        let bytes = self.outline.text.as_bytes();
        let mut open = 0_usize;
        loop {
            match bytes.get(self.at)? {
                b'"' => {
                    self.skip_string()?;
                }
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if open > 0 => {
                    self.at += 1;
                    continue;
                }
                b' ' | b'\n' | b'\r' | b'\t' => return None,
                _ => {
                    self.at += bytes[self.at..]
                        .iter()
                        .take_while(|byte| {
                            byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b':' | b'{' | b'}' | b'[' | b']')
                        })
                        .count()
                        .max(1)
                }
            }
            if open == 0 {
                return Some(Kind::Any);
            }
        }
    }

    /// The last value of what is nested.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Option<Place>>) -> Option<Option<Place>> {
        if self.depth == DEPTH {
            return None;
        }
        self.depth += 1;
        self.at += 1;
        let last = read(self);
        self.depth -= 1;
        last
    }

    /// What stands behind a member or an item: whether there is another one.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            byte if byte == end => Some(false),
            _ => None,
        }
    }

    fn structure(&mut self, id: StructId) -> Option<Option<Place>> {
        let types = self.types;
        let fields = &types.get(id).fields;
        // Members stand in the order of the table.
        let mut next = 0;
        self.members(|reader, (start, end)| {
            let name = &reader.outline.text[start as usize..end as usize];
            let at = next + fields.get(next..)?.iter().position(|field| *field.name == *name)?;
            next = at + 1;
            let value = reader.value(&fields[at].shape)?;
            reader.outline.parts[value.at()].field = u32::try_from(at).ok()?;
            Some(value)
        })
    }

    fn map(&mut self, element: &Shape) -> Option<Option<Place>> {
        // Names stand in the order of their bytes; with escapes among them that is hard to see.
        let mut known: Option<(u32, u32)> = None;
        self.members(|reader, (start, end)| {
            let text = reader.outline.text;
            let name = &text[start as usize..end as usize];
            let is_in_order = known.is_none_or(|(start, end)| &text[start as usize..end as usize] < name);
            if !is_in_order || name.contains('\\') {
                return None;
            }
            known = Some((start, end));
            reader.value(element)
        })
    }

    /// The members of an object. `read` is told where the name of one stands.
    fn members(&mut self, mut read: impl FnMut(&mut Self, (u32, u32)) -> Option<Place>) -> Option<Option<Place>> {
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(None);
        }
        let mut last = None;
        loop {
            let start = self.at as u32 + 1;
            self.skip_string()?;
            let name = (start, self.at as u32 - 1);
            self.expect(b':')?;
            let value = read(self, name)?;
            let part = &mut self.outline.parts[value.at()];
            (part.name, part.before) = (name, last);
            last = Some(value);
            if !self.goes_on(b'}')? {
                return Some(last);
            }
        }
    }

    fn array(&mut self, element: &Shape) -> Option<Option<Place>> {
        if self.peek()? == b']' {
            self.at += 1;
            return Some(None);
        }
        let mut last = None;
        loop {
            let item = self.value(element)?;
            self.outline.parts[item.at()].before = last;
            last = Some(item);
            if !self.goes_on(b']')? {
                return Some(last);
            }
        }
    }
}
