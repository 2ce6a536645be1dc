//! Delete and delete-collection: options, preconditions, and the writes that a [`Plan`] asks for.

pub(crate) mod corrupt;
mod outline;
mod plan;

use std::sync::Arc;

use bytes::Bytes;
use revisor_catalog::{Beneath, Catalog, Custom, DeleteAnswer, Resource};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};
use revisor_schema::Outline;
use revisor_store::{BoxFuture, Change, Entry, Expect, Write};
use revisor_version::Revision;

use self::plan::{Plan, plan};
use crate::admission::Attributes;
use crate::allocation::{Outcome, Reservation};
use crate::body::{BodyType, UNKNOWN_TYPE, Unread, no_object};
use crate::conversion::Current;
use crate::conversions::is_conversions;
use crate::definitions::is_definitions;
use crate::present::{Presented, named_as};
use crate::selection::place;
use crate::write::encode;
use crate::{Decoded, Format, ListItems, ListRequest, Listed, Place, Registry, RegistryError, WriteOptions};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const POLICIES: [&str; 4] = ["Foreground", "Background", "Orphan", "nil"];

/// What must be true of an object for it to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its identity.
    pub uid: Option<String>,
    /// Its version.
    pub resource_version: Option<String>,
}

/// How to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Go through everything, but store nothing.
    pub dry_run: bool,
    /// How long a process may take to end.
    pub grace_period_seconds: Option<i64>,
    /// The older way to say `Orphan` or `Background`.
    pub orphan_dependents: Option<bool>,
    /// What becomes of the objects that this one owns.
    pub propagation_policy: Option<String>,
    /// What must be true of the object.
    pub preconditions: Preconditions,
    /// Whether there are preconditions, and be they empty.
    pub has_preconditions: bool,
    /// Whether an object that cannot be read is to be removed all the same.
    pub ignore_store_read_error: bool,
}

/// The request that a deletion is made by.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) write: WriteOptions<'a>,
    /// Whether it is about a collection.
    pub(crate) is_collection: bool,
}

/// A deletion that was done or has begun.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object is gone.
    Gone {
        /// As it last was, read at the revision of its deletion.
        bytes: Bytes,
        /// Its identity.
        uid: String,
    },
    /// The object is marked and goes when its finalizers do.
    Marked(Bytes),
    /// The object is gone, and nobody could read what it was.
    Unread,
}

impl DeleteOptions {
    /// Reads the body of a deletion, which replaces what the query says.
    pub fn read(catalog: &Catalog, format: Format, text: &[u8]) -> Result<DeleteOptions, RegistryError> {
        let bad = |problem: String| RegistryError::BadRequest(problem);
        let types = catalog.types();
        let id = types.id("meta.v1.DeleteOptions");
        let parsed = format.parse(text, BodyType { kind: "DeleteOptions", api_version: None, types, id });
        let value = match parsed {
            Ok((value, _)) => value,
            Err(Unread::Syntax(error)) => {
                return Err(bad(format!("couldn't get version/kind; json parse error: {error}")));
            }
            Err(Unread::Yaml(error)) => return Err(bad(error)),
            Err(Unread::Cbor(error)) => return Err(bad(format!("{UNKNOWN_TYPE}: {error}"))),
            Err(Unread::CborContent { problem, .. }) => return Err(bad(problem.to_string())),
            Err(Unread::Envelope(error) | Unread::Content { problem: error, .. }) => {
                return Err(bad(error.to_string()));
            }
        };
        let object = match value {
            Value::Object(object) => object,
            Value::Null => Object::new(),
            value => return Err(bad(format!("couldn't get version/kind; json parse error: {}", no_object(&value)))),
        };
        if let Some(id) = id.filter(|_| matches!(object.str("kind"), None | Some("" | "DeleteOptions"))) {
            let fitted = types.conform(id, &mut Value::Object(object.clone()));
            fitted.map_err(|mismatch| bad(mismatch.to_string()))?;
        }
        DeleteOptions::of(&object)
    }

