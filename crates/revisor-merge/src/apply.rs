//! Who manages which field of an object: [`FieldSet`] is a set of places in it, [`Comparison`] tells which of them a write
//! changed, and [`ManagedFields`] keeps who last did.

mod additions;
mod atomics;
mod compare;
mod conflict;
#[cfg(test)]
mod custom_tests;
mod extract;
mod field_set;
mod granularity;
mod item_step;
mod kept_set;
mod managed_fields;
mod overlay;
mod prune;
mod reconcile;
mod server_side_apply;
mod stored_set;
mod versions;
#[cfg(test)]
mod versions_tests;

pub use atomics::atomic_places;
pub use compare::Comparison;
pub use conflict::{Conflict, describe_conflicts};
pub use field_set::FieldSet;
pub use managed_fields::{ManagedFields, Manager, Operation};
pub use overlay::overlay;
pub use server_side_apply::{Application, Applied, ApplyError, server_side_apply};
pub use versions::{Replacement, Unconvertible, Versions};
