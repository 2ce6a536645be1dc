//! [`Strategy`]: the rules of one kind.

use revisor_object::{FieldErrors, Object, Warnings};

use crate::checks::put_back;

/// Places in an object, each a path of members from its root.
pub type Places = &'static [&'static [&'static str]];

/// Which part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The object at its own address.
    Whole,
    /// The subresource with this name.
    Subresource(&'a str),
}

impl Part<'static> {
    /// The status.
    pub const STATUS: Part<'static> = Part::Subresource("status");
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
/// `prepare`, `settle` and `default` change the object. Metadata is looked after by the registry and by
/// [`validate_metadata`](crate::validate_metadata); defaults that depend on nothing stand in the table of fields and
/// have been filled in before any of this.
pub trait Strategy: Send + Sync + 'static {
    /// Fills in what a client may leave out and what depends on other fields. Doing it again changes nothing.
    fn default(&self, object: &mut Object) {
        let _ = object;
    }

    /// Why an object that is of its type cannot be read all the same, as the original says it when a conversion to its
    /// internal type fails.
    fn unreadable(&self, object: &Object) -> Option<String> {
        let _ = object;
        None
    }

    /// The parts of an object, as paths, whose change raises `metadata.generation`. Kinds without any do not count.
    fn tracked(&self) -> Places {
        &[]
    }

    /// Whether objects count in `metadata.generation` how often their desired state was changed.
    fn counts_generation(&self) -> bool {
        !self.tracked().is_empty()
    }

    /// Whether an object that takes the place of the old one has another desired state.
    fn is_changed(&self, object: &Object, old: &Object) -> bool {
        self.tracked().iter().any(|path| object.at(path) != old.at(path))
    }

    /// The places that a write of this part leaves as they are, whatever was sent: what stands there is put back, and
    /// nobody comes to manage it. `metadata` means what can be changed in there at all. A new object has nothing at the
    /// places that writes of the whole leave alone.
    ///
    /// Nothing is untouched by default; kinds whose status has writes of its own keep it and the spec apart.
    fn untouched(&self, part: Part<'_>) -> Places {
        let _ = part;
        &[]
    }

    /// Brings what a client says about an object into the form that is stored. Fields whose feature is off are gone
    /// already ([`Resource::prepare_create`](crate::Resource::prepare_create)). Writes of the status have one of their
    /// own.
    fn settle(&self, object: &mut Object, old: Option<&Object>, circumstances: Circumstances<'_>) {
        let _ = (object, old, circumstances);
    }

    /// The same for the status of an object, where it has writes of its own.
    fn settle_status(&self, object: &mut Object, old: &Object) {
        let _ = (object, old);
    }

    /// A new object as its writer manages it, where that is more than what was sent and defaulted.
    fn as_managed(&self, object: &Object) -> Option<Object> {
        let _ = object;
        None
    }

    /// Why nobody may delete the object of this name, if that is so.
    fn refuses_deletion(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// What is unwise about a new object that is no longer seen once it was prepared.
    fn warnings_as_sent(&self, object: &Object) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Takes out what a client may not set on a new object, and sets what a new object must have. The name is known.
    /// Unless a kind does more, that is what its [`untouched`](Strategy::untouched) and [`settle`](Strategy::settle)
    /// say.
    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        put_back(object, &Object::new(), self.untouched(Part::Whole));
        self.settle(object, None, circumstances);
    }

    /// Puts back what this kind of write may not change, and brings the rest into its form; by default as for a new
    /// object.
    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        if part == Part::STATUS {
            self.settle_status(object, old);
        } else {
            self.settle(object, Some(old), circumstances);
        }
    }

    /// What is wrong with a new object.
    fn validate(&self, object: &Object) -> FieldErrors;

    /// What is wrong with an object in place of the old one.
    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors;

    /// The same for kinds that need to know more than the two objects, such as the time.
    fn validate_update_under(
        &self,
        object: &Object,
        old: &Object,
        part: Part<'_>,
        circumstances: Circumstances<'_>,
    ) -> FieldErrors {
        let _ = circumstances;
        self.validate_update(object, old, part)
    }

    /// The same for kinds that tolerate some of what is wrong, because it was wrong before, and say so in `warnings`.
    fn validate_update_warning(
        &self,
        object: &Object,
        old: &Object,
        part: Part<'_>,
        circumstances: Circumstances<'_>,
        warnings: &mut Warnings,
    ) -> FieldErrors {
        let _ = warnings;
        self.validate_update_under(object, old, part, circumstances)
    }

    /// What is unwise but allowed about an object, new or in place of an old one.
    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }

    /// The same for an object that was written through a subresource: nothing, unless a kind says otherwise.
    fn subresource_warnings(&self, object: &Object, old: &Object) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
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

    /// Whether objects can have others that they own, which something may have to become of.
    fn may_own(&self) -> bool {
        true
    }

    /// What a client is told that deletes an object without saying what becomes of those that it owns.
    fn warns_of_orphans(&self) -> Option<&'static str> {
        None
    }

    /// Whether a deletion only marks the object, whatever its finalizers.
    fn marks_deleted(&self) -> bool {
        false
    }

    /// What else that changes about it.
    fn mark_deleted(&self, object: &mut Object) {
        let _ = object;
    }

    /// Whether something other than metadata.finalizers still holds a marked object back.
    fn is_held(&self, object: &Object) -> bool {
        let _ = object;
        false
    }
}

