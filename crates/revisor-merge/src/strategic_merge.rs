//! [`strategic_merge_patch`]: a merge patch that knows the types of what it merges.
//!
//! Objects are merged here: member by member, after the directives that a patch may carry beside the members. Lists are
//! merged in `merge_list`, their order is found in `element_order`, and what is wrong with a patch is said in `refusal`.

use std::collections::HashSet;
use std::mem;

use revisor_object::{Object, Value};
use revisor_schema::{Field, Merge, Shape, StructId, Types};

use self::element_order::Key;
use crate::PatchError;
use crate::patch_meter::Meter;

mod element_order;
mod merge_list;
mod refusal;
#[cfg(test)]
mod tests;

/// The member of an object in a patch that says what to do with the object.
const PATCH: &str = "$patch";
/// The member that lists which members of the target stay.
const RETAIN_KEYS: &str = "$retainKeys";
/// The start of a member that lists what to delete from a list of scalars; the name of the list follows a slash.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// The start of a member that lists the elements of a list in their order; the name of the list follows a slash.
const SET_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `target`, an object of the type `root`.
///
/// As in a JSON merge patch, members that are `null` in the patch are removed and objects are merged member by member.
/// Lists are replaced, unless [`Merge`] of their field says how they are merged. Directives change that:
///
/// - `$patch: replace` and `$patch: delete` in an object replace or empty it. In an element of a merged list they
///   replace the whole list by the other elements of the patch, or delete the element with the same key.
/// - `$deleteFromPrimitiveList/NAME` lists scalars to delete from the list NAME.
/// - `$setElementOrder/NAME` gives the order of the list NAME. What it does not list stays between its old neighbours.
/// - `$retainKeys` lists the members that stay; the patch may set no others.
///
/// Fields that the type does not have are set like any other. They are an error only where they would have to be merged,
/// for which the target would have to have them already.
///
/// Errors are [`PatchError::Malformed`] in the words of the original, except that lists of lists, which cannot be
/// merged, are [`PatchError::NotApplicable`]. After an error the target is to be thrown away.
///
/// ```
/// use revisor_merge::strategic_merge_patch;
/// use revisor_object::parse_json;
/// use revisor_schema::Types;
///
/// let types = Types::parse(
///     "type,field,shape,presence,number,merge\n\
///      Pod,containers,list:Container,always,1,merge:name\n\
///      Container,name,string,always,1,\n\
///      Container,image,string,always,2,\n",
/// )?;
/// let pod = types.id("Pod").ok_or("the table has it")?;
/// let mut target = parse_json(br#"{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}"#)?.value;
/// let patch = parse_json(br#"{"containers":[{"name":"b","image":"2"}]}"#)?.value;
/// strategic_merge_patch(&types, pod, &mut target, patch)?;
/// assert_eq!(target.to_json(), r#"{"containers":[{"image":"1","name":"a"},{"image":"2","name":"b"}]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn strategic_merge_patch(
    types: &Types,
    root: StructId,
    target: &mut Value,
    patch: Value,
) -> Result<(), PatchError> {
    let mut meter = Meter::default();
    // Everything below recurses as deep as the two nest, and the result nests no deeper than the deeper one.
    meter.nest(target, 0)?;
    meter.nest(&patch, 0)?;
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => return Ok(()),
        other => return Err(refusal::no_object(&other)),
    };
    let Value::Object(target) = target else {
        return Err(refusal::wrong_type(&Value::Object(patch), target));
    };
    let shape = Shape::Struct(root);
    Merger { types, meter }.merge_objects(&shape, target, patch)
}

struct Merger<'t> {
    types: &'t Types,
    meter: Meter,
}

