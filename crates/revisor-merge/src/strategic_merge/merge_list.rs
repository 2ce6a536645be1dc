//! How lists are merged: scalars as sets, objects by a key.

use std::collections::HashSet;

use revisor_object::{Object, Value};
use revisor_schema::{Field, Merge, Shape};

use super::element_order::{Key, Ranks, arrange, directive, is_deletion};
use super::{Merger, drop_directives, refusal, same_type};
use crate::PatchError;

impl<'t> Merger<'t> {
    /// Merges `patch` into `target`, the list of `field`; or deletes it from there, if it is a list of scalars.
    pub(super) fn merge_lists(
        &mut self,
        field: &'t Field,
        element: &'t Shape,
        target: Vec<Value>,
        patch: Vec<Value>,
        deleting: bool,
    ) -> Result<Vec<Value>, PatchError> {
        let merges = matches!(field.merge, Merge::Set | Merge::ByKey(_));
        if !merges && !deleting {
            return Ok(patch);
        }
        if target.is_empty() && patch.is_empty() {
            return Ok(target);
        }
        match (element_kind(&target, &patch)?, merge_key(field)) {
            (ElementKind::Scalar, _) if deleting => delete_scalars(target, &patch),
            (ElementKind::Scalar, None) => merge_scalars(target, patch),
            (ElementKind::Scalar, Some(_)) => {
                let found = target.first().or(patch.first()).unwrap_or(&Value::Null);
                Err(refusal::wrong_type(&Value::Object(Object::new()), found))
            }
            (ElementKind::Object, None) => Err(refusal::no_merge_key(element)),
            (ElementKind::Object, Some(key)) => self.merge_by_key(element, key, target, patch),
        }
    }

