//! [`Generator`]: objects of any type of a table, most of whose values are as they should be.
//!
//! An object that is wrong everywhere is refused by whoever looks first. So the names, enumerations and formats that
//! kinds ask for are known here (`tables/words.csv`), and good objects of those whose rules are many
//! (`tables/examples.jsonl`); only now and then something else stands in their place ([`odd_text`]). The same choices
//! give the same object.

mod odd;

use revisor_object::{Object, Value, parse_json};
use revisor_schema::{Alternative, Field, Shape, StructId, Topology, Types};

use crate::Choices;
pub use odd::odd_text;

/// Good values of texts by the names of their fields: `FIELD,WORD|WORD`.
const WORDS: &str = include_str!("../tables/words.csv");

/// Good objects, one in a line, with their kinds.
const EXAMPLES: &str = include_str!("../tables/examples.jsonl");

/// Good values of texts whose fields say nothing.
const PLAIN: &[&str] = &["a", "web", "a.example.com", "a/b", "1", "10.0.0.1", "example.com/a", "some text"];

const KEYS: &[&str] =
    &["a", "app.kubernetes.io/name", "b.c", "cpu", "memory", "requests.cpu", "tls.crt", "limits.memory"];

const QUANTITIES: &[&str] = &["1", "500m", "2Gi", "0", "1e3", "10M"];

const TIMES: &[&str] = &["2024-01-02T03:04:05Z", "2030-12-31T23:59:59+01:00"];

const MICRO_TIMES: &[&str] = &["2024-01-02T03:04:05.000006Z"];

const DURATIONS: &[&str] = &["1s", "1m30s", "24h", "0s"];

const BYTES: &[&str] = &["", "YQ==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="];

/// How many values an object has at most, so that lists within lists come to an end.
const MAX_VALUES: usize = 400;

/// How deep the types of an object lie in each other at most.
const MAX_DEPTH: usize = 12;

/// Makes objects of the types of a table.
#[derive(Debug)]
pub struct Generator<'t, 'd> {
    types: &'t Types,
    choices: Choices<'d>,
    /// How many values may still be made.
    left: usize,
    habits: Habits,
}

/// How often something is done, for one object: once in so many times, or never.
#[derive(Debug, Default)]
struct Habits {
    /// A member is given that need not be. Where of many only one may be given, few are best.
    giving: usize,
    /// A text or a number is odd.
    oddness: usize,
    /// A value is of another type, or a member is missing. Such objects are refused when they are read, so most have
    /// none.
    wrongness: usize,
}

impl Habits {
    fn choose(choices: &mut Choices<'_>) -> Habits {
        Habits {
            giving: *choices.of(&[2, 3, 6, 12, 24]),
            oddness: *choices.of(&[0, 5, 20, 60]),
            wrongness: *choices.of(&[0, 0, 0, 40]),
        }
    }
}

/// The good objects of a kind, without most of their metadata.
pub fn examples(kind: &str) -> impl Iterator<Item = Object> {
    let is_wanted =
        move |line: &&str| line.strip_prefix("{\"kind\":\"").is_some_and(|rest| rest.split('"').next() == Some(kind));
    EXAMPLES.lines().filter(is_wanted).filter_map(|line| match parse_json(line.as_bytes()).ok()?.value {
        Value::Object(example) => Some(example),
        _ => None,
    })
}

impl<'t, 'd> Generator<'t, 'd> {
    /// A generator that decides by these choices.
    pub fn new(types: &'t Types, choices: Choices<'d>) -> Generator<'t, 'd> {
        Generator { types, choices, left: 0, habits: Habits::default() }
    }

    /// An object of this type. Its name is a good one, most of the time.
    pub fn object(&mut self, id: StructId, kind: &str, api_version: &str) -> Object {
        self.left = MAX_VALUES;
        self.habits = Habits::choose(&mut self.choices);
        let mut object = match self.example(kind) {
            Some(example) => self.blemished(id, &example),
            None => self.members(id, 0),
        };
        object.insert("apiVersion", api_version);
        object.insert("kind", kind);
        if object.contains("metadata") && !self.is_wrong() {
            return object;
        }
        if !self.is_wrong() {
            let mut metadata = Object::new();
            let name = self.choices.of(&["a", "my-name", "a.b"]);
            metadata.insert("name", *name);
            for (name, shape) in [("labels", Shape::String), ("annotations", Shape::String)] {
                if self.choices.once_in(3) {
                    metadata.insert(name, self.map(&shape, name, 1));
                }
            }
            object.insert("metadata", metadata);
        }
        object
    }

