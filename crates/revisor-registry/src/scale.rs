//! The `scale` subresource: an `autoscaling/v1` Scale in place of the object that it scales.
//!
//! A write of a scale is an update of its object in which only the number of replicas changes, with everything that an
//! update goes through. Where objects keep that number is a matter of their resource
//! ([`ScalePaths`](revisor_catalog::ScalePaths)).

use std::sync::Arc;

use bytes::Bytes;
use revisor_catalog::{Resource, ScalePaths, validate_metadata};
use revisor_object::names::NameRule;
use revisor_object::{FieldError, Object, Value};
use revisor_version::Revision;

use crate::admission::{Attributes, kind_of};
use crate::apply;
use crate::patch::{apply_patch, fit_patched, with_type};
use crate::write::{Proposal, check_address, encode, match_namespace, named_version, other_uid, unlike_stored};
use crate::{Decoded, GetRequest, Got, PatchKind, Place, Registry, RegistryError, Saved, WriteOptions};

/// The name of the subresource.
pub(crate) const SCALE: &str = "scale";

/// What of its object's metadata a scale shows.
const SHOWN: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];

/// Where objects keep what their scale shows, if this is about their scale.
pub(crate) fn scale_of<'r>(resource: &'r Resource, subresource: Option<&str>) -> Option<&'r ScalePaths> {
    resource.scale.as_ref().filter(|_| subresource == Some(SCALE))
}

impl Registry {
    /// The resource whose type the body of a write to a subresource has.
    pub fn body_resource<'r>(&'r self, resource: &'r Arc<Resource>, subresource: Option<&str>) -> &'r Arc<Resource> {
        if scale_of(resource, subresource).is_some() { self.catalog.scale() } else { resource }
    }

    /// Reads the scale of an object.
    pub async fn get_scale(&self, request: GetRequest<'_>) -> Result<Got, RegistryError> {
        let Got { bytes, served_at, .. } = self.get(request).await?;
        if let Some(path) = unsaid_replicas(request.resource, &Decoded::stored(&bytes)?) {
            return Err(RegistryError::Internal(format!("the spec replicas field {path:?} does not exist")));
        }
        Ok(Got { bytes: self.scale_bytes(request.resource, &bytes)?, item: None, served_at })
    }

    /// Replaces the scale of an object.
    pub(crate) async fn update_scale(
        &self,
        place: Place<'_>,
        decoded: Decoded,
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let Decoded { object: mut scale, warnings } = decoded;
        options.keep_sent(&warnings);
        let metadata = scale.object_mut("metadata");
        match_namespace(place.resource, metadata, place.namespace)?;
        check_address(metadata, place.name.unwrap_or_default())?;
        let is_conditional = named_version(metadata)?.is_some();
        let uid = text_at(&scale, "uid");
        let saved = self.change(place, options, |current| {
            self.check_scale(place.resource, &scale)?;
            if let Some(why) = other_uid(uid, current) {
                let name = place.name.unwrap_or_default();
                return Err(RegistryError::conflict(place.resource, name, unlike_stored(place, options.dry_run, &why)));
            }
            let object = rescaled(place.resource, current, &scale);
            let managed = Some(self.track_scale(place.resource, current, &scale, options)?);
            Ok(Proposal { object, warnings: warnings.clone(), is_conditional, managed })
        });
        self.saved_scale(place.resource, saved.await?)
    }

