//! Owners that an object names more than once: they are taken out, and the client is told
//! (upstream: `dedupOwnerReferencesAndAddWarning`).

use revisor_object::{ByValue, Object, Seen};

/// Leaves one of those owner references that are the same in everything; answers of whose objects there were more.
pub(crate) fn drop_repeated_owners(metadata: &mut Object) -> Vec<String> {
    let Some(owners) = metadata.array_mut("ownerReferences").filter(|owners| owners.len() > 1) else {
        return Vec::new();
    };
    let mut seen = Seen::default();
    let is_new: Vec<bool> = owners.iter().map(|owner| seen.is_new(ByValue(owner))).collect();
    drop(seen);
    let mut repeated = Vec::new();
    let mut is_kept = is_new.into_iter();
    owners.retain(|owner| {
        let is_kept = is_kept.next() != Some(false);
        if !is_kept {
            let uid = owner.as_object().and_then(|owner| owner.str("uid")).unwrap_or_default();
            repeated.push(uid.to_owned());
        }
        is_kept
    });
    repeated
}

/// What a client is told of owners that it named more than once, if it did.
pub(crate) fn repeated_owners(uids: &[String], is_admitted: bool) -> Option<String> {
    let when = if is_admitted { " after mutating admission happens" } else { "" };
    (!uids.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            uids.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use revisor_object::{Value, parse_json};

    use super::*;

    #[test]
    fn only_owners_that_are_the_same_in_everything_are_dropped() {
        for (owners, kept, uids) in [
            (r#"[{"uid":"a"},{"uid":"a"},{"uid":"b"},{"uid":"a"}]"#, r#"[{"uid":"a"},{"uid":"b"}]"#, vec!["a", "a"]),
            (
                r#"[{"uid":"a","name":"x"},{"uid":"a","name":"y"}]"#,
                r#"[{"name":"x","uid":"a"},{"name":"y","uid":"a"}]"#,
                vec![],
            ),
            (r#"[{"uid":"a"}]"#, r#"[{"uid":"a"}]"#, vec![]),
        ] {
            let mut metadata = Object::new();
            metadata.insert("ownerReferences", parse_json(owners.as_bytes()).expect("JSON").value);
            assert_eq!(drop_repeated_owners(&mut metadata), uids, "{owners}");
            assert_eq!(metadata.get("ownerReferences").map(Value::to_json).as_deref(), Some(kept), "{owners}");
        }
        assert_eq!(repeated_owners(&[], false), None);
        let told = repeated_owners(&["a".to_owned(), "b".to_owned()], true).unwrap_or_default();
        assert!(
            told.contains("entries after mutating admission happens;") && told.ends_with("observed: a, b"),
            "{told}"
        );
    }
}
