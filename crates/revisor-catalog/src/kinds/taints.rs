//! Taints, which keep pods away, and tolerations, which let them come all the same. Both once stood in annotations.

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen, Value, parse_json};

use crate::checks::{self, parse_int, problems};
use crate::kinds::members::text;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What an annotation holds a list of: the name of its type in the original, and its members with theirs.
pub(crate) struct Annotated {
    name: &'static str,
    members: &'static [(&'static str, &'static str, &'static str)],
}

pub(crate) const TAINTS: Annotated = Annotated {
    name: "Taint",
    members: &[("key", "Key", "string"), ("value", "Value", "string"), ("effect", "Effect", "core.TaintEffect")],
};

pub(crate) const TOLERATIONS: Annotated = Annotated {
    name: "Toleration",
    members: &[
        ("key", "Key", "string"),
        ("operator", "Operator", "core.TolerationOperator"),
        ("value", "Value", "string"),
        ("effect", "Effect", "core.TaintEffect"),
        ("tolerationSeconds", "TolerationSeconds", "int64"),
    ],
};

impl Annotated {
    /// The list in an annotation, or why it is none, as Go says it. The case of members does not matter to it.
    pub(crate) fn read(&self, text: &str) -> Result<Vec<Value>, String> {
        match parse_json(text.as_bytes()).map_err(|error| error.to_string())?.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => items.iter().map(|item| self.read_one(item)).collect(),
            other => {
                Err(format!("json: cannot unmarshal {} into Go value of type []core.{}", other.type_name(), self.name))
            }
        }
    }

    fn read_one(&self, item: &Value) -> Result<Value, String> {
        let members = match item {
            Value::Null => return Ok(Value::from(Object::new())),
            Value::Object(members) => members,
            other => {
                let kind = other.type_name();
                return Err(format!("json: cannot unmarshal {kind} into Go value of type core.{}", self.name));
            }
        };
        let mut read = Object::new();
        for (given, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            let known = self.members.iter().find(|(name, ..)| name.eq_ignore_ascii_case(given));
            let Some((name, field, kind)) = known else { continue };
            let fits = if *kind == "int64" { value.as_i64().is_some() } else { value.as_str().is_some() };
            if !fits {
                let found = value.type_name();
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field {}.{field} of type {kind}",
                    self.name
                ));
            }
            read.insert(name, value.clone());
        }
        Ok(Value::from(read))
    }
}

/// What is wrong with the taints of a node.
pub(crate) fn validate_taints(path: FieldPath<'_>, taints: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut seen = Seen::default();
    for (at, taint) in taints.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        errors.extend(problems(path.child("key"), key, qualified_name(key)));
        let value_problems = label_value(value);
        if !value_problems.is_empty() {
            errors.push(FieldError::invalid(path.child("value"), value, value_problems.join(";")));
        }
        errors.extend(checks::required_one_of(path.child("effect"), effect, EFFECTS));
        if !seen.is_new((key, effect)) {
            let shown = revisor_object::BadValue::of(taint);
            let detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(FieldError { detail, ..FieldError::duplicate(path, shown) });
        }
    }
    errors
}

/// What is wrong with a list of tolerations. They may compare numbers only where the old object does so already.
pub(crate) fn validate_tolerations(path: FieldPath<'_>, tolerations: &[Value], may_compare: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (at, toleration) in tolerations.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let operator_path = path.child("operator");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            errors.extend(problems(path.child("key"), key, qualified_name(key)));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(operator_path, operator, detail));
        }
        if toleration.contains("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(path.child("effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => {
                let found = label_value(value);
                if !found.is_empty() {
                    errors.push(FieldError::invalid(operator_path, value, found.join(";")));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(operator_path, value, detail));
            }
            "Lt" | "Gt" if may_compare => errors.extend(validate_number(path.child("value"), value)),
            // Comparisons are known, but the feature is off.
            "Lt" | "Gt" => {
                errors.push(FieldError::not_supported(operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]));
            }
            _ => errors.push(FieldError::not_supported(operator_path, operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            errors.extend(checks::one_of(path.child("effect"), effect, EFFECTS));
        }
    }
    errors
}

fn validate_number(path: FieldPath<'_>, value: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = is_integer && (digits == "0" && digits == value || !digits.starts_with('0'));
    if !is_canonical {
        let detail = "must be a valid decimal integer in canonical form";
        errors.push(FieldError::invalid(path, value, detail));
    }
    if let Err(problem) = parse_int(value) {
        errors.push(FieldError::invalid(path, value, problem));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_read_as_go_reads_them() {
        for (text, want) in [
            ("null", Ok("[]")),
            (r#"[{"key":"a","TOLERATIONSECONDS":5,"other":{}},null]"#, Ok(r#"[{"key":"a","tolerationSeconds":5},{}]"#)),
            ("{}", Err("json: cannot unmarshal object into Go value of type []core.Toleration")),
            ("[1]", Err("json: cannot unmarshal number into Go value of type core.Toleration")),
            (
                r#"[{"operator":1}]"#,
                Err(
                    "json: cannot unmarshal number into Go struct field Toleration.Operator of type core.TolerationOperator",
                ),
            ),
            ("{", Err("unexpected end of JSON input")),
        ] {
            let read = TOLERATIONS.read(text).map(|list| Value::from(list).to_json());
            assert_eq!(read, want.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}
