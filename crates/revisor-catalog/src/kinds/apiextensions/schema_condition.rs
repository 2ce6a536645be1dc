//! What the status of a definition says about schemas that are not structural. None can be written any more, but older
//! servers let them pass, and what they stored may be read here.

use revisor_object::{FieldError, FieldPath, Object, Value, aggregate_message, clip};

use super::condition::{self, Condition, NON_STRUCTURAL_SCHEMA};
use super::{schema_tree, shared_parts, structure};
use crate::kinds::members::{is_true, objects, part, text};

/// Puts the condition into the status of a definition, or takes it out.
pub(super) fn settle(definition: &mut Object, now: &str) {
    match violations(definition) {
        Some(condition) if condition.is_in(definition) => {}
        Some(condition) => condition.put(definition, now),
        None if condition::find(definition, NON_STRUCTURAL_SCHEMA).is_none() => {}
        None => {
            let status = definition.object_mut("status");
            let mut conditions = status.array("conditions").to_vec();
            let is_kept = |condition: &Value| {
                condition.as_object().is_some_and(|condition| text(condition, "type") != NON_STRUCTURAL_SCHEMA)
            };
            conditions.retain(is_kept);
            status.insert("conditions", conditions);
        }
    }
}

fn violations(definition: &Object) -> Option<Condition> {
    let spec = part(definition, "spec");
    let mut errors = Vec::new();
    if is_true(spec, "preserveUnknownFields") {
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, "must be false"));
    }
    for (at, version) in objects(spec, "versions") {
        let Some(schema) = shared_parts::schema(version.get("schema")) else { continue };
        if let Some(reason) = schema_tree::unreadable(schema) {
            let name = text(version, "name");
            let message = format!("failed to check validation schema for version {name}: {reason}");
            return Some(Condition::new(NON_STRUCTURAL_SCHEMA, "Unknown", "StructuralError", message));
        }
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        errors.extend(structure::validate(FieldPath::root(&path), schema));
    }
    let is_wrong = !errors.is_empty();
    is_wrong.then(|| Condition::new(NON_STRUCTURAL_SCHEMA, "True", "Violations", clip(aggregate_message(&errors))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn schemas_that_are_not_structural_are_told() {
        for (version, want) in [
            (r#"{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}}"#, None),
            (r#"{"name":"v1"}"#, None),
            (
                r#"{"name":"v1","schema":{"openAPIV3Schema":{"$ref":"x"}}}"#,
                Some("failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported"),
            ),
            (
                r#"{"name":"v1","schema":{"openAPIV3Schema":{}}}"#,
                Some("spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root"),
            ),
        ] {
            let mut definition = object(&format!(r#"{{"spec":{{"versions":[{version}]}}}}"#));
            settle(&mut definition, "now");
            let message = |definition: &Object| {
                condition::find(definition, NON_STRUCTURAL_SCHEMA).map(|found| text(found, "message").to_owned())
            };
            assert_eq!(message(&definition).as_deref(), want, "{version}");
            definition.remove("spec");
            settle(&mut definition, "later");
            assert_eq!(message(&definition), None, "{version}");
        }
    }
}
