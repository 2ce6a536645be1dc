//! Objects in CBOR, as Kubernetes reads and writes it.
//!
//! Hand-written, because what the original demands is none of what the models of general crates offer: texts are written
//! as byte strings, a byte string that is read is a text unless a tag asks for base64 and the field holds bytes, a key
//! that comes twice is an error, and so is all that JSON cannot say.
//!
//! Bytes are looked at three times, as in the original: whether they are CBOR at all ([`well_formed`]), of which kind
//! the object says that it is, and whether it is one ([`read`]).

mod diagnose;
mod head;
mod read;
mod well_formed;
mod write;

use std::fmt;

/// What every encoded object begins with: the tag by which CBOR describes itself.
pub const CBOR_TAG: [u8; 3] = [0xd9, 0xd9, 0xf7];

pub use diagnose::diagnose_cbor;
pub use read::{ClaimedType, ReadCbor, read_cbor_map, read_cbor_type};
pub use write::{push_cbor_text, split_cbor_map, start_cbor_list, start_cbor_map};

/// Why bytes are not what they should be in CBOR. The text is what the original's decoder says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    /// They end before they should.
    #[error("unexpected EOF")]
    Truncated,
    /// There are none.
    #[error("EOF")]
    Empty,
    /// More follows behind the object.
    #[error("cbor: {0} bytes of extraneous data starting at index {1}")]
    More(usize, usize),
    /// Something stands where something else is wanted.
    #[error("{0}")]
    Mismatch(Box<CborMismatch>),
    /// A key comes twice, for the second time as the member with this number.
    #[error("cbor: found duplicate map key {0} at map element index {1}")]
    Duplicate(String, usize),
    /// A key names no field of its type; it is the member with this number.
    #[error("cbor: found unknown field at map element index {0}")]
    UnknownField(usize),
    /// What CBOR can say and Kubernetes does not take.
    #[error("cbor: data item of cbor type {0} is not accepted by protocol: {1}")]
    Unacceptable(&'static str, String),
    /// Arrays and maps nest too deeply.
    #[error("cbor: exceeded max nested level {0}")]
    TooDeep(usize),
    /// All else.
    #[error("{0}")]
    Other(String),
}

/// Something of another type than is wanted (upstream: `UnmarshalTypeError`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CborMismatch {
    found: &'static str,
    /// The innermost struct and its field, as `v1.ConfigMap.data`.
    field: Option<String>,
    wanted: String,
    why: Option<String>,
}

impl fmt::Display for CborMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cbor: cannot unmarshal {} into Go ", self.found)?;
        match &self.field {
            Some(field) => write!(f, "struct field {field} of type {}", self.wanted)?,
            None => write!(f, "value of type {}", self.wanted)?,
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

#[cfg(test)]
mod tests;
