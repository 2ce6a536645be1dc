//! What makes a definition invalid. The parts have files of their own: [`keywords`], [`structure`] and [`defaults`] for
//! schemas, [`names`], [`conversion_settings`], [`approval`].

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use revisor_cel::{Environment, KnownExpressions, RuleCheck, RuleEnvironments, check_rules, valid_field_path};
use revisor_object::names::{dns1035_label, dns1123_subdomain};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen, Value, is_printable};

use revisor_schema::{JsonType, MetadataType, StructId, Structural, Types};
use revisor_version::Release;

use super::condition::{self, ESTABLISHED};
use super::shared_parts::{SharedParts, schema};
use super::{approval, conversion_settings, defaults, keywords, names, schema_tree, shown, structure};
use crate::checks::{immutable, required_one_of};
use crate::kinds::Terms;
use crate::kinds::members::{is_true, objects, part, text, texts};
use crate::rows::FIELDS;

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

const MAX_SELECTABLE_FIELDS: usize = 8;
const MAX_DEPRECATION_WARNING_BYTES: usize = 256;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What may stand at the root of a schema whose status is kept apart.
const ROOT_KEYWORDS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What definitions are held against.
pub(super) struct Tools {
    types: Types,
    metadata: StructId,
    environments: RuleEnvironments,
    /// The release whose formats may be asked for.
    formats: Release,
}

impl Tools {
    /// # Panics
    /// If the table of fields has no metadata: a fault of the program that its tests find.
    pub(super) fn new(terms: &Terms) -> Tools {
        let is_metadata = |(at, line): &(usize, &str)| *at == 0 || line.starts_with("meta.v1.");
        let rows: Vec<&str> = FIELDS.lines().enumerate().filter(is_metadata).map(|(_, line)| line).collect();
        let types = Types::parse(&rows.join("\n")).expect("the table of fields is well formed");
        Tools {
            metadata: types.id("meta.v1.ObjectMeta").expect("metadata has its fields in the table"),
            types,
            environments: terms.expressions.clone(),
            formats: terms.min_compatibility,
        }
    }

    /// The release whose formats may be asked for.
    pub(super) fn formats(&self) -> Release {
        self.formats
    }

    /// What rules may speak of once they are stored.
    pub(super) fn stored_rules(&self) -> &Environment {
        &self.environments.stored
    }

    pub(super) fn metadata(&self) -> MetadataType<'_> {
        MetadataType { types: &self.types, id: self.metadata }
    }
}

/// What is demanded of a definition. An older one that broke a demand before it was made may go on doing so.
struct Demands<'a> {
    schema: bool,
    structural: bool,
    pruned_defaults: bool,
    keywords: keywords::Demands,
    conversion: conversion_settings::Demands,
    /// The definition as it was.
    old: Option<OldVersions<'a>>,
    /// The expressions that it had.
    known: KnownExpressions,
    tools: &'a Tools,
}

/// The versions of a definition as it was.
struct OldVersions<'a> {
    parts: SharedParts<'a>,
    by_name: HashMap<&'a str, &'a Object>,
}

