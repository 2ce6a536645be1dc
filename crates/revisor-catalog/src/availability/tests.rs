//! What is served at each release, cell by cell against what the releases themselves showed (`releases.csv`: every
//! resource of every named group with everything switched on), and by which rules.

use std::collections::BTreeSet;

use revisor_version::{EffectiveVersion, FeatureGates, Release};

use super::*;
use crate::kinds;
use crate::rows::{FIELDS, RESOURCES, rows};
use crate::{BINARY, Catalog};

const RELEASES: &str = include_str!("releases.csv");

/// Cells in which this program differs from the release: resources whose types newer releases no longer have, so that
/// nothing newer can behave as if it had them, and what came to a resource that was there before.
const DIFFERENCES: &[(&str, &[&str])] = &[
    (
        "1.33",
        &[
            "+resource.k8s.io/v1alpha3/devicetaintrules/status",
            "-resource.k8s.io/v1alpha3/deviceclasses",
            "-resource.k8s.io/v1alpha3/resourceclaims",
            "-resource.k8s.io/v1alpha3/resourceclaims/status",
            "-resource.k8s.io/v1alpha3/resourceclaimtemplates",
            "-resource.k8s.io/v1alpha3/resourceslices",
        ],
    ),
    (
        "1.34",
        &[
            "+resource.k8s.io/v1alpha3/devicetaintrules/status",
            "-certificates.k8s.io/v1alpha1/podcertificaterequests",
            "-certificates.k8s.io/v1alpha1/podcertificaterequests/status",
        ],
    ),
    (
        "1.35",
        &[
            "+scheduling.k8s.io/v1alpha2/podgroups",
            "+scheduling.k8s.io/v1alpha2/podgroups/status",
            "+scheduling.k8s.io/v1alpha2/workloads",
            "-scheduling.k8s.io/v1alpha1/workloads",
        ],
    ),
    ("1.36", &[]),
];

fn behaving_as(emulation: &str, min_compatibility: &[&str]) -> EffectiveVersion {
    EffectiveVersion::parse(BINARY, &[emulation], min_compatibility).expect("can be reached")
}

/// The options of a server that behaves as this release.
fn options(emulation: &str, runtime_config: &str) -> CatalogOptions {
    let version = behaving_as(emulation, &[]);
    CatalogOptions {
        version,
        gates: FeatureGates::of(version.emulation()),
        runtime_config: Catalog::read_runtime_config(runtime_config).expect("is known"),
        ..CatalogOptions::default()
    }
}

fn everything(emulation: &str) -> CatalogOptions {
    let options = options(emulation, "api/all=true");
    let gates = FeatureGates::parse(&["AllAlpha=true,AllBeta=true"], options.version, true).expect("both are known");
    CatalogOptions { gates, allow_alpha: true, ..options }
}

/// `GROUP/VERSION/RESOURCE` of everything in named groups, subresources too.
fn shown(options: &CatalogOptions) -> BTreeSet<String> {
    let catalog = Catalog::build(options).expect("there is all of it");
    let named = catalog.resources().filter(|resource| !resource.group.is_empty());
    named
        .flat_map(|resource| {
            let name = format!("{}/{}", resource.api_version, resource.plural);
            let parts = resource.subresources.iter().map(|part| format!("{name}/{}", part.name)).collect::<Vec<_>>();
            parts.into_iter().chain([name])
        })
        .collect()
}

/// The same as a release showed it.
fn facts(release: &str) -> BTreeSet<String> {
    let mut lines = RELEASES.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("there is a header");
    let column = header.iter().position(|name| *name == release).expect("the release has a column");
    lines.filter(|cells| cells[column] == "yes").map(|cells| cells[..3].join("/")).collect()
}

