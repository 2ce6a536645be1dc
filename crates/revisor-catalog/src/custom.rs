//! Custom resources: what a definition makes of the objects of each of its versions.
//!
//! An object of a built-in kind is worked on in the version in which it is stored. A custom one is worked on in the
//! version in which it was sent, because only that version's schema knows its fields; it is converted when it is stored
//! and when it is read.

mod change;
mod conversion;
mod conversion_tally;
mod field_tally;
mod resources;
mod stored;
mod writes_under_way;

pub use change::{DefinitionChange, DefinitionState, Effect, Extent, FieldEffect, FoundEffect};
pub use conversion::{CustomConversion, Unconverted};
pub use conversion_tally::{ConversionSample, ConversionWay};
pub(crate) use conversion_tally::{ConversionTallies, ConversionTally};
pub use field_tally::{FieldTally, FieldUse};
pub use resources::CustomResources;
pub use stored::{Beneath, LaidDown};
pub use writes_under_way::{WriteUnderWay, WritesUnderWay};

use std::sync::Arc;

use compact_str::CompactString;
use revisor_cel::{CompiledRules, OBJECT_BUDGET, Subject};
use revisor_object::names::{self, NameRule};
use revisor_object::{FieldErrors, FieldNames, FieldPath, Object, Seen, Value, Warnings};
use revisor_schema::{
    CustomSchema, Encoded, Findings, Malformed, MetadataType, Misfit, StructId, Types, blocks_rules,
    encode_custom_object,
};

use crate::checks::put_back;
use crate::strategy::{Circumstances, Part, Places, Strategy};
use crate::{ScalePaths, validate_metadata};

/// All versions of one definition.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) kind: CompactString,
    /// The API versions and their schemas, served or not.
    pub(crate) versions: Vec<(CompactString, Arc<CustomSchema>)>,
    /// The types of their objects, as those see them who keep track of fields.
    pub(crate) typed: Vec<(Arc<Types>, StructId)>,
    /// Which of them is stored.
    pub(crate) storage: usize,
    /// Whether clients can use that one.
    pub(crate) serves_storage: bool,
    /// How objects get from one of them to another.
    pub(crate) conversion: CustomConversion,
    pub(crate) tally: Arc<ConversionTally>,
    pub(crate) writes: WritesUnderWay,
    /// Whether objects keep what their schemas do not know.
    pub(crate) preserves_unknown_fields: bool,
    /// The built-in types, and that of metadata among them.
    pub(crate) types: Arc<Types>,
    pub(crate) metadata: StructId,
}

impl Family {
    pub(crate) fn metadata(&self) -> MetadataType<'_> {
        MetadataType { types: &self.types, id: self.metadata }
    }

    /// Makes an object fit a schema of this family. Answers the paths of what was unknown.
    fn fit(&self, schema: &CustomSchema, object: &mut Object, malformed: Malformed) -> Result<FieldNames, Misfit> {
        if self.preserves_unknown_fields {
            schema.fit_preserving(object, self.metadata(), malformed)
        } else {
            schema.fit(object, self.metadata(), malformed)
        }
    }

    /// The same for what does not come from a client: what is malformed is dropped.
    fn shape(&self, schema: &CustomSchema, object: &mut Object) {
        // Nothing is refused that way; were it, the object would be shown as it is.
        let _ = self.fit(schema, object, Malformed::Drop);
    }

    fn schema(&self, api_version: &str) -> Option<&Arc<CustomSchema>> {
        self.versions.iter().find(|(known, _)| known == api_version).map(|(_, schema)| schema)
    }
}

/// A field of custom objects that field selectors may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomField {
    /// Its name in a selector: `spec.color`.
    pub name: String,
    /// Where its value stands.
    pub path: Vec<String>,
}

/// What a custom resource knows of one of its versions, beside what every resource knows.
#[derive(Debug)]
pub struct Custom {
    /// What field selectors may name.
    pub fields: Vec<CustomField>,
    /// Whether the definition is being deleted: nothing can be made any more.
    pub is_terminating: bool,
    /// What clients are told who write through this version, if nobody is to do that any more.
    pub frozen: Option<String>,
    pub(crate) family: Arc<Family>,
    pub(crate) api_version: CompactString,
    pub(crate) schema: Arc<CustomSchema>,
    pub(crate) rules: Option<CompiledRules>,
    /// How much work it is to validate even a small object, as if it were so many bytes larger.
    pub(crate) weight: usize,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<ScalePaths>,
}

