//! The group `internal.apiserver.k8s.io`: what servers tell each other.

mod storage_version;

use revisor_object::names::NameRule;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "storageversions" => Kind {
            rules: Rules { names: NameRule::OfKind, unconditional_update: false, ..USUAL },
            ..Kind::usual(storage_version::StorageVersions).selecting_namespace()
        },
        _ => return None,
    })
}
