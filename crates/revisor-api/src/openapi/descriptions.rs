//! [`Descriptions`]: what people are told about the fields of built-in kinds.
//!
//! What the original does not have is described in a table of its own. The other texts are gathered when the program is
//! built (`build.rs` of the catalog), from the published bindings of the API, and kept compressed until somebody asks for the first
//! document.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use revisor_catalog::PACKED_DESCRIPTIONS;
use serde_json::Value;

use super::annotations::Annotations;
use super::enums::Enums;

/// The texts of what is not in the original: the type, the field or nothing, and the text, separated by tabs.
const OWN: &str = include_str!("../../tables/descriptions.tsv");

/// A kind that says of the fields which every object has what can be said of all of them.
const COMMON: &str = "io.k8s.api.core.v1.ConfigMap";

/// The texts, by type and field, and the values that fields can have.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    texts: HashMap<String, HashMap<String, String>>,
    enums: Enums,
    annotations: Annotations,
}

impl Descriptions {
    /// The texts that the program was built with. `with_enums` is whether the values that fields can have are told.
    pub(crate) fn unpack(with_enums: bool) -> Descriptions {
        let mut lines = String::new();
        GzDecoder::new(PACKED_DESCRIPTIONS)
            .read_to_string(&mut lines)
            .expect("the program was built with texts that can be read");
        let mut texts: HashMap<String, HashMap<String, String>> = HashMap::new();
        let unpacked = lines.lines().filter_map(cells).filter_map(|(of, field, text)| {
            let text: String = serde_json::from_str(text).ok()?;
            Some((of, field, text))
        });
        let own = OWN.lines().skip(1).filter_map(cells).map(|(of, field, text)| (of, field, text.to_owned()));
        for (of, field, text) in unpacked.chain(own) {
            texts.entry(of.to_owned()).or_default().insert(field.to_owned(), text);
        }
        Descriptions {
            texts,
            enums: if with_enums { Enums::read() } else { Enums::default() },
            annotations: Annotations::read(),
        }
    }

    /// What a type is.
    pub(crate) fn of_type(&self, name: &str) -> Option<&str> {
        self.of_field(name, "")
    }

    /// What a field of a type is. Types of versions that are gone have no texts of their own any more: they are what
    /// became of them.
    pub(crate) fn of_field(&self, name: &str, field: &str) -> Option<&str> {
        let of = self.texts.get(name).or_else(|| self.texts.get(&name.replace(".v1beta1.", ".v1.")))?;
        of.get(field).map(String::as_str)
    }

    /// Describes the type with this name and its fields, where that was not done yet.
    pub(crate) fn describe(&self, name: &str, schema: &mut Value) {
        describe(schema, self.of_type(name));
        self.enums.complete(name, schema);
        self.annotations.complete(name, schema);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (field, property) in properties.iter_mut() {
                describe(property, self.of_field(name, field));
            }
        }
    }

    /// Describes a field, if it is one that every object has.
    pub(crate) fn describe_common(&self, field: &str, property: &mut Value) {
        if ["apiVersion", "kind", "metadata"].contains(&field) {
            describe(property, self.of_field(COMMON, field));
        }
    }
}

/// Type, field and text of a line.
fn cells(line: &str) -> Option<(&str, &str, &str)> {
    let mut cells = line.splitn(3, '\t');
    Some((cells.next()?, cells.next()?, cells.next()?))
}

fn describe(schema: &mut Value, text: Option<&str>) {
    if let (Value::Object(schema), Some(text)) = (schema, text)
        && !schema.contains_key("description")
    {
        schema.insert("description".to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_are_described() {
        let texts = Descriptions::unpack(true);
        for (of, field, start) in [
            ("io.k8s.api.apps.v1.DeploymentSpec", "replicas", "Number of desired pods."),
            ("io.k8s.api.core.v1.Pod", "", "Pod is a collection of containers"),
            ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "name", "Name must be unique within a namespace."),
            ("io.k8s.api.core.v1.ConfigMap", "metadata", "Standard object's metadata."),
            (
                "io.k8s.api.admissionregistration.v1beta1.ValidatingAdmissionPolicySpec",
                "paramKind",
                "paramKind specifies the kind of resources used to parameterize this policy.",
            ),
            ("dev.revisor.versioning.v1alpha1.VersionUse", "droppable", "Whether nothing keeps it from being dropped."),
        ] {
            let text = texts.of_field(of, field).unwrap_or_default();
            assert!(text.starts_with(start), "{of} {field}: {text}");
        }
        assert_eq!(texts.of_type("io.k8s.api.core.v1.Nonsense"), None);
    }
}
