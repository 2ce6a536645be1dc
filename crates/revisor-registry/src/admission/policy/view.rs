//! [`View`]: a write as it is shown to the policies that mean it by one version.

use std::borrow::Cow;
use std::time::Duration;

use revisor_admission::{Inputs, RequestValue, Typed};
use revisor_cel::Authorizer;
use revisor_object::Object;

use super::params::Param;
use super::{Meant, Write, name_of};

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
        let at = match views.iter().position(|view| view.meant.resource == meant.resource) {
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
        let object = match object {
            Some(object) => Some(write.show(object, meant).await?),
            None => None,
        };
        let old = match write.attributes.old {
            Some(old) => Some(write.show(old, meant).await?),
            None => None,
        };
        let asked = name_of(write.attributes.shown);
        let plain =
            (asked != meant.resource).then(|| RequestValue::new(write.request(Meant { resource: asked, ..meant })));
        Ok(View { meant, api_version: meant.api_version(), object, old, request: RequestValue::new(write.request(meant)), plain })
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
