//! [`CustomSchema`]: the schema of one version of a custom resource, made ready for all that is done with its objects.

use revisor_object::{BadValue, FieldError, FieldErrorKind, FieldErrors, FieldNames, FieldPath, Object, Value};

use super::Structural;
use super::correlation::Correlation;
use super::custom_types::types_of;
use super::metadata::{Malformed, MetadataType, coerce_object_metadata};
use super::validator::Validator;
use crate::{Mismatch, StructId, Types};

/// The schema of one version. Built when its definition comes, and shared by all requests.
#[derive(Debug, Clone)]
pub struct CustomSchema {
    structural: Structural,
    validator: Validator,
    status: Option<Validator>,
    has_defaults: bool,
    has_embedded_resources: bool,
    has_list_types: bool,
}

/// Why an object cannot be made to fit. The text is what the original tells its clients.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Misfit {
    /// The metadata is not of its type.
    #[error(transparent)]
    Metadata(#[from] Mismatch),
    /// The type or metadata of an embedded resource is not of its type.
    #[error(transparent)]
    Embedded(#[from] FieldError),
}

impl CustomSchema {
    /// Makes a schema ready; the defaults in it lose what the schema would not let them have. `minor` is the release that
    /// the server behaves as.
    pub fn compile(mut structural: Structural, metadata: MetadataType<'_>, minor: u32) -> CustomSchema {
        let has_defaults = structural.has_defaults();
        if has_defaults {
            structural.prune_defaults(metadata);
        }
        let validator = Validator::compile(&structural, minor);
        CustomSchema {
            status: validator.property("status"),
            validator,
            has_defaults,
            has_embedded_resources: structural.has_embedded_resources(),
            has_list_types: structural.has_list_types(),
            structural,
        }
    }

    /// The schema itself, its defaults pruned.
    pub fn structural(&self) -> &Structural {
        &self.structural
    }

    /// The types of its objects as server-side apply sees them: a table with the type `name` and all that it is made of.
    /// The values themselves are made to fit by [`fit`](CustomSchema::fit), never by this table.
    pub fn types(&self, name: &str, metadata: MetadataType<'_>) -> (Types, StructId) {
        types_of(&self.structural, name, metadata)
    }

    /// Makes `object` fit: its metadata and that of embedded resources is brought to its type, what the schema does not
    /// know goes, and so do nulls that it neither allows nor replaces. Answers the paths of what was unknown.
    pub fn fit(
        &self,
        object: &mut Object,
        metadata: MetadataType<'_>,
        malformed: Malformed,
    ) -> Result<FieldNames, Misfit> {
        let mut unknown = coerce_object_metadata(object, metadata, malformed)?;
        unknown.append_below("", &self.structural.prune_with_nulls(object));
        unknown.append_below("", &self.fit_embedded(object, metadata, malformed)?);
        Ok(unknown)
    }

    /// As [`fit`](CustomSchema::fit), but what the schema does not know stays, because the definition says so of the
    /// whole object.
    pub fn fit_preserving(
        &self,
        object: &mut Object,
        metadata: MetadataType<'_>,
        malformed: Malformed,
    ) -> Result<FieldNames, Misfit> {
        let mut unknown = coerce_object_metadata(object, metadata, malformed)?;
        unknown.append_below("", &self.fit_embedded(object, metadata, malformed)?);
        Ok(unknown)
    }

    fn fit_embedded(
        &self,
        object: &mut Object,
        metadata: MetadataType<'_>,
        malformed: Malformed,
    ) -> Result<FieldNames, FieldError> {
        if !self.has_embedded_resources {
            return Ok(FieldNames::default());
        }
        self.structural.coerce_embedded(object, metadata, malformed)
    }

    /// Whether there is a default anywhere.
    pub fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Gives what is absent its default. Doing it again changes nothing.
    pub fn default(&self, object: &mut Object) {
        if self.has_defaults {
            self.structural.fill_object(object);
        }
    }

    /// What is wrong with a new object by the schema. The other checks, in the order in which their errors are shown:
    /// [`validate_embedded`](CustomSchema::validate_embedded), [`validate_lists`](CustomSchema::validate_lists), and the
    /// rules of the schema, unless [`blocks_rules`] says otherwise.
    pub fn validate(&self, object: &Object) -> FieldErrors {
        self.validator.validate(&FieldPath::none(), object)
    }

    /// As [`validate`](CustomSchema::validate), of an object in place of an old one: what was wrong before and is
    /// unchanged is tolerated.
    pub fn validate_update(&self, object: &Object, old: &Object) -> FieldErrors {
        let correlation = Correlation::new(&self.structural, old, object);
        self.validator.validate_update(&FieldPath::none(), correlation)
    }

    /// What is wrong with the status of `object`, in place of `old`. Of the rest nothing is said.
    pub fn validate_status(&self, object: &Object, old: &Object) -> FieldErrors {
        let (Some(validator), Some(status)) = (&self.status, object.get("status")) else { return FieldErrors::new() };
        let path = FieldPath::root("status");
        match Correlation::new(&self.structural, old, object).key("status") {
            Some(correlation) => validator.validate_update(&path, correlation),
            None => validator.validate(&path, status),
        }
    }

    /// What is wrong with the types and metadata of embedded resources. `check` says what is wrong with metadata that has
    /// a name; the fields of its errors begin with `metadata`.
    pub fn validate_embedded(
        &self,
        object: &Object,
        metadata: MetadataType<'_>,
        check: &dyn Fn(&Object) -> FieldErrors,
    ) -> FieldErrors {
        if !self.has_embedded_resources {
            return FieldErrors::new();
        }
        self.structural.validate_embedded(&FieldPath::none(), object, false, metadata, check)
    }

    /// What occurs twice in a list and may not. An old object with such a fault lets all of them pass.
    pub fn validate_lists(&self, object: &Object, old: Option<&Object>) -> FieldErrors {
        if !self.has_list_types {
            return FieldErrors::new();
        }
        let errors = self.structural.validate_list_types(object);
        match old {
            Some(old) if !errors.is_empty() && !self.structural.validate_list_types(old).is_empty() => {
                FieldErrors::new()
            }
            _ => errors,
        }
    }
}

/// Whether an object is so wrong that its rules are not run; then this is said in their place.
pub fn blocks_rules(errors: &[FieldError]) -> Option<FieldError> {
    use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    let is_blocking =
        |error: &FieldError| matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid);
    errors.iter().any(is_blocking).then(|| {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors \
                      to complete validation";
        FieldError::invalid(FieldPath::none(), BadValue::of(&Value::Null), detail)
    })
}
