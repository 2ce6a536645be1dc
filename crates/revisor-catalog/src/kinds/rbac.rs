//! `rbac.authorization.k8s.io`: roles, and who has them. What roles mean is the authorizer's; here is what may be
//! written down.

mod bootstrap;
mod role;
mod role_binding;

use revisor_object::names::NameRule;

pub(crate) use bootstrap::bootstrap_objects;

use super::{Kind, USUAL};
use crate::{Rules, Strategy};

/// The group of roles, of users and of groups of users.
const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "clusterrolebindings" => named_freely(role_binding::ClusterRoleBindings),
        "clusterroles" => named_freely(role::ClusterRoles),
        "rolebindings" => named_freely(role_binding::RoleBindings),
        "roles" => named_freely(role::Roles),
        _ => return None,
    })
}

/// All kinds of the group take any name that fits into a path, and are made by an update too.
fn named_freely(strategy: impl Strategy) -> Kind {
    Kind {
        rules: Rules { names: NameRule::PathSegment, create_on_update: true, ..USUAL },
        ..Kind::usual(strategy).selecting_namespace()
    }
}
