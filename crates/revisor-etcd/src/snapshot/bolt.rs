//! [`Bolt`]: a bbolt file, as far as it has to be read: two meta pages, of which the newer sound one counts, and trees of
//! pages. All numbers are little-endian.
//!
//! ```text
//! page     id 8, kind 2, elements 2, further pages 4, then the elements
//! meta     magic 4, version 4, page size 4, flags 4, root page 8, its sequence 8, freelist 8, end 8, transaction 8, FNV-1a 8
//! branch   place of the key 4, its length 4, page 8
//! leaf     flags 4, place of the key 4, its length 4, length of the value behind it 4
//! bucket   a value with flag 1: root page 8, sequence 8; if the page is 0, it follows here
//! ```

use bytes::Bytes;

use super::SnapshotError;
use super::bytes_at::BytesAt;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const HEADER: usize = 16;
const ELEMENT: usize = 16;
const META: usize = 64;

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const META_PAGE: u16 = 0x04;
const BUCKET: u32 = 0x01;

/// The page sizes that there are, of all machines.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 9..=16;

/// No tree is deeper: each level multiplies the number of pages.
const MOST_LEVELS: usize = 32;

/// An open file.
pub(super) struct Bolt<'f> {
    bytes: &'f BytesAt,
    page_size: u64,
    root: u64,
    /// Pages from this one on are not used.
    end: u64,
}

/// Where a tree begins.
pub(super) enum Root {
    Page(u64),
    /// A small bucket lies within its parent.
    Inline(Page),
}

/// A page with all that belongs to it.
pub(super) struct Page {
    bytes: Bytes,
    /// Where in the file it begins.
    at: u64,
    is_leaf: bool,
    elements: usize,
}

/// A key with its value.
pub(super) struct Item {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
    /// Where in the file the value is.
    pub(super) at: u64,
    is_bucket: bool,
}

impl<'f> Bolt<'f> {
    /// Finds the state that was written last.
    pub(super) fn open(bytes: &'f BytesAt) -> Result<Bolt<'f>, SnapshotError> {
        let foreign = || SnapshotError::Foreign("it has no sound meta page".to_owned());
        let first = Meta::read(bytes, 0);
        // The second page is where the first says; if that cannot be read, where its own size puts it.
        let second = match &first {
            Some(first) => Meta::read(bytes, u64::from(first.page_size)),
            None => PAGE_SIZES
                .map(|bits| 1_u32 << bits)
                .find_map(|size| Meta::read(bytes, u64::from(size)).filter(|meta| meta.page_size == size)),
        };
        let meta = first.into_iter().chain(second).max_by_key(|meta| meta.transaction).ok_or_else(foreign)?;
        let page_size = u64::from(meta.page_size);
        // A freelist may end behind what was ever written; a page in use may not.
        Ok(Bolt { bytes, page_size, root: meta.root, end: meta.end.min(bytes.len() / page_size) })
    }

    /// The bucket of this name.
    pub(super) fn bucket(&self, name: &[u8]) -> Result<Option<Root>, SnapshotError> {
        let mut found = None;
        self.walk(Root::Page(self.root), |item| {
            if item.key == name && item.is_bucket {
                found = Some(item);
            }
            Ok(())
        })?;
        let Some(Item { value, at, .. }) = found else { return Ok(None) };
        let short = || SnapshotError::damaged(format!("the bucket {:?} has no root", String::from_utf8_lossy(name)));
        let root = u64::from_le_bytes(number(&value, 0).ok_or_else(short)?);
        if root != 0 {
            return Ok(Some(Root::Page(root)));
        }
        let inline = value.get(16..).ok_or_else(short)?;
        Ok(Some(Root::Inline(Page::parse(value.slice_ref(inline), at + 16)?)))
    }

    /// Shows every item of a tree, in order of their keys.
    pub(super) fn walk(
        &self,
        root: Root,
        mut visit: impl FnMut(Item) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        let root = match root {
            Root::Page(id) => self.page(id)?,
            Root::Inline(page) => page,
        };
        // A page that is met twice is met more often than there are pages.
        let mut met = 0_u64;
        let mut last: Option<Bytes> = None;
        let mut path = vec![(root, 0)];
        while let Some((page, next)) = path.last_mut() {
            if *next == page.elements {
                path.pop();
                continue;
            }
            let element = *next;
            *next += 1;
            if page.is_leaf {
                let item = page.item(element)?;
                if last.as_ref().is_some_and(|last| *last >= item.key) {
                    return Err(page.wrong("its keys are not in order"));
                }
                last = Some(item.key.clone());
                visit(item)?;
                continue;
            }
            met += 1;
            if path.len() >= MOST_LEVELS || met > self.end {
                return Err(SnapshotError::damaged("a tree of pages leads back to itself"));
            }
            let (page, _) = path.last().expect("it was just looked at");
            let below = self.page(page.child(element)?)?;
            path.push((below, 0));
        }
        Ok(())
    }

    fn page(&self, id: u64) -> Result<Page, SnapshotError> {
        let wrong = |what: &str| SnapshotError::damaged(format!("page {id}: {what}"));
        let at = id.checked_mul(self.page_size).filter(|_| id < self.end).ok_or_else(|| wrong("there is none"))?;
        let head = self.bytes.get(at, HEADER as u64)?;
        let named = number(&head, 0).map(u64::from_le_bytes);
        let further = number(&head, 12).map(u32::from_le_bytes).unwrap_or_default();
        if named != Some(id) {
            return Err(wrong("it says that it is another one"));
        }
        let length = (u64::from(further) + 1) * self.page_size;
        Page::parse(self.bytes.get(at, length)?, at)
    }
}

impl Page {
    fn parse(bytes: Bytes, at: u64) -> Result<Page, SnapshotError> {
        let kind = number(&bytes, 8).map(u16::from_le_bytes);
        let elements = number(&bytes, 10).map(u16::from_le_bytes).map_or(0, usize::from);
        let is_leaf = match kind {
            Some(LEAF) => true,
            Some(BRANCH) => false,
            _ => return Err(SnapshotError::damaged(format!("the page at byte {at} is of no known kind"))),
        };
        Ok(Page { bytes, at, is_leaf, elements })
    }

