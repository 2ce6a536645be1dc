//! [`RecordCipher`]: encrypts a store as a whole, and the envelope that a record, or the mark of history, has then.
//!
//! ```text
//! magic and format  4  "RVS1"
//! place in batch    2  as in the record, so that lost writes are noticed without a key
//! key               8  the name of the key
//! sealed            …  the record, with its key and all; authenticated: the revision, and all above
//! checksum          4  CRC-32 of the revision and of everything above
//! ```
//!
//! What is left to see of a write is how long it is, and that it was made.

use std::borrow::Cow;
use std::sync::Arc;

use super::record::{self, checksum};
use crate::TransformError;

/// What every envelope begins with; the digit is its format.
pub(super) const MAGIC: [u8; 4] = *b"RVS1";
const HEADER: usize = 14;
const CHECKSUM: usize = 4;

/// The name of a key, which tells nothing of it.
pub type KeyName = [u8; 8];

/// Encrypts and decrypts all that a store keeps.
pub trait RecordCipher: Send + Sync {
    /// The name of the key that new records are encrypted with.
    fn current(&self) -> KeyName;

    /// Encrypts with that key. What is `authenticated` must be the same when it is decrypted.
    fn seal(&self, plain: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError>;

    /// Decrypts with the key of this name.
    fn open(&self, key: KeyName, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError>;
}

/// The cipher of a store, if it has one.
pub(super) type Cipher = Option<Arc<dyn RecordCipher>>;

/// Puts `plain` into an envelope, if there is a cipher. `revision` is zero for what is no record.
pub(super) fn seal(cipher: &Cipher, revision: u64, place: u16, plain: Vec<u8>) -> Result<Vec<u8>, TransformError> {
    let Some(cipher) = cipher else { return Ok(plain) };
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&place.to_le_bytes());
    bytes.extend_from_slice(&cipher.current());
    let sealed = cipher.seal(&plain, &authenticated(revision, &bytes))?;
    bytes.extend_from_slice(&sealed);
    let sum = checksum(revision, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

/// What was put into an envelope, or never was in one. The truth says whether it should be put into another.
pub(super) fn open<'a>(cipher: &Cipher, revision: u64, bytes: &'a [u8]) -> Result<(Cow<'a, [u8]>, bool), String> {
    if !bytes.starts_with(&MAGIC) {
        return Ok((Cow::Borrowed(bytes), cipher.is_some()));
    }
    let (header, sealed) = parts(revision, bytes).ok_or("its checksum does not fit")?;
    let cipher = cipher.as_ref().ok_or("it is encrypted, and no key is given")?;
    let key = header.last_chunk::<8>().copied().unwrap_or_default();
    let plain = cipher.open(key, sealed, &authenticated(revision, header)).map_err(|error| error.to_string())?;
    Ok((Cow::Owned(plain), key != cipher.current()))
}

/// How many writes stand before a record in its batch, if these are the whole bytes of the record of `revision`.
pub(super) fn place(revision: u64, bytes: &[u8]) -> Option<u16> {
    if bytes.starts_with(&MAGIC) {
        let (header, _) = parts(revision, bytes)?;
        return Some(u16::from_le_bytes(*header.get(MAGIC.len()..)?.first_chunk()?));
    }
    record::place(revision, bytes)
}

/// The header and what is sealed, if the checksum fits.
fn parts(revision: u64, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (body, sum) = bytes.split_last_chunk::<CHECKSUM>()?;
    if checksum(revision, body) != u32::from_le_bytes(*sum) {
        return None;
    }
    body.split_at_checked(HEADER)
}

fn authenticated(revision: u64, header: &[u8]) -> Vec<u8> {
    [&revision.to_be_bytes()[..], header].concat()
}
