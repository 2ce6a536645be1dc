//! Deletions of which nobody looks at the object: what they depend on is read of it, and its mark is written into its
//! text. To read a pod and to write it again takes longer than all the rest of its deletion.

use std::sync::Arc;

use revisor_catalog::{Beneath, Resource};
use revisor_object::Object;
use revisor_schema::Outline;
use revisor_store::{Draft, Entry};
use time::OffsetDateTime;

use super::plan::{MARKS, Plan, plan};
use super::{DeleteOptions, Looked};
use crate::conversions::is_conversions;
use crate::write::encode;
use crate::{Decoded, Registry};

impl Registry {
    /// What the deletion of an object depends on, where that is enough: nobody in the chain looks at it, nothing that it
    /// holds has to be given back, and its kind marks nothing but its metadata.
    pub(super) fn outline_of(&self, resource: &Arc<Resource>, stored: &Entry) -> Option<Looked> {
        let is_looked_into =
            resource.strategy.marks_deleted() || is_conversions(resource) || resource.name() == ("", "services");
        if is_looked_into || self.looks_at_deleted() {
            return None;
        }
        let (outline, object) = resource.outline(stored.bytes())?;
        Some(Looked { object, beneath: Beneath::Nothing, is_outline: true, outline: Some(outline) })
    }
}

/// What is stored of an object of which no more is known than its outline, which says where that stands, once that is
/// marked.
pub(super) fn marked(resource: &Resource, stored: &Entry, outline: Option<Outline>, object: &Object) -> Option<Draft> {
    // What was marked in the round before stands elsewhere now.
    let outline = outline.or_else(|| Some(resource.outline(stored.bytes())?.0))?;
    let metadata = object.object("metadata")?;
    let encoded = resource.typed().0.encode_with(&outline, stored.bytes(), &MARKS, metadata)?;
    Some(Draft::showing_revision_at(encoded.bytes, encoded.revision_at))
}

/// Whether a draft is what comes of it to read all of an object, mark it and write it again.
pub(super) fn is_as_if_read(
    resource: &Resource,
    stored: &Entry,
    options: &DeleteOptions,
    now: OffsetDateTime,
    draft: &Draft,
) -> bool {
    let planned = Decoded::stored_as(resource, stored.bytes()).map(|object| plan(resource, object, options, now));
    matches!(planned, Ok(Plan::Mark(object) | Plan::MarkAndRemove(object)) if encode(resource, &object) == *draft)
}
