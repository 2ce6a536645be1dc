//! [`Walk`]: the schema of a version before and after, node by node. What differs is shown by an object where one can be
//! found (`stage.rs`), and is additive where none can.

use std::collections::BTreeSet;

use revisor_convert::{Conversion, Generator, Path};
use revisor_object::{FieldPath, Object, Value};
use revisor_schema::{Additional, JsonType, ListType, Structural, Validator};

use crate::budget::Budget;
use crate::crd::{Crd, Version};
use crate::keywords::{Keyword, was};
use crate::reduction::{bare, reduced, silent};
use crate::stage::{Search, Sent, Side, Stage, all_at, schema_at};
use crate::values::{telling_text, telling_values};
use crate::{Class, Effort, Finding};

/// How deep schemas are compared.
const MAX_DEPTH: usize = 64;

/// Two schemas to compare: of one version before and after, or of two versions.
pub(crate) struct Scene<'a> {
    pub(crate) crd: &'a Crd,
    pub(crate) old: &'a Version,
    pub(crate) new: &'a Version,
    pub(crate) conversion: Option<&'a Conversion>,
    pub(crate) effort: Effort,
    pub(crate) budget: &'a Budget,
    /// What to say first, if these are two versions.
    pub(crate) of_pair: Option<String>,
    /// The same two versions in the other definition, if only that is of interest in which the definitions differ.
    pub(crate) beside: Option<Beside>,
}

/// Two versions in two definitions, without what they say to people.
pub(crate) struct Beside {
    /// In the one that is looked at.
    here: [Structural; 2],
    /// In the other one.
    there: [Structural; 2],
}

impl Beside {
    pub(crate) fn new(here: [&Version; 2], there: [&Version; 2]) -> Beside {
        let silent = |version: &Version| silent(&version.structural);
        Beside { here: here.map(silent), there: there.map(silent) }
    }

    /// Whether the two versions differ at a path, and below it, by the same in both definitions: what each of them says
    /// there, be it nothing, is the same, and so is what an object must have beside it to have it. Whatever an object
    /// shows of the difference here, it shows there.
    fn is_same_at(&self, path: &Path) -> bool {
        self.here.iter().zip(&self.there).all(|(here, there)| {
            let reduced = |schema| reduced(schema, path, &BTreeSet::new());
            schema_at(here, path) == schema_at(there, path) && reduced(here) == reduced(there)
        })
    }
}

/// A walk through two schemas, and what was found so far.
pub(crate) struct Walk<'a, 's> {
    pub(crate) stage: Stage<'a>,
    pub(crate) effort: Effort,
    scene: &'s Scene<'a>,
    findings: Vec<Finding>,
    /// Where only what is told to people differs.
    retold: Vec<Path>,
}

impl Scene<'_> {
    /// Whether the witness of a finding has something at its path that is not there after.
    pub(crate) fn is_lost(&self, finding: &Finding) -> bool {
        let Scene { crd, old, new, budget, .. } = *self;
        let stage = Stage { crd, old, new, conversion: None, budget };
        let path = if finding.path == "." { Ok(Path::root()) } else { finding.path.parse() };
        let (Some(witness), Ok(path)) = (&finding.witness, path) else { return false };
        let there = all_at(witness, &path);
        !there.is_empty() && there != all_at(&stage.prepared_after(witness), &path)
    }
}

/// What the difference of two schemas does.
pub(crate) fn compare(scene: &Scene<'_>) -> Vec<Finding> {
    let Scene { crd, old, new, conversion, effort, budget, .. } = *scene;
    let conversion = conversion.filter(|_| scene.of_pair.is_none());
    let stage = Stage { crd, old, new, conversion, budget };
    let mut walk = Walk { stage, effort, scene, findings: Vec::new(), retold: Vec::new() };
    walk.preserving();
    walk.node(&Path::root(), &old.structural, &new.structural, None);
    if let Some(first) = walk.retold.first().cloned() {
        let message = match walk.retold.len() {
            1 => "what it says to people is another".to_owned(),
            count => format!("what it says to people is another, here and at {} other places", count - 1),
        };
        walk.additive(&first, message);
    }
    walk.findings
}

