//! The three kinds of version that Kubernetes knows, and how each of them compares.
//!
//! | kind | says | type |
//! |---|---|---|
//! | resource version | where in history a write stands | [`Revision`] |
//! | API version | the shape in which an object is shown | `ApiVersion` |
//! | release | the Kubernetes version that a server behaves as | `Release` |
//!
//! Pure (invariant P1): no I/O, no clock, no randomness.

mod revision;

pub use revision::{ParseRevisionError, Revision};
