//! Controllers on a registry over a real store in a folder of its own.

mod aggregation;
mod events;
mod fixture;
mod garbage;
mod in_every_namespace;
mod migrations;
mod namespaces;
mod resource_quotas;
