//! [`Strategy`]: the rules of one kind.

use revisor_object::{FieldError, Object};

/// Which part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The object at its own address.
    Whole,
    /// The subresource with this name.
    Subresource(&'a str),
}

/// What a kind does at each step of a write. All steps are pure and in the order of invariant R1; only those named
/// `prepare` and `default` change the object. Metadata is looked after by the registry and by
/// [`validate_metadata`](crate::validate_metadata).
pub trait Strategy: Send + Sync + 'static {
    /// Fills in what a client may leave out.
    fn default(&self, object: &mut Object) {
        let _ = object;
    }

    /// Takes out what a client may not set on a new object, and sets what a new object must have. The name is known.
    fn prepare_create(&self, object: &mut Object) {
        let _ = object;
    }

    /// Puts back what this kind of write may not change.
    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>) {
        let _ = (object, old, part);
    }

    /// What is wrong with a new object.
    fn validate(&self, object: &Object) -> Vec<FieldError>;

    /// What is wrong with an object in place of the old one.
    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> Vec<FieldError>;

    /// Whether a deletion only marks the object, whatever its finalizers, and what else that changes about it.
    fn mark_deleted(&self, object: &mut Object) -> bool {
        let _ = object;
        false
    }

    /// Whether something other than metadata.finalizers still holds a marked object back.
    fn is_held(&self, object: &Object) -> bool {
        let _ = object;
        false
    }
}
