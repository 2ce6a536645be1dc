//! The task that follows etcd: one stream of changes for all of the store's keys, kept up whatever happens.
//!
//! Where a stream breaks it is opened again after the last change that is known, at whichever member answers, so nothing
//! is missed and nothing told twice. Only if etcd has forgotten what came after that, everything is read anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use revisor_version::Revision;

use crate::EtcdError;
use crate::client::WatchStream;
use crate::compactor::COMPACT_KEY;
use crate::keyspace::{number_of, revision_of};
use crate::messages::{EventType, WatchCreateRequest, WatchEvent, WatchResponse};
use crate::mirror::Told;
use crate::shared::Shared;

/// How long a broken stream is left alone: at first, and at most.
const SHORT_PAUSE: Duration = Duration::from_millis(20);
const LONG_PAUSE: Duration = Duration::from_secs(2);

/// After how long without a word etcd is asked whether it is there, and after how long it is believed that it is not.
const QUIET: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(12);

/// How long a change may be on its way before etcd is asked how far it is, and how often that is done. The first is
/// longer than most changes take: only where a revision changed nothing here does anybody wait for this.
const SOON: Duration = Duration::from_millis(3);
const OFTEN: Duration = Duration::from_millis(20);

/// How many changes that have arrived are taken in together.
const TOGETHER: usize = 64;

/// Changes that were heard and not taken in yet, and up to where they are all.
#[derive(Default)]
struct Heard {
    told: Vec<Told>,
    through: Option<Revision>,
}

/// Why a stream ended.
enum Ended {
    /// It can be opened again where it was.
    Broken(EtcdError),
    /// etcd does not know any more what came after.
    Compacted(Option<Revision>),
    /// What is known has nothing to do with etcd.
    Another,
}