    fn merge_by_key(
        &mut self,
        element: &'t Shape,
        key: &str,
        mut target: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<Vec<Value>, PatchError> {
        let Directives { deleted, replace, elements: patch } = read_directives(patch, key)?;
        if replace {
            let items = with_keys(patch, Some(key))?;
            let ranks = Ranks::of(items.iter().map(|(key, _)| key.clone()));
            return Ok(arrange(items, &ranks, &ranks));
        }
        if !deleted.is_empty() {
            target.retain(|item| !key_in(item, key).is_some_and(|key| deleted.contains(&key)));
        }
        let mut merged = with_keys(target, Some(key))?;
        let before = Ranks::of(merged.iter().map(|(key, _)| key.clone()));
        let mut positions = before.clone();
        let mut wanted = Vec::with_capacity(patch.len());
        for (key_of_item, item) in with_keys(patch, Some(key))? {
            wanted.push(key_of_item.clone());
            match positions.get(&key_of_item) {
                Some(at) => {
                    if let (Value::Object(old), Value::Object(new)) = (&mut merged[at].1, item) {
                        self.merge_objects(element, old, new)?;
                    }
                }
                None => {
                    positions.add(key_of_item.clone(), merged.len());
                    merged.push((key_of_item, item));
                }
            }
        }
        // A key that is null in the patch is removed like every null, and then the element has none.
        if let Some((_, Value::Object(item))) = merged.iter().find(|(_, item)| key_in(item, key).is_none()) {
            return Err(refusal::key_missing(item, key));
        }
        Ok(arrange(merged, &Ranks::of(wanted), &before))
    }

    /// Merges like [`Merger::merge_lists`] what there is of `target` and `patch`, and puts the result into the order of
    /// `order`. Nothing, if there is neither.
    pub(super) fn merge_lists_in_order(
        &mut self,
        field: &'t Field,
        element: &'t Shape,
        target: Option<Vec<Value>>,
        patch: Option<Vec<Value>>,
        order: &[Value],
    ) -> Result<Option<Vec<Value>>, PatchError> {
        let key = merge_key(field);
        check_order(patch.as_deref().unwrap_or_default(), order, key)?;
        if target.is_none() && patch.is_none() {
            return Ok(None);
        }
        element_kind(target.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default())?;
        let before = keys_of(target.as_deref().unwrap_or_default(), key)?;
        let (merged, before) = match (target, patch) {
            (Some(target), Some(patch)) => {
                let before = match key {
                    Some(key) => standing_after(before, &patch, key),
                    None => before,
                };
                (self.merge_lists(field, element, target, patch, false)?, before)
            }
            (Some(target), None) => (target, before),
            (None, patch) => {
                let mut new = patch.unwrap_or_default();
                new.retain_mut(drop_directives);
                (new, before)
            }
        };
        let wanted = Ranks::of(keys_of(order, key)?);
        Ok(Some(arrange(with_keys(merged, key)?, &wanted, &Ranks::of(before))))
    }
}

fn merge_key(field: &Field) -> Option<&str> {
    match &field.merge {
        Merge::ByKey(key) => Some(key),
        Merge::Plain | Merge::Replace | Merge::Set => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Scalar,
    Object,
}

/// What the elements of both lists are; they must all be of one type.
fn element_kind(target: &[Value], patch: &[Value]) -> Result<ElementKind, PatchError> {
    let mut elements = target.iter().chain(patch);
    let first = elements.next().ok_or_else(refusal::no_elements)?;
    let kind = match first {
        Value::Array(_) => return Err(refusal::list_of_lists()),
        Value::Null | Value::Nothing => return Err(refusal::mixed_elements(target, patch)),
        Value::Object(_) => ElementKind::Object,
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Raw(_) => ElementKind::Scalar,
    };
    match elements.all(|element| same_type(first, element)) {
        true => Ok(kind),
        false => Err(refusal::mixed_elements(target, patch)),
    }
}

fn merge_scalars(target: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let before = Ranks::of(keys_of(&target, None)?);
    let wanted = Ranks::of(keys_of(&patch, None)?);
    let mut items = with_keys(target, None)?;
    items.extend(with_keys(patch, None)?);
    let mut seen = HashSet::new();
    items.retain(|(key, _)| seen.insert(key.clone()));
    Ok(arrange(items, &wanted, &before))
}

fn delete_scalars(mut target: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, PatchError> {
    let deleted: HashSet<Key> = keys_of(patch, None)?.into_iter().collect();
    target.retain(|item| !Key::of(item).is_some_and(|key| deleted.contains(&key)));
    Ok(target)
}

/// The patch of a list of objects: what its directives say, and the elements without one.
struct Directives {
    deleted: HashSet<Key>,
    replace: bool,
    elements: Vec<Value>,
}

fn read_directives(patch: Vec<Value>, key: &str) -> Result<Directives, PatchError> {
    let mut read = Directives { deleted: HashSet::new(), replace: false, elements: Vec::with_capacity(patch.len()) };
    for item in patch {
        let Some(directive) = directive(&item) else {
            read.elements.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                read.deleted.insert(required_key(&item, key)?);
            }
            Some("replace") => read.replace = true,
            Some("merge") => return Err(refusal::merge_directive()),
            _ => return Err(refusal::unknown_directive(directive, &item)),
        }
    }
    Ok(read)
}

/// Where the elements stand to which a list with an order of its own is compared: what the patch deletes is gone, and
/// what it adds has moved up into the places that became free, but not beyond the end of the list as it was. The
/// original works within the memory of the old list, and the order of its results shows that.
fn standing_after(before: Vec<Key>, patch: &[Value], key: &str) -> Vec<Key> {
    let length = before.len();
    let deleted = patch.iter().filter(|item| is_deletion(item)).filter_map(|item| key_in(item, key));
    let deleted: HashSet<Key> = deleted.collect();
    let mut standing = before;
    if deleted.is_empty() {
        return standing;
    }
    standing.retain(|key| !deleted.contains(key));
    let replaces = |item| directive(item).is_some_and(|found| found.as_str() == Some("replace"));
    if !patch.iter().any(replaces) {
        let mut known: HashSet<Key> = standing.iter().cloned().collect();
        let added = patch.iter().filter(|item| directive(item).is_none()).filter_map(|item| key_in(item, key));
        standing.extend(added.filter(|key| known.insert(key.clone())));
        standing.truncate(length);
    }
    standing
}

/// Checks that the elements of `patch` are all in `order`, and in that order. Those to be deleted need not be.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut items = patch.iter().filter(|item| key.is_none() || !is_deletion(item)).peekable();
    let mut places = order.iter().peekable();
    while let (Some(item), Some(place)) = (items.peek(), places.peek()) {
        if directive(item).is_some() {
            items.next();
            continue;
        }
        if key_of(item, key)? == key_of(place, key)? {
            items.next();
        }
        places.next();
    }
    match items.peek() {
        Some(_) => Err(refusal::other_order(patch, order)),
        None => Ok(()),
    }
}

/// The value of the field `key` of `item`, if it has one that can be a key.
fn key_in(item: &Value, key: &str) -> Option<Key> {
    item.as_object()?.get(key).and_then(Key::of)
}

fn required_key(item: &Value, key: &str) -> Result<Key, PatchError> {
    match item {
        Value::Object(object) => key_in(item, key).ok_or_else(|| refusal::key_missing(object, key)),
        other => Err(refusal::wrong_type(&Value::Object(Object::new()), other)),
    }
}

/// What tells `item` from others: its field `key`, or itself.
fn key_of(item: &Value, key: Option<&str>) -> Result<Key, PatchError> {
    match key {
        Some(key) => required_key(item, key),
        None => Key::of(item).ok_or_else(|| refusal::no_scalar(item)),
    }
}

fn keys_of(items: &[Value], key: Option<&str>) -> Result<Vec<Key>, PatchError> {
    items.iter().map(|item| key_of(item, key)).collect()
}

fn with_keys(items: Vec<Value>, key: Option<&str>) -> Result<Vec<(Key, Value)>, PatchError> {
    items.into_iter().map(|item| Ok((key_of(&item, key)?, item))).collect()
}
