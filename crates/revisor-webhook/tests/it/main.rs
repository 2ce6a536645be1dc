//! Webhooks called for real: TLS servers on loopback, good ones and bad ones.

mod calls;
mod certificates;
mod conversion;
mod harness;
