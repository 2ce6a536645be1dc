//! [`Spec`]: what a `Conversion` says, read from its object. Whether it can be carried out is known only beside the
//! schemas; see `step.rs`.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::path::Path;

/// How many steps a Conversion may have.
const MAX_STEPS: usize = 64;
/// How many rules stand in one list at most.
const MAX_RULES: usize = 256;
/// How deep `each` may stand in `each`.
const MAX_DEPTH: usize = 8;
/// How many values one map may have.
const MAX_VALUES: usize = 1024;
/// How many places one `compute` may name on each side.
const MAX_PLACES: usize = 16;
/// How long an expression may be, in bytes.
const MAX_EXPRESSION: usize = 4096;

/// What a `Conversion` says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// The ways between two versions.
    pub steps: Vec<Step>,
    /// What is canonical in a version.
    pub canonicalize: Vec<Canonical>,
    /// What may be lost.
    pub tolerate: Vec<Tolerance>,
}

/// The way from one version to another and back.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Where it stands in the Conversion: `spec.steps[0]`.
    pub field: String,
    /// The version on the left of its rules.
    pub from: String,
    /// The version on the right.
    pub to: String,
    /// What is not carried over by itself.
    pub rules: Vec<Rule>,
}

/// Which of several forms of an object is the canonical one.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    /// Where it stands in the Conversion.
    pub field: String,
    /// The version.
    pub version: String,
    /// What to do with what is not canonical.
    pub rules: Vec<Rule>,
}

/// A loss that is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Tolerance {
    /// Where it stands in the Conversion.
    pub field: String,
    /// The version that loses something.
    pub version: String,
    /// What it loses.
    pub path: Path,
    /// Why that may be.
    pub reason: String,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Where it stands in the Conversion: `spec.steps[0].rules[2]`.
    pub field: String,
    /// What it says.
    pub action: Action,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A value has another place.
    Move {
        /// Its place on the left.
        from: Path,
        /// Its place on the right.
        to: Path,
    },
    /// Only the right side has it.
    Add(Filled),
    /// Only the left side has it.
    Remove(Filled),
    /// Values have other names.
    Values {
        /// The place on the left.
        from: Path,
        /// The place on the right.
        to: Path,
        /// Each value by its name on the left.
        map: Vec<(String, Value)>,
    },
    /// One value on the left is a list on the right.
    List {
        /// The one.
        from: Path,
        /// The list.
        to: Path,
    },
    /// Places that are computed of each other.
    Compute(Compute),
    /// Rules for every item.
    Each {
        /// Where the items are.
        path: Path,
        /// The rules, whose paths begin at the item.
        rules: Vec<Rule>,
    },
}

/// A place that only one side has.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// The place.
    pub path: Path,
    /// What stands there if nothing is known.
    pub value: Value,
}

/// Places that are computed of each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compute {
    /// Names for places on the left.
    pub from: Vec<(String, Path)>,
    /// Names for places on the right.
    pub to: Vec<(String, Path)>,
    /// Expressions for names on the right, of names on the left.
    pub forward: Vec<(String, String)>,
    /// And back.
    pub backward: Vec<(String, String)>,
}

impl Spec {
    /// Whether a rule computes something.
    pub(crate) fn computes(&self) -> bool {
        fn is_computed(rule: &Rule) -> bool {
            match &rule.action {
                Action::Compute(_) => true,
                Action::Each { rules, .. } => rules.iter().any(is_computed),
                Action::Move { .. }
                | Action::Add(_)
                | Action::Remove(_)
                | Action::Values { .. }
                | Action::List { .. } => false,
            }
        }
        let steps = self.steps.iter().flat_map(|step| &step.rules);
        steps.chain(self.canonicalize.iter().flat_map(|entry| &entry.rules)).any(is_computed)
    }

