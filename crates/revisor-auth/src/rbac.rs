//! What roles grant: single [`PolicyRule`]s, the [`Grants`] of all roles and bindings, and whether some rules
//! [cover](missing_rights) others. Nothing here is stored or read from a store; who keeps the grants up to date is a
//! [`GrantBook`].

mod coverage;
mod grants;
mod rule;

pub use coverage::{Escalation, missing_rights};
pub(crate) use grants::Verdict;
pub use grants::{Binding, GrantBook, Grants, MissingRoles, RoleKind, RoleRef, Subject};
pub use rule::PolicyRule;
pub(crate) use rule::{path_covers, quoted_list};
