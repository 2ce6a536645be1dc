//! The group `versioning.revisor.dev`: what this server knows and does about the versions of custom resources.

mod conversion;

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "conversions" => Kind::usual(conversion::Conversions),
        // Nobody writes them.
        "versionreports" => Kind::without_rules(),
        _ => return None,
    })
}