    /// The object with some of its values changed: others of their types, odd ones, or none.
    pub fn changed(&mut self, id: StructId, object: &Object) -> Object {
        self.left = MAX_VALUES;
        self.blemished(id, object)
    }

    /// One of the good objects of this kind, most of the time.
    fn example(&mut self, kind: &str) -> Option<Object> {
        let count = examples(kind).count();
        if count == 0 || self.choices.once_in(5) {
            return None;
        }
        examples(kind).nth(self.choices.below(count))
    }

    fn blemished(&mut self, id: StructId, object: &Object) -> Object {
        let mut changed = object.clone();
        for _ in 0..self.choices.below(4) {
            self.change(id, &mut changed);
        }
        for _ in 0..self.choices.below(3) {
            self.blemish(&mut changed);
        }
        changed
    }

    /// Gives an object another member, or takes one away, somewhere.
    fn change(&mut self, id: StructId, object: &mut Object) {
        let of = self.types.get(id);
        // What is there is more worth to be changed than what is not.
        let there: Vec<&Field> = of.fields.iter().filter(|field| object.contains(&field.name)).collect();
        let field = match there.as_slice() {
            _ if of.fields.is_empty() => return,
            [] => self.choices.of(&of.fields),
            _ if self.choices.once_in(3) => self.choices.of(&of.fields),
            there => self.choices.of(there),
        };
        if matches!(&*field.name, "kind" | "apiVersion" | "metadata") {
            return;
        }
        let is_inside = !self.choices.once_in(4);
        match (&field.shape, object.get_mut(&field.name)) {
            (Shape::Struct(inner), Some(Value::Object(within))) if is_inside => self.change(*inner, within),
            (Shape::List(item), Some(Value::Array(items))) if is_inside && !items.is_empty() => {
                let at = self.choices.below(items.len());
                if let (Shape::Struct(inner), Value::Object(within)) = (&**item, &mut items[at]) {
                    self.change(*inner, within);
                }
            }
            _ if self.choices.once_in(4) => drop(object.remove(&field.name)),
            _ => {
                let value = self.field(field, 2);
                object.insert(&field.name, value);
            }
        }
    }

    /// Makes one value odd that was good, somewhere; or gives a list one item twice.
    fn blemish(&mut self, object: &mut Object) {
        if object.is_empty() {
            return;
        }
        let at = self.choices.below(object.len());
        let Some((name, value)) = object.iter_mut().nth(at) else { return };
        if matches!(name, "kind" | "apiVersion") {
            return;
        }
        self.blemish_value(value);
    }

