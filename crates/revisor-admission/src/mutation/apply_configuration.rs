//! `Object{…}` values as configurations that are laid over an object.

use revisor_cel::CelValue;
use revisor_merge::{atomic_places, overlay};
use revisor_object::{Object, Value};
use revisor_schema::{StructId, Types};

use super::check_type_names;

/// The configuration that a value is, without its type, which is that of the object.
pub(crate) fn configuration_of(value: &CelValue<'_>) -> Result<Object, String> {
    let CelValue::Structure(structure) = value else {
        return Err(format!("unsupported return type from ApplyConfiguration expression: {}", value.type_name()));
    };
    check_type_names(structure)?;
    match value.to_json() {
        Ok(Value::Object(mut configuration)) => {
            configuration.remove("apiVersion");
            configuration.remove("kind");
            Ok(configuration)
        }
        Ok(_) => Err("invalid return type".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Lays a configuration over an object of type `id`. Nobody comes to manage what it sets.
///
/// # Errors
/// Why it cannot be: it is not of the type, or it sets only a part of what is seen as one value.
pub fn merge_configuration(
    types: &Types,
    id: StructId,
    object: &mut Object,
    configuration: &Object,
) -> Result<(), String> {
    let refuse = |why: String| Err(format!("error applying patch: {why}"));
    if let Some(problem) = types.typed_problems(id, configuration) {
        return refuse(format!("failed to convert patch object to typed object: {problem}"));
    }
    let atomics = atomic_places(types, id, configuration);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return refuse(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"));
    }
    overlay(types, id, object, configuration);
    Ok(())
}
