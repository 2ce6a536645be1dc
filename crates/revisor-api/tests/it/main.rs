//! The transport on real sockets: TLS on the loopback interface, HTTP/1.1 and HTTP/2, by a client that is not ours.

mod frames;
mod harness;
mod http2;
mod limits;
mod requests;
mod shutdown;
mod unread;
