//! Server-side apply: a patch that says what its sender wants, and makes it the manager of that.

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_merge::{
    Application, Applied, ApplyError, FieldSet, ManagedFields, Manager, Operation, Replacement, server_side_apply,
};
use revisor_object::{Object, Parsed, Value, YamlError, is_yaml_text, parse_json, parse_yaml, repeated_yaml_keys};
use revisor_schema::read_cbor_map;

use crate::body::fit_applied;
use crate::field_versions::{Converted, MAX_ROUNDS};
use crate::managed_fields;
use crate::patch::{unfit_patch, with_type};
use crate::write::{Proposal, check_address, match_namespace, named_version};
use crate::{Decoded, FieldValidation, PatchKind, Place, Registry, RegistryError, Saved, WriteOptions};

/// Who is credited with what was there before anybody was recorded.
pub(crate) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager that takes over from kubectl's own apply without conflicts.
const KUBECTL: &str = "kubectl";

/// Where kubectl's own apply keeps what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Registry {
    /// Applies a configuration, written in YAML or CBOR, to an object; makes the object if it is not there.
    pub(crate) async fn apply(
        &self,
        place: Place<'_>,
        kind: PatchKind,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let Place { resource, namespace, name } = place;
        let read = match read(resource, kind, text, &options) {
            // That there is nothing of which this is a part is said first, unless it could be made.
            Err(_)
                if options.subresource.is_some()
                    && !resource.rules.create_on_update
                    && !self.is_there(place).await? =>
            {
                return Err(RegistryError::not_found(resource, name.unwrap_or_default()));
            }
            read => read?,
        };
        let Decoded { object: mut config, warnings } = read;
        options.keep_sent(&warnings);
        let given = (options.field_manager == KUBECTL).then(|| config.clone());
        let address = name.unwrap_or_default();
        let metadata = config.object_mut("metadata");
        let is_nameless = !metadata.contains("name");
        if is_nameless {
            metadata.insert("name", address);
        }
        match_namespace(resource, metadata, namespace)?;
        named_version(metadata)?;
        let metadata = metadata.clone();
        let propose = |current: &Object, converted: &Converted| {
            check_address(&metadata, address)?;
            let mut live = current.clone();
            live.remove("kind");
            live.remove("apiVersion");
            resource.to_shown(&mut live);
            let configs = [&config, given.as_ref().unwrap_or(&config)];
            let Applied { object, managed } = self.apply_to(resource, live, configs, &options, converted)?;
            let mut object = fit_applied(resource, object).map_err(|problem| unfit(resource, &config, problem))?;
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

    /// Whether there is an object in this place.
    pub(crate) async fn is_there(&self, place: Place<'_>) -> Result<bool, RegistryError> {
        let resource = place.resource.working();
        let cache = self.cache_of(resource);
        cache.freshen().await?;
        let key = resource.key(place.namespace, place.name.unwrap_or_default());
        Ok(cache.get(&key).is_some())
    }

    /// [`change`](Registry::change) by something that is applied: what it takes to see the object as its managers do is
    /// converted on the way.
    pub(crate) async fn change_applying(
        &self,
        place: Place<'_>,
        options: WriteOptions<'_>,
        propose: impl Fn(&Object, &Converted) -> Result<Proposal, RegistryError> + Sync,
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

    /// Applies a configuration to an object, both in the version of `resource`. The configuration comes as it is meant
    /// and as it was given.
    pub(crate) fn apply_to(
        &self,
        resource: &Arc<Resource>,
        mut live: Object,
        [config, given]: [&Object; 2],
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
            // What does not fit its type cannot be converted either, and that is the client's to know.
            ApplyError::Unconvertible(why) => match fit_applied(resource, config.clone()) {
                Err(problem) => unfit(resource, config, problem),
                Ok(_) => RegistryError::Conversion(why),
            },
        })?;
        let metadata = applied.object.object("metadata");
        let annotations = metadata.and_then(|metadata| metadata.object("annotations"));
        if manager.name == KUBECTL && annotations.and_then(|all| all.str(LAST_APPLIED)).is_some_and(|t| !t.is_empty()) {
            // What kubectl would apply the old way next is what it applies now.
            let mut shown = given.clone();
            shown.insert("kind", resource.kind.as_str());
            shown.insert("apiVersion", resource.api_version.as_str());
            let metadata = shown.object_mut("metadata");
            match metadata.get_mut("annotations") {
                Some(Value::Object(annotations)) => _ = annotations.remove(LAST_APPLIED),
                _ => _ = metadata.remove("annotations"),
            }
            let text = Value::Object(shown).to_json() + "\n";
            applied.object.object_mut("metadata").object_mut("annotations").insert(LAST_APPLIED, text);
        }
        Ok(applied)
    }
}

