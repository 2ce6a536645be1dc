//! Paths of fields in sources, held against the table of fields: `object.at(&["spec", "nodeNam"])` compiles, and finds
//! nothing for ever.
//!
//! A path is right if some type of the table leads along it. Where it begins is not known, so a path that is right for
//! one kind passes for all: what is found are names that exist nowhere, or not below each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Source};

/// The table, relative to the root.
pub(super) const TABLE: &str = "crates/revisor-catalog/tables/fields.csv";

/// Crates that know no kinds: what they call fields is made up.
const WITHOUT_KINDS: [&str; 3] = ["crates/revisor-object/", "crates/revisor-schema/", "xtask/"];

/// Functions whose argument is a path, wherever it begins.
const LOOKUPS: [&str; 2] = ["at", "at_mut"];

/// Fields that a path begins with at the top of an object. Such a list is a path whoever takes it.
const TOPS: [&str; 3] = ["spec", "status", "metadata"];

/// What has fields of any name.
const ANYTHING: [&str; 2] = ["raw", "any"];

/// Finds the paths that no type has.
pub(super) fn check(table: &str, sources: &[Source]) -> Vec<Finding> {
    let fields = Fields::read(table);
    let is_checked = |source: &&Source| !WITHOUT_KINDS.iter().any(|without| source.path.starts_with(without));
    sources.iter().filter(is_checked).flat_map(|source| check_file(&fields, source)).collect()
}

fn check_file(fields: &Fields<'_>, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, _) in source.text.match_indices("(&[") {
        let Some((path, _)) = source.text[at + "(&[".len()..].split_once(']') else { continue };
        let names: Vec<Name<'_>> =
            path.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Name::of).collect();
        let Some(Name::Written(first)) = names.first() else { continue };
        let is_path = TOPS.contains(first) || LOOKUPS.contains(&function_before(&source.text[..at]));
        if is_path && !fields.lead_along(&names) {
            let line = source.text[..at].lines().count();
            let message = format!("no type has the fields {}: they are in {TABLE}", path.trim());
            findings.push(Finding::at(&source.path, line, message));
        }
    }
    findings
}

/// The name of the function whose arguments begin after this text.
fn function_before(text: &str) -> &str {
    let begin = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    &text[begin..]
}

/// An element of a path.
#[derive(Clone, Copy)]
enum Name<'t> {
    Written(&'t str),
    /// A constant or a variable: any name.
    Unknown,
}

impl<'t> Name<'t> {
    fn of(element: &'t str) -> Name<'t> {
        let written = element.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        written.map_or(Name::Unknown, Name::Written)
    }

    fn may_be(self, field: &str) -> bool {
        match self {
            Name::Written(name) => name == field,
            Name::Unknown => true,
        }
    }
}

/// The shapes of fields, by type.
struct Fields<'t>(BTreeMap<&'t str, Vec<(&'t str, &'t str)>>);

impl<'t> Fields<'t> {
    fn read(table: &'t str) -> Fields<'t> {
        let mut types: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for row in table.lines().skip(1) {
            let mut cells = row.split(',');
            if let (Some(kind), Some(field), Some(shape)) = (cells.next(), cells.next(), cells.next()) {
                types.entry(kind).or_default().push((field, shape));
            }
        }
        Fields(types)
    }

    /// Whether some type has such a field, whose type has the next one, and so on.
    fn lead_along(&self, path: &[Name<'_>]) -> bool {
        let Some((first, rest)) = path.split_first() else { return true };
        let fields = self.0.values().flatten();
        let mut shapes: BTreeSet<&str> =
            fields.filter(|(field, _)| first.may_be(field)).map(|(_, shape)| *shape).collect();
        for name in rest {
            if shapes.iter().any(|shape| ANYTHING.contains(shape)) {
                return true;
            }
            shapes = shapes.iter().flat_map(|shape| self.below(shape, *name)).collect();
        }
        !shapes.is_empty()
    }

    /// The shapes of what is called so in something of this shape. Lists have no names in them.
    fn below(&self, shape: &'t str, name: Name<'_>) -> Vec<&'t str> {
        let below = match shape.split_once(':') {
            Some(("map", values)) => return vec![values],
            Some(("list", _)) => return Vec::new(),
            // A type that may be written in another way, too.
            Some((_, kind)) => kind,
            None => shape,
        };
        let fields = self.0.get(below).map_or(&[][..], Vec::as_slice);
        fields.iter().filter(|(field, _)| name.may_be(field)).map(|(_, shape)| *shape).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "type,field,shape,presence\n\
        core.v1.Pod,metadata,meta.v1.ObjectMeta,always\n\
        core.v1.Pod,spec,core.v1.PodSpec,always\n\
        core.v1.PodSpec,nodeName,string,nonzero\n\
        core.v1.PodSpec,containers,list:core.v1.Container,nonzero\n\
        core.v1.Container,name,string,always\n\
        meta.v1.ObjectMeta,labels,map:string,nonzero\n\
        apps.v1.ControllerRevision,data,raw,nonzero\n";

    #[test]
    fn a_path_that_no_type_has_is_found() {
        for (line, want) in [
            (r#"object.at(&["spec", "nodeName"])"#, 0),
            (r#"object.at(&["spec", "nodeNam"])"#, 1),
            (r#"object.at_mut(&["nodeName", "spec"])"#, 1),
            (r#"pod.at(&["containers", "name"])"#, 1),
            (r#"object.at(&["metadata", "labels", "app.example/name"])"#, 0),
            (r#"object.at(&["metadata", "labels", APP])"#, 0),
            (r#"object.at(&["metadata", PART])"#, 0),
            (r#"object.at(&["data", "whatever", "it", "says"])"#, 0),
            (r#"text(&["spec", "nodeNam"])"#, 1),
            (r#"text(&["kube", "apiserver"])"#, 0),
            (r#"object.at(&path)"#, 0),
            ("object.at(&[\n    \"spec\",\n    \"hostName\",\n])", 1),
        ] {
            let source = |path: &str| Source { path: path.into(), text: format!("//! A.\n{line}\n") };
            let findings = check(FIELDS, &[source("crates/revisor-registry/src/a.rs")]);
            assert_eq!(findings.len(), want, "{line}: {findings:?}");
            assert!(findings.iter().all(|finding| finding.place.ends_with(":2")), "{findings:?}");
            assert_eq!(check(FIELDS, &[source("crates/revisor-object/src/a.rs")]), []);
        }
    }
}