impl<'a> OldVersions<'a> {
    fn of(old: &'a Object) -> OldVersions<'a> {
        let parts = SharedParts::of(old);
        let mut by_name = HashMap::new();
        for (_, version) in parts.versions() {
            by_name.entry(text(version, "name")).or_insert(version);
        }
        OldVersions { parts, by_name }
    }
}

impl<'a> Demands<'a> {
    fn of_new(tools: &'a Tools) -> Demands<'a> {
        Demands {
            schema: true,
            structural: true,
            pruned_defaults: true,
            keywords: keywords::Demands { known_types: true, atomic_sets: true, map_keys: true },
            // Nobody is converted before the definition is established.
            conversion: conversion_settings::Demands { known_review_version: true, valid_ca_bundle: false },
            old: None,
            known: KnownExpressions::default(),
            tools,
        }
    }

    fn of_changed(old: &'a Object, tools: &'a Tools) -> Demands<'a> {
        let parts = SharedParts::of(old);
        let schemas = parts.schemas();
        let none = |is_wrong: &mut dyn FnMut(&Object) -> bool| {
            !schemas.iter().any(|schema| schema_tree::any(schema, &mut |schema| is_wrong(schema)))
        };
        let path = FieldPath::none();
        let is_unknown = |schema: &Object| {
            let kind = text(schema, "type");
            !kind.is_empty() && !keywords::TYPES.contains(&kind)
        };
        let is_structural = |schema: &&Object| {
            schema_tree::unreadable(schema).is_none() && structure::validate(path, schema).is_empty()
        };
        let mut known = KnownExpressions::default();
        let mut pruned_defaults = true;
        for schema in &schemas {
            let structural = Structural::read(schema);
            known.add(&structural);
            pruned_defaults &= !(is_structural(schema) && defaults::has_unknown_fields(&structural));
        }
        let settings = part(parts.spec, "conversion");
        let config = settings.object("webhook").and_then(|webhook| webhook.object("clientConfig"));
        let bundle_was_invalid = config.is_some_and(|config| conversion_settings::ca_bundle_problem(config).is_some());
        Demands {
            schema: parts.versions().all(|(_, version)| schema(version.get("schema")).is_some()),
            structural: schemas.iter().all(is_structural),
            pruned_defaults,
            keywords: keywords::Demands {
                known_types: none(&mut |schema| is_unknown(schema)),
                atomic_sets: none(&mut |schema| keywords::non_atomic_set(path, schema).is_some()),
                map_keys: none(&mut |schema| !keywords::list_keys(path, schema).is_empty()),
            },
            conversion: conversion_settings::Demands {
                known_review_version: conversion_settings::has_known_review_version(settings),
                valid_ca_bundle: condition::is_true(old, ESTABLISHED) && !bundle_was_invalid,
            },
            old: Some(OldVersions::of(old)),
            known,
            tools,
        }
    }
}

/// What is wrong with a new definition.
pub(super) fn validate(definition: &Object, tools: &Tools) -> FieldErrors {
    let mut errors = validate_name(definition);
    validate_spec(definition, Demands::of_new(tools), &mut errors);
    errors.extend(validate_status(definition));
    validate_stored_versions(definition, &mut errors);
    errors.extend(approval::validate(definition, None));
    errors.extend(validate_unknown_fields(definition, None));
    errors
}

/// What is wrong with a definition in place of the old one.
pub(super) fn validate_update(definition: &Object, old: &Object, tools: &Tools) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_spec(definition, Demands::of_changed(old, tools), &mut errors);
    let (spec, old_spec) = (part(definition, "spec"), part(old, "spec"));
    let (new_names, old_names) = (part(spec, "names"), part(old_spec, "names"));
    let at_names = SPEC.child("names");
    if condition::is_true(old, ESTABLISHED) {
        errors.extend(immutable(SPEC.child("scope"), spec.get("scope"), old_spec.get("scope")));
        errors.extend(immutable(at_names.child("kind"), new_names.get("kind"), old_names.get("kind")));
    }
    errors.extend(immutable(SPEC.child("group"), spec.get("group"), old_spec.get("group")));
    errors.extend(immutable(at_names.child("plural"), new_names.get("plural"), old_names.get("plural")));
    errors.extend(validate_status(definition));
    validate_stored_versions(definition, &mut errors);
    errors.extend(approval::validate(definition, Some(old)));
    errors.extend(validate_unknown_fields(definition, Some(old)));
    errors
}

/// What is wrong with the status of a definition.
pub(super) fn validate_status(definition: &Object) -> FieldErrors {
    names::validate(STATUS.child("acceptedNames"), part(part(definition, "status"), "acceptedNames"))
}

/// The name is made of the plural and the group.
fn validate_name(definition: &Object) -> FieldErrors {
    let spec = part(definition, "spec");
    let wanted = format!("{}.{}", text(part(spec, "names"), "plural"), text(spec, "group"));
    let metadata = part(definition, "metadata");
    let is_other = |name: &&str| !text(metadata, name).is_empty() && text(metadata, name) != wanted;
    let error = |name| {
        let path = format!("metadata.{name}");
        FieldError::invalid(path, text(metadata, name), "must be spec.names.plural+\".\"+spec.group")
    };
    ["generateName", "name"].into_iter().filter(is_other).map(error).collect()
}

