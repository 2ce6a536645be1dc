//! The crate as the server uses it: real handshakes on loopback, and what they say about the client.

mod handshake;
