//! [`FeatureGates`]: what whoever runs a server of some release may switch on or off.
//!
//! The rows of `tables/feature_gates.csv` say from which release on a gate has which default and stage, and whether it
//! is locked to that default; those of `tables/feature_dependencies.csv`, which gates are of use only with others.

use std::collections::BTreeMap;

use crate::{EffectiveVersion, Release};

const TABLES: GateTables = GateTables {
    gates: include_str!("../tables/feature_gates.csv"),
    dependencies: include_str!("../tables/feature_dependencies.csv"),
};

/// The gate that speaks of all alpha features that are not named.
const ALL_ALPHA: &str = "AllAlpha";

/// The gate that speaks of all beta features that are not named.
const ALL_BETA: &str = "AllBeta";

/// The component that gates are meant for if none is named, and the only one there is.
const COMPONENT: &str = "kube";

/// What is known of gates.
#[derive(Clone, Copy)]
struct GateTables {
    gates: &'static str,
    dependencies: &'static str,
}

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

impl FeatureStage {
    /// The stage as metrics name it.
    pub const fn label(self) -> &'static str {
        match self {
            FeatureStage::Alpha => "ALPHA",
            FeatureStage::Beta => "BETA",
            FeatureStage::Ga => "",
            FeatureStage::Deprecated => "DEPRECATED",
        }
    }
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
    /// No release has such a gate.
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
    /// The gate of something that is not part of this program.
    #[error("component not registered: {0}")]
    Component(String),
    /// Some gates are named with their component and others without.
    #[error("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")]
    Mixed,
    /// The gate has one value only.
    #[error("cannot set feature gate {name} to {asked}, feature is locked to {}", !asked)]
    Locked {
        /// The gate.
        name: String,
        /// What it was set to.
        asked: bool,
    },
    /// The gate came with a later release.
    #[error(
        "cannot set feature gate {name} to {asked}, feature is PreAlpha at emulated version {}, min compatibility version {}",
        .version.emulation(), .version.min_compatibility()
    )]
    TooNew {
        /// The gate.
        name: String,
        /// What it was set to.
        asked: bool,
        /// What the server behaves as.
        version: EffectiveVersion,
    },
    /// An alpha feature of another release: nobody sees to it that it can be upgraded.
    #[error(
        "cannot set feature gate {name} to true, feature is alpha at emulated version {emulation}, and alpha features are not made to be upgraded; --allow-alpha-under-emulation allows it all the same"
    )]
    Alpha {
        /// The gate.
        name: String,
        /// What the server behaves as.
        emulation: Release,
    },
    /// Gates are on that are of no use without others that are off.
    #[error("{}", all(.0))]
    Dependencies(Vec<MissingDependency>),
}

/// A gate that is on, and of no use without others that are off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is enabled, but depends on features that are disabled: [{}]", .disabled.join(" "))]
pub struct MissingDependency {
    /// The gate.
    pub name: &'static str,
    /// What it depends on.
    pub disabled: Vec<&'static str>,
}