    fn blemish_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = odd_text(&mut self.choices, text).into(),
            Value::Object(inner) => self.blemish(inner),
            Value::Array(items) if !items.is_empty() => {
                let at = self.choices.below(items.len());
                if self.choices.once_in(4) {
                    items.push(items[at].clone());
                } else {
                    self.blemish_value(&mut items[at]);
                }
            }
            _ => *value = odd::number(&mut self.choices),
        }
    }

    fn members(&mut self, id: StructId, depth: usize) -> Object {
        let of = self.types.get(id);
        let mut object = Object::new();
        for field in &of.fields {
            // What lies deep is given seldom, what must be given almost always.
            let is_given = if field.required || field.name.as_ref() == "spec" {
                !self.is_wrong()
            } else {
                self.choices.once_in(self.habits.giving + depth)
            };
            if is_given && self.left > 0 {
                let value = self.field(field, depth);
                object.insert(&field.name, value);
            }
        }
        object
    }

    fn field(&mut self, field: &Field, depth: usize) -> Value {
        let mut value = self.value(&field.shape, &field.name, depth);
        // What tells the items of a list apart is sometimes the same.
        if let (Value::Array(items), false) = (&mut value, matches!(field.topology, Topology::Usual))
            && self.choices.once_in(8)
            && let Some(first) = items.first().cloned()
        {
            items.push(first);
        }
        value
    }

    fn value(&mut self, shape: &Shape, name: &str, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if self.is_wrong() {
            return odd::value(&mut self.choices);
        }
        match shape {
            Shape::String => Value::from(self.text(words(name))),
            Shape::Bool => Value::Bool(self.choices.once_in(2)),
            Shape::Int32 | Shape::Int64 | Shape::Double => self.number(),
            Shape::Bytes => Value::from(self.text(Words::Known(BYTES))),
            Shape::Time => Value::from(self.text(Words::Known(TIMES))),
            Shape::MicroTime => Value::from(self.text(Words::Known(MICRO_TIMES))),
            Shape::Duration => Value::from(self.text(Words::Known(DURATIONS))),
            Shape::Quantity => Value::from(self.text(Words::Known(QUANTITIES))),
            Shape::IntOrString if self.choices.once_in(2) => self.number(),
            Shape::IntOrString => Value::from(self.text(Words::Known(&["http", "50%", "1", "80"]))),
            Shape::Any | Shape::Raw => odd::value(&mut self.choices),
            Shape::List(item) => self.list(item, name, depth),
            Shape::Map(item) => Value::Object(self.map(item, name, depth)),
            Shape::Struct(id) => self.within(*id, depth),
            Shape::Either(Alternative::Bool, _) if self.choices.once_in(2) => Value::Bool(true),
            Shape::Either(Alternative::List, id) if self.choices.once_in(2) => {
                Value::Array(vec![self.within(*id, depth)])
            }
            Shape::Either(Alternative::Texts, _) if self.choices.once_in(2) => Value::Array(vec![Value::from("a")]),
            Shape::Either(_, id) => self.within(*id, depth),
        }
    }

    fn within(&mut self, id: StructId, depth: usize) -> Value {
        Value::Object(if depth < MAX_DEPTH { self.members(id, depth + 1) } else { Object::new() })
    }

    fn list(&mut self, item: &Shape, name: &str, depth: usize) -> Value {
        let count = if self.is_odd() { 60 } else { self.choices.below(3) + 1 };
        let mut items = Vec::new();
        while items.len() < count && self.left > 0 {
            items.push(self.value(item, name, depth + 1));
        }
        Value::Array(items)
    }

    fn map(&mut self, item: &Shape, name: &str, depth: usize) -> Object {
        let mut object = Object::new();
        for _ in 0..=self.choices.below(3) {
            let key = self.text(Words::Known(KEYS));
            let value = self.value(item, name, depth + 1);
            object.insert(&key, value);
        }
        object
    }

    fn number(&mut self) -> Value {
        if self.is_odd() {
            return odd::number(&mut self.choices);
        }
        Value::Int(*self.choices.of(&[1, 0, 2, 30, 80, 100, 1000, 8080]))
    }

    fn text(&mut self, words: Words) -> String {
        let good = match words {
            Words::Known(words) => *self.choices.of(words),
            Words::Listed(words) => {
                let count = words.split('|').count();
                let at = self.choices.below(count);
                words.split('|').nth(at).unwrap_or_default()
            }
        };
        if self.is_odd() { odd_text(&mut self.choices, good) } else { good.to_owned() }
    }

    fn is_odd(&mut self) -> bool {
        self.habits.oddness > 0 && self.choices.once_in(self.habits.oddness)
    }

    fn is_wrong(&mut self) -> bool {
        self.habits.wrongness > 0 && self.choices.once_in(self.habits.wrongness)
    }
}

/// Good texts.
enum Words {
    Known(&'static [&'static str]),
    /// As the table has them.
    Listed(&'static str),
}

fn words(field: &str) -> Words {
    let row = WORDS.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(','));
    row.map_or(Words::Known(PLAIN), Words::Listed)
}

#[cfg(test)]
mod tests {
    use revisor_catalog::{Catalog, CatalogOptions};

    use super::*;

    #[test]
    fn the_same_choices_give_the_same_object_and_most_fit_their_type() {
        let catalog = Catalog::build(&CatalogOptions::everything()).expect("everything is there");
        let (mut fitting, mut all) = (0, 0);
        for (resource, number) in catalog.resources().zip(1..) {
            let (types, id) = resource.typed();
            let make = |number| {
                Generator::new(types, Choices::seeded(number)).object(id, &resource.kind, &resource.api_version)
            };
            let object = make(number);
            assert_eq!(object, make(number), "{}", resource.kind);
            assert!(object.contains("kind"));
            all += 1;
            fitting += usize::from(resource.conform(&mut Value::Object(object)).is_ok());
        }
        assert!(all > 80 && fitting * 2 > all, "{fitting} of {all}");
    }
}
