//! AlwaysAdmit, which has no say, and AlwaysDeny, which refuses everything.

use revisor_object::Object;

use super::{Admission, Attributes, Operation};
use crate::actor::SERVER;
use crate::{Registry, RegistryError};

/// Lets everything through.
pub(super) struct AlwaysAdmit;

/// Lets nothing through.
pub(super) struct AlwaysDeny;

impl Admission for AlwaysAdmit {
    fn name(&self) -> &'static str {
        "AlwaysAdmit"
    }

    fn handles(&self, _: Operation) -> bool {
        true
    }

    fn looks_at_deleted(&self, _: &Registry) -> bool {
        false
    }
}

fn deny(attributes: &Attributes<'_>) -> RegistryError {
    attributes.forbidden("admission control is denying all modifications")
}

impl Admission for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    fn handles(&self, _: Operation) -> bool {
        true
    }

    fn looks_at_deleted(&self, _: &Registry) -> bool {
        false
    }

    fn admit(&self, _: &Registry, attributes: &Attributes<'_>, _: &mut Object) -> Result<(), RegistryError> {
        // What the server has to do itself to be one, it does.
        if is_of_server(attributes) { Ok(()) } else { Err(deny(attributes)) }
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>, _: &Object) -> Result<(), RegistryError> {
        if is_of_server(attributes) { Ok(()) } else { Err(deny(attributes)) }
    }
}

/// Whether the server itself writes. DIFFERENCE: the original denies itself what it needs, and ends.
fn is_of_server(attributes: &Attributes<'_>) -> bool {
    attributes.is_own_write() || attributes.requester.name == SERVER
}
