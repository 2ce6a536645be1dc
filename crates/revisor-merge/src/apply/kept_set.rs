//! [`KeptSet`]: the set of an entry, as it is stored until it has to be read.

use std::borrow::Cow;

use revisor_object::Value;
use revisor_schema::{StructId, Types};

use super::field_set::FieldSet;
use super::stored_set::StoredSet;

/// The set of an entry.
#[derive(Debug, Clone)]
pub(super) enum KeptSet {
    Stored(StoredSet),
    Read(FieldSet),
}

impl KeptSet {
    /// Those that managed fields show as this value, which `read` reads unless it is as it is stored.
    pub(super) fn of(value: Value, read: fn(Value) -> Option<FieldSet>) -> Option<KeptSet> {
        match StoredSet::of(value) {
            Ok(stored) => Some(KeptSet::Stored(stored)),
            Err(value) => read(value).map(KeptSet::Read),
        }
    }

    /// The set of them.
    pub(super) fn read(&self) -> Cow<'_, FieldSet> {
        match self {
            KeptSet::Stored(stored) => Cow::Owned(stored.read()),
            KeptSet::Read(set) => Cow::Borrowed(set),
        }
    }

    pub(super) fn into_read(self) -> FieldSet {
        match self {
            KeptSet::Stored(stored) => stored.read(),
            KeptSet::Read(set) => set,
        }
    }

    /// The set, to be changed.
    fn opened(&mut self) -> &mut FieldSet {
        if let KeptSet::Stored(stored) = self {
            *self = KeptSet::Read(stored.read());
        }
        match self {
            KeptSet::Read(set) => set,
            KeptSet::Stored(_) => unreachable!("was read above"),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            KeptSet::Stored(stored) => stored.is_empty(),
            KeptSet::Read(set) => set.is_empty(),
        }
    }

    /// Whether they are as stored, and among them are all of another set.
    pub(super) fn has_stored(&self, other: &FieldSet) -> bool {
        matches!(self, KeptSet::Stored(stored) if stored.has_all(other))
    }

    /// Whether they are as stored, and are those of another set, but for those that nobody manages.
    pub(super) fn is_stored_as(&self, other: &FieldSet, nobodys: &[&[&str]]) -> bool {
        matches!(self, KeptSet::Stored(stored) if stored.is(other, nobodys))
    }

    /// The places of both.
    pub(super) fn intersection(&self, other: &FieldSet) -> FieldSet {
        match self {
            KeptSet::Stored(stored) if !stored.may_meet(other) => FieldSet::new(),
            places => places.read().intersection(other),
        }
    }

    /// Adds the places of another set.
    pub(super) fn add(&mut self, other: FieldSet) {
        if !self.has_stored(&other) {
            self.opened().add(other);
        }
    }

    /// Takes the places of another set out.
    pub(super) fn subtract(&mut self, other: &FieldSet) {
        match self {
            KeptSet::Stored(stored) if !stored.may_meet(other) => {}
            places => places.opened().subtract(other),
        }
    }

    /// Takes out places that nobody manages.
    pub(super) fn take_out(&mut self, nobodys: &[&[&str]]) {
        match self {
            KeptSet::Stored(stored) if !stored.may_meet(&FieldSet::of(nobodys)) => {}
            places => nobodys.iter().for_each(|place| places.opened().take_out(place)),
        }
    }

    /// Brings them up to what their type says today.
    pub(super) fn reconcile(&mut self, types: &Types, id: StructId) {
        match self {
            KeptSet::Stored(stored) if stored.is_reconciled(types, id) => {}
            places => places.opened().reconcile(types, id),
        }
    }

    /// The set as managed fields show it.
    pub(super) fn into_value(self) -> Value {
        match self {
            KeptSet::Stored(stored) => stored.into_value(),
            KeptSet::Read(set) => set.into_value(),
        }
    }
}

impl Default for KeptSet {
    fn default() -> KeptSet {
        KeptSet::Read(FieldSet::new())
    }
}

impl From<FieldSet> for KeptSet {
    fn from(set: FieldSet) -> KeptSet {
        KeptSet::Read(set)
    }
}

/// How they are kept makes no difference.
impl PartialEq for KeptSet {
    fn eq(&self, other: &KeptSet) -> bool {
        self.read() == other.read()
    }
}
