//! Whether an applied object is of its types. Server-side apply refuses one that is not, before anything else is
//! said about it, and in words of its own.

use std::collections::HashSet;

use revisor_object::{BadValue, Object, Value, clip_shown};

use crate::{Shape, StructId, Topology, Types};

/// More problems than these are not said.
const MAX_PROBLEMS: usize = 100;

impl Types {
    /// Why `object` is not of the type `id`; `None` if it is.
    pub fn typed_problems(&self, id: StructId, object: &Object) -> Option<String> {
        let mut walk = Walk { types: self, path: String::new(), problems: Vec::new() };
        walk.object(id, object);
        match &walk.problems[..] {
            [] => None,
            [only] => Some(only.clone()),
            several => Some(format!("errors:\n  {}", several.join("\n  "))),
        }
    }
}

struct Walk<'t> {
    types: &'t Types,
    path: String,
    problems: Vec<String>,
}

impl Walk<'_> {
    fn say(&mut self, problem: &str) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(clip_shown(format_args!("{}: {problem}", self.path)));
        }
    }

    fn below(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.path.push_str(step);
        look(self);
        self.path.truncate(before);
    }

    fn member(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        look(self);
        self.path.truncate(before);
    }

    fn object(&mut self, id: StructId, object: &Object) {
        let of = self.types.get(id);
        for (name, value) in object.iter() {
            let Some(field) = of.member(name) else {
                // Nothing is said of the members behind it.
                self.member(name, |walk| walk.say("field not declared in schema"));
                return;
            };
            self.member(name, |walk| walk.value(&field.shape, &field.topology, value));
        }
    }

    fn value(&mut self, shape: &Shape, topology: &Topology, value: &Value) {
        if value.is_null() {
            return;
        }
        let is_scalar = !matches!(value, Value::Array(_) | Value::Object(_));
        match (shape, value) {
            (Shape::Any | Shape::Raw | Shape::Either(..), _) => {}
            (Shape::Struct(id), Value::Object(object)) => self.object(*id, object),
            (Shape::Struct(id), _) if self.types.get(*id).is_open => {}
            (Shape::Struct(_) | Shape::Map(_), other)
                if !matches!((shape, other), (Shape::Map(_), Value::Object(_))) =>
            {
                self.say(&format!("expected map, got &{{{}}}", plain(other)));
            }
            (Shape::Map(element), Value::Object(object)) => {
                for (name, member) in object.iter() {
                    self.member(name, |walk| walk.value(element, &Topology::Usual, member));
                }
            }
            (Shape::List(element), Value::Array(items)) => self.items(element, topology, items),
            (Shape::List(_), other) => self.say(&format!("expected list, got &{{{}}}", plain(other))),
            (Shape::Int32 | Shape::Int64 | Shape::Double, Value::Int(_) | Value::Float(_)) => {}
            (Shape::Int32 | Shape::Int64 | Shape::Double, other) => {
                self.say(&format!("expected numeric (int or float), got {}", other.go_type()));
            }
            (Shape::String | Shape::Bytes, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => {}
            (Shape::String | Shape::Bytes, other) => {
                self.say(&format!("expected string, got &value.valueUnstructured{{Value:{}}}", syntax(other)));
            }
            (Shape::Bool, other) => self.say(&format!("expected boolean, got &{{{}}}", plain(other))),
            (_, _) if is_scalar => {}
            (_, other) => self.say(&format!("expected any scalar, got &{{{}}}", plain(other))),
        }
    }

    fn items(&mut self, element: &Shape, topology: &Topology, items: &[Value]) {
        let mut seen = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let step = match topology {
                Topology::Set => set_step(item),
                Topology::ByKeys(keys) => self.key_step(element, keys, item),
                _ => Ok(format!("[{at}]")),
            };
            match step {
                Ok(step) => {
                    if seen.contains(&step) {
                        self.say(&format!("duplicate entries for key {step}"));
                    }
                    self.below(&step, |walk| walk.value(element, &Topology::Usual, item));
                    if matches!(topology, Topology::Set | Topology::ByKeys(_)) {
                        seen.insert(step);
                    }
                }
                Err(problem) => {
                    // An element without a name cannot be spoken of, nor can those behind it.
                    self.say(&format!("element {at}: {problem}"));
                    return;
                }
            }
        }
    }

    fn key_step(&self, element: &Shape, keys: &[Box<str>], item: &Value) -> Result<String, String> {
        let item = match item {
            Value::Object(item) => item,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let default = |key: &str| {
            let Shape::Struct(id) = element else { return None };
            self.types.key_default(*id, key)
        };
        let mut shown: Vec<(&str, Value)> =
            keys.iter().filter_map(|key| Some((&**key, item.get(key).cloned().or_else(|| default(key))?))).collect();
        if shown.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| BadValue::from(&**key).to_string()).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            ));
        }
        shown.sort_unstable_by_key(|(name, _)| *name);
        let shown: Vec<String> = shown.iter().map(|(name, value)| format!("{name}={}", value.to_json())).collect();
        Ok(format!("[{}]", shown.join(",")))
    }
}