impl Walk<'_, '_> {
    fn node(&mut self, path: &Path, old: &Structural, new: &Structural, holder: Option<(&Path, &str)>) {
        if old == new || path.segments().len() > MAX_DEPTH || self.is_known(path) {
            return;
        }
        if (&old.description, &old.title, &old.notes) != (&new.description, &new.title, &new.notes) {
            self.retold.push(path.clone());
        }
        if let Some((holder, name)) = holder.filter(|_| old.default != new.default) {
            self.default(path, holder, name, old, new);
        }
        if old.nullable != new.nullable {
            self.nullable(path, old, new);
        }
        if (old.kind, old.is_int_or_string) != (new.kind, new.is_int_or_string) && !self.kind(path, old, new) {
            return;
        }
        for keyword in Keyword::ALL {
            if !keyword.is_same(old, new) {
                self.keyword(path, keyword, old, new);
            }
        }
        self.list_type(path, old, new);
        self.object(path, old, new);
        self.rules(path, old, new);
        if let (Some(old), Some(new)) = (&old.items, &new.items) {
            self.node(&path.every(), old, new, None);
        }
    }

    /// Whether what differs at a path, and below it, is not of interest, because it is so in the other definition too.
    fn is_known(&self, path: &Path) -> bool {
        self.scene.beside.as_ref().is_some_and(|beside| beside.is_same_at(path))
    }

    /// Compares the types; answers whether there is more to compare.
    fn kind(&mut self, path: &Path, old: &Structural, new: &Structural) -> bool {
        let name = |schema: &Structural| match (schema.kind, schema.is_int_or_string) {
            (_, true) => "int-or-string",
            (Some(kind), _) => kind.as_str(),
            (None, _) => "anything",
        };
        let message = format!("its type is {} now, and was {}", name(new), name(old));
        let is_number = |schema: &Structural| matches!(schema.kind, Some(JsonType::Integer | JsonType::Number));
        let values = telling_values(&self.stage, old, new);
        let (takes_old, takes_new) = (Taker::of(&bare(old), self.stage.crd), Taker::of(&bare(new), self.stage.crd));
        let narrower: Vec<Value> =
            values.iter().filter(|value| takes_old.takes(value) && !takes_new.takes(value)).cloned().collect();
        if !narrower.is_empty() {
            let stage = &self.stage;
            let shows = |object: &Value| stage.is_refused_at(object, path);
            let search = stage.search(Side::Old, path, &narrower, &shows);
            self.judged(path, Class::BreaksWriters, message, search);
        } else {
            let wider: Vec<Value> =
                values.iter().filter(|value| takes_new.takes(value) && !takes_old.takes(value)).cloned().collect();
            let stage = &self.stage;
            let shows = |object: &Value| stage.is_newly_accepted(object, path);
            let search = stage.search(Side::New, path, &wider, &shows);
            self.judged(path, Class::BreaksReaders, message, search);
        }
        is_number(old) && is_number(new) || old.kind == new.kind
    }

    fn keyword(&mut self, path: &Path, keyword: Keyword, old: &Structural, new: &Structural) {
        let stage = &self.stage;
        let message = keyword.told(old, new);
        let mut mixed = bare(old);
        keyword.put(&mut mixed, new);
        let (takes_old, takes_mixed) = (Taker::of(&bare(old), stage.crd), Taker::of(&mixed, stage.crd));
        let mut values = telling_values(stage, old, new);
        let mut is_undecided = false;
        if keyword == Keyword::Pattern {
            match telling_text(stage.budget, old, new) {
                Ok(Some(text)) => values.insert(0, Value::from(text)),
                // Whatever the first matches, the other does.
                Ok(None) => values.clear(),
                Err(_) => is_undecided = true,
            }
        }
        let is_narrow = |value: &Value| takes_old.takes(value) && !takes_mixed.takes(value);
        let narrower: Vec<Value> = values.iter().filter(|value| is_narrow(value)).cloned().collect();
        if !narrower.is_empty() {
            let shows =
                |object: &Value| all_at(object, path).into_iter().any(is_narrow) && stage.is_refused_at(object, path);
            let search = stage.search(Side::Old, path, &narrower, &shows);
            self.judged(path, Class::BreaksWriters, message.clone(), search);
        } else if keyword.is_narrower_for_the_large(old, new) {
            let message = format!("{message}; what shows it is too large to be shown");
            self.broken(path, Class::BreaksWriters, message, None);
            return;
        }
        let stage = &self.stage;
        let is_wide = |value: &Value| !takes_old.takes(value) && takes_mixed.takes(value);
        let wider: Vec<Value> = values.iter().filter(|value| is_wide(value)).cloned().collect();
        // A bound that is wider shows more of the same; a value that nobody knew is something else.
        if keyword == Keyword::Enum && !wider.is_empty() {
            let shows =
                |object: &Value| all_at(object, path).into_iter().any(is_wide) && stage.is_newly_accepted(object, path);
            let search = stage.search(Side::New, path, &wider, &shows);
            self.judged(path, Class::BreaksReaders, message, search);
        } else if narrower.is_empty() {
            let message = match is_undecided {
                true => format!("{message}; whether it matches less is undecided: the patterns are too large"),
                false => message,
            };
            self.additive(path, message);
        }
    }

