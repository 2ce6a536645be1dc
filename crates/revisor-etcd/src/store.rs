//! [`EtcdStore`]: the [`Store`] on etcd.

use std::sync::Arc;
use std::time::Duration;

use revisor_store::{
    BoxFuture, Committed, Entry, EventPage, Key, Listing, Page, Progress, Registration, Sink, Store, StoreError,
    WatchGuard, Write,
};
use revisor_version::Revision;
use tokio::sync::oneshot;

use crate::endpoint::{EndpointError, TlsFiles};
use crate::shared::Shared;
use crate::writes::is_impossible;
use crate::{Client, Codec, EtcdError, compactor, follower};

/// How long a store that closes waits for the writes that are under way.
const CLOSING: Duration = Duration::from_secs(15);

/// How many changes of the past are read at once for one who begins to watch there.
const PAGE: usize = 512;

/// Which etcd, and which part of it.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// The URLs of its members.
    pub servers: Vec<String>,
    /// What is shown to it and trusted of it.
    pub tls: TlsFiles,
    /// What the keys of the store begin with.
    pub root: String,
    /// What they begin with in etcd instead.
    pub prefix: String,
    /// Keys that begin so go by themselves after so long.
    pub times_to_live: Vec<(String, Duration)>,
    /// By how much longer they may stay, so that many go at once.
    pub lease_reuse: Duration,
    /// How often history is forgotten; `None` if others see to that.
    pub compaction: Option<Duration>,
}

impl EtcdOptions {
    /// The etcd at these URLs, as the original uses it.
    pub fn new(servers: Vec<String>) -> EtcdOptions {
        EtcdOptions {
            servers,
            tls: TlsFiles::default(),
            root: "/registry".to_owned(),
            prefix: "/registry".to_owned(),
            times_to_live: Vec::new(),
            lease_reuse: Duration::from_secs(60),
            compaction: Some(Duration::from_secs(300)),
        }
    }
}

/// Why a store on etcd cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The options make no sense.
    #[error(transparent)]
    Options(#[from] EndpointError),
    /// etcd does not answer, or not as it should.
    #[error("cannot read etcd")]
    Etcd(#[from] EtcdError),
}

/// A store on etcd. It ends, with all that is watched, when it is dropped.
pub struct EtcdStore {
    shared: Arc<Shared>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl EtcdStore {
    /// Reads what etcd holds, and follows it from there.
    pub async fn open(options: EtcdOptions, codec: Arc<dyn Codec>) -> Result<EtcdStore, OpenError> {
        let client = Client::new(&options.servers, &options.tls)?;
        let compaction = options.compaction.filter(|rest| !rest.is_zero());
        let shared = Arc::new(Shared::new(client, codec, options));
        shared.load().await?;
        let mut tasks = vec![tokio::spawn(follower::follow(shared.clone()))];
        if let Some(rest) = compaction {
            tasks.push(tokio::spawn(compactor::run(Arc::downgrade(&shared), rest)));
        }
        Ok(EtcdStore { shared, tasks })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    async fn watch_from(
        &self,
        prefix: &str,
        mut after: Option<Revision>,
        sink: Arc<dyn Sink>,
    ) -> Result<WatchGuard, StoreError> {
        let shared = &self.shared;
        shared.check_open()?;
        if after > shared.mirror().revision() {
            let newest = shared.newest().await?;
            if after > newest {
                return Err(StoreError::Future { asked: after.unwrap_or(Revision::FIRST), newest });
            }
            shared.reach(newest).await;
        }
        let registration = Registration::new(prefix, sink);
        loop {
            shared.check_kept(after)?;
            {
                // Under the lock nothing is delivered: what is remembered is heard here, what comes later by the sink.
                let mirror = shared.mirror();
                if let Some(missed) = mirror.events_after(after) {
                    let of_prefix = missed.filter(|event| event.key().as_str().starts_with(prefix));
                    let missed: Vec<_> = of_prefix.cloned().collect();
                    registration.replay(&missed)?;
                    return Ok(shared.sinks.add(registration));
                }
            }
            let page = shared.events_after(prefix, after, PAGE).await?;
            registration.replay(&page.events)?;
            after = page.through;
        }
    }
}

impl Store for EtcdStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            self.shared.read(&Key::new(key)).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            match page.at {
                Some(at) => self.shared.list_at(prefix, page, at).await,
                None => Ok(self.shared.mirror().list(prefix, &page)),
            }
        })
    }

    fn write(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let (sender, done) = oneshot::channel();
            let shared = self.shared.clone();
            let is_write = !is_impossible(write.expect, &write.change);
            let ticket = is_write.then(|| shared.under_way.begin(&write.key));
            // On its own: etcd cannot be made to forget a write, so it is seen to its end whoever waits for it.
            tokio::spawn(async move {
                let _ = sender.send(shared.perform(write).await);
                drop(ticket);
            });
            done.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        sink: Arc<dyn Sink>,
    ) -> BoxFuture<'a, Result<WatchGuard, StoreError>> {
        Box::pin(self.watch_from(prefix, after, sink))
    }

    fn events<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        limit: usize,
    ) -> BoxFuture<'a, Result<EventPage, StoreError>> {
        Box::pin(self.shared.events_after(prefix, after, limit))
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        Box::pin(self.shared.newest())
    }

    fn oldest_revision(&self, _prefix: &str) -> Option<Revision> {
        self.shared.mirror().oldest()
    }

    fn progress(&self) -> Progress {
        self.shared.progress.subscribe()
    }

    fn hasten(&self, revision: Revision) {
        self.shared.hasten(Some(revision));
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let newest = self.shared.newest().await?;
            if Some(revision) > newest {
                return Err(StoreError::Future { asked: revision, newest });
            }
            match self.shared.client.compact(crate::keyspace::number_of(revision)).await {
                Ok(()) => self.shared.note_oldest(Some(revision)),
                Err(error) if error.is_compacted() => {}
                Err(error) => return Err(error.into()),
            }
            Ok(())
        })
    }

    fn failure(&self) -> Option<StoreError> {
        self.shared.check_open().err()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.shared.shut() {
                return;
            }
            // What etcd has not answered by then, it may still do.
            let _ = tokio::time::timeout(CLOSING, self.shared.under_way.all_settled()).await;
            self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
            self.shared.sinks.end(&StoreError::Closed);
        })
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        self.shared.sinks.end(&StoreError::Closed);
    }
}

impl std::fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdStore").field("revision", &self.shared.mirror().revision()).finish_non_exhaustive()
    }
}
