//! Objects in Kubernetes' protobuf: four bytes of magic, an envelope that names the type, and the object in the wire
//! format, by the numbers of the table.
//!
//! [`Types::read_protobuf`] reads as generously as the original's generated code does, [`Types::write_protobuf`] writes
//! what that code writes, byte for byte: fields by number, maps by key, what is no pointer always, also when it is empty.
//! [`Types::protobuf_of_json`] writes the same of an object that lies there as JSON, without making the object.

mod envelope;
mod layout;
mod outline;
mod read;
mod source;
mod wire;
mod write;

pub use envelope::{ENVELOPE_END, Envelope, envelope_start};
pub(crate) use layout::Layout;
pub use wire::push_varint;

/// What every encoded object begins with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// How deep messages may nest: as deep as JSON that says the same.
const MAX_DEPTH: usize = revisor_object::MAX_DEPTH;

/// Why bytes are not an object in protobuf. The words are those of the code that is generated for the original.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// There are none.
    #[error("empty data")]
    NoData,
    /// They do not begin as Kubernetes' encoding does.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// They begin so, and end there.
    #[error("empty body")]
    NoBody,
    /// They end before they should.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is negative.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A value has another wire type than its field.
    #[error("proto: wrong wireType = {found} for field {field}")]
    WrongWireType {
        /// The wire type of the value.
        found: u8,
        /// What the field is called there.
        field: String,
    },
    /// There is no such wire type.
    #[error("proto: illegal wireType {0}")]
    NoWireType(u8),
    /// There is no such number of a field.
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    IllegalTag {
        /// The type.
        message: String,
        /// The number.
        number: i32,
        /// All of the tag.
        tag: u64,
    },
    /// A group ends that did not begin.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndOfNoGroup(String),
    /// The same within something that is passed over.
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    /// A time is out of range, or a number or text is neither.
    #[error("proto: {0}")]
    Value(&'static str),
    /// A part that is JSON is none.
    #[error("{0}")]
    Json(revisor_object::JsonError),
    /// Messages nest too deeply.
    #[error("proto: exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
    /// The type has no form in protobuf.
    #[error(
        "object {0} does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
    )]
    NoMessage(String),
}

#[cfg(test)]
mod tests;
