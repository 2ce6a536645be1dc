//! [`EffectiveVersion`]: what a server is, what it behaves as, and with whom it must get along.

use std::fmt;

use crate::{ParseReleaseError, Release};

/// How many releases back a server can behave as.
const REACH: u16 = 3;

/// The component that a version is meant for if none is named, and the only one there is.
const COMPONENT: &str = "kube";

/// Three releases: what the program is, what it behaves as, and the oldest one that must still be able to read what it
/// writes.
///
/// ```
/// use revisor_version::{EffectiveVersion, Release};
///
/// let binary = Release { major: 1, minor: 36 };
/// let version = EffectiveVersion::parse(binary, &["1.34"], &[]).unwrap();
/// assert_eq!(version.emulation(), Release { major: 1, minor: 34 });
/// assert_eq!(version.min_compatibility(), Release { major: 1, minor: 33 });
/// assert!(version.is_emulated());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveVersion {
    binary: Release,
    emulation: Release,
    min_compatibility: Release,
}

/// Why a server cannot behave as somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectiveVersionError {
    /// A text does not begin with a number.
    #[error("could not parse {0:?} as version: expected major and minor as in \"1.36\"")]
    NoVersion(String),
    /// A text begins with a number, but is no release.
    #[error("illegal version string {0:?}: expected major and minor as in \"1.36\"")]
    Illegal(String),
    /// A patch release, where only its minor release has a meaning.
    #[error("patch version not allowed, got: {component}={version}")]
    Patch {
        /// Whose version it should be.
        component: String,
        /// The version.
        version: String,
    },
    /// The version of something that is not part of this program.
    #[error("component not registered: {0}")]
    Component(String),
    /// Two versions where there can be one.
    #[error("duplicate version flag, {COMPONENT}={0} and {COMPONENT}={1}")]
    Duplicate(Release, Release),
    /// A release that this program cannot behave as.
    #[error("emulation version {asked} is not between [{least}, {most}]")]
    Emulation {
        /// What was asked for.
        asked: Release,
        /// The oldest release that is possible.
        least: Release,
        /// The newest.
        most: Release,
    },
    /// A release that this program cannot write for.
    #[error("minCompatibilityVersion version {asked} is not between [{least}, {most}]")]
    MinCompatibility {
        /// What was asked for.
        asked: Release,
        /// The oldest release that is possible.
        least: Release,
        /// The newest.
        most: Release,
    },
}

impl EffectiveVersion {
    /// What a program of this release is if nobody says anything: itself, and good for the release before it.
    pub const fn of(binary: Release) -> EffectiveVersion {
        EffectiveVersion { binary, emulation: binary, min_compatibility: binary.minus(1) }
    }

    /// Reads the values of the two flags, each of them perhaps with `kube=` before it. Without any, a program behaves
    /// as itself, and what it writes can be read by the release before the one that it behaves as, if it can reach that.
    pub fn parse<T: AsRef<str>>(
        binary: Release,
        emulation: &[T],
        min_compatibility: &[T],
    ) -> Result<EffectiveVersion, EffectiveVersionError> {
        let least = binary.minus(REACH);
        let emulation = one(emulation)?.unwrap_or(binary);
        let default = emulation.minus(1).max(least);
        let min_compatibility = one(min_compatibility)?.unwrap_or(default);
        if !(least..=binary).contains(&emulation) {
            return Err(EffectiveVersionError::Emulation { asked: emulation, least, most: binary });
        }
        if !(least..=emulation).contains(&min_compatibility) {
            return Err(EffectiveVersionError::MinCompatibility { asked: min_compatibility, least, most: emulation });
        }
        Ok(EffectiveVersion { binary, emulation, min_compatibility })
    }

    /// The release that the program is.
    pub const fn binary(self) -> Release {
        self.binary
    }

    /// The release that it behaves as.
    pub const fn emulation(self) -> Release {
        self.emulation
    }

    /// The oldest release that must be able to read what it writes.
    pub const fn min_compatibility(self) -> Release {
        self.min_compatibility
    }

    /// Whether it behaves as another release than it is.
    pub fn is_emulated(self) -> bool {
        self.emulation != self.binary
    }

    /// Every release that a program of this one can behave as, the oldest first.
    pub fn reachable(binary: Release) -> impl Iterator<Item = Release> {
        (0..=REACH.min(binary.minor)).rev().map(move |back| binary.minus(back))
    }
}