fn validate_spec(definition: &Object, mut demands: Demands<'_>, errors: &mut FieldErrors) {
    let parts = SharedParts::of(definition);
    let spec = parts.spec;
    validate_group(text(spec, "group"), errors);
    errors.extend(required_one_of(SPEC.child("scope"), text(spec, "scope"), &["Cluster", "Namespaced"]));
    let preserves = is_true(spec, "preserveUnknownFields");
    let at_versions = SPEC.child("versions");
    let has_common_schema = schema(parts.common("schema")).is_some();
    let requires_schema = |version: &Object| demands.schema || (!preserves && is_true(version, "served"));
    for (at, version) in parts.versions().filter(|_| !has_common_schema) {
        if requires_schema(version) && schema(parts.own(version, "schema")).is_none() {
            let detail = if demands.schema { "" } else { "because otherwise all fields are pruned" };
            let at_version = at_versions.index(at);
            errors.push(FieldError::required(at_version.child("schema").child("openAPIV3Schema"), detail));
        }
    }
    let schemas = parts.schemas();
    let has = |is_wanted: fn(&Object) -> bool| {
        schemas.iter().any(|schema| schema_tree::any(schema, &mut |schema| is_wanted(schema)))
    };
    let has_defaults = has(|schema| schema.contains("default"));
    if has_defaults && preserves {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(SPEC.child("preserveUnknownFields"), true, detail));
    }
    demands.structural |= !preserves || has_defaults || has(has_extension);
    validate_versions(&parts, &demands, errors);
    validate_names(part(spec, "names"), errors);
    let any_status = parts.versions().any(|(_, version)| SharedParts::has_status(version));
    if let Some(common) = parts.common("schema") {
        let first = parts.versions().next().map(|(_, first)| first);
        let is_unchanged = first.is_some_and(|first| has_unchanged_schema(first, demands.old.as_ref()));
        validate_schema(SPEC.child("validation"), common, any_status, is_unchanged, &demands, errors);
    }
    if let Some(common) = parts.common("subresources") {
        validate_subresources(SPEC.child("subresources"), common, errors);
    }
    if let Some(common) = parts.common("additionalPrinterColumns") {
        validate_columns(SPEC.child("additionalPrinterColumns"), common, errors);
    }
    if let Some(common) = parts.common("selectableFields") {
        match parts.common("schema").map(|common| schema(Some(common))) {
            None => {
                let detail = "may only be set when validations.schema is included";
                errors.push(FieldError::invalid(SPEC.child("selectableFields"), "", detail));
            }
            Some(schema) => {
                let allows_many = allows_too_many(&parts, None, demands.old.as_ref());
                validate_selectable(SPEC, common, schema, allows_many, errors);
            }
        }
    }
    if let Some(settings) = spec.object("conversion") {
        let path = SPEC.child("conversion");
        let strategy = text(settings, "strategy");
        if preserves && strategy != "None" {
            let detail = "must be None if spec.preserveUnknownFields is true";
            errors.push(FieldError::invalid(path.child("strategy"), strategy, detail));
        }
        errors.extend(conversion_settings::validate(path, settings, demands.conversion));
    }
}

fn validate_group(group: &str, errors: &mut FieldErrors) {
    let path = SPEC.child("group");
    let problems = dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid(path, group, problems.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(path, group, "should be a domain with at least one dot"));
    }
}

/// Some names must be asked for; whether they are well formed is looked at with all others.
fn validate_names(names: &Object, errors: &mut FieldErrors) {
    let path = SPEC.child("names");
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(names, name).is_empty() {
            errors.push(FieldError::required(path.child(name), ""));
        }
    }
    errors.extend(names::validate(path, names));
}

/// Whether a schema says something that only structural schemas may say.
fn has_extension(schema: &Object) -> bool {
    [
        "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-validations",
    ]
    .iter()
    .any(|name| schema.contains(name))
}

