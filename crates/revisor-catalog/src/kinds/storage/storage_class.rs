//! Storage classes: which provisioner makes the volumes of claims, and how.

use std::collections::HashMap;

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use super::parameters;
use crate::checks::{self, immutable, problems};
use crate::kinds::node_selectors::deprecated_label;
use crate::{Part, Strategy};

pub(crate) struct StorageClasses;

impl Strategy for StorageClasses {
    fn validate(&self, object: &Object) -> FieldErrors {
        let provisioner = object.str("provisioner").unwrap_or_default();
        let mut errors = parameters::validate_provider(FieldPath::root("provisioner"), provisioner);
        errors.extend(parameters::validate(FieldPath::root("parameters"), object.object("parameters")));
        if let Some(policy) = object.str("reclaimPolicy").filter(|policy| !policy.is_empty()) {
            errors.extend(checks::one_of(FieldPath::root("reclaimPolicy"), policy, &["Delete", "Retain"]));
        }
        let mode_path = FieldPath::root("volumeBindingMode");
        match object.str("volumeBindingMode") {
            None => errors.push(FieldError::required(mode_path, "")),
            Some(mode) => errors.extend(checks::one_of(mode_path, mode, &["Immediate", "WaitForFirstConsumer"])),
        }
        errors.extend(validate_topologies(object.array("allowedTopologies")));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            errors.extend(immutable(FieldPath::root(name), object.get(name), old.get(name)));
        }
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        let path = FieldPath::root("allowedTopologies");
        for (at, term) in object.array("allowedTopologies").iter().filter_map(Value::as_object).enumerate() {
            let path = path.index(at);
            let path = path.child("matchLabelExpressions");
            let expressions = term.array("matchLabelExpressions").iter().filter_map(Value::as_object);
            for (at, expression) in expressions.enumerate() {
                if let Some(message) = deprecated_label(expression.str("key").unwrap_or_default()) {
                    warnings.push(format!("{}: {message}", path.index(at).child("key")));
                }
            }
        }
        warnings
    }
}

/// What a term demands: keys with their values, both in order and without duplicates. Thousands of them are held at once,
/// so they are lists, which take a third of what trees do.
type Term<'a> = Vec<(&'a str, Vec<&'a str>)>;

fn sorted<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut values: Vec<&str> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn validate_topologies(topologies: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = FieldPath::root("allowedTopologies");
    // The original begins with as many empty terms as there are given ones, so an empty term has that many twins.
    let mut seen: HashMap<Term<'_>, usize> = HashMap::from([(Term::new(), topologies.len())]);
    for (at, term) in topologies.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let path = path.child("matchLabelExpressions");
        let (mut keys, mut expressions) = (Seen::default(), Term::new());
        for (at, expression) in term.array("matchLabelExpressions").iter().filter_map(Value::as_object).enumerate() {
            let path = path.index(at);
            let values_path = path.child("values");
            let mut values = Seen::default();
            if expression.array("values").is_empty() {
                errors.push(FieldError::required(values_path, ""));
            }
            for (at, value) in expression.array("values").iter().filter_map(Value::as_str).enumerate() {
                if !values.is_new(value) {
                    errors.push(FieldError::duplicate(values_path.index(at), value));
                }
            }
            let key = expression.str("key").unwrap_or_default();
            errors.extend(problems(path.child("key"), key, qualified_name(key)));
            if !keys.is_new(key) {
                errors.push(FieldError::duplicate(path.child("key"), key));
            }
            expressions.push((key, sorted(expression.array("values").iter().filter_map(Value::as_str))));
        }
        // Of expressions with the same key the last one counts.
        expressions.reverse();
        expressions.sort_by_key(|(key, _)| *key);
        expressions.dedup_by_key(|(key, _)| *key);
        let twins = seen.entry(expressions).or_default();
        errors.push_times(*twins, || FieldError::duplicate(path, ""));
        *twins += 1;
    }
    errors
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn terms_that_demand_the_same_are_told() {
        let (one, two) = (r#"{"key":"a","values":["x","y"]}"#, r#"{"key":"b","values":["z"]}"#);
        let turned = r#"{"key":"a","values":["y","x"]}"#;
        for (name, first, second, want) in [
            (
                "the same",
                format!("{one},{two}"),
                format!("{one},{two}"),
                vec!["allowedTopologies[1].matchLabelExpressions"],
            ),
            (
                "in another order",
                format!("{one},{two}"),
                format!("{two},{turned}"),
                vec!["allowedTopologies[1].matchLabelExpressions"],
            ),
            ("another value", one.to_owned(), r#"{"key":"a","values":["x"]}"#.to_owned(), vec![]),
            (
                "of two with one key the last counts",
                one.to_owned(),
                format!(r#"{{"key":"a","values":["q"]}},{turned}"#),
                vec!["allowedTopologies[1].matchLabelExpressions[1].key", "allowedTopologies[1].matchLabelExpressions"],
            ),
            (
                "a value twice",
                r#"{"key":"a","values":["x","x"]}"#.to_owned(),
                two.to_owned(),
                vec!["allowedTopologies[0].matchLabelExpressions[0].values[1]"],
            ),
        ] {
            let text = format!(r#"[{{"matchLabelExpressions":[{first}]}},{{"matchLabelExpressions":[{second}]}}]"#);
            let terms = parse_json(text.as_bytes()).expect("it is JSON").value;
            let errors = validate_topologies(terms.as_array().expect("it is a list"));
            let fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            assert_eq!(fields, want, "{name}");
        }
    }
}
