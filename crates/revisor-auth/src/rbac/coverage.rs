//! Whether somebody's rules cover others, so that nobody grants more than they have.

use std::collections::{BTreeMap, BTreeSet};

use revisor_object::clip_joined;

use super::PolicyRule;
use super::rule::{has, path_covers, quoted_list};
use crate::Identity;
use crate::quoted::quoted;

/// Into how many parts a rule is broken at most to see which of them are missing. One that has more is missing as a
/// whole unless one rule covers all of it: four long lists multiply to more than anybody could look at.
const MAX_PARTS: usize = 1 << 16;

/// How many bytes the parts of a rule may have together, for the same reason: each repeats texts that may be long.
const MAX_PART_BYTES: usize = 16 << 20;

/// What of `wanted` no single rule of `held` covers: each with one verb, one group, one resource and at most one name,
/// or one verb and one path.
pub fn missing_rights(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut missing = Vec::new();
    let mut budget = MAX_PARTS;
    for rule in wanted {
        // Most often all of a rule comes from one.
        if held.iter().any(|own| covers(own, rule)) {
            continue;
        }
        let parts = parts_of(rule).filter(|parts| parts.saturating_mul(longest_part(rule)) <= MAX_PART_BYTES);
        match parts.and_then(|parts| budget.checked_sub(parts)) {
            Some(rest) => {
                budget = rest;
                break_down(rule, |part| {
                    if !held.iter().any(|own| covers(own, &part)) {
                        missing.push(part);
                    }
                });
            }
            None => missing.push(rule.clone()),
        }
    }
    missing
}

/// How many parts a rule has, if that is a number.
fn parts_of(rule: &PolicyRule) -> Option<usize> {
    let of_resources = rule
        .groups
        .len()
        .checked_mul(rule.resources.len())?
        .checked_mul(rule.verbs.len())?
        .checked_mul(rule.names.len().max(1))?;
    of_resources.checked_add(rule.paths.len().checked_mul(rule.verbs.len())?)
}

/// How many bytes a part of a rule has at most.
fn longest_part(rule: &PolicyRule) -> usize {
    let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or_default();
    [&rule.groups, &rule.resources, &rule.verbs, &rule.names, &rule.paths].map(|texts| longest(texts)).iter().sum()
}

fn break_down(rule: &PolicyRule, mut each: impl FnMut(PolicyRule)) {
    let one = |text: &String| vec![text.clone()];
    for group in &rule.groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = PolicyRule {
                    verbs: one(verb),
                    groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.names.is_empty() {
                    each(part);
                } else {
                    rule.names.iter().for_each(|name| each(PolicyRule { names: one(name), ..part.clone() }));
                }
            }
        }
    }
    for path in &rule.paths {
        for verb in &rule.verbs {
            each(PolicyRule { verbs: one(verb), paths: one(path), ..PolicyRule::default() });
        }
    }
}

/// Whether one rule allows all that another does.
fn covers(own: &PolicyRule, part: &PolicyRule) -> bool {
    let all = |own: &[String], part: &[String]| part.iter().all(|text| has(own, text));
    let is_named = match (&*own.names, &*part.names) {
        ([], _) => true,
        (_, []) => false,
        (own, part) => part.iter().all(|name| own.contains(name)),
    };
    is_named
        && all(&own.verbs, &part.verbs)
        && all(&own.groups, &part.groups)
        && part.resources.iter().all(|resource| covers_resource(&own.resources, resource))
        && part.paths.iter().all(|path| own.paths.iter().any(|own| path_covers(own, path)))
}

fn covers_resource(own: &[String], resource: &str) -> bool {
    let part = resource.split_once('/').map(|(_, part)| part);
    has(own, resource) || part.is_some_and(|part| own.iter().any(|own| own.strip_prefix("*/") == Some(part)))
}

/// Somebody is about to grant rights that they do not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Escalation {
    message: String,
}

impl Escalation {
    /// The refusal of `user`, who lacks these rights. `problems` are those that were met in finding out theirs.
    pub fn new(user: &Identity, missing: Vec<PolicyRule>, problems: &str) -> Escalation {
        let shown: BTreeSet<String> = compact(missing).iter().map(PolicyRule::to_string).collect();
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quoted(user.name()),
            quoted_list(user.groups()),
            clip_joined(shown, "\n")
        );
        if !problems.is_empty() {
            message.push_str(&format!("; resolution errors: [{problems}]"));
        }
        Escalation { message }
    }
}

