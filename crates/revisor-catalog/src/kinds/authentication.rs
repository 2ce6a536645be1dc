//! `authentication.k8s.io`: questions about who somebody is. They are answered, not stored, and anything may be asked.

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    matches!(plural, "selfsubjectreviews" | "tokenreviews").then(Kind::without_rules)
}