/// Errors as the original tells of several: in brackets, if there is more than one.
fn all(errors: &[MissingDependency]) -> String {
    match errors {
        [error] => error.to_string(),
        errors => format!("[{}]", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The gates of a release, and which of them are on.
///
/// ```
/// use revisor_version::{EffectiveVersion, FeatureGates, Release};
///
/// let version = EffectiveVersion::of(Release { major: 1, minor: 36 });
/// let gates = FeatureGates::parse(&["AllAlpha=true,StorageVersionMigrator=true"], version, false).unwrap();
/// assert!(gates.is_enabled("StorageVersionMigrator") && gates.is_enabled("GenericWorkload"));
/// let error = FeatureGates::parse(&["NoSuchThing=true"], version, false).unwrap_err();
/// assert_eq!(error.to_string(), "unrecognized feature gate: NoSuchThing");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureGates {
    gates: BTreeMap<&'static str, (FeatureGate, bool)>,
}

impl FeatureGates {
    /// The gates of a release as they are if nobody says anything.
    ///
    /// # Panics
    /// If the table is malformed: a fault of the program that its tests find.
    pub fn of(release: Release) -> FeatureGates {
        FeatureGates::in_tables(TABLES, release)
    }

    fn in_tables(tables: GateTables, release: Release) -> FeatureGates {
        let mut gates = BTreeMap::new();
        // Later rows of a gate are of later releases.
        for line in tables.gates.lines().skip(1) {
            let (name, since, gate) = read(line).unwrap_or_else(|| panic!("a malformed row: {line}"));
            if since <= release {
                gates.insert(name, (gate, gate.default));
            }
        }
        FeatureGates { gates }
    }

    /// Reads `NAME=BOOL` pairs, separated by commas, each of them perhaps with `kube:` before it; what comes later
    /// counts. `AllAlpha` and `AllBeta` speak of all that are not named. Alpha features of a release that is only
    /// emulated are refused unless `allow_alpha` is true.
    pub fn parse<T: AsRef<str>>(
        texts: &[T],
        version: EffectiveVersion,
        allow_alpha: bool,
    ) -> Result<FeatureGates, FeatureGateError> {
        FeatureGates::parse_in(TABLES, texts, version, allow_alpha)
    }

    fn parse_in<T: AsRef<str>>(
        tables: GateTables,
        texts: &[T],
        version: EffectiveVersion,
        allow_alpha: bool,
    ) -> Result<FeatureGates, FeatureGateError> {
        let mut gates = FeatureGates::in_tables(tables, version.emulation());
        let asked = read_pairs(texts)?;
        for (name, asked) in &asked {
            gates.set(tables, name, *asked, version)?;
            let is_alpha = gates.gates.get(name.as_str()).is_some_and(|(gate, _)| gate.stage == FeatureStage::Alpha);
            if is_alpha && *asked && version.is_emulated() && !allow_alpha {
                return Err(FeatureGateError::Alpha { name: name.clone(), emulation: version.emulation() });
            }
        }
        for (all, stage) in [(ALL_ALPHA, FeatureStage::Alpha), (ALL_BETA, FeatureStage::Beta)] {
            let Some(value) = asked.get(all) else { continue };
            for (name, (gate, enabled)) in &mut gates.gates {
                let is_meant = gate.stage == stage && ![ALL_ALPHA, ALL_BETA].contains(name);
                if is_meant && !gate.locked && !asked.contains_key(*name) {
                    *enabled = *value;
                }
            }
        }
        if !asked.is_empty() {
            gates.check_dependencies(tables)?;
        }
        Ok(gates)
    }

    fn set(
        &mut self,
        tables: GateTables,
        name: &str,
        asked: bool,
        version: EffectiveVersion,
    ) -> Result<(), FeatureGateError> {
        let name_of = || name.to_owned();
        let Some((gate, enabled)) = self.gates.get_mut(name) else {
            let comes_later = tables.gates.lines().skip(1).any(|line| line.split(',').next() == Some(name));
            return Err(match comes_later {
                true => FeatureGateError::TooNew { name: name_of(), asked, version },
                false => FeatureGateError::Unknown(name_of()),
            });
        };
        if gate.locked && asked != gate.default {
            return Err(FeatureGateError::Locked { name: name_of(), asked });
        }
        *enabled = asked;
        Ok(())
    }

    fn check_dependencies(&self, tables: GateTables) -> Result<(), FeatureGateError> {
        let rows = tables.dependencies.lines().skip(1).filter_map(|line| line.split_once(','));
        let mut disabled: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
        for (name, needed) in rows.filter(|(name, needed)| self.is_enabled(name) && !self.is_enabled(needed)) {
            disabled.entry(name).or_default().push(needed);
        }
        let missing: Vec<_> =
            disabled.into_iter().map(|(name, disabled)| MissingDependency { name, disabled }).collect();
        if missing.is_empty() { Ok(()) } else { Err(FeatureGateError::Dependencies(missing)) }
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

/// Who is set to what, as these texts say it.
fn read_pairs<T: AsRef<str>>(texts: &[T]) -> Result<BTreeMap<String, bool>, FeatureGateError> {
    let mut pairs = BTreeMap::new();
    let mut named_component = None;
    for pair in texts.iter().flat_map(|text| text.as_ref().split(',')).map(str::trim).filter(|pair| !pair.is_empty()) {
        let (component, pair) = match pair.split_once(':') {
            // An empty component is as good as none.
            Some((component, pair)) => (Some(component.trim()).filter(|component| !component.is_empty()), pair),
            None => (None, pair),
        };
        if let Some(other) = component.filter(|component| *component != COMPONENT) {
            return Err(FeatureGateError::Component(other.to_owned()));
        }
        if *named_component.get_or_insert(component.is_some()) != component.is_some() {
            return Err(FeatureGateError::Mixed);
        }
        let (name, value) = pair.split_once('=').ok_or_else(|| FeatureGateError::NoValue(pair.trim().to_owned()))?;
        let (name, value) = (name.trim(), value.trim());
        let asked = read_bool(value)
            .ok_or_else(|| FeatureGateError::NotABool { name: name.to_owned(), value: value.to_owned() })?;
        pairs.insert(name.to_owned(), asked);
    }
    Ok(pairs)
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

    const fn release(minor: u16) -> Release {
        Release { major: 1, minor }
    }

    fn behaving_as(minor: u16) -> EffectiveVersion {
        EffectiveVersion::parse(release(36), &[release(minor).to_string()], &[]).expect("can be reached")
    }

    #[test]
    fn gates_are_as_their_release_has_them() {
        for (minor, name, want) in [
            (36, "StorageVersionMigrator", Some((FeatureStage::Beta, false))),
            (33, "StorageVersionMigrator", Some((FeatureStage::Alpha, false))),
            (29, "StorageVersionMigrator", None),
        ] {
            let gates = FeatureGates::of(release(minor));
            let found = gates.iter().find(|(known, ..)| *known == name);
            assert_eq!(found.map(|(_, gate, enabled)| (gate.stage, enabled)), want, "1.{minor}");
        }
        let mut names: Vec<&str> = TABLES.gates.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        let rows = names.len();
        names.dedup();
        let together = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), together, "the rows of a gate stand together, {rows} of them");
        for (name, needed) in TABLES.dependencies.lines().skip(1).filter_map(|line| line.split_once(',')) {
            assert!(names.contains(&name) && names.contains(&needed), "{name} needs {needed}");
        }
    }

    #[test]
    fn what_a_release_has_on_by_itself_depends_on_nothing_that_is_off() {
        for minor in 33..=36 {
            let gates = FeatureGates::of(release(minor));
            assert_eq!(gates.check_dependencies(TABLES), Ok(()), "1.{minor}");
        }
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        for (minor, text, want) in [
            (36, "", Ok("")),
            (36, "StorageVersionMigrator=true", Ok("StorageVersionMigrator")),
            (36, "kube:StorageVersionMigrator=true", Ok("StorageVersionMigrator")),
            (36, ":StorageVersionMigrator=true", Ok("StorageVersionMigrator")),
            (36, "JobManagedBy=true", Ok("")),
            (36, "Foo=true", Err("unrecognized feature gate: Foo")),
            (36, "Foo", Err("missing bool value for Foo")),
            (
                36,
                "JobManagedBy=maybe",
                Err("invalid value of JobManagedBy=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax"),
            ),
            (36, "JobManagedBy=false", Err("cannot set feature gate JobManagedBy to false, feature is locked to true")),
            (34, "JobManagedBy=false", Ok("JobManagedBy")),
            (36, "wardle:WatchList=true", Err("component not registered: wardle")),
            (
                36,
                "kube:WatchList=true,JobManagedBy=true",
                Err("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"),
            ),
            (
                34,
                "ConstrainedImpersonation=false",
                Err(
                    "cannot set feature gate ConstrainedImpersonation to false, feature is PreAlpha at emulated version 1.34, min compatibility version 1.33",
                ),
            ),
            (
                36,
                "DRADeviceTaints=false,DRADeviceTaintRules=true",
                Err("DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]"),
            ),
            (
                36,
                "DRAResourceClaimDeviceStatus=false",
                Err(
                    "[DRADeviceBindingConditions is enabled, but depends on features that are disabled: [DRAResourceClaimDeviceStatus], DRAResourceClaimGranularStatusAuthorization is enabled, but depends on features that are disabled: [DRAResourceClaimDeviceStatus]]",
                ),
            ),
        ] {
            let gates = FeatureGates::parse(&[text], behaving_as(minor), false);
            let changed = gates.map(|gates| gates.changed().collect::<Vec<_>>().join(","));
            assert_eq!(
                changed.map_err(|error| error.to_string()),
                want.map(str::to_owned).map_err(str::to_owned),
                "{text} at 1.{minor}"
            );
        }
    }

    #[test]
    fn gates_of_a_stage_are_set_together_but_for_those_that_are_named() {
        let texts = ["AllBeta=false", "StorageVersionMigrator=true"];
        let gates = FeatureGates::parse(&texts, behaving_as(36), false).expect("can be set");
        assert!(gates.is_enabled("StorageVersionMigrator"));
        let betas = gates.iter().filter(|(_, gate, enabled)| gate.stage == FeatureStage::Beta && *enabled).count();
        assert_eq!(betas, 1);
    }

    #[test]
    fn alpha_features_of_another_release_need_permission() {
        for text in ["GenericWorkload=true", "AllAlpha=true"] {
            assert!(FeatureGates::parse(&[text], behaving_as(36), false).is_ok(), "{text}");
        }
        for text in ["HPAConfigurableTolerance=true", "AllAlpha=true"] {
            let error = FeatureGates::parse(&[text], behaving_as(34), false).expect_err("is refused");
            assert!(error.to_string().contains("--allow-alpha-under-emulation"), "{error}");
            assert!(FeatureGates::parse(&[text], behaving_as(34), true).is_ok(), "{text}");
        }
        assert!(FeatureGates::parse(&["HPAConfigurableTolerance=false"], behaving_as(34), false).is_ok());
    }

    #[test]
    fn a_new_release_is_new_rows() {
        let tables = GateTables {
            gates: "feature,version,default,stage,locked_to_default\n\
                    Old,1.30,false,Alpha,false\nOld,1.37,true,Beta,false\nNew,1.37,false,Alpha,false\n",
            dependencies: "feature,needs\nNew,Old\n",
        };
        let of = |emulation: &str, text| {
            let version = EffectiveVersion::parse(release(37), &[emulation], &[]).expect("can be reached");
            FeatureGates::parse_in(tables, &[text], version, false).map(|gates| gates.is_enabled("Old"))
        };
        assert_eq!(of("1.36", ""), Ok(false));
        assert_eq!(of("1.37", "New=true"), Ok(true));
        assert!(matches!(of("1.36", "New=true"), Err(FeatureGateError::TooNew { .. })));
        assert!(matches!(of("1.37", "New=true,Old=false"), Err(FeatureGateError::Dependencies(_))));
    }
}
