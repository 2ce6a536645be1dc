//! Looks after the servers behind this one: a task for each of them that finds out whether it is available and what it
//! serves, and one that follows what is stored and starts and wakes the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use revisor_cache::{Feed, Item, News, ResourceCache};
use revisor_object::{Object, Value, parse_json};
use revisor_registry::RegistryError;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::Aggregator;
use crate::availability::Availability;
use crate::book::Registration;
use crate::remote::Remote;

/// How often a server is asked whether it is there, and how soon one is asked again that is not.
const ASKING: Duration = Duration::from_secs(30);
const ASKING_AGAIN: Duration = Duration::from_millis(5);

/// How often a server is asked what it serves, and how soon one is asked again that did not say.
const LEARNING: Duration = Duration::from_secs(60);
const LEARNING_AGAIN: Duration = Duration::from_millis(500);

/// Looks after one server. To drop it is to end that.
struct Keeper {
    remote: Arc<Remote>,
    group_version: (String, String),
    wakes: Arc<Wakes>,
    task: AbortHandle,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Those who wait for something to change.
#[derive(Default)]
struct Wakes {
    availability: Notify,
    knowledge: Notify,
}

impl Aggregator {
    /// Looks after the servers until it is dropped.
    pub async fn run(self: Arc<Aggregator>) {
        let Some((_, services)) = self.registry.api_services() else { return };
        let of_core = |plural| self.followed("", plural);
        let mut registrations = Feed::open(&services, None);
        let mut others =
            [of_core("services"), of_core("endpoints"), self.followed("discovery.k8s.io", "endpointslices")]
                .map(|cache| cache.map(|cache| Feed::open(&cache, None)));
        let [services, endpoints, slices] = &mut others;
        let mut keepers: HashMap<String, Keeper> = HashMap::new();
        loop {
            let changed = tokio::select! {
                news = registrations.next() => match news {
                    Some(News::Present(_)) => continue,
                    Some(news) => Changed::Registrations(name_in(&news)),
                    None => return,
                },
                news = next(services) => Changed::Service(news),
                news = next(endpoints) => Changed::Service(news),
                news = next(slices) => Changed::Service(news),
            };
            let is_about_registrations = matches!(changed, Changed::Registrations(_));
            match changed {
                Changed::Registrations(Some(name)) => self.tend(&name, &mut keepers),
                Changed::Registrations(None) => {
                    let book = self.book();
                    let gone: Vec<String> = keepers.keys().filter(|name| book.get(name).is_none()).cloned().collect();
                    let names = book.all().map(|known| known.name.clone()).chain(gone);
                    names.collect::<Vec<_>>().iter().for_each(|name| self.tend(name, &mut keepers));
                }
                Changed::Service(Some((namespace, name))) => {
                    let is_about = |keeper: &&Keeper| {
                        let whereabouts = &keeper.remote.whereabouts;
                        whereabouts.namespace == namespace && whereabouts.service == name
                    };
                    keepers.values().filter(is_about).for_each(|keeper| keeper.wakes.availability.notify_one());
                }
                Changed::Service(None) => {}
            }
            if is_about_registrations {
                // After the keepers have begun or ended: what they know is up to date.
                self.changes.send_modify(|count| *count = count.wrapping_add(1));
            }
            tokio::task::consume_budget().await;
        }
    }

    fn followed(&self, group: &str, plural: &str) -> Option<Arc<ResourceCache>> {
        let resource = self.registry.built_in().resource(group, "v1", plural)?;
        Some(self.registry.cache_of(resource.storage()))
    }

    /// Starts to look after an APIService, or goes on, or ends, as it is stored now.
    fn tend(self: &Arc<Aggregator>, name: &str, keepers: &mut HashMap<String, Keeper>) {
        let book = self.book();
        let Some(registration) = book.get(name) else {
            keepers.remove(name);
            self.metrics.forget(name);
            return self.remember(name, None);
        };
        let Some(remote) = &registration.remote else {
            keepers.remove(name);
            self.metrics.own(name);
            self.remember(name, None);
            if !(registration.is_available && registration.reason == "Local") {
                let (aggregator, name) = (self.clone(), name.to_owned());
                tokio::spawn(async move { aggregator.tell(&name, Availability::LOCAL).await });
            }
            return;
        };
        let group_version = (registration.group.clone(), registration.version.clone());
        let is_same = |keeper: &Keeper| Arc::ptr_eq(&keeper.remote, remote) && keeper.group_version == group_version;
        if keepers.get(name).is_some_and(is_same) {
            return;
        }
        let wakes = Arc::<Wakes>::default();
        let (aggregator, known, server) = (self.clone(), registration.clone(), remote.clone());
        let waking = wakes.clone();
        let task = tokio::spawn(async move {
            tokio::join!(
                aggregator.keep_asking(&known, &server, &waking),
                aggregator.keep_learning(&known, &server, &waking)
            );
        });
        let keeper = Keeper { remote: remote.clone(), group_version, wakes, task: task.abort_handle() };
        keepers.insert(name.to_owned(), keeper);
    }

