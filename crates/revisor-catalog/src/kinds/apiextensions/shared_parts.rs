//! [`SharedParts`]: the spec of a definition, in which parts that all versions have in common stand once. The original
//! moves them to places of their own before it validates, and clients see those places in the paths of errors.

use revisor_object::{Object, Value};

use crate::kinds::members::{NONE, objects, part};

/// The parts of versions that may be moved.
const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

/// The spec of a definition.
pub(super) struct SharedParts<'a> {
    pub(super) spec: &'a Object,
    /// Which parts all versions have in common.
    pub(super) shared: Vec<&'static str>,
}

impl<'a> SharedParts<'a> {
    pub(super) fn of(definition: &'a Object) -> SharedParts<'a> {
        let spec = definition.object("spec").unwrap_or(NONE);
        let mut versions = objects(spec, "versions").map(|(_, version)| version);
        let first = versions.next();
        let rest: Vec<&Object> = versions.collect();
        let is_shared = |name: &&str| {
            let in_first = first.and_then(|first| first.get(name));
            first.is_some() && rest.iter().all(|version| version.get(name) == in_first)
        };
        SharedParts { spec, shared: PARTS.into_iter().filter(is_shared).collect() }
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = (usize, &'a Object)> + use<'a> {
        objects(self.spec, "versions")
    }

    /// A part that all versions have in common.
    pub(super) fn common(&self, name: &str) -> Option<&'a Value> {
        let (_, first) = self.versions().next().filter(|_| self.shared.contains(&name))?;
        first.get(name)
    }

    /// A part of a version that not all versions have in common.
    pub(super) fn own(&self, version: &'a Object, name: &str) -> Option<&'a Value> {
        version.get(name).filter(|_| !self.shared.contains(&name))
    }

    /// Whether the writes of a version keep their status apart.
    pub(super) fn has_status(version: &Object) -> bool {
        part(version, "subresources").contains("status")
    }

    /// All schemas, those in common once.
    pub(super) fn schemas(&self) -> Vec<&'a Object> {
        match self.shared.contains(&"schema") {
            true => schema(self.common("schema")).into_iter().collect(),
            false => self.versions().filter_map(|(_, version)| schema(version.get("schema"))).collect(),
        }
    }
}

/// The schema itself in the part of a version that holds it.
pub(super) fn schema(part: Option<&Value>) -> Option<&Object> {
    part?.as_object()?.object("openAPIV3Schema")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn what_versions_have_in_common_stands_once() {
        let definition = object(
            r#"{"spec":{"versions":[
                {"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}}},
                {"name":"v2","schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
        );
        let parts = SharedParts::of(&definition);
        assert_eq!(parts.shared, ["schema", "additionalPrinterColumns", "selectableFields"]);
        assert_eq!(parts.schemas().len(), 1);
        let (_, first) = parts.versions().next().expect("has versions");
        assert!(parts.own(first, "subresources").is_some() && parts.own(first, "schema").is_none());
        assert!(parts.common("subresources").is_none() && SharedParts::has_status(first));
        assert!(SharedParts::of(&object("{}")).shared.is_empty());
    }
}
