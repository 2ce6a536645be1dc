//! [`Attributes`]: all that the admission chain knows of a write beside its object, and [`AdmissionNotes`], where it
//! leaves what its client and its audit should be told.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use revisor_admission::{AdmissionRequest, GroupVersionKind, GroupVersionResource, Operation, RuleTarget, UserInfo};
use revisor_catalog::{Requester, Resource};
use revisor_object::{Object, Warnings};

use super::{OperationOptions, Phase, Reinvocation};
use crate::RegistryError;

/// A write that is to be admitted (upstream: `admission.Attributes`). The object itself is handed along beside it,
/// because some may change it.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    /// The resource in the version in which it is worked on, and in which the objects are.
    pub(crate) resource: &'a Arc<Resource>,
    /// The resource as the client named it: the object is held to the rules of that version.
    pub(crate) shown: &'a Arc<Resource>,
    /// The kind of the object, where a subresource has one of its own.
    pub(crate) own_kind: Option<GroupVersionKind<'a>>,
    pub(crate) namespace: Option<&'a str>,
    /// Empty while a new object waits for a generated name.
    pub(crate) name: &'a str,
    pub(crate) subresource: Option<&'a str>,
    pub(crate) operation: Operation,
    /// Whether a change is made by a patch.
    pub(crate) is_patch: bool,
    /// The options of the operation, as they were sent.
    pub(crate) options: OperationOptions<'a>,
    pub(crate) dry_run: bool,
    /// Who writes. Who has no name and no groups is the server itself, where it asks nobody.
    pub(crate) requester: Requester<'a>,
    /// What is there already.
    pub(crate) old: Option<&'a Object>,
    /// The bytes in which that is stored, where it was not changed since they were read.
    pub(crate) stored: Option<&'a Bytes>,
    /// Whether only an outline of that was read, because there was nobody who looks at more. Who is there since then is not
    /// asked any more.
    pub(crate) is_outline: bool,
    /// When the time of the request is over.
    pub(crate) deadline: Option<Instant>,
    /// Where to leave what the client and the audit should be told; nowhere for the server's own writes.
    pub(crate) notes: Option<&'a AdmissionNotes>,
    /// Who was called in the mutating passes; only there.
    pub(crate) reinvocation: Option<&'a Reinvocation>,
}

impl<'a> Attributes<'a> {
    /// Whether this is about the whole object of a resource.
    pub(crate) fn is_about(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_none() && self.resource.group == group && self.resource.plural == plural
    }

    /// Whether this is about a subresource of the objects of a resource.
    pub(crate) fn is_about_part(&self, group: &str, plural: &str, subresource: &str) -> bool {
        self.subresource == Some(subresource) && self.resource.group == group && self.resource.plural == plural
    }

    /// What the client does, as authorization calls it.
    pub(crate) fn verb(&self) -> &'static str {
        match self.operation {
            Operation::Create => "create",
            Operation::Update if self.is_patch => "patch",
            Operation::Update => "update",
            Operation::Delete => "delete",
            Operation::Connect => "connect",
        }
    }

    /// The refusal of this write.
    pub(crate) fn forbidden(&self, why: impl Into<String>) -> RegistryError {
        RegistryError::Forbidden {
            resource: self.resource.clone(),
            name: self.name.to_owned(),
            why: why.into(),
            terminating_namespace: None,
        }
    }

    /// The namespace as webhooks and policies are told: a namespace is in itself.
    pub(crate) fn request_namespace(&self) -> &'a str {
        let is_namespace = self.resource.group.is_empty() && self.resource.plural == "namespaces";
        self.namespace.unwrap_or(if is_namespace { self.name } else { "" })
    }

    /// The resource that the client speaks of.
    pub(crate) fn request_resource(&self) -> GroupVersionResource<'a> {
        resource_of(self.shown)
    }

    /// The kind that the client speaks of.
    pub(crate) fn request_kind(&self) -> GroupVersionKind<'a> {
        self.own_kind.unwrap_or_else(|| kind_of(self.shown))
    }

    /// The write as rules look at it.
    pub(crate) fn rule_target(&self) -> RuleTarget<'a> {
        RuleTarget {
            resource: self.request_resource(),
            subresource: self.subresource.unwrap_or_default(),
            namespace: self.request_namespace(),
            name: self.name,
            operation: self.operation,
        }
    }

    /// The write as it is told to one who asked to be told of it as one to `meant`, an equivalent of the resource. The
    /// options are those of the write, as an object.
    pub(crate) fn admission_request(
        &self,
        meant: &'a Arc<Resource>,
        options: Option<&'a Object>,
    ) -> AdmissionRequest<'a> {
        let Requester { name, uid, groups, extra } = self.requester;
        AdmissionRequest {
            kind: self.own_kind.unwrap_or_else(|| kind_of(meant)),
            resource: resource_of(meant),
            request_kind: self.request_kind(),
            request_resource: self.request_resource(),
            subresource: self.subresource.unwrap_or_default(),
            name: self.name,
            namespace: self.request_namespace(),
            operation: self.operation,
            user: UserInfo { username: name, uid, groups, extra },
            dry_run: self.dry_run,
            options,
        }
    }

    /// Tells the client something beside the answer.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        if let Some(notes) = self.notes {
            notes.warn(text);
        }
    }

    /// Leaves a note for the audit (upstream: `AddAnnotation`).
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        if let Some(notes) = self.notes {
            notes.annotate(key, value);
        }
    }

    /// Leaves a note for audits that also keep what was sent (upstream: `AddAnnotationWithLevel`).
    pub(crate) fn annotate_request(&self, key: impl Into<String>, value: impl Into<String>) {
        if let Some(notes) = self.notes {
            notes.add(key.into(), value.into(), true);
        }
    }

    /// Remembers how long a webhook was waited for: what is not the server's time.
    pub(crate) fn waited_for_webhook(&self, phase: Phase, time: Duration) {
        if let Some(notes) = self.notes {
            notes.waited_for_webhook(phase, time);
        }
    }

    /// How much time is left; `None` if there is no end to it.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the server writes what nobody is asked about, as in the original: a custom object whose definition goes.
    pub(crate) fn is_own_write(&self) -> bool {
        self.requester == Requester::default()
    }
}

