//! [`DisabledFields`]: the fields of a resource whose feature is off. They are dropped from what is written, unless the
//! old object uses the feature already. Upstream: the `dropDisabledFields` of each kind.
//!
//! Which fields belong to which feature is said by `tables/disabled_fields.csv`, one feature of one type in a row. The
//! type is named without its version. One that is a kind is meant at the root of its own objects; any other, such as the
//! spec of pods, wherever it stands. `a|b` means both members, `[*]` all items of a list or all values of a map. The last
//! column names what shows that the old object uses the feature, where that is not the fields themselves.
//!
//! Fields that leave more behind than a hole when they go (the mounts of a volume, an empty hook) are dropped by the code
//! of their type ([`DroppedByCode`]).

use std::fmt;
use std::sync::{Arc, OnceLock};

use compact_str::CompactString;
use revisor_object::{Object, Value};
use revisor_schema::{Shape, Struct, StructId, Types};

use crate::kinds::pod_spec;
use crate::{Feature, Features};

const TABLE: &str = include_str!("../tables/disabled_fields.csv");

/// What is dropped from the objects of one resource.
#[derive(Default)]
pub(crate) struct DisabledFields {
    /// Of what the rules are made; custom resources have none.
    of: Option<(Arc<Types>, StructId, Features)>,
    /// Made when the first object is written: to find them is to go through everything that a kind is made of, and most
    /// kinds are never written.
    rules: OnceLock<Vec<Rule>>,
}

/// What is dropped of one feature.
#[derive(Debug)]
enum Rule {
    /// Fields, unless one of `in_use` is given in the old object.
    Fields { fields: Vec<Path>, in_use: Vec<Path> },
    /// What the code of a type says, at the place where the type stands.
    ByCode { place: Path, of: &'static DroppedByCode },
}

/// A feature whose fields leave more behind than a hole when they go, for values of one type.
#[derive(Debug)]
pub(crate) struct DroppedByCode {
    pub(crate) feature: Feature,
    /// Whether a value uses the feature.
    pub(crate) is_in_use: fn(&Object) -> bool,
    /// Takes the feature out of a value.
    pub(crate) drop: fn(&mut Object),
}

/// The types that have such features.
const BY_CODE: &[(&str, &[DroppedByCode])] = &[("core.v1.PodSpec", pod_spec::DISABLED)];

type Path = Vec<Step>;

/// A step on the way to a field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The member with this name.
    Member(CompactString),
    /// Every item of a list, or every value of a map.
    Each,
}

impl DisabledFields {
    /// What is off in the objects of a kind.
    pub(crate) fn of(types: &Arc<Types>, kind: StructId, features: Features) -> DisabledFields {
        DisabledFields { of: Some((types.clone(), kind, features)), rules: OnceLock::new() }
    }

    fn rules(&self) -> &[Rule] {
        let Some((types, kind, features)) = &self.of else { return &[] };
        self.rules.get_or_init(|| {
            let rows: Vec<Row> = rows().collect();
            let mut gatherer =
                Gatherer { types, rows: &rows, features: *features, around: Vec::new(), rules: Vec::new() };
            gatherer.gather(*kind, &mut Path::new());
            gatherer.rules
        })
    }

    /// Drops it from an object, new or in place of the old one.
    pub(crate) fn drop(&self, object: &mut Object, old: Option<&Object>) {
        for rule in self.rules() {
            match rule {
                Rule::Fields { fields, in_use } => {
                    if !old.is_some_and(|old| in_use.iter().any(|path| is_given(old, path))) {
                        fields.iter().for_each(|path| remove(object, path));
                    }
                }
                Rule::ByCode { place, of } => {
                    if !old.and_then(|old| at(old, place)).is_some_and(of.is_in_use)
                        && let Some(value) = at_mut(object, place)
                    {
                        (of.drop)(value);
                    }
                }
            }
        }
    }
}

impl fmt::Debug for DisabledFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DisabledFields").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Goes through a kind and the types that it is made of, and makes rules of the rows that are about them.
struct Gatherer<'a> {
    types: &'a Types,
    rows: &'a [Row],
    features: Features,
    /// The types around the one that is looked at. Some are made of themselves.
    around: Vec<StructId>,
    rules: Vec<Rule>,
}

impl Gatherer<'_> {
    fn gather(&mut self, id: StructId, place: &mut Path) {
        let this = self.types.get(id);
        let is_part = !self.around.is_empty();
        if self.around.contains(&id) || is_part && is_kind(this) {
            return;
        }
        let about_this = self.rows.iter().filter(|row| row.is_about(this));
        self.rules.extend(about_this.clone().filter(|row| row.is_off(self.features)).map(|row| row.rule_at(place)));
        let by_code = BY_CODE.iter().filter(|(name, _)| *name == &*this.name).flat_map(|(_, features)| *features);
        let off = by_code.filter(|of| !self.features.has(of.feature));
        self.rules.extend(off.map(|of| Rule::ByCode { place: place.clone(), of }));
        // Features within features have rows of their own at the outer type.
        if is_part && about_this.count() > 0 {
            return;
        }
        self.around.push(id);
        for field in &this.fields {
            let (shape, is_each) = match &field.shape {
                Shape::List(of) | Shape::Map(of) => (&**of, true),
                shape => (shape, false),
            };
            if let Shape::Struct(id) = shape {
                let length = place.len();
                place.push(Step::Member(CompactString::from(&*field.name)));
                place.extend(is_each.then_some(Step::Each));
                self.gather(*id, place);
                place.truncate(length);
            }
        }
        self.around.pop();
    }
}

