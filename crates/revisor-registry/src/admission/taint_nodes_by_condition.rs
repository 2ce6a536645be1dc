//! TaintNodesByCondition: a new node is not ready, so that nothing is put on it before it says that it is.

use revisor_object::{Object, Value};

use super::pod_fields::{append, objects, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(crate) struct TaintNodesByCondition;

impl Admission for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(&self, _: &Registry, attributes: &Attributes<'_>, node: &mut Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "nodes") || attributes.operation != Operation::Create {
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
