//! What the original says of some types and fields beside their shapes: two tables, for programs to read.
//!
//! Defaults stand here where they are not the zero values of their types. A server gives many more fields a value; what
//! clients are told is this.

use std::collections::HashMap;

use serde_json::Value;

/// Type, field, and the value as JSON.
const DEFAULTS: &str = include_str!("../../tables/defaults.tsv");

/// Type, and which of its fields exclude each other, as JSON.
const UNIONS: &str = include_str!("../../tables/unions.tsv");

/// By type, what is said of it.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    defaults: HashMap<&'static str, Vec<(&'static str, Value)>>,
    unions: HashMap<&'static str, Value>,
}

impl Annotations {
    /// Reads the tables.
    pub(crate) fn read() -> Annotations {
        let mut read = Annotations::default();
        for line in DEFAULTS.lines().skip(1) {
            let mut cells = line.splitn(3, '\t');
            if let (Some(of), Some(field), Some(value)) = (cells.next(), cells.next(), cells.next()) {
                let value = serde_json::from_str(value).expect("the table has JSON in this column");
                read.defaults.entry(of).or_default().push((field, value));
            }
        }
        for (of, union) in UNIONS.lines().skip(1).filter_map(|line| line.split_once('\t')) {
            read.unions.insert(of, serde_json::from_str(union).expect("the table has JSON in this column"));
        }
        read
    }

    /// Says it in the schema of the type with this name.
    pub(crate) fn complete(&self, name: &str, schema: &mut Value) {
        for (field, value) in self.defaults.get(name).into_iter().flatten() {
            if let Some(Value::Object(property)) = schema.get_mut("properties").and_then(|all| all.get_mut(*field)) {
                property.insert("default".to_owned(), value.clone());
            }
        }
        if let (Some(union), Value::Object(schema)) = (self.unions.get(name), schema) {
            schema.insert("x-kubernetes-unions".to_owned(), union.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_catalog::{Catalog, CatalogOptions};

    use super::*;
    use crate::openapi::{Descriptions, schemas};

    #[test]
    fn every_row_is_about_something_that_there_is() {
        let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is all of it");
        let mut types = schemas::built_in(&catalog, &Descriptions::default());
        let annotations = Annotations::read();
        assert!(annotations.defaults.len() > 20 && annotations.unions.len() > 5);
        for (name, fields) in &annotations.defaults {
            let schema = types.get_mut(*name).unwrap_or_else(|| panic!("no type {name}"));
            annotations.complete(name, schema);
            for (field, value) in fields {
                assert_eq!(&schema["properties"][*field]["default"], value, "{name} {field}");
            }
        }
        for name in annotations.unions.keys() {
            assert!(types.contains_key(*name), "{name}");
        }
    }
}
