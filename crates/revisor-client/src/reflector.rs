//! [`Reflector`]: keeps a [`Store`] at what its servers have, by lists and watches.
//!
//! The whole state machine is [`State`]. Whatever goes wrong, the next step begins at a state from which the store can
//! only become what some server has: a watch goes on after the last version that is known, and where no server knows that
//! one any more, everything is listed anew.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use kube::api::WatchEvent;
use kube::core::Status;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::metrics::Counters;
use crate::progress::{Progress, Wishes};
use crate::source::{Events, MARGIN, Source};
use crate::store::{Objects, Shared};
use crate::{Key, ResourceVersion, Store};

/// The annotation of the bookmark behind the last object of a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a reflector has done to its store.
#[derive(Debug, Clone)]
pub enum Event<K> {
    /// Everything was listed: the store was replaced, and is of this version.
    Listed(ResourceVersion),
    /// An object is new or has changed.
    Applied(Arc<K>),
    /// An object is gone. This is how it was last, with the version of its deletion.
    Deleted(Arc<K>),
    /// Nothing has changed up to this version.
    Bookmark(ResourceVersion),
}

/// What a reflector ran into. It goes on by itself at the next step, after a wait.
#[derive(Debug, thiserror::Error)]
pub enum ReflectorError {
    /// Everything was to be listed.
    #[error("cannot list the objects")]
    List(#[source] kube::Error),
    /// A watch was to be opened, or broke.
    #[error("cannot watch the objects")]
    Watch(#[source] kube::Error),
    /// The server ended a watch with an error.
    #[error("the server ended the watch: {} ({})", .0.message, .0.code)]
    Ended(Box<Status>),
    /// The server said nothing for longer than it promised to keep the watch.
    #[error("the watch said nothing for {0:?}, longer than it should have lasted")]
    Silent(Duration),
    /// A list, an event or a bookmark without a resource version: such a resource cannot be followed.
    #[error("the server told no resource version")]
    NoVersion,
}

/// Where a reflector is.
enum State<K> {
    /// Everything is to be listed, as a stream or page by page.
    Listing,
    /// The store is of a version, and a watch is to go on from there.
    Resuming,
    /// A watch goes on.
    Watching(Events<K>),
}

/// Keeps a [`Store`] at what its servers have.
///
/// ```no_run
/// # async fn example(api: kube::Api<k8s_openapi::api::core::v1::Pod>) -> Result<(), revisor_client::WaitError> {
/// use revisor_client::Reflector;
///
/// let (store, reflector) = Reflector::new(api);
/// let working = tokio::spawn(reflector.labels("app=web").run());
/// store.ready().await?;
/// println!("{} pods at version {}", store.len(), store.version().expect("is ready"));
/// working.abort();
/// # Ok(()) }
/// ```
pub struct Reflector<K> {
    source: Source<K>,
    state: State<K>,
    /// Whether lists are asked for as streams; servers that do not have them say so.
    streams_lists: bool,
    shared: Arc<Shared<K>>,
    progress: watch::Sender<Progress>,
    backoff: Backoff,
    /// How long to wait before the next step, after one that failed.
    pause: Option<Duration>,
}

impl<K> Reflector<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// A reflector of what an API serves, with the store that it fills. Nothing happens before it is [`run`](Self::run) or
    /// its [`events`](Self::events) are read.
    pub fn new(api: Api<K>) -> (Store<K>, Reflector<K>) {
        let shared =
            Arc::new(Shared { objects: Default::default(), wishes: Wishes::default(), counters: Counters::default() });
        let start = Progress { version: None, granted: 0, heard: Instant::now() };
        let (progress, watching) = watch::channel(start);
        let reflector = Reflector {
            source: Source::new(api),
            state: State::Listing,
            streams_lists: true,
            shared: Arc::clone(&shared),
            progress,
            backoff: Backoff::default(),
            pause: None,
        };
        (Store::new(shared, watching), reflector)
    }

    /// Only objects with these labels, as `kubectl -l` has it.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.source.labels = Some(selector.into());
        self
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.source.fields = Some(selector.into());
        self
    }

    /// Another server of the same cluster. When one fails, the next is asked, from the version on that is known: all
    /// servers of a cluster number the same history, so nothing has to be listed again.
    ///
    /// ```no_run
    /// # fn example(one: kube::Client, other: kube::Client) {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::Api;
    /// use revisor_client::Reflector;
    ///
    /// let (store, reflector) = Reflector::new(Api::<Pod>::all(one));
    /// let reflector = reflector.also_at(Api::all(other));
    /// # }
    /// ```
    #[must_use]
    pub fn also_at(mut self, api: Api<K>) -> Self {
        self.source.add(api);
        self
    }

