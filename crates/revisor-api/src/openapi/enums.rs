//! The values that a field of a built-in kind can have, where these are few: a table, for people to read.
//!
//! Whether a value is one of them is checked with the object, not by this.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Type, field, where in the field's schema the values belong, and the values.
const TABLE: &str = include_str!("../../tables/enums.csv");

/// By type, what is known of its fields.
#[derive(Debug, Default)]
pub(crate) struct Enums(HashMap<&'static str, Vec<Row>>);

#[derive(Debug)]
struct Row {
    field: &'static str,
    /// Empty for the field itself; otherwise the word for what it consists of.
    place: &'static str,
    values: Vec<&'static str>,
}

impl Enums {
    /// Reads the table.
    pub(crate) fn read() -> Enums {
        let mut types: HashMap<&str, Vec<Row>> = HashMap::new();
        for line in TABLE.lines().skip(1) {
            let mut cells = line.splitn(4, ',');
            if let (Some(of), Some(field), Some(place), Some(values)) =
                (cells.next(), cells.next(), cells.next(), cells.next())
            {
                types.entry(of).or_default().push(Row { field, place, values: values.split('|').collect() });
            }
        }
        Enums(types)
    }

    /// Adds the values of the fields of this type.
    pub(crate) fn complete(&self, name: &str, schema: &mut Value) {
        for Row { field, place, values } in self.0.get(name).into_iter().flatten() {
            let property = schema.get_mut("properties").and_then(|properties| properties.get_mut(*field));
            let found = match *place {
                "" => property,
                place => property.and_then(|property| property.get_mut(place)),
            };
            if let Some(Value::Object(found)) = found {
                found.insert("enum".to_owned(), json!(values));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_catalog::{BINARY, Catalog, CatalogOptions};
    use revisor_version::{EffectiveVersion, FeatureGates};

    use super::*;
    use crate::openapi::{Descriptions, schemas};

    #[test]
    fn every_row_is_about_a_field_that_there_is() {
        // Types of versions that are gone are served by those that behave as the releases that had them.
        let mut types = HashMap::new();
        for release in EffectiveVersion::reachable(BINARY) {
            let version = EffectiveVersion::parse(BINARY, &[release.to_string()], &[]).expect("can be reached");
            let options = CatalogOptions {
                version,
                gates: FeatureGates::parse(&["AllAlpha=true,AllBeta=true"], version, true).expect("is known"),
                allow_alpha: true,
                ..CatalogOptions::everything()
            };
            let catalog = Catalog::build(&options).expect("there is all of it");
            types.extend(schemas::built_in(&catalog, &Descriptions::default()));
        }
        let enums = Enums::read();
        assert!(enums.0.len() > 50, "{}", enums.0.len());
        for (name, rows) in &enums.0 {
            let schema = types.get_mut(*name).unwrap_or_else(|| panic!("no type {name}"));
            enums.complete(name, schema);
            for Row { field, place, values } in rows {
                let property = &schema["properties"][*field];
                let found = if place.is_empty() { property } else { &property[*place] };
                assert_eq!((&found["type"], &found["enum"]), (&json!("string"), &json!(values)), "{name} {field}");
            }
        }
    }
}