impl Custom {
    /// How much work it is to validate even a small object, as if it were so many bytes larger.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// The API version that this is.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// All versions of the definition, served or not, for who looks at objects and does not write any.
    pub fn every_version(&self) -> Vec<Custom> {
        let version = |(api_version, schema): &(CompactString, Arc<CustomSchema>)| Custom {
            fields: Vec::new(),
            is_terminating: self.is_terminating,
            frozen: None,
            family: self.family.clone(),
            api_version: api_version.clone(),
            schema: schema.clone(),
            rules: None,
            weight: self.weight,
            has_status: false,
            scale: None,
        };
        self.family.versions.iter().map(version).collect()
    }

    /// The schema of this version.
    pub fn schema(&self) -> &CustomSchema {
        &self.schema
    }

    /// Whether objects keep what their schemas do not know.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.family.preserves_unknown_fields
    }

    /// All API versions of the definition, served or not.
    pub fn api_versions(&self) -> impl Iterator<Item = &str> {
        self.family.versions.iter().map(|(version, _)| version.as_str())
    }

    /// The type of the objects of a version, served or not.
    pub fn type_in(&self, api_version: &str) -> Option<(&Types, StructId)> {
        let at = self.family.versions.iter().position(|(known, _)| known == api_version)?;
        self.family.typed.get(at).map(|(types, id)| (&**types, *id))
    }

    /// The API version in which objects are stored.
    pub fn storage_version(&self) -> &str {
        &self.family.versions[self.family.storage].0
    }

    /// Whether clients can use the API version in which objects are stored.
    pub fn serves_storage_version(&self) -> bool {
        self.family.serves_storage
    }

    /// The writes that are under way by this state of the definition.
    pub fn writes(&self) -> &WritesUnderWay {
        &self.family.writes
    }

    /// Makes what a client sent fit this version.
    pub(crate) fn conform(&self, value: &mut Value) -> Result<Findings, String> {
        self.take_sent(value)?;
        let Value::Object(object) = value else {
            return Err(format!("json: cannot unmarshal {} into an object", value.type_name()));
        };
        let fitted = self.family.fit(&self.schema, object, Malformed::Refuse);
        fitted.map(|unknown_fields| Findings { unknown_fields }).map_err(|misfit| misfit.to_string())
    }

    /// Makes an applied object fit this version. What it does not know was refused before, and what is null is for
    /// validation to judge.
    pub(crate) fn conform_applied(&self, value: &mut Value) -> Result<Findings, String> {
        let Value::Object(object) = value else { return self.conform(value) };
        let fitted = self.schema.fit_preserving(object, self.family.metadata(), Malformed::Refuse);
        fitted.map(|unknown_fields| Findings { unknown_fields }).map_err(|misfit| misfit.to_string())
    }

    /// The canonical bytes of an object that shows its type.
    pub(crate) fn encode(&self, object: &Object) -> Encoded {
        encode_custom_object(object)
    }
}

/// The rules of one version of a custom resource.
pub(crate) struct CustomStrategy(pub(crate) Arc<Custom>);

impl CustomStrategy {
    /// The object with its type, which schemas and rules may speak of; and without its managers, of whom they may not, and
    /// who are often as much as the object.
    fn whole(&self, object: &Object) -> Object {
        let metadata = |metadata: &Object| -> Object {
            let seen = metadata.iter().filter(|(name, _)| *name != "managedFields");
            seen.map(|(name, value)| (name, value.clone())).collect()
        };
        let members = object.iter().map(|(name, value)| match value {
            Value::Object(value) if name == "metadata" => (name, Value::Object(metadata(value))),
            value => (name, value.clone()),
        });
        let mut whole: Object = members.collect();
        whole.insert("apiVersion", self.0.api_version.as_str());
        whole.insert("kind", self.0.family.kind.as_str());
        whole
    }