fn validate_versions(parts: &SharedParts<'_>, demands: &Demands<'_>, errors: &mut FieldErrors) {
    let path = SPEC.child("versions");
    for (at, version) in parts.versions() {
        let name = text(version, "name");
        let problems = dns1035_label(name);
        let path = path.index(at);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(path.child("name"), name, problems.join(",")));
        }
        validate_version(path, version, parts, demands, errors);
    }
    let count = |is_counted: &dyn Fn(&Object) -> bool| parts.versions().filter(|(_, one)| is_counted(one)).count();
    let shown = || match parts.spec.is_sent("versions") {
        true => shown::versions(parts.versions().map(|(_, version)| version), &parts.shared),
        false => shown::given(None),
    };
    let all = |errors: &mut FieldErrors, detail: &str| {
        errors.push(FieldError::invalid(path, shown(), detail));
    };
    let mut names = Seen::default();
    if parts.versions().any(|(_, version)| !names.is_new(text(version, "name"))) {
        all(errors, "must contain unique version names");
    }
    if count(&|version| is_true(version, "storage")) != 1 {
        all(errors, "must have exactly one version marked as storage version");
    }
    // The original keeps the name of the first version in a place of its own, and looks at it there again.
    if let Some((_, first)) = parts.versions().next() {
        let name = text(first, "name");
        let problems = dns1035_label(name);
        if !name.is_empty() && !problems.is_empty() {
            errors.push(FieldError::invalid(SPEC.child("version"), name, problems.join(",")));
        }
    }
}

fn validate_version(
    path: FieldPath<'_>,
    version: &Object,
    parts: &SharedParts<'_>,
    demands: &Demands<'_>,
    errors: &mut FieldErrors,
) {
    let warning = version.get("deprecationWarning");
    for problem in deprecation_warning_problems(is_true(version, "deprecated"), warning.and_then(Value::as_str)) {
        errors.push(FieldError::invalid(path.child("deprecationWarning"), shown::given(warning), problem));
    }
    let own_schema = version.get("schema").filter(|_| !parts.shared.contains(&"schema"));
    if let Some(own) = own_schema {
        let is_unchanged = has_unchanged_schema(version, demands.old.as_ref());
        let has_status = SharedParts::has_status(version);
        validate_schema(path.child("schema"), own, has_status, is_unchanged, demands, errors);
    }
    if let Some(own) = version.get("subresources").filter(|_| !parts.shared.contains(&"subresources")) {
        validate_subresources(path.child("subresources"), own, errors);
    }
    if let Some(own) =
        version.get("additionalPrinterColumns").filter(|_| !parts.shared.contains(&"additionalPrinterColumns"))
    {
        validate_columns(path.child("additionalPrinterColumns"), own, errors);
    }
    let own = version.get("selectableFields").filter(|_| !parts.shared.contains(&"selectableFields"));
    if let Some(own) = own {
        match schema(own_schema) {
            // The original says it this way round.
            None => {
                let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(FieldError::invalid(path.child("selectableFields"), "", detail));
            }
            schema => {
                let allows_many = allows_too_many(parts, Some(version), demands.old.as_ref());
                validate_selectable(path, own, schema, allows_many, errors);
            }
        }
    }
}

