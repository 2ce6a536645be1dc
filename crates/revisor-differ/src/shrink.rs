//! Making a group smaller while it still shows the same difference.

use anyhow::Result;
use revisor_object::Value;

use crate::group::{Body, Group};
use crate::run::Runner;

/// The smallest group found that shows a difference with this cause, by at most so many attempts.
pub async fn shrink(runner: &mut Runner, group: &Group, cause: &str, mut attempts: usize) -> Result<Group> {
    let mut smallest = group.clone();
    loop {
        let mut is_smaller = false;
        // From the end, so that what is left to try keeps its place.
        for candidate in candidates(&smallest) {
            if attempts == 0 {
                return Ok(smallest);
            }
            attempts -= 1;
            let found = runner.run(&candidate).await?;
            if found.iter().any(|difference| difference.finding.cause == cause) {
                smallest = candidate;
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            return Ok(smallest);
        }
    }
}

/// The group with one thing less: a request, an option, a member or an item; large things first.
fn candidates(group: &Group) -> Vec<Group> {
    let mut candidates = Vec::new();
    for at in (0..group.steps.len()).rev() {
        let mut fewer = group.clone();
        fewer.steps.remove(at);
        candidates.push(fewer);
    }
    for (at, step) in group.steps.iter().enumerate() {
        if let Some((path, query)) = step.path.split_once('?') {
            let options: Vec<&str> = query.split('&').collect();
            for leave_out in 0..options.len() {
                let mut kept = options.clone();
                kept.remove(leave_out);
                let path = if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) };
                let mut changed = group.clone();
                changed.steps[at].path = path;
                candidates.push(changed);
            }
        }
        if let Some(Body::Value(value)) = &step.body {
            let mut smaller = Vec::new();
            without_one(value, &mut smaller);
            for value in smaller {
                let mut changed = group.clone();
                changed.steps[at].body = Some(Body::Value(value));
                candidates.push(changed);
            }
        }
    }
    candidates
}

/// The value without one of its members or items, those of the outside first.
fn without_one(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, _) in members.iter() {
                let mut fewer = members.clone();
                fewer.remove(name);
                found.push(Value::Object(fewer));
            }
            for (name, member) in members.iter() {
                let mut inner = Vec::new();
                without_one(member, &mut inner);
                for member in inner {
                    let mut changed = members.clone();
                    changed.insert(name, member);
                    found.push(Value::Object(changed));
                }
            }
        }
        Value::Array(items) => {
            for at in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(at);
                found.push(Value::Array(fewer));
            }
            for (at, item) in items.iter().enumerate() {
                let mut inner = Vec::new();
                without_one(item, &mut inner);
                for item in inner {
                    let mut changed = items.clone();
                    changed[at] = item;
                    found.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;
    use crate::group::Step;

    #[test]
    fn every_part_can_be_left_out() {
        let value = parse_json(br#"{"a":[1,{"b":2}],"c":3}"#).expect("JSON").value;
        let group = Group {
            title: String::new(),
            steps: vec![Step::new("GET", "/a"), Step::new("POST", "/b?c=d&e=f").value("application/json", value)],
        };
        let shown: Vec<String> =
            candidates(&group).iter().map(|group| group.steps.iter().map(Step::to_string).collect()).collect();
        let post = "GET /aPOST /b?c=d&e=f\nContent-Type: application/json\n\n";
        assert_eq!(shown.len(), 9);
        assert_eq!(shown[0], "GET /a");
        for body in [r#"{"c":3}"#, r#"{"a":[1,{"b":2}]}"#, r#"{"a":[{"b":2}],"c":3}"#, r#"{"a":[1,{}],"c":3}"#] {
            assert!(shown.contains(&format!("{post}{body}")), "{body}");
        }
    }
}
