//! Patches: changes that say only what is to be different.

use revisor_catalog::Resource;
use revisor_merge::{JsonPatch, PatchError, merge_patch};
use revisor_object::{BadValue, FieldError, FieldErrors, Object, OddMember, Value, odd_members, parse_json};

use crate::body::{CustomType, Repeated, fit, odd_member};
use crate::scale::scale_of;
use crate::write::{Proposal, check_address, match_namespace, named_version, refuse_frozen};
use crate::{Decoded, Place, Registry, RegistryError, Saved, WriteOptions};

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
}

impl Registry {
    /// Changes an object by a patch.
    pub async fn patch(
        &self,
        place: Place<'_>,
        kind: PatchKind,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let newest = self.newest(place.resource);
        let place = Place { resource: &newest, ..place };
        let Place { resource, namespace, name } = place;
        refuse_frozen(place, options)?;
        if scale_of(resource, options.subresource).is_some() {
            return self.patch_scale(place, kind, text, options).await;
        }
        if kind == PatchKind::Apply {
            return self.apply(place, text, options).await;
        }
        self.change(place, options, |current| {
            let mut shown = with_type(resource, current);
            resource.to_shown(&mut shown);
            let before = shown.clone();
            resource.open_raw(&mut shown);
            let mut value = Value::Object(shown);
            // Read only now: that there is nothing to patch is said before what is wrong with the patch.
            let repeated = apply_patch(resource, kind, text, &mut value)?;
            let shown = value.clone();
            let claimed = CustomType::of(resource, &value);
            let fitted = fit(resource, value, repeated, options.validation);
            let Decoded { mut object, warnings } = fitted.map_err(|problem| match kind {
                PatchKind::Strategic => unfit_strategic_patch(text, problem),
                _ => unfit_patch(&shown, problem),
            })?;
            claimed.map_or(Ok(()), |claimed| claimed.check(resource))?;
            resource.restore_raw(&mut object, &before);
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

/// A stored object with its type, as patches see it.
pub(crate) fn with_type(resource: &Resource, object: &Object) -> Object {
    let mut object = object.clone();
    object.insert("kind", resource.kind.as_str());
    object.insert("apiVersion", resource.api_version.as_str());
    object
}

/// Applies a patch to a value; answers what it says more than once.
pub(crate) fn apply_patch(
    resource: &Resource,
    kind: PatchKind,
    text: &[u8],
    value: &mut Value,
) -> Result<Repeated<'static>, RegistryError> {
    let bad = |problem: String| RegistryError::BadRequest(format!("error decoding patch: {problem}"));
    let parsed = parse_json(text).map_err(|error| bad(error.to_string()))?;
    let patch = parsed.value;
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
        PatchKind::Strategic => resource.strategic_merge_patch(value, patch),
        // Applied configurations are no patches of values; they went another way.
        PatchKind::Apply => {
            return Err(RegistryError::PatchNotApplicable("an applied configuration is no patch".into()));
        }
        PatchKind::Json => JsonPatch::parse(patch).and_then(|patch| patch.apply(value)),
    };
    applied.map_err(patch_error)?;
    Ok(repeated)
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
