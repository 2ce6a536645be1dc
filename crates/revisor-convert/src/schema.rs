//! [`VersionSchema`]: one version of a custom resource, as conversions see it: what its objects look like, which of
//! them are valid, and what stands at a path.

use compact_str::CompactString;
use revisor_cel::{CompiledRules, Environment, OBJECT_BUDGET, Subject};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};
use revisor_schema::{Additional, JsonType, Structural, Validator, blocks_rules};

use crate::path::{Path, Segment};

/// The members of an object that are not the rules' to convert.
pub(crate) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// One version of a custom resource.
#[derive(Debug)]
pub struct VersionSchema {
    name: String,
    api_version: CompactString,
    kind: CompactString,
    /// As the definition has it, for what is said of whole objects.
    own: Structural,
    /// The same with type and metadata as all objects have them, for what rules may name.
    shape: Structural,
    validator: Validator,
    rules: Option<CompiledRules>,
    has_defaults: bool,
}

impl VersionSchema {
    /// Makes the schema of a version ready. `environment` is what its rules may speak of, `minor` the release to behave
    /// as.
    pub fn new(
        group: &str,
        kind: &str,
        name: &str,
        schema: Structural,
        environment: &Environment,
        minor: u32,
    ) -> VersionSchema {
        let mut shape = schema.clone();
        shape.kind = Some(JsonType::Object);
        shape.properties.retain(|(name, _)| !META.contains(&&**name));
        let own_names = [("apiVersion", text()), ("kind", text()), ("metadata", metadata())];
        shape.properties.extend(own_names.map(|(name, schema)| (Box::from(name), schema)));
        shape.properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        VersionSchema {
            name: name.to_owned(),
            api_version: format!("{group}/{name}").into(),
            kind: kind.into(),
            validator: Validator::compile(&schema, minor),
            rules: CompiledRules::compile(&schema, true, environment),
            has_defaults: schema.has_defaults(),
            own: schema,
            shape,
        }
    }

    /// The name of the version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Group and version, as objects name them.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The schema, as the definition has it.
    pub fn structural(&self) -> &Structural {
        &self.own
    }

    /// The schema, with the metadata that all objects have.
    pub(crate) fn shape(&self) -> &Structural {
        &self.shape
    }

    /// Gives what is absent its default.
    pub fn fill_defaults(&self, object: &mut Value) {
        if self.has_defaults {
            self.own.fill_defaults(object);
        }
    }

    /// Takes away what the schema does not know, as the server does with all objects.
    pub fn prune(&self, object: &mut Value) {
        self.own.prune(object, true);
    }

    /// What is wrong with an object, by the schema and by its rules in CEL.
    pub fn validate(&self, object: &Value) -> FieldErrors {
        let Value::Object(members) = object else {
            return [FieldError::invalid(FieldPath::none(), "", "must be an object")].into_iter().collect();
        };
        let mut errors = self.validator.validate(&FieldPath::none(), members);
        errors.extend(self.own.validate_list_types(members));
        if let Some(rules) = &self.rules {
            match blocks_rules(&errors) {
                Some(unchecked) => errors.push(unchecked),
                None => {
                    let subject = Subject { schema: &self.own, object, old: None, ratcheting: false };
                    errors.extend(rules.validate(&subject, &FieldPath::none(), OBJECT_BUDGET).errors);
                }
            }
        }
        errors
    }

    /// What the rules in CEL say of an object that takes the place of another. Where it is the same as before, nothing.
    pub fn validate_transition(&self, object: &Value, old: &Value) -> FieldErrors {
        let subject = Subject { schema: &self.own, object, old: Some(old), ratcheting: true };
        let rules = self.rules.as_ref();
        rules.map(|rules| rules.validate(&subject, &FieldPath::none(), OBJECT_BUDGET).errors).unwrap_or_default()
    }

    /// Whether an object is valid.
    pub fn is_valid(&self, object: &Value) -> bool {
        self.validate(object).is_empty()
    }

    /// An object of this version with nothing but its type and a name.
    pub fn bare(&self, name: &str) -> Object {
        let metadata: Object = [("name", Value::from(name))].into_iter().collect();
        let members = [
            ("apiVersion", Value::from(self.api_version())),
            ("kind", Value::from(self.kind())),
            ("metadata", metadata.into()),
        ];
        members.into_iter().collect()
    }

    /// What stands at a path.
    pub(crate) fn at(&self, path: &Path) -> Option<&Structural> {
        path.segments().iter().try_fold(&self.shape, below)
    }
}

/// What stands behind one step.
pub(crate) fn below<'s>(schema: &'s Structural, step: &Segment) -> Option<&'s Structural> {
    match step {
        Segment::Every => match (&schema.items, &schema.additional) {
            (Some(items), _) => Some(items),
            (None, Some(Additional::Schema(values))) => Some(values),
            _ => None,
        },
        Segment::Name(name) => member(schema, name),
    }
}

/// The schema of a member: of a property, or of any other.
pub(crate) fn member<'s>(schema: &'s Structural, name: &str) -> Option<&'s Structural> {
    match (schema.property(name), &schema.additional) {
        (Some(property), _) => Some(property),
        (None, Some(Additional::Schema(values))) => Some(values),
        _ => None,
    }
}

/// What all other members of a map look like.
pub(crate) fn values(schema: &Structural) -> Option<&Structural> {
    match &schema.additional {
        Some(Additional::Schema(values)) => Some(values),
        _ => None,
    }
}

/// Whether members stay that the schema says nothing of.
pub(crate) fn is_open(schema: &Structural) -> bool {
    schema.preserves_unknown_fields || matches!(schema.additional, Some(Additional::Allowed(true)))
}

/// Whether the values are objects.
pub(crate) fn is_object(schema: &Structural) -> bool {
    schema.kind == Some(JsonType::Object)
}

/// Whether values of one schema can stand where the other is asked for, by their types alone.
pub(crate) fn fits(one: &Structural, other: &Structural) -> bool {
    use JsonType::{Array, Integer, Number, Object};
    if one.is_int_or_string || other.is_int_or_string {
        return one.is_int_or_string && other.is_int_or_string;
    }
    match (one.kind, other.kind) {
        (Some(Array), Some(Array)) => match (&one.items, &other.items) {
            (Some(one), Some(other)) => fits(one, other),
            (None, None) => true,
            _ => false,
        },
        (Some(Object), Some(Object)) => match (values(one), values(other)) {
            (Some(one), Some(other)) => fits(one, other),
            _ => true,
        },
        (Some(Integer | Number), Some(Integer | Number)) => true,
        (one, other) => one == other,
    }
}

fn text() -> Structural {
    Structural { kind: Some(JsonType::String), ..Structural::default() }
}

/// The metadata of any object, as far as rules may read it; the rest of it is carried over unseen.
fn metadata() -> Structural {
    let texts = || Structural {
        kind: Some(JsonType::Object),
        additional: Some(Additional::Schema(Box::new(text()))),
        ..Structural::default()
    };
    let properties = [
        ("annotations", texts()),
        ("generateName", text()),
        ("labels", texts()),
        ("name", text()),
        ("namespace", text()),
        ("uid", text()),
    ];
    Structural {
        kind: Some(JsonType::Object),
        properties: properties.into_iter().map(|(name, schema)| (Box::from(name), schema)).collect(),
        preserves_unknown_fields: true,
        ..Structural::default()
    }
}
