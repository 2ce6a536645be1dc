//! [`merge_patch`]: JSON merge patch (RFC 7386).

use revisor_object::{Object, Value};

use crate::PatchError;

/// Merges `patch` into `target`: members that are `null` in the patch are removed, objects are merged member by member,
/// everything else replaces what was there.
///
/// As in Kubernetes, and other than in the RFC, the patch must be an object; and where an array is set, the objects
/// within it lose their `null` members, unless the array takes the place of an object.
///
/// The result nests no deeper than the deeper of the two, and neither may nest deeper than the parsers allow. On an
/// error the target is as before.
///
/// ```
/// use revisor_merge::merge_patch;
/// use revisor_object::parse_json;
///
/// let mut target = parse_json(br#"{"spec":{"replicas":1,"paused":true}}"#)?.value;
/// merge_patch(&mut target, parse_json(br#"{"spec":{"replicas":3,"paused":null}}"#)?.value)?;
/// assert_eq!(target.to_json(), r#"{"spec":{"replicas":3}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge_patch(target: &mut Value, patch: Value) -> Result<(), PatchError> {
    match patch {
        Value::Object(_) => {
            merge(target, patch);
            Ok(())
        }
        Value::Null | Value::Nothing => Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) | Value::Raw(_) => {
            let found = patch.type_name();
            Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

fn merge(target: &mut Value, mut patch: Value) {
    match (&mut *target, &mut patch) {
        (Value::Object(target), Value::Object(patch)) => return merge_members(target, patch),
        (Value::Object(_), _) => {}
        _ => drop_null_members(&mut patch),
    }
    *target = patch;
}

fn merge_members(target: &mut Object, patch: &mut Object) {
    if patch.iter().any(|(_, value)| value.is_null()) {
        target.retain(|name, _| !patch.get(name).is_some_and(Value::is_null));
    }
    let mut new = Vec::new();
    for (name, value) in patch.iter_mut().filter(|(_, value)| !value.is_null()) {
        let value = std::mem::take(value);
        match target.get_mut(name) {
            Some(member) => merge(member, value),
            None => new.push((name, value)),
        }
    }
    if new.is_empty() {
        return;
    }
    new.iter_mut().for_each(|(_, value)| drop_null_members(value));
    // New members are brought in all at once. One by one, each would shift those behind it, and a large patch of a
    // large object would take minutes.
    let old = target.iter_mut().map(|(name, value)| (name, std::mem::take(value)));
    let merged = old.chain(new).collect();
    *target = merged;
}

/// Removes what a patch says to remove where there is nothing to remove it from. Elements of arrays stay, for their
/// positions mean something.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use revisor_object::parse_json;

    use super::*;
    use crate::arbitrary_value::{any_object, any_value, any_value_without_null};

    fn json(text: &str) -> Value {
        parse_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
    }

    fn merged(target: &Value, patch: &Value) -> Value {
        let mut target = target.clone();
        merge_patch(&mut target, patch.clone()).expect("the patch is an object");
        target
    }

    #[test]
    fn merges_as_the_rfc_says() {
        for (target, patch, want) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(&json(target), &json(patch)).to_json(), want, "{target} with {patch}");
        }
    }

    #[test]
    fn merges_as_kubernetes_does() {
        let target = json(r#"{"list":[1,2],"object":{"none":null,"x":1},"text":"t"}"#);
        for (patch, want) in [
            ("{}", r#"{"list":[1,2],"object":{"none":null,"x":1},"text":"t"}"#),
            (r#"{"object":{"none":{"n":null}},"list":null,"text":null}"#, r#"{"object":{"none":{},"x":1}}"#),
            (r#"{"text":{"n":null},"list":null,"object":null}"#, r#"{"text":{}}"#),
            (r#"{"list":[{"n":null},null],"object":null,"text":null}"#, r#"{"list":[{},null]}"#),
            (r#"{"new":[{"n":null},null],"list":null,"object":null,"text":null}"#, r#"{"new":[{},null]}"#),
            (r#"{"object":[{"n":null},null],"list":null,"text":null}"#, r#"{"object":[{"n":null},null]}"#),
            (r#"{"absent":null,"list":null,"object":null,"text":null}"#, "{}"),
        ] {
            assert_eq!(merged(&target, &json(patch)).to_json(), want, "{patch}");
        }
    }

    #[test]
    fn a_patch_that_is_no_object_is_malformed() {
        let cannot = |found| {
            format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )
        };
        for (patch, want) in [
            ("null", "Invalid JSON Patch".to_owned()),
            (r#"["c"]"#, cannot("array")),
            (r#""bar""#, cannot("string")),
            ("1", cannot("number")),
            ("1.5", cannot("number")),
            ("false", cannot("bool")),
        ] {
            let mut target = json(r#"{"a":"foo"}"#);
            let error = merge_patch(&mut target, json(patch)).expect_err(patch);
            assert_eq!(error, PatchError::Malformed(want.clone()), "{patch}");
            assert_eq!(error.client_message(), want, "{patch}");
            assert_eq!(target.to_json(), r#"{"a":"foo"}"#, "{patch}");
        }
    }

    #[test]
    fn many_new_members_merge_into_many() {
        let object = |prefix: &str| {
            let members: Vec<String> = (0..100_000).map(|number| format!(r#""{prefix}{number:06}":1"#)).collect();
            json(&format!("{{{}}}", members.join(",")))
        };
        // All new names sort before all old ones: inserted one by one, they would shift ten thousand million members.
        let merged = merged(&object("z"), &object("a"));
        let merged = merged.as_object().expect("was an object");
        assert_eq!(merged.len(), 200_000);
        assert!(merged.iter().map(|(name, _)| name).is_sorted());
    }

    /// Whether a member is `null` that is not inside of an array.
    fn has_null_member(value: &Value) -> bool {
        value
            .as_object()
            .is_some_and(|object| object.iter().any(|(_, member)| member.is_null() || has_null_member(member)))
    }

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(object) => 1 + object.iter().map(|(_, member)| depth(member)).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether all that `patch` says is so in `target`.
    fn holds(target: Option<&Value>, patch: &Value) -> bool {
        match (target, patch) {
            (Some(Value::Object(target)), Value::Object(patch)) => {
                patch.iter().all(|(name, member)| holds(target.get(name), member))
            }
            (None, Value::Null) => true,
            (target, patch) => target == Some(patch),
        }
    }

    proptest! {
        #[test]
        fn a_patch_brings_no_null_members(target in any_value_without_null(), patch in any_object()) {
            prop_assert!(!has_null_member(&merged(&target, &patch)));
        }

        #[test]
        fn the_result_nests_no_deeper_than_its_sources(target in any_value(), patch in any_object()) {
            prop_assert!(depth(&merged(&target, &patch)) <= depth(&target).max(depth(&patch)));
        }

        #[test]
        fn an_empty_patch_changes_nothing(target in any_object()) {
            prop_assert_eq!(merged(&target, &Value::Object(Object::new())), target);
        }

        // Nulls within arrays are left out of these two: what becomes of them depends on what was there before.
        #[test]
        fn what_a_patch_says_is_so(target in any_value(), patch in any_value_without_null(), gone in any_value_without_null()) {
            let patch: Object = [("a", patch), ("b", Value::Null)].into_iter().collect();
            let mut target: Object = [("a", target)].into_iter().collect();
            target.insert("b", gone);
            let patch = Value::Object(patch);
            prop_assert!(holds(Some(&merged(&target.into(), &patch)), &patch));
        }

        #[test]
        fn to_merge_twice_is_to_merge_once(target in any_value(), patch in any_value_without_null()) {
            let patch = Value::Object([("a", patch), ("b", Value::Null)].into_iter().collect());
            let once = merged(&target, &patch);
            prop_assert_eq!(merged(&once, &patch), once);
        }
    }
}
