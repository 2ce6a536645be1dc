//! Objects in CBOR, as Kubernetes reads and writes it.
//!
//! Hand-written, because what the original demands is none of what the models of general crates offer: texts are written
//! as byte strings, a byte string that is read is a text unless a tag asks for base64 and the field holds bytes, a key
//! that comes twice is an error, and so is all that JSON cannot say.

mod read;
mod write;

/// What every encoded object begins with: the tag by which CBOR describes itself.
pub const CBOR_TAG: [u8; 3] = [0xd9, 0xd9, 0xf7];

pub use write::{push_cbor_text, split_cbor_map, start_cbor_list, start_cbor_map};

/// Why bytes are not an object in CBOR.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    /// They end before they should.
    #[error("unexpected EOF")]
    Truncated,
    /// More follows behind the object.
    #[error("cbor: {0} bytes of extraneous data starting at index {1}")]
    More(usize, usize),
    /// Something stands where nothing of its kind can.
    #[error("cbor: {0}")]
    Malformed(&'static str),
    /// A text is no text.
    #[error("cbor: invalid UTF-8 string")]
    NotUtf8,
    /// A key comes twice, for the second time as the member with this number.
    #[error("cbor: found duplicate map key {0:?} at map element index {1}")]
    Duplicate(String, usize),
    /// A number does not fit, or is none.
    #[error("cbor: {0}")]
    Number(&'static str),
    /// A text stands where bytes are wanted.
    #[error("cbor: cannot unmarshal UTF-8 text string into Go struct field {0} of type []uint8")]
    TextForBytes(String),
    /// Arrays and maps nest too deeply.
    #[error("cbor: exceeded max nested level {}", revisor_object::MAX_DEPTH)]
    TooDeep,
}

#[cfg(test)]
mod tests;
