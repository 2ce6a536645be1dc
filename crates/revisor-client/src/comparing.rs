//! Which of two objects is newer.

use std::cmp::Ordering;

use kube::Resource;
use revisor_version::{CompareResourceVersionError, Operand};

/// Compares two objects of one resource by their places in history.
///
/// Whether that means anything is the caller's knowledge: both must come from the same cluster.
///
/// # Errors
///
/// An object that was never stored, or whose version is no decimal number, as some aggregated servers write them.
///
/// ```
/// use std::cmp::Ordering;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use revisor_client::compare_resource_versions;
///
/// let [old, new, unsaved] = [Some("9"), Some("10"), None].map(|version| {
///     let mut map = ConfigMap::default();
///     map.metadata.resource_version = version.map(str::to_owned);
///     map
/// });
/// assert_eq!(compare_resource_versions(&old, &new), Ok(Ordering::Less));
/// let error = compare_resource_versions(&new, &unsaved).unwrap_err();
/// assert_eq!(error.to_string(), "the right object has no resource version");
/// ```
pub fn compare_resource_versions<K: Resource>(left: &K, right: &K) -> Result<Ordering, CompareObjectsError> {
    fn version<K: Resource>(object: &K, operand: Operand) -> Result<&str, CompareObjectsError> {
        let text = object.meta().resource_version.as_deref().filter(|text| !text.is_empty());
        text.ok_or(CompareObjectsError::NoVersion { operand })
    }
    let (left, right) = (version(left, Operand::Left)?, version(right, Operand::Right)?);
    Ok(revisor_version::compare_resource_versions(left, right)?)
}

/// Whether an object is newer than another of the same resource; `None` if their versions do not compare.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut map = ConfigMap::default();
/// map.metadata.resource_version = Some("10".to_owned());
/// let mut older = map.clone();
/// older.metadata.resource_version = Some("9".to_owned());
/// assert_eq!(revisor_client::is_newer(&map, &older), Some(true));
/// assert_eq!(revisor_client::is_newer(&map, &ConfigMap::default()), None);
/// ```
pub fn is_newer<K: Resource>(object: &K, than: &K) -> Option<bool> {
    compare_resource_versions(object, than).ok().map(|order| order == Ordering::Greater)
}

/// Why two objects could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompareObjectsError {
    /// One of them was never stored.
    #[error("the {operand} object has no resource version")]
    NoVersion {
        /// Which of them.
        operand: Operand,
    },
    /// The version of one of them says nothing about its place.
    #[error(transparent)]
    Incomparable(#[from] CompareResourceVersionError),
}