    /// Reads a `Conversion`. Answers everything that is wrong with it by itself.
    pub fn read(conversion: &Object) -> Result<Spec, FieldErrors> {
        let mut reader = Reader { errors: FieldErrors::new() };
        let path = FieldPath::root("spec");
        let spec = match conversion.get("spec") {
            None | Some(Value::Null) => Spec::default(),
            Some(Value::Object(spec)) => reader.spec(spec, &path),
            Some(other) => {
                reader.wrong_type(&path, other, "an object");
                Spec::default()
            }
        };
        if reader.errors.is_empty() { Ok(spec) } else { Err(reader.errors) }
    }
}

/// Where a rule stands.
#[derive(Clone, Copy)]
struct Within {
    /// In how many `each`.
    depth: usize,
    /// Whether there is a way back.
    both_ways: bool,
}

struct Reader {
    errors: FieldErrors,
}

impl Reader {
    fn wrong_type(&mut self, path: &FieldPath<'_>, value: &Value, wanted: &str) {
        self.errors.push(FieldError::type_invalid(path, BadValue::of(value), format!("must be {wanted}")));
    }

    fn invalid(&mut self, path: &FieldPath<'_>, value: impl Into<BadValue>, detail: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    /// Says of every member that there is no such field.
    fn known(&mut self, object: &Object, path: &FieldPath<'_>, names: &[&str]) {
        for (name, _) in object.iter().filter(|(name, _)| !names.contains(name)) {
            self.errors.push(FieldError::not_supported(path, name, names));
        }
    }

    fn spec(&mut self, spec: &Object, path: &FieldPath<'_>) -> Spec {
        self.known(spec, path, &["steps", "canonicalize", "tolerate"]);
        let steps = self.list(spec, path, "steps", MAX_STEPS, |reader, step, at| {
            reader.known(step, at, &["from", "to", "rules"]);
            let (from, to) = (reader.text(step, at, "from"), reader.text(step, at, "to"));
            if !from.is_empty() && from == to {
                reader.invalid(&at.child("to"), to.as_str(), "a step leads from one version to another");
            }
            Step {
                field: at.to_string(),
                from,
                to,
                rules: reader.rules(step, at, Within { depth: 0, both_ways: true }),
            }
        });
        let canonicalize = self.list(spec, path, "canonicalize", MAX_STEPS, |reader, entry, at| {
            reader.known(entry, at, &["version", "rules"]);
            let version = reader.text(entry, at, "version");
            let within = Within { depth: 0, both_ways: false };
            Canonical { field: at.to_string(), version, rules: reader.rules(entry, at, within) }
        });
        let tolerate = self.list(spec, path, "tolerate", MAX_RULES, |reader, entry, at| {
            reader.known(entry, at, &["version", "path", "reason"]);
            let (version, reason) = (reader.text(entry, at, "version"), reader.text(entry, at, "reason"));
            Tolerance { field: at.to_string(), version, path: reader.path(entry, at, "path"), reason }
        });
        Spec { steps, canonicalize, tolerate }
    }

    /// The objects of a list.
    fn list<T>(
        &mut self,
        object: &Object,
        path: &FieldPath<'_>,
        name: &str,
        most: usize,
        mut read: impl FnMut(&mut Reader, &Object, &FieldPath<'_>) -> T,
    ) -> Vec<T> {
        let path = path.child(name);
        let items = match object.get(name) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong_type(&path, other, "a list");
                return Vec::new();
            }
        };
        if items.len() > most {
            self.errors.push(FieldError::too_many(path, items.len(), most));
            return Vec::new();
        }
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = path.index(index);
            match item {
                Value::Object(item) => found.push(read(self, item, &at)),
                other => self.wrong_type(&at, other, "an object"),
            }
        }
        found
    }

    fn text(&mut self, object: &Object, path: &FieldPath<'_>, name: &str) -> String {
        match object.get(name) {
            Some(Value::String(text)) if !text.is_empty() => return text.to_string(),
            None | Some(Value::Null | Value::String(_)) => {
                self.errors.push(FieldError::required(path.child(name), ""));
            }
            Some(other) => self.wrong_type(&path.child(name), other, "a string"),
        }
        String::new()
    }

    fn path(&mut self, object: &Object, path: &FieldPath<'_>, name: &str) -> Path {
        let text = self.text(object, path, name);
        if text.is_empty() { Path::root() } else { self.parse_path(&text, &path.child(name)) }
    }

    fn parse_path(&mut self, text: &str, at: &FieldPath<'_>) -> Path {
        text.parse().unwrap_or_else(|error: crate::path::PathError| {
            self.invalid(at, text, error.to_string());
            Path::root()
        })
    }

    fn rules(&mut self, object: &Object, path: &FieldPath<'_>, within: Within) -> Vec<Rule> {
        let rules = self.list(object, path, "rules", MAX_RULES, |reader, rule, at| {
            Some(Rule { field: at.to_string(), action: reader.action(rule, at, within)? })
        });
        rules.into_iter().flatten().collect()
    }

    fn action(&mut self, rule: &Object, at: &FieldPath<'_>, within: Within) -> Option<Action> {
        const KINDS: [&str; 7] = ["move", "add", "remove", "values", "list", "compute", "each"];
        self.known(rule, at, &KINDS);
        let mut named = rule.iter().filter(|(name, _)| KINDS.contains(name));
        let (Some((kind, value)), None) = (named.next(), named.next()) else {
            let detail = format!("a rule says one thing: {}", KINDS.join(", "));
            self.errors.push(match rule.is_empty() {
                true => FieldError::required(at, detail),
                false => FieldError::invalid(at, BadValue::Omitted, detail),
            });
            return None;
        };
        let path = at.child(kind);
        let Value::Object(body) = value else {
            self.wrong_type(&path, value, "an object");
            return None;
        };
        let before = self.errors.len();
        let action = match kind {
            "move" | "list" => {
                self.known(body, &path, &["from", "to"]);
                let (from, to) = (self.path(body, &path, "from"), self.path(body, &path, "to"));
                if kind == "move" { Action::Move { from, to } } else { Action::List { from, to } }
            }
            "add" => Action::Add(self.filled(body, &path)),
            "remove" => Action::Remove(self.filled(body, &path)),
            "values" => {
                self.known(body, &path, &["path", "to", "map"]);
                let from = self.path(body, &path, "path");
                let to = if body.contains("to") { self.path(body, &path, "to") } else { from.clone() };
                Action::Values { from, to, map: self.value_map(body, &path) }
            }
            "compute" => Action::Compute(self.compute(body, &path, within)),
            _ => {
                self.known(body, &path, &["path", "rules"]);
                if within.depth == MAX_DEPTH {
                    self.errors.push(FieldError::forbidden(path, format!("at most {MAX_DEPTH} stand in each other")));
                    return None;
                }
                let inside = Within { depth: within.depth + 1, ..within };
                Action::Each { path: self.path(body, &path, "path"), rules: self.rules(body, &path, inside) }
            }
        };
        (self.errors.len() == before).then_some(action)
    }

    fn filled(&mut self, body: &Object, path: &FieldPath<'_>) -> Filled {
        self.known(body, path, &["path", "value"]);
        if !body.contains("value") {
            self.errors.push(FieldError::required(path.child("value"), "say what stands there if nothing is known"));
        }
        Filled { path: self.path(body, path, "path"), value: body.get("value").cloned().unwrap_or_default() }
    }

    fn value_map(&mut self, body: &Object, path: &FieldPath<'_>) -> Vec<(String, Value)> {
        let at = path.child("map");
        let map = match body.get("map") {
            Some(Value::Object(map)) if !map.is_empty() => map,
            None | Some(Value::Null | Value::Object(_)) => {
                self.errors.push(FieldError::required(at, ""));
                return Vec::new();
            }
            Some(other) => {
                self.wrong_type(&at, other, "an object");
                return Vec::new();
            }
        };
        if map.len() > MAX_VALUES {
            self.errors.push(FieldError::too_many(at, map.len(), MAX_VALUES));
            return Vec::new();
        }
        for (name, value) in map.iter() {
            if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
                self.wrong_type(&at.key(name), value, "a string, a number or a boolean");
            }
        }
        map.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    fn compute(&mut self, body: &Object, path: &FieldPath<'_>, within: Within) -> Compute {
        self.known(body, path, &["from", "to", "forward", "backward"]);
        let mut places = |name: &str| -> Vec<(String, Path)> {
            let at = path.child(name);
            let texts = self.texts(body, &at, name);
            texts.into_iter().map(|(name, text)| (name.clone(), self.parse_path(&text, &at.child(&name)))).collect()
        };
        let (from, to) = (places("from"), places("to"));
        let mut expressions = |name: &str, written: &[(String, Path)]| -> Vec<(String, String)> {
            let at = path.child(name);
            if !within.both_ways && name == "backward" && !body.contains(name) {
                return Vec::new();
            }
            let texts = self.texts(body, &at, name);
            for (name, text) in &texts {
                if !written.iter().any(|(known, _)| known == name) {
                    let known: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
                    self.errors.push(FieldError::not_supported(at, name.as_str(), &known));
                }
                if text.len() > MAX_EXPRESSION {
                    self.errors.push(FieldError::too_long(at.child(name), MAX_EXPRESSION));
                }
            }
            texts
        };
        let (forward, backward) = (expressions("forward", &to), expressions("backward", &from));
        for (name, _) in from.iter().chain(&to) {
            let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
            let is_name = name.bytes().next().is_some_and(is_first)
                && name.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit())
                && !revisor_cel::is_reserved(name);
            if !is_name {
                self.invalid(path, name.as_str(), "this cannot be the name of a variable");
            }
        }
        Compute { from, to, forward, backward }
    }

    /// Texts by name, at least one.
    fn texts(&mut self, body: &Object, at: &FieldPath<'_>, name: &str) -> Vec<(String, String)> {
        let map = match body.get(name) {
            Some(Value::Object(map)) if !map.is_empty() => map,
            None | Some(Value::Null | Value::Object(_)) => {
                self.errors.push(FieldError::required(at, ""));
                return Vec::new();
            }
            Some(other) => {
                self.wrong_type(at, other, "an object");
                return Vec::new();
            }
        };
        if map.len() > MAX_PLACES {
            self.errors.push(FieldError::too_many(at, map.len(), MAX_PLACES));
            return Vec::new();
        }
        map.iter().map(|(name, _)| (name.to_owned(), self.text(map, at, name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Spec, Vec<String>> {
        let value = revisor_object::parse_json(text.as_bytes()).expect("is JSON").value;
        let spec = Spec::read(value.as_object().expect("is an object"));
        spec.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn everything_that_a_conversion_can_say_is_read() {
        let spec = read(
            r#"{"spec":{"steps":[{"from":"v1","to":"v2","rules":[
                {"move":{"from":".spec.a","to":".spec.b"}},{"add":{"path":".spec.m","value":"x"}},
                {"remove":{"path":".spec.n","value":{"on":false}}},{"values":{"path":".spec.l","map":{"low":"Low"}}},
                {"list":{"from":".spec.h","to":".spec.hs"}},
                {"compute":{"from":{"s":".spec.s"},"to":{"t":".spec.t"},"forward":{"t":"string(s)"},"backward":{"s":"int(t)"}}},
                {"each":{"path":".spec.rules[*]","rules":[{"move":{"from":".p","to":".q.r"}}]}}]}],
                "canonicalize":[{"version":"v1","rules":[{"move":{"from":".spec.o","to":".spec.n"}}]}],
                "tolerate":[{"version":"v1","path":".spec.x","reason":"gone"}]}}"#,
        )
        .expect("is right");
        assert_eq!(spec.steps[0].rules.len(), 7);
        let Action::Each { rules, .. } = &spec.steps[0].rules[6].action else { panic!("is each") };
        assert_eq!(rules[0].field, "spec.steps[0].rules[6].each.rules[0]");
        assert_eq!(spec.tolerate[0].path.to_string(), ".spec.x");
        assert_eq!(read("{}"), Ok(Spec::default()));
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_its_place() {
        for (rule, want) in [
            (r#"{}"#, "spec.steps[0].rules[0]: Required value"),
            (
                r#"{"move":{"from":".a","to":".b"},"add":{"path":".c","value":1}}"#,
                "spec.steps[0].rules[0]: Invalid value",
            ),
            (r#"{"mvoe":{}}"#, r#"spec.steps[0].rules[0]: Unsupported value: "mvoe""#),
            (r#"{"move":{"from":"spec.n","to":".b"}}"#, r#"spec.steps[0].rules[0].move.from: Invalid value: "spec.n""#),
            (r#"{"move":{"from":".n"}}"#, "spec.steps[0].rules[0].move.to: Required value"),
            (r#"{"move":[1]}"#, "spec.steps[0].rules[0].move: Invalid value: [1]: must be an object"),
            (r#"{"add":{"path":".n"}}"#, "spec.steps[0].rules[0].add.value: Required value"),
            (r#"{"values":{"path":".n","map":{}}}"#, "spec.steps[0].rules[0].values.map: Required value"),
            (
                r#"{"values":{"path":".n","map":{"a":null}}}"#,
                "spec.steps[0].rules[0].values.map[a]: Invalid value: null",
            ),
            (
                r#"{"compute":{"from":{"a":".a"},"to":{"b":".b"},"forward":{"c":"a"},"backward":{"a":"b"}}}"#,
                r#"spec.steps[0].rules[0].compute.forward: Unsupported value: "c""#,
            ),
            (
                r#"{"compute":{"from":{"a-b":".a"},"to":{"b":".b"},"forward":{"b":"1"},"backward":{"a-b":"b"}}}"#,
                r#"spec.steps[0].rules[0].compute: Invalid value: "a-b""#,
            ),
            (r#"{"each":{"path":".a[*]","rules":[{}]}}"#, "spec.steps[0].rules[0].each.rules[0]: Required value"),
        ] {
            let text = format!(r#"{{"spec":{{"steps":[{{"from":"v1","to":"v2","rules":[{rule}]}}]}}}}"#);
            let errors = read(&text).expect_err(rule);
            assert!(errors.iter().any(|error| error.starts_with(want)), "{rule}: {errors:?}");
        }
        for (spec, want) in [
            (r#""x""#, "spec: Invalid value"),
            (r#"{"steps":{}}"#, "spec.steps: Invalid value"),
            (r#"{"steps":[1]}"#, "spec.steps[0]: Invalid value: 1"),
            (r#"{"steps":[{"from":"v1","to":"v1"}]}"#, "spec.steps[0].to: Invalid value"),
            (r#"{"steps":[{"to":"v1"}]}"#, "spec.steps[0].from: Required value"),
            (r#"{"tolerate":[{"version":"v1","path":"x","reason":"r"}]}"#, "spec.tolerate[0].path: Invalid value"),
        ] {
            let errors = read(&format!(r#"{{"spec":{spec}}}"#)).expect_err(spec);
            assert!(errors.iter().any(|error| error.starts_with(want)), "{spec}: {errors:?}");
        }
        let deep = (0..12).fold(r#"{"move":{"from":".a","to":".b"}}"#.to_owned(), |rule, _| {
            format!(r#"{{"each":{{"path":".a[*]","rules":[{rule}]}}}}"#)
        });
        assert!(read(&format!(r#"{{"spec":{{"steps":[{{"from":"a","to":"b","rules":[{deep}]}}]}}}}"#)).is_err());
    }
}
