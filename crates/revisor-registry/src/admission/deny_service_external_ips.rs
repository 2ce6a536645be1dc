//! DenyServiceExternalIPs: services take no outside addresses that they did not have.

use std::collections::HashSet;

use revisor_object::{Object, Value};

use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct DenyServiceExternalIPs;

impl Admission for DenyServiceExternalIPs {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        fn addresses(service: &Object) -> impl Iterator<Item = &str> {
            let listed = service.object("spec").map(|spec| spec.array("externalIPs")).unwrap_or_default();
            listed.iter().filter_map(Value::as_str)
        }
        if !attributes.is_about("", "services") {
            return Ok(());
        }
        let before: HashSet<&str> = attributes.old.into_iter().flat_map(addresses).collect();
        if addresses(object).all(|address| before.contains(address)) {
            return Ok(());
        }
        Err(attributes.forbidden("Use of external IPs is denied by admission control"))
    }
}
