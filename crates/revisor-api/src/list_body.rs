//! [`ListBody`]: a list as it is sent: a head, the items, a foot. Never all of it at once.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use revisor_cache::Item;
use revisor_registry::{ListItems, Listed, Presented};
use smallvec::SmallVec;

use crate::ByteSource;
use crate::encoding::Encoding;
use crate::representation::{ListMetadata, ListShape};
use crate::unread_lists::UnreadList;

/// How much of a list is made at a time: four TLS records, so that the cost of a turn is small beside them.
const CHUNK: usize = 64 * 1024;

/// How many objects are looked at in one turn. A selector may let none of a million through, and others want a turn too.
const LOOKED_AT: usize = 1024;

/// How many bytes of objects are worked on in one turn. What is shown of them may be little: the row of a table.
const WORKED_ON: usize = 4 * CHUNK;

/// How many objects are looked up ahead of being copied.
const BATCH: usize = 32;

/// A list on its way.
pub(crate) struct ListBody {
    shape: ListShape,
    /// The list's metadata in JSON.
    metadata: String,
    has_begun: bool,
    items: Remaining,
    is_first: bool,
    is_done: bool,
    /// How many bytes all items take, where the head says so.
    measured: Measured,
    /// The first part, as long as nobody has asked for it.
    first: Option<Bytes>,
    /// What is held on to for the rest.
    unread: Option<UnreadList>,
    /// Whether others get a turn before the next part is made.
    is_tired: bool,
}

enum Remaining {
    Page(std::vec::IntoIter<Presented>),
    Range { items: ListItems, after: Option<String> },
}

/// How far the items of a list are measured.
#[derive(Debug, Default)]
struct Measured {
    bytes: usize,
    /// How many items of a page were measured.
    count: usize,
    /// After which key the others are.
    after: Option<String>,
    is_done: bool,
}

impl ListBody {
    /// A list of which the first part is made, and which lets go of the state with the last.
    pub(crate) fn new(shape: ListShape, listed: Listed) -> ListBody {
        // What is found out instead of being stored has no version.
        let metadata = shape.metadata(ListMetadata {
            revision: listed.revision.map(|revision| revision.to_string()),
            token: listed.continue_token.as_deref(),
            remaining: listed.remaining,
        });
        let items = if shape.is_ranked() { ranked(&shape, listed.items) } else { Remaining::of(listed.items) };
        let after = match &items {
            Remaining::Range { after, .. } => after.clone(),
            Remaining::Page(_) => None,
        };
        let mut list = ListBody {
            measured: Measured { after, is_done: !shape.is_measured(), ..Measured::default() },
            shape,
            metadata,
            has_begun: false,
            items,
            is_first: true,
            is_done: false,
            first: None,
            unread: None,
            is_tired: false,
        };
        list.first = list.next_chunk();
        list
    }

    /// Whether nothing is held on to any more.
    pub(crate) fn is_made(&self) -> bool {
        self.is_done
    }

    /// All of it at once; `None` if that is more than so many bytes.
    pub(crate) fn whole(mut self, most: usize) -> Option<Bytes> {
        let mut all = BytesMut::new();
        let mut next = self.first.take();
        while let Some(chunk) = next {
            if all.len() + chunk.len() > most {
                return None;
            }
            all.extend_from_slice(&chunk);
            next = self.next_chunk();
        }
        Some(all.freeze())
    }

    /// The bytes of the objects that are held on to, if those are counted.
    pub(crate) fn page_bytes(&self) -> Option<u64> {
        match &self.items {
            Remaining::Page(items) => Some(items.as_slice().iter().map(|page| page.item.bytes().len() as u64).sum()),
            Remaining::Range { .. } => None,
        }
    }

    /// Says who must know how the client reads.
    pub(crate) fn watched_by(&mut self, unread: UnreadList) {
        self.unread = Some(unread);
    }