    /// Reads the options that stand in an object.
    pub(crate) fn of(object: &Object) -> Result<DeleteOptions, RegistryError> {
        let bad = |problem: String| RegistryError::BadRequest(problem);
        let (kind, version) = (
            object.str("kind").filter(|kind| !kind.is_empty()).unwrap_or("DeleteOptions"),
            object.str("apiVersion").unwrap_or("meta.k8s.io/v1"),
        );
        if kind != "DeleteOptions" {
            return Err(bad(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \
                 \"pkg/apis/meta/internalversion/scheme/register.go:27\""
            )));
        }
        let wrong = |name: &str, value: &Value| {
            bad(format!("json: cannot unmarshal {} into Go struct field DeleteOptions.{name}", value.type_name()))
        };
        let text = |object: &Object, name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_string())),
            Some(other) => Err(wrong(name, other)),
        };
        let has_preconditions = !matches!(object.get("preconditions"), None | Some(Value::Null));
        let preconditions = match object.get("preconditions") {
            None | Some(Value::Null) => Preconditions::default(),
            Some(Value::Object(conditions)) => {
                Preconditions { uid: text(conditions, "uid")?, resource_version: text(conditions, "resourceVersion")? }
            }
            Some(other) => return Err(wrong("preconditions", other)),
        };
        let grace_period_seconds = match object.get("gracePeriodSeconds") {
            None | Some(Value::Null) => None,
            Some(Value::Int(seconds)) => Some(*seconds),
            Some(other) => return Err(wrong("gracePeriodSeconds", other)),
        };
        let truth = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(other) => Err(wrong(name, other)),
        };
        let orphan_dependents = truth("orphanDependents")?;
        let ignore_store_read_error = truth(corrupt::OPTION)?.unwrap_or_default();
        let dry_run = match object.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.clone(),
            Some(other) => return Err(wrong("dryRun", other)),
        };
        if dry_run.iter().any(|item| item.as_str() != Some("All")) {
            let shown = revisor_object::BadValue::of(&Value::Array(dry_run));
            let errors = FieldErrors::from([FieldError::not_supported(FieldPath::root("dryRun"), shown, &["All"])]);
            return Err(RegistryError::InvalidOptions { kind: "DeleteOptions", errors });
        }
        Ok(DeleteOptions {
            dry_run: !dry_run.is_empty(),
            grace_period_seconds,
            orphan_dependents,
            propagation_policy: text(object, "propagationPolicy")?,
            preconditions,
            has_preconditions,
            ignore_store_read_error,
        })
    }

    /// Fails if the options make no sense, together with that to delete unread if that `is_unsafe`.
    fn validate(&self, is_unsafe: bool) -> Result<(), RegistryError> {
        let path = FieldPath::root("propagationPolicy");
        let mut errors = FieldErrors::new();
        if let Some(policy) = self.propagation_policy.as_deref() {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid(path, policy, detail));
            }
            if !POLICIES[..3].contains(&policy) {
                errors.push(FieldError::not_supported(path, policy, &POLICIES));
            }
        }
        if is_unsafe {
            self.validate_unsafe(&mut errors);
        }
        if errors.is_empty() { Ok(()) } else { Err(RegistryError::InvalidOptions { kind: "DeleteOptions", errors }) }
    }

    /// Which of the two finalizers of the garbage collector these options ask for; `None` to leave them as they are.
    fn wanted_finalizer(&self, resource: &Resource, metadata: &Object) -> Option<Option<&'static str>> {
        let is_decided = || {
            let finalizers = metadata.array("finalizers").iter().filter_map(Value::as_str);
            finalizers.into_iter().any(|name| [ORPHAN, FOREGROUND].contains(&name))
        };
        if !resource.strategy.may_own() {
            return Some(None);
        }
        match (self.orphan_dependents, self.propagation_policy.as_deref()) {
            (Some(true), _) | (_, Some("Orphan")) => Some(Some(ORPHAN)),
            (_, Some("Foreground")) => Some(Some(FOREGROUND)),
            (Some(false), _) | (_, Some("Background")) => Some(None),
            _ if resource.strategy.orphans_by_default() && !is_decided() => Some(Some(ORPHAN)),
            _ => None,
        }
    }
}

impl Registry {
    /// Deletes an object, or marks it where something holds it, without asking anybody: what its time is up for, or what
    /// goes with another.
    pub async fn delete(&self, target: Place<'_>, options: &DeleteOptions) -> Result<Deleted, RegistryError> {
        self.delete_admitted(target, options, None).await
    }

    /// Deletes an object for a client, or marks it where something holds it.
    pub async fn delete_for(
        &self,
        target: Place<'_>,
        options: &DeleteOptions,
        write: WriteOptions<'_>,
    ) -> Result<Deleted, RegistryError> {
        let name = target.name.unwrap_or_default();
        // As in the original, collections are not looked at so closely.
        if let Some(why) = target.resource.strategy.refuses_deletion(name) {
            return Err(RegistryError::Forbidden {
                resource: target.resource.clone(),
                name: name.to_owned(),
                why: why.to_owned(),
                terminating_namespace: None,
            });
        }
        if options.validate(self.is_unsafe(options)).is_ok() {
            warn_of_orphans(target.resource, options, write);
        }
        self.delete_admitted(target, options, Some(Request { write, is_collection: false })).await
    }

