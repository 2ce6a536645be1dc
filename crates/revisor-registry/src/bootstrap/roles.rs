//! The roles and bindings that every server has. What is missing of them is added at every start, also what an
//! operator took away, unless the object says that it is to be left alone; what an operator added stays.

use std::sync::Arc;

use revisor_auth::{PolicyRule, missing_rights};
use revisor_catalog::{BootstrapRole, Resource};
use revisor_object::{Object, Value, Warnings};

use super::Made;
use crate::role_book::GROUP;
use crate::{Decoded, DeleteOptions, Place, Preconditions, Registry, RegistryError, WriteOptions};

/// Says with `false` that an object is to be left alone.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// How often it is tried anew because somebody else changed the object.
const MAX_ATTEMPTS: usize = 5;

/// What is to be done about an object that is there.
#[derive(Debug, PartialEq)]
enum Step {
    /// Nothing: it has all that it should.
    Keep,
    /// Put this in its place.
    Update(Object),
    /// Make it anew: a binding of another role cannot be changed into this one.
    Replace,
}

impl Registry {
    /// Brings the roles and bindings of namespaces, or those of the whole cluster, into order; all at once.
    pub(super) async fn ensure_roles(
        &self,
        of_namespaces: bool,
        options: WriteOptions<'_>,
    ) -> Result<Made, RegistryError> {
        let wanted = self.catalog.bootstrap_roles().into_iter();
        let wanted = wanted.filter(|wanted| wanted.namespace.is_some() == of_namespaces);
        Made::all(wanted.map(|wanted| self.ensure_role(wanted, options))).await
    }

    async fn ensure_role(&self, wanted: BootstrapRole, options: WriteOptions<'_>) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource(GROUP, "v1", wanted.plural) else { return Ok(()) };
        let mut attempt = 1;
        loop {
            match self.try_ensure_role(resource, &wanted, options).await {
                // Another server on the same store may have been faster.
                Err(
                    RegistryError::AlreadyExists { .. }
                    | RegistryError::Conflict { .. }
                    | RegistryError::NotFound { .. },
                ) if attempt < MAX_ATTEMPTS => attempt += 1,
                // A namespace that somebody deletes gets no roles.
                Err(RegistryError::NoSuchNamespace(_))
                | Err(RegistryError::Forbidden { terminating_namespace: Some(_), .. }) => return Ok(()),
                done => return done,
            }
        }
    }

    async fn try_ensure_role(
        &self,
        resource: &Arc<Resource>,
        wanted: &BootstrapRole,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let BootstrapRole { namespace, name, object, .. } = wanted;
        let decoded = |object: &Object| Decoded { object: object.clone(), warnings: Warnings::default() };
        let fresh = Place { resource, namespace: *namespace, name: None };
        let place = Place { name: Some(name), ..fresh };
        let stored = self.cache_of(resource).get(&resource.key(*namespace, name));
        let Some(stored) = stored else {
            return self.create(fresh, decoded(object), options).await.map(|_| ());
        };
        let stored = Decoded::stored(stored.bytes())?;
        match step(&stored, object) {
            Step::Keep => {}
            Step::Update(object) => {
                self.update(place, decoded(&object), options).await?;
            }
            Step::Replace => {
                let uid = stored.at(&["metadata", "uid"]).and_then(Value::as_str).map(str::to_owned);
                let preconditions = Preconditions { uid, ..Preconditions::default() };
                let delete = DeleteOptions { preconditions, ..DeleteOptions::default() };
                self.delete_for(place, &delete, options).await?;
                self.create(fresh, decoded(object), options).await?;
            }
        }
        Ok(())
    }
}

