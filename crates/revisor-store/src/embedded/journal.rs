//! A look at the engine's journals before the engine opens them.
//!
//! The engine (fjall, format 3) keeps recent batches in `<number>.jnl`. At the first entry that it cannot read it
//! takes the rest for the torn tail of a crash and cuts it off. Two things are wrong with that:
//!
//! - A batch whose pages reached the disk in another order can have a sound beginning and end and a hole between. The
//!   engine then refuses to open at all, although nothing that was acknowledged is lost.
//! - Damage in the middle looks the same as a torn tail, and what follows would be lost without a word.
//!
//! So the journals are read here first. What cannot be read is searched for records of later batches: a batch is
//! written when the one before is durable, so such a record is a witness that the unreadable entry was acknowledged.
//! With a witness the store is refused and its files stay as they are; without one the tail is cut off. What remains
//! unnoticed is damage to the last batch of a store that was not closed: it cannot be told from a torn one.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::{MOST_KEY_BYTES, MOST_OBJECT_BYTES, OpenError, envelope, record};
use crate::MOST_TRANSFORMED_EXTRA;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const TRAILER: [u8; 4] = *b"FJL\x03";
/// Tag, kind, compression, keyspace, length of the key, length of the value, and the same as it is on disk.
const ITEM_HEADER: usize = 1 + 1 + 1 + 8 + 2 + 4 + 4;
/// The key of a record: its revision.
const RECORD_KEY: usize = 8;
/// No value is longer: it is an object, its key, and the rest of a record.
const MOST_VALUE: usize = MOST_OBJECT_BYTES + MOST_TRANSFORMED_EXTRA + MOST_KEY_BYTES + 256;
const CHUNK: usize = 64 << 10;

/// Checks the journals in the engine's folder and cuts off a torn tail. Returns the newest revision that is known to
/// have been durable, zero if none is: the log must reach it.
pub(super) fn mend(engine: &Path) -> Result<u64, OpenError> {
    let journals = journals(engine)?;
    let (mut newest, mut witnessed) = (0, 0);
    for (number, path) in journals.iter().enumerate() {
        let found = Found::read(path).map_err(OpenError::io("read", path))?;
        newest = newest.max(found.newest);
        witnessed = witnessed.max(found.witnessed);
        if found.sound == found.end {
            continue;
        }
        // An older journal was synced before the next one was begun, so it has no torn tail. If no record at all can be
        // read, what came before is in tables, and whether the log reaches the witness shows when they are open.
        let is_last = number + 1 == journals.len();
        if !is_last || (newest > 0 && witnessed > newest) {
            let what =
                format!("the entry at byte {} cannot be read, although what follows it was durable", found.sound);
            return Err(OpenError::damaged(path, what));
        }
        tracing::info!(journal = %path.display(), from = found.sound, to = found.end, "cutting off a torn tail");
        cut(path, found.sound).map_err(OpenError::io("cut", path))?;
    }
    Ok(witnessed)
}

/// The journals, oldest first. Names that are none are for the engine to judge.
fn journals(engine: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let items = match fs::read_dir(engine) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        items => items.map_err(OpenError::io("list", engine))?,
    };
    let mut journals = vec![];
    for item in items {
        let path = item.map_err(OpenError::io("list", engine))?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jnl")?.parse::<u64>().ok());
        journals.extend(number.map(|number| (number, path)));
    }
    journals.sort();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

/// What a journal holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Where the batches that can be read end.
    sound: u64,
    /// Where the bytes end that are not zero; the engine makes its journals longer than it needs.
    end: u64,
    /// The newest revision in those batches.
    newest: u64,
    /// The newest revision that a record behind them knows to have been durable.
    witnessed: u64,
}

