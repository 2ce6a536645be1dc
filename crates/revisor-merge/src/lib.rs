//! How a patch changes an object: [`JsonPatch`] (RFC 6902) and [`merge_patch`] (RFC 7386), with the liberties that
//! Kubernetes takes with both and its clients have come to rely on, its own [`strategic_merge_patch`], and
//! [`server_side_apply`], which keeps track of who manages which field.
//!
//! Only values are dealt with here. Which content type means which patch, whether unknown fields matter and what
//! becomes of the patched object are for the callers.
//!
//! Pure (invariant P1): no I/O, no clock, no randomness.

mod apply;
#[cfg(test)]
mod arbitrary_value;
mod json_patch;
mod json_pointer;
mod merge_patch;
mod patch_error;
mod patch_meter;
mod strategic_merge;

pub use apply::{
    Application, Applied, ApplyError, Comparison, Conflict, FieldSet, ManagedFields, Manager, Operation, Replacement,
    Unconvertible, Versions, atomic_places, describe_conflicts, overlay, server_side_apply,
};
pub use json_patch::JsonPatch;
pub use merge_patch::merge_patch;
pub use patch_error::PatchError;
pub use strategic_merge::strategic_merge_patch;
