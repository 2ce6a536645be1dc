//! [`LeaderElectionFlags`]: how servers that share an etcd agree on the one that runs the controllers, named and with the
//! defaults of kube-controller-manager's.

use std::time::Duration;

use clap::Args;
use revisor_controllers::LeaderElectionOptions;

use crate::duration::parse_duration;
use crate::presence::hostname;

/// How a leader is elected.
#[derive(Debug, Clone, Args)]
pub(crate) struct LeaderElectionFlags {
    /// Run the controllers only while no other server on the same etcd does. On a folder there is no other, and nothing
    /// is elected
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) leader_elect: bool,

    /// How long others wait for a leader that is not heard of any more
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    pub(crate) leader_elect_lease_duration: Duration,

    /// How long a leader goes on that cannot renew its lease: less than others wait
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) leader_elect_renew_deadline: Duration,

    /// How often a leader renews its lease, and others try to get it
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(crate) leader_elect_retry_period: Duration,

    /// The name of the lease
    #[arg(long, value_name = "NAME", default_value = "apiserver-controllers")]
    pub(crate) leader_elect_resource_name: String,

    /// The namespace of the lease
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub(crate) leader_elect_resource_namespace: String,
}

impl LeaderElectionFlags {
    /// The options of an election, if there is one among those who share a store.
    pub(crate) fn options(&self, is_shared: bool) -> anyhow::Result<Option<LeaderElectionOptions>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let options = LeaderElectionOptions {
            namespace: self.leader_elect_resource_namespace.clone(),
            name: self.leader_elect_resource_name.clone(),
            // Another one after each start: who it was before may still be at work.
            identity: format!("{}_{}", hostname(), uuid::Uuid::new_v4()),
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        options.check()?;
        Ok(is_shared.then_some(options))
    }
}
