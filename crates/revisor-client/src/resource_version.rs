//! [`ResourceVersion`]: a place in the history of a resource, as a server wrote it.

use std::cmp::Ordering;
use std::fmt;

use kube::Resource;
use revisor_version::compare_resource_versions;

/// A resource version as a server wrote it. Two of them compare if both are decimal numbers, as they are on every
/// Kubernetes server since 1.35; those that some aggregated servers write are only equal to themselves.
///
/// ```
/// use revisor_client::ResourceVersion;
///
/// let [nine, ten, odd] = ["9", "10", "a7f3"].map(ResourceVersion::new);
/// assert!(nine < ten);
/// assert!(ten.is_comparable() && !odd.is_comparable());
/// // Neither older nor newer.
/// assert_eq!(odd.partial_cmp(&nine), None);
/// assert_eq!(odd, ResourceVersion::new("a7f3"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(String);

impl ResourceVersion {
    /// A version by its text.
    pub fn new(text: impl Into<String>) -> ResourceVersion {
        ResourceVersion(text.into())
    }

    /// That of an object; `None` if it was never stored.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use revisor_client::ResourceVersion;
    ///
    /// let mut map = ConfigMap::default();
    /// assert_eq!(ResourceVersion::of(&map), None);
    /// map.metadata.resource_version = Some("7".to_owned());
    /// assert_eq!(ResourceVersion::of(&map), Some(ResourceVersion::new("7")));
    /// ```
    pub fn of<K: Resource>(object: &K) -> Option<ResourceVersion> {
        let text = object.meta().resource_version.as_deref()?;
        (!text.is_empty()).then(|| ResourceVersion::new(text))
    }

    /// The text, to be sent to the server that it came from.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it says where in history it stands.
    pub fn is_comparable(&self) -> bool {
        compare_resource_versions(&self.0, "1").is_ok()
    }

    /// How many versions lie between this and an older one; zero if that is newer, `None` if they do not compare or the
    /// numbers are larger than 128 bits.
    ///
    /// ```
    /// use revisor_client::ResourceVersion;
    ///
    /// let [old, new] = ["7", "10"].map(ResourceVersion::new);
    /// assert_eq!((new.since(&old), old.since(&new)), (Some(3), Some(0)));
    /// ```
    pub fn since(&self, older: &ResourceVersion) -> Option<u128> {
        let number = |version: &ResourceVersion| -> Option<u128> {
            version.is_comparable().then(|| version.0.parse().ok()).flatten()
        };
        Some(number(self)?.saturating_sub(number(older)?))
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &ResourceVersion) -> Option<Ordering> {
        match compare_resource_versions(&self.0, &other.0) {
            Ok(order) => Some(order),
            Err(_) => (self == other).then_some(Ordering::Equal),
        }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
