//! The cache as those above it see it: over a store, with a dispatcher, on a runtime.

mod contract;
mod fixture;
mod freshness;
mod lagging;
mod long_history;
mod memory_store;
mod progress;
mod races;
mod restart;
mod snapshots;
mod tallying;
mod watching;
