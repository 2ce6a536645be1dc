//! Server-side apply: a patch that says what its sender wants, and makes it the manager of that.

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_merge::{
    Application, Applied, ApplyError, FieldSet, ManagedFields, Manager, Operation, Replacement, server_side_apply,
};
use revisor_object::{FieldError, Object, Parsed, Value, parse_json, parse_yaml};

use crate::body::{fit, fit_as_given};
use crate::field_versions::{Converted, MAX_ROUNDS};
use crate::managed_fields;
use crate::write::{Proposal, check_address, match_namespace, named_version};
use crate::{Decoded, FieldValidation, Place, Registry, RegistryError, Saved, WriteOptions};

/// Who is credited with what was there before anybody was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager that takes over from kubectl's own apply without conflicts.
const KUBECTL: &str = "kubectl";

/// Where kubectl's own apply keeps what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Registry {
    /// Applies a configuration, written in YAML, to an object; makes the object if it is not there.
    pub(crate) async fn apply(
        &self,
        place: Place<'_>,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let Place { resource, namespace, name } = place;
        let Decoded { object: mut config, warnings } = read(resource, text, &options)?;
        let address = name.unwrap_or_default();
        let metadata = config.object_mut("metadata");
        let is_nameless = metadata.str("name").unwrap_or_default().is_empty();
        if is_nameless {
            metadata.insert("name", address);
        }
        match_namespace(resource, metadata, namespace)?;
        named_version(metadata)?;
        let metadata = metadata.clone();
        let propose = |current: &Object, converted: &Converted| {
            check_address(&metadata, address)?;
            let mut live = current.clone();
            resource.to_shown(&mut live);
            let Applied { object, managed } = self.apply_to(resource, live, &config, &options, converted)?;
            let mut object = without_zeros(resource, object)?;
            resource.to_stored(&mut object);
            let is_conditional = config.at(&["metadata", "resourceVersion"]).is_some();
            Ok(Proposal { object, warnings: warnings.clone(), is_conditional, managed: Some(managed) })
        };
        match self.change_applying(place, options, propose).await {
            Err(RegistryError::NotFound { .. }) if options.subresource.is_none() => {
                let metadata = config.object_mut("metadata");
                let uid = metadata.str("uid").unwrap_or_default();
                if !uid.is_empty() {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(RegistryError::conflict(resource, address, why));
                }
                if is_nameless {
                    // What is there needs no name beside that of its address; what is to be made does.
                    metadata.remove("name");
                }
                check_address(metadata, address)?;
                metadata.remove("resourceVersion");
                self.create(place, Decoded { object: config, warnings }, options).await
            }
            done => done,
        }
    }

    /// [`change`](Registry::change) by something that is applied: what it takes to see the object as its managers do is
    /// converted on the way.
    pub(crate) async fn change_applying(
        &self,
        place: Place<'_>,
        options: WriteOptions<'_>,
        propose: impl Fn(&Object, &Converted) -> Result<Proposal, RegistryError>,
    ) -> Result<Saved, RegistryError> {
        let converted = Converted::default();
        for _ in 0..MAX_ROUNDS {
            let done = self.change(place, options, |current| propose(current, &converted)).await;
            if !self.fulfil(place.resource, &converted).await {
                return done;
            }
        }
        let name = place.name.unwrap_or_default().to_owned();
        Err(RegistryError::Contended { resource: place.resource.clone(), name })
    }

    /// Applies a configuration to an object, both in the version of `resource`.
    pub(crate) fn apply_to(
        &self,
        resource: &Arc<Resource>,
        mut live: Object,
        config: &Object,
        options: &WriteOptions<'_>,
        converted: &Converted,
    ) -> Result<Applied, RegistryError> {
        let now = self.now();
        let manager = managed_fields::manager(resource, options);
        let versions = self.field_versions(resource, converted);
        let stored = live.object_mut("metadata").remove("managedFields");
        let mut managed = ManagedFields::read(stored.as_ref().and_then(Value::as_array).unwrap_or_default())
            .ok_or(RegistryError::Unreadable)?;
        let owned = |fields| managed_fields::owned(resource, options, fields);
        if managed.is_empty() {
            let before =
                Manager { name: BEFORE_FIRST_APPLY.to_owned(), operation: Operation::Update, ..manager.clone() };
            let (version, empty) = (resource.api_version.as_str(), Object::new());
            let write = Replacement { versions: &versions, version, old: &empty, new: &live };
            managed.update(&before, write, &now, owned).map_err(RegistryError::Conversion)?;
        }
        let annotation = live.at(&["metadata", "annotations", LAST_APPLIED]).and_then(Value::as_str).map(str::to_owned);
        let allowed = match &annotation {
            Some(annotation) if manager.name == KUBECTL => last_applied(resource, &live, annotation),
            _ => FieldSet::new(),
        };
        let application = Application { config, manager: &manager, force: options.force, allowed: &allowed, now: &now };
        let applied = server_side_apply(&versions, &live, managed, application, owned);
        let mut applied = applied.map_err(|error| match error {
            ApplyError::Conflicts(conflicts) => RegistryError::ApplyConflict(conflicts),
            ApplyError::Unconvertible(why) => RegistryError::Conversion(why),
        })?;
        let metadata = applied.object.object("metadata");
        let annotations = metadata.and_then(|metadata| metadata.object("annotations"));
        if manager.name == KUBECTL && annotations.and_then(|all| all.str(LAST_APPLIED)).is_some_and(|t| !t.is_empty()) {
            // What kubectl would apply the old way next is what it applies now.
            let mut shown = config.clone();
            shown.insert("kind", resource.kind.as_str());
            shown.insert("apiVersion", resource.api_version.as_str());
            if let Some(annotations) =
                shown.object_mut("metadata").get_mut("annotations").and_then(Value::as_object_mut)
            {
                annotations.remove(LAST_APPLIED);
            }
            let text = Value::Object(shown).to_json() + "\n";
            applied.object.object_mut("metadata").object_mut("annotations").insert(LAST_APPLIED, text);
        }
        Ok(applied)
    }
}

