//! [`ListBody`]: a list as it is sent: a head, the items joined by commas, a foot. Never all of it at once.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_registry::{ListItems, Listed};
use serde_json::json;
use smallvec::SmallVec;

use crate::ByteSource;

/// How much of a list is made at a time: four TLS records, so that the cost of a turn is small beside them.
const CHUNK: usize = 64 * 1024;

/// How many objects are looked up ahead of being copied.
const BATCH: usize = 32;

/// A list on its way.
pub(crate) struct ListBody {
    resource: Arc<Resource>,
    head: Option<String>,
    items: Remaining,
    is_first: bool,
    is_done: bool,
}

enum Remaining {
    Page(std::vec::IntoIter<Arc<Item>>),
    Range { items: ListItems, after: Option<String> },
}

impl ListBody {
    pub(crate) fn new(resource: &Arc<Resource>, listed: Listed) -> ListBody {
        let mut metadata = serde_json::Map::new();
        metadata.insert(
            "resourceVersion".to_owned(),
            json!(listed.revision.map_or(0, |revision| revision.get()).to_string()),
        );
        if let Some(token) = &listed.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        if let Some(remaining) = listed.remaining {
            metadata.insert("remainingItemCount".to_owned(), json!(remaining));
        }
        let items = match listed.items {
            ListItems::Page(items) => Remaining::Page(items.into_iter()),
            ListItems::All { snapshot, prefix, after, filter } => {
                Remaining::Range { after: after.clone(), items: ListItems::All { snapshot, prefix, after, filter } }
            }
        };
        let head = list_head(resource, &serde_json::Value::Object(metadata).to_string());
        ListBody { resource: resource.clone(), head: Some(head), items, is_first: true, is_done: false }
    }

    /// The next part of the list; `None` after its foot.
    fn next_chunk(&mut self) -> Option<Bytes> {
        if self.is_done {
            return None;
        }
        let mut chunk = BytesMut::with_capacity(CHUNK + CHUNK / 8);
        if let Some(head) = self.head.take() {
            chunk.extend_from_slice(head.as_bytes());
        }
        let mut writer = ItemWriter { resource: &self.resource, chunk: &mut chunk, is_first: &mut self.is_first };
        let has_more = match &mut self.items {
            Remaining::Page(items) => {
                while writer.has_room() && !items.as_slice().is_empty() {
                    let batch = items.len().min(BATCH);
                    touch(&items.as_slice()[..batch]);
                    for item in items.by_ref().take(batch) {
                        writer.push(item.bytes());
                        if !writer.has_room() {
                            break;
                        }
                    }
                }
                !items.as_slice().is_empty()
            }
            Remaining::Range { items: ListItems::All { snapshot, prefix, filter, .. }, after } => {
                let mut rest = snapshot.range(prefix, after.as_deref());
                let mut last: Option<&Arc<Item>> = None;
                let mut has_more = true;
                while has_more && writer.has_room() {
                    let batch: SmallVec<[&Arc<Item>; BATCH]> = rest.by_ref().take(BATCH).collect();
                    has_more = batch.len() == BATCH;
                    touch(&batch);
                    for item in batch {
                        if !writer.has_room() {
                            has_more = true;
                            break;
                        }
                        last = Some(item);
                        if filter.admits(item) {
                            writer.push(item.bytes());
                        }
                    }
                }
                if let Some(last) = last {
                    *after = Some(last.key().as_str().to_owned());
                }
                has_more
            }
            Remaining::Range { .. } => false,
        };
        if !has_more {
            chunk.extend_from_slice(b"]}");
            self.is_done = true;
        }
        Some(chunk.freeze())
    }
}

impl ByteSource for ListBody {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(self.next_chunk())
    }
}

/// Reads the first byte of every object. Each read waits for memory, but they wait together; copied one after the
/// other, each would wait alone, and a long list would spend a third of its time so.
fn touch<I: AsRef<Item>>(batch: &[I]) {
    let first = |item: &I| item.as_ref().bytes().first().copied().map_or(0, usize::from);
    std::hint::black_box(batch.iter().map(first).sum::<usize>());
}

/// Everything before the first item.
pub(crate) fn list_head(resource: &Resource, metadata: &str) -> String {
    format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
        resource.list_kind, resource.api_version
    )
}

/// Appends items to a chunk as lists show them: without their kind and version, which the list has.
pub(crate) struct ItemWriter<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) chunk: &'a mut BytesMut,
    pub(crate) is_first: &'a mut bool,
}

impl ItemWriter<'_> {
    fn has_room(&self) -> bool {
        self.chunk.len() < CHUNK
    }

    pub(crate) fn push(&mut self, object: &[u8]) {
        if !std::mem::take(self.is_first) {
            self.chunk.extend_from_slice(b",");
        }
        match object.strip_prefix(self.resource.type_prefix.as_bytes()) {
            Some(rest) => {
                self.chunk.extend_from_slice(b"{");
                self.chunk.extend_from_slice(rest);
            }
            None => self.chunk.extend_from_slice(object),
        }
    }
}
