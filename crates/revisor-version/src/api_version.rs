//! [`ApiVersion`]: the name of one shape of an API, such as `v1beta2`.
//!
//! Only the name within a group; group and version together are the object crate's.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The name of an API version, ordered as Kubernetes orders them.
///
/// Names of the form `v1`, `v1beta2` or `v1alpha1` order by stability, then by their numbers, so `v10` is greater
/// than `v2`. All other names are less than these, and among themselves they order backwards by text: discovery
/// shows the greatest version first, and shows `foo1` before `foo10`.
///
/// ```
/// use revisor_version::ApiVersion;
///
/// let mut versions = ["foo10", "v1", "v11alpha2", "v3beta1", "foo1", "v10", "v10beta3", "v2"]
///     .map(|name| name.parse::<ApiVersion>().unwrap());
/// versions.sort_by(|a, b| b.cmp(a));
/// assert_eq!(
///     versions.map(|version| version.to_string()),
///     ["v10", "v2", "v1", "v10beta3", "v3beta1", "v11alpha2", "foo1", "foo10"]
/// );
/// ```
#[derive(Debug, Clone)]
pub struct ApiVersion {
    text: Box<str>,
    // Always what `Rank::of(&text)` yields, kept because versions are compared far more often than parsed.
    rank: Rank,
}

impl ApiVersion {
    /// The name as it was written.
    ///
    /// ```
    /// # use revisor_version::ApiVersion;
    /// assert_eq!("v1beta2".parse::<ApiVersion>().unwrap().as_str(), "v1beta2");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How much its users may rely on it, as far as the name tells.
    ///
    /// ```
    /// # use revisor_version::{ApiVersion, Stability};
    /// assert_eq!("v1beta2".parse::<ApiVersion>().unwrap().stability(), Stability::Beta);
    /// assert_eq!("stable-v1".parse::<ApiVersion>().unwrap().stability(), Stability::Other);
    /// ```
    pub fn stability(&self) -> Stability {
        self.rank.stability
    }
}

/// What the name of an [`ApiVersion`] promises. Greater is more stable.
///
/// ```
/// use revisor_version::Stability;
/// assert!(Stability::Stable > Stability::Beta);
/// assert!(Stability::Alpha > Stability::Other);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stability {
    /// The name does not follow the convention and promises nothing.
    Other,
    /// May change or vanish in any release, and is off unless asked for.
    Alpha,
    /// Well tested, but may still change incompatibly in its next version.
    Beta,
    /// Stays for as long as the major version of Kubernetes does.
    Stable,
}

/// The part of the order that the convention defines. The order of the fields is the order of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    stability: Stability,
    major: i64,
    minor: i64,
}

impl Rank {
    const OTHER: Rank = Rank { stability: Stability::Other, major: 0, minor: 0 };

    fn of(text: &str) -> Rank {
        Rank::conventional(text).unwrap_or(Rank::OTHER)
    }

    /// Numbers beyond 63 bits fall out of the convention, as they do in Kubernetes.
    fn conventional(text: &str) -> Option<Rank> {
        let (major, rest) = split_number(text.strip_prefix('v')?)?;
        let (stability, minor) = if rest.is_empty() {
            (Stability::Stable, 0)
        } else if let Some(digits) = rest.strip_prefix("beta") {
            (Stability::Beta, whole_number(digits)?)
        } else if let Some(digits) = rest.strip_prefix("alpha") {
            (Stability::Alpha, whole_number(digits)?)
        } else {
            return None;
        };
        Some(Rank { stability, major, minor })
    }
}