    /// Deletes an object for a client that goes through its collection, which admission is told.
    pub async fn delete_of_collection(
        &self,
        target: Place<'_>,
        options: &DeleteOptions,
        write: WriteOptions<'_>,
    ) -> Result<Deleted, RegistryError> {
        self.delete_admitted(target, options, Some(Request { write, is_collection: true })).await
    }

    /// Deletes an object. What somebody admitted already under another name has no request of its own.
    pub(crate) fn delete_admitted<'a>(
        &'a self,
        target: Place<'a>,
        options: &'a DeleteOptions,
        request: Option<Request<'a>>,
    ) -> BoxFuture<'a, Result<Deleted, RegistryError>> {
        Box::pin(self.delete_unboxed(target, options, request))
    }

    async fn delete_unboxed(
        &self,
        target: Place<'_>,
        options: &DeleteOptions,
        request: Option<Request<'_>>,
    ) -> Result<Deleted, RegistryError> {
        let newest = self.newest(target.resource);
        let shown = &newest;
        if let Some(request) = request.filter(|_| self.is_unsafe(options)) {
            options.validate(true)?;
            return self.delete_corrupt(Place { resource: shown, ..target }, request.write).await;
        }
        let stored = Place { resource: shown.working(), ..target };
        let mut deleted =
            self.delete_stored(stored, shown, options, request).await.map_err(|error| named_as(shown, error))?;
        match &mut deleted {
            Deleted::Gone { bytes, .. } => {
                if is_conversions(shown) && !options.dry_run {
                    self.await_definition(shown, bytes).await;
                }
                // Where nobody sees what is gone, nobody has to be able to show it.
                if shown.rules.delete_answer == DeleteAnswer::Object {
                    *bytes = self.show(shown, bytes).await?;
                }
            }
            Deleted::Marked(bytes) => {
                self.await_definition(shown, bytes).await;
                *bytes = self.show(shown, bytes).await?;
            }
            Deleted::Unread => {}
        }
        Ok(deleted)
    }

    pub(crate) async fn delete_stored(
        &self,
        target: Place<'_>,
        shown: &Arc<Resource>,
        options: &DeleteOptions,
        request: Option<Request<'_>>,
    ) -> Result<Deleted, RegistryError> {
        let Place { resource, namespace, name } = target;
        let name = name.unwrap_or_default();
        options.validate(false)?;
        let mut preconditions = options.preconditions.clone();
        let mut last_seen: Option<Arc<Entry>> = None;
        // What was marked here is known, and goes in the next round.
        let mut marked_now: Option<Looked> = None;
        let mut attempts = self.attempts_from_cache(resource, namespace, name).await?;
        loop {
            let current = match (attempts.current(), &last_seen) {
                // If it was marked here and somebody else removed it, it is as gone as it should be.
                (Err(RegistryError::NotFound { .. }), Some(marked)) => {
                    let uid = uid_of(&Decoded::stored(marked.bytes())?).to_owned();
                    return Ok(Deleted::Gone { bytes: marked.bytes().clone(), uid });
                }
                (current, _) => current?,
            };
            // Who marked it was asked about that already.
            let asked = request.filter(|_| last_seen.is_none());
            let round =
                Round { shown, target, current: &current, marked: marked_now.take(), preconditions: &preconditions };
            // A write shows whether it began with the newest state. Whatever else is answered must be true of it too
            // (upstream: `origStateIsCurrent` in `conditionalDelete`).
            let Step { uid, removed, marked, change, is_removed } =
                match self.prepare_deletion(round, options, asked).await {
                    Ok(Next::Write(step)) => *step,
                    Ok(Next::Answer(deleted)) if self.is_current(&mut attempts).await? => return Ok(deleted),
                    Err(error) if self.is_current(&mut attempts).await? => return Err(error),
                    Ok(Next::Answer(_)) | Err(_) => continue,
                };
            marked_now = marked;
            let mut reservation = self
                .reservation_for(resource, namespace, name, false)
                .filter(|_| matches!(change, Change::Delete))
                .unwrap_or_else(|| Reservation::nothing(self));
            if let Some(removed) = &removed {
                reservation.give_up_all(removed);
            }
            let write = Write { key: attempts.key().clone(), expect: Expect::At(current.revision()), change };
            let written = self.cache.write(write).await;
            reservation.settle(if written.is_ok() { Outcome::Removed } else { Outcome::Failed }).await;
            let Some(event) = attempts.settle(written)? else {
                marked_now = None;
                continue;
            };
            match event.new {
                None => return Ok(Deleted::Gone { bytes: current.reading_at(event.revision), uid }),
                Some(marked) if !is_removed => return Ok(Deleted::Marked(marked.bytes().clone())),
                Some(marked) => {
                    // Its time is up now, so the next round removes it. Who insisted on a version insisted on the one
                    // before the mark.
                    if let Some(version) = &mut preconditions.resource_version {
                        *version = marked.revision().to_string();
                    }
                    last_seen = Some(marked.clone());
                    attempts.go_on_with(Some(marked));
                }
            }
        }
    }

    /// Finds out what has to be written so that an object goes, from this state of it.
    async fn prepare_deletion(
        &self,
        round: Round<'_>,
        options: &DeleteOptions,
        request: Option<Request<'_>>,
    ) -> Result<Next, RegistryError> {
        let Round { shown, target: Place { resource, namespace, name }, current, marked, preconditions } = round;
        let name = name.unwrap_or_default();
        let Looked { object: old, beneath, is_outline, outline } =
            match marked.or_else(|| self.outline_of(resource, current)) {
                Some(looked) => looked,
                None => {
                    let Current { object, beneath } = self.read_to_delete(resource, current).await?;
                    Looked { object, beneath, is_outline: false, outline: None }
                }
            };
        check_preconditions(resource, name, current, &old, preconditions)?;
        if let Some(Request { write, is_collection }) = request {
            let place = Place { resource: shown, namespace, name: (!is_collection).then_some(name) };
            let stored = Some(current.bytes());
            let attributes = Attributes { stored, is_outline, ..write.deletion(place, &old, options) };
            self.admit(&attributes, &mut Object::new()).await?;
            self.validate_admission(&attributes, &Object::new()).await?;
            write.in_time()?;
        }
        if is_conversions(resource) && old.at(&["metadata", "deletionTimestamp"]).is_none() {
            self.refuse_needed(resource, name).await?;
        }
        let uid = uid_of(&old).to_owned();
        let now = self.environment.now();
        let (removed, object, is_removed) = match plan(resource, old, options, now) {
            Plan::Nothing => return Ok(Next::Answer(Deleted::Marked(current.bytes().clone()))),
            Plan::Remove(object) => (Some(object), None, true),
            Plan::Mark(object) => (None, Some(object), false),
            Plan::MarkAndRemove(object) => (None, Some(object), true),
        };
        let mut marked = None;
        let draft = match object {
            // Only built-in kinds are marked and removed in one, and they are stored as they are.
            Some(object) if resource.custom().is_none() && (is_removed || is_outline) => {
                let draft = match is_outline {
                    true => outline::marked(resource, current, outline, &object).ok_or(RegistryError::Unreadable)?,
                    false => encode(resource, &object),
                };
                debug_assert!(
                    !is_outline || outline::is_as_if_read(resource, current, options, now, &draft),
                    "what was written into a text is not what reading it comes to: {draft:?}"
                );
                marked = is_removed.then_some(Looked { object, beneath: Beneath::Nothing, is_outline, outline: None });
                Some(draft)
            }
            Some(object) => Some(self.draft(resource, object, &beneath).await?.stored),
            None => None,
        };
        if options.dry_run {
            let bytes = draft.map_or(current.bytes().clone(), |draft| draft.at_revision(current.revision()));
            return Ok(Next::Answer(if is_removed { Deleted::Gone { bytes, uid } } else { Deleted::Marked(bytes) }));
        }
        let change = draft.map_or(Change::Delete, Change::Mark);
        Ok(Next::Write(Box::new(Step { uid, removed, marked, change, is_removed })))
    }

    /// Deletes every object of a collection that is selected, or the first ones, if the request has a limit; answers
    /// what they were.
    pub async fn delete_collection(
        &self,
        request: ListRequest<'_>,
        options: &DeleteOptions,
        write: WriteOptions<'_>,
    ) -> Result<DeletedCollection, RegistryError> {
        options.validate(self.is_unsafe(options))?;
        self.refuse_unsafe_collection(options)?;
        let resource = request.resource;
        warn_of_orphans(resource, options, write);
        let asks_others = resource.custom().is_some_and(Custom::asks_others);
        let Listed { revision, items, continue_token, remaining, .. } = self.list_to_delete(request).await?;
        let items = match items {
            ListItems::Page(items) => items,
            ListItems::All { snapshot, prefix, after, filter } => {
                let all = snapshot.range(&prefix, after.as_deref());
                all.filter(|item| filter.admits(item)).cloned().map(Presented::from).collect()
            }
        };
        let mut deleted = Vec::with_capacity(items.len());
        for Presented { item, shown } in items {
            let (namespace, name) = place(resource, item.key().as_str());
            let target =
                Place { resource, namespace: Some(namespace).filter(|_| resource.namespaced), name: Some(name) };
            match self.delete_of_collection(target, options, write).await {
                // They are told of as they were listed, or as they were if they were listed without being shown.
                Ok(_) => match shown {
                    Some(shown) => deleted.push(shown),
                    None => match self.show_item(resource, &item).await {
                        Err(RegistryError::Conversion(_)) if !asks_others => {}
                        shown => deleted.push(shown?),
                    },
                },
                // Somebody else deleted it in between, which is as good.
                Err(RegistryError::NotFound { .. }) => {}
                // It is marked, and cannot be shown. The others are not kept for that.
                Err(RegistryError::Conversion(_)) if !asks_others => {}
                Err(error) => return Err(error),
            }
        }
        Ok(DeletedCollection { objects: deleted, revision, continue_token, remaining })
    }
}

