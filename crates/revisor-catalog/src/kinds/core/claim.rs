//! Persistent volume claims, and the specs of claims that others make from a template.

mod update;

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector, Value,
};

use crate::checks::{self, problems};
use crate::kinds::amounts;
use crate::strategy::spec_or_status;
use crate::{Circumstances, Feature, Features, Part, Places, Strategy};

/// How volumes can be used. Also the order in which messages list them.
pub(super) const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// What volumes can be used as.
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// The annotation that named the class before there was a field for it.
pub(crate) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// What a status says of a change of size.
const ALLOCATED: [&str; 2] = ["allocatedResources", "allocatedResourceStatuses"];

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// Fills in the spec of a claim or of a template for claims.
pub(crate) fn default_claim_spec(spec: &mut Object) {
    if let Some(Value::Object(resources)) = spec.get_mut("resources") {
        amounts::round(resources, "limits");
        amounts::round(resources, "requests");
    }
}

/// What is wrong with the spec of a claim or of a template for claims.
pub(crate) fn validate_claim_spec(path: FieldPath<'_>, spec: &Object, features: Features) -> FieldErrors {
    validate_spec(path, spec, Allowances::new(features))
}

/// What is let pass or looked at because a feature is on, or because the old claim had it.
#[derive(Debug, Clone, Copy)]
struct Allowances {
    invalid_selector_values: bool,
    invalid_source_groups: bool,
    /// Whether the class of attributes is looked at.
    attributes_class: bool,
    /// Whether a claim whose growth failed may ask for less.
    recovery: bool,
}

impl Allowances {
    fn new(features: Features) -> Allowances {
        Allowances {
            invalid_selector_values: false,
            invalid_source_groups: false,
            attributes_class: features.has(Feature::VolumeAttributesClass),
            recovery: features.has(Feature::RecoverVolumeExpansionFailure),
        }
    }

    fn of(old: &Object, features: Features) -> Allowances {
        let new = Allowances::new(features);
        let has_allocated = ALLOCATED.iter().any(|name| old.at(&["status", name]).is_some());
        let empty = Object::new();
        let spec = old.object("spec").unwrap_or(&empty);
        // What names no group says so.
        let names_group = |name| spec.object(name).is_some_and(|source| source.str("apiGroup").is_some());
        let selector_errors =
            |selector| StructuredLabelSelector::new(selector).validate(&SPEC, LabelSelectorOptions::default());
        Allowances {
            invalid_selector_values: spec
                .object("selector")
                .is_some_and(|selector| !selector_errors(selector).is_empty()),
            invalid_source_groups: names_group("dataSource") || names_group("dataSourceRef"),
            attributes_class: new.attributes_class || spec.contains("volumeAttributesClassName"),
            recovery: new.recovery || has_allocated,
        }
    }
}

pub(crate) struct Claims {
    pub(crate) features: Features,
}

impl Strategy for Claims {
    fn default(&self, object: &mut Object) {
        default_claim_spec(object.object_mut("spec"));
        if let Some(Value::Object(status)) = object.get_mut("status") {
            amounts::round(status, "capacity");
            amounts::round(status, "allocatedResources");
        }
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        let (spec, old) = (object.object_mut("spec"), old.and_then(|old| old.object("spec")));
        settle_sources(spec, old, self.features);
    }

    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        let pending: Object = [("phase", Value::from("Pending"))].into_iter().collect();
        object.insert("status", pending);
        self.settle(object, None, circumstances);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        validate_claim_spec(SPEC, object.object("spec").unwrap_or(&empty), self.features)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        let allowances = Allowances::of(old, self.features);
        match part {
            Part::Whole => {
                let empty = Object::new();
                let mut errors = validate_spec(SPEC, object.object("spec").unwrap_or(&empty), allowances);
                errors.extend(update::validate(object, old, allowances, self.features));
                errors
            }
            Part::Subresource(_) => update::validate_status(object, allowances),
        }
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        if object.at(&["metadata", "annotations", CLASS_ANNOTATION]).is_some() {
            warnings.push(format!(
                "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
            ));
        }
        if let Some(spec) = object.object("spec") {
            warnings.extend(claim_spec_warnings(SPEC, spec));
        }
        warnings
    }
}

/// What is unwise about the spec of a claim or of a template for claims.
pub(crate) fn claim_spec_warnings(path: FieldPath<'_>, spec: &Object) -> Vec<String> {
    let resources = path.child("resources");
    ["requests", "limits"]
        .into_iter()
        .filter_map(|list| {
            let quantity = amounts::amount_of(spec.object("resources")?.object(list), "storage")?;
            (quantity.milli_value() % 1000 != 0).then(|| {
                let at = resources.child(list);
                format!("{}: fractional byte value \"{quantity}\" is invalid, must be an integer", at.key("storage"))
            })
        })
        .collect()
}