/// Reads YAML. Most of it is JSON in fact, which is read in a fraction of the time. Only whole numbers that are written
/// as others are mean something else in YAML: 1.0 is an integer there. And only JSON puts characters together of two
/// halves that are written by their numbers.
fn parse(text: &[u8]) -> Result<Parsed, YamlError> {
    fn has_disguised_integers(value: &Value) -> bool {
        match value {
            Value::Float(number) => number.fract() == 0.0,
            Value::Array(items) => items.iter().any(has_disguised_integers),
            Value::Object(object) => object.iter().any(|(_, value)| has_disguised_integers(value)),
            _ => false,
        }
    }
    let is_half = |digits: &[u8]| matches!(digits, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F']);
    let has_halves = text.contains(&b'\\') && text.windows(4).any(is_half);
    let may_be_json = text.starts_with(b"{") && !has_halves && is_yaml_text(text);
    let json = may_be_json.then(|| parse_json(text)).and_then(Result::ok);
    json.filter(|parsed| !has_disguised_integers(&parsed.value)).map_or_else(|| parse_yaml(text), Ok)
}

/// Says what is wrong with an applied configuration that is of its type and yet does not fit it.
pub(crate) fn unfit(resource: &Resource, config: &Object, problem: String) -> RegistryError {
    // DIFFERENCE: the original answers 500.
    unfit_patch(&Value::Object(with_type(resource, config)), problem)
}

/// Reads an applied configuration.
pub(crate) fn read(
    resource: &Arc<Resource>,
    written_as: PatchKind,
    text: &[u8],
    options: &WriteOptions<'_>,
) -> Result<Decoded, RegistryError> {
    // In the original this is said of CBOR too.
    let bad = |problem: String| RegistryError::BadRequest(format!("error decoding YAML: {problem}"));
    let Parsed { mut value, duplicates } = match written_as {
        // What comes twice there is refused.
        PatchKind::ApplyCbor => {
            let value = read_cbor_map(text).map_err(|error| bad(error.to_string()))?;
            Parsed { value, duplicates: Vec::new() }
        }
        _ => {
            let converting = |error: YamlError| bad(format!("error converting YAML to JSON: {error}"));
            let mut parsed = parse(text).map_err(converting)?;
            parsed.value.guard_noncharacters(text);
            parsed
        }
    };
    if value.is_null() {
        value = Value::Object(Object::new());
    }
    let Value::Object(object) = &value else {
        let found = value.type_name();
        return Err(bad(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type \
             map[string]interface {{}}"
        )));
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
    resource.take_config(&mut value).map_err(bad)?;
    let Value::Object(object) = &value else { return Err(RegistryError::Unreadable) };
    // Nobody could manage what its object does not have, or not so.
    if let Some(problem) = resource.typed_problem(object) {
        let text = |name| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
        let Resource { group, version, kind, .. } = &**resource;
        let object = format!("{}/{}; {group}/{version}, Kind={kind}", text("namespace"), text("name"));
        return Err(RegistryError::Untyped { object, problem });
    }
    let repeated = match (duplicates.is_empty(), options.validation, std::str::from_utf8(text)) {
        (false, FieldValidation::Warn | FieldValidation::Strict, Ok(text)) => repeated_yaml_keys(text),
        _ => Vec::new(),
    };
    if options.validation == FieldValidation::Strict && !repeated.is_empty() {
        let lines = repeated.join("\n  ");
        return Err(RegistryError::BadRequest(format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {lines}"
        )));
    }
    // What it says is merged as it is said: who applies a zero value or a null manages it, although it is not shown.
    let Value::Object(mut config) = value else { return Err(RegistryError::Unreadable) };
    config.remove("kind");
    config.remove("apiVersion");
    Ok(Decoded { object: config, warnings: repeated.into_iter().collect() })
}

/// The places that kubectl's own apply set and nobody changed since.
fn last_applied(resource: &Resource, live: &Object, annotation: &str) -> FieldSet {
    let Ok(Value::Object(last)) = parse_json(annotation.as_bytes()).map(|parsed| parsed.value) else {
        return FieldSet::new();
    };
    let is_typed = |object| resource.typed_problem(object).is_none();
    if last.str("apiVersion") != Some(&resource.api_version) || !is_typed(&last) || !is_typed(live) {
        return FieldSet::new();
    }
    let changes = resource.compare(&last, live);
    let since = changes.modified.union(&changes.added).union(&changes.removed);
    resource.filled(&last).difference(&since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_is_read_as_yaml_reads_it() {
        for text in [
            r#"{"a":0.5,"b":[1,-2.25],"c":{"d":"1.0","e":null,"f":true}}"#,
            r#"{"a":1.0}"#,
            r#"{"a":[1e3,{"b":-0.0}]}"#,
            r#"{"a":12345678901234567890}"#,
            r#"{"a":"\ud7ff","b":"\\ud83d"}"#,
        ] {
            let (read, wanted) =
                (parse(text.as_bytes()).expect("is YAML"), parse_yaml(text.as_bytes()).expect("is YAML"));
            assert_eq!(read.value.to_json(), wanted.value.to_json(), "{text}");
        }
        assert_eq!(parse(br#"{"a":"\ud83d\ude00"}"#), parse_yaml(br#"{"a":"\ud83d\ude00"}"#));
        assert!(parse(br#"{"a":"\ud83d\ude00"}"#).is_err());
    }
}