    fn nullable(&mut self, path: &Path, old: &Structural, new: &Structural) {
        let (side, message) = match new.nullable {
            true => (Side::New, "null is a value now, and was none"),
            false => (Side::Old, "null is no value any more"),
        };
        if matches!((old.nullable, new.nullable), (true, false)) {
            let stage = &self.stage;
            let shows = |object: &Value| stage.is_refused_at(object, path);
            if let Search::Found(witness) = stage.search(side, path, &[Value::Null], &shows) {
                return self.broken(path, Class::BreaksWriters, message.to_owned(), Some(witness));
            }
        }
        let stage = &self.stage;
        let shows = |object: &Value| stage.shows_otherwise(object, path) || stage.is_newly_accepted(object, path);
        let search = stage.search(side, path, &[Value::Null], &shows);
        self.judged(path, Class::BreaksReaders, message.to_owned(), search);
    }

    fn default(&mut self, path: &Path, holder: &Path, name: &str, old: &Structural, new: &Structural) {
        let text = |schema: &Structural| schema.default.as_ref().map(Value::to_json);
        let message = was("default", text(old).as_deref(), text(new).as_deref());
        let stage = &self.stage;
        let shows = |object: &Value| stage.shows_otherwise(object, path);
        match stage.search_without(Side::Old, holder, name, &shows) {
            Search::Found(witness) if stage.is_refused_at(&witness, path) => {
                self.broken(path, Class::BreaksWriters, message, Some(witness));
            }
            Search::Nothing => self.additive(path, message),
            search => self.judged(path, Class::BreaksReaders, message, search),
        }
    }

    fn list_type(&mut self, path: &Path, old: &Structural, new: &Structural) {
        if (old.list_type, &old.list_map_keys) == (new.list_type, &new.list_map_keys) {
            return;
        }
        let name = |schema: &Structural| match schema.list_type {
            Some(ListType::Map) => format!("a map by {}", schema.list_map_keys.join(", ")),
            Some(ListType::Set) => "a set".to_owned(),
            Some(ListType::Atomic) | None => "atomic".to_owned(),
        };
        let message = format!("the list is {} now, and was {}", name(new), name(old));
        let (before, after) = (name(old), name(new));
        if before == after {
            // Lists are atomic that say nothing else of themselves.
            return self.retold.push(path.clone());
        }
        let values = telling_values(&self.stage, old, new);
        let stage = &self.stage;
        if after != "atomic" {
            let shows = |object: &Value| stage.is_refused_at(object, path);
            if let Search::Found(witness) = stage.search(Side::Old, path, &values, &shows) {
                return self.broken(path, Class::BreaksWriters, message, Some(witness));
            }
        }
        if before == "atomic" {
            return self.additive(path, message);
        }
        let message = format!("{message}: who applies some of its items owns others than before");
        let is_full = |object: &Value| {
            let lists = all_at(object, path);
            lists.iter().any(|list| list.as_array().is_some_and(|items| !items.is_empty()))
                && matches!(stage.before(object), Sent::Shown(_))
        };
        let search = stage.search(Side::Old, path, &values, &is_full);
        self.judged(path, Class::BreaksWriters, message, search);
    }

