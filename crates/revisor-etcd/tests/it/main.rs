//! The store on a real etcd: its contract, several servers at once, and what becomes of it when things go wrong.
//!
//! Which etcd, say `REVISOR_ETCD` and, for the oldest that is to work, `REVISOR_ETCD_OLDEST`; `cargo xtask etcd` and
//! `cargo xtask etcd --oldest` provide them.

mod contract;
mod etcd;
mod faults;
mod framing;
mod several;
