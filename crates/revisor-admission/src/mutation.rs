//! What the expressions of mutations come to: a patch, or a configuration that is laid over the object.

pub(crate) mod apply_configuration;
pub(crate) mod json_patch;

use revisor_cel::{CelValue, Structure};

/// What is wrong with the names of the types of objects that an expression writes out: each must be that of the object
/// around it with the field that it stands in (`CheckTypeNamesMatchFieldPathNames` of the original).
fn check_type_names(structure: &Structure<'_>) -> Result<(), String> {
    let mut problems = Vec::new();
    type_names(structure, &structure.name, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", problems.join("\n"))) }
}

fn type_names(structure: &Structure<'_>, wanted: &str, problems: &mut Vec<String>) {
    if *structure.name != *wanted {
        problems.push(format!(
            "unexpected type name {:?}, expected {wanted:?}, which matches field name path from root Object type",
            &*structure.name
        ));
    }
    for (name, value) in &structure.fields {
        in_value(value, &format!("{wanted}.{name}"), problems);
    }
}

/// Lists and maps have no names and are passed over.
fn in_value(value: &CelValue<'_>, wanted: &str, problems: &mut Vec<String>) {
    match value {
        CelValue::Structure(structure) => type_names(structure, wanted, problems),
        CelValue::List(list) => {
            list.iter().flatten().for_each(|element| in_value(&element, wanted, problems));
        }
        CelValue::Map(map) => {
            let values = map.keys().into_iter().filter_map(|key| map.get(&key).ok().flatten());
            values.for_each(|value| in_value(&value, wanted, problems));
        }
        _ => {}
    }
}
