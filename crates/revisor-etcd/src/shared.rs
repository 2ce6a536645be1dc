//! [`Shared`]: what the store, its writes and its tasks have in common.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use revisor_store::{Draft, Entry, Key, Sinks, StoreError};
use revisor_version::Revision;
use tokio::sync::watch;

use crate::arrivals::Arrivals;
use crate::asker::Asker;
use crate::keyspace::{Keyspace, number_of, revision_of};
use crate::leases::Leases;
use crate::messages::{KeyValue, RangeRequest, WatchCreateRequest};
use crate::mirror::{Mirror, Told};
use crate::under_way::UnderWay;
use crate::{Client, Codec, EtcdError, EtcdOptions};

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) keys: Keyspace,
    pub(crate) options: EtcdOptions,
    pub(crate) asker: Asker,
    pub(crate) leases: Leases,
    pub(crate) under_way: Arc<UnderWay>,
    pub(crate) sinks: Arc<Sinks>,
    /// How far sinks were told.
    pub(crate) progress: watch::Sender<Option<Revision>>,
    /// The same, for those who wait for one revision.
    arrivals: Arrivals,
    /// How far somebody waits to be told.
    pub(crate) wanted: watch::Sender<Option<Revision>>,
    /// What this server is about to store. It comes back by the stream of changes, and need not be read again.
    drafts: Mutex<HashMap<Key, (Bytes, Draft)>>,
    mirror: Mutex<Mirror>,
    /// The cluster that was loaded from.
    cluster: Mutex<u64>,
    /// That etcd is not the one that was loaded from, or is that of an earlier time. Until it is loaded again, nothing
    /// is told.
    pub(crate) is_another: watch::Sender<bool>,
    is_closed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(client: Client, codec: Arc<dyn Codec>, options: EtcdOptions) -> Shared {
        Shared {
            keys: Keyspace::new(&options.root, &options.prefix),
            leases: Leases::new(options.lease_reuse),
            client,
            codec,
            options,
            asker: Asker::default(),
            under_way: Arc::default(),
            sinks: Arc::default(),
            progress: watch::Sender::new(None),
            arrivals: Arrivals::default(),
            wanted: watch::Sender::new(None),
            drafts: Mutex::default(),
            mirror: Mutex::default(),
            cluster: Mutex::default(),
            is_another: watch::Sender::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn drafts(&self) -> MutexGuard<'_, HashMap<Key, (Bytes, Draft)>> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cluster(&self) -> MutexGuard<'_, u64> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses everything from now on. Answers whether it did before.
    pub(crate) fn shut(&self) -> bool {
        self.is_closed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        if *self.is_another.borrow() {
            return Err(StoreError::Backend(Arc::new(EtcdError::Unreadable(
                "its history is not the one that was known; it is being read again".to_owned(),
            ))));
        }
        Ok(())
    }

    /// Resolves when what is known has nothing to do with what etcd holds.
    pub(crate) async fn is_another(&self) {
        // The sender is part of this very value.
        let _ = self.is_another.subscribe().wait_for(|is_another| *is_another).await;
    }

    /// The newest revision of etcd. Fails if etcd holds less than it did: it was restored from a backup, and what is
    /// known here is not true any more.
    pub(crate) async fn newest(self: &Arc<Shared>) -> Result<Option<Revision>, StoreError> {
        self.check_open()?;
        let known = self.mirror().revision();
        let answer = self.ask().await?;
        if answer.revision < known || *self.cluster() != answer.cluster {
            self.refuse_what_is_known(answer.revision);
            self.check_open()?;
        }
        self.hasten(answer.revision);
        Ok(answer.revision)
    }

    /// Notes that what is known is not what etcd holds: it is another one, or was restored from a backup.
    pub(crate) fn refuse_what_is_known(&self, found: Option<Revision>) {
        let known = self.mirror().revision();
        tracing::error!(?known, ?found, "etcd is not at the state that it was; reading all of it again");
        self.is_another.send_replace(true);
    }

    /// Finds out whether etcd has the last change that is known. How far it is does not tell that: one that was restored
    /// from a backup and written to since may be further than it was.
    pub(crate) async fn check_last_change(&self) -> Result<(), EtcdError> {
        let Some(last) = self.mirror().last_event().cloned() else { return Ok(()) };
        let key = self.keys.to_etcd(last.key().as_str());
        let request = RangeRequest { key, revision: number_of(last.revision), ..RangeRequest::default() };
        let found = match self.client.range(&request).await {
            Ok(response) => response.kvs.first().map(|kv| kv.mod_revision),
            // Nobody can tell any more.
            Err(error) if error.is_compacted() => return Ok(()),
            Err(error) => return Err(error),
        };
        if found != last.new.map(|new| number_of(new.revision())) {
            self.refuse_what_is_known(found.and_then(revision_of));
        }
        Ok(())
    }

    /// Says that somebody waits for a revision.
    pub(crate) fn hasten(&self, revision: Option<Revision>) {
        self.wanted.send_if_modified(|wanted| {
            let is_news = *wanted < revision && self.mirror().revision() < revision;
            if is_news {
                *wanted = revision;
            }
            is_news
        });
    }

    /// Waits until sinks were told of everything up to a revision.
    pub(crate) async fn reach(&self, revision: Option<Revision>) {
        self.arrivals.reach(revision).await;
    }

    /// Takes in what the stream of changes told, up to `through`.
    pub(crate) fn take_in(&self, told: Vec<Told>, through: Option<Revision>) {
        let revision = {
            let mut mirror = self.mirror();
            let events = mirror.apply(told);
            if !events.is_empty() {
                // Under the lock: who begins to watch hears each change once, from here or from what is remembered.
                self.sinks.deliver(&events);
            }
            mirror.reach(through);
            mirror.revision()
        };
        self.tell_progress(revision);
    }

    /// Says that sinks were told of everything up to a revision.
    pub(crate) fn tell_progress(&self, revision: Option<Revision>) {
        let is_news = self.progress.send_if_modified(|progress| std::mem::replace(progress, revision) != revision);
        if is_news {
            self.arrivals.arrive(revision);
        }
    }

    /// Notes that history before a revision is gone.
    pub(crate) fn note_oldest(&self, oldest: Option<Revision>) {
        let mut mirror = self.mirror();
        if let (true, Some(oldest)) = (mirror.forget_before(oldest), oldest) {
            self.sinks.compacted("", oldest);
        }
    }

    /// What a key and its value are to the store. What cannot be read is told to whoever asks for it.
    pub(crate) fn entry_of(&self, kv: &KeyValue) -> Option<Arc<Entry>> {
        let key = self.keys.key_at(&kv.key)?;
        let revision = revision_of(kv.mod_revision)?;
        if let Some((_, draft)) = self.drafts().get(&key).filter(|(value, _)| *value == kv.value) {
            return Some(Arc::new(Entry::new(key, revision, draft)));
        }
        Some(Arc::new(match self.codec.decode(&key, &kv.value) {
            Ok(decoded) if decoded.is_outdated => Entry::outdated(key, revision, &decoded.draft),
            Ok(decoded) => Entry::new(key, revision, &decoded.draft),
            Err(problem) => {
                tracing::warn!(%key, %problem, "what etcd holds cannot be read");
                Entry::unreadable(key, revision, problem.to_string())
            }
        }))
    }

    /// The same, shared with what is known already.
    pub(crate) fn shared_entry(&self, kv: &KeyValue) -> Option<Arc<Entry>> {
        let key = self.keys.key_at(&kv.key)?;
        let known = self.mirror().get(key.as_str()).cloned();
        let is_it = |entry: &Arc<Entry>| number_of(entry.revision()) == kv.mod_revision;
        known.filter(is_it).or_else(|| self.entry_of(kv))
    }

    /// From where on etcd knows history; `None` if it knows all of it. Only a watch is told.
    pub(crate) async fn find_oldest(&self) -> Result<Option<Revision>, EtcdError> {
        let first = RangeRequest { key: self.keys.all().0, revision: 1, count_only: true, ..RangeRequest::default() };
        match self.client.range(&first).await {
            Ok(_) => return Ok(None),
            Err(error) if error.is_compacted() => {}
            Err(error) => return Err(error),
        }
        let watch = WatchCreateRequest { key: self.keys.all().0, start_revision: 1, ..WatchCreateRequest::default() };
        let looking = async {
            let mut stream = self.client.watch(watch).await?;
            loop {
                let response = stream.next().await?;
                if response.compact_revision > 0 {
                    return Ok(revision_of(response.compact_revision));
                }
            }
        };
        tokio::time::timeout(crate::client::PATIENCE, looking).await.unwrap_or(Err(EtcdError::TimedOut))
    }
}