impl<'t> Merger<'t> {
    fn merge_objects(&mut self, shape: &'t Shape, target: &mut Object, mut patch: Object) -> Result<(), PatchError> {
        if let Some(directive) = patch.get(PATCH) {
            match directive.as_str() {
                // Taken as it is, with all nulls and directives further down: to whoever decodes it, a directive is a
                // field that the type does not have.
                Some("replace") => {
                    patch.remove(PATCH);
                    *target = patch;
                }
                Some("delete") => *target = Object::new(),
                _ => {
                    let directive = directive.clone();
                    return Err(refusal::unknown_directive(&directive, &Value::Object(patch)));
                }
            }
            return Ok(());
        }
        retain_keys(target, &mut patch)?;
        let orders = take_directives(&mut patch, SET_ORDER);
        let deletions = take_directives(&mut patch, DELETE_FROM_LIST);
        for (directive, order) in orders {
            self.merge_in_order(shape, target, &mut patch, &directive, order)?;
        }
        // The original goes through these and the members in no order at all, so clients cannot rely on one.
        for (directive, elements) in deletions {
            let name = list_name(&directive, DELETE_FROM_LIST).ok_or_else(refusal::bad_deletion)?;
            self.delete_from(shape, target, name, elements)?;
        }
        self.merge_members(shape, target, patch)
    }

    fn merge_members(&mut self, shape: &'t Shape, target: &mut Object, mut patch: Object) -> Result<(), PatchError> {
        let mut gone = Vec::new();
        let mut new = Vec::new();
        for (name, value) in patch.iter_mut() {
            let value = mem::take(value);
            match target.get_mut(name) {
                Some(_) if value.is_null() => gone.push(name),
                Some(member) if same_type(member, &value) => self.merge_member(shape, name, member, value, false)?,
                Some(member) => match as_new(value) {
                    Some(value) => *member = value,
                    None => gone.push(name),
                },
                None if value.is_null() => {}
                None => new.extend(as_new(value).map(|value| (name, value))),
            }
        }
        // Members go and come all at once. One by one, each would shift those behind it, and a large patch of a large
        // object would take minutes.
        if !gone.is_empty() {
            target.retain(|name, _| gone.binary_search(&name).is_err());
        }
        if !new.is_empty() {
            let old = target.iter_mut().map(|(name, value)| (name, mem::take(value)));
            let merged = old.chain(new).collect();
            *target = merged;
        }
        Ok(())
    }

    /// Merges two values of one type.
    fn merge_member(
        &mut self,
        shape: &'t Shape,
        name: &str,
        member: &mut Value,
        patch: Value,
        deleting: bool,
    ) -> Result<(), PatchError> {
        match (member, patch) {
            (Value::Object(member), Value::Object(patch)) => {
                let field = self.field(shape, name)?;
                if field.merge == Merge::Replace {
                    *member = patch;
                    return Ok(());
                }
                self.merge_objects(&field.shape, member, patch)
            }
            (Value::Array(member), Value::Array(patch)) => {
                let (field, element) = self.list_field(shape, name)?;
                *member = self.merge_lists(field, element, mem::take(member), patch, deleting)?;
                Ok(())
            }
            (member, patch) => {
                *member = patch;
                Ok(())
            }
        }
    }

    /// Deletes scalars from the list `name`. The original only ever looks at the types of the two and not at that of
    /// the field, so that other things than lists are merged, and lists of objects too.
    fn delete_from(
        &mut self,
        shape: &'t Shape,
        target: &mut Object,
        name: &str,
        elements: Value,
    ) -> Result<(), PatchError> {
        if name.is_empty() {
            return Ok(());
        }
        if elements.is_null() {
            self.meter.shift(target.len())?;
            target.remove(name);
            return Ok(());
        }
        match target.get_mut(name) {
            Some(member) if same_type(member, &elements) => self.merge_member(shape, name, member, elements, true),
            _ => Ok(()),
        }
    }