/// What is untouched in objects whose status has writes of its own: these leave the spec, and all others the status.
pub(crate) fn spec_or_status(part: Part<'_>) -> Places {
    if part == Part::STATUS { &[&["spec"]] } else { &[&["status"]] }
}

/// The same for kinds whose metadata is not written with their status.
pub(crate) fn spec_and_metadata_or_status(part: Part<'_>) -> Places {
    if part == Part::STATUS { &[&["spec"], &["metadata"]] } else { &[&["status"]] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;
    use crate::{Catalog, CatalogOptions};

    #[test]
    fn the_status_is_apart_where_it_has_writes_of_its_own() {
        let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is all of it");
        for resource in catalog.resources() {
            let has_status = resource.subresource("status").is_some();
            let leaves = |part, place: &[&str]| resource.strategy.untouched(part).contains(&place);
            let name = (&resource.api_version, resource.plural.as_str());
            assert_eq!(leaves(Part::Whole, &["status"]), has_status, "{name:?}");
            assert_eq!(leaves(Part::STATUS, &["spec"]), has_status, "{name:?}");
        }
    }

    #[test]
    fn what_is_untouched_is_put_back() {
        struct Parts;
        impl Strategy for Parts {
            fn untouched(&self, part: Part<'_>) -> Places {
                match part {
                    Part::Subresource("deep") => &[&["spec", "a", "b"], &["spec", "a", "c"]],
                    part => spec_and_metadata_or_status(part),
                }
            }

            fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
                object.insert("settled", if old.is_some() { "anew" } else { "first" });
            }

            fn validate(&self, _: &Object) -> FieldErrors {
                FieldErrors::new()
            }

            fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
                FieldErrors::new()
            }
        }
        let circumstances = Circumstances { now: "", requester: Requester::default() };
        let old = object(r#"{"metadata":{"uid":"1","labels":{"a":"1"}},"spec":{"a":{"b":1}},"status":1}"#);
        let sent = r#"{"metadata":{"uid":"2","labels":{"a":"2"}},"spec":{"a":{"b":2,"c":2,"d":2}},"status":2}"#;
        for (part, want) in [
            (
                Some(Part::Whole),
                r#"{"metadata":{"uid":"2","labels":{"a":"2"}},"spec":{"a":{"b":2,"c":2,"d":2}},"status":1,"settled":"anew"}"#,
            ),
            (Some(Part::STATUS), r#"{"metadata":{"uid":"2","labels":{"a":"1"}},"spec":{"a":{"b":1}},"status":2}"#),
            (
                Some(Part::Subresource("deep")),
                r#"{"metadata":{"uid":"2","labels":{"a":"2"}},"spec":{"a":{"b":1,"d":2}},"status":2,"settled":"anew"}"#,
            ),
            (None, r#"{"metadata":{"uid":"2","labels":{"a":"2"}},"spec":{"a":{"b":2,"c":2,"d":2}},"settled":"first"}"#),
        ] {
            let mut new = object(sent);
            match part {
                Some(part) => Parts.prepare_update(&mut new, &old, part, circumstances),
                None => Parts.prepare_create(&mut new, circumstances),
            }
            assert_eq!(new, object(want), "{part:?}");
        }
    }
}
