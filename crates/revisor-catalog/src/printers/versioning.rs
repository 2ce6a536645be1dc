//! Reports on the versions of custom resources.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{age, name, number, objects, or, text, texts, truth};
use crate::Moment;

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