    /// Merges the list that a directive with an order is for, and puts its elements into that order.
    fn merge_in_order(
        &mut self,
        shape: &'t Shape,
        target: &mut Object,
        patch: &mut Object,
        directive: &str,
        order: Value,
    ) -> Result<(), PatchError> {
        let order = into_list(order)?;
        let name = list_name(directive, SET_ORDER).ok_or_else(refusal::bad_order)?;
        self.meter.shift(patch.len())?;
        let patch = patch.remove(name).map(into_list).transpose()?;
        let old = match target.get_mut(name) {
            Some(Value::Array(items)) => Some(mem::take(items)),
            Some(other) => return Err(refusal::wrong_type(&Value::Array(Vec::new()), other)),
            None => None,
        };
        let (field, element) = self.list_field(shape, name)?;
        if let Some(merged) = self.merge_lists_in_order(field, element, old, patch, &order)? {
            self.meter.shift(target.len())?;
            target.insert(name, Value::Array(merged));
        }
        Ok(())
    }

    /// The field `name`. Letters may be of the other case, as Go's decoder has it.
    fn field(&self, shape: &'t Shape, name: &str) -> Result<&'t Field, PatchError> {
        let Shape::Struct(id) = shape else { return Err(refusal::no_struct(shape)) };
        let of = self.types.get(*id);
        of.field(name)
            .or_else(|| of.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)))
            .ok_or_else(|| refusal::no_field(&of.name, name))
    }

    /// The field `name` and the shape of its elements.
    fn list_field(&self, shape: &'t Shape, name: &str) -> Result<(&'t Field, &'t Shape), PatchError> {
        let field = self.field(shape, name)?;
        match &field.shape {
            Shape::List(element) if matches!(**element, Shape::List(_)) => Err(refusal::list_of_lists_field()),
            Shape::List(element) => Ok((field, element)),
            _ => Err(refusal::no_list_field()),
        }
    }
}

/// Removes from `target` what the patch does not want to stay, if it says anything about that.
fn retain_keys(target: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let keys: HashSet<Key> = match &keys {
        Value::Array(keys) => keys.iter().map(Key::of).collect::<Option<_>>().ok_or_else(refusal::bad_retained_keys)?,
        _ => return Err(refusal::bad_retained_keys()),
    };
    let stays = |name: &str| keys.contains(&Key::Text(name.into()));
    let is_directive = |name: &str| name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !stays(name)) {
        return Err(refusal::bad_retained_keys());
    }
    target.retain(|name, _| stays(name));
    Ok(())
}

/// Takes the members out of `patch` whose names start with `prefix`.
fn take_directives(patch: &mut Object, prefix: &str) -> Vec<(String, Value)> {
    let mut taken = Vec::new();
    patch.retain(|name, value| {
        let take = name.starts_with(prefix);
        if take {
            taken.push((name.to_owned(), mem::take(value)));
        }
        !take
    });
    taken
}

/// The name of the list that a directive is for.
fn list_name<'d>(directive: &'d str, prefix: &str) -> Option<&'d str> {
    directive.split_once('/').filter(|(found, _)| *found == prefix).map(|(_, name)| name)
}

fn into_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(refusal::wrong_type(&Value::Array(Vec::new()), &other)),
    }
}

fn same_type(one: &Value, two: &Value) -> bool {
    mem::discriminant(one) == mem::discriminant(two)
}

/// What a value of the patch becomes where there is nothing to merge it with: without members that are `null`, and
/// without objects that carry a directive.
fn as_new(mut value: Value) -> Option<Value> {
    drop_null_members(&mut value);
    drop_directives(&mut value).then_some(value)
}

fn drop_null_members(value: &mut Value) {
    match value {
        Value::Object(object) => object.retain(|_, member| {
            drop_null_members(member);
            !member.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_null_members),
        Value::Null
        | Value::Nothing
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::String(_)
        | Value::Raw(_) => {}
    }
}

/// Drops the objects within `value` that carry a directive; answers whether `value` itself may stay.
fn drop_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(object) if object.contains(PATCH) => return false,
        Value::Object(object) => object.retain(|_, member| drop_directives(member)),
        Value::Array(items) => items.retain_mut(drop_directives),
        Value::Null
        | Value::Nothing
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::String(_)
        | Value::Raw(_) => {}
    }
    true
}