/// What one round of a deletion begins with.
struct Round<'a> {
    shown: &'a Arc<Resource>,
    target: Place<'a>,
    current: &'a Entry,
    /// The object, if it was marked in the round before.
    marked: Option<Looked>,
    preconditions: &'a Preconditions,
}

/// What was read of an object that is to go.
struct Looked {
    object: Object,
    beneath: Beneath,
    /// Whether that is only what its deletion depends on.
    is_outline: bool,
    /// Where that stands in the text that it was read from.
    outline: Option<Outline>,
}

/// What a round of a deletion comes to.
enum Next {
    /// There is nothing to write.
    Answer(Deleted),
    /// There is.
    Write(Box<Step>),
}

/// What is written so that an object goes.
struct Step {
    /// The identity of the object.
    uid: String,
    /// The object, if it is removed.
    removed: Option<Object>,
    /// The object with its mark, if it is removed right after that.
    marked: Option<Looked>,
    change: Change,
    /// Whether it is removed, now or in the next round.
    is_removed: bool,
}

/// What was deleted of a collection, as the list says that was gone through.
#[derive(Debug)]
pub struct DeletedCollection {
    /// The objects, as they were.
    pub objects: Vec<Bytes>,
    /// The state that they were listed in.
    pub revision: Option<Revision>,
    /// Where those begin that were not asked for.
    pub continue_token: Option<String>,
    /// How many these are, if that is known.
    pub remaining: Option<u64>,
}

