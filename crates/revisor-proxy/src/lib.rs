//! Requests that are passed on: to API servers behind this one, to kubelets, to what runs in pods.
//!
//! [`ProxyClient`] keeps connections to others and sends requests on them, whose bodies go through as they come, in both
//! directions; [`Forward`] is one of them with its answer. A connection that is upgraded becomes a [`Tunnel`] of bytes that nobody looks into. [`headers`] knows what
//! of a request and an answer is about the connection and what is about the matter, and [`Rewriting`] how an answer names
//! places behind a proxy (upstream: `apimachinery/pkg/util/proxy`). [`spdy`] has the frames that kubelets understand.
//!
//! Who may ask, where a request leads, and what is told when it leads nowhere is decided elsewhere. Everything is
//! bounded: requests under way, connections that wait, the time to connect.

mod client;
mod forward;
pub mod headers;
mod rewriting;
pub mod spdy;
mod target;

pub use client::{ProxyClient, ProxyError, ProxyLimits, ReceivedBody, SentBody, Tunnel, empty_body};
pub use forward::{Forward, ForwardError, Forwarded};
pub use rewriting::Rewriting;
pub use target::{Target, TlsError};
