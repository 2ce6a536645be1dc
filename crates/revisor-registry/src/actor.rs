//! [`Actor`]: in whose name the server itself writes, as admission sees it.
//!
//! What the server does by itself passes admission like everything else, under the names that the original's parts
//! have: its controllers are service accounts of `kube-system`, the server itself is `system:apiserver`. Nobody
//! authenticates or authorizes them; what they may do is for the roles of these names where somebody asks.

use std::time::{Duration, Instant};

use revisor_catalog::Requester;

use crate::WriteOptions;

/// How long a write of the server itself may take, as a request of a client may by default.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server itself (upstream: `user.APIServerUser`).
pub(crate) const SERVER: &str = "system:apiserver";

/// The service account that takes owners out of objects, and deletes what has none left.
pub(crate) const GARBAGE_COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// Who of the server writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    name: String,
    groups: Vec<String>,
}

impl Actor {
    /// The server itself (upstream: the user of the loopback client).
    pub(crate) fn server() -> Actor {
        Actor {
            name: SERVER.to_owned(),
            groups: ["system:authenticated", "system:masters"].map(str::to_owned).to_vec(),
        }
    }

    /// A controller, by the name of its service account.
    pub fn controller(account: &str) -> Actor {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
        Actor {
            name: format!("system:serviceaccount:kube-system:{account}"),
            groups: groups.map(str::to_owned).to_vec(),
        }
    }

    /// Who that is.
    pub fn requester(&self) -> Requester<'_> {
        Requester { name: &self.name, uid: "", groups: &self.groups, extra: &[] }
    }

    /// How it writes. A webhook that hangs delays it, but not for ever.
    pub fn options(&self) -> WriteOptions<'_> {
        self.options_within(PATIENCE)
    }

    /// The same in the midst of a write that has so much time.
    pub(crate) fn options_until(&self, deadline: Option<Instant>) -> WriteOptions<'_> {
        let options = self.options();
        WriteOptions { deadline: deadline.into_iter().chain(options.deadline).min(), ..options }
    }

    /// The same in less time.
    pub(crate) fn options_within(&self, patience: Duration) -> WriteOptions<'_> {
        WriteOptions {
            requester: self.requester(),
            deadline: Some(Instant::now() + patience),
            ..WriteOptions::default()
        }
    }
}
