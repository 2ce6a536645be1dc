//! [`View`]: a write as it is shown to the policies that mean it by one version.

use std::borrow::Cow;
use std::time::Duration;

use revisor_admission::{AdmissionRequest, Inputs, RequestValue, Typed};
use revisor_cel::Authorizer;
use revisor_object::Object;

use super::params::Param;
use super::{Meant, Write};
use crate::RegistryError;
use crate::admission::{Operation, resource_of};

/// The objects and the request of a write in one version.
pub(super) struct View<'w> {
    meant: Meant<'w>,
    api_version: String,
    object: Option<Cow<'w, Object>>,
    old: Option<Cow<'w, Object>>,
    request: RequestValue<'w>,
    /// The request as match conditions see it, where that is another.
    plain: Option<RequestValue<'w>>,
}

impl<'w> View<'w> {
    /// The view of a version, made where nobody has asked for it before.
    ///
    /// # Errors
    /// Why the objects cannot be shown in that version.
    pub(super) async fn find<'v>(
        write: &'w Write<'_>,
        views: &'v mut Vec<View<'w>>,
        meant: Meant<'w>,
        object: Option<&'w Object>,
    ) -> Result<&'v View<'w>, String> {
        let at = match views.iter().position(|view| resource_of(view.meant.version) == resource_of(meant.version)) {
            Some(at) => at,
            None => {
                views.push(View::new(write, meant, object).await?);
                views.len() - 1
            }
        };
        Ok(&views[at])
    }

    /// A write in the version by which it is meant, with this as its new object.
    pub(super) async fn new(
        write: &'w Write<'_>,
        meant: Meant<'w>,
        object: Option<&'w Object>,
    ) -> Result<View<'w>, String> {
        let shown = async |object: Option<&'w Object>| match object {
            Some(object) => show(write, object, meant).await.map(Some).map_err(|error| error.to_string()),
            None => Ok(None),
        };
        let (object, old) = (shown(object).await?, shown(write.attributes.old).await?);
        let request = write.attributes.admission_request(meant.version, write.options.as_ref());
        let asked = write.attributes.request_resource();
        let plain =
            (asked != request.resource).then(|| RequestValue::new(AdmissionRequest { resource: asked, ..request }));
        let request = RequestValue::new(request);
        Ok(View { meant, api_version: meant.api_version(), object, old, request, plain })
    }

    /// What expressions are evaluated for.
    pub(super) fn inputs<'i>(
        &'i self,
        param: Option<&'i Param>,
        namespace: Option<&'i Object>,
        authorizer: &'i dyn Authorizer,
        clock: &'i dyn Fn() -> Duration,
    ) -> Inputs<'i> {
        let typed = |object: &'i Object| Typed { object, api_version: &self.api_version, kind: self.meant.kind.kind };
        Inputs {
            request: &self.request,
            plain_request: self.plain.as_ref().unwrap_or(&self.request),
            object: self.object.as_deref().map(typed),
            old_object: self.old.as_deref().map(typed),
            params: param.map(Param::typed),
            namespace,
            authorizer,
            clock,
        }
    }

    /// The new object.
    pub(super) fn object(&self) -> Option<&Object> {
        self.object.as_deref()
    }

    /// Puts another object in place of the new one.
    pub(super) fn replace(&mut self, object: Object) {
        self.object = Some(Cow::Owned(object));
    }

    /// The new object, for good.
    pub(super) fn into_object(self) -> Option<Object> {
        self.object.map(Cow::into_owned)
    }
}

/// An object of a write in the version that is meant. It is borrowed where it is of that version already.
async fn show<'o>(write: &Write<'_>, object: &'o Object, meant: Meant<'_>) -> Result<Cow<'o, Object>, RegistryError> {
    let Meant { version, .. } = meant;
    let attributes = write.attributes;
    let is_custom = attributes.resource.custom().is_some();
    // What is new was not written yet, and lacks what is always written.
    let is_whole = is_custom || attributes.operation != Operation::Create;
    let is_of_version = version.api_version == attributes.resource.api_version;
    if attributes.own_kind.is_some() || (is_of_version && is_whole) {
        return Ok(Cow::Borrowed(object));
    }
    let mut shown = write.registry.to_version(attributes, version, object).await?.into_owned();
    version.complete(&mut shown);
    Ok(Cow::Owned(shown))
}