/// Tells a client of what stays behind because it did not say what becomes of it, whether or not there is anything.
fn warn_of_orphans(resource: &Resource, options: &DeleteOptions, write: WriteOptions<'_>) {
    let is_said = options.propagation_policy.is_some() || options.orphan_dependents.is_some();
    if let (Some(notes), Some(warning)) = (write.notes, resource.strategy.warns_of_orphans())
        && !is_said
    {
        notes.warn(warning);
    }
}

fn uid_of(object: &Object) -> &str {
    object.object("metadata").and_then(|metadata| metadata.str("uid")).unwrap_or_default()
}

pub(crate) fn check_preconditions(
    resource: &Arc<Resource>,
    name: &str,
    current: &Entry,
    object: &Object,
    preconditions: &Preconditions,
) -> Result<(), RegistryError> {
    let uid = uid_of(object);
    let version = current.revision().to_string();
    // These two look themselves, and say it otherwise.
    let is_own = is_definitions(resource) || resource.group.is_empty() && resource.plural == "namespaces";
    let failed = |what: &str, wanted: &str, found: &str, end: &str| {
        if is_own {
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            return Err(RegistryError::conflict(resource, name, why));
        }
        let why =
            format!("the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {end}");
        Err(RegistryError::Conflict { resource: resource.clone(), name: name.to_owned(), why, is_by_kind: true })
    };
    if let Some(wanted) = preconditions.uid.as_deref().filter(|wanted| *wanted != uid) {
        return failed("UID", wanted, uid, "The object might have been deleted and then recreated");
    }
    if let Some(wanted) = preconditions.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return failed("ResourceVersion", wanted, &version, "The object might have been modified");
    }
    Ok(())
}
