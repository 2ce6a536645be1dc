//! `apps`: what keeps pods running.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use revisor_object::names::NameRule;

use super::{Kind, Terms, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let policy = terms.pods();
    Some(match plural {
        "controllerrevisions" => Kind::usual(controller_revision::ControllerRevisions),
        "daemonsets" => Kind::usual(daemon_set::DaemonSets { policy }),
        "deployments" => Kind::usual(deployment::Deployments { policy }),
        "replicasets" => Kind::usual(replica_set::ReplicaSets { policy }),
        "statefulsets" => Kind {
            rules: Rules { names: NameRule::Dns1123Label, ..USUAL },
            ..Kind::usual(stateful_set::StatefulSets { policy })
        },
        _ => return None,
    })
}
