//! DefaultTolerationSeconds: a pod stays on a lost node for five minutes, unless it says otherwise.

use revisor_object::{Object, Value};

use super::pod_fields::{append, objects, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const SECONDS: i64 = 300;

pub(crate) struct DefaultTolerationSeconds;

impl Admission for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, _: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let spec = pod.object_mut("spec");
        let missing = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(|taint| {
            let is_tolerated = objects(spec, "tolerations").any(|toleration| {
                (text(toleration, "key") == taint || text(toleration, "key").is_empty())
                    && matches!(text(toleration, "effect"), "NoExecute" | "")
            });
            (!is_tolerated).then_some(taint)
        });
        for taint in missing.into_iter().flatten() {
            let toleration = Object::from_iter([
                ("key", Value::from(taint)),
                ("operator", Value::from("Exists")),
                ("effect", Value::from("NoExecute")),
                ("tolerationSeconds", Value::from(SECONDS)),
            ]);
            append(spec, "tolerations", toleration);
        }
        Ok(())
    }
}