    /// Changes the scale of an object by a patch.
    pub(crate) async fn patch_scale(
        &self,
        place: Place<'_>,
        kind: PatchKind,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        if kind.is_apply() {
            return self.apply_scale(place, kind, text, options).await;
        }
        let saved = self.change(place, options, |current| {
            let resource = self.catalog.scale();
            let object = in_version(place.resource, current);
            let mut before = self.scale_object(place.resource, &object)?;
            let unsaid = unsaid_replicas(place.resource, &object);
            if unsaid.is_some() {
                before.object_mut("spec").insert("replicas", UNSAID);
            }
            let patched = || {
                let mut value = Value::Object(with_type(resource, &before));
                apply_patch(resource, kind, text, &mut value).map(|repeated| (value, repeated))
            };
            let Decoded { object: mut scale, warnings } =
                fit_patched(resource, kind, text, patched()?, options, patched)?;
            options.keep_sent(&warnings);
            let metadata = scale.object_mut("metadata");
            check_address(metadata, place.name.unwrap_or_default())?;
            match_namespace(place.resource, metadata, place.namespace)?;
            let version = before.object("metadata").and_then(|metadata| metadata.str("resourceVersion"));
            let is_conditional = named_version(metadata)?.is_some() && metadata.str("resourceVersion") != version;
            if let Some(path) = unsaid.filter(|_| replicas_of(&scale) == Some(UNSAID)) {
                let message = format!("the spec replicas field {path:?} cannot be empty");
                return Err(RegistryError::BadRequest(message));
            }
            self.check_scale(place.resource, &scale)?;
            check_uid(place, &scale, current)?;
            let object = rescaled(place.resource, current, &scale);
            let managed = Some(self.track_scale(place.resource, current, &scale, options)?);
            Ok(Proposal { object, warnings, is_conditional, managed })
        });
        self.saved_scale(place.resource, saved.await?)
    }

