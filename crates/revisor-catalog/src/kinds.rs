//! The strategies of the built-in kinds, a file each.

mod config_map;
mod event;
mod lease;
mod namespace;
mod secret;
mod service_account;

pub(crate) use config_map::ConfigMaps;
pub(crate) use event::Events;
pub(crate) use lease::Leases;
pub(crate) use namespace::Namespaces;
pub(crate) use secret::Secrets;
pub(crate) use service_account::ServiceAccounts;
