//! Conversions between the versions of custom resources, and reports on these.

use revisor_object::{Object, Seen, Value};

use super::cells;
use super::fields::{age, name, number, objects, or, text, texts, truth};
use crate::Moment;

pub(super) fn conversion(conversion: &Object, now: Moment) -> Vec<Value> {
    let steps = objects(conversion, "spec.steps").flat_map(|step| [text(step, "from"), text(step, "to")]);
    let canonical = objects(conversion, "spec.canonicalize").map(|entry| text(entry, "version"));
    let mut seen = Seen::default();
    let versions: Vec<&str> = steps.chain(canonical).filter(|version| seen.is_new(*version)).collect();
    // Of several the one that says least.
    let verdicts: Vec<&str> = objects(conversion, "status.steps").map(|step| text(step, "verdict")).collect();
    let verdict = ["Tolerated", "Tested", "Proved"].into_iter().find(|verdict| verdicts.contains(verdict));
    let in_use = objects(conversion, "status.conditions").find(|condition| text(condition, "type") == "InUse");
    cells![
        name(conversion),
        or(&versions.join(","), "<none>"),
        verdict.unwrap_or("<none>"),
        in_use.map_or("Unknown", |condition| text(condition, "status")),
        age(conversion, now),
    ]
}

pub(super) fn version_report(report: &Object, now: Moment) -> Vec<Value> {
    let versions = || objects(report, "status.versions");
    let stored: Vec<String> = versions()
        .filter(|version| number(version, "objects") > 0)
        .map(|version| format!("{}:{}", text(version, "name"), number(version, "objects")))
        .collect();
    let served: Vec<&str> =
        versions().filter(|version| truth(version, "served")).map(|version| text(version, "name")).collect();
    cells![
        name(report),
        or(text(report, "status.storageVersion"), "<none>"),
        or(&stored.join(","), "<none>"),
        or(&served.join(","), "<none>"),
        or(&texts(report, "status.droppableVersions").join(","), "<none>"),
        age(report, now),
    ]
}