/// What is to be done about what is stored, so that it has all that is wanted.
fn step(stored: &Object, wanted: &Object) -> Step {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    if text(stored.at(&["metadata", "annotations", AUTO_UPDATE])) == "false" {
        return Step::Keep;
    }
    if stored.get("roleRef") != wanted.get("roleRef") {
        return Step::Replace;
    }
    let mut merged = stored.clone();
    for map in ["labels", "annotations"] {
        let wanted = wanted.at(&["metadata", map]).and_then(Value::as_object);
        for (key, value) in wanted.into_iter().flat_map(Object::iter) {
            if stored.at(&["metadata", map, key]).is_none() {
                merged.object_mut("metadata").object_mut(map).insert(key, value.clone());
            }
        }
    }
    if stored.get("rules") != wanted.get("rules") {
        let missing = missing_rights(&PolicyRule::all_of(stored), &PolicyRule::all_of(wanted));
        append(&mut merged, "rules", missing.iter().map(|rule| rule.to_object().into()).collect());
    }
    let subjects: Vec<Value> = missing_items(stored.array("subjects"), wanted.array("subjects"));
    append(&mut merged, "subjects", subjects);
    match wanted.object("aggregationRule") {
        None => {
            merged.remove("aggregationRule");
        }
        Some(gathering) => {
            let known = stored.object("aggregationRule").map(|rule| rule.array("clusterRoleSelectors"));
            let more = missing_items(known.unwrap_or_default(), gathering.array("clusterRoleSelectors"));
            if !more.is_empty() {
                append(merged.object_mut("aggregationRule"), "clusterRoleSelectors", more);
            }
        }
    }
    if merged == *stored { Step::Keep } else { Step::Update(merged) }
}

fn missing_items(stored: &[Value], wanted: &[Value]) -> Vec<Value> {
    wanted.iter().filter(|item| !stored.contains(item)).cloned().collect()
}

fn append(object: &mut Object, list: &str, items: Vec<Value>) {
    if items.is_empty() {
        return;
    }
    match object.array_mut(list) {
        Some(known) => known.extend(items),
        None => {
            object.insert(list, items);
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("not an object: {other:?}"),
        }
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_more_stays() {
        let get = r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}"#;
        let both = r#"{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}"#;
        let list = r#"{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}"#;
        let selector = r#"{"matchLabels":{"a":"b"}}"#;
        let reference = r#""roleRef":{"kind":"ClusterRole","name":"r"}"#;
        let (ann, bob) = (r#"{"kind":"User","name":"ann"}"#, r#"{"kind":"User","name":"bob"}"#);
        for (case, stored, wanted, want) in [
            ("the same", format!(r#"{{"rules":[{get}]}}"#), format!(r#"{{"rules":[{get}]}}"#), None),
            ("covered", format!(r#"{{"rules":[{both}]}}"#), format!(r#"{{"rules":[{get}]}}"#), None),
            (
                "a verb",
                format!(r#"{{"rules":[{get}]}}"#),
                format!(r#"{{"rules":[{both}]}}"#),
                Some(format!(r#"{{"rules":[{get},{list}]}}"#)),
            ),
            (
                "all rules",
                r#"{"metadata":{"name":"r"}}"#.to_owned(),
                format!(r#"{{"rules":[{get}]}}"#),
                Some(format!(r#"{{"metadata":{{"name":"r"}},"rules":[{get}]}}"#)),
            ),
            (
                "left alone",
                format!(r#"{{"metadata":{{"annotations":{{"{AUTO_UPDATE}":"false"}}}}}}"#),
                format!(r#"{{"rules":[{get}]}}"#),
                None,
            ),
            (
                "a label, but not one that says something else",
                r#"{"metadata":{"labels":{"a":"mine","c":"d"}}}"#.to_owned(),
                r#"{"metadata":{"labels":{"a":"b","e":"f"}}}"#.to_owned(),
                Some(r#"{"metadata":{"labels":{"a":"mine","c":"d","e":"f"}}}"#.to_owned()),
            ),
            (
                "a subject",
                format!(r#"{{{reference},"subjects":[{bob}]}}"#),
                format!(r#"{{{reference},"subjects":[{ann},{bob}]}}"#),
                Some(format!(r#"{{{reference},"subjects":[{bob},{ann}]}}"#)),
            ),
            (
                "a selector",
                "{}".to_owned(),
                format!(r#"{{"aggregationRule":{{"clusterRoleSelectors":[{selector}]}}}}"#),
                Some(format!(r#"{{"aggregationRule":{{"clusterRoleSelectors":[{selector}]}}}}"#)),
            ),
            (
                "nothing to gather",
                format!(r#"{{"aggregationRule":{{"clusterRoleSelectors":[{selector}]}}}}"#),
                "{}".to_owned(),
                Some("{}".to_owned()),
            ),
        ] {
            let want = want.map_or(Step::Keep, |want| Step::Update(object(&want)));
            assert_eq!(step(&object(&stored), &object(&wanted)), want, "{case}");
        }
        let other = r#"{"roleRef":{"kind":"ClusterRole","name":"other"}}"#;
        assert_eq!(step(&object(other), &object(&format!("{{{reference}}}"))), Step::Replace);
    }
}
