//! `Object{…}` values as configurations that are laid over an object.

use revisor_cel::CelValue;
use revisor_merge::{atomic_places, overlay};
use revisor_object::{Object, Value};
use revisor_schema::{Shape, StructId, Types};

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
        Ok(_) | Err(_) => Err("invalid return type: *dynamic.ObjectVal".to_owned()),
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
    let problem = types.typed_problems(id, configuration).or_else(|| null_problem(types, id, configuration, ""));
    if let Some(problem) = problem {
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

/// That something is set to null. Configurations of clients may say so to mean nothing; those of policies may not.
fn null_problem(types: &Types, id: StructId, object: &Object, path: &str) -> Option<String> {
    object.iter().find_map(|(name, value)| {
        let field = types.get(id).member(name)?;
        let path = format!("{path}.{name}");
        match (&field.shape, value) {
            (shape, Value::Null) => {
                let wanted = match shape {
                    Shape::List(_) => "list",
                    Shape::Bool => "boolean",
                    Shape::Int32 | Shape::Int64 | Shape::Double => "numeric (int or float)",
                    Shape::Map(_) | Shape::Struct(_) | Shape::Either(..) => "map",
                    _ => "string",
                };
                Some(format!("{path}: expected {wanted}, got &{{NULL_VALUE}}"))
            }
            (Shape::Struct(id), Value::Object(object)) => null_problem(types, *id, object, &path),
            (Shape::List(element), Value::Array(elements)) => {
                let Shape::Struct(id) = **element else { return None };
                let mut elements =
                    elements.iter().enumerate().filter_map(|(at, element)| Some((at, element.as_object()?)));
                elements.find_map(|(at, element)| null_problem(types, id, element, &format!("{path}[{at}]")))
            }
            _ => None,
        }
    })
}
