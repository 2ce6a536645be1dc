//! [`Definition`]: what conversions need to know of a `CustomResourceDefinition`.

use revisor_cel::Environment;
use revisor_object::{Object, Value};
use revisor_schema::Structural;

use crate::schema::VersionSchema;

/// The versions of a custom resource.
#[derive(Debug)]
pub struct Definition {
    name: String,
    versions: Vec<VersionSchema>,
    storage: usize,
}

/// Why an object is no definition that conversions can be checked against.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// It is something else.
    #[error("is no CustomResourceDefinition of apiextensions.k8s.io/v1")]
    OtherKind,
    /// Something is missing in it.
    #[error("{0} is missing")]
    Missing(String),
}

impl Definition {
    /// Reads a definition. `environment` is what the rules of its schemas may speak of, `minor` the release to behave as.
    pub fn read(definition: &Object, environment: &Environment, minor: u32) -> Result<Definition, DefinitionError> {
        let is_definition = definition.str("kind") == Some("CustomResourceDefinition")
            && definition.str("apiVersion") == Some("apiextensions.k8s.io/v1");
        if !is_definition {
            return Err(DefinitionError::OtherKind);
        }
        let text = |path: &[&str]| {
            let found = definition.at(path).and_then(Value::as_str);
            found.ok_or_else(|| DefinitionError::Missing(path.join(".")))
        };
        let (group, kind) = (text(&["spec", "group"])?, text(&["spec", "names", "kind"])?);
        let name = text(&["metadata", "name"])?.to_owned();
        let listed = definition.object("spec").map(|spec| spec.array("versions")).unwrap_or_default();
        let (mut versions, mut storage) = (Vec::new(), 0);
        for (index, version) in listed.iter().enumerate() {
            let missing = |what: &str| DefinitionError::Missing(format!("spec.versions[{index}].{what}"));
            let version = version.as_object().ok_or_else(|| missing("name"))?;
            let name = version.str("name").ok_or_else(|| missing("name"))?;
            let schema = version.at(&["schema", "openAPIV3Schema"]).and_then(Value::as_object);
            let schema = Structural::read(schema.ok_or_else(|| missing("schema.openAPIV3Schema"))?);
            if version.get("storage") == Some(&Value::Bool(true)) {
                storage = versions.len();
            }
            versions.push(VersionSchema::new(group, kind, name, schema, environment, minor));
        }
        if versions.is_empty() {
            return Err(DefinitionError::Missing("spec.versions".to_owned()));
        }
        Ok(Definition { name, versions, storage })
    }

    /// Its name, which its Conversion has too.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All versions.
    pub fn versions(&self) -> &[VersionSchema] {
        &self.versions
    }

    /// The version that is stored.
    pub fn storage(&self) -> &VersionSchema {
        &self.versions[self.storage]
    }

    /// The number of a version by its name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| version.name() == name)
    }

    /// The version that an object is in.
    pub fn version_of(&self, object: &Object) -> Option<&VersionSchema> {
        let api_version = object.str("apiVersion")?;
        let is_own = |version: &&VersionSchema| version.api_version() == api_version;
        self.versions.iter().find(is_own).filter(|version| object.str("kind") == Some(version.kind()))
    }
}
