//! Patches: changes that say only what is to be different.

use revisor_catalog::Resource;
use revisor_merge::{JsonPatch, PatchError, merge_patch};
use revisor_object::{BadValue, FieldError, FieldErrors, Object, OddMember, Value, odd_members, parse_json};
use revisor_store::BoxFuture;

use crate::body::{CustomType, Repeated, fit, odd_member};
use crate::scale::scale_of;
use crate::write::{Proposal, check_address, match_namespace, named_version, refuse_frozen};
use crate::{Decoded, FieldValidation, Place, Registry, RegistryError, Saved, WriteOptions};

/// How a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/merge-patch+json`
    Merge,
    /// `application/json-patch+json`
    Json,
    /// `application/strategic-merge-patch+json`
    Strategic,
    /// `application/apply-patch+yaml`
    Apply,
    /// `application/apply-patch+cbor`
    ApplyCbor,
}

impl PatchKind {
    /// Whether it is a configuration to be applied.
    pub fn is_apply(self) -> bool {
        matches!(self, PatchKind::Apply | PatchKind::ApplyCbor)
    }
}

impl Registry {
    /// Changes an object by a patch.
    pub fn patch<'a>(
        &'a self,
        place: Place<'a>,
        kind: PatchKind,
        text: &'a [u8],
        options: WriteOptions<'a>,
    ) -> BoxFuture<'a, Result<Saved, RegistryError>> {
        Box::pin(self.patch_unboxed(place, kind, text, options))
    }

    async fn patch_unboxed(
        &self,
        place: Place<'_>,
        kind: PatchKind,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let options = WriteOptions { is_patch: true, ..options };
        let newest = self.newest(place.resource);
        let place = Place { resource: &newest, ..place };
        let Place { resource, namespace, name } = place;
        refuse_frozen(place, options)?;
        if scale_of(resource, options.subresource).is_some() {
            return self.patch_scale(place, kind, text, options).await;
        }
        if kind.is_apply() {
            return self.apply(place, kind, text, options).await;
        }
        self.change(place, options, |current| {
            let mut shown = with_type(resource, current);
            resource.to_shown(&mut shown);
            let texts = resource.has_raw().then(|| shown.clone());
            // Read only now: that there is nothing to patch is said before what is wrong with the patch.
            let (value, repeated) = patched(resource, kind, text, shown)?;
            if resource.custom().is_some() && is_untyped(&value) {
                let problem = format!("Object 'Kind' is missing in '{}'", value.to_json());
                return Err(unfit_patch(&value, problem));
            }
            if kind != PatchKind::Strategic && resource.custom().is_none() {
                refuse_unversioned(&value, name.unwrap_or_default(), options)?;
            }
            // Of another type there is no schema, so nobody is told what that does not have.
            let typed = CustomType::of(resource, &value).map_or(Ok(()), |claimed| claimed.check(resource));
            let validation = if typed.is_ok() { options.validation } else { FieldValidation::Ignore };
            let fitting = WriteOptions { validation, ..options };
            let again = || {
                let mut shown = with_type(resource, current);
                resource.to_shown(&mut shown);
                patched(resource, kind, text, shown)
            };
            let Decoded { mut object, warnings } =
                fit_patched(resource, kind, text, (value, repeated), fitting, again)?;
            options.keep_sent(&warnings);
            // Of what is sent to a part, the original takes that part and leaves the type as it is.
            if options.subresource.is_none() {
                typed?;
            }
            if let Some(texts) = &texts {
                resource.restore_raw(&mut object, texts);
            }
            let metadata = object.object_mut("metadata");
            check_address(metadata, name.unwrap_or_default())?;
            match_namespace(resource, metadata, namespace)?;
            let before = current.object("metadata").and_then(|metadata| metadata.str("resourceVersion"));
            let is_conditional = named_version(metadata)?.is_some() && metadata.str("resourceVersion") != before;
            resource.to_stored(&mut object);
            Ok(Proposal { object, warnings, is_conditional, managed: None })
        })
        .await
    }
}

/// Whether nobody can tell of which kind a value is.
fn is_untyped(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.str("kind").unwrap_or_default().is_empty())
}