fn validate_spec(path: FieldPath<'_>, spec: &Object, allowances: Allowances) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let modes = path.child("accessModes");
    if spec.array("accessModes").is_empty() {
        errors.push(FieldError::required(modes, "at least 1 access mode is required"));
    }
    if let Some(selector) = spec.object("selector") {
        let options =
            LabelSelectorOptions { allow_invalid_values: allowances.invalid_selector_values, ..Default::default() };
        errors.extend(StructuredLabelSelector::new(selector).validate(&path.child("selector"), options));
    }
    errors.extend(access_modes(modes, spec));

    let resources = path.child("resources");
    let storage = resources.key("storage");
    match amounts::amount_of(spec.object("resources").and_then(|resources| resources.object("requests")), "storage") {
        None => errors.push(FieldError::required(storage, "")),
        Some(quantity) => errors.extend(amounts::positive(storage, &quantity)),
    }
    errors.extend(class_name(path.child("storageClassName"), spec.str("storageClassName").unwrap_or_default()));
    if let Some(mode) = spec.str("volumeMode") {
        errors.extend(checks::one_of(path.child("volumeMode"), mode, VOLUME_MODES));
    }
    errors.extend(validate_sources(path, spec, allowances));
    if allowances.attributes_class {
        let attributes_class = spec.str("volumeAttributesClassName").unwrap_or_default();
        errors.extend(class_name(path.child("volumeAttributesClassName"), attributes_class));
    }
    errors
}

/// The access modes of a claim or a volume, each a known one, and the exclusive one alone.
pub(super) fn access_modes(path: FieldPath<'_>, spec: &Object) -> FieldErrors {
    let modes = || spec.array("accessModes").iter().map(|mode| mode.as_str().unwrap_or_default());
    let mut errors: FieldErrors = modes().filter_map(|mode| checks::one_of(path, mode, ACCESS_MODES)).collect();
    let is_exclusive = |mode: &str| mode == "ReadWriteOncePod";
    if modes().any(is_exclusive) && modes().any(|mode| !is_exclusive(mode) && ACCESS_MODES.contains(&mode)) {
        errors.push(FieldError::forbidden(path, "may not use ReadWriteOncePod with other access modes"));
    }
    errors
}

/// The name of a class, if there is one.
pub(super) fn class_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() { FieldErrors::new() } else { problems(path, name, dns1123_subdomain(name)) }
}

fn validate_sources(path: FieldPath<'_>, spec: &Object, allowances: Allowances) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for name in ["dataSource", "dataSourceRef"] {
        let Some(source) = spec.object(name) else { continue };
        let source_path = path.child(name);
        for name in ["name", "kind"] {
            errors.extend(checks::required(source_path.child(name), source.str(name).unwrap_or_default()));
        }
        let group = source.str("apiGroup").unwrap_or_default();
        let kind = source.str("kind").unwrap_or_default();
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(source_path, kind, detail));
        }
        if !group.is_empty() && !allowances.invalid_source_groups {
            errors.extend(problems(source_path.child("apiGroup"), group, dns1123_subdomain(group)));
        }
        // Only references have a namespace.
        let namespace = source.str("namespace").unwrap_or_default();
        if !namespace.is_empty() {
            errors.extend(problems(source_path.child("namespace"), namespace, dns1123_label(namespace)));
        }
    }
    if let (Some(source), Some(reference)) = (spec.object("dataSource"), spec.object("dataSourceRef")) {
        // The value that the original shows is a path, which has no text.
        let path_value = || BadValue::Text("{}".to_owned());
        if !reference.str("namespace").unwrap_or_default().is_empty() {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(FieldError::invalid(path, path_value(), detail));
        } else if ["apiGroup", "kind", "name"].iter().any(|name| source.get(name) != reference.get(name)) {
            errors.push(FieldError::invalid(path, path_value(), "must match dataSourceRef"));
        }
    }
    errors
}

/// Brings the two fields for a source in line. A source of another kind than the old field ever knew counts only if it
/// is in the new field; a source in another namespace is a feature of its own.
fn settle_sources(spec: &mut Object, old: Option<&Object>, features: Features) {
    let old_has = |name| old.is_some_and(|old| old.contains(name));
    let crosses = spec.object("dataSourceRef").and_then(|source| source.str("namespace")).unwrap_or_default();
    let may_cross = features.has(Feature::CrossNamespaceVolumeDataSource) || old_has("dataSourceRef");
    if !crosses.is_empty() && !may_cross {
        spec.remove("dataSourceRef");
    }
    if !old_has("dataSource") && !old_has("dataSourceRef") && !spec.contains("dataSourceRef") {
        let is_known = spec.object("dataSource").is_some_and(|source| {
            matches!(
                (source.str("apiGroup").unwrap_or_default(), source.str("kind").unwrap_or_default()),
                ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
            )
        });
        if !is_known {
            spec.remove("dataSource");
        }
    }
    match (spec.object("dataSource"), spec.object("dataSourceRef")) {
        (Some(source), None) => {
            let source = source.clone();
            spec.insert("dataSourceRef", source);
        }
        (None, Some(reference)) if reference.str("namespace").unwrap_or_default().is_empty() => {
            let mut source = reference.clone();
            source.remove("namespace");
            spec.insert("dataSource", source);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