fn set_step(item: &Value) -> Result<String, String> {
    Err(match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(format!("[={}]", scalar.to_json())),
    }
    .to_owned())
}

/// A value as Go prints it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Float(number) => BadValue::from(*number).to_string(),
        Value::String(text) => text.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(object) => {
            let members: Vec<String> = object.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_json(),
    }
}

/// A value as it stands in a program of Go.
fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => BadValue::from(text.as_str()).to_string(),
        Value::Array(items) => {
            format!("{}{{{}}}", value.go_type(), items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(object) => {
            let member = |(name, value): (&str, &Value)| format!("{}:{}", BadValue::from(name), syntax(value));
            format!("{}{{{}}}", value.go_type(), object.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => plain(other),
    }
}

#[cfg(test)]
mod tests {
    use crate::MetadataType;
    use crate::structural::custom_types::types_of;
    use crate::structural::testing::{metadata_types, parse, schema};

    #[test]
    fn applied_objects_are_of_their_types() {
        let metadata_types = metadata_types();
        let id = metadata_types.id("meta.v1.ObjectMeta").expect("is there");
        let schema = schema(
            r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
                "n":{"type":"integer"},"t":{"type":"string"},"b":{"type":"boolean"},"f":{"type":"string","format":"date"},
                "any":{"x-kubernetes-preserve-unknown-fields":true},"ios":{"x-kubernetes-int-or-string":true},
                "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
                "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],
                     "items":{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"integer"}}}},
                "q":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],
                     "items":{"type":"object","properties":{"a":{"type":"string"}}}},
                "l":{"type":"array","items":{"type":"object","properties":{"q":{"type":"integer"}}}},
                "m":{"type":"object","additionalProperties":{"type":"string"}}}}}}"#,
        );
        let (types, root) = types_of(&schema, "T", MetadataType { types: &metadata_types, id });
        for (text, want) in [
            (r#"{"n":1,"t":"x","f":5,"any":[1],"ios":{"a":1},"s":["a"],"k":[{"b":1}],"m":{"z":"y"}}"#, None),
            (r#"{"n":null,"t":null,"s":null,"k":null,"m":null}"#, None),
            (r#"{"foo":1}"#, Some(".spec.foo: field not declared in schema")),
            (r#"{"n":"x"}"#, Some(".spec.n: expected numeric (int or float), got string")),
            (r#"{"t":1}"#, Some(".spec.t: expected string, got &value.valueUnstructured{Value:1}")),
            (
                r#"{"t":{"a":["b"]}}"#,
                Some(
                    r#".spec.t: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{"b"}}}"#,
                ),
            ),
            (r#"{"b":"x"}"#, Some(".spec.b: expected boolean, got &{x}")),
            (r#"{"f":{}}"#, Some(".spec.f: expected any scalar, got &{map[]}")),
            (r#"{"m":1}"#, Some(".spec.m: expected map, got &{1}")),
            (r#"{"m":{"z":1}}"#, Some(".spec.m.z: expected string, got &value.valueUnstructured{Value:1}")),
            (r#"{"s":{"a":1}}"#, Some(".spec.s: expected list, got &{map[a:1]}")),
            (r#"{"s":["a","a"]}"#, Some(r#".spec.s: duplicate entries for key [="a"]"#)),
            (
                r#"{"s":[null]}"#,
                Some(".spec.s: element 0: associative list without keys has an element that's an explicit null"),
            ),
            (r#"{"k":[{"a":"1"},{"a":"1"}]}"#, Some(r#".spec.k: duplicate entries for key [a="1"]"#)),
            (r#"{"k":[{"b":1,"zz":1}]}"#, Some(r#".spec.k[a="x"].zz: field not declared in schema"#)),
            (r#"{"k":["x"]}"#, Some(".spec.k: element 0: associative list with keys may not have non-map elements")),
            (
                r#"{"q":[{}]}"#,
                Some(
                    r#".spec.q: element 0: associative list with keys has an element that omits all key fields ["a"] (and doesn't have default values for any key fields)"#,
                ),
            ),
            (r#"{"l":[{"z":1}]}"#, Some(".spec.l[0].z: field not declared in schema")),
            (
                r#"{"m":1,"n":"x"}"#,
                Some(
                    "errors:\n  .spec.m: expected map, got &{1}\n  .spec.n: expected numeric (int or float), got string",
                ),
            ),
        ] {
            let object = parse(&format!(r#"{{"spec":{text}}}"#));
            let found = types.typed_problems(root, object.as_object().expect("is an object"));
            assert_eq!(found.as_deref(), want, "{text}");
        }
    }
}
