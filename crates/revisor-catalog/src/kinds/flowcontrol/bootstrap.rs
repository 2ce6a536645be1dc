//! The objects that every server starts with: `tables/flowcontrol.tsv`. Of these some are mandatory: their specs are
//! what the server itself depends on, and cannot be changed.

use revisor_object::{Object, Value, parse_json};

use crate::BootstrapFlowControl;

const TABLE: &str = include_str!("../../../tables/flowcontrol.tsv");

/// Marks the objects whose spec the server looks after.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

struct Row {
    plural: &'static str,
    name: &'static str,
    is_mandatory: bool,
    spec: Object,
}

/// # Panics
/// If the table is malformed: a fault of the program that its tests find.
fn rows() -> impl Iterator<Item = Row> {
    TABLE.lines().skip(1).map(|line| {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (plural, name, is_mandatory) = (next(), next(), next() == "yes");
        match parse_json(next().as_bytes()).map(|parsed| parsed.value) {
            Ok(Value::Object(spec)) => Row { plural, name, is_mandatory, spec },
            other => panic!("a malformed row: {line}: {other:?}"),
        }
    })
}

/// The names and specs of the mandatory objects of a resource.
pub(super) fn mandatory_specs(plural: &str) -> Vec<(String, Object)> {
    rows().filter(|row| row.plural == plural && row.is_mandatory).map(|row| (row.name.to_owned(), row.spec)).collect()
}

/// The objects that a server starts with.
pub(crate) fn bootstrap_objects() -> Vec<BootstrapFlowControl> {
    let object = |Row { plural, name, is_mandatory, spec }: Row| {
        let annotations: Object = [(AUTO_UPDATE, Value::from("true"))].into_iter().collect();
        let metadata: Object = [("name", Value::from(name)), ("annotations", annotations.into())].into_iter().collect();
        let object = [("metadata", metadata.into()), ("spec", spec.into())].into_iter().collect();
        BootstrapFlowControl { plural, name, is_mandatory, object }
    };
    rows().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::check;

    #[test]
    fn what_a_server_starts_with_is_valid() {
        for (plural, mandatory, all) in [("flowschemas", 2, 11), ("prioritylevelconfigurations", 2, 8)] {
            assert_eq!(mandatory_specs(plural).len(), mandatory, "{plural}");
            let objects = bootstrap_objects().into_iter().filter(|known| known.plural == plural);
            let objects: Vec<Object> = objects.map(|known| known.object).collect();
            assert_eq!(objects.len(), all, "{plural}");
            let kind = super::super::kind(plural).expect("is known");
            for object in objects {
                check(super::super::name_of(&object), &kind.strategy.validate(&object), &[]);
            }
        }
    }
}
