//! The embedded engine on real disks: its contract, its limits, and what becomes of it when things go wrong.

mod child;
mod contract;
mod damage;
mod dice;
mod encryption;
mod fixture;
mod frozen_disk;
mod kill;
mod ledger;
mod opening;
mod properties;
mod quota;
mod read_only;
mod retention;
