//! [`Versions`]: an object in the versions in which its managers know it.
//!
//! Every manager's places are those of the version in which it wrote. Whether a write touches them is asked in that
//! version, so the object as it was and as it is to be are brought there. How that is done is not known here.

use std::borrow::Cow;

use revisor_object::Object;
use revisor_schema::{StructId, Types};

use super::compare::Comparison;

/// The versions of one kind.
pub trait Versions {
    /// The type that objects have in a version.
    fn type_in(&self, version: &str) -> Result<(&Types, StructId), Unconvertible>;

    /// An object of the version `from` in another one.
    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, Unconvertible>;
}

/// What is said of a write in a version that is not there.
pub(crate) const NO_VERSION: &str = "the version is not there";

/// Why an object cannot be brought into a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unconvertible {
    /// There is no such version. Who manages something in it manages nothing any more.
    NoSuchVersion,
    /// The way there failed, as is told to clients.
    Failed(String),
}

impl Unconvertible {
    /// What clients are told, with what was tried. `None` if there is no such version.
    pub(crate) fn during(self, what: &str) -> Option<String> {
        match self {
            Unconvertible::NoSuchVersion => None,
            Unconvertible::Failed(why) => Some(format!("{what}: {why}")),
        }
    }
}

/// An object in one version.
#[derive(Clone)]
pub(crate) struct Versioned<'a> {
    pub(crate) object: Cow<'a, Object>,
    pub(crate) version: Cow<'a, str>,
}

impl<'a> Versioned<'a> {
    pub(crate) fn new(object: &'a Object, version: &'a str) -> Versioned<'a> {
        Versioned { object: Cow::Borrowed(object), version: Cow::Borrowed(version) }
    }

    /// The same object in another version.
    pub(crate) fn to(&self, versions: &dyn Versions, version: &'a str) -> Result<Versioned<'a>, Unconvertible> {
        if *self.version == *version {
            return Ok(self.clone());
        }
        let object = versions.convert(&self.object, &self.version, version)?;
        Ok(Versioned { object: Cow::Owned(object), version: Cow::Borrowed(version) })
    }
}

/// A write: an object that takes the place of another, both of one version.
#[derive(Clone, Copy)]
pub struct Replacement<'a> {
    /// The versions in which managers may know the object.
    pub versions: &'a dyn Versions,
    /// The version of both objects.
    pub version: &'a str,
    /// What was there; an empty object if nothing was.
    pub old: &'a Object,
    /// What takes its place.
    pub new: &'a Object,
}

impl Replacement<'_> {
    /// What the write changes.
    pub(crate) fn changes(&self) -> Result<Comparison, String> {
        let (types, id) = self.versions.type_in(self.version).map_err(|_| NO_VERSION.to_owned())?;
        Ok(Comparison::of(types, id, self.old, self.new))
    }

    /// What the write changes as another version shows it; `None` if there is no such version.
    pub(crate) fn changes_in(&self, version: &str) -> Result<Option<Comparison>, String> {
        let bring = |object, what: &str| {
            let brought = Versioned::new(object, self.version).to(self.versions, version);
            brought.map(Some).or_else(|error| error.during(what).map_or(Ok(None), Err))
        };
        let Some(old) = bring(self.old, "failed to convert old object")? else { return Ok(None) };
        let Some(new) = bring(self.new, "failed to convert new object")? else { return Ok(None) };
        Ok(self.versions.type_in(version).ok().map(|(types, id)| Comparison::of(types, id, &old.object, &new.object)))
    }
}

/// The only version of a kind.
#[cfg(test)]
pub(crate) struct OneVersion<'t> {
    pub(crate) version: &'t str,
    pub(crate) types: &'t Types,
    pub(crate) id: StructId,
}

#[cfg(test)]
impl Versions for OneVersion<'_> {
    fn type_in(&self, version: &str) -> Result<(&Types, StructId), Unconvertible> {
        if version == self.version { Ok((self.types, self.id)) } else { Err(Unconvertible::NoSuchVersion) }
    }

    fn convert(&self, _: &Object, _: &str, _: &str) -> Result<Object, Unconvertible> {
        Err(Unconvertible::NoSuchVersion)
    }
}