#[test]
fn with_everything_switched_on_each_release_shows_what_it_showed() {
    for (release, differences) in DIFFERENCES {
        let (shown, facts) = (shown(&everything(release)), facts(release));
        let found: Vec<String> = (shown.difference(&facts).map(|name| format!("+{name}")))
            .chain(facts.difference(&shown).map(|name| format!("-{name}")))
            .collect();
        assert_eq!(found, *differences, "{release}");
    }
}

#[test]
fn by_default_each_release_shows_its_stable_versions() {
    let is_stable = |name: &String| !name.contains("beta") && !name.contains("alpha");
    for (release, _) in DIFFERENCES {
        let stable: BTreeSet<String> = facts(release).into_iter().filter(is_stable).collect();
        assert_eq!(shown(&options(release, "")), stable, "{release}");
    }
}

#[test]
fn betas_are_served_on_request_as_they_were_then() {
    let is_alpha = |name: &String| name.contains("alpha");
    for (release, _) in DIFFERENCES {
        let config = options(release, "api/beta=true");
        let gates = FeatureGates::parse(&["AllBeta=true"], config.version, false).expect("is known");
        let betas: BTreeSet<String> = facts(release).into_iter().filter(|name| !is_alpha(name)).collect();
        // What is only there with an alpha feature is not there now.
        let shown = shown(&CatalogOptions { gates, ..config });
        let missing: Vec<&String> = betas.difference(&shown).collect();
        assert_eq!((missing, shown.difference(&betas).count()), (Vec::new(), 0), "{release}");
    }
}

#[test]
fn alpha_versions_of_another_release_need_permission() {
    for config in ["api/alpha=true", "resource.k8s.io/v1alpha3=true", "resource.k8s.io/v1alpha3/devicetaintrules"] {
        let error = Catalog::build(&options("1.34", config)).expect_err("is refused");
        assert!(matches!(error, CatalogError::Alpha { .. }), "{config}: {error}");
        let allowed = CatalogOptions { allow_alpha: true, ..options("1.34", config) };
        assert!(shown(&allowed).contains("resource.k8s.io/v1alpha3/devicetaintrules"), "{config}");
        assert!(Catalog::build(&options("1.36", config)).is_ok(), "{config}");
    }
    assert!(!shown(&options("1.34", "api/all=true")).iter().any(|name| name.contains("alpha")));
}

#[test]
fn better_versions_come_along_as_the_rules_say() {
    for (config, forward, named_forward, want) in [
        ("", false, false, Ok("")),
        // What is not enabled brings nothing along.
        ("", true, false, Ok("")),
        ("resource.k8s.io/v1beta1=true", false, false, Ok("v1beta1")),
        ("resource.k8s.io/v1beta1=true", true, false, Ok("v1 v1beta1 v1beta2")),
        ("resource.k8s.io/v1beta2=true", true, false, Ok("v1 v1beta2")),
        ("resource.k8s.io/v1beta1/deviceclasses=true", true, false, Ok("v1 v1beta1 v1beta2")),
        ("resource.k8s.io/v1beta1=true,resource.k8s.io/v1=false", true, false, Ok("v1beta1 v1beta2")),
        ("resource.k8s.io/v1=true", false, true, Ok("v1")),
        ("resource.k8s.io/v1/deviceclasses=true", false, true, Ok("v1")),
        ("resource.k8s.io/v1=true", false, false, Err("cannot enable version resource.k8s.io/v1 in runtime-config")),
        (
            "resource.k8s.io/v1/deviceclasses=true",
            false,
            false,
            Err(
                "cannot enable resource resource.k8s.io/v1, Resource=deviceclasses in runtime-config because it is introduced at 1.34 after the current version 1.33",
            ),
        ),
        // Keys that speak of many bring nothing of later releases.
        ("api/ga=true", false, true, Ok("")),
    ] {
        let options = CatalogOptions {
            emulation_forward_compatible: forward,
            runtime_config_forward_compatible: named_forward,
            ..options("1.33", config)
        };
        let found = Catalog::build(&options).map(|catalog| {
            let versions = catalog.resources().filter(|resource| resource.plural == "deviceclasses");
            versions.map(|resource| resource.version.to_string()).collect::<BTreeSet<_>>()
        });
        match (found, want) {
            (Ok(found), Ok(want)) => assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), want, "{config}"),
            (Err(error), Err(want)) => assert!(error.to_string().starts_with(want), "{config}: {error}"),
            (found, want) => panic!("{config}: {found:?}, not {want:?}"),
        }
    }
    // Alpha brings nothing along, and is not brought.
    let alpha = CatalogOptions {
        emulation_forward_compatible: true,
        allow_alpha: true,
        ..options("1.33", "admissionregistration.k8s.io/v1alpha1=true")
    };
    let policies: Vec<String> =
        shown(&alpha).into_iter().filter(|name| name.ends_with("mutatingadmissionpolicies")).collect();
    assert_eq!(policies, ["admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicies"]);
}

