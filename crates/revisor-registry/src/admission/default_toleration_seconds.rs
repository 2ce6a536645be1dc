//! DefaultTolerationSeconds: a pod stays on a lost node for so long, unless it says otherwise.

use revisor_object::{Object, Value};

use super::pod_fields::{append, objects, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

/// How long pods stay on a node that is lost, if they do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TolerationSeconds {
    /// On one that is not ready.
    pub not_ready: i64,
    /// On one that cannot be reached.
    pub unreachable: i64,
}

impl Default for TolerationSeconds {
    fn default() -> TolerationSeconds {
        TolerationSeconds { not_ready: 300, unreachable: 300 }
    }
}

pub(crate) struct DefaultTolerationSeconds(pub(super) TolerationSeconds);

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
        let taints = [
            ("node.kubernetes.io/not-ready", self.0.not_ready),
            ("node.kubernetes.io/unreachable", self.0.unreachable),
        ];
        let missing = taints.map(|(taint, seconds)| {
            let is_tolerated = objects(spec, "tolerations").any(|toleration| {
                (text(toleration, "key") == taint || text(toleration, "key").is_empty())
                    && matches!(text(toleration, "effect"), "NoExecute" | "")
            });
            (!is_tolerated).then_some((taint, seconds))
        });
        for (taint, seconds) in missing.into_iter().flatten() {
            // In the order of their names.
            let toleration = Object::from_iter([
                ("effect", Value::from("NoExecute")),
                ("key", Value::from(taint)),
                ("operator", Value::from("Exists")),
                ("tolerationSeconds", Value::from(seconds)),
            ]);
            append(spec, "tolerations", toleration);
        }
        Ok(())
    }
}
