//! CustomResourceDefinitions: what is filled in, what a client may set, and how one is deleted. What makes one invalid
//! is said by the files beside this one.

use revisor_object::{FieldErrors, Object, Value};

use super::condition::{Condition, TERMINATING};
use super::validation::{self, Tools};
use super::{formats, frozen_versions};
use crate::kinds::Terms;
use crate::kinds::members::{is_true, objects, part, text};
use crate::strategy::{Places, spec_or_status};
use crate::{Circumstances, Part, Strategy};

/// Holds a definition until all its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) struct CustomResourceDefinitions {
    tools: Tools,
}

impl CustomResourceDefinitions {
    pub(super) fn new(terms: &Terms) -> CustomResourceDefinitions {
        CustomResourceDefinitions { tools: Tools::new(terms) }
    }
}

impl Strategy for CustomResourceDefinitions {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        let names = spec.object_mut("names");
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            if text(names, "singular").is_empty() {
                names.insert("singular", kind.to_lowercase());
            }
            if text(names, "listKind").is_empty() {
                names.insert("listKind", format!("{kind}List"));
            }
        }
        if !spec.contains("conversion") {
            spec.object_mut("conversion").insert("strategy", "None");
        }
        let conversion = spec.object_mut("conversion");
        let says_nothing = |webhook: &Object| {
            !webhook.contains("clientConfig") && webhook.array("conversionReviewVersions").is_empty()
        };
        if conversion.object("webhook").is_some_and(says_nothing) {
            conversion.remove("webhook");
        }
        for version in spec.array_mut("versions").into_iter().flatten().filter_map(Value::as_object_mut) {
            version.get_mut("schema").into_iter().for_each(drop_empty_fractions);
        }
        if part(object, "status").array("storedVersions").is_empty() {
            store_in_storage_version(object);
        }
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    // Unlike the status of other kinds, this one brings its metadata along.
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn settle(&self, object: &mut Object, _: Option<&Object>, _: Circumstances<'_>) {
        store_in_storage_version(object);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validation::validate(object, &self.tools)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => validation::validate_update(object, old, &self.tools),
            Part::Subresource(_) => validation::validate_status(object),
        }
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let mut warnings = formats::warnings(object, old, self.tools.formats());
        warnings.extend(frozen_versions::warnings(object));
        warnings
    }

    fn marks_deleted(&self) -> bool {
        true
    }

    fn mark_deleted(&self, object: &mut Object) {
        let metadata = object.object_mut("metadata");
        let now = text(metadata, "deletionTimestamp").to_owned();
        let mut finalizers = metadata.array("finalizers").to_vec();
        if !finalizers.iter().any(|name| name.as_str() == Some(CLEANUP_FINALIZER)) {
            finalizers.push(CLEANUP_FINALIZER.into());
            metadata.insert("finalizers", finalizers);
        }
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        Condition::new(TERMINATING, "True", "InstanceDeletionPending", message).put(object, &now);
    }
}

/// Notes that objects may be stored in the version that is the storage version now.
fn store_in_storage_version(object: &mut Object) {
    let spec = part(object, "spec");
    let storage = objects(spec, "versions").find(|(_, version)| is_true(version, "storage"));
    let Some(name) = storage.map(|(_, version)| text(version, "name").to_owned()) else { return };
    let mut stored = part(object, "status").array("storedVersions").to_vec();
    if !stored.iter().any(|known| known.as_str() == Some(&name)) {
        stored.push(name.into());
        object.object_mut("status").insert("storedVersions", stored);
    }
}

/// Numbers without a fraction are written without one, wherever a schema holds them.
fn drop_empty_fractions(value: &mut Value) {
    match value {
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => *value = Value::Int(*number as i64),
        Value::Array(items) => items.iter_mut().for_each(drop_empty_fractions),
        Value::Object(object) => object.iter_mut().for_each(|(_, value)| drop_empty_fractions(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requester;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn what_is_left_out_is_filled_in() {
        let mut definition = object(
            r#"{"spec":{"names":{"plural":"things","kind":"ThinG"},"versions":[{"name":"v1"},{"name":"v2","storage":true,
                "schema":{"openAPIV3Schema":{"default":{"a":[1.0,1.5]}}}}]}}"#,
        );
        CustomResourceDefinitions::new(&terms()).default(&mut definition);
        let again = {
            let mut again = definition.clone();
            CustomResourceDefinitions::new(&terms()).default(&mut again);
            again
        };
        assert_eq!(again, definition);
        let want = object(
            r#"{"spec":{"conversion":{"strategy":"None"},
                "names":{"plural":"things","singular":"thing","kind":"ThinG","listKind":"ThinGList"},
                "versions":[{"name":"v1"},{"name":"v2","storage":true,
                    "schema":{"openAPIV3Schema":{"default":{"a":[1,1.5]}}}}]},
                "status":{"storedVersions":["v2"]}}"#,
        );
        assert_eq!(definition, want);
    }

    #[test]
    fn storage_versions_are_remembered() {
        let circumstances = Circumstances { now: "now", requester: Requester::default() };
        let with_storage = |name: &str| {
            object(&format!(
                r#"{{"spec":{{"versions":[{{"name":"{name}","storage":true}}]}},"status":{{"acceptedNames":{{"kind":"X"}}}}}}"#
            ))
        };
        let stored = |object: &Object| {
            let names = part(object, "status").array("storedVersions").iter();
            names.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        };
        let mut first = with_storage("v1");
        CustomResourceDefinitions::new(&terms()).prepare_create(&mut first, circumstances);
        assert_eq!(stored(&first), "v1");
        assert!(!part(&first, "status").contains("acceptedNames"));
        let mut second = with_storage("v2");
        CustomResourceDefinitions::new(&terms()).prepare_update(&mut second, &first, Part::Whole, circumstances);
        assert_eq!(stored(&second), "v1 v2");
        let mut third = with_storage("v3");
        CustomResourceDefinitions::new(&terms()).prepare_update(
            &mut third,
            &second,
            Part::Subresource("status"),
            circumstances,
        );
        assert_eq!(third.get("spec"), second.get("spec"));
        assert_eq!(stored(&third), "");
    }

    #[test]
    fn a_deleted_definition_waits_for_its_objects() {
        let mut definition = object(r#"{"metadata":{"deletionTimestamp":"then","finalizers":["a.example/b"]}}"#);
        CustomResourceDefinitions::new(&terms()).mark_deleted(&mut definition);
        let finalizers = definition.object("metadata").map(|metadata| metadata.array("finalizers").to_vec());
        assert_eq!(finalizers, Some(vec!["a.example/b".into(), CLEANUP_FINALIZER.into()]));
        let condition = super::super::condition::find(&definition, TERMINATING).expect("was put");
        assert_eq!((text(condition, "status"), text(condition, "lastTransitionTime")), ("True", "then"));
    }
}
