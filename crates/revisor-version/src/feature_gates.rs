//! [`FeatureGates`]: what whoever runs a server of some release may switch on or off.
//!
//! The rows of `tables/feature_gates.csv` say from which release on a gate has which default and stage, and whether it
//! is locked to that default.

use std::collections::BTreeMap;

use crate::Release;

const TABLE: &str = include_str!("../tables/feature_gates.csv");

/// How mature a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureStage {
    /// It may change or go, and is off unless asked for.
    Alpha,
    /// It is well tested and will stay, in this form or another.
    Beta,
    /// It stays as it is.
    Ga,
    /// It will go.
    Deprecated,
}

/// A gate as one release has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureGate {
    /// How mature its feature is.
    pub stage: FeatureStage,
    /// Whether it is on if nobody says otherwise.
    pub default: bool,
    /// Whether nobody can say otherwise.
    pub locked: bool,
}

/// Why gates cannot be set as somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGateError {
    /// The release has no such gate.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// A gate is named without being set.
    #[error("missing bool value for {0}")]
    NoValue(String),
    /// A gate is set to something that is neither true nor false.
    #[error("invalid value of {name}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax")]
    NotABool {
        /// The gate.
        name: String,
        /// What it was set to.
        value: String,
    },
    /// The gate has one value only.
    #[error("cannot set feature gate {name} to {asked}, feature is locked to {}", !asked)]
    Locked {
        /// The gate.
        name: String,
        /// What it was set to.
        asked: bool,
    },
}

/// The gates of a release, and which of them are on.
///
/// ```
/// use revisor_version::{FeatureGates, Release};
///
/// let release = Release { major: 1, minor: 36 };
/// let gates = FeatureGates::parse("AllAlpha=true,StorageVersionMigrator=true", release).unwrap();
/// assert!(gates.is_enabled("StorageVersionMigrator") && gates.is_enabled("GenericWorkload"));
/// let error = FeatureGates::parse("NoSuchThing=true", release).unwrap_err();
/// assert_eq!(error.to_string(), "unrecognized feature gate: NoSuchThing");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureGates {
    gates: BTreeMap<&'static str, (FeatureGate, bool)>,
    /// Those that were set by name.
    set: Vec<&'static str>,
}

impl FeatureGates {
    /// The gates of a release as they are if nobody says anything.
    ///
    /// # Panics
    /// If the table is malformed: a fault of the program that its tests find.
    pub fn of(release: Release) -> FeatureGates {
        let mut gates = BTreeMap::new();
        // Later rows of a gate are of later releases.
        for line in TABLE.lines().skip(1) {
            let (name, since, gate) = read(line).unwrap_or_else(|| panic!("a malformed row: {line}"));
            if since <= release {
                gates.insert(name, (gate, gate.default));
            }
        }
        FeatureGates { gates, set: Vec::new() }
    }

    /// Reads `NAME=BOOL` pairs, separated by commas. `AllAlpha` and `AllBeta` speak of all that are not named.
    pub fn parse(text: &str, release: Release) -> Result<FeatureGates, FeatureGateError> {
        let mut gates = FeatureGates::of(release);
        let mut of_stage = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| FeatureGateError::NoValue(pair.to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            let asked = read_bool(value)
                .ok_or_else(|| FeatureGateError::NotABool { name: name.to_owned(), value: value.to_owned() })?;
            match name {
                "AllAlpha" => of_stage.push((FeatureStage::Alpha, asked)),
                "AllBeta" => of_stage.push((FeatureStage::Beta, asked)),
                name => gates.set(name, asked)?,
            }
        }
        for (stage, asked) in of_stage {
            for (name, (gate, enabled)) in &mut gates.gates {
                if gate.stage == stage && !gate.locked && !gates.set.contains(name) {
                    *enabled = asked;
                }
            }
        }
        Ok(gates)
    }

    fn set(&mut self, name: &str, asked: bool) -> Result<(), FeatureGateError> {
        let known = self.gates.iter_mut().find(|(known, _)| **known == name);
        let Some((known, (gate, enabled))) = known else { return Err(FeatureGateError::Unknown(name.to_owned())) };
        if gate.locked && asked != gate.default {
            return Err(FeatureGateError::Locked { name: name.to_owned(), asked });
        }
        *enabled = asked;
        self.set.push(known);
        Ok(())
    }

    /// Whether a gate is on; a gate that the release does not have is off.
    pub fn is_enabled(&self, name: &str) -> bool {
        self.gates.get(name).is_some_and(|(_, enabled)| *enabled)
    }

    /// All gates by name, and whether they are on.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, FeatureGate, bool)> {
        self.gates.iter().map(|(name, (gate, enabled))| (*name, *gate, *enabled))
    }

    /// The gates that are not as the release has them.
    pub fn changed(&self) -> impl Iterator<Item = &'static str> {
        self.iter().filter(|(_, gate, enabled)| gate.default != *enabled).map(|(name, ..)| name)
    }
}

fn read(line: &'static str) -> Option<(&'static str, Release, FeatureGate)> {
    let mut columns = line.split(',');
    let (name, since) = (columns.next()?, columns.next()?.parse().ok()?);
    let default = read_bool(columns.next()?)?;
    let stage = match columns.next()? {
        "Alpha" => FeatureStage::Alpha,
        "Beta" => FeatureStage::Beta,
        "GA" => FeatureStage::Ga,
        "Deprecated" => FeatureStage::Deprecated,
        _ => return None,
    };
    Some((name, since, FeatureGate { stage, default, locked: read_bool(columns.next()?)? }))
}

fn read_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_as_their_release_has_them() {
        for (minor, name, want) in [
            (36, "StorageVersionMigrator", Some((FeatureStage::Beta, false))),
            (33, "StorageVersionMigrator", Some((FeatureStage::Alpha, false))),
            (29, "StorageVersionMigrator", None),
        ] {
            let gates = FeatureGates::of(Release { major: 1, minor });
            let found = gates.iter().find(|(known, ..)| *known == name);
            assert_eq!(found.map(|(_, gate, enabled)| (gate.stage, enabled)), want, "1.{minor}");
        }
        let mut names: Vec<&str> = TABLE.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        let rows = names.len();
        names.dedup();
        let together = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), together, "the rows of a gate stand together, {rows} of them");
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let release = Release { major: 1, minor: 36 };
        for (text, want) in [
            ("", Ok("")),
            ("StorageVersionMigrator=true", Ok("StorageVersionMigrator")),
            ("JobManagedBy=true", Ok("")),
            ("Foo=true", Err("unrecognized feature gate: Foo")),
            ("Foo", Err("missing bool value for Foo")),
            (
                "JobManagedBy=maybe",
                Err("invalid value of JobManagedBy=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax"),
            ),
            ("JobManagedBy=false", Err("cannot set feature gate JobManagedBy to false, feature is locked to true")),
        ] {
            let changed = FeatureGates::parse(text, release).map(|gates| gates.changed().collect::<Vec<_>>().join(","));
            assert_eq!(
                changed.map_err(|error| error.to_string()),
                want.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
        let gates = FeatureGates::parse("AllBeta=false,StorageVersionMigrator=true", release).expect("can be set");
        assert!(gates.is_enabled("StorageVersionMigrator"));
        let betas = gates.iter().filter(|(_, gate, enabled)| gate.stage == FeatureStage::Beta && *enabled).count();
        assert_eq!(betas, 1);
    }
}
