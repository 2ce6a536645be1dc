//! Laying an applied configuration over the object that is there.

use std::collections::HashMap;

use compact_str::CompactString;
use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, StructId, Types};

use super::granularity::{Granularity, granularity};
use super::item_step::item_step;

/// Puts every value of `config` into `live`, both of type `id`. Objects and maps are merged member by member, lists
/// that are told apart by item item by item in the order of the configuration, everything else is replaced.
pub fn overlay(types: &Types, id: StructId, live: &mut Object, config: &Object) {
    overlay_members(live, config, |name, there, value| match types.get(id).member(name) {
        Some(field) => overlay_field(types, field, there, value),
        None => *there = value.clone(),
    });
}

/// Lets `overlay` put the members of `config` over those that are there, and brings in the others all at once: one by
/// one, each would shift those behind it.
fn overlay_members(live: &mut Object, config: &Object, overlay: impl Fn(&str, &mut Value, &Value)) {
    let mut new = Vec::new();
    for (name, value) in config.iter() {
        match live.get_mut(name) {
            Some(there) => overlay(name, there, value),
            None => new.push((CompactString::from(name), value.clone())),
        }
    }
    live.insert_all(new);
}

fn overlay_field(types: &Types, field: &Field, live: &mut Value, config: &Value) {
    if granularity(types, field) == Granularity::One {
        *live = config.clone();
        return;
    }
    match (&field.shape, live, config) {
        // A null stands for nothing to put in.
        (_, Value::Object(live), Value::Null) if !live.is_empty() => {}
        (_, Value::Array(live), Value::Null) if !live.is_empty() => {}
        (Shape::Struct(id), Value::Object(live), Value::Object(config)) => overlay(types, *id, live, config),
        (Shape::Map(element), Value::Object(live), Value::Object(config)) => {
            overlay_members(live, config, |_, there, value| overlay_element(types, element, there, value));
        }
        (Shape::List(element), Value::Array(live), Value::Array(config)) => {
            *live = overlay_items(types, field, element, std::mem::take(live), config);
        }
        (_, live, config) => *live = config.clone(),
    }
}

fn overlay_element(types: &Types, shape: &Shape, live: &mut Value, config: &Value) {
    match (shape, live, config) {
        (Shape::Struct(id), Value::Object(live), Value::Null) if !live.is_empty() && !types.get(*id).is_atomic => {}
        (Shape::Struct(id), Value::Object(live), Value::Object(config)) if !types.get(*id).is_atomic => {
            overlay(types, *id, live, config);
        }
        (_, live, config) => *live = config.clone(),
    }
}

/// Merges two lists item by item. Items of both stand in the order of the configuration; items that are only there stay
/// where they are relative to their neighbours.
fn overlay_items(types: &Types, field: &Field, element: &Shape, live: Vec<Value>, config: &[Value]) -> Vec<Value> {
    let step_of = |item: &Value| item_step(types, field, item).unwrap_or_default();
    let live_steps: Vec<CompactString> = live.iter().map(step_of).collect();
    let config_steps: Vec<CompactString> = config.iter().map(step_of).collect();
    let config_at: HashMap<&str, usize> =
        config_steps.iter().enumerate().map(|(at, step)| (step.as_str(), at)).collect();
    let mut live_at: HashMap<&str, usize> = HashMap::new();
    for (at, step) in live_steps.iter().enumerate() {
        live_at.entry(step.as_str()).or_insert(at);
    }
    // The items of both lists that are still to come, in the order of the configuration.
    let mut shared = config_steps.iter().filter(|step| live_at.contains_key(step.as_str())).peekable();
    let mut merged = Vec::with_capacity(live.len() + config.len());
    let mut is_merged = vec![false; config.len()];
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < config.len() {
        if left < live.len() {
            let step = live_steps[left].as_str();
            match config_at.get(step) {
                // Only there: it keeps its place.
                None => {
                    merged.push(live[left].clone());
                    left += 1;
                    continue;
                }
                // It came, or it comes, where the configuration has it.
                Some(&at) if is_merged[at] || shared.peek().is_some_and(|next| next.as_str() != step) => {
                    left += 1;
                    continue;
                }
                Some(_) => {}
            }
        }
        if right < config.len() {
            let step = &config_steps[right];
            let mut item = config[right].clone();
            if let Some(&there) = live_at.get(step.as_str()) {
                item = live[there].clone();
                overlay_element(types, element, &mut item, &config[right]);
            }
            merged.push(item);
            is_merged[right] = true;
            if shared.peek().is_some_and(|next| *next == step) {
                shared.next();
            }
            right += 1;
        }
    }
    merged
}