/// Follows etcd until it is dropped.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let mut pause = SHORT_PAUSE;
    loop {
        let begun = Instant::now();
        let ended = tokio::select! {
            ended = follow_once(&shared) => ended,
            () = shared.is_another() => Ended::Another,
        };
        if begun.elapsed() > LONG_PAUSE {
            pause = SHORT_PAUSE;
        }
        match ended {
            Ended::Broken(error) => tracing::warn!(%error, "the stream of etcd's changes broke; opening it again"),
            Ended::Compacted(_) | Ended::Another => {
                if let Ended::Compacted(oldest) = ended {
                    tracing::warn!(?oldest, "etcd was compacted past what is known; reading all of it again");
                }
                match shared.load().await {
                    Ok(()) => continue,
                    Err(error) => tracing::warn!(%error, "etcd cannot be read"),
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONG_PAUSE);
    }
}

async fn follow_once(shared: &Arc<Shared>) -> Ended {
    match open(shared).await {
        Ok(mut stream) => match listen(shared, &mut stream).await {
            Ok(ended) => ended,
            Err(error) => {
                stream.give_up_member(&shared.client);
                Ended::Broken(error)
            }
        },
        Err(error) => Ended::Broken(error),
    }
}

async fn open(shared: &Shared) -> Result<WatchStream, EtcdError> {
    let (key, range_end) = shared.keys.all();
    let from = shared.mirror().revision().map_or(1, number_of);
    let all = WatchCreateRequest {
        key,
        range_end,
        start_revision: from + 1,
        progress_notify: true,
        ..WatchCreateRequest::default()
    };
    let mut stream = shared.client.watch(all).await?;
    stream.add(WatchCreateRequest { key: COMPACT_KEY.into(), ..WatchCreateRequest::default() })?;
    Ok(stream)
}

/// Takes in what the stream tells until it ends.
async fn listen(shared: &Arc<Shared>, stream: &mut WatchStream) -> Result<Ended, EtcdError> {
    let mut wanted = shared.wanted.subscribe();
    let mut ids = Vec::with_capacity(2);
    let first = tokio::time::timeout(SILENCE, stream.next()).await.map_err(|_| EtcdError::TimedOut)??;
    if let Some(ended) = take_in_all(shared, &mut ids, stream, first).await? {
        return Ok(ended);
    }
    // Whoever was away may come back as another one, which would have nothing to tell of what is still to come there. That
    // is found out by asking, and then ends this; why one does not answer is told by the stream.
    let _ = shared.newest().await;
    shared.check_last_change().await?;
    let (mut heard, mut has_asked) = (Instant::now(), false);
    loop {
        let is_behind = *wanted.borrow_and_update() > shared.mirror().revision();
        let patience = match (is_behind, has_asked) {
            (true, false) => SOON,
            (true, true) => OFTEN,
            (false, _) => QUIET,
        };
        tokio::select! {
            response = stream.next() => {
                if let Some(ended) = take_in_all(shared, &mut ids, stream, response?).await? {
                    return Ok(ended);
                }
                (heard, has_asked) = (Instant::now(), false);
            }
            // It cannot fail: the sender is part of what is shared.
            _ = wanted.changed() => {}
            () = tokio::time::sleep(patience) => {
                if heard.elapsed() > SILENCE {
                    return Err(EtcdError::TimedOut);
                }
                stream.ask_progress()?;
                has_asked = true;
            }
        }
    }
}

/// Takes in a response together with those that have arrived behind it: of many writes at once, everybody is told once.
async fn take_in_all(
    shared: &Shared,
    ids: &mut Vec<i64>,
    stream: &mut WatchStream,
    first: WatchResponse,
) -> Result<Option<Ended>, EtcdError> {
    let (mut heard, mut next) = (Heard::default(), Ok(first));
    let ended = loop {
        match next.map(|response| hear(shared, ids, response, &mut heard)) {
            Ok(None) => {}
            ended => break ended,
        }
        if heard.told.len() >= TOGETHER {
            break Ok(None);
        }
        next = tokio::select! {
            biased;
            response = stream.next() => response,
            () = std::future::ready(()) => break Ok(None),
        };
    };
    heard.take_in(shared);
    ended
}

impl Heard {
    fn take_in(&mut self, shared: &Shared) {
        let Heard { told, through } = std::mem::take(self);
        if through.is_some() {
            shared.take_in(told, through);
        }
    }
}

fn hear(shared: &Shared, ids: &mut Vec<i64>, response: WatchResponse, heard: &mut Heard) -> Option<Ended> {
    if response.compact_revision > 0 {
        return Some(Ended::Compacted(revision_of(response.compact_revision)));
    }
    if response.canceled {
        return Some(Ended::Broken(EtcdError::Unreadable(format!("it was cancelled: {}", response.cancel_reason))));
    }
    if response.created {
        // Watches are created in the order in which they were asked for.
        ids.push(response.watch_id);
        return None;
    }
    let is_compaction = ids.get(1) == Some(&response.watch_id) && ids.first() != Some(&response.watch_id);
    if is_compaction && !response.events.is_empty() {
        let noted = response.events.iter().filter_map(|event| event.kv.as_ref());
        let noted = noted.filter_map(|kv| std::str::from_utf8(&kv.value).ok()?.parse().ok()).max();
        heard.take_in(shared);
        shared.note_oldest(noted.and_then(revision_of));
        return None;
    }
    if response.events.is_empty() {
        // How far the stream is: of all watches on it, unless it is that of the other one alone.
        if !is_compaction {
            heard.through = heard.through.max(response.header.and_then(|header| revision_of(header.revision)));
        }
        return None;
    }
    let through = response.events.iter().filter_map(|event| event.kv.as_ref()).map(|kv| kv.mod_revision).max();
    heard.told.extend(response.events.iter().filter_map(|event| told(shared, event)));
    heard.through = heard.through.max(through.and_then(revision_of));
    None
}

fn told(shared: &Shared, event: &WatchEvent) -> Option<Told> {
    let kv = event.kv.as_ref()?;
    if event.kind == EventType::Delete as i32 {
        return Some(Told::Deleted(shared.keys.key_at(&kv.key)?, revision_of(kv.mod_revision)?));
    }
    shared.entry_of(kv).map(Told::Put)
}
