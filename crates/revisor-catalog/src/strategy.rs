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

/// Who makes a write; empty if it is the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requester<'a> {
    /// The name.
    pub name: &'a str,
    /// The identity; empty if it has none.
    pub uid: &'a str,
    /// The groups.
    pub groups: &'a [String],
    /// What else is known.
    pub extra: &'a [(String, Vec<String>)],
}

/// What a strategy may know about a write beside the object.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// The time, as metadata shows it.
    pub now: &'a str,
    /// Who makes the write.
    pub requester: Requester<'a>,
}

/// What a kind does at each step of a write. All steps are pure and in the order of invariant R1; only those named
/// `prepare` and `default` change the object. Metadata is looked after by the registry and by
/// [`validate_metadata`](crate::validate_metadata); defaults that depend on nothing stand in the table of fields and
/// have been filled in before any of this.
pub trait Strategy: Send + Sync + 'static {
    /// Fills in what a client may leave out and what depends on other fields. Doing it again changes nothing.
    fn default(&self, object: &mut Object) {
        let _ = object;
    }

    /// The parts of an object, as paths, whose change raises `metadata.generation`. Kinds without any do not count.
    fn tracked(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// What is unwise about a new object that is no longer seen once it was prepared.
    fn warnings_as_sent(&self, object: &Object) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Takes out what a client may not set on a new object, and sets what a new object must have. The name is known.
    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        let _ = (object, circumstances);
    }

    /// Puts back what this kind of write may not change.
    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        let _ = (object, old, part, circumstances);
    }

    /// What is wrong with a new object.
    fn validate(&self, object: &Object) -> Vec<FieldError>;

    /// What is wrong with an object in place of the old one.
    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> Vec<FieldError>;

    /// The same for kinds that need to know more than the two objects, such as the time.
    fn validate_update_under(
        &self,
        object: &Object,
        old: &Object,
        part: Part<'_>,
        circumstances: Circumstances<'_>,
    ) -> Vec<FieldError> {
        let _ = circumstances;
        self.validate_update(object, old, part)
    }

    /// What is unwise but allowed about an object, new or in place of an old one.
    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }

    /// The same for an object that was written through a subresource.
    fn subresource_warnings(&self, object: &Object, old: &Object) -> Vec<String> {
        self.warnings(object, Some(old))
    }

    /// How many seconds an object may take to end once its deletion is asked for with the given grace period; `None`
    /// if it ends at once, as most do.
    fn grace_period(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        let _ = (object, asked);
        None
    }

    /// Whether those that an object owns stay when its deletion does not say what becomes of them.
    fn orphans_by_default(&self) -> bool {
        false
    }

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