/// A resource as rules name it.
pub(crate) fn resource_of(resource: &Resource) -> GroupVersionResource<'_> {
    GroupVersionResource { group: &resource.group, version: &resource.version, resource: &resource.plural }
}

/// The kind of a resource's objects.
pub(crate) fn kind_of(resource: &Resource) -> GroupVersionKind<'_> {
    GroupVersionKind { group: &resource.group, version: &resource.version, kind: &resource.kind }
}

/// How many notes for the audit a request may leave: more than all plugins and a hundred policies make.
const MAX_ANNOTATIONS: usize = 1024;

/// What the admission of one request leaves for its client and for its audit, whether or not it is let through.
#[derive(Default)]
pub struct AdmissionNotes(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    /// What is odd about what was sent.
    sent: Warnings,
    warnings: Warnings,
    annotations: Vec<AuditAnnotation>,
    /// How long mutating webhooks were waited for, one after the other.
    mutating_webhooks: Duration,
    /// How long validating webhooks were waited for, which are asked at the same time.
    validating_webhooks: Duration,
}

/// What an audit should know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// What it is about.
    pub key: String,
    /// What is said of that.
    pub value: String,
    /// Whether only audits should have it that also keep what was sent.
    pub of_request: bool,
}

impl AdmissionNotes {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        // The lists are whole whenever they can be seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the client should be told. Each text is told once.
    pub fn warn(&self, text: impl Into<String>) {
        self.lock().warnings.push(text);
    }

    /// Keeps what is odd about what was sent: a write that is done tells it itself, one that is refused does not.
    pub fn keep_sent(&self, warnings: &Warnings) {
        self.lock().sent.clone_from(warnings);
    }

    /// Keeps more of it, which was only seen when the object was prepared or validated.
    pub(crate) fn keep_sent_too(&self, warnings: &Warnings) {
        self.lock().sent.extend(warnings.told().map(str::to_owned));
    }

    /// Takes what a client should be told of what it sent although it was refused.
    pub fn take_sent(&self) -> Warnings {
        std::mem::take(&mut self.lock().sent)
    }

    /// Adds what the audit should know. As in the original, what was noted first stays.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.add(key.into(), value.into(), false);
    }

    fn add(&self, key: String, value: String, of_request: bool) {
        let annotations = &mut self.lock().annotations;
        if annotations.len() < MAX_ANNOTATIONS && !annotations.iter().any(|known| known.key == key) {
            annotations.push(AuditAnnotation { key, value, of_request });
        }
    }

    /// Adds how long a webhook was waited for.
    pub(crate) fn waited_for_webhook(&self, phase: Phase, time: Duration) {
        let notes = &mut *self.lock();
        match phase {
            Phase::Admit => notes.mutating_webhooks += time,
            Phase::Validate => notes.validating_webhooks = notes.validating_webhooks.max(time),
        }
    }

    /// How long webhooks were waited for in all.
    pub fn webhook_time(&self) -> Duration {
        let notes = self.lock();
        notes.mutating_webhooks + notes.validating_webhooks
    }

    /// Takes what the client should be told.
    pub fn take_warnings(&self) -> Warnings {
        std::mem::take(&mut self.lock().warnings)
    }

    /// Takes what the audit should know.
    pub fn take_annotations(&self) -> Vec<AuditAnnotation> {
        std::mem::take(&mut self.lock().annotations)
    }
}

impl fmt::Debug for AdmissionNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notes = self.lock();
        f.debug_struct("AdmissionNotes")
            .field("warnings", &notes.warnings)
            .field("annotations", &notes.annotations)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_are_waited_for_one_after_the_other_or_together() {
        let notes = AdmissionNotes::default();
        for (phase, seconds, want) in
            [(Phase::Admit, 2, 2), (Phase::Admit, 1, 3), (Phase::Validate, 4, 7), (Phase::Validate, 3, 7)]
        {
            notes.waited_for_webhook(phase, Duration::from_secs(seconds));
            assert_eq!(notes.webhook_time().as_secs(), want);
        }
    }

    #[test]
    fn what_is_odd_about_what_was_sent_is_kept_together() {
        let notes = AdmissionNotes::default();
        notes.keep_sent(&Warnings::from_iter(["a".to_owned()]));
        for _ in 0..2 {
            notes.keep_sent_too(&Warnings::from_iter(["b".to_owned()]));
        }
        assert_eq!(notes.take_sent().told().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn notes_are_kept_once_and_taken_once() {
        let notes = AdmissionNotes::default();
        for text in ["a", "b", "a"] {
            notes.warn(text);
            notes.annotate("key", text);
        }
        assert_eq!(notes.take_warnings().told().collect::<Vec<_>>(), ["a", "b"]);
        let known = AuditAnnotation { key: "key".to_owned(), value: "a".to_owned(), of_request: false };
        assert_eq!(notes.take_annotations(), [known]);
        assert!(notes.take_annotations().is_empty());
    }
}
