//! Making an object smaller for as long as it still shows what it was found for.

use revisor_object::{Object, Value};

use crate::schema::META;

/// How often a smaller object is tried, where nobody says otherwise.
pub(crate) const SHRINKING: usize = 3000;

/// The smallest object found for which `shows` still answers `true`, after so many attempts at most.
pub fn shrink(object: Value, attempts: usize, shows: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut search = Search { best: object, left: attempts, shows };
    while search.improves(&mut Vec::new()) && search.left > 0 {}
    search.best
}

/// The smallest object so far. It is changed in one place at a time and changed back, because there are as many smaller
/// forms of an object as it has parts: to make all of them takes the square of its size.
struct Search<'f> {
    best: Value,
    left: usize,
    shows: &'f mut dyn FnMut(&Value) -> bool,
}

impl Search<'_> {
    /// Tries the simpler forms of the value at a place, and then of what is in it; answers whether any was taken.
    fn improves(&mut self, place: &mut Vec<usize>) -> bool {
        let is_root = place.is_empty();
        let mut has_improved = false;
        let mut nth = 0;
        while let Some(form) = simpler(at(&self.best, place), nth, is_root) {
            if self.left == 0 {
                return has_improved;
            }
            self.left -= 1;
            let former = std::mem::replace(at_mut(&mut self.best, place), form);
            if (self.shows)(&self.best) {
                // What was behind a part that is gone is in its place now; a text begins anew.
                has_improved = true;
                nth = if parts(at(&self.best, place)) == 0 { 0 } else { nth };
            } else {
                *at_mut(&mut self.best, place) = former;
                nth += 1;
            }
        }
        for part in 0..parts(at(&self.best, place)) {
            if is_root && !may_change(&self.best, part) {
                continue;
            }
            place.push(part);
            has_improved |= self.improves(place);
            place.pop();
        }
        has_improved
    }
}

/// The nth of the simpler forms of a value itself, the simplest first; what is in it stays what it is, or goes.
fn simpler(value: &Value, nth: usize, is_root: bool) -> Option<Value> {
    match value {
        Value::Array(_) | Value::Object(_) => smaller_holder(value, nth, is_root),
        _ => simpler_scalars(value).into_iter().nth(nth),
    }
}

/// The value at a place: at each level the how manieth.
fn at<'v>(root: &'v Value, place: &[usize]) -> &'v Value {
    place.iter().fold(root, |value, part| match value {
        Value::Array(items) => &items[*part],
        Value::Object(object) => object.iter().nth(*part).map_or(value, |(_, member)| member),
        other => other,
    })
}

fn at_mut<'v>(root: &'v mut Value, place: &[usize]) -> &'v mut Value {
    let Some((part, rest)) = place.split_first() else { return root };
    let inner = match root {
        Value::Array(items) => items.get_mut(*part),
        Value::Object(object) => object.iter_mut().nth(*part).map(|(_, member)| member),
        _ => None,
    };
    at_mut(inner.expect("places are those of the value"), rest)
}

/// How many parts a value has.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(object) => object.len(),
        _ => 0,
    }
}

/// Whether a member of a whole object may change: its type and name stay.
fn may_change(root: &Value, part: usize) -> bool {
    let member = root.as_object().and_then(|object| object.iter().nth(part));
    member.is_none_or(|(name, _)| !META.contains(&name))
}

/// A list or an object with less in it, the emptiest first; nothing if there are not so many.
fn smaller_holder(value: &Value, nth: usize, is_root: bool) -> Option<Value> {
    let count = parts(value);
    let has_empty = count > 1 && !is_root;
    let part = match (has_empty, nth) {
        (true, 0) => None,
        (true, nth) => Some(nth - 1),
        (false, nth) => Some(nth),
    };
    match value {
        Value::Array(items) => {
            let Some(part) = part else { return Some(Value::Array(Vec::new())) };
            let (before, after) = items.split_at_checked(part)?;
            let (_, after) = after.split_first()?;
            Some(Value::Array([before, after].concat()))
        }
        Value::Object(object) => {
            let Some(part) = part else { return Some(Value::Object(Object::new())) };
            let mut names = object.iter().map(|(name, _)| name).filter(|name| !is_root || !META.contains(name));
            let name = names.nth(part)?.to_owned();
            let mut without = object.clone();
            without.remove(&name);
            Some(Value::Object(without))
        }
        _ => None,
    }
}

/// Simpler forms of a value that has no parts, the simplest first.
fn simpler_scalars(value: &Value) -> Vec<Value> {
    match value {
        Value::Raw(raw) => vec![raw.value().clone()],
        Value::Bool(true) => vec![Value::Bool(false)],
        Value::Int(number) => {
            let mut found = vec![0, 1, number / 1000, number / 10, number / 2, number - number.signum()];
            found.retain(|smaller| smaller.unsigned_abs() < number.unsigned_abs());
            found.dedup();
            found.into_iter().map(Value::Int).collect()
        }
        Value::Float(number) if *number == 0.0 || *number == 0.5 => Vec::new(),
        Value::Float(number) => {
            let mut found = vec![Value::Float(0.5), Value::Float(number.trunc())];
            found.retain(|smaller| smaller != value);
            found
        }
        Value::String(text) => smaller_texts(text).into_iter().map(Value::from).collect(),
        _ => Vec::new(),
    }
}

fn smaller_texts(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    if characters.is_empty() {
        return found;
    }
    found.push(String::new());
    if characters.len() > 1 {
        found.push(characters[..characters.len() / 2].iter().collect());
        for at in 0..characters.len().min(32) {
            let rest = characters[..at].iter().chain(&characters[at + 1..]);
            found.push(rest.collect());
        }
    }
    for at in 0..characters.len().min(32) {
        for simple in ['a', '0'] {
            let is_odd = characters[at] > simple || characters[at].is_control();
            if is_odd && !(simple == '0' && characters[at] == 'a') {
                let mut changed = characters.clone();
                changed[at] = simple;
                found.push(changed.into_iter().collect());
            }
        }
    }
    found.retain(|smaller| smaller != text);
    found
}