    /// The next part of the list; `None` after its foot.
    fn next_chunk(&mut self) -> Option<Bytes> {
        if self.is_done {
            return None;
        }
        if !self.measured.is_done {
            self.measure();
            if !self.measured.is_done {
                self.is_tired = true;
                return Some(Bytes::new());
            }
        }
        let mut chunk = BytesMut::with_capacity(CHUNK + CHUNK / 8);
        if !std::mem::replace(&mut self.has_begun, true) {
            chunk.extend_from_slice(&self.shape.head(&self.metadata, self.measured.bytes));
        }
        let mut writer =
            ItemWriter { shape: &self.shape, chunk: &mut chunk, is_first: &mut self.is_first, room: WORKED_ON };
        let has_more = match &mut self.items {
            Remaining::Page(items) => {
                while writer.has_room() && !items.as_slice().is_empty() {
                    let batch = items.len().min(BATCH);
                    touch(writer.shape, &items.as_slice()[..batch]);
                    for item in items.by_ref().take(batch) {
                        writer.push_presented(&item);
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
                let mut turns = LOOKED_AT / BATCH;
                while has_more && writer.has_room() && turns > 0 {
                    turns -= 1;
                    let batch: SmallVec<[&Arc<Item>; BATCH]> = rest.by_ref().take(BATCH).collect();
                    has_more = batch.len() == BATCH;
                    touch(writer.shape, &batch);
                    for item in batch {
                        if !writer.has_room() {
                            has_more = true;
                            break;
                        }
                        last = Some(item);
                        if filter.admits(item) {
                            writer.push_item(item);
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
        self.is_tired = has_more && chunk.len() < CHUNK;
        if !has_more {
            chunk.extend_from_slice(&self.shape.foot(&self.metadata, self.is_first));
            self.is_done = true;
            self.items = Remaining::Page(Vec::new().into_iter());
            self.unread = None;
        }
        Some(chunk.freeze())
    }
}

impl ListBody {
    /// Measures some of the items. They are encoded for that, and found so when they are written.
    fn measure(&mut self) {
        let (shape, measured) = (&self.shape, &mut self.measured);
        let mut room = WORKED_ON;
        let mut look = |object: usize, bytes: usize| {
            room = room.saturating_sub(object);
            measured.bytes += bytes;
            room > 0
        };
        match &self.items {
            Remaining::Page(items) => {
                let rest = &items.as_slice()[measured.count..];
                let rest = &rest[..rest.len().min(LOOKED_AT)];
                for (number, presented) in rest.iter().enumerate() {
                    if number % BATCH == 0 {
                        touch(shape, &rest[number..rest.len().min(number + BATCH)]);
                    }
                    measured.count += 1;
                    let item = &presented.item;
                    let bytes = match &presented.shown {
                        Some(shown) => shape.measure(shown, Some(item)),
                        None => shape.measure_item(item),
                    };
                    if !look(item.bytes().len(), bytes) {
                        break;
                    }
                }
                measured.is_done = measured.count == items.len();
            }
            Remaining::Range { items: ListItems::All { snapshot, prefix, filter, .. }, .. } => {
                let mut last = None;
                let mut has_more = false;
                for (looked_at, item) in snapshot.range(prefix, measured.after.as_deref()).enumerate() {
                    if looked_at == LOOKED_AT {
                        has_more = true;
                        break;
                    }
                    last = Some(item);
                    if filter.admits(item) && !look(item.bytes().len(), shape.measure_item(item)) {
                        has_more = true;
                        break;
                    }
                }
                if let Some(last) = last {
                    measured.after = Some(last.key().as_str().to_owned());
                }
                measured.is_done = !has_more;
            }
            Remaining::Range { .. } => measured.is_done = true,
        }
    }
}

impl ByteSource for ListBody {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(unread) = &self.unread {
            unread.read();
        }
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if std::mem::take(&mut self.is_tired) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.next_chunk())
    }

    fn is_done(&self) -> bool {
        self.is_done && self.first.is_none()
    }
}

impl Remaining {
    fn of(items: ListItems) -> Remaining {
        match items {
            ListItems::Page(items) => Remaining::Page(items.into_iter()),
            ListItems::All { snapshot, prefix, after, filter } => {
                Remaining::Range { after: after.clone(), items: ListItems::All { snapshot, prefix, after, filter } }
            }
        }
    }
}

/// Whether there is an object in a list that cannot be said in its encoding. Nobody can be told so once it has begun.
pub(crate) fn cannot_be_listed(shape: &ListShape, listed: &Listed) -> bool {
    if shape.encoding() != Encoding::Yaml {
        return false;
    }
    match &listed.items {
        ListItems::Page(items) => items.iter().any(|presented| match &presented.shown {
            Some(shown) => shape.refuses(shown),
            None => shape.refuses(presented.item.bytes()),
        }),
        ListItems::All { snapshot, prefix, after, filter } => {
            let mut all = snapshot.range(prefix, after.as_deref());
            all.any(|item| filter.admits(item) && shape.refuses(item.bytes()))
        }
    }
}

/// All items, in the order that their kind has for tables. Such kinds have few objects.
fn ranked(shape: &ListShape, items: ListItems) -> Remaining {
    let mut items: Vec<Presented> = match items {
        ListItems::Page(items) => items,
        ListItems::All { snapshot, prefix, after, filter } => {
            let all = snapshot.range(&prefix, after.as_deref());
            all.filter(|item| filter.admits(item)).cloned().map(Presented::from).collect()
        }
    };
    items.sort_by_cached_key(|Presented { item, .. }| (shape.rank(item.bytes()), item.key().clone()));
    Remaining::Page(items.into_iter())
}

/// Reads the first byte of every object. Each read waits for memory, but they wait together; copied one after the
/// other, each would wait alone, and a long list would spend a third of its time so.
fn touch<I: AsRef<Item>>(shape: &ListShape, batch: &[I]) {
    std::hint::black_box(batch.iter().map(|item| shape.touch(item.as_ref())).sum::<usize>());
}

/// A list of objects that are no longer stored, as they were shown.
pub(crate) fn whole_list(shape: &ListShape, objects: &[Bytes], metadata: &str) -> Bytes {
    let measured = match shape.is_measured() {
        true => objects.iter().map(|object| shape.measure(object, None)).sum(),
        false => 0,
    };
    let mut list = BytesMut::from(&shape.head(metadata, measured)[..]);
    let mut is_first = true;
    for object in objects {
        ItemWriter { shape, chunk: &mut list, is_first: &mut is_first, room: usize::MAX }.push(object, None);
    }
    list.extend_from_slice(&shape.foot(metadata, is_first));
    list.freeze()
}

/// Appends items to a chunk.
struct ItemWriter<'a> {
    shape: &'a ListShape,
    chunk: &'a mut BytesMut,
    is_first: &'a mut bool,
    /// How many bytes of objects may still be worked on.
    room: usize,
}

impl ItemWriter<'_> {
    fn has_room(&self) -> bool {
        self.chunk.len() < CHUNK && self.room > 0
    }

    fn push(&mut self, object: &Bytes, item: Option<&Item>) {
        let is_first = std::mem::take(self.is_first);
        self.room = self.room.saturating_sub(object.len());
        self.shape.push(object, item, is_first, self.chunk);
    }

    fn push_presented(&mut self, presented: &Presented) {
        match &presented.shown {
            Some(shown) => self.push(shown, Some(&presented.item)),
            None => self.push_item(&presented.item),
        }
    }

    fn push_item(&mut self, item: &Item) {
        let is_first = std::mem::take(self.is_first);
        self.room = self.room.saturating_sub(item.bytes().len());
        self.shape.push_item(item, is_first, self.chunk);
    }
}
