//! The three kinds of version that Kubernetes knows, and how each of them compares.
//!
//! | kind | says | example | type |
//! |---|---|---|---|
//! | resource version | where in history a write stands | `10245` | [`Revision`], and [`compare_resource_versions`] for the texts of any server |
//! | API version | the shape in which an object is shown | `v1beta1` | [`ApiVersion`] |
//! | release | the Kubernetes version that a server behaves as | `1.36` | [`Release`], and [`EffectiveVersion`] for all that a server is at once |
//!
//! All three are written as short texts with numbers in them, and none of them orders as its text does:
//!
//! ```
//! use revisor_version::{ApiVersion, Release, Revision, compare_resource_versions};
//! use std::cmp::Ordering;
//!
//! assert_eq!(compare_resource_versions("9", "10"), Ok(Ordering::Less));
//! assert!("9".parse::<Revision>()? < "10".parse::<Revision>()?);
//! assert!("v1beta1".parse::<ApiVersion>()? < "v1".parse::<ApiVersion>()?);
//! assert!("1.9".parse::<Release>()? < "1.36".parse::<Release>()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pure (invariant P1): no I/O, no clock, no randomness.

mod api_version;
mod effective_version;
mod feature_gates;
mod release;
mod resource_version;
mod revision;
mod skew;

pub use api_version::{ApiVersion, ParseApiVersionError, Stability};
pub use effective_version::{EffectiveVersion, EffectiveVersionError};
pub use feature_gates::{FeatureGate, FeatureGateError, FeatureGates, FeatureStage, MissingDependency};
pub use release::{ParseReleaseError, Release};
pub use resource_version::{CompareResourceVersionError, Operand, ResourceVersionFault, compare_resource_versions};
pub use revision::{ParseRevisionError, Revision};
pub use skew::{Component, ComponentVersion};

/// The example of the README is compiled with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
