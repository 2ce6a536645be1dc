//! [`additions`]: which places a new object adds, where there is no old one to compare it with. It comes to what
//! [`Comparison`](super::compare::Comparison) finds beside an empty object, in a walk along one object.

use revisor_object::{Object, Value};
use revisor_schema::{Field, Member, Shape, StructId, Types};

use super::compare::{Steps, by_step, has_parts, is_no_object};
use super::field_set::{FieldSet, SELF};
use super::granularity::{Granularity, granularity};
use super::item_step::member_step;

/// The places that `new` has and an empty object of type `id` has not, and whether an element of a list lacks what tells
/// it apart from others. `None` where more than that is to be said.
pub(super) fn additions(types: &Types, id: StructId, new: &Object) -> Option<(FieldSet, bool)> {
    let mut walk = Walk { types, has_nameless: false };
    let below = walk.structure(id, true, Some(new), false)?;
    Some((FieldSet::from_tree(Object::from_sorted(below)), walk.has_nameless))
}

struct Walk<'t> {
    types: &'t Types,
    has_nameless: bool,
}

impl Walk<'_> {
    /// The steps into an object. There `was` an empty one before, or none; the place itself may be added.
    fn structure(&mut self, id: StructId, was: bool, new: Option<&Object>, is_added: bool) -> Option<Steps> {
        let of = self.types.get(id);
        let mut steps = begin(new.map_or(0, Object::len), is_added);
        for Member { name, field, value } in of.fields.members(new) {
            let Some(member) = field.or(of.others.as_deref()) else { continue };
            let lacks_one = was || (new.is_some() && value.is_none());
            let zero = if lacks_one { member.written_zero() } else { None };
            let old = zero.as_ref().filter(|_| was);
            let value = value.or(zero.as_ref().filter(|_| new.is_some()));
            if old != value {
                // What is the same in an empty object is passed over, and nothing else can be gone.
                let below = self.field(member, old, value?)?;
                push(&mut steps, below, || match field {
                    Some(field) => field.step.clone(),
                    None => member_step(name),
                });
            }
        }
        Some(end(steps))
    }

    /// What is below a field, and whether that is added itself.
    fn field(&mut self, field: &Field, old: Option<&Value>, new: &Value) -> Option<(bool, Steps)> {
        let has_parts = has_parts(self.types, &field.shape, old) || has_parts(self.types, &field.shape, Some(new));
        let is_added = old.is_none();
        if granularity(self.types, field) == Granularity::One || !has_parts {
            // What is written though nobody gave it would be modified.
            return is_added.then(|| (true, Steps::new()));
        }
        let below = match &field.shape {
            Shape::Struct(id) => {
                let may_be_other = self.types.get(*id).is_open;
                if may_be_other && (is_no_object(old) || is_no_object(Some(new))) {
                    return None;
                }
                self.structure(*id, old.and_then(Value::as_object).is_some(), new.as_object(), is_added)?
            }
            Shape::Map(element) => {
                let members = new.as_object();
                let mut steps = begin(members.map_or(0, Object::len), is_added);
                for (name, value) in members.into_iter().flat_map(Object::iter) {
                    let below = self.element(element, value)?;
                    push(&mut steps, (true, below), || member_step(name));
                }
                end(steps)
            }
            Shape::List(element) => {
                let items = new.as_array().unwrap_or_default();
                let by_step = by_step(self.types, field, items);
                self.has_nameless |= by_step.len() < items.len();
                if by_step.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return None;
                }
                let mut steps = begin(items.len(), is_added);
                for (step, value) in by_step {
                    let below = self.element(element, value)?;
                    push(&mut steps, (true, below), || step);
                }
                end(steps)
            }
            _ => return is_added.then(|| (true, Steps::new())),
        };
        Some((is_added, below))
    }

    /// What is below an element of a list or map, which is added.
    fn element(&mut self, shape: &Shape, value: &Value) -> Option<Steps> {
        match shape {
            Shape::Struct(id) if !self.types.get(*id).is_atomic && has_parts(self.types, shape, Some(value)) => {
                self.structure(*id, false, value.as_object(), true)
            }
            _ => Some(Steps::new()),
        }
    }
}

/// Steps below a place, of which there may be so many. That the place itself is added stands before them.
fn begin(most: usize, is_added: bool) -> Steps {
    let mut steps = Steps::with_capacity(most + 1);
    if is_added {
        steps.push((SELF.into(), Value::Object(Object::new())));
    }
    steps
}

/// The steps, if there are any: what has nothing below it need not be said to be there itself.
fn end(steps: Steps) -> Steps {
    match &steps[..] {
        [(only, _)] if only == SELF => Steps::new(),
        _ => steps,
    }
}

fn push(steps: &mut Steps, (is_added, below): (bool, Steps), step: impl FnOnce() -> compact_str::CompactString) {
    if is_added || !below.is_empty() {
        steps.push((step(), Value::Object(Object::from_sorted(below))));
    }
}
