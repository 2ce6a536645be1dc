//! Reads of the past: what the index knows, filled in from the records on disk.
//!
//! A read takes the lock of the view for a moment at a time and the records after it, so that no read of the past
//! holds a writer up. A record that is gone by then belongs to history that was forgotten meanwhile, which is said.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_version::Revision;

use super::log::Log;
use super::record::Record;
use super::view::{Found, Piece, Stretch};
use super::{Shared, sealing};
use crate::{Entry, Event, EventPage, Key, Listing, Page, ResourceTransformers, StoreError};

/// A page of events ends when its objects have so many bytes.
const MOST_PAGE_BYTES: usize = 1 << 20;

/// The entries under `prefix` that `page` asks for, at `revision`. Blocks.
pub(super) fn list(shared: &Shared, prefix: &str, page: &Page, revision: Revision) -> Result<Listing, StoreError> {
    let log = shared.log()?;
    let limit = page.limit.unwrap_or(usize::MAX);
    let mut listing = Listing { entries: vec![], revision: Some(revision), remaining: 0 };
    let mut after = page.after.clone();
    loop {
        let Piece { found, rest } = shared.view().past(prefix, after.as_ref(), revision)?;
        for object in found {
            if listing.entries.len() == limit {
                listing.remaining += 1;
                continue;
            }
            listing.entries.push(match object {
                Found::Here(entry) => entry,
                Found::Recorded(key, at) => {
                    let record = read(&log, at)?.ok_or_else(|| missing(shared, prefix, Some(revision), at))?;
                    entry(shared, key, at, &record, || missing(shared, prefix, Some(revision), at))?
                }
            });
        }
        match rest {
            Some(rest) => after = Some(rest),
            None => return Ok(listing),
        }
    }
}

/// The writes after `after` to keys under `prefix`, at most `limit`. Blocks.
pub(super) fn events(
    shared: &Shared,
    prefix: &str,
    after: Option<Revision>,
    limit: usize,
) -> Result<EventPage, StoreError> {
    let log = shared.log()?;
    let Stretch { writes, through } = shared.view().stretch(prefix, after, limit)?;
    let mut page = EventPage { events: Vec::with_capacity(writes.len()), through };
    let mut bytes = 0;
    // What one write made is most often what a later one replaces.
    let mut made: HashMap<Key, Arc<Entry>> = HashMap::new();
    for (write, here) in writes {
        let revision = write.version.revision();
        if bytes >= MOST_PAGE_BYTES {
            page.through = page.events.last().map(|event: &Event| event.revision);
            break;
        }
        let gone = |at: Revision| missing(shared, prefix, after, at);
        let object = |at: Revision| {
            let record = read(&log, at)?.ok_or_else(|| gone(at))?;
            entry(shared, write.key.clone(), at, &record, || gone(at))
        };
        let record = read(&log, revision)?.ok_or_else(|| gone(revision))?;
        let old = match (write.old, made.remove(&write.key)) {
            (None, _) => None,
            (Some(at), Some(entry)) if entry.revision() == at => Some(entry),
            (Some(at), _) => Some(object(at)?),
        };
        let new = match (write.version.object(), here) {
            (None, _) => None,
            (Some(_), Some(here)) => Some(here),
            (Some(at), None) => Some(entry(shared, write.key.clone(), at, &record, || gone(at))?),
        };
        bytes += [&old, &new].into_iter().flatten().map(|entry| entry.bytes().len()).sum::<usize>();
        new.iter().for_each(|new| drop(made.insert(write.key.clone(), new.clone())));
        page.events.push(Event { revision, time: record.time, old, new });
    }
    Ok(page)
}

/// Whether what the log holds of the entry that `key` got at `revision` should be written anew. Blocks.
pub(super) fn is_stale(shared: &Shared, key: &Key, revision: Revision) -> Result<bool, StoreError> {
    let record = read(&*shared.log()?, revision)?;
    match record.filter(|record| record.key == *key).and_then(|record| record.draft) {
        Some(sealed) => Ok(sealing::unseal(&*shared.transformers, key, &sealed)?.1),
        None => Ok(false),
    }
}

/// Whether what the log holds of an entry could be read by other transformers. Blocks.
pub(super) fn check_readable(
    shared: &Shared,
    transformers: &dyn ResourceTransformers,
    entry: &Entry,
) -> Result<(), StoreError> {
    let record = read(&*shared.log()?, entry.revision())?;
    match record.filter(|record| record.key == *entry.key()).and_then(|record| record.draft) {
        Some(sealed) => sealing::unseal(transformers, entry.key(), &sealed).map(drop),
        // It was replaced meanwhile, and by something that was written with the present keys.
        None => Ok(()),
    }
}

fn read(log: &Log, revision: Revision) -> Result<Option<Record>, StoreError> {
    log.read(revision).map_err(|cause| StoreError::Backend(Arc::from(crate::BoxError::from(&*cause))))
}

/// The entry that a record holds.
fn entry(
    shared: &Shared,
    key: Key,
    revision: Revision,
    record: &Record,
    otherwise: impl FnOnce() -> StoreError,
) -> Result<Arc<Entry>, StoreError> {
    let draft = record.draft.as_ref().filter(|_| record.key == key).ok_or_else(otherwise)?;
    let (plain, _) = sealing::unseal(&*shared.transformers, &key, draft)?;
    Ok(Arc::new(Entry::new(key, revision, &plain)))
}

/// Why the record of `missing` is not there, for one who asked for the past from `revision` on.
fn missing(shared: &Shared, prefix: &str, revision: Option<Revision>, missing: Revision) -> StoreError {
    match shared.view().check_reach(prefix, revision) {
        Err(forgotten) => forgotten,
        Ok(()) => {
            let what = format!("record {missing} of the store is missing");
            StoreError::Backend(Arc::from(crate::BoxError::from(what)))
        }
    }
}
