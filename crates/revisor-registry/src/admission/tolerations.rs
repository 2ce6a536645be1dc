//! Tolerations that say the same as others, or less (upstream: `pkg/util/tolerations`). There may be as many as fit into
//! an object, so they are looked up by what they tolerate, and not compared with each other.

use std::collections::{BinaryHeap, HashMap};

use revisor_object::{ByValue, Object, Seen, Value};

use super::pod_fields::text;

/// Whether each of the tolerations is covered by one of those that are allowed. Where none is named, all are.
pub(super) fn are_allowed(tolerations: &[Value], allowed: &[Value]) -> bool {
    let mut named = Seen::default();
    let mut reach = Reach::default();
    for (at, toleration) in allowed.iter().enumerate() {
        named.is_new(ByValue(toleration));
        reach.add(toleration, at);
    }
    let mut is_covered =
        tolerations.iter().map(|known| named.has(&ByValue(known)) || reach.covers(known, 0, usize::MAX));
    allowed.is_empty() || is_covered.all(|is_covered| is_covered)
}

/// Both lists in one. Of two where one covers the other, that one is kept; of two that are alike, the first.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    // Of equal ones only the last counts as one that comes later.
    let last: HashMap<ByValue<'_>, usize> = all.iter().enumerate().map(|(at, it)| (ByValue(it), at)).collect();
    let mut later = Reach::default();
    last.iter().for_each(|(toleration, at)| later.add(toleration.0, *at));
    let mut kept = Reach::default();
    let mut merged: Vec<&Value> = Vec::new();
    let mut seen = Seen::default();
    for (at, toleration) in all.iter().copied().enumerate() {
        let is_covered = seen.has(&ByValue(toleration))
            || kept.covers(toleration, 0, usize::MAX)
            || later.covers(toleration, at + 1, last[&ByValue(toleration)]);
        if !is_covered {
            kept.add(toleration, merged.len());
            seen.is_new(ByValue(toleration));
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// What a toleration tolerates, but for its time: which key, or any; which effect, or any if that is empty; which value,
/// or any.
type Extent<'t> = (Option<&'t str>, &'t str, Option<&'t str>);

/// How long tolerations tolerate what they do, and their places, by what they tolerate. The longest is on top.
#[derive(Default)]
struct Reach<'t>(HashMap<Extent<'t>, BinaryHeap<(i64, usize)>>);

impl<'t> Reach<'t> {
    fn add(&mut self, toleration: &'t Value, at: usize) {
        let Some(toleration) = toleration.as_object() else { return };
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let extent = match text(toleration, "operator") {
            "Exists" => ((!key.is_empty()).then_some(key), effect, None),
            "Equal" | "" => (Some(key), effect, Some(text(toleration, "value"))),
            _ => return,
        };
        let seconds = if effect == "NoExecute" { seconds(toleration) } else { i64::MAX };
        self.0.entry(extent).or_default().push((seconds, at));
    }

    /// Whether all that a toleration tolerates, one of these does too that stands at `from` or later, and not at
    /// `itself`. Those before are forgotten: nobody asks for them again.
    fn covers(&mut self, narrow: &'t Value, from: usize, itself: usize) -> bool {
        let Some(narrow) = narrow.as_object() else { return false };
        let needed = seconds(narrow);
        let value = (text(narrow, "operator") == "Equal").then(|| text(narrow, "value"));
        let keys = [Some(text(narrow, "key")), None];
        let mut extents = keys.into_iter().flat_map(|key| {
            let effects = [text(narrow, "effect"), ""];
            effects.into_iter().flat_map(move |effect| [None, value].map(|value| (key, effect, value)))
        });
        extents.any(|extent| self.0.get_mut(&extent).is_some_and(|heap| longest(heap, from, itself) >= Some(needed)))
    }
}

/// The longest time of those that stand at `from` or later, but not at `itself`.
fn longest(heap: &mut BinaryHeap<(i64, usize)>, from: usize, itself: usize) -> Option<i64> {
    let mut aside = None;
    while let Some((_, at)) = heap.peek() {
        if *at >= from && *at != itself {
            break;
        }
        let top = heap.pop();
        aside = top.filter(|(_, at)| *at == itself && *at >= from).or(aside);
    }
    let found = heap.peek().map(|(seconds, _)| *seconds);
    heap.extend(aside);
    found
}

/// For how long something is tolerated.
fn seconds(toleration: &Object) -> i64 {
    toleration.get("tolerationSeconds").and_then(Value::as_i64).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn list(text: &str) -> Vec<Value> {
        parse_json(text.as_bytes()).expect("is JSON").value.as_array().expect("is a list").to_vec()
    }

    #[test]
    fn the_wider_toleration_is_kept() {
        let all = r#"{"operator":"Exists"}"#;
        let (a, a_any) = (r#"{"key":"a","operator":"Equal","value":"1"}"#, r#"{"key":"a","operator":"Exists"}"#);
        let (short, long) = (
            r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#,
            r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":9}"#,
        );
        for (first, second, want) in [
            (vec![a], vec![a], vec![a]),
            (vec![a], vec![a_any], vec![a_any]),
            (vec![a_any], vec![a], vec![a_any]),
            (vec![a, a_any], vec![all], vec![all]),
            (vec![short], vec![long], vec![long]),
            (vec![long], vec![a], vec![long, a]),
            (vec![a_any], vec![a, a_any], vec![a_any]),
            (vec![long], vec![short], vec![long]),
        ] {
            let json = |tolerations: &[&str]| list(&format!("[{}]", tolerations.join(",")));
            assert_eq!(merge(&json(&first), &json(&second)), json(&want), "{first:?} {second:?}");
        }
    }

    #[test]
    fn each_toleration_needs_one_that_covers_it() {
        let tolerations = list(r#"[{"key":"a","operator":"Exists","effect":"NoSchedule"}]"#);
        for (allowed, want) in [
            ("[]", true),
            (r#"[{"key":"a","operator":"Exists"}]"#, true),
            (r#"[{"operator":"Exists"}]"#, true),
            (r#"[{"key":"b","operator":"Exists"}]"#, false),
            (r#"[{"key":"a","operator":"Equal","value":"1"}]"#, false),
        ] {
            assert_eq!(are_allowed(&tolerations, &list(allowed)), want, "{allowed}");
        }
    }

    #[test]
    fn many_tolerations_are_not_compared_with_all_others() {
        let toleration = |at: usize| {
            let text = format!(
                r#"{{"key":"k","operator":"Equal","value":"v{}","effect":"NoExecute","tolerationSeconds":{at}}}"#,
                at / 2
            );
            parse_json(text.as_bytes()).expect("is JSON").value
        };
        let all: Vec<Value> = (0..200_000).map(toleration).collect();
        let (first, second) = all.split_at(100_000);
        // Of two that differ in their time only, the longer one stays.
        let longer: Vec<Value> = (0..200_000).skip(1).step_by(2).map(toleration).collect();
        assert_eq!(merge(first, second), longer);
        assert!(are_allowed(&all, &longer));
    }
}