#[test]
fn newer_versions_can_only_be_asked_for_where_there_are_any() {
    for (forward, named_forward, want) in
        [(true, false, "EmulationForwardCompatible"), (false, true, "RuntimeConfigEmulationForwardCompatible")]
    {
        let options = CatalogOptions {
            emulation_forward_compatible: forward,
            runtime_config_forward_compatible: named_forward,
            ..CatalogOptions::default()
        };
        let error = Catalog::build(&options).expect_err("is refused").to_string();
        assert!(error.starts_with(&format!("{want} cannot be set to true")), "{error}");
    }
}

/// Every pair of a release to behave as and one to be compatible with.
fn pairs() -> Vec<EffectiveVersion> {
    let reachable = || EffectiveVersion::reachable(BINARY);
    let pair = |emulation: Release, least: Release| {
        EffectiveVersion::parse(BINARY, &[emulation.to_string()], &[least.to_string()]).ok()
    };
    reachable().flat_map(|emulation| reachable().filter_map(move |least| pair(emulation, least))).collect()
}

/// V2: what is stored can be read by every release from the oldest that counts.
#[test]
fn objects_are_stored_as_all_releases_that_count_can_read_them() {
    let rows: Vec<Row> = rows(RESOURCES).collect();
    let pairs = pairs();
    assert_eq!(pairs.len(), 10);
    for version in pairs {
        for row in &rows {
            let stored = storage(row, &rows, version);
            let is_gone = |other: &Row| {
                other.api.stability() == Stability::Alpha
                    && other.removed.is_some_and(|removed| removed <= version.emulation())
            };
            let readable = |other: &&Row| {
                (other.group, other.plural) == (row.group, row.plural)
                    && other.introduced <= version.min_compatibility()
                    && !is_gone(other)
            };
            let best = rows.iter().filter(readable).map(|other| &other.api).max();
            assert!(best.is_none_or(|best| *best == stored.api), "{} of {} at {version}", row.plural, row.group);
        }
    }
    for (emulation, least, group, resource, want) in [
        ("1.36", None, "storage.k8s.io", "volumeattributesclasses", "v1"),
        ("1.36", Some("1.33"), "storage.k8s.io", "volumeattributesclasses", "v1beta1"),
        ("1.34", None, "storage.k8s.io", "volumeattributesclasses", "v1beta1"),
        ("1.36", None, "resource.k8s.io", "resourceclaims", "v1"),
        ("1.34", None, "resource.k8s.io", "resourceclaims", "v1beta2"),
        ("1.36", None, "admissionregistration.k8s.io", "mutatingadmissionpolicies", "v1beta1"),
        ("1.36", Some("1.36"), "admissionregistration.k8s.io", "mutatingadmissionpolicies", "v1"),
        ("1.33", None, "admissionregistration.k8s.io", "mutatingadmissionpolicies", "v1alpha1"),
        ("1.33", None, "apps", "deployments", "v1"),
        // The first version is gone with 1.35, which cannot read it.
        ("1.34", None, "storagemigration.k8s.io", "storageversionmigrations", "v1alpha1"),
        ("1.35", None, "storagemigration.k8s.io", "storageversionmigrations", "v1beta1"),
        ("1.36", Some("1.33"), "storagemigration.k8s.io", "storageversionmigrations", "v1beta1"),
        // The oldest release does not know these at all.
        ("1.36", Some("1.33"), "certificates.k8s.io", "podcertificaterequests", "v1beta1"),
    ] {
        let version = behaving_as(emulation, least.as_slice());
        let catalog =
            Catalog::build(&CatalogOptions { version, ..options(emulation, "") }).expect("there is all of it");
        let stored = catalog.storage_versions();
        let found = stored.iter().find(|stored| (stored.group, stored.resource) == (group, resource));
        let want = format!("{group}/{want}");
        assert_eq!(found.map(|found| found.api_version.as_str()), Some(&*want), "{resource} at {version}");
    }
}