/// Whether objects of a type stand by themselves.
fn is_kind(of: &Struct) -> bool {
    of.field("apiVersion").is_some() && of.field("metadata").is_some()
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    package: &'static str,
    name: &'static str,
    feature: &'static str,
    fields: &'static str,
    in_use: &'static str,
}

/// The rows of the table.
fn rows() -> impl Iterator<Item = Row> {
    TABLE.lines().skip(1).filter_map(Row::parse)
}

impl Row {
    fn parse(line: &'static str) -> Option<Row> {
        let mut cells = line.split(',');
        let (package, name) = cells.next()?.split_once('.')?;
        Some(Row { package, name, feature: cells.next()?, fields: cells.next()?, in_use: cells.next()? })
    }

    fn is_off(&self, features: Features) -> bool {
        Feature::named(self.feature).is_some_and(|feature| !features.has(feature))
    }

    /// Whether it is about this type, in any version.
    fn is_about(&self, of: &Struct) -> bool {
        let inside = of.name.strip_prefix(self.package).and_then(|rest| rest.strip_suffix(self.name));
        inside.is_some_and(|version| version.starts_with('.') && version.ends_with('.'))
    }

    /// The rule for a value of its type at this place.
    fn rule_at(&self, place: &[Step]) -> Rule {
        let below = |paths: &'static str| -> Vec<Path> {
            paths_of(paths).map(|path| place.iter().cloned().chain(path).collect()).collect()
        };
        let fields = below(self.fields);
        let in_use = if self.in_use.is_empty() { fields.clone() } else { below(self.in_use) };
        Rule::Fields { fields, in_use }
    }
}

/// The paths that a cell names.
fn paths_of(cell: &'static str) -> impl Iterator<Item = Path> {
    cell.split(' ').flat_map(|path| {
        path.split('.').fold(vec![Path::new()], |paths, part| {
            let (names, is_each) = part.strip_suffix("[*]").map_or((part, false), |names| (names, true));
            let steps = |name: &str| {
                [Step::Member(name.into())].into_iter().chain(is_each.then_some(Step::Each)).collect::<Path>()
            };
            let longer = |path: &Path| names.split('|').map(|name| [path.clone(), steps(name)].concat()).collect();
            paths.iter().flat_map(|path| -> Vec<Path> { longer(path) }).collect()
        })
    })
}

/// The object at a place that no list or map leads to.
fn at<'a>(object: &'a Object, place: &[Step]) -> Option<&'a Object> {
    place.iter().try_fold(object, |object, step| match step {
        Step::Member(name) => object.object(name),
        Step::Each => None,
    })
}

/// The same, to change it.
fn at_mut<'a>(object: &'a mut Object, place: &[Step]) -> Option<&'a mut Object> {
    place.iter().try_fold(object, |object, step| match step {
        Step::Member(name) => object.get_mut(name).and_then(Value::as_object_mut),
        Step::Each => None,
    })
}

/// Whether something is given at a path. Lists and maps without anything in them are as good as none.
fn is_given(object: &Object, path: &[Step]) -> bool {
    let [Step::Member(name), rest @ ..] = path else { return false };
    let Some(value) = object.get(name) else { return false };
    match rest {
        [] => !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()),
        [Step::Each] => is_any(value, |_| true),
        [Step::Each, rest @ ..] => is_any(value, |item| item.as_object().is_some_and(|item| is_given(item, rest))),
        rest => value.as_object().is_some_and(|object| is_given(object, rest)),
    }
}

fn is_any(value: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds),
        Value::Object(entries) => entries.iter().any(|(_, value)| holds(value)),
        _ => false,
    }
}

/// Removes what is at a path.
fn remove(object: &mut Object, path: &[Step]) {
    let [Step::Member(name), rest @ ..] = path else { return };
    if rest.is_empty() {
        object.remove(name);
        return;
    }
    let Some(value) = object.get_mut(name) else { return };
    match (rest, value) {
        ([Step::Each, rest @ ..], Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| remove(item, rest));
        }
        ([Step::Each, rest @ ..], Value::Object(entries)) => {
            entries.iter_mut().filter_map(|(_, value)| value.as_object_mut()).for_each(|entry| remove(entry, rest));
        }
        (rest, Value::Object(object)) => remove(object, rest),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
