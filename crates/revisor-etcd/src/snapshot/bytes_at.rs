//! [`BytesAt`]: a file that is read in places.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use super::SnapshotError;

/// What no single read may be longer than: the largest value that an etcd can be told to take is far below.
const MOST: u64 = 256 << 20;

/// Bytes that lie in a file, or in memory.
#[derive(Debug)]
pub(super) struct BytesAt {
    place: Place,
    length: u64,
}

#[derive(Debug)]
enum Place {
    File(File),
    Memory(Bytes),
}

impl BytesAt {
    pub(super) fn file(file: File) -> io::Result<BytesAt> {
        let length = file.metadata()?.len();
        Ok(BytesAt { place: Place::File(file), length })
    }

    pub(super) fn memory(bytes: Bytes) -> BytesAt {
        let length = bytes.len() as u64;
        BytesAt { place: Place::Memory(bytes), length }
    }

    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Leaves out what is behind the first `length` bytes.
    pub(super) fn cut(&mut self, length: u64) {
        self.length = self.length.min(length);
    }

    /// The `length` bytes from `at` on.
    pub(super) fn get(&self, at: u64, length: u64) -> Result<Bytes, SnapshotError> {
        let end = at.checked_add(length).filter(|end| *end <= self.length && length <= MOST);
        let Some(end) = end else {
            return Err(SnapshotError::damaged(format!("there are no {length} bytes at {at}")));
        };
        let beyond = |_| SnapshotError::damaged(format!("there are no {length} bytes at {at}"));
        match &self.place {
            Place::Memory(bytes) => {
                Ok(bytes.slice(usize::try_from(at).map_err(beyond)?..usize::try_from(end).map_err(beyond)?))
            }
            Place::File(file) => {
                let mut bytes = vec![0; usize::try_from(length).map_err(beyond)?];
                file.read_exact_at(&mut bytes, at).map_err(|error| SnapshotError::Io(error.to_string().into()))?;
                Ok(bytes.into())
            }
        }
    }
}
