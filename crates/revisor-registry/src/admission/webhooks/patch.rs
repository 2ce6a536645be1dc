//! What becomes of the patch of a mutating webhook: applied to what the webhook was shown, made to fit the type of the
//! object, and given defaults again.

use revisor_merge::{JsonPatch, PatchError};
use revisor_object::{Object, Value, parse_json};
use revisor_webhook::AdmissionAnswer;

use super::{Failure, Invocation, Versioned};
use crate::admission::Attributes;
use crate::body::{Repeated, fit};
use crate::{Decoded, FieldValidation, Registry, RegistryError};

/// An object that a webhook changed, as it is worked on.
pub(super) struct Patched {
    pub(super) object: Object,
    /// Whether it is another one than before.
    pub(super) has_changed: bool,
}

/// The patch as the audit is told of it.
pub(super) fn as_text(answer: &AdmissionAnswer) -> Option<Value> {
    parse_json(&answer.patch).ok().map(|parsed| parsed.value)
}

/// Applies the patch of an answer, if it has one.
pub(super) async fn apply(
    registry: &Registry,
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    versioned: &Versioned<'_>,
    answer: &AdmissionAnswer,
) -> Result<Option<Patched>, Failure> {
    if answer.patch.is_empty() {
        return Ok(None);
    }
    let name = &invocation.webhook.name;
    let undecodable = |why: String| Failure::Calling {
        why: format!("received undecodable patch in webhook response: {why}"),
        code: 503,
    };
    let mut value = parse_json(&answer.patch).map_err(|error| undecodable(error.to_string()))?.value;
    value.guard_noncharacters(&answer.patch);
    if matches!(&value, Value::Null) || value.as_array() == Some(&[]) {
        return Ok(None);
    }
    let internal = |why: String| Failure::Other(RegistryError::Internal(why));
    let patch = JsonPatch::parse(value).map_err(|error| match error {
        PatchError::Malformed(why) => {
            let why = why.strip_prefix("error decoding patch: ").unwrap_or(&why);
            undecodable(why.replace("[]handlers.jsonPatchOp", "jsonpatch.Patch"))
        }
        error => internal(told(&error)),
    })?;
    let Some(sent) = versioned.encoded[0].as_deref() else {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(internal(format!("admission webhook {name:?} {why}")));
    };
    if answer.patch_type != "JSONPatch" {
        return Err(Failure::Calling { why: format!("unsupported patch type {:?}", answer.patch_type), code: 400 });
    }
    let mut value = parse_json(sent).map_err(|error| internal(error.to_string()))?.value;
    value.guard_noncharacters(sent);
    patch.apply(&mut value).map_err(|error| internal(told(&error)))?;
    let mut shown = fitted(registry, attributes, invocation, value).map_err(internal)?;
    if let (None, Some(before)) = (attributes.own_kind, &versioned.object) {
        invocation.meant.restore_raw(&mut shown, before);
    }
    let has_changed = invocation.encode(attributes, &shown) != sent;
    let object = registry.back_from_version(attributes, &invocation.meant, shown).await.map_err(Failure::Other)?;
    let mut object = object;
    if attributes.own_kind.is_none() {
        attributes.resource.default(&mut object);
    }
    Ok(Some(Patched { object, has_changed }))
}

/// What is said of a patch that does not fit. Unlike those who send one, webhooks are told why.
fn told(error: &PatchError) -> String {
    match error {
        PatchError::TestFailed { path } => format!("testing value {path} failed: test failed"),
        error => error.to_string(),
    }
}

/// Makes a patched object fit its type. The error is what the original's decoder would say.
fn fitted(
    registry: &Registry,
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    mut value: Value,
) -> Result<Object, String> {
    let Some(kind) = attributes.own_kind else {
        let fitted = fit(&invocation.meant, value, Repeated::None, FieldValidation::Ignore);
        return fitted.map(|Decoded { object, .. }| object);
    };
    let types = registry.catalog.types();
    let group = match kind.group {
        "" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    if let Some(id) = types.id(&format!("{group}.{}.{}", kind.version, kind.kind)) {
        types.conform(id, &mut value).map_err(|mismatch| mismatch.to_string())?;
    }
    let Value::Object(mut object) = value else { return Err("json: cannot unmarshal into an object".to_owned()) };
    object.remove("kind");
    object.remove("apiVersion");
    Ok(object)
}