impl Found {
    fn read(path: &Path) -> io::Result<Found> {
        let file = File::open(path)?;
        let mut found = Found::default();
        let mut reader = BufReader::with_capacity(CHUNK, &file);
        while let Some(batch) = Batch::read(&mut reader)? {
            found.sound += batch.length;
            found.newest = found.newest.max(batch.newest);
        }
        found.end = end_of_data(&file, found.sound)?;
        if found.end > found.sound {
            let mut tail = vec![0; usize::try_from(found.end - found.sound).map_err(io::Error::other)?];
            file.read_exact_at(&mut tail, found.sound)?;
            found.witnessed = witnesses(&tail).max().unwrap_or(0);
        }
        Ok(found)
    }
}

/// Where the last chunk that is not all zeros ends, but not before `from`.
fn end_of_data(file: &File, from: u64) -> io::Result<u64> {
    let zeros = vec![0; CHUNK];
    let mut chunk = vec![0; CHUNK];
    let (mut at, mut end) = (from, from);
    loop {
        let length = file.read_at(&mut chunk, at)?;
        if length == 0 {
            return Ok(end);
        }
        at += length as u64;
        if chunk[..length] != zeros[..length] {
            end = at;
        }
    }
}

/// What the records somewhere in `bytes` say about the writes before their batch.
fn witnesses(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let starts = bytes.windows(record::MAGIC.len()).enumerate().filter(|(_, window)| is_record(window));
    starts.filter_map(|(at, _)| {
        let (before, value) = bytes.split_at(at);
        let (before, key) = before.split_last_chunk::<RECORD_KEY>()?;
        let length = u32::from_le_bytes(*before.last_chunk()?) as usize;
        let revision = u64::from_be_bytes(*key);
        let place = envelope::place(revision, value.get(..length)?)?;
        revision.checked_sub(u64::from(place) + 1)
    })
}

/// Whether a record begins so, plain or in an envelope.
fn is_record(bytes: &[u8]) -> bool {
    bytes.starts_with(&record::MAGIC) || bytes.starts_with(&envelope::MAGIC)
}

/// A batch that is complete and whose checksum fits.
struct Batch {
    length: u64,
    newest: u64,
}

impl Batch {
    /// The next batch, or nothing where there is no sound one.
    fn read(reader: &mut impl Read) -> io::Result<Option<Batch>> {
        match Batch::try_read(reader) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            result => result,
        }
    }

    fn try_read(reader: &mut impl Read) -> io::Result<Option<Batch>> {
        let [tag] = take(reader)?;
        if tag != START {
            return Ok(None);
        }
        let count = u32::from_le_bytes(take(reader)?);
        let _sequence: [u8; 8] = take(reader)?;
        let mut batch = Batch { length: 1 + 4 + 8, newest: 0 };
        let mut hash = Xxh3::new();
        let mut item = vec![];
        for _ in 0..count {
            item.resize(ITEM_HEADER, 0);
            reader.read_exact(&mut item)?;
            let number = |at: usize| u32::from_le_bytes(*item[at..].first_chunk().expect("a header has this length"));
            let key = usize::from(u16::from_le_bytes([item[11], item[12]]));
            let (value, on_disk) = (number(13) as usize, number(17) as usize);
            // Nothing here is compressed, and no keyspace is ever cleared.
            if item[0] != ITEM || item[2] != 0 || value != on_disk || value > MOST_VALUE {
                return Ok(None);
            }
            item.resize(ITEM_HEADER + key + value, 0);
            reader.read_exact(&mut item[ITEM_HEADER..])?;
            hash.update(&item);
            batch.length += item.len() as u64;
            let (key, value) = item[ITEM_HEADER..].split_at(key);
            if let Ok(key) = key.try_into()
                && is_record(value)
            {
                batch.newest = batch.newest.max(u64::from_be_bytes(key));
            }
        }
        let [tag] = take(reader)?;
        let sum = u64::from_le_bytes(take(reader)?);
        let trailer: [u8; 4] = take(reader)?;
        batch.length += 1 + 8 + 4;
        Ok((tag == END && sum == hash.digest() && trailer == TRAILER).then_some(batch))
    }
}

fn take<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}