    fn wrong(&self, what: &str) -> SnapshotError {
        SnapshotError::damaged(format!("the page at byte {}: {what}", self.at))
    }

    fn field<const N: usize>(&self, element: usize, offset: usize) -> Result<[u8; N], SnapshotError> {
        let found = number(&self.bytes, HEADER + element * ELEMENT + offset);
        found.ok_or_else(|| self.wrong("an element is behind its end"))
    }

    fn word(&self, element: usize, offset: usize) -> Result<usize, SnapshotError> {
        // A word of 32 bits fits on every machine that this runs on.
        self.field(element, offset).map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn child(&self, element: usize) -> Result<u64, SnapshotError> {
        self.field(element, 8).map(u64::from_le_bytes)
    }

    fn item(&self, element: usize) -> Result<Item, SnapshotError> {
        let flags = u32::from_le_bytes(self.field(element, 0)?);
        let start = HEADER + element * ELEMENT + self.word(element, 4)?;
        let between = start + self.word(element, 8)?;
        let end = between + self.word(element, 12)?;
        if end > self.bytes.len() {
            return Err(self.wrong("a value is behind its end"));
        }
        Ok(Item {
            key: self.bytes.slice(start..between),
            value: self.bytes.slice(between..end),
            at: self.at + between as u64,
            is_bucket: flags & BUCKET != 0,
        })
    }
}

/// What a sound meta page says.
struct Meta {
    page_size: u32,
    root: u64,
    end: u64,
    transaction: u64,
}

impl Meta {
    fn read(bytes: &BytesAt, at: u64) -> Option<Meta> {
        let page = bytes.get(at, (HEADER + META) as u64).ok()?;
        let is_meta = u16::from_le_bytes(number(&page, 8)?) == META_PAGE;
        let meta = page.slice(HEADER..);
        let word = |at| number(&meta, at).map(u32::from_le_bytes);
        let long = |at| number(&meta, at).map(u64::from_le_bytes);
        let page_size = word(8)?;
        let is_size = page_size.is_power_of_two() && PAGE_SIZES.contains(&page_size.trailing_zeros());
        let is_sound = (word(0)?, word(4)?, long(56)?) == (MAGIC, VERSION, fnv(&meta[..56]));
        let meta = Meta { page_size, root: long(16)?, end: long(40)?, transaction: long(48)? };
        (is_meta && is_size && is_sound).then_some(meta)
    }
}

/// FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
