//! [`Queueing`]: priority and fairness for one request, from its flow to the seats that it gives back.

use anyhow::{Context, Result};
use revisor_flowcontrol::{
    Arrival, Dealer, FlowSchema, Moment, QueueSet, Queuing, RequestDigest, ResourceDigest, Started, WorkEstimate,
    flow_hash,
};

use crate::object;

/// How many schemas a request is held against that it does not belong to: as many as a cluster has before the one for
/// everybody.
const OTHER_SCHEMAS: usize = 12;

/// A level with its queues, and the schemas before which it stands.
pub struct Queueing {
    schemas: Vec<FlowSchema>,
    set: QueueSet<()>,
    tally: usize,
    now: u64,
}

impl Queueing {
    /// The schemas and the level of a usual cluster.
    pub fn new() -> Result<Queueing> {
        let mut schemas = Vec::new();
        for at in 0..=OTHER_SCHEMAS {
            let user = if at < OTHER_SCHEMAS { format!("system:component-{at}") } else { "*".to_owned() };
            let text = format!(
                r#"{{"metadata":{{"name":"schema-{at}","uid":"{at}"}},"spec":{{"priorityLevelConfiguration":
                {{"name":"workload-low"}},"matchingPrecedence":{at},"distinguisherMethod":{{"type":"ByUser"}},"rules":
                [{{"subjects":[{{"kind":"User","user":{{"name":"{user}"}}}}],"resourceRules":[{{"verbs":["*"],
                "apiGroups":["*"],"resources":["*"],"namespaces":["*"],"clusterScope":true}}]}}]}}}}"#
            );
            schemas.push(FlowSchema::read(&object(&text)?).context("a schema of this crate is one")?);
        }
        let dealer = Dealer::new(128, 6).context("a hand of six out of 128 can be dealt")?;
        let queuing = Queuing::Queue { queues: 128, dealer, hand_size: 6, length_limit: 50 };
        let mut set = QueueSet::new(queuing, 245, 245, Moment(0));
        let tally = set.tally_of("schema");
        Ok(Queueing { schemas, set, tally, now: 0 })
    }

    /// A request that finds its flow, gets its seat, is served and gives it back; whether it was served at once.
    pub fn pass(&mut self) -> bool {
        self.now += 100_000;
        let groups = [];
        let resource = ResourceDigest { resource: "configmaps", namespace: "team-7", ..ResourceDigest::default() };
        let digest = RequestDigest {
            user: "system:serviceaccount:team-7:robot",
            groups: &groups,
            verb: "get",
            path: "/api/v1/namespaces/team-7/configmaps/c",
            resource: Some(resource),
        };
        let Some(schema) = self.schemas.iter().find(|schema| schema.matches(&digest)) else { return false };
        let hash = flow_hash(&schema.name, schema.distinguisher(&digest));
        let work = WorkEstimate { initial_seats: 1, final_seats: 0, additional_latency: std::time::Duration::ZERO };
        let arrival = Arrival { payload: (), schema: self.tally, hash, work, watches: None };
        let Ok(Started::Executing(id)) = self.set.start(arrival, Moment(self.now)) else { return false };
        self.set.finish(id, false, Moment(self.now + 50_000));
        true
    }
}
