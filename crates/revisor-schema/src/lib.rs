//! The types of API objects as tables, and what is done with a value by them: [`Types::conform`] makes a value fit its
//! type or says why it does not, [`Types::encode`] writes it in the one form in which it is stored and served,
//! [`Types::write_protobuf`] in the form that typed clients prefer.
//!
//! Pure (invariant P1). Which kinds exist is not known here; the catalog brings the table.

mod cbor;
mod complete;
mod conform;
mod default;
mod encode;
mod fields;
mod outline;
mod protobuf;
mod raw;
mod repeated;
mod structural;
mod timestamp;
mod typed;
mod types;
mod unstructured;

pub use cbor::{
    CBOR_TAG, CborError, CborMismatch, ClaimedType, ReadCbor, diagnose_cbor, push_cbor_text, read_cbor_map,
    read_cbor_type, split_cbor_map, start_cbor_list, start_cbor_map,
};
pub use conform::{Findings, Mismatch};
pub use encode::Encoded;
pub use fields::{Fields, Member, Pair};
pub use outline::Outline;
pub use protobuf::{ENVELOPE_END, Envelope, ProtobufError, envelope_start, push_varint};
pub use raw::is_spelled;
pub use structural::canonical::encode_custom_object;
pub use structural::correlation::{Compared, Correlation, KeyedList};
pub use structural::custom_schema::{CustomSchema, Misfit, blocks_rules};
pub use structural::format::is_known_format;
pub use structural::metadata::{Malformed, MetadataType};
pub use structural::pattern::difference::{UndecidedPatterns, pattern_difference};
pub use structural::pattern::walk::PatternWalk;
pub use structural::pattern::{MAX_PATTERN_BYTES, Pattern, PatternError};
pub use structural::validator::Validator;
pub use structural::value_ref::ValueRef;
pub use structural::{Additional, Checks, JsonType, ListType, Notes, Structural, ValidationRule};
pub use timestamp::{Precision, format_timestamp, parse_timestamp};
pub use types::{
    Alternative, Field, FieldNumber, Merge, Presence, Shape, Struct, StructId, TableError, Topology, Types,
};