    /// Applies a configuration to the scale of an object: to the one field of the object that it shows.
    async fn apply_scale(
        &self,
        place: Place<'_>,
        kind: PatchKind,
        text: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Saved, RegistryError> {
        let Place { resource, namespace, name } = place;
        let read = match apply::read(self.catalog.scale(), kind, text, &options) {
            // That there is nothing to scale is said first.
            Err(_) if !self.is_there(place).await? => {
                return Err(RegistryError::not_found(resource, name.unwrap_or_default()));
            }
            read => read?,
        };
        let Decoded { object: mut config, warnings } = read;
        let metadata = config.object_mut("metadata");
        if metadata.str("name").unwrap_or_default().is_empty() {
            metadata.insert("name", name.unwrap_or_default());
        }
        check_address(metadata, name.unwrap_or_default())?;
        match_namespace(resource, metadata, namespace)?;
        let is_conditional = named_version(metadata)?.is_some();
        let saved = self.change(place, options, |current| {
            check_uid(place, &config, current)?;
            let (object, managed) = self.apply_to_scale(resource, current, &config, options)?;
            // What nobody wants any more is none.
            let mut scale = config.clone();
            scale.object_mut("spec").insert("replicas", replicas_of(&object).unwrap_or_default());
            if !is_conditional {
                let version = current.at(&["metadata", "resourceVersion"]).cloned();
                scale.object_mut("metadata").set("resourceVersion", version);
            }
            self.check_scale(resource, &scale)?;
            let object = rescaled(resource, current, &scale);
            Ok(Proposal { object, warnings: warnings.clone(), is_conditional, managed: Some(managed) })
        });
        self.saved_scale(resource, saved.await?)
    }

    /// Refuses a scale that is none. That of a custom object is not looked at, only what it makes of the object is.
    fn check_scale(&self, resource: &Arc<Resource>, scale: &Object) -> Result<(), RegistryError> {
        if resource.custom().is_some() {
            return Ok(());
        }
        let empty = Object::new();
        let metadata = scale.object("metadata").unwrap_or(&empty);
        let name = metadata.str("name").unwrap_or_default();
        let replicas = replicas_of(scale).unwrap_or_default();
        let mut errors = validate_metadata(metadata, resource.namespaced, NameRule::Dns1123Subdomain);
        if replicas < 0 {
            errors.push(FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
        }
        if !errors.is_empty() {
            let scale = self.catalog.scale().clone();
            return Err(RegistryError::Invalid { resource: scale, name: name.to_owned(), errors });
        }
        Ok(())
    }

    /// The mutating pass over a write of a scale, which sees scales. `object` is what the write makes of the object.
    pub(crate) async fn admit_scale(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        let [old, mut scale] = self.scales(attributes, object)?;
        let shown = Attributes { own_kind: Some(kind_of(self.catalog.scale())), old: Some(&old), ..*attributes };
        if self.admit(&shown, &mut scale).await? {
            self.check_scale(attributes.shown, &scale)?;
            *object = rescaled(attributes.shown, object, &scale);
        }
        Ok(())
    }

    /// The validating pass over a write of a scale.
    pub(crate) async fn validate_scale_admission(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
    ) -> Result<(), RegistryError> {
        let [old, scale] = self.scales(attributes, object)?;
        let shown = Attributes { own_kind: Some(kind_of(self.catalog.scale())), old: Some(&old), ..*attributes };
        self.validate_admission(&shown, &scale).await
    }

    /// The scales of what is there and of what is to be there.
    fn scales(&self, attributes: &Attributes<'_>, object: &Object) -> Result<[Object; 2], RegistryError> {
        let empty = Object::new();
        let scale = |object| self.scale_object(attributes.shown, &in_version(attributes.shown, object));
        Ok([scale(attributes.old.unwrap_or(&empty))?, scale(object)?])
    }

    fn saved_scale(&self, resource: &Resource, saved: Saved) -> Result<Saved, RegistryError> {
        Ok(Saved { bytes: self.scale_bytes(resource, &saved.bytes)?, ..saved })
    }

    /// The encoded scale of an encoded object.
    fn scale_bytes(&self, resource: &Resource, bytes: &[u8]) -> Result<Bytes, RegistryError> {
        let scale = self.scale_object(resource, &Decoded::stored(bytes)?)?;
        let draft = encode(self.catalog.scale(), &scale);
        let revision: Option<Revision> = text_at(&scale, "resourceVersion").parse().ok();
        Ok(revision.map_or_else(|| draft.bytes().clone(), |revision| draft.at_revision(revision)))
    }

    /// The scale of an object.
    pub(crate) fn scale_object(&self, resource: &Resource, object: &Object) -> Result<Object, RegistryError> {
        let mut scale = Object::new();
        let Some(paths) = &resource.scale else { return Ok(scale) };
        let metadata = scale.object_mut("metadata");
        for name in SHOWN {
            metadata.set(name, object.at(&["metadata", name]).cloned());
        }
        let replicas = paths.replicas(object).unwrap_or_default();
        scale.object_mut("spec").set("replicas", (replicas != 0).then_some(Value::Int(replicas)));
        let selector = paths.selector(object).map_err(RegistryError::BadRequest)?;
        let status = scale.object_mut("status");
        status.insert("replicas", paths.observed_replicas(object));
        status.set("selector", (!selector.is_empty()).then(|| Value::from(selector)));
        Ok(scale)
    }
}

/// The object with the replicas and the version that a scale names.
fn rescaled(resource: &Resource, current: &Object, scale: &Object) -> Object {
    let mut object = in_version(resource, current);
    // Who names no version means the one that is there.
    if let Some(version) = scale.at(&["metadata", "resourceVersion"]) {
        object.object_mut("metadata").insert("resourceVersion", version.clone());
    }
    if let Some(paths) = &resource.scale {
        paths.set_replicas(&mut object, replicas_of(scale).unwrap_or_default());
    }
    resource.to_stored(&mut object);
    object
}

/// What a patch finds in place of the replicas of a custom object that names none: no number that anybody can want
/// (upstream: `invalidSpecReplicas`).
const UNSAID: i64 = i32::MIN as i64;

/// Where a custom object would say how many replicas are wanted, if it does not. Built-in ones have a default.
fn unsaid_replicas(resource: &Resource, object: &Object) -> Option<String> {
    let paths = resource.scale.as_ref().filter(|_| resource.custom().is_some())?;
    paths.replicas(object).is_none().then(|| paths.replicas_path())
}

/// How many replicas a scale asks for, if it does.
fn replicas_of(scale: &Object) -> Option<i64> {
    scale.at(&["spec", "replicas"]).and_then(Value::as_i64)
}

/// Refuses a patched scale that is the one of another object.
fn check_uid(place: Place<'_>, scale: &Object, current: &Object) -> Result<(), RegistryError> {
    let Some(why) = other_uid(text_at(scale, "uid"), current) else { return Ok(()) };
    Err(RegistryError::SubresourceConflict {
        resource: place.resource.clone(),
        subresource: SCALE,
        name: place.name.unwrap_or_default().to_owned(),
        why,
    })
}

/// A stored object in the version that is asked for.
pub(crate) fn in_version(resource: &Resource, stored: &Object) -> Object {
    let mut object = stored.clone();
    resource.to_shown(&mut object);
    object
}

fn text_at<'o>(object: &'o Object, name: &str) -> &'o str {
    object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default()
}
