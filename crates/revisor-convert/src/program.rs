//! [`Node`]: what becomes of a value on its way to another version. Compiled once for each direction of a step, and run
//! over borrowed values: what does not change is copied as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;
use revisor_cel::{Activation, Budget, CelValue, EvalError, Program};
use revisor_object::{Object, Value};
use revisor_schema::Structural;

/// Names that lead from a scope to a place in it.
pub(crate) type Names = Box<[Box<str>]>;

/// What becomes of a value.
#[derive(Debug)]
pub(crate) enum Node {
    /// It stays as it is.
    Same,
    /// Members go their own ways.
    Object(Box<ObjectNode>),
    /// Every item goes this way.
    List(Box<Node>),
    /// It is called something else.
    Values(Box<ValueMap>),
    /// It becomes a list of one.
    Wrap(Box<Node>),
    /// It is a list, and its first becomes this.
    First(Box<Node>),
    /// Rules move things about in it.
    Scope(Box<Scope>),
}

/// What becomes of the members of an object.
#[derive(Debug)]
pub(crate) struct ObjectNode {
    /// By name; `None` for those that do not stay at their place.
    pub(crate) members: Vec<(Box<str>, Option<Node>)>,
    /// What becomes of all others; `None` if they do not come along.
    pub(crate) others: Option<Node>,
}

/// A value whose parts change places: the whole object, or an item of a list.
#[derive(Debug)]
pub(crate) struct Scope {
    /// What stays at its place; nothing if the value as a whole has another place.
    pub(crate) base: Option<Node>,
    pub(crate) moves: Vec<Move>,
}

/// What a rule does within a scope.
#[derive(Debug)]
pub(crate) struct Move {
    /// The rule, as a number in its step.
    pub(crate) rule: usize,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// A value goes from here to there.
    Link { from: Names, to: Names, node: Node },
    /// A value is filled in, if the first so many steps to it are there.
    Fill { to: Names, needs: usize, value: Value },
    /// Values are computed of others.
    Compute(Computation),
}

/// Expressions, and what they read.
#[derive(Debug)]
pub(crate) struct Computation {
    pub(crate) reads: Vec<Read>,
    pub(crate) writes: Vec<(Names, Program)>,
}

impl Computation {
    /// Hands on what each expression makes, if all that they read is set.
    pub(crate) fn run(&self, scopes: &[&Value], mut write: impl FnMut(&Names, Value)) -> Result<(), EvalError> {
        let Some(values) = read_all(&self.reads, scopes)? else { return Ok(()) };
        for (to, program) in &self.writes {
            write(to, program.evaluate(&values, &mut Budget::default())?.to_json()?);
        }
        Ok(())
    }
}

/// A variable of an expression.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) name: String,
    /// In which of the scopes around it stands, from the outside.
    pub(crate) level: usize,
    pub(crate) path: Names,
    pub(crate) schema: Arc<Structural>,
}

/// Values by others.
#[derive(Debug, Default)]
pub(crate) struct ValueMap {
    texts: HashMap<CompactString, Value>,
    others: Vec<(Value, Value)>,
}

impl ValueMap {
    /// Adds a value, unless it is there already: of several, the first counts.
    pub(crate) fn add(&mut self, from: Value, to: Value) {
        match from {
            Value::String(text) => {
                self.texts.entry(text).or_insert(to);
            }
            other if self.others.iter().all(|(known, _)| *known != other) => self.others.push((other, to)),
            _ => {}
        }
    }

    /// What a value becomes. One that the map does not know stays what it is.
    pub(crate) fn get<'m>(&'m self, value: &'m Value) -> &'m Value {
        match value {
            Value::String(text) => self.texts.get(text).unwrap_or(value),
            other => self.others.iter().find(|(known, _)| known == other).map_or(value, |(_, to)| to),
        }
    }
}

/// Why a value cannot be converted: an expression failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The rule, as a number in its step.
    pub(crate) rule: usize,
    pub(crate) error: EvalError,
}

impl Node {
    /// Converts a whole object.
    pub(crate) fn run(&self, object: &Value) -> Result<Value, Failure> {
        Ok(self.convert(object, &mut vec![object])?.unwrap_or_default())
    }