    /// Keeps the condition of an APIService true.
    async fn keep_asking(&self, registration: &Registration, remote: &Remote, wakes: &Wakes) {
        let (mut failures, mut was_available) = (0, false);
        loop {
            let found = self.check(registration, remote).await;
            self.metrics.found(&registration.name, &found, was_available);
            self.tell(&registration.name, found.told()).await;
            if found.is_available != was_available {
                was_available = found.is_available;
                wakes.knowledge.notify_one();
            }
            failures = if found.may_recover() { failures + 1 } else { 0 };
            wait(backoff(failures, ASKING_AGAIN, ASKING), &wakes.availability).await;
        }
    }

    /// Keeps what is known of a server up to date.
    async fn keep_learning(&self, registration: &Registration, remote: &Remote, wakes: &Wakes) {
        let mut failures = 0;
        loop {
            let is_known = self.learn(registration, remote).await;
            failures = if is_known { 0 } else { failures + 1 };
            wait(backoff(failures, LEARNING_AGAIN, LEARNING), &wakes.knowledge).await;
        }
    }

    /// Says whether an APIService is available. What cannot be said now is said next time.
    async fn tell(&self, name: &str, condition: [&str; 3]) {
        match self.registry.tell_availability(name, condition).await {
            Ok(()) | Err(RegistryError::NotFound { .. }) => {}
            Err(error) if error.is_stop() => {}
            Err(error) => tracing::warn!(api_service = name, %error, "cannot say whether an APIService is available"),
        }
    }
}

/// What has changed.
enum Changed {
    /// The APIService with this name; all of them if nothing is known.
    Registrations(Option<String>),
    /// The service at this place, or where it leads.
    Service(Option<(String, String)>),
}

/// How long to wait after so many failures in a row.
fn backoff(failures: u32, first: Duration, longest: Duration) -> Duration {
    match failures.checked_sub(1) {
        None => longest,
        Some(doubled) => first.saturating_mul(2_u32.saturating_pow(doubled.min(20))).min(longest),
    }
}

async fn wait(time: Duration, wake: &Notify) {
    // That it was woken is all there is to know.
    let _ = tokio::time::timeout(time, wake.notified()).await;
}

/// The service that the next change is about. A feed that is not there has none.
async fn next(feed: &mut Option<Feed>) -> Option<(String, String)> {
    let Some(feed) = feed else { return std::future::pending().await };
    let item = match feed.next().await {
        Some(News::Present(item) | News::Changed { new: item, .. } | News::Gone(item)) => item,
        Some(News::Complete { .. }) => return None,
        None => return std::future::pending().await,
    };
    let object = read(&item)?;
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).map(str::to_owned);
    let name = text(&["metadata", "labels", "kubernetes.io/service-name"]).or_else(|| text(&["metadata", "name"]));
    Some((text(&["metadata", "namespace"])?, name?))
}

fn name_in(news: &News) -> Option<String> {
    match news {
        News::Changed { new: item, .. } | News::Gone(item) => {
            read(item)?.at(&["metadata", "name"]).and_then(Value::as_str).map(str::to_owned)
        }
        _ => None,
    }
}

fn read(item: &Item) -> Option<Object> {
    match parse_json(item.bytes()).ok()?.value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_fails_is_asked_again_soon_and_then_less_and_less() {
        let waits: Vec<u128> = [0, 1, 2, 3, 14, 1000].map(|n| backoff(n, ASKING_AGAIN, ASKING).as_millis()).into();
        assert_eq!(waits, [30_000, 5, 10, 20, 30_000, 30_000]);
    }
}
