//! Calls to plugins on the same machine, such as those that hold keys: [`UnixChannel`] makes them by gRPC over a unix
//! socket, and [`wire`] writes and reads the protobuf that they carry.
//!
//! Only what such plugins need is here: calls with one request and one answer, over HTTP/2 without TLS. For a handful of
//! small messages that is less code than what generated clients bring along.

mod channel;
mod endpoint;
mod status;
pub mod wire;

pub use channel::UnixChannel;
pub use endpoint::parse_endpoint;
pub use status::{Code, Status};
