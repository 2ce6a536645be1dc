//! [`Crd`]: what is compared of a definition.

use std::cell::OnceCell;

use revisor_cel::Environment;
use revisor_convert::{Conversion, VersionSchema};
use revisor_object::{Object, Value};
use revisor_schema::Structural;

use crate::budget::Budget;
use crate::{Class, Effort, Finding, Report, facets, pairs, walk};

/// A definition, ready to be compared.
#[derive(Debug)]
pub struct Crd {
    pub(crate) name: String,
    pub(crate) spec: Object,
    pub(crate) versions: Vec<Version>,
    pub(crate) stored_versions: Vec<String>,
    pub(crate) environment: Environment,
    pub(crate) minor: u32,
}

/// One version of a definition.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) is_served: bool,
    pub(crate) is_storage: bool,
    /// Whether nothing is pruned from its objects, because the definition says so of all.
    pub(crate) is_preserving: bool,
    pub(crate) structural: Structural,
    /// The rest of what the definition says of it.
    pub(crate) object: Object,
    group: String,
    kind: String,
    /// Made ready when an object is held against it.
    schema: OnceCell<VersionSchema>,
}

/// Why an object cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CrdError {
    /// It is something else.
    #[error("is no CustomResourceDefinition of apiextensions.k8s.io/v1 or v1beta1")]
    OtherKind,
    /// Something is missing in it.
    #[error("{0} is missing")]
    Missing(String),
}

impl Crd {
    /// Reads a definition. `environment` is what its rules may speak of, `minor` the release to behave as.
    pub fn read(definition: &Object, environment: &Environment, minor: u32) -> Result<Crd, CrdError> {
        let version = definition.str("apiVersion").unwrap_or_default();
        let is_known = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"].contains(&version);
        if definition.str("kind") != Some("CustomResourceDefinition") || !is_known {
            return Err(CrdError::OtherKind);
        }
        let definition = crate::to_v1(definition.clone());
        let text = |path: &[&str]| {
            let found = definition.at(path).and_then(Value::as_str).filter(|text| !text.is_empty());
            found.map(str::to_owned).ok_or_else(|| CrdError::Missing(path.join(".")))
        };
        let (name, group) = (text(&["metadata", "name"])?, text(&["spec", "group"])?);
        let kind = text(&["spec", "names", "kind"])?;
        let spec = definition.object("spec").cloned().unwrap_or_default();
        let is_preserving = spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(true);
        let mut versions = Vec::new();
        for (index, version) in spec.array("versions").iter().enumerate() {
            let missing = |what: &str| CrdError::Missing(format!("spec.versions[{index}].{what}"));
            let mut object = version.as_object().cloned().ok_or_else(|| missing("name"))?;
            let schema = object.remove("schema");
            let schema = schema.as_ref().and_then(|schema| schema.as_object()?.object("openAPIV3Schema"));
            let flag = |name: &str| object.get(name).and_then(Value::as_bool) == Some(true);
            versions.push(Version {
                name: object.str("name").ok_or_else(|| missing("name"))?.to_owned(),
                is_served: flag("served"),
                is_storage: flag("storage"),
                is_preserving,
                structural: Structural::read(schema.ok_or_else(|| missing("schema.openAPIV3Schema"))?),
                object,
                group: group.clone(),
                kind: kind.clone(),
                schema: OnceCell::new(),
            });
        }
        if versions.is_empty() {
            return Err(CrdError::Missing("spec.versions".to_owned()));
        }
        let stored = definition.object("status").map(|status| status.array("storedVersions")).unwrap_or_default();
        let stored_versions = stored.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Crd { name, spec, versions, stored_versions, environment: environment.clone(), minor })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is new to a definition that was not there before.
    pub fn appears(&self) -> Report {
        let message = "the definition is new".to_owned();
        Report { findings: vec![self.finding(None, "metadata.name", Class::Additive, message)], left_out: 0 }
    }

    /// What is lost with a definition that is gone.
    pub fn vanishes(&self) -> Report {
        let message = "the definition is gone, and all objects go with it".to_owned();
        Report { findings: vec![self.finding(None, "metadata.name", Class::BreaksAll, message)], left_out: 0 }
    }

    /// What a change from this definition to another one does. `conversion` converts between the versions of the new one.
    pub fn compare(&self, new: &Crd, conversion: Option<&Conversion>, effort: Effort) -> Report {
        let mut findings = facets::compare(self, new);
        let budget = Budget::of(effort);
        for version in &new.versions {
            let Some(old) = self.version(&version.name) else { continue };
            if old.is_served || version.is_served || old.is_storage {
                let (of_pair, beside) = (None, None);
                let scene =
                    walk::Scene { crd: new, old, new: version, conversion, effort, budget: &budget, of_pair, beside };
                findings.extend(walk::compare(&scene));
            }
        }
        findings.extend(pairs::compare(self, new, conversion, effort, &budget));
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.class));
        let left_out = findings.len().saturating_sub(effort.findings);
        findings.truncate(effort.findings);
        Report { findings, left_out }
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    pub(crate) fn finding(&self, version: Option<&Version>, path: &str, class: Class, message: String) -> Finding {
        Finding {
            definition: self.name.clone(),
            version: version.map(|version| version.name.clone()),
            path: path.to_owned(),
            class,
            message,
            witness: None,
        }
    }

    pub(crate) fn converts_by_webhook(&self) -> bool {
        self.spec.object("conversion").and_then(|conversion| conversion.str("strategy")) == Some("Webhook")
    }
}

impl Version {
    /// Its schema, made ready.
    pub(crate) fn schema(&self, crd: &Crd) -> &VersionSchema {
        self.schema.get_or_init(|| self.with_structural(self.structural.clone(), crd))
    }

    /// The same version with another schema.
    pub(crate) fn with_structural(&self, structural: Structural, crd: &Crd) -> VersionSchema {
        VersionSchema::new(&self.group, &self.kind, &self.name, structural, &crd.environment, crd.minor)
    }
}
