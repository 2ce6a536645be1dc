//! [`Attributes`]: all that the admission chain knows of a write beside its object, and [`AdmissionNotes`], where it
//! leaves what its client and its audit should be told.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use revisor_catalog::{Requester, Resource};
use revisor_object::{Object, Warnings};

use super::{OperationOptions, Reinvocation};
use crate::RegistryError;

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Its client is led through to something else.
    Connect,
}

impl Operation {
    /// Its name in reviews, rules and expressions.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// A write that is to be admitted (upstream: `admission.Attributes`). The object itself is handed along beside it,
/// because some may change it.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    /// The resource in the version in which it is worked on, and in which the objects are.
    pub(crate) resource: &'a Arc<Resource>,
    /// The resource as the client named it: the object is held to the rules of that version.
    pub(crate) shown: &'a Arc<Resource>,
    /// What the object is: one of the resource, or of the kind that a subresource has of its own.
    pub(crate) kind: &'a Arc<Resource>,
    pub(crate) namespace: Option<&'a str>,
    /// Empty while a new object waits for a generated name.
    pub(crate) name: &'a str,
    pub(crate) subresource: Option<&'a str>,
    pub(crate) operation: Operation,
    /// The options of the operation, as they were sent.
    pub(crate) options: OperationOptions<'a>,
    pub(crate) dry_run: bool,
    /// Who writes. The server itself has no name and no groups.
    pub(crate) requester: Requester<'a>,
    /// What is there already.
    pub(crate) old: Option<&'a Object>,
    /// When the time of the request is over.
    pub(crate) deadline: Option<Instant>,
    /// Where to leave what the client and the audit should be told; nowhere for the server's own writes.
    pub(crate) notes: Option<&'a AdmissionNotes>,
    /// Who was called in the mutating passes; only there.
    pub(crate) reinvocation: Option<&'a Reinvocation>,
}

impl Attributes<'_> {
    /// Whether this is about the whole object of a resource.
    pub(crate) fn is_about(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_none() && self.resource.group == group && self.resource.plural == plural
    }

    /// Whether this is about a subresource of the objects of a resource.
    pub(crate) fn is_about_part(&self, group: &str, plural: &str, subresource: &str) -> bool {
        self.subresource == Some(subresource) && self.resource.group == group && self.resource.plural == plural
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

    /// How much time is left; `None` if there is no end to it.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the server itself writes, for whom no policy and no webhook is asked.
    pub(crate) fn is_own_write(&self) -> bool {
        self.requester == Requester::default()
    }
}

/// How many notes for the audit a request may leave: more than all plugins and a hundred policies make.
const MAX_ANNOTATIONS: usize = 1024;

/// What the admission of one request leaves for its client and for its audit, whether or not it is let through.
#[derive(Default)]
pub struct AdmissionNotes(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    warnings: Warnings,
    annotations: Vec<(String, String)>,
}

impl AdmissionNotes {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        // Both lists are whole whenever they can be seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the client should be told. Each text is told once.
    pub fn warn(&self, text: impl Into<String>) {
        self.lock().warnings.push(text);
    }

    /// Adds what the audit should know. As in the original, what was noted first stays.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let annotations = &mut self.lock().annotations;
        if annotations.len() < MAX_ANNOTATIONS && !annotations.iter().any(|(known, _)| *known == key) {
            annotations.push((key, value));
        }
    }

    /// Takes what the client should be told.
    pub fn take_warnings(&self) -> Warnings {
        std::mem::take(&mut self.lock().warnings)
    }

    /// Takes what the audit should know.
    pub fn take_annotations(&self) -> Vec<(String, String)> {
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
    fn notes_are_kept_once_and_taken_once() {
        let notes = AdmissionNotes::default();
        for text in ["a", "b", "a"] {
            notes.warn(text);
            notes.annotate("key", text);
        }
        assert_eq!(notes.take_warnings().told().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(notes.take_annotations(), [("key".to_owned(), "a".to_owned())]);
        assert!(notes.take_annotations().is_empty());
    }
}
