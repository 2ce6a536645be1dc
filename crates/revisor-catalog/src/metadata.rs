//! What must be true of `metadata`, whatever the kind.

use revisor_object::names::{NameRule, builtin_kind_finalizer, dns1123_label, qualified_name};
use revisor_object::{BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value, is_printable};

use crate::checks::{self, immutable};

const METADATA: FieldPath<'static> = FieldPath::root("metadata");

/// All annotations of an object together may take up so many bytes.
pub(crate) const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// The longest name that a manager of fields may have.
const MAX_FIELD_MANAGER: usize = 128;

/// The longest name of a subresource that managed fields may show.
const MAX_SUBRESOURCE: usize = 256;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What is wrong with the metadata of an object, new or changed.
pub fn validate_metadata(metadata: &Object, namespaced: bool, names: NameRule) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let generate_name = metadata.str("generateName").unwrap_or_default();
    if !generate_name.is_empty() {
        for problem in names.check_prefix(generate_name) {
            errors.push(FieldError::invalid(METADATA.child("generateName"), generate_name, problem));
        }
    }
    match metadata.str("name").unwrap_or_default() {
        "" => errors.push(FieldError::required(METADATA.child("name"), "name or generateName is required")),
        name => {
            for problem in names.check(name) {
                errors.push(FieldError::invalid(METADATA.child("name"), name, problem));
            }
        }
    }
    let namespace = metadata.str("namespace").unwrap_or_default();
    match (namespaced, namespace) {
        (true, "") => errors.push(FieldError::required(METADATA.child("namespace"), "")),
        (true, namespace) => {
            for problem in dns1123_label(namespace) {
                errors.push(FieldError::invalid(METADATA.child("namespace"), namespace, problem));
            }
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(METADATA.child("namespace"), "not allowed on this type")),
    }
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(METADATA.child("generation"), generation, detail));
    }
    validate_open_parts(metadata, &mut errors);
    validate_finalizers(metadata, &mut errors);
    errors
}

/// What is wrong with metadata in place of the old (upstream: `ValidateObjectMetaAccessorUpdate`). As there, the parts
/// that clients fill as they like are looked at once more.
pub fn validate_metadata_update(metadata: &Object, old: &Object) -> FieldErrors {
    let mut errors = validate_metadata_change(metadata, old);
    validate_open_parts(metadata, &mut errors);
    errors
}

/// The same without those parts, for who has looked at them.
pub fn validate_metadata_change(metadata: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if old.contains("deletionTimestamp") {
        let known: Seen<ByValue<'_>> = old.array("finalizers").iter().map(ByValue).collect();
        let added: Vec<&str> = metadata
            .array("finalizers")
            .iter()
            .filter(|name| !known.has(&ByValue(name)))
            .filter_map(Value::as_str)
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
            );
            errors.push(FieldError::forbidden(METADATA.child("finalizers"), detail));
        }
    }
    if metadata.str("resourceVersion").unwrap_or_default().is_empty() {
        errors.push(FieldError::invalid(METADATA.child("resourceVersion"), "", "must be specified for an update"));
    }
    for name in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        errors.extend(immutable(METADATA.child(name), metadata.get(name), old.get(name)));
    }
    errors
}

/// The parts that clients fill as they like: labels, annotations, owners, managed fields.
fn validate_open_parts(metadata: &Object, errors: &mut FieldErrors) {
    errors.extend(checks::labels(METADATA.child("labels"), metadata.object("labels")));
    errors.extend(checks::annotations(METADATA.child("annotations"), metadata.object("annotations")));
    validate_owners(metadata, errors);
    let managed_path = METADATA.child("managedFields");
    for (at, entry) in metadata.array("managedFields").iter().filter_map(Value::as_object).enumerate() {
        let entry_path = managed_path.index(at);
        let operation = entry.str("operation").unwrap_or_default();
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(entry_path.child("operation"), operation, detail));
        }
        let fields_type = entry.str("fieldsType").unwrap_or_default();
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(entry_path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(entry_path.child("manager"), entry.str("manager").unwrap_or_default()));
        if entry.str("subresource").unwrap_or_default().len() > MAX_SUBRESOURCE {
            errors.push(FieldError::too_long(entry_path.child("subresource"), MAX_SUBRESOURCE));
        }
    }
}

/// What is wrong with the name of a manager of fields.
pub fn validate_field_manager(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if name.len() > MAX_FIELD_MANAGER {
        errors.push(FieldError::too_long(path, MAX_FIELD_MANAGER));
    }
    for (at, character) in name.char_indices().filter(|(_, character)| !is_printable(*character)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

fn validate_owners(metadata: &Object, errors: &mut FieldErrors) {
    let path = METADATA.child("ownerReferences");
    let mut controller: Option<String> = None;
    for owner in metadata.array("ownerReferences").iter().filter_map(Value::as_object) {
        let text = |name| owner.str(name).unwrap_or_default();
        let api_version = text("apiVersion");
        let has_version = match api_version.split_once('/') {
            // As the original's `FromAPIVersionAndKind`, which knows no more than one slash.
            Some((_, version)) => !version.is_empty() && !version.contains('/'),
            None => !api_version.is_empty(),
        };
        if !has_version {
            errors.push(FieldError::invalid(path.child("apiVersion"), api_version, "version must not be empty"));
        }
        for name in ["kind", "name", "uid"] {
            if text(name).is_empty() {
                errors.push(FieldError::invalid(path.child(name), "", "must not be empty"));
            }
        }
        if (api_version, text("kind")) == ("v1", "Event") {
            let owner = BadValue::of(&Value::Object(owner.clone()));
            errors.push(FieldError::invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => errors.push_with(|| {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let owners = BadValue::of(&Value::from(metadata.array("ownerReferences").to_vec()));
                    FieldError::invalid(path, owners, detail)
                }),
            }
        }
    }
}

/// What is wrong with finalizers of a kind that knows by name all that belong to nobody's domain.
pub fn validate_known_finalizers(metadata: &Object) -> FieldErrors {
    let path = METADATA.child("finalizers");
    let names = metadata.array("finalizers").iter().enumerate();
    names
        .filter_map(|(at, name)| Some((at, name.as_str()?)))
        .flat_map(|(at, name)| builtin_kind_finalizer(name).into_iter().map(move |problem| (at, name, problem)))
        .map(|(at, name, problem)| FieldError::invalid(path.index(at), name, problem))
        .collect()
}

fn validate_finalizers(metadata: &Object, errors: &mut FieldErrors) {
    let path = METADATA.child("finalizers");
    let finalizers: Vec<&str> = metadata.array("finalizers").iter().filter_map(Value::as_str).collect();
    for name in &finalizers {
        for problem in qualified_name(name) {
            errors.push(FieldError::invalid(path, *name, problem));
        }
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let all = BadValue::of(&Value::from(metadata.array("finalizers").to_vec()));
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid(path, all, detail));
    }
}