fn deprecation_warning_problems(is_deprecated: bool, warning: Option<&str>) -> Vec<String> {
    let Some(warning) = warning else { return Vec::new() };
    if !is_deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut problems = Vec::new();
    if warning.len() > MAX_DEPRECATION_WARNING_BYTES {
        problems.push(format!("must be <= {MAX_DEPRECATION_WARNING_BYTES} characters long"));
    }
    if warning.is_empty() {
        problems.push("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, character)| !is_printable(*character)) {
        problems
            .push(format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
    problems
}

/// A schema, in the part of a definition that holds it.
fn validate_schema(
    path: FieldPath<'_>,
    part: &Value,
    has_status: bool,
    is_unchanged: bool,
    demands: &Demands<'_>,
    errors: &mut FieldErrors,
) {
    let Some(schema) = schema(Some(part)) else { return };
    let (before, at_schema) = (errors.len(), path.child("openAPIV3Schema"));
    if has_status {
        errors.extend(validate_root(at_schema, schema));
    }
    if is_true(schema, "nullable") {
        errors.push(FieldError::forbidden(at_schema.child("nullable"), "nullable cannot be true at the root"));
    }
    let unreadable = schema_tree::unreadable(schema).filter(|_| demands.structural);
    let structural = (demands.structural && unreadable.is_none()).then(|| Structural::read(schema));
    let mut is_sound = false;
    if let Some(structural) = &structural {
        let mut found = structure::validate(at_schema, schema);
        if found.is_empty() {
            found = defaults::validate(at_schema, structural, demands.tools, demands.pruned_defaults);
        }
        is_sound = found.is_empty();
        errors.extend(found);
    }
    let schema_errors = keywords::validate(at_schema, schema, demands.keywords);
    let rules = structural.filter(|_| is_sound).map(|structural| {
        let how = RuleCheck {
            environments: &demands.tools.environments,
            known: &demands.known,
            any_cost: is_unchanged,
            schema_errors: &schema_errors,
        };
        check_rules(&structural, &at_schema, &how)
    });
    errors.extend(schema_errors);
    errors.extend(rules.unwrap_or_default());
    if let Some(reason) = unreadable.filter(|_| errors.len() == before) {
        errors.push(FieldError::invalid(at_schema, "", reason));
    }
}

/// Whether the schema of a version is the same as before. What it costs was accepted then.
fn has_unchanged_schema(version: &Object, old: Option<&OldVersions<'_>>) -> bool {
    let before = old.and_then(|old| old.by_name.get(text(version, "name")));
    before.is_some_and(|before| before.get("schema") == version.get("schema"))
}

/// Where the status is kept apart, it must be possible to take its schema out of the whole.
fn validate_root(path: FieldPath<'_>, schema: &Object) -> Option<FieldError> {
    for keyword in shown::keywords(schema) {
        if keyword == "Type" {
            let kind = text(schema, "type");
            if kind != "object" {
                let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
                              subresource is enabled";
                return Some(FieldError::invalid(path.child("type"), kind, detail));
            }
        } else if !ROOT_KEYWORDS.contains(&keyword) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT_KEYWORDS.join(" ")
            );
            return Some(FieldError::invalid(path, shown::schema(schema), detail));
        }
    }
    None
}

fn validate_subresources(path: FieldPath<'_>, part: &Value, errors: &mut FieldErrors) {
    let Some(scale) = part.as_object().and_then(|part| part.object("scale")) else { return };
    let path = path.child("scale");
    for (name, above) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let (path, value) = (path.child(name), text(scale, name));
        if value.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if let Some(error) = simple_path(path, value) {
            errors.push(error);
        } else if !value.starts_with(above) {
            let detail = format!("should be a json path under {}", above.trim_end_matches('.'));
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
    let (path, selector) = (path.child("labelSelectorPath"), text(scale, "labelSelectorPath"));
    if selector.is_empty() {
        return;
    }
    if let Some(error) = simple_path(path, selector) {
        errors.push(error);
    } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
        let shown = shown::given(scale.get("labelSelectorPath"));
        errors.push(FieldError::invalid(path, shown, "should be a json path under either .spec or .status"));
    }
}

fn simple_path(path: FieldPath<'_>, value: &str) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!value.starts_with('.')).then(|| FieldError::invalid(path, value, detail))
}

fn validate_columns(path: FieldPath<'_>, part: &Value, errors: &mut FieldErrors) {
    for (at, column) in part.as_array().unwrap_or_default().iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(path.child("name"), ""));
        }
        let (kind, format, json_path) = (text(column, "type"), text(column, "format"), text(column, "jsonPath"));
        let types = || format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.is_empty() {
            errors.push(FieldError::required(path.child("type"), types()));
        } else if !COLUMN_TYPES.contains(&kind) {
            errors.push(FieldError::invalid(path.child("type"), kind, types()));
        }
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(path.child("format"), format, detail));
        }
        // The original writes this field in capitals here.
        let at_path = path.child("JSONPath");
        match json_path {
            "" => errors.push(FieldError::required(at_path, "")),
            json_path => errors.extend(simple_path(at_path, json_path)),
        }
    }
}

