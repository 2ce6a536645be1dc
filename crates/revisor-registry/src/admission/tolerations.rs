//! Tolerations that say the same as others, or less (upstream: `pkg/util/tolerations`).

use revisor_object::{Object, Value};

use super::pod_fields::text;

/// Whether each of the tolerations is covered by one of those that are allowed. Where none is named, all are.
pub(super) fn are_allowed(tolerations: &[Value], allowed: &[Value]) -> bool {
    let covered =
        |toleration: &Object| allowed.iter().filter_map(Value::as_object).any(|known| covers(known, toleration));
    allowed.is_empty() || tolerations.iter().filter_map(Value::as_object).all(covered)
}

/// Both lists in one. Of two where one covers the other, that one is kept; of two that are alike, the first.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Object> = first.iter().chain(second).filter_map(Value::as_object).collect();
    let mut merged: Vec<&Object> = Vec::new();
    for (at, toleration) in all.iter().copied().enumerate() {
        let is_known = merged.iter().any(|known| covers(known, toleration));
        let is_covered = || all[at + 1..].iter().any(|later| *later != toleration && covers(later, toleration));
        if !is_known && !is_covered() {
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().map(Value::from).collect()
}

/// Whether one toleration tolerates all that another does (upstream: `isSuperset`).
fn covers(wide: &Object, narrow: &Object) -> bool {
    if wide == narrow {
        return true;
    }
    let is_everything = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(narrow, "key") != text(wide, "key") && !is_everything {
        return false;
    }
    if text(narrow, "effect") != text(wide, "effect") && !text(wide, "effect").is_empty() {
        return false;
    }
    if text(wide, "effect") == "NoExecute" {
        let seconds = |toleration: &Object| toleration.get("tolerationSeconds").and_then(Value::as_i64);
        if let Some(most) = seconds(wide)
            && seconds(narrow).is_none_or(|wanted| wanted > most)
        {
            return false;
        }
    }
    match text(wide, "operator") {
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        "Exists" => true,
        _ => false,
    }
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
}
