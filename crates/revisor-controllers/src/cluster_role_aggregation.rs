//! Cluster roles that gather the rules of others: `admin`, `edit`, `view`, and those that operators make.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use revisor_cache::{Feed, Item, News};
use revisor_catalog::Resource;
use revisor_object::{Object, StructuredLabelSelector, Value, parse_json};
use revisor_registry::{Actor, PatchKind, Place, Registry, RegistryError, WriteOptions};

use crate::Clock;
use crate::controllers::Controller;
use crate::metadata::place;
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};

/// In whose name the gathered rules are written: it manages all of them.
const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// Fills the roles that gather others.
pub(crate) struct ClusterRoleAggregation {
    registry: Arc<Registry>,
    queue: WorkQueue<String>,
    /// What each role that gathers others selects.
    gathering: Mutex<HashMap<String, Vec<Value>>>,
    account: Actor,
}

impl ClusterRoleAggregation {
    pub(crate) fn new(
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
    ) -> ClusterRoleAggregation {
        let (queue, account) = (WorkQueue::new(clock, BACKOFF, tally), Controller::ClusterRoleAggregation.actor());
        ClusterRoleAggregation { registry, queue, gathering: Mutex::default(), account }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let roles = self.registry.built_in().resource("rbac.authorization.k8s.io", "v1", "clusterroles").cloned();
        let Some(roles) = roles else { return };
        // One worker: a role that is gathered may gather others itself.
        tokio::join!(self.follow(&roles), self.queue.work(|name| self.fill(&roles, name)));
    }

    async fn follow(&self, roles: &Arc<Resource>) {
        let mut feed = Feed::open(&self.registry.cache_of(roles), None);
        while let Some(news) = feed.next().await {
            match news {
                // What gathers is filled when all is known that it gathers.
                News::Present(item) => self.remember(roles, &item),
                News::Complete { .. } => {
                    let names: Vec<String> = self.gathering().keys().cloned().collect();
                    names.into_iter().for_each(|name| self.queue.add(name));
                }
                News::Changed { old, new } => {
                    self.remember(roles, &new);
                    self.add_those_that_gather(old.iter().chain([&new]));
                    let (_, name) = place(roles, new.key().as_str());
                    if self.gathering().contains_key(name) {
                        self.queue.add(name.to_owned());
                    }
                }
                News::Gone(item) => {
                    let (_, name) = place(roles, item.key().as_str());
                    self.gathering().remove(name);
                    self.add_those_that_gather([&item]);
                }
            }
            tokio::task::consume_budget().await;
        }
    }

    fn gathering(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<Value>>> {
        self.gathering.lock().expect("no holder of the roles panics")
    }

    fn remember(&self, roles: &Resource, item: &Item) {
        let (_, name) = place(roles, item.key().as_str());
        let selectors = selectors(&object_at(item, "aggregationRule"));
        let mut gathering = self.gathering();
        if selectors.is_empty() {
            gathering.remove(name);
        } else {
            gathering.insert(name.to_owned(), selectors);
        }
    }

    /// Lets those be filled again that gather one of these.
    fn add_those_that_gather<'i>(&self, items: impl IntoIterator<Item = &'i Arc<Item>>) {
        let labels: Vec<Object> = items.into_iter().map(labels).collect();
        let gathering = self.gathering();
        for (name, selectors) in gathering.iter() {
            if labels.iter().any(|labels| selectors.iter().any(|selector| selects(selector, labels))) {
                self.queue.add(name.clone());
            }
        }
    }

    async fn fill(&self, roles: &Arc<Resource>, name: String) -> Outcome {
        match self.try_fill(roles, &name).await {
            Ok(()) | Err(RegistryError::NotFound { .. }) => Outcome::Done,
            Err(RegistryError::Conflict { .. }) => Outcome::Retry,
            Err(error) => {
                tracing::warn!(%name, ?error, "cannot gather the rules of a cluster role");
                Outcome::Retry
            }
        }
    }

    async fn try_fill(&self, roles: &Arc<Resource>, name: &str) -> Result<(), RegistryError> {
        let snapshot = self.registry.cache_of(roles).snapshot();
        let Some(item) = snapshot.get(&roles.key(None, name)) else { return Ok(()) };
        let selectors = selectors(&object_at(item, "aggregationRule"));
        if selectors.is_empty() {
            return Ok(());
        }
        let others: Vec<_> = snapshot.range(&roles.prefix, None).filter(|other| other.key() != item.key()).collect();
        let mut gathered: Vec<Value> = Vec::new();
        for selector in &selectors {
            for other in others.iter().filter(|other| selects(selector, &labels(other))) {
                for rule in rules(other) {
                    if !gathered.contains(&rule) {
                        gathered.push(rule);
                    }
                }
            }
        }
        if gathered == rules(item) {
            return Ok(());
        }
        let metadata: Object = [("name", Value::from(name))].into_iter().collect();
        let mut applied: Object = [
            ("apiVersion", Value::from(roles.api_version.as_str())),
            ("kind", roles.kind.as_str().into()),
            ("metadata", metadata.into()),
        ]
        .into_iter()
        .collect();
        if !gathered.is_empty() {
            applied.insert("rules", gathered);
        }
        let options =
            WriteOptions { field_manager: FIELD_MANAGER, is_apply: true, force: true, ..self.account.options() };
        let place = Place { resource: roles, namespace: None, name: Some(name) };
        self.registry.patch(place, PatchKind::Apply, Value::from(applied).to_json().as_bytes(), options).await?;
        Ok(())
    }
}

fn selectors(aggregation: &Object) -> Vec<Value> {
    aggregation.array("clusterRoleSelectors").to_vec()
}

fn selects(selector: &Value, labels: &Object) -> bool {
    selector.as_object().is_some_and(|selector| StructuredLabelSelector::new(selector).matches(Some(labels)))
}

fn labels(item: &Arc<Item>) -> Object {
    object_at(item, "metadata").object("labels").cloned().unwrap_or_default()
}

fn rules(item: &Item) -> Vec<Value> {
    let rules = sonic_rs::get(&item.bytes()[..], ["rules"]).ok();
    let rules = rules.and_then(|rules| parse_json(rules.as_raw_str().as_bytes()).ok()).map(|parsed| parsed.value);
    rules.as_ref().and_then(Value::as_array).unwrap_or_default().to_vec()
}

/// A member of an encoded object; empty if it is not there.
fn object_at(item: &Item, member: &str) -> Object {
    let found = sonic_rs::get(&item.bytes()[..], [member]).ok();
    match found.and_then(|found| parse_json(found.as_raw_str().as_bytes()).ok()).map(|parsed| parsed.value) {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    }
}