    /// Compares what an object may have.
    fn object(&mut self, path: &Path, old: &Structural, new: &Structural) {
        if old.is_atomic_map != new.is_atomic_map {
            self.map_type(path, new.is_atomic_map);
        }
        if old.is_embedded_resource != new.is_embedded_resource {
            self.embedded_resource(path, new.is_embedded_resource);
        }
        if old.preserves_unknown_fields && !new.preserves_unknown_fields {
            self.unknown_fields(path, old);
        } else if new.preserves_unknown_fields && !old.preserves_unknown_fields {
            self.additive(path, "unknown fields are kept now".to_owned());
        }
        self.additional(path, old, new);
        for (name, property) in &old.properties {
            let member = path.member(name);
            match new.property(name) {
                Some(other) => self.node(&member, property, other, Some((path, name))),
                None if self.is_known(&member) => {}
                None => self.removed(&member, property),
            }
        }
        let is_required = |schema: &Structural, name: &str| {
            schema.checks.as_ref().is_some_and(|checks| checks.required.iter().any(|required| **required == *name))
        };
        for (name, property) in &new.properties {
            let member = path.member(name);
            if old.property(name).is_none() && !self.is_known(&member) {
                self.added(&member, old, property, is_required(new, name));
            }
        }
        let required = |schema: &Structural| schema.checks.as_ref().map(|checks| checks.required.clone());
        let (before, after) = (required(old).unwrap_or_default(), required(new).unwrap_or_default());
        for name in after.iter().filter(|name| !before.contains(name)) {
            let member = path.member(name);
            let stage = &self.stage;
            let shows = |object: &Value| stage.is_refused_at(object, &member);
            let search = stage.search_without(Side::Old, path, name, &shows);
            let what = if old.property(name).is_some() { "is required now" } else { "is new and required" };
            self.judged(&member, Class::BreaksWriters, format!("the field {what}"), search);
        }
        for name in before.iter().filter(|name| !after.contains(name) && new.property(name).is_some()) {
            let member = path.member(name);
            let stage = &self.stage;
            let shows = |object: &Value| stage.is_newly_accepted(object, &member);
            let search = stage.search_without(Side::New, path, name, &shows);
            let message = "the field is optional now, and was always there".to_owned();
            self.judged(&member, Class::BreaksReaders, message, search);
        }
    }

    fn removed(&mut self, path: &Path, property: &Structural) {
        let stage = &self.stage;
        let mut generator = Generator::new(stage.old.schema(stage.crd), &[], 4);
        let values: Vec<Value> =
            generator.values(property).into_iter().filter(|value| !value.is_null()).take(12).collect();
        let message = "the field is gone".to_owned();
        let carried = |object: &Value| {
            let canonical = stage.canonical(object);
            all_at(&canonical, path).is_empty() && !all_at(object, path).is_empty()
        };
        let shows = |object: &Value| stage.shows_otherwise(object, path);
        match stage.search(Side::Old, path, &values, &shows) {
            Search::Found(witness) if carried(&witness) => {
                self.additive(path, format!("{message}; the Conversion carries it over"));
            }
            search => self.judged(path, Class::BreaksReaders, message, search),
        }
    }

    fn added(&mut self, path: &Path, holder: &Structural, property: &Structural, is_required: bool) {
        let is_open = holder.preserves_unknown_fields || holder.additional.is_some() || self.stage.old.is_preserving;
        if is_open {
            let takes = Taker::of(&bare(property), self.stage.crd);
            let mut values = vec![Value::Int(1), Value::from("a"), Value::Bool(true), Value::Array(Vec::new())];
            values.push(Value::Object(Object::new()));
            values.retain(|value| !takes.takes(value));
            let stage = &self.stage;
            let shows = |object: &Value| stage.is_refused_at(object, path);
            if let Search::Found(witness) = stage.search(Side::Old, path, &values, &shows) {
                let message = "the field has a shape now, and was kept whatever it was".to_owned();
                return self.broken(path, Class::BreaksWriters, message, Some(witness));
            }
        }
        if !is_required {
            self.additive(path, "the field is new".to_owned());
        }
    }

    fn additional(&mut self, path: &Path, old: &Structural, new: &Structural) {
        match (&old.additional, &new.additional) {
            (Some(Additional::Schema(old)), Some(Additional::Schema(new))) => {
                self.node(&path.every(), old, new, None);
            }
            (old, new) if old == new => {}
            (None | Some(Additional::Allowed(false)), Some(_)) => {
                self.additive(path, "it may have members of any name now".to_owned());
            }
            (Some(Additional::Allowed(true)), Some(Additional::Schema(_))) => {
                let odd = [Value::Int(1), Value::from("a"), Value::Bool(true), Value::Array(Vec::new())];
                let values: Vec<Value> = odd.into_iter().map(|value| one("k", value)).collect();
                let stage = &self.stage;
                let members = path.every();
                let shows = |object: &Value| stage.is_refused_at(object, &members);
                let search = stage.search(Side::Old, path, &values, &shows);
                let message = "its members have a shape now, and were kept whatever they were".to_owned();
                self.judged(path, Class::BreaksWriters, message, search);
            }
            (_, _) => {
                let stage = &self.stage;
                let mut generator = Generator::new(stage.old.schema(stage.crd), &[], 4);
                let values: Vec<Value> = generator.values(old).into_iter().chain([one("k", Value::Int(1))]).collect();
                let shows = |object: &Value| stage.shows_otherwise(object, path) || stage.is_refused_at(object, path);
                let search = stage.search(Side::Old, path, &values, &shows);
                let message = "members of other names are no longer kept".to_owned();
                self.judged(path, Class::BreaksReaders, message, search);
            }
        }
    }

