//! Making an object smaller for as long as it still shows what it was found for.

use revisor_object::{Object, Value};

use crate::schema::META;

/// How often a smaller object is tried.
const MAX_ATTEMPTS: usize = 3000;

/// The smallest object found for which `shows` still answers `true`.
pub fn shrink(object: Value, shows: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut best = object;
    let mut attempts = 0;
    loop {
        let mut has_improved = false;
        for candidate in smaller_root(&best) {
            attempts += 1;
            if attempts > MAX_ATTEMPTS {
                return best;
            }
            if shows(&candidate) {
                best = candidate;
                has_improved = true;
                break;
            }
        }
        if !has_improved {
            return best;
        }
    }
}

/// Smaller forms of a whole object, whose type and name stay.
fn smaller_root(value: &Value) -> Vec<Value> {
    let Value::Object(object) = value else { return Vec::new() };
    smaller_members(object, |name| !META.contains(&name)).into_iter().map(Value::Object).collect()
}

fn smaller_members(object: &Object, may_change: impl Fn(&str) -> bool) -> Vec<Object> {
    let mut found = Vec::new();
    for (name, _) in object.iter().filter(|(name, _)| may_change(name)) {
        let mut without = object.clone();
        without.remove(name);
        found.push(without);
    }
    for (name, value) in object.iter().filter(|(name, _)| may_change(name)) {
        for smaller in smaller(value) {
            let mut changed = object.clone();
            changed.insert(name, smaller);
            found.push(changed);
        }
    }
    found
}

/// Simpler forms of a value, the simplest first.
fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::Raw(raw) => smaller(raw.value()),
        Value::Null => Vec::new(),
        Value::Bool(truth) => {
            if *truth {
                vec![Value::Bool(false)]
            } else {
                Vec::new()
            }
        }
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
        Value::Array(items) => {
            let mut found: Vec<Value> = Vec::new();
            if items.len() > 1 {
                found.push(Value::Array(Vec::new()));
            }
            for at in 0..items.len() {
                let mut without = items.clone();
                without.remove(at);
                found.push(Value::Array(without));
            }
            for (at, item) in items.iter().enumerate() {
                for smaller in smaller(item) {
                    let mut changed = items.clone();
                    changed[at] = smaller;
                    found.push(Value::Array(changed));
                }
            }
            found
        }
        Value::Object(object) => {
            let mut found = Vec::new();
            if object.len() > 1 {
                found.push(Value::Object(Object::new()));
            }
            found.extend(smaller_members(object, |_| true).into_iter().map(Value::Object));
            found
        }
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
