//! Caches of Kubernetes objects that know how far they are, for [kube-rs](https://kube.rs).
//!
//! Since Kubernetes 1.35 resource versions of one resource can be compared (KEP-5504). That makes it possible to ask a
//! cache a question that no informer could answer before: *do you have what I have just written?*
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, Client, api::{Patch, PatchParams}};
//! use revisor_client::Reflector;
//!
//! let api: Api<ConfigMap> = Api::default_namespaced(Client::try_default().await?);
//! let (store, reflector) = Reflector::new(api.clone());
//! tokio::spawn(reflector.run());
//!
//! let patch = serde_json::json!({"data": {"colour": "green"}});
//! let written = api.patch("settings", &PatchParams::default(), &Patch::Merge(patch)).await?;
//! store.after(&written).await?;
//! // From here on the cache shows the write, or something that came later.
//! # Ok(()) }
//! ```
//!
//! | to … | use |
//! |---|---|
//! | tell which of two objects is newer | [`compare_resource_versions`], [`is_newer`] |
//! | keep objects in memory, by watches, bookmarks and streamed lists | [`Reflector`] and [`Store`] |
//! | wait until the cache has my write | [`Store::after`] |
//! | wait until the cache has a version | [`Store::at_least`] |
//! | work on everything that was there at a version, and stop | [`Store::up_to`] |
//! | know how far behind the cache is | [`Store::lag`], [`Store::metrics`] |
//! | go on at another server when one goes away | [`Reflector::also_at`] |
//! | use servers whose versions do not compare | the same; see [`Store::refresh`] |
//!
//! The crate brings no TLS and no version of the API types: both are chosen by the features of `kube` and `k8s-openapi`
//! in your own manifest.

mod backoff;
mod comparing;
mod lag;
mod metrics;
mod progress;
mod reflector;
mod resource_version;
mod source;
mod store;

pub use comparing::{CompareObjectsError, compare_resource_versions, is_newer};
pub use lag::Lag;
pub use metrics::Metrics;
pub use reflector::{Event, Reflector, ReflectorError};
pub use resource_version::ResourceVersion;
pub use store::{Key, Store, WaitError};

/// The examples of the README are compiled with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