/// Refuses a patched object of a built-in kind that no longer says its version. The original takes it for one of the types
/// that it works with, whose fields have no names in JSON, and so finds neither its name nor anything else.
fn refuse_unversioned(value: &Value, name: &str, options: WriteOptions<'_>) -> Result<(), RegistryError> {
    let is_unsaid = |object: &&Object| match object.get("apiVersion") {
        Some(version) => version.is_null() || version.as_str() == Some(""),
        None => true,
    };
    let Some(object) = value.as_object().filter(is_unsaid) else { return Ok(()) };
    let fields = object.iter().map(|(field, _)| field).filter(|field| !matches!(&**field, "kind" | "apiVersion"));
    let unknown: Vec<String> = fields.map(|field| format!("unknown field {field:?}")).collect();
    match options.validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            return Err(unfit_patch(value, format!("strict decoding error: {}", unknown.join(", "))));
        }
        FieldValidation::Warn => options.keep_sent(&unknown.into_iter().collect()),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    check_address(&Object::new(), name)
}

/// A stored object with its type, as patches see it.
pub(crate) fn with_type(resource: &Resource, object: &Object) -> Object {
    let mut object = object.clone();
    object.insert("kind", resource.kind.as_str());
    object.insert("apiVersion", resource.api_version.as_str());
    object
}

/// What a patch makes of an object, and what it says more than once.
fn patched(
    resource: &Resource,
    kind: PatchKind,
    text: &[u8],
    mut shown: Object,
) -> Result<(Value, Repeated<'static>), RegistryError> {
    resource.open_raw(&mut shown);
    let mut value = Value::Object(shown);
    // The original applies these to JSON, and reads what came of it.
    if matches!(kind, PatchKind::Merge | PatchKind::Json) {
        value.replace_stray_bytes();
    }
    let repeated = apply_patch(resource, kind, text, &mut value)?;
    Ok((value, repeated))
}