/// An object without the zero values that are not written. Only now: who applies them manages them nevertheless.
pub(crate) fn without_zeros(resource: &Resource, object: Object) -> Result<Object, RegistryError> {
    let fitted = fit(resource, Value::Object(object), Vec::new(), FieldValidation::Ignore);
    fitted.map(|decoded| decoded.object).map_err(RegistryError::PatchNotApplicable)
}

/// Reads an applied configuration.
pub(crate) fn read(
    resource: &Arc<Resource>,
    text: &[u8],
    options: &WriteOptions<'_>,
) -> Result<Decoded, RegistryError> {
    let bad = |problem: String| RegistryError::BadRequest(format!("error decoding YAML: {problem}"));
    let Parsed { value, duplicates } = parse_yaml(text).map_err(|error| bad(error.to_string()))?;
    let Value::Object(object) = &value else {
        return Err(bad(format!("json: cannot unmarshal {} into an object", value.type_name())));
    };
    let (kind, version) = (object.str("kind").unwrap_or_default(), object.str("apiVersion").unwrap_or_default());
    if version != resource.api_version || kind != resource.kind {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let message = format!("invalid object type: {group}/{version}, Kind={kind}");
        return Err(RegistryError::BadRequest(message));
    }
    if object.at(&["metadata", "managedFields"]).is_some_and(|entries| !entries.is_null()) {
        return Err(RegistryError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    // Nobody could manage what its object does not have, or not so.
    if let Some(problem) = resource.typed_problem(object) {
        let text = |name| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
        let Resource { api_version, kind, .. } = &**resource;
        let object = format!("{}/{}; {api_version}, Kind={kind}", text("namespace"), text("name"));
        return Err(RegistryError::Untyped { object, problem });
    }
    let shown = value.clone();
    fit_as_given(resource, value, duplicates, options.validation).map_err(|problem| {
        // DIFFERENCE: the original answers 500 to values that are of their type and yet do not fit it.
        let shown = revisor_object::BadValue::from(shown.to_json());
        RegistryError::InvalidOptions { kind: "", errors: vec![FieldError::invalid("patch", shown, problem)] }
    })
}

/// The places that kubectl's own apply set and nobody changed since.
fn last_applied(resource: &Resource, live: &Object, annotation: &str) -> FieldSet {
    let Ok(Value::Object(last)) = parse_json(annotation.as_bytes()).map(|parsed| parsed.value) else {
        return FieldSet::new();
    };
    if last.str("apiVersion") != Some(&resource.api_version) {
        return FieldSet::new();
    }
    let changes = resource.compare(&last, live);
    let since = changes.modified.union(&changes.added).union(&changes.removed);
    resource.filled(&last).difference(&since)
}
