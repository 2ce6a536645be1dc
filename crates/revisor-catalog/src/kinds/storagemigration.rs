//! The group `storagemigration.k8s.io`: objects that are to be stored again, in the newest version.

mod storage_version_migration;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "storageversionmigrations" => Kind {
            rules: Rules { unconditional_update: false, ..USUAL },
            ..Kind::usual(storage_version_migration::StorageVersionMigrations).selecting_namespace()
        },
        _ => return None,
    })
}