/// Only then can a stored object be read as another version without being converted.
#[test]
fn whatever_the_releases_objects_of_a_resource_are_stored_in_one_shape() {
    let rows: Vec<Row> = rows(RESOURCES).collect();
    for version in pairs() {
        for row in rows.iter().filter(|row| kinds::stored_as(row.group, row.plural).is_none()) {
            let stored = storage(row, &rows, version);
            let conversion = kinds::conversion(stored.group, stored.version, stored.plural);
            // Nobody promises to read what was alpha; this server does, and converts it.
            let is_first = stored.api.stability() == Stability::Alpha && stored.removed.is_some();
            assert!(conversion.is_none() || is_first, "{} at {version}", stored.plural);
        }
    }
}

#[test]
fn a_new_release_is_new_rows() {
    const NEXT: Release = Release { major: 1, minor: 37 };
    let gone = "storage.k8s.io,v1beta1,volumeattributesclasses,";
    let better = "coordination.k8s.io,v1,leasecandidates,LeaseCandidate,leasecandidate,,,yes,usual,,1.37,,,,\n";
    let table: &'static str = format!("{}{better}", RESOURCES.trim_end().to_owned() + "\n").leak();
    let fields = format!("{}coordination.v1.LeaseCandidate,metadata,meta.v1.ObjectMeta,always,1,,,,\n", FIELDS);
    let catalog = |emulation: &str, config: &str| {
        let version = EffectiveVersion::parse(NEXT, &[emulation], &[]).expect("can be reached");
        let gates = FeatureGates::of(version.emulation());
        Catalog::in_tables(table, &fields, &CatalogOptions { version, gates, ..options("1.36", config) })
            .expect("there is all of it")
    };
    assert!(RESOURCES.contains(gone));
    let (next, before) = (catalog("1.37", "api/beta=true"), catalog("1.36", "api/beta=true"));
    for (catalog, is_next) in [(&next, true), (&before, false)] {
        let has = |group, version, plural| catalog.resource(group, version, plural).is_some();
        assert_eq!(has("storage.k8s.io", "v1beta1", "volumeattributesclasses"), !is_next, "goes with 1.37");
        assert_eq!(has("coordination.k8s.io", "v1", "leasecandidates"), is_next, "comes with 1.37");
        assert!(has("coordination.k8s.io", "v1beta1", "leasecandidates"));
        // Until nobody goes back to 1.36, what 1.36 can read is stored.
        let stored = catalog.storage_versions().iter().find(|stored| stored.resource == "leasecandidates");
        assert_eq!(stored.map(|stored| stored.api_version.as_str()), Some("coordination.k8s.io/v1beta1"));
    }
    let notice = before
        .resource("coordination.k8s.io", "v1beta1", "leasecandidates")
        .and_then(|found| found.deprecation.clone());
    assert!(notice.is_some(), "who behaves as the release before is told all the same");
}