    /// Converts a value. `scopes` are the objects and items around it, one for each list that it stands in.
    fn convert<'v>(&self, value: &'v Value, scopes: &mut Vec<&'v Value>) -> Result<Option<Value>, Failure> {
        Ok(Some(match (self, value) {
            (Node::Object(node), Value::Object(object)) => Value::Object(node.convert(object, scopes)?),
            (Node::List(node), Value::Array(items)) => {
                let mut made = Vec::with_capacity(items.len());
                for item in items {
                    made.push(node.inside(item, scopes)?.unwrap_or_default());
                }
                Value::Array(made)
            }
            (Node::Values(map), value) => map.get(value).clone(),
            (Node::Wrap(_), Value::Null) => Value::Null,
            (Node::Wrap(node), value) => Value::Array(vec![node.convert(value, scopes)?.unwrap_or_default()]),
            (Node::First(node), Value::Array(items)) => match items.first() {
                Some(first) => return node.inside(first, scopes),
                None => return Ok(None),
            },
            (Node::Scope(scope), value) => return scope.convert(value, scopes),
            (Node::Same | Node::Object(_) | Node::List(_) | Node::First(_), value) => value.clone(),
        }))
    }

    /// Converts an item of a list or a value of a map.
    fn inside<'v>(&self, item: &'v Value, scopes: &mut Vec<&'v Value>) -> Result<Option<Value>, Failure> {
        if matches!(self, Node::Same) {
            return Ok(Some(item.clone()));
        }
        scopes.push(item);
        let made = self.convert(item, scopes);
        scopes.pop();
        made
    }
}

impl ObjectNode {
    fn convert<'v>(&self, object: &'v Object, scopes: &mut Vec<&'v Value>) -> Result<Object, Failure> {
        let mut made = Vec::with_capacity(object.len());
        let mut known = self.members.iter().peekable();
        for (name, value) in object.iter() {
            // Both are sorted by name.
            while known.next_if(|(known, _)| **known < *name).is_some() {}
            let (node, is_item) = match known.next_if(|(known, _)| **known == *name) {
                Some((_, node)) => (node.as_ref(), false),
                None => (self.others.as_ref(), true),
            };
            let Some(node) = node else { continue };
            let value = if is_item { node.inside(value, scopes)? } else { node.convert(value, scopes)? };
            if let Some(value) = value {
                made.push((CompactString::from(name), value));
            }
        }
        Ok(Object::from_members(made))
    }
}

impl Scope {
    fn convert<'v>(&self, value: &'v Value, scopes: &mut Vec<&'v Value>) -> Result<Option<Value>, Failure> {
        let mut made = match &self.base {
            Some(base) => base.convert(value, scopes)?,
            None => None,
        };
        for Move { rule, what } in &self.moves {
            match what {
                What::Link { from, to, node } => {
                    if let Some(found) = find(value, from)
                        && let Some(converted) = node.convert(found, scopes)?
                    {
                        put(&mut made, to, converted);
                    }
                }
                What::Fill { to, needs, value } => {
                    let holder = made.as_ref().and_then(|made| find(made, &to[..*needs]));
                    let is_there = || made.as_ref().is_some_and(|made| find(made, to).is_some());
                    if holder.is_some_and(|holder| holder.as_object().is_some()) && !is_there() {
                        put(&mut made, to, value.clone());
                    }
                }
                What::Compute(computation) => {
                    let done = computation.run(scopes, |to, value| put(&mut made, to, value));
                    done.map_err(|error| Failure { rule: *rule, error })?;
                }
            }
        }
        Ok(made)
    }
}

/// The variables of an expression, if all of them are set.
fn read_all<'v>(reads: &'v [Read], scopes: &[&'v Value]) -> Result<Option<Variables<'v>>, EvalError> {
    let mut values = Vec::with_capacity(reads.len());
    for read in reads {
        let Some(value) = scopes.get(read.level).and_then(|scope| find(scope, &read.path)) else { return Ok(None) };
        values.push((read.name.as_str(), CelValue::with_schema(value, &read.schema)?));
    }
    Ok(Some(Variables(values)))
}

struct Variables<'v>(Vec<(&'v str, CelValue<'v>)>);

impl<'v> Activation<'v> for Variables<'v> {
    fn variable(&self, name: &str) -> Option<Result<CelValue<'v>, EvalError>> {
        self.0.as_slice().variable(name)
    }
}

/// What stands at the end of a way.
pub(crate) fn find<'v>(value: &'v Value, names: &[Box<str>]) -> Option<&'v Value> {
    names.iter().try_fold(value, |at, name| at.as_object()?.get(name))
}

/// Puts a value at the end of a way; what is missing on the way is made.
pub(crate) fn put(place: &mut Option<Value>, names: &[Box<str>], value: Value) {
    let Some((last, parents)) = names.split_last() else {
        *place = Some(value);
        return;
    };
    let root = place.get_or_insert_with(|| Value::Object(Object::new()));
    if root.as_object().is_none() {
        *root = Value::Object(Object::new());
    }
    let Value::Object(mut object) = std::mem::take(root) else { unreachable!("was made an object above") };
    parents.iter().fold(&mut object, |at, name| at.object_mut(name)).insert(last, value);
    *root = Value::Object(object);
}
