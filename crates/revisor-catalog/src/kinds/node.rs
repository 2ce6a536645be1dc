//! The group `node.k8s.io`: how containers are run on nodes.

mod runtime_class;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "runtimeclasses" => Kind {
            rules: Rules { create_on_update: true, unconditional_update: false, known_finalizers: false, ..USUAL },
            selects_namespace: Some(true),
            ..Kind::usual(runtime_class::RuntimeClasses)
        },
        _ => return None,
    })
}