    /// Lists page by page, and not as a stream, with so many objects on a page. Streams need less memory at the server and
    /// are used where they are offered.
    #[must_use]
    pub fn paged(mut self, page_size: u32) -> Self {
        self.streams_lists = false;
        self.source.page_size = page_size.max(1);
        self
    }

    /// How long the server is asked to keep a watch open, at most; 290 seconds if nothing is said.
    #[must_use]
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.source.watch_seconds = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX).max(1);
        self
    }

    /// Works until it is dropped. What it runs into it counts ([`Store::metrics`]) and overcomes.
    pub async fn run(mut self) {
        loop {
            // Errors are counted where they are made, and the next step waits.
            let _ = self.next().await;
        }
    }

    /// What happens, as a stream that never ends. The store has every event before the stream shows it.
    pub fn events(self) -> impl Stream<Item = Result<Event<K>, ReflectorError>> + Send {
        stream::unfold(self, |mut reflector| async move {
            let event = reflector.next().await;
            Some((event, reflector))
        })
    }

    /// Goes on until something has happened. It may be dropped at any moment and called again.
    pub async fn next(&mut self) -> Result<Event<K>, ReflectorError> {
        loop {
            if let Some(pause) = self.pause {
                tokio::time::sleep(pause).await;
                self.pause = None;
            }
            match self.step().await {
                Ok(Some(event)) => {
                    self.backoff.reset();
                    return Ok(event);
                }
                Ok(None) => {}
                Err(error) => {
                    Counters::count(&self.shared.counters.errors);
                    self.pause = Some(self.backoff.next());
                    return Err(error);
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Event<K>>, ReflectorError> {
        let granted = self.progress.borrow().granted;
        match &mut self.state {
            State::Listing if self.streams_lists => self.streamed_list().await,
            State::Listing => self.paged_list().await,
            State::Resuming if self.shared.wishes.made() > granted => {
                self.state = State::Listing;
                Ok(None)
            }
            State::Resuming => self.resume().await,
            State::Watching(events) => {
                let patience = Duration::from_secs(self.source.watch_seconds.into()) + MARGIN;
                let event = tokio::select! {
                    event = events.next() => event,
                    () = self.shared.wishes.beyond(granted) => {
                        self.state = State::Listing;
                        return Ok(None);
                    }
                    () = tokio::time::sleep(patience) => {
                        self.fail_over();
                        return Err(ReflectorError::Silent(patience));
                    }
                };
                self.watched(event)
            }
        }
    }

    /// Lists everything as a stream, which then goes on as the watch.
    async fn streamed_list(&mut self) -> Result<Option<Event<K>>, ReflectorError> {
        let wishes = self.shared.wishes.made();
        let mut events = match self.source.streamed_list().await {
            Ok(events) => events,
            // The server does not know streamed lists, or has them switched off.
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                self.streams_lists = false;
                return Ok(None);
            }
            Err(error) => return Err(self.failed(ReflectorError::List(error))),
        };
        let patience = Duration::from_secs(self.source.watch_seconds.into()) + MARGIN;
        let mut objects = HashMap::new();
        loop {
            let event = match tokio::time::timeout(patience, events.next()).await {
                Ok(event) => event,
                Err(_) => return Err(self.failed(ReflectorError::Silent(patience))),
            };
            match event {
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    objects.insert(Key::of(&object), Arc::new(object));
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    objects.remove(&Key::of(&object));
                }
                Some(Ok(WatchEvent::Bookmark(mark))) => {
                    if mark.metadata.annotations.get(INITIAL_EVENTS_END).is_some_and(|mark| mark == "true") {
                        let version = version(Some(mark.metadata.resource_version))?;
                        self.state = State::Watching(events);
                        Counters::count(&self.shared.counters.watches);
                        return Ok(Some(self.replace(objects, version, wishes)));
                    }
                }
                Some(Ok(WatchEvent::Error(status))) => return Err(self.failed(ReflectorError::Ended(status))),
                Some(Err(error)) => return Err(self.failed(ReflectorError::List(error))),
                // It ended before it was whole: a server that does not know the option takes it for a watch.
                None => {
                    self.streams_lists = false;
                    return Ok(None);
                }
            }
        }
    }

    /// Lists everything page by page.
    async fn paged_list(&mut self) -> Result<Option<Event<K>>, ReflectorError> {
        let wishes = self.shared.wishes.made();
        let mut objects = HashMap::new();
        let mut token = None;
        loop {
            let page = match self.source.page(token.take()).await {
                Ok(page) => page,
                Err(error) => return Err(self.failed(ReflectorError::List(error))),
            };
            objects.extend(page.items.into_iter().map(|object| (Key::of(&object), Arc::new(object))));
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                let version = version(page.metadata.resource_version)?;
                self.state = State::Resuming;
                return Ok(Some(self.replace(objects, version, wishes)));
            }
        }
    }

    /// Opens a watch that goes on after what is known.
    async fn resume(&mut self) -> Result<Option<Event<K>>, ReflectorError> {
        let known = self.progress.borrow().version.clone();
        let Some(known) = known else {
            self.state = State::Listing;
            return Ok(None);
        };
        match self.source.watch(&known).await {
            Ok(events) => {
                Counters::count(&self.shared.counters.watches);
                self.state = State::Watching(events);
                Ok(None)
            }
            Err(kube::Error::Api(status)) if status.code == 410 => {
                self.expired();
                Ok(None)
            }
            Err(error) => Err(self.failed(ReflectorError::Watch(error))),
        }
    }

    /// What an event of the watch means.
    fn watched(&mut self, event: Option<kube::Result<WatchEvent<K>>>) -> Result<Option<Event<K>>, ReflectorError> {
        match event {
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => self.change(object, false),
            Some(Ok(WatchEvent::Deleted(object))) => self.change(object, true),
            Some(Ok(WatchEvent::Bookmark(mark))) => {
                let version = version(Some(mark.metadata.resource_version)).map_err(|error| self.lost(error))?;
                Counters::count(&self.shared.counters.bookmarks);
                self.advance(&version);
                Ok(Some(Event::Bookmark(version)))
            }
            Some(Ok(WatchEvent::Error(status))) if status.code == 410 => {
                self.expired();
                Ok(None)
            }
            Some(Ok(WatchEvent::Error(status))) => Err(self.failed(ReflectorError::Ended(status))),
            Some(Err(error)) => Err(self.failed(ReflectorError::Watch(error))),
            // Watches end; that is how servers and proxies move their clients.
            None => {
                self.state = State::Resuming;
                Ok(None)
            }
        }
    }

    fn change(&mut self, object: K, is_deleted: bool) -> Result<Option<Event<K>>, ReflectorError> {
        let Some(version) = ResourceVersion::of(&object) else { return Err(self.lost(ReflectorError::NoVersion)) };
        let is_stale = self.progress.borrow().version.as_ref().is_some_and(|known| version < *known);
        if is_stale {
            Counters::count(&self.shared.counters.stale);
            return Ok(None);
        }
        let (key, object) = (Key::of(&object), Arc::new(object));
        {
            let mut objects = self.shared.objects.write().unwrap_or_else(PoisonError::into_inner);
            if is_deleted {
                objects.remove(&key);
            } else {
                objects.insert(key, Arc::clone(&object));
            }
        }
        Counters::count(&self.shared.counters.events);
        // Whoever waited for the version looks into the store next, so that comes first.
        self.advance(&version);
        Ok(Some(if is_deleted { Event::Deleted(object) } else { Event::Applied(object) }))
    }

    fn replace(&mut self, objects: Objects<K>, version: ResourceVersion, wishes: u64) -> Event<K> {
        *self.shared.objects.write().unwrap_or_else(PoisonError::into_inner) = objects;
        Counters::count(&self.shared.counters.lists);
        self.progress.send_modify(|progress| progress.granted = wishes);
        self.advance(&version);
        Event::Listed(version)
    }

    fn advance(&self, version: &ResourceVersion) {
        self.progress.send_modify(|progress| {
            progress.version = Some(version.clone());
            progress.heard = Instant::now();
        });
    }

    /// No server knows the version any more.
    fn expired(&mut self) {
        Counters::count(&self.shared.counters.expired);
        self.state = State::Listing;
    }

    /// Passes an error on after which it is not known where the store is, so that everything is listed anew.
    fn lost(&mut self, error: ReflectorError) -> ReflectorError {
        self.state = State::Listing;
        error
    }

    /// Passes an error on, after which the next server is asked.
    fn failed(&mut self, error: ReflectorError) -> ReflectorError {
        self.fail_over();
        error
    }

    /// Goes on at the next server, from what is known.
    fn fail_over(&mut self) {
        self.state = if self.progress.borrow().version.is_some() { State::Resuming } else { State::Listing };
        if self.source.turn() {
            Counters::count(&self.shared.counters.moves);
        }
    }
}

fn version(text: Option<String>) -> Result<ResourceVersion, ReflectorError> {
    text.filter(|text| !text.is_empty()).map(ResourceVersion::new).ok_or(ReflectorError::NoVersion)
}
