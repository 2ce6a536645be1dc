//! [`Release`]: a minor release of Kubernetes, such as 1.36.
//!
//! Which releases a server can behave as, and what that changes, is the catalog's.

use std::fmt;
use std::str::FromStr;

/// A minor release of Kubernetes.
///
/// There is no patch number: patches change no API, so nothing may depend on one.
///
/// ```
/// use revisor_version::Release;
///
/// let release: Release = "v1.36".parse().unwrap();
/// assert_eq!(release, Release { major: 1, minor: 36 });
/// assert_eq!(release.to_string(), "1.36");
/// assert!(release > Release { major: 1, minor: 9 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The number before the dot.
    pub major: u16,
    /// The number after the dot.
    pub minor: u16,
}

impl Release {
    /// The release `minors` before this one, within the same major version and not below its first.
    ///
    /// ```
    /// # use revisor_version::Release;
    /// let release = Release { major: 1, minor: 36 };
    /// assert_eq!(release.minus(3), Release { major: 1, minor: 33 });
    /// assert_eq!(release.minus(40), Release { major: 1, minor: 0 });
    /// ```
    pub const fn minus(self, minors: u16) -> Release {
        Release { major: self.major, minor: self.minor.saturating_sub(minors) }
    }

    /// The release `minors` after this one, within the same major version.
    ///
    /// ```
    /// # use revisor_version::Release;
    /// assert_eq!(Release { major: 1, minor: 35 }.plus(1), Release { major: 1, minor: 36 });
    /// ```
    pub const fn plus(self, minors: u16) -> Release {
        Release { major: self.major, minor: self.minor.saturating_add(minors) }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a text is not a [`Release`].
///
/// ```
/// use revisor_version::{ParseReleaseError, Release};
/// assert_eq!("1.36.4".parse::<Release>(), Err(ParseReleaseError::Patch));
/// assert_eq!("latest".parse::<Release>(), Err(ParseReleaseError::Malformed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseReleaseError {
    /// Not two numbers with a dot between them.
    #[error("not a release: expected major and minor as in \"1.36\"")]
    Malformed,
    /// A patch release, where only its minor release has a meaning.
    #[error("not a release: the patch must be left out or 0, as in \"1.36\" or \"1.36.0\"")]
    Patch,
}

impl FromStr for Release {
    type Err = ParseReleaseError;

    fn from_str(text: &str) -> Result<Release, ParseReleaseError> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let mut number = || parts.next().map(component);
        let (Some(Some(major)), Some(Some(minor)), patch, None) = (number(), number(), number(), number()) else {
            return Err(ParseReleaseError::Malformed);
        };
        match patch {
            None | Some(Some(0)) => Ok(Release { major, minor }),
            Some(Some(_)) => Err(ParseReleaseError::Patch),
            Some(None) => Err(ParseReleaseError::Malformed),
        }
    }
}

fn component(text: &str) -> Option<u16> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| canonical && digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_what_flags_accept() {
        use ParseReleaseError::{Malformed, Patch};
        let release = |major, minor| Ok(Release { major, minor });
        for (text, want) in [
            ("1.36", release(1, 36)),
            ("v1.36", release(1, 36)),
            ("1.36.0", release(1, 36)),
            ("v1.36.0", release(1, 36)),
            ("1.0", release(1, 0)),
            ("2.7", release(2, 7)),
            ("1.36.1", Err(Patch)),
            ("v1.36.12", Err(Patch)),
            ("", Err(Malformed)),
            ("v", Err(Malformed)),
            ("1", Err(Malformed)),
            ("1.", Err(Malformed)),
            (".36", Err(Malformed)),
            ("1.36.", Err(Malformed)),
            ("1.36.0.0", Err(Malformed)),
            ("1.36.x", Err(Malformed)),
            ("1.036", Err(Malformed)),
            ("1.36.00", Err(Malformed)),
            ("+1.36", Err(Malformed)),
            ("1.-36", Err(Malformed)),
            (" 1.36", Err(Malformed)),
            ("vv1.36", Err(Malformed)),
            ("1.36-alpha.1", Err(Malformed)),
            ("1.70000", Err(Malformed)),
        ] {
            assert_eq!(text.parse::<Release>(), want, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trips_and_orders_by_number(a in any::<(u16, u16)>(), b in any::<(u16, u16)>()) {
            let release = |(major, minor)| Release { major, minor };
            prop_assert_eq!(release(a).to_string().parse(), Ok(release(a)));
            prop_assert_eq!(release(a).cmp(&release(b)), a.cmp(&b));
        }

        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            if let Ok(release) = text.parse::<Release>() {
                prop_assert!(text.contains(&release.to_string()));
            }
        }
    }
}