/// Brings rules together that differ by their verb only.
fn compact(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut compacted = Vec::new();
    let mut simple: BTreeMap<(String, String, Option<String>), PolicyRule> = BTreeMap::new();
    for rule in rules {
        match (&*rule.groups, &*rule.resources, &*rule.names, &*rule.paths) {
            ([group], [resource], [] | [_], []) => {
                let key = (group.clone(), resource.clone(), rule.names.first().cloned());
                match simple.get_mut(&key) {
                    Some(known) => known.verbs.extend(rule.verbs),
                    None => {
                        simple.insert(key, rule);
                    }
                }
            }
            _ => compacted.push(rule),
        }
    }
    compacted.extend(simple.into_values());
    compacted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Claims;

    /// `verbs groups resources names`, each a list with commas, or `verbs paths`.
    fn rule(text: &str) -> PolicyRule {
        let list = |text: &str| -> Vec<String> {
            text.split(',').map(|text| if text == "core" { "" } else { text }.to_owned()).collect()
        };
        let columns: Vec<_> = text.split(' ').map(list).collect();
        match columns.as_slice() {
            [verbs, paths] => PolicyRule { verbs: verbs.clone(), paths: paths.clone(), ..PolicyRule::default() },
            [verbs, groups, resources, names @ ..] => PolicyRule {
                verbs: verbs.clone(),
                groups: groups.clone(),
                resources: resources.clone(),
                names: names.first().cloned().unwrap_or_default(),
                ..PolicyRule::default()
            },
            _ => panic!("not a rule: {text}"),
        }
    }

    #[test]
    fn what_is_not_covered_is_named_part_by_part() {
        for (held, wanted, missing) in [
            (&["get,list core pods"][..], "get core pods", &[][..]),
            (&["get core pods"], "get,delete core pods", &["delete core pods"]),
            (&["get core pods", "delete core pods"], "get,delete core pods", &[]),
            (&["* * *"], "get,delete apps a,b/c x,y", &[]),
            (&["get core pods"], "get core pods a", &[]),
            (&["get core pods a"], "get core pods", &["get core pods"]),
            (&["get core pods a"], "get core pods a,b", &["get core pods b"]),
            (&["get core *"], "get core pods/log", &[]),
            (&["get core */log"], "get core pods/log,services/log", &[]),
            (&["get core */log"], "get core pods", &["get core pods"]),
            (&["get core */log"], "get core */*", &["get core */*"]),
            (&["get core pods"], "* core pods", &["* core pods"]),
            (&["get core pods"], "get * pods", &["get * pods"]),
            (&["get /a/*"], "get,post /a/b,/c", &["get /c", "post /a/b", "post /c"]),
            (&["get *"], "get /a/*", &[]),
            (&["get /a/b"], "get /a/*", &["get /a/*"]),
        ] {
            let held: Vec<_> = held.iter().map(|text| rule(text)).collect();
            let mut got: Vec<_> = missing_rights(&held, &[rule(wanted)]).iter().map(PolicyRule::to_string).collect();
            let mut want: Vec<_> = missing.iter().map(|text| rule(text).to_string()).collect();
            got.sort();
            want.sort();
            assert_eq!(got, want, "{held:?}: {wanted}");
        }
    }

    #[test]
    fn a_rule_with_too_many_parts_is_looked_at_as_a_whole() {
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let huge = PolicyRule {
            verbs: many.clone(),
            groups: many.clone(),
            resources: many.clone(),
            names: many,
            paths: Vec::new(),
        };
        let huge = [huge];
        assert_eq!(missing_rights(&[rule("get core pods")], &huge), huge);
        assert_eq!(missing_rights(&[rule("* * *")], &huge), []);
    }

    #[test]
    fn the_refusal_lists_what_is_missing_in_short() {
        let bob = Identity::authenticated(Claims { name: "bob".to_owned(), ..Claims::default() });
        let missing = missing_rights(&[], &[rule("get,list core pods"), rule("get /x"), rule("get apps a n")]);
        let refusal = Escalation::new(&bob, missing.clone(), "").to_string();
        assert_eq!(
            refusal,
            concat!(
                r#"user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
                "\n",
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#,
                "\n",
                r#"{APIGroups:["apps"], Resources:["a"], ResourceNames:["n"], Verbs:["get"]}"#,
                "\n",
                r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#,
            )
        );
        assert_eq!(Escalation::new(&bob, missing, "why").to_string(), format!("{refusal}; resolution errors: [why]"));
    }
}
