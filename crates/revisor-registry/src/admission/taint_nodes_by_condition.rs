//! TaintNodesByCondition: a new node is not ready, so that nothing is put on it before it says that it is.

use revisor_object::{Object, Value};

use super::pod_fields::{append, objects, text};
use super::{Admission, Operation, Review};
use crate::{Registry, RegistryError};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(crate) struct TaintNodesByCondition;

impl Admission for TaintNodesByCondition {
    fn admit(&self, _: &Registry, review: &Review<'_>, node: &mut Object) -> Result<(), RegistryError> {
        if !review.is_about("", "nodes") || review.operation != Operation::Create {
            return Ok(());
        }
        let spec = node.object_mut("spec");
        let is_tainted = objects(spec, "taints")
            .any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule");
        if !is_tainted {
            let taint = [("key", Value::from(NOT_READY)), ("effect", Value::from("NoSchedule"))];
            append(spec, "taints", Object::from_iter(taint));
        }
        Ok(())
    }
}
