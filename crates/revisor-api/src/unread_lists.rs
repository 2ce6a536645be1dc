//! [`UnreadLists`]: what lists that are on their way hold on to, and which of them ends when that is too much.
//!
//! A list is one state of a resource for as long as its client reads. Objects that are replaced meanwhile stay in memory
//! for it, also after history has forgotten them. How many that are need not be looked for: of two lists in a row, the
//! earlier one alone holds on to no more than what was replaced between the two, and to no more than it has. When all of
//! it passes the limit, the list goes whose client has taken nothing for longest.
//!
//! It is looked at when a list begins. What lists hold on to grows after that, but by one state of each resource at most.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use revisor_cache::Footprint;

use crate::cut_off::CutOff;

/// Lists on their way.
#[derive(Debug, Clone)]
pub(crate) struct UnreadLists(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Zero for no limit.
    limit: u64,
    since: Instant,
    resources: Mutex<Resources>,
}

/// The lists of each resource, in the order of their states.
type Resources = HashMap<Box<str>, BTreeMap<Position, List>>;

/// Where a list stands among those of its resource: how much was replaced before its state, and its number.
type Position = (u64, u64);

#[derive(Debug)]
struct List {
    footprint: Footprint,
    read_at: Arc<AtomicU64>,
    cut_off: CutOff,
}

/// A list that is on its way. To drop it is to let go of the state.
#[derive(Debug)]
pub(crate) struct UnreadList {
    lists: UnreadLists,
    resource: Box<str>,
    position: Position,
    /// When the client took something last, in milliseconds.
    read_at: Arc<AtomicU64>,
}

impl UnreadLists {
    /// Lists that hold on to so many bytes that nobody else needs; zero for any number.
    pub(crate) fn new(limit: u64) -> UnreadLists {
        UnreadLists(Arc::new(Shared { limit, since: Instant::now(), resources: Mutex::default() }))
    }

    /// A list of a resource begins. Others may have to end for it.
    pub(crate) fn begin(&self, resource: &str, footprint: Footprint, cut_off: CutOff) -> UnreadList {
        let read_at = Arc::new(AtomicU64::new(self.now()));
        let mut resources = self.resources();
        let lists = resources.entry(resource.into()).or_default();
        let replaced = footprint.replaced();
        let last_there = lists.range((replaced, 0)..=(replaced, u64::MAX)).next_back();
        let position = (replaced, last_there.map_or(0, |((_, number), _)| number + 1));
        lists.insert(position, List { footprint, read_at: Arc::clone(&read_at), cut_off });
        let list = UnreadList { lists: self.clone(), resource: resource.into(), position, read_at };
        while self.0.limit > 0 && held(&resources) > self.0.limit {
            let Some((resource, position)) = longest_unread(&resources, &list) else { break };
            if let Some(ended) = remove(&mut resources, &resource, position) {
                ended.cut_off.cut();
            }
        }
        list
    }

    fn now(&self) -> u64 {
        self.0.since.elapsed().as_millis() as u64
    }

    fn resources(&self) -> MutexGuard<'_, Resources> {
        self.0.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnreadList {
    /// The client has taken something.
    pub(crate) fn read(&self) {
        self.read_at.store(self.lists.now(), Ordering::Relaxed);
    }
}

impl Drop for UnreadList {
    fn drop(&mut self) {
        remove(&mut self.lists.resources(), &self.resource, self.position);
    }
}

/// How many bytes are in memory for lists alone, at most.
fn held(resources: &Resources) -> u64 {
    resources
        .values()
        .map(|lists| {
            let next = lists.keys().skip(1).map(|(replaced, _)| Some(*replaced)).chain([None]);
            lists.values().zip(next).map(|(list, next)| list.footprint.held_until(next)).sum::<u64>()
        })
        .sum()
}

/// The list, but not `newest`, of which nothing was taken for longest.
fn longest_unread(resources: &Resources, newest: &UnreadList) -> Option<(Box<str>, Position)> {
    let all = resources.iter().flat_map(|(resource, lists)| lists.iter().map(move |list| (resource, list)));
    let others = all.filter(|(resource, (position, _))| (*resource, **position) != (&newest.resource, newest.position));
    let longest = others.min_by_key(|(_, (_, list))| list.read_at.load(Ordering::Relaxed));
    longest.map(|(resource, (position, _))| (resource.clone(), *position))
}

fn remove(resources: &mut Resources, resource: &str, position: Position) -> Option<List> {
    let lists = resources.get_mut(resource)?;
    let removed = lists.remove(&position);
    if lists.is_empty() {
        resources.remove(resource);
    }
    removed
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    struct Fixture {
        lists: UnreadLists,
        replaced: Arc<AtomicU64>,
        begun: Vec<(UnreadList, CutOff)>,
    }

    impl Fixture {
        fn new(limit: u64) -> Fixture {
            Fixture { lists: UnreadLists::new(limit), replaced: Arc::default(), begun: Vec::new() }
        }

        /// A list of ten bytes, of which something was taken at `read_at`.
        fn begin(&mut self, resource: &str, read_at: u64) {
            let replaced = self.replaced.load(Ordering::Relaxed);
            let cut_off = CutOff::default();
            let footprint = Footprint::new(10, replaced, Arc::clone(&self.replaced));
            let list = self.lists.begin(resource, footprint, cut_off.clone());
            list.read_at.store(read_at, Ordering::Relaxed);
            self.begun.push((list, cut_off));
        }

        fn replace(&self, bytes: u64) {
            self.replaced.fetch_add(bytes, Ordering::Relaxed);
        }

        fn held(&self) -> u64 {
            held(&self.lists.resources())
        }

        async fn ended(&self) -> Vec<usize> {
            let mut ended = Vec::new();
            for (at, (_, cut_off)) in self.begun.iter().enumerate() {
                let is_cut = std::future::poll_fn(|cx| Poll::Ready(cut_off.poll(cx).is_ready())).await;
                ended.extend(is_cut.then_some(at));
            }
            ended
        }
    }

    #[tokio::test]
    async fn only_what_was_replaced_counts_and_only_once() {
        let mut fixture = Fixture::new(0);
        for _ in 0..5 {
            fixture.begin("pods", 0);
        }
        assert_eq!(fixture.held(), 0, "nothing was replaced");
        fixture.replace(4);
        assert_eq!(fixture.held(), 4, "the same for all of them");
        fixture.replace(100);
        assert_eq!(fixture.held(), 10, "no more than they show");
        fixture.begin("pods", 0);
        fixture.begin("nodes", 0);
        assert_eq!(fixture.held(), 10, "the new ones are of the newest state");
        fixture.replace(3);
        assert_eq!(fixture.held(), 16);
        fixture.begun.drain(..5);
        assert_eq!(fixture.held(), 6);
        fixture.begun.clear();
        assert_eq!(fixture.held(), 0);
        assert!(fixture.lists.resources().is_empty());
    }

    #[tokio::test]
    async fn past_the_limit_the_list_ends_that_nobody_read_for_longest() {
        let mut fixture = Fixture::new(25);
        for (resource, read_at) in [("pods", 30), ("nodes", 10), ("pods", 20)] {
            fixture.begin(resource, read_at);
            fixture.replace(10);
        }
        assert_eq!(fixture.ended().await, [] as [usize; 0], "25 were not reached when the last began");
        fixture.begin("pods", 40);
        assert_eq!(fixture.ended().await, [1]);
        fixture.replace(10);
        fixture.begin("pods", 50);
        assert_eq!(fixture.ended().await, [1, 2]);
        assert!(fixture.held() <= 25, "{}", fixture.held());
    }
}
