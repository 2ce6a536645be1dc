//! [`FieldVersions`]: how managers see an object, each in the version in which it wrote.
//!
//! What can be converted here is converted at once. What somebody else has to convert is not: to keep track of fields is
//! a computation that does not wait for anybody. It notes down what it misses and fails; whoever runs it has that
//! converted ([`Registry::fulfil`]) and runs it again.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use revisor_catalog::{Catalog, Custom, Resource, Unconverted};
use revisor_merge::{Unconvertible, Versions};
use revisor_object::Object;
use revisor_schema::{StructId, Types};

use crate::Registry;

/// How often tracking is run anew because it missed a conversion. Each version costs a handful of them.
pub(crate) const MAX_ROUNDS: usize = 64;

/// The versions of one resource. Objects are of the version of `resource` unless something else is said, and do not
/// show their type.
pub(crate) struct FieldVersions<'r> {
    catalog: &'r Catalog,
    resource: &'r Arc<Resource>,
    converted: &'r Converted,
}

impl FieldVersions<'_> {
    /// The same resource in another of its built-in versions.
    fn built_in(&self, api_version: &str) -> Result<&Arc<Resource>, Unconvertible> {
        let (group, version) = split(api_version)?;
        let found = self.catalog.resource(group, version, &self.resource.plural);
        let same = found.filter(|found| found.prefix == self.resource.prefix && found.kind == self.resource.kind);
        same.ok_or(Unconvertible::NoSuchVersion)
    }

    /// Brings a custom object to another version of its definition.
    fn convert_custom(&self, custom: &Custom, object: Object, from: &str, to: &str) -> Result<Object, Unconvertible> {
        let (group, _) = split(to)?;
        let failed = |why: String| Err(Unconvertible::Failed(why));
        let Resource { kind, group: own_group, .. } = &**self.resource;
        if group != own_group {
            return failed(format!("{from}, Kind={kind} is unstructured and is not suitable for converting to {to:?}"));
        }
        if custom.type_in(to).is_none() {
            // DIFFERENCE: the original fails here, and tracking with it. For built-in kinds it does as is done here: who
            // wrote in a version that is gone manages nothing any more, and everybody else what they did.
            return Err(Unconvertible::NoSuchVersion);
        }
        let mut object = object;
        object.insert("apiVersion", from);
        object.insert("kind", kind.as_str());
        let converted = custom.convert(object, to).or_else(|unconverted| self.converted.find(unconverted, to));
        let mut object = converted.map_err(Unconvertible::Failed)?;
        object.remove("apiVersion");
        object.remove("kind");
        Ok(object)
    }
}

impl Versions for FieldVersions<'_> {
    fn type_in(&self, version: &str) -> Result<(&Types, StructId), Unconvertible> {
        if version == self.resource.api_version {
            return Ok(self.resource.typed());
        }
        match self.resource.custom() {
            Some(custom) => custom.type_in(version).ok_or(Unconvertible::NoSuchVersion),
            None => self.built_in(version).map(|resource| resource.typed()),
        }
    }

    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, Unconvertible> {
        let own = self.resource.api_version.as_str();
        let converted = match self.resource.custom() {
            // All ways lead through the version of the request.
            Some(custom) if from != own && to != own => {
                let object = self.convert_custom(custom, object.clone(), from, own)?;
                self.convert_custom(custom, object, own, to)?
            }
            Some(custom) => self.convert_custom(custom, object.clone(), from, to)?,
            None => {
                let shown = self.built_in(from)?.as_shown_by(self.built_in(to)?, object);
                shown.map_err(Unconvertible::Failed)?
            }
        };
        let (types, id) = self.type_in(to)?;
        types.typed_problems(id, &converted).map_or(Ok(converted), |problem| Err(Unconvertible::Failed(problem)))
    }
}

fn split(api_version: &str) -> Result<(&str, &str), Unconvertible> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.contains('/') {
        return Err(Unconvertible::Failed(format!("unexpected GroupVersion string: {api_version}")));
    }
    Ok((group, version))
}

/// What others converted so far, and what is to be converted next.
#[derive(Default)]
pub(crate) struct Converted(Mutex<Conversions>);

#[derive(Default)]
struct Conversions {
    done: Vec<(Wanted, Result<Object, String>)>,
    wanted: Option<Wanted>,
}

/// An object that waits to be converted, and the version into which it is to be brought.
#[derive(Clone, PartialEq)]
struct Wanted {
    unconverted: Unconverted,
    version: String,
}

impl Converted {
    /// The object in another version; if that is not known yet, it is noted down and something else is answered.
    fn find(&self, unconverted: Unconverted, version: &str) -> Result<Object, String> {
        if let Unconverted::Failed(why) = unconverted {
            return Err(why);
        }
        let mut conversions = self.0.lock().expect("no holder of the conversions panics");
        let wanted = Wanted { unconverted, version: version.to_owned() };
        if let Some((_, converted)) = conversions.done.iter().find(|(known, _)| *known == wanted) {
            return converted.clone();
        }
        conversions.wanted = Some(wanted);
        Err("is being converted".to_owned())
    }
}

impl Registry {
    /// The versions of a resource, in the version that the client speaks of.
    pub(crate) fn field_versions<'r>(
        &'r self,
        resource: &'r Arc<Resource>,
        converted: &'r Converted,
    ) -> FieldVersions<'r> {
        FieldVersions { catalog: &self.catalog, resource, converted }
    }

    /// Has converted what was missed. Answers whether anything was.
    pub(crate) async fn fulfil(&self, resource: &Arc<Resource>, converted: &Converted) -> bool {
        let take = || converted.0.lock().expect("no holder of the conversions panics").wanted.take();
        let (Some(custom), Some(wanted)) = (resource.custom(), take()) else { return false };
        let answer = self.await_one(custom, wanted.unconverted.clone(), &wanted.version).await;
        let answer = answer.map_err(|error| error.to_string());
        converted.0.lock().expect("no holder of the conversions panics").done.push((wanted, answer));
        true
    }
}

/// An object of the working version in the version that the client speaks of.
pub(crate) fn as_spoken<'o>(shown: &Resource, object: &'o Object) -> Cow<'o, Object> {
    if shown.custom().is_some() || shown.is_storage() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    shown.to_shown(&mut object);
    Cow::Owned(object)
}