/// Fields that selectors may name.
fn validate_selectable(
    around: FieldPath<'_>,
    part: &Value,
    schema: Option<&Object>,
    allows_many: bool,
    errors: &mut FieldErrors,
) {
    if let Some(reason) = schema.and_then(schema_tree::unreadable) {
        // The original writes two names as if they were one.
        let at_schema = around.child("schema.openAPIV3Schema");
        errors.push(FieldError::invalid(at_schema, "", reason));
    }
    let path = around.child("selectableFields");
    let schema = schema.map(Structural::read).unwrap_or_default();
    let mut unique: HashSet<String> = HashSet::new();
    for (at, field) in part.as_array().unwrap_or_default().iter().filter_map(Value::as_object).enumerate() {
        let at_field = path.index(at);
        let (at_path, json_path) = (at_field.child("jsonPath"), text(field, "jsonPath"));
        if json_path.is_empty() {
            errors.push(FieldError::required(at_path, ""));
            continue;
        }
        let (name, found) = match valid_field_path(json_path, &schema, false) {
            Ok(found) => found,
            Err(problem) => {
                errors.push(FieldError::invalid(at_path, json_path, format!("is an invalid path: {problem}")));
                continue;
            }
        };
        if name.split(['.', '[']).next() == Some("metadata") {
            errors.push(FieldError::invalid(at_path, json_path, "must not point to fields in metadata"));
        }
        let kind = found.and_then(|schema| schema.kind);
        if !matches!(kind, Some(JsonType::String | JsonType::Boolean | JsonType::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.push(FieldError::invalid(at_path, json_path, detail));
        }
        if !unique.insert(name) {
            errors.push(FieldError::duplicate(at_path, json_path));
        }
    }
    if unique.len() > MAX_SELECTABLE_FIELDS && !allows_many {
        errors.push(FieldError::too_many(path, unique.len(), MAX_SELECTABLE_FIELDS));
    }
}

/// Whether there were too many selectable fields before, and they are still the same.
fn allows_too_many(parts: &SharedParts<'_>, version: Option<&Object>, old: Option<&OldVersions<'_>>) -> bool {
    let Some(OldVersions { parts: old, by_name }) = old else { return false };
    let (now, before) = match version {
        None => (parts.common("selectableFields"), old.common("selectableFields")),
        Some(version) => {
            let before = by_name.get(text(version, "name"));
            (version.get("selectableFields"), before.and_then(|before| old.own(before, "selectableFields")))
        }
    };
    let is_too_many = |value: &Value| value.as_array().is_some_and(|fields| fields.len() > MAX_SELECTABLE_FIELDS);
    now == before && before.is_some_and(is_too_many)
}

/// Objects may be stored in all versions that were storage versions; none of them may go while that is so.
fn validate_stored_versions(definition: &Object, errors: &mut FieldErrors) {
    let path = STATUS.child("storedVersions");
    let status = part(definition, "status");
    let spec = part(definition, "spec");
    let all = LazyCell::new(|| shown::given(status.get("storedVersions")).clipped());
    if status.array("storedVersions").is_empty() {
        return errors.push(FieldError::invalid(path, all.clone(), "must have at least one stored version"));
    }
    // Of a version that is named several times the last place counts, and whichever version is found first has it.
    let mut left: HashMap<&str, usize> = texts(status, "storedVersions").map(|(at, name)| (name, at)).collect();
    for (_, version) in objects(spec, "versions") {
        let name = text(version, "name");
        if left.remove(name).is_none() && is_true(version, "storage") {
            errors.push(FieldError::invalid(path, all.clone(), format!("must have the storage version {name}")));
        }
    }
    let mut left: Vec<(usize, &str)> = left.into_iter().map(|(name, at)| (at, name)).collect();
    left.sort_unstable();
    for (at, stored) in left {
        let detail = format!(
            "missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {stored} and removes {stored} from \
             status.storedVersions"
        );
        errors.push(FieldError::invalid(path.index(at), stored, detail));
    }
}

/// Unknown fields are kept by schemas, no longer by whole definitions.
fn validate_unknown_fields(definition: &Object, old: Option<&Object>) -> Option<FieldError> {
    let preserves = |definition: &Object| is_true(part(definition, "spec"), "preserveUnknownFields");
    if old.is_some_and(preserves) || !preserves(definition) {
        return None;
    }
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                  instead";
    Some(FieldError::invalid(SPEC.child("preserveUnknownFields"), true, detail))
}

#[cfg(test)]
mod tests;