impl fmt::Display for EffectiveVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EffectiveVersion { binary, emulation, min_compatibility } = self;
        write!(f, "{binary}, behaving as {emulation}, compatible with {min_compatibility}")
    }
}

/// The one version that these texts name, if they name any.
fn one<T: AsRef<str>>(texts: &[T]) -> Result<Option<Release>, EffectiveVersionError> {
    let mut found = None;
    for text in texts.iter().map(AsRef::as_ref).filter(|text| !text.is_empty()) {
        let (component, version) = text.split_once('=').unwrap_or((COMPONENT, text));
        let (component, version) = (component.trim(), version.trim());
        let release = version.parse().map_err(|error| match error {
            ParseReleaseError::Patch => {
                EffectiveVersionError::Patch { component: component.to_owned(), version: version.to_owned() }
            }
            ParseReleaseError::Malformed => {
                let begins =
                    version.strip_prefix('v').unwrap_or(version).starts_with(|first: char| first.is_ascii_digit());
                let of = if begins { EffectiveVersionError::Illegal } else { EffectiveVersionError::NoVersion };
                of(version.to_owned())
            }
        })?;
        if component != COMPONENT {
            return Err(EffectiveVersionError::Component(component.to_owned()));
        }
        if let Some(earlier) = found.replace(release) {
            return Err(EffectiveVersionError::Duplicate(earlier, release));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: Release = Release { major: 1, minor: 36 };

    #[test]
    fn what_is_not_said_follows_from_what_is() {
        for (emulation, least, want) in [
            (&[][..], &[][..], "1.36, behaving as 1.36, compatible with 1.35"),
            (&["1.35"], &[], "1.36, behaving as 1.35, compatible with 1.34"),
            (&["kube=v1.34.0"], &[], "1.36, behaving as 1.34, compatible with 1.33"),
            (&["1.33"], &[], "1.36, behaving as 1.33, compatible with 1.33"),
            (&[], &["1.33"], "1.36, behaving as 1.36, compatible with 1.33"),
            (&[], &["1.36"], "1.36, behaving as 1.36, compatible with 1.36"),
            (&["1.35"], &["kube=1.35"], "1.36, behaving as 1.35, compatible with 1.35"),
            (&[""], &[""], "1.36, behaving as 1.36, compatible with 1.35"),
        ] {
            let version = EffectiveVersion::parse(BINARY, emulation, least);
            assert_eq!(version.map(|version| version.to_string()).as_deref(), Ok(want), "{emulation:?} {least:?}");
        }
        assert_eq!(EffectiveVersion::parse::<&str>(BINARY, &[], &[]), Ok(EffectiveVersion::of(BINARY)));
    }

    #[test]
    fn what_is_out_of_reach_or_malformed_is_refused_with_what_is_allowed() {
        for (emulation, least, want) in [
            (&["1.32"][..], &[][..], "emulation version 1.32 is not between [1.33, 1.36]"),
            (&["1.37"], &[], "emulation version 1.37 is not between [1.33, 1.36]"),
            (&["2.34"], &[], "emulation version 2.34 is not between [1.33, 1.36]"),
            (&["latest"], &[], "could not parse \"latest\" as version: expected major and minor as in \"1.36\""),
            (&["1"], &[], "illegal version string \"1\": expected major and minor as in \"1.36\""),
            (&["1.35.2"], &[], "patch version not allowed, got: kube=1.35.2"),
            (&["etcd=1.35"], &[], "component not registered: etcd"),
            (&["1.35", "1.34"], &[], "duplicate version flag, kube=1.35 and kube=1.34"),
            (&[], &["1.32"], "minCompatibilityVersion version 1.32 is not between [1.33, 1.36]"),
            (&[], &["1.37"], "minCompatibilityVersion version 1.37 is not between [1.33, 1.36]"),
            (&["1.34"], &["1.35"], "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]"),
        ] {
            let error = EffectiveVersion::parse(BINARY, emulation, least).expect_err("is refused");
            assert_eq!(error.to_string(), want);
        }
    }

    #[test]
    fn the_last_four_releases_can_be_reached() {
        let reachable: Vec<String> = EffectiveVersion::reachable(BINARY).map(|release| release.to_string()).collect();
        assert_eq!(reachable, ["1.33", "1.34", "1.35", "1.36"]);
    }
}
