//! [`Place`] and [`WriteOptions`]: where a write goes, who makes it and how; and what admission is told of that.

use std::sync::Arc;
use std::time::Instant;

use revisor_catalog::{Part, Requester, Resource};
use revisor_object::{Object, Warnings};

use crate::admission::{AdmissionNotes, Attributes, Operation, OperationOptions, SentOptions};
use crate::quota::Charging;
use crate::{DeleteOptions, FieldValidation, RegistryError};

/// Where a write goes.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// To this resource.
    pub resource: &'a Arc<Resource>,
    /// In this namespace.
    pub namespace: Option<&'a str>,
    /// To the object with this name, where the address has one.
    pub name: Option<&'a str>,
}

/// What goes for every write.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions<'a> {
    /// Go through everything, but store nothing.
    pub dry_run: bool,
    /// The subresource that is written to.
    pub subresource: Option<&'a str>,
    /// What to do about odd fields; for patches, which are only read here.
    pub validation: FieldValidation,
    /// Who writes.
    pub requester: Requester<'a>,
    /// In whose name managed fields are kept; empty for the server itself.
    pub field_manager: &'a str,
    /// Whether an object is changed by a patch. Set by the registry itself.
    pub is_patch: bool,
    /// Whether the object is applied: its writer comes to manage what it says.
    pub is_apply: bool,
    /// Whether an applier takes over what others manage.
    pub force: bool,
    /// Whether a new object is made at an address of its own, by a write that could as well have changed one. Set by
    /// the registry itself.
    pub is_addressed: bool,
    /// When the time of the request is over: nothing is stored after that.
    pub deadline: Option<Instant>,
    /// What the request says of its options itself.
    pub sent: SentOptions<'a>,
    /// Where admission leaves what the client and the audit should be told.
    pub notes: Option<&'a AdmissionNotes>,
    /// What only the registry itself says, of what it writes in the midst of another write.
    pub within: WithinWrite<'a>,
}

/// What the registry knows of a write that it makes in the midst of another. Others have nothing to say here.
#[derive(Debug, Clone, Copy, Default)]
pub struct WithinWrite<'a> {
    /// The identity that a new object gets, where the server has chosen it before.
    pub(crate) identity: Option<&'a str>,
    /// The charge of a quota that is made by it.
    pub(crate) charging: Option<&'a Charging<'a>>,
}

impl<'a> WriteOptions<'a> {
    /// Keeps what is odd about what was sent, for clients whose write is refused.
    pub(crate) fn keep_sent(&self, warnings: &Warnings) {
        if let Some(notes) = self.notes.filter(|_| warnings.told().next().is_some()) {
            notes.keep_sent(warnings);
        }
    }

    /// Keeps what is odd about what was sent beside that.
    pub(crate) fn keep_sent_too(&self, warnings: &Warnings) {
        if let Some(notes) = self.notes.filter(|_| warnings.told().next().is_some()) {
            notes.keep_sent_too(warnings);
        }
    }

    /// What the admission chain is told of a deletion. As in the original, who deletes a collection names none of its
    /// objects.
    pub(crate) fn deletion(&self, place: Place<'a>, old: &'a Object, options: &'a DeleteOptions) -> Attributes<'a> {
        let Place { resource, namespace, name } = place;
        Attributes {
            operation: Operation::Delete,
            options: OperationOptions::Delete(options),
            dry_run: options.dry_run,
            ..self.attributes(resource, namespace, name.unwrap_or_default(), Some(old))
        }
    }

    /// What the admission chain is told of a write.
    pub(crate) fn attributes(
        &self,
        shown: &'a Arc<Resource>,
        namespace: Option<&'a str>,
        name: &'a str,
        old: Option<&'a Object>,
    ) -> Attributes<'a> {
        let resource = shown.working();
        Attributes {
            resource,
            shown,
            own_kind: None,
            namespace,
            name,
            subresource: self.subresource,
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            is_patch: self.is_patch,
            options: match old {
                Some(_) => OperationOptions::Update(self.sent),
                None => OperationOptions::Create(self.sent),
            },
            dry_run: self.dry_run,
            requester: self.requester,
            old,
            stored: None,
            is_outline: false,
            deadline: self.deadline,
            notes: self.notes,
            reinvocation: None,
        }
    }

    pub(crate) fn part(&self) -> Part<'a> {
        self.subresource.map_or(Part::Whole, Part::Subresource)
    }

    /// Refuses to go on when the time is over. Asked before each step that may take long, and before anything is stored.
    pub(crate) fn in_time(&self) -> Result<(), RegistryError> {
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_over { Err(RegistryError::TimedOut) } else { Ok(()) }
    }
}