/// Applies a patch to a value; answers what it says more than once.
pub(crate) fn apply_patch(
    resource: &Resource,
    kind: PatchKind,
    text: &[u8],
    value: &mut Value,
) -> Result<Repeated<'static>, RegistryError> {
    let bad = |problem: String| match kind {
        PatchKind::Strategic => RegistryError::BadRequest(problem),
        _ => RegistryError::BadRequest(format!("error decoding patch: {problem}")),
    };
    let parsed = parse_json(text).map_err(|error| bad(error.to_string()))?;
    let mut patch = parsed.value;
    patch.guard_noncharacters(text);
    let repeated = odd_in_patch(kind, text, &patch, !parsed.duplicates.is_empty());
    let applied = match kind {
        // As in the original, which reads it as an object without members, and finds out later that it is none.
        PatchKind::Merge if patch.is_null() => {
            return Err(RegistryError::BadRequest("Invalid JSON Patch".to_owned()));
        }
        PatchKind::Merge if patch.as_object().is_none() => {
            let found = patch.type_name();
            return Err(bad(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")));
        }
        PatchKind::Merge => merge_patch(value, patch),
        PatchKind::Strategic => {
            // The original reads the result into a value of the type that it was, whatever type the patch names.
            resource.strategic_merge_patch(value, patch).map(|()| {
                if let Value::Object(object) = value {
                    object.insert("kind", resource.kind.as_str());
                    object.insert("apiVersion", resource.api_version.as_str());
                }
            })
        }
        // Applied configurations are no patches of values; they went another way.
        PatchKind::Apply | PatchKind::ApplyCbor => {
            return Err(RegistryError::PatchNotApplicable("an applied configuration is no patch".into()));
        }
        PatchKind::Json => JsonPatch::parse(patch).and_then(|patch| patch.apply(value)),
    };
    applied.map_err(patch_error)?;
    Ok(repeated)
}

/// Fits what a patch came to to the type of its resource. It is made `again` for those few for whom it did not fit.
pub(crate) fn fit_patched(
    resource: &Resource,
    kind: PatchKind,
    text: &[u8],
    (value, repeated): (Value, Repeated<'_>),
    options: WriteOptions<'_>,
    again: impl FnOnce() -> Result<(Value, Repeated<'static>), RegistryError>,
) -> Result<Decoded, RegistryError> {
    let problem = match fit(resource, value, repeated, options.validation) {
        Ok(decoded) => return Ok(decoded),
        Err(problem) => problem,
    };
    let (mut value, repeated) = again()?;
    if kind != PatchKind::Strategic {
        return Err(unfit_patch(&value, problem));
    }
    // The original reads this into the type without JSON, in a way of its own.
    let converted = resource.convert_unstructured(&mut value);
    let fitted = converted.and_then(|()| fit(resource, value, repeated, options.validation));
    fitted.map_err(|problem| unfit_strategic_patch(text, problem))
}

/// What is odd about the text of a patch: members that occur twice, and of an operation also those that it does not have.
fn odd_in_patch(kind: PatchKind, text: &[u8], patch: &Value, is_repeated: bool) -> Repeated<'static> {
    if kind != PatchKind::Json {
        let odd = if is_repeated { odd_members(text, &|_| false) } else { Vec::new() };
        return Repeated::Told(odd.iter().map(odd_member).collect());
    }
    let known = |name: &str| matches!(name, "op" | "path" | "from" | "value");
    let mut operations = patch.as_array().unwrap_or_default().iter().filter_map(Value::as_object);
    if !is_repeated && operations.all(|operation| operation.iter().all(|(name, _)| known(name))) {
        return Repeated::None;
    }
    // `[3].foo` is a member of an operation, `[3].value.foo` is not.
    let is_unknown = |path: &str| {
        let member = path.split_once("].").map_or("", |(_, member)| member);
        !member.is_empty() && !member.contains(['.', '[']) && !known(member)
    };
    let odd: Vec<OddMember> = odd_members(text, &is_unknown);
    Repeated::Told(odd.iter().map(|member| format!("json patch {}", odd_member(member))).collect())
}

fn patch_error(error: PatchError) -> RegistryError {
    let message = error.client_message();
    match error {
        PatchError::Malformed(_) => RegistryError::BadRequest(message),
        PatchError::TooManyOperations { .. } => RegistryError::PatchTooLarge(message),
        PatchError::NotApplicable(_)
        | PatchError::TestFailed { .. }
        | PatchError::CopyTooLarge { .. }
        | PatchError::TooDeep { .. }
        | PatchError::TooMuchWork { .. } => RegistryError::PatchNotApplicable(message),
    }
}

/// A patch whose result does not fit the type of the object.
pub(crate) fn unfit_patch(result: &Value, problem: String) -> RegistryError {
    let shown = BadValue::from(result.to_json());
    RegistryError::InvalidOptions {
        kind: "",
        errors: FieldErrors::from([FieldError::invalid("patch", shown, problem)]),
    }
}

/// The same of a strategic merge patch. Clients are shown the patch, not its result, in the notation of the original.
fn unfit_strategic_patch(text: &[u8], problem: String) -> RegistryError {
    let mut shown = String::new();
    if let Ok(patch) = parse_json(text) {
        push_notation(&patch.value, &mut shown);
    }
    RegistryError::InvalidOptions {
        kind: "",
        errors: FieldErrors::from([FieldError::invalid("patch", BadValue::from(shown), problem)]),
    }
}

/// From here on Go prints numbers with an exponent.
const MAX_WRITTEN_OUT: f64 = 1e21;

/// Appends a value as Go prints it: `map[a:1 b:[x y] c:<nil>]`.
fn push_notation(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Object(object) => {
            out.push_str("map[");
            // Members of an object are sorted already.
            for (at, (name, member)) in object.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(name);
                out.push(':');
                push_notation(member, out);
            }
            out.push(']');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                push_notation(item, out);
            }
            out.push(']');
        }
        Value::Float(number) if number.fract() == 0.0 && number.abs() < MAX_WRITTEN_OUT => {
            out.push_str(&format!("{number:.0}"));
        }
        other => out.push_str(&other.to_json()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_shown_in_the_notation_of_the_original() {
        for (patch, want) in [
            ("{}", "map[]"),
            (r#"{"spec":{"b":null,"a":2},"d":["x",{"y":true}]}"#, "map[d:[x map[y:true]] spec:map[a:2 b:<nil>]]"),
        ] {
            let mut shown = String::new();
            push_notation(&parse_json(patch.as_bytes()).expect("JSON").value, &mut shown);
            assert_eq!(shown, want);
        }
    }
}