    fn unknown_fields(&mut self, path: &Path, old: &Structural) {
        let stage = &self.stage;
        let mut generator = Generator::new(stage.old.schema(stage.crd), &[], 4);
        let mut values = vec![one("unknown", Value::Int(1))];
        if let Value::Object(mut least) = generator.least(old) {
            least.insert("unknown", Value::Int(1));
            values.push(Value::Object(least));
        }
        let shows = |object: &Value| stage.shows_otherwise(object, path);
        let search = stage.search(Side::Old, path, &values, &shows);
        let message = "fields that the schema does not name are no longer kept".to_owned();
        self.judged(path, Class::BreaksReaders, message, search);
    }

    /// `spec.preserveUnknownFields`.
    fn preserving(&mut self) {
        if !self.stage.old.is_preserving || self.stage.new.is_preserving {
            return;
        }
        let stage = &self.stage;
        let path = Path::root().member("unknown");
        let shows = |object: &Value| stage.shows_otherwise(object, &path);
        let search = stage.search(Side::Old, &path, &[Value::Int(1)], &shows);
        let message = "preserveUnknownFields is no longer true: fields that the schema does not name are not kept";
        self.judged(&Path::root(), Class::BreaksReaders, message.to_owned(), search);
    }

    fn map_type(&mut self, path: &Path, is_atomic: bool) {
        if !is_atomic {
            return self.additive(path, "the object is no longer atomic".to_owned());
        }
        let stage = &self.stage;
        let shows = |object: &Value| !all_at(object, path).is_empty() && matches!(stage.before(object), Sent::Shown(_));
        let search = stage.search(Side::Old, path, &[Value::Object(Object::new())], &shows);
        let message = "the object is atomic now: who applies some of its members owns all of them".to_owned();
        self.judged(path, Class::BreaksWriters, message, search);
    }

    fn embedded_resource(&mut self, path: &Path, is_embedded: bool) {
        if !is_embedded {
            return self.additive(path, "it need not be an object of the API any more".to_owned());
        }
        let stage = &self.stage;
        let shows = |object: &Value| !all_at(object, path).is_empty() && matches!(stage.before(object), Sent::Shown(_));
        let search = stage.search(Side::Old, path, &[Value::Object(Object::new())], &shows);
        let message = "it must be an object of the API now, with apiVersion, kind and metadata".to_owned();
        self.judged(path, Class::BreaksWriters, message, search);
    }

    /// What a search for a witness says of a difference that was suspected of breaking somebody.
    pub(crate) fn judged(&mut self, path: &Path, class: Class, message: String, search: Search) {
        match search {
            Search::Found(witness) => self.broken(path, class, message, Some(witness)),
            Search::Nothing => self.additive(path, format!("{message}; no object can show it")),
            Search::Unreached => {
                self.broken(path, class, format!("{message}; no valid object was found that has such a place"), None);
            }
            Search::CutShort => {
                self.broken(
                    path,
                    class,
                    format!("{message}; the search for an object that shows it was cut short"),
                    None,
                );
            }
        }
    }

    pub(crate) fn additive(&mut self, path: &Path, message: String) {
        // Between two versions only what breaks is of interest.
        if self.scene.of_pair.is_none() {
            self.push(path, Class::Additive, message, None);
        }
    }

    pub(crate) fn broken(&mut self, path: &Path, class: Class, message: String, witness: Option<Value>) {
        let shown = witness.as_ref().filter(|_| class == Class::BreaksWriters);
        let reason = shown.and_then(|witness| self.stage.reason(witness, path));
        let reason = reason.map(|reason| format!("; it is refused: {reason}"));
        self.push(path, class, format!("{message}{}", reason.unwrap_or_default()), witness);
    }

    fn push(&mut self, path: &Path, class: Class, message: String, witness: Option<Value>) {
        let message = match &self.scene.of_pair {
            Some(pair) => format!("{pair}: {message}"),
            None => message,
        };
        let mut finding = self.stage.crd.finding(Some(self.stage.old), &path.to_string(), class, message);
        finding.witness = witness;
        self.findings.push(finding);
    }
}

/// A schema that takes values or does not, whatever stands around them.
struct Taker(Validator);

impl Taker {
    fn of(schema: &Structural, crd: &Crd) -> Taker {
        Taker(Validator::compile(schema, crd.minor))
    }

    fn takes(&self, value: &Value) -> bool {
        self.0.validate(&FieldPath::none(), value).is_empty()
    }
}

fn one(name: &str, value: Value) -> Value {
    Value::Object([(name, value)].into_iter().collect())
}