fn split_number(text: &str) -> Option<(i64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

fn whole_number(text: &str) -> Option<i64> {
    split_number(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

impl Ord for ApiVersion {
    fn cmp(&self, other: &ApiVersion) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| match self.rank.stability {
            Stability::Other => other.text.cmp(&self.text),
            // Only zero-padded numbers get here with different texts (`v1` and `v01`). To call them equal would
            // contradict `Eq`; by text, the one without padding is the greater.
            Stability::Alpha | Stability::Beta | Stability::Stable => self.text.cmp(&other.text),
        })
    }
}

impl PartialOrd for ApiVersion {
    fn partial_cmp(&self, other: &ApiVersion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ApiVersion {
    fn eq(&self, other: &ApiVersion) -> bool {
        self.text == other.text
    }
}

impl Eq for ApiVersion {}

impl Hash for ApiVersion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Why a text is not an [`ApiVersion`].
///
/// ```
/// use revisor_version::{ApiVersion, ParseApiVersionError};
/// assert_eq!("".parse::<ApiVersion>(), Err(ParseApiVersionError::Empty));
/// assert_eq!("v1.2".parse::<ApiVersion>(), Err(ParseApiVersionError::NotALabel));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseApiVersionError {
    /// There is no text at all.
    #[error("an API version must not be empty")]
    Empty,
    /// The text cannot be a segment of a path and of a DNS name, which every API version is.
    #[error(
        "an API version must be a DNS label: at most 63 lower case letters, digits or '-', \
         beginning with a letter and ending with a letter or digit"
    )]
    NotALabel,
}

impl FromStr for ApiVersion {
    type Err = ParseApiVersionError;

    fn from_str(text: &str) -> Result<ApiVersion, ParseApiVersionError> {
        let bytes = text.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return Err(ParseApiVersionError::Empty);
        };
        let within = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        if bytes.len() > 63 || !bytes.iter().all(within) || !first.is_ascii_lowercase() || *last == b'-' {
            return Err(ParseApiVersionError::NotALabel);
        }
        Ok(ApiVersion { text: text.into(), rank: Rank::of(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> ApiVersion {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn orders_as_kubernetes_does() {
        let greatest_first = [
            "v9223372036854775807",
            "v10",
            "v2",
            "v1",
            "v01",
            "v0",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v1beta10",
            "v1beta2",
            "v1beta1",
            "v12alpha1",
            "v11alpha2",
            "v1alpha1",
            "foo1",
            "foo10",
            "foo2",
            "v",
            "v1alpha",
            "v1beta1x",
            "v1gamma1",
            "v9223372036854775808",
            "version1",
        ];
        for (index, greater) in greatest_first.iter().enumerate() {
            assert_eq!(version(greater).cmp(&version(greater)), Ordering::Equal);
            for less in &greatest_first[index + 1..] {
                assert!(version(greater) > version(less), "{greater} > {less}");
                assert!(version(less) < version(greater), "{less} < {greater}");
            }
        }
    }

    #[test]
    fn reads_stability_from_the_name() {
        for (text, want) in [
            ("v1", Stability::Stable),
            ("v1beta1", Stability::Beta),
            ("v1alpha3", Stability::Alpha),
            ("v1beta", Stability::Other),
            ("beta1", Stability::Other),
            ("v1alpha1beta1", Stability::Other),
            ("v-1", Stability::Other),
            ("foo10", Stability::Other),
        ] {
            assert_eq!(version(text).stability(), want, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_label() {
        let too_long = "v".repeat(64);
        for text in ["V1", "1", "v1.", "v1-", "-v1", "v_1", "v 1", "v1/", "vé", &too_long] {
            assert_eq!(text.parse::<ApiVersion>(), Err(ParseApiVersionError::NotALabel), "{text}");
        }
        assert_eq!("".parse::<ApiVersion>(), Err(ParseApiVersionError::Empty));
        assert!("v".repeat(63).parse::<ApiVersion>().is_ok());
    }

    fn any_version() -> impl Strategy<Value = ApiVersion> {
        "(v[0-9]{1,2}((alpha|beta)[0-9]{1,2})?|[a-z][a-z0-9]{0,3})".prop_map(|text| version(&text))
    }

    proptest! {
        #[test]
        fn is_a_total_order(a in any_version(), b in any_version(), c in any_version()) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a == b);
            let mut sorted = [&a, &b, &c];
            sorted.sort();
            prop_assert!(sorted[0] <= sorted[1] && sorted[1] <= sorted[2] && sorted[0] <= sorted[2]);
        }

        #[test]
        fn parsing_never_panics_and_keeps_the_text(text in any::<String>()) {
            if let Ok(version) = text.parse::<ApiVersion>() {
                prop_assert_eq!(version.to_string(), text);
            }
        }
    }
}