    fn check(&self, object: &Object, old: Option<&Object>, part: Part<'_>, warnings: &mut Warnings) -> FieldErrors {
        let Custom { schema, rules, scale, family, .. } = &*self.0;
        let is_status = part == Part::Subresource("status");
        let (whole, whole_old) = (self.whole(object), old.map(|old| self.whole(old)));
        let mut errors = match (&whole_old, is_status) {
            (None, _) => schema.validate(&whole),
            (Some(old), false) => schema.validate_update(&whole, old),
            (Some(old), true) => schema.validate_status(&whole, old),
        };
        if let Some(scale) = scale {
            errors.extend(scale.problems(object, is_status));
        }
        if !is_status {
            errors.extend(schema.validate_embedded(object, family.metadata(), &embedded_metadata_problems));
        }
        errors.extend(schema.validate_lists(object, old));
        if let Some(rules) = rules {
            // Rules may assume that values are of their types and not larger than the schema says.
            let unchecked = blocks_rules(&errors).or_else(|| blocks_rules(&metadata_problems(object)));
            match unchecked {
                Some(unchecked) => errors.push(unchecked),
                None => {
                    let (object, old) = (Value::Object(whole), whole_old.map(Value::Object));
                    let (object, old) = (&object, old.as_ref());
                    let subject = Subject { schema: schema.structural(), object, old, ratcheting: old.is_some() };
                    let verdict = rules.validate(&subject, &FieldPath::none(), OBJECT_BUDGET);
                    errors.extend(verdict.errors);
                    warnings.extend(verdict.warnings);
                }
            }
        }
        errors
    }
}

/// What is wrong with the metadata of the object itself, as far as its rules are concerned. It is told elsewhere.
fn metadata_problems(object: &Object) -> FieldErrors {
    let empty = Object::new();
    let metadata = object.object("metadata").unwrap_or(&empty);
    let is_namespaced = metadata.contains("namespace");
    validate_metadata(metadata, is_namespaced, NameRule::Dns1123Subdomain)
}

/// What is wrong with the metadata of a resource inside another one.
fn embedded_metadata_problems(metadata: &Object) -> FieldErrors {
    let is_namespaced = metadata.str("namespace").is_some_and(|namespace| !namespace.is_empty());
    validate_metadata(metadata, is_namespaced, NameRule::PathSegment)
}

/// Finalizers that everyone knows, although they belong to nobody's domain.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

impl Strategy for CustomStrategy {
    fn counts_generation(&self) -> bool {
        true
    }

    fn is_changed(&self, object: &Object, old: &Object) -> bool {
        let counts = |name: &str| !["metadata", "apiVersion", "kind"].contains(&name);
        let count = |object: &Object| object.iter().filter(|(name, _)| counts(name)).count();
        count(object) != count(old) || object.iter().any(|(name, value)| counts(name) && old.get(name) != Some(value))
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        match part {
            Part::Subresource("status") => &[&["metadata"], &["spec"]],
            _ if self.0.has_status => &[&["status"]],
            _ => &[],
        }
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, _: Circumstances<'_>) {
        if part == Part::Subresource("status") {
            // Custom objects may have more than a spec beside their status, and all of it stays.
            let managed = object.at(&["metadata", "managedFields"]).cloned();
            let status = object.remove("status");
            *object = old.clone();
            object.set("status", status);
            object.object_mut("metadata").set("managedFields", managed);
        } else {
            put_back(object, old, self.untouched(part));
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        self.check(object, None, Part::Whole, &mut Warnings::default())
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        self.check(object, Some(old), part, &mut Warnings::default())
    }

    fn validate_update_warning(
        &self,
        object: &Object,
        old: &Object,
        part: Part<'_>,
        _: Circumstances<'_>,
        warnings: &mut Warnings,
    ) -> FieldErrors {
        self.check(object, Some(old), part, warnings)
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let before: Seen<&str> = old.into_iter().flat_map(finalizers).collect();
        let mut new: Vec<&str> = finalizers(object).into_iter().filter(|name| !before.has(name)).collect();
        new.sort_unstable();
        new.dedup();
        let metadata = FieldPath::root("metadata");
        let path = metadata.child("finalizers");
        new.into_iter()
            .flat_map(finalizer_problems)
            .map(|(name, problem)| format!("{path}: {name:?}: {problem}"))
            .collect()
    }
}

fn finalizers(object: &Object) -> Vec<&str> {
    let metadata = object.object("metadata");
    let names = metadata.map(|metadata| metadata.array("finalizers")).unwrap_or_default();
    names.iter().filter_map(Value::as_str).collect()
}

/// What is unwise about the name of a finalizer.
fn finalizer_problems(name: &str) -> Vec<(&str, String)> {
    let mut problems: Vec<(&str, String)> =
        names::qualified_name(name).into_iter().map(|problem| (name, problem.to_owned())).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        let advice = format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        );
        problems.push((name, advice));
    }
    problems
}
