//! Versions beside each other: what is written through one that is served is read through another. Without rules or a
//! webhook objects are shown by name, and lose what the other version does not have.

use revisor_convert::{Conversion, Effort as LawEffort, version_order};

use crate::budget::Budget;
use crate::crd::{Crd, Version};
use crate::walk::{self, Beside};
use crate::{Class, Effort, Finding};

/// What the versions of the new definition do to each other that those of the old one did not.
pub(crate) fn compare(
    old: &Crd,
    new: &Crd,
    conversion: Option<&Conversion>,
    effort: Effort,
    budget: &Budget,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(conversion) = conversion {
        findings.extend(broken_laws(new, conversion));
    }
    let mut is_left_to_webhook = false;
    for (one, other) in pairs(new) {
        if one.structural == other.structural {
            continue;
        }
        if new.converts_by_webhook() {
            is_left_to_webhook = true;
            continue;
        }
        if conversion.is_some_and(|conversion| conversion.connects(&one.name, &other.name)) {
            continue;
        }
        let before = old.version(&one.name).zip(old.version(&other.name)).filter(|_| !old.converts_by_webhook());
        let before = before.filter(|(one, other)| one.is_served && other.is_served);
        let is_same = before.is_some_and(|(old_one, old_other)| {
            old_one.structural == one.structural && old_other.structural == other.structural
        });
        if is_same {
            continue;
        }
        // What the definitions have in common was known, and need not be found in either.
        let (here, there) = ([one, other], before.map(|(one, other)| [one, other]));
        let known = there.map(|there| of_pair(old, there, Some(here), effort, budget)).unwrap_or_default();
        let mut found = of_pair(new, here, there, effort, budget);
        found.retain(|finding| !known.iter().any(|known| (&known.path, known.class) == (&finding.path, finding.class)));
        findings.extend(found);
    }
    for finding in storage_losses(old, new, conversion, effort, budget) {
        let is_told = findings.iter().any(|known| (&known.path, &known.version) == (&finding.path, &finding.version));
        if !is_told {
            findings.push(finding);
        }
    }
    if is_left_to_webhook {
        let message = "versions differ, and a webhook converts between them: whether it carries everything over is not \
                       checked here";
        findings.push(new.finding(None, "spec.conversion.webhook", Class::Additive, message.to_owned()));
    }
    findings
}

/// Each two versions that are served, the older one first.
fn pairs(crd: &Crd) -> Vec<(&Version, &Version)> {
    let mut served: Vec<&Version> = crd.versions.iter().filter(|version| version.is_served).collect();
    served.sort_by_key(|version| version_order(&version.name));
    let behind = |at: usize| served[at + 1..].iter().copied();
    (0..served.len()).flat_map(|at| behind(at).map(|other| (served[at], other)).collect::<Vec<_>>()).collect()
}

fn of_pair(
    crd: &Crd,
    [one, other]: [&Version; 2],
    beside: Option<[&Version; 2]>,
    effort: Effort,
    budget: &Budget,
) -> Vec<Finding> {
    let of_pair = Some(format!("{} as {} shows it", one.name, other.name));
    let beside = beside.map(|there| Beside::new([one, other], there));
    let scene = walk::Scene { crd, old: one, new: other, conversion: None, effort, budget, of_pair, beside };
    walk::compare(&scene)
}

/// What versions can no longer say because objects are stored in a version that cannot.
fn storage_losses(
    old: &Crd,
    new: &Crd,
    conversion: Option<&Conversion>,
    effort: Effort,
    budget: &Budget,
) -> Vec<Finding> {
    let storage = |crd: &'_ Crd| crd.versions.iter().position(|version| version.is_storage);
    let (Some(before), Some(after)) = (storage(old), storage(new)) else { return Vec::new() };
    let (before, after) = (&old.versions[before], &new.versions[after]);
    let mut findings = Vec::new();
    for version in new.versions.iter().filter(|version| version.is_served && version.name != after.name) {
        let Some(known) = old.version(&version.name).filter(|known| known.is_served) else { continue };
        let is_carried = conversion.is_some_and(|conversion| conversion.connects(&version.name, &after.name));
        let is_same = before.name == after.name
            && before.structural == after.structural
            && known.structural == version.structural;
        if is_same || is_carried || new.converts_by_webhook() {
            continue;
        }
        let is_stored = known.name == before.name || old.converts_by_webhook();
        let (here, there) = ([version, after], (!is_stored).then_some([known, before]));
        let lost_anyway = there.map(|there| losses(old, there, Some(here), effort, budget)).unwrap_or_default();
        let mut found = losses(new, here, there, effort, budget);
        found.retain(|finding| !lost_anyway.iter().any(|known| known.path == finding.path));
        findings.extend(found);
    }
    findings
}

/// The fields of a version that are gone once an object was stored in another one.
fn losses(
    crd: &Crd,
    [version, storage]: [&Version; 2],
    beside: Option<[&Version; 2]>,
    effort: Effort,
    budget: &Budget,
) -> Vec<Finding> {
    let of_pair = Some(format!("{} once it is stored in {}", version.name, storage.name));
    let beside = beside.map(|there| Beside::new([version, storage], there));
    let scene = walk::Scene { crd, old: version, new: storage, conversion: None, effort, budget, of_pair, beside };
    let mut found = walk::compare(&scene);
    found.retain(|finding| finding.class == Class::BreaksReaders && scene.is_lost(finding));
    found
}

/// What a Conversion breaks by itself.
fn broken_laws(crd: &Crd, conversion: &Conversion) -> Vec<Finding> {
    let report = conversion.check(LawEffort::default());
    let told = report.broken.iter().map(|broken| {
        let message = format!("the Conversion breaks {}: {}", broken.law, broken.detail);
        let mut finding = crd.finding(None, &broken.field, Class::BreaksReaders, message);
        finding.witness = Some(broken.object.clone());
        finding
    });
    told.collect()
}
