//! The store on a real etcd: its contract, several servers at once, and what becomes of it when things go wrong.
//!
//! Which etcd, says `REVISOR_ETCD`; `cargo xtask etcd` provides one.

mod contract;
mod etcd;
mod faults;
mod framing;
mod several;
