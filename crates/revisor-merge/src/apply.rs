//! Who manages which field of an object: [`FieldSet`] is a set of places in it, [`Comparison`] tells which of them a write
//! changed, and [`ManagedFields`] keeps who last did.

mod compare;
mod field_set;
mod item_step;
mod managed_fields;

pub use compare::Comparison;
pub use field_set::FieldSet;
pub use managed_fields::{ManagedFields, Manager, Operation};
