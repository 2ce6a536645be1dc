//! The group `storagemigration.k8s.io`: objects that are to be stored again, in the newest version.

pub(super) mod alpha1;
mod storage_version_migration;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(version: &str, plural: &str) -> Option<Kind> {
    Some(match plural {
        "storageversionmigrations" => {
            let kind = match version {
                "v1alpha1" => Kind::usual(alpha1::FirstMigrations),
                _ => Kind::usual(storage_version_migration::StorageVersionMigrations),
            };
            Kind { rules: Rules { unconditional_update: false, ..USUAL }, ..kind.selecting_namespace() }
        }
        _ => return None,
    })
}
