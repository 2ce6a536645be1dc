//! What was: states and changes of the past, as etcd has them.

use std::sync::Arc;
use std::time::Duration;

use revisor_store::{Event, EventPage, Listing, Page, StoreError};
use revisor_version::Revision;

use crate::EtcdError;
use crate::client::PATIENCE;
use crate::keyspace::{number_of, revision_of};
use crate::messages::{EventType, RangeRequest, WatchCreateRequest, WatchEvent};
use crate::shared::Shared;

/// How often etcd is asked whether it has told everything.
const OFTEN: Duration = Duration::from_millis(20);

impl Shared {
    /// A part of the state at a revision.
    pub(crate) async fn list_at(
        self: &Arc<Shared>,
        prefix: &str,
        page: Page,
        at: Revision,
    ) -> Result<Listing, StoreError> {
        self.check_kept(Some(at))?;
        let newest = self.newest().await?;
        if Some(at) > newest {
            return Err(StoreError::Future { asked: at, newest });
        }
        let (start, range_end) = self.keys.range_of(prefix);
        let key = match &page.after {
            Some(after) if after.as_str() >= prefix => [&self.keys.to_etcd(after.as_str())[..], b"\0"].concat().into(),
            _ => start,
        };
        if key >= range_end {
            return Ok(Listing { entries: Vec::new(), revision: Some(at), remaining: 0 });
        }
        let limit = page.limit.map_or(0, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let request = RangeRequest {
            key,
            range_end,
            limit,
            revision: number_of(at),
            count_only: page.limit == Some(0),
            ..RangeRequest::default()
        };
        let response = match self.client.range(&request).await {
            Ok(response) => response,
            Err(error) => return Err(self.lost(error, Some(at)).await),
        };
        let entries: Vec<_> = response.kvs.iter().filter_map(|kv| self.shared_entry(kv)).collect();
        let count = usize::try_from(response.count).unwrap_or_default();
        Ok(Listing { remaining: count.saturating_sub(entries.len()), entries, revision: Some(at) })
    }

    /// Changes after `after`, at most `limit` of them.
    pub(crate) async fn events_after(
        self: &Arc<Shared>,
        prefix: &str,
        after: Option<Revision>,
        limit: usize,
    ) -> Result<EventPage, StoreError> {
        let newest = self.newest().await?;
        if after > newest {
            return Err(StoreError::Future { asked: after.unwrap_or(Revision::FIRST), newest });
        }
        self.check_kept(after)?;
        self.reach(newest).await;
        if let Some(page) = self.remembered(prefix, after, limit) {
            return Ok(page);
        }
        self.stored_events(prefix, after, newest, limit.max(1)).await
    }

    fn remembered(&self, prefix: &str, after: Option<Revision>, limit: usize) -> Option<EventPage> {
        let mirror = self.mirror();
        let of_prefix = |event: &&Event| event.key().as_str().starts_with(prefix);
        let mut found = mirror.events_after(after)?.filter(of_prefix);
        let events: Vec<_> = found.by_ref().take(limit.max(1)).cloned().collect();
        let through = if found.next().is_some() { events.last().map(|last| last.revision) } else { mirror.revision() };
        Some(EventPage { events, through })
    }

    /// Reads changes by a watch of their own, up to `newest`.
    async fn stored_events(
        &self,
        prefix: &str,
        after: Option<Revision>,
        newest: Option<Revision>,
        limit: usize,
    ) -> Result<EventPage, StoreError> {
        let (key, range_end) = self.keys.range_of(prefix);
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: after.map_or(1, number_of) + 1,
            prev_kv: true,
            ..WatchCreateRequest::default()
        };
        let reading = async {
            let mut stream = self.client.watch(create).await?;
            let mut page = EventPage::default();
            let mut response = stream.next().await?;
            loop {
                if response.compact_revision > 0 {
                    self.note_oldest(revision_of(response.compact_revision));
                    return Ok(Err(()));
                }
                if response.canceled {
                    return Err(EtcdError::Unreadable(format!("it was cancelled: {}", response.cancel_reason)));
                }
                for event in response.events.iter().filter_map(|event| self.past_event(event)) {
                    // Changes of one revision stay together.
                    if page.events.len() >= limit && page.through < Some(event.revision) {
                        return Ok(Ok(page));
                    }
                    page.through = Some(event.revision);
                    page.events.push(event);
                }
                let told = response.header.filter(|_| response.events.is_empty() && !response.created);
                let told = told.and_then(|header| revision_of(header.revision));
                if told >= newest || page.through >= newest {
                    page.through = page.through.max(newest);
                    return Ok(Ok(page));
                }
                response = loop {
                    tokio::select! {
                        response = stream.next() => break response?,
                        () = tokio::time::sleep(OFTEN) => stream.ask_progress()?,
                    }
                };
            }
        };
        match tokio::time::timeout(PATIENCE, reading).await {
            Ok(Ok(Ok(page))) => Ok(page),
            Ok(Ok(Err(()))) => {
                self.check_kept(after)?;
                Err(EtcdError::Unreadable("etcd has forgotten what it did not say that it has".to_owned()).into())
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(EtcdError::TimedOut.into()),
        }
    }

    fn past_event(&self, event: &WatchEvent) -> Option<Event> {
        let kv = event.kv.as_ref()?;
        let is_deletion = event.kind == EventType::Delete as i32;
        let old = event.prev_kv.as_ref().and_then(|kv| self.entry_of(kv));
        let new = if is_deletion { None } else { self.shared_entry(kv) };
        if old.is_none() && new.is_none() {
            return None;
        }
        let revision = revision_of(kv.mod_revision)?;
        Some(Event { revision, time: std::time::SystemTime::UNIX_EPOCH, old, new })
    }

    /// Fails if history after a revision is gone.
    pub(crate) fn check_kept(&self, after: Option<Revision>) -> Result<(), StoreError> {
        match self.mirror().oldest() {
            Some(oldest) if after < Some(oldest) => {
                Err(StoreError::Compacted { asked: after.unwrap_or(Revision::FIRST), oldest })
            }
            _ => Ok(()),
        }
    }

    /// What is answered when the past could not be read. That it is gone may be news.
    async fn lost(&self, error: EtcdError, asked: Option<Revision>) -> StoreError {
        if error.is_compacted()
            && let Ok(oldest) = self.find_oldest().await
        {
            self.note_oldest(oldest);
            if let Err(compacted) = self.check_kept(asked) {
                return compacted;
            }
        }
        match asked {
            Some(asked) if error.is_future() => StoreError::Future { asked, newest: self.mirror().revision() },
            _ => error.into(),
        }
    }
}
