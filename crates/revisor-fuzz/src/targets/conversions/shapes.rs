//! Two shapes of one thing and the rules between them, as an input decides: fields that stay, move, sink, come and go,
//! and now and then a rule that nobody would write.

use crate::Choices;

/// How deep schemas are made.
const MAX_DEPTH: usize = 3;

/// Names of fields. One of them has to be quoted in paths.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "odd.name"];

/// Schemas of what has no parts, or none that rules name.
const LEAVES: [&str; 14] = [
    r#"{"type":"string"}"#,
    r#"{"type":"string","maxLength":3}"#,
    r#"{"type":"string","minLength":1,"pattern":"^[a-f]{1,4}$"}"#,
    r#"{"type":"string","enum":["x","y","z"]}"#,
    r#"{"type":"string","nullable":true}"#,
    r#"{"type":"string","default":"x"}"#,
    r#"{"type":"string","format":"date-time"}"#,
    r#"{"type":"integer"}"#,
    r#"{"type":"integer","minimum":-3,"maximum":40}"#,
    r#"{"type":"number"}"#,
    r#"{"type":"boolean","default":false}"#,
    r#"{"x-kubernetes-int-or-string":true}"#,
    r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#,
    r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#,
];

/// Values that rules fill in, whether they fit or not.
const VALUES: [&str; 6] = [r#""x""#, r#""""#, "7", "true", "null", r#"{"a":[1]}"#];

/// Paths that lead nowhere, or where rules have no business.
const ODD_PATHS: [&str; 8] =
    [".", ".nowhere", ".metadata.name", ".apiVersion", ".spec", ".spec.a[*]", ".spec[\"odd.name\"]", ".spec.a.a.a.a"];

/// A field: its name and its schema.
type Field = (String, Shape);

/// A schema that is not written down yet.
#[derive(Clone)]
pub(super) enum Shape {
    Leaf(String),
    Object { fields: Vec<Field>, required: Vec<String> },
    List { item: Box<Shape>, keys: bool },
    Map(Box<Shape>),
}

impl Shape {
    pub(super) fn to_json(&self) -> String {
        match self {
            Shape::Leaf(text) => text.clone(),
            Shape::Object { fields, required } => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, shape)| format!("\"{name}\":{}", shape.to_json())).collect();
                let required = match &required[..] {
                    [] => String::new(),
                    names => format!(r#","required":["{}"]"#, names.join("\",\"")),
                };
                format!(r#"{{"type":"object","properties":{{{}}}{required}}}"#, fields.join(","))
            }
            Shape::List { item, keys } => {
                let keys = match keys {
                    true => r#","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]"#,
                    false => "",
                };
                format!(r#"{{"type":"array","items":{}{keys}}}"#, item.to_json())
            }
            Shape::Map(value) => format!(r#"{{"type":"object","additionalProperties":{}}}"#, value.to_json()),
        }
    }

    /// A shape of which everything is decided.
    pub(super) fn any(choices: &mut Choices<'_>, depth: usize) -> Shape {
        match choices.below(if depth < MAX_DEPTH { 6 } else { 3 }) {
            0..=2 => Shape::Leaf((*choices.of(&LEAVES)).to_owned()),
            3 => Shape::object(choices, depth),
            4 => {
                let keys = choices.once_in(2);
                let mut item = Shape::any(choices, depth + 1);
                if keys {
                    item = Shape::object(choices, depth + 1);
                    if let Shape::Object { fields, required } = &mut item {
                        fields.push(("k".to_owned(), Shape::Leaf(LEAVES[0].to_owned())));
                        required.push("k".to_owned());
                    }
                }
                Shape::List { item: Box::new(item), keys }
            }
            _ => Shape::Map(Box::new(Shape::any(choices, depth + 1))),
        }
    }

    pub(super) fn object(choices: &mut Choices<'_>, depth: usize) -> Shape {
        let (mut fields, mut required) = (Vec::new(), Vec::new());
        for name in NAMES {
            if choices.once_in(2) {
                if choices.once_in(4) {
                    required.push(name.to_owned());
                }
                fields.push((name.to_owned(), Shape::any(choices, depth + 1)));
            }
        }
        Shape::Object { fields, required }
    }

    /// The shape that the next version has in the place of this one, which is at `path`, and the rules that lead there.
    pub(super) fn next(&self, choices: &mut Choices<'_>, path: &str, rules: &mut Vec<String>) -> Shape {
        match self {
            Shape::Object { fields, required } => {
                let mut next = Vec::new();
                let mut needed = required.clone();
                for (name, shape) in fields {
                    let at = below(path, name);
                    let new = format!("n{}", name.replace('.', ""));
                    let moved = below(path, &new);
                    let is_required = required.contains(name);
                    match choices.below(16) {
                        0..=4 => next.push((name.clone(), shape.next(choices, &at, rules))),
                        5 | 6 => {
                            rules.push(format!(r#"{{"move":{{"from":{},"to":{}}}}}"#, quoted(&at), quoted(&moved)));
                            needed.retain(|known| known != name);
                            if is_required {
                                needed.push(new.clone());
                            }
                            next.push((new, shape.clone()));
                        }
                        7 => {
                            let deeper = below(&moved, "in");
                            rules.push(format!(r#"{{"move":{{"from":{},"to":{}}}}}"#, quoted(&at), quoted(&deeper)));
                            needed.retain(|known| known != name);
                            let inner =
                                Shape::Object { fields: vec![("in".to_owned(), shape.clone())], required: vec![] };
                            next.push((new, inner));
                        }
                        8 => needed.retain(|known| known != name),
                        9 => {
                            let value = choices.of(&VALUES);
                            rules.push(format!(r#"{{"remove":{{"path":{},"value":{value}}}}}"#, quoted(&at)));
                            needed.retain(|known| known != name);
                        }
                        10 => {
                            let value = choices.of(&VALUES);
                            rules.push(format!(r#"{{"add":{{"path":{},"value":{value}}}}}"#, quoted(&moved)));
                            next.push((name.clone(), shape.clone()));
                            next.push((new, Shape::any(choices, MAX_DEPTH)));
                        }
                        11 => {
                            rules.push(format!(r#"{{"list":{{"from":{},"to":{}}}}}"#, quoted(&at), quoted(&moved)));
                            needed.retain(|known| known != name);
                            next.push((new, Shape::List { item: Box::new(shape.clone()), keys: false }));
                        }
                        12 => {
                            let map =
                                choices.of(&[r#"{"x":"X","y":"Y","z":"Z"}"#, r#"{"x":"y","y":"x"}"#, r#"{"x":"y"}"#]);
                            rules.push(format!(r#"{{"values":{{"path":{},"map":{map}}}}}"#, quoted(&at)));
                            next.push((name.clone(), Shape::any(choices, MAX_DEPTH)));
                        }
                        13 => {
                            let (there, back) = choices.of(&[
                                ("n + 7", "m - 7"),
                                ("n", "m"),
                                ("n / 2", "m * 2"),
                                ("string(n)", "int(m)"),
                            ]);
                            rules.push(format!(
                                r#"{{"compute":{{"from":{{"n":{}}},"to":{{"m":{}}},"forward":{{"m":"{there}"}},"backward":{{"n":"{back}"}}}}}}"#,
                                quoted(&at),
                                quoted(&moved)
                            ));
                            needed.retain(|known| known != name);
                            next.push((new, shape.clone()));
                        }
                        14 => next.push((name.clone(), Shape::any(choices, MAX_DEPTH))),
                        _ => next.push((name.clone(), shape.clone())),
                    }
                }
                next.sort_by(|one, other| one.0.cmp(&other.0));
                next.dedup_by(|one, other| one.0 == other.0);
                Shape::Object { fields: next, required: needed }
            }
            Shape::List { item, keys } => {
                let mut inner = Vec::new();
                let next = item.next(choices, "", &mut inner);
                add_each(rules, path, &inner);
                Shape::List { item: Box::new(next), keys: *keys }
            }
            Shape::Map(value) => {
                let mut inner = Vec::new();
                let next = value.next(choices, "", &mut inner);
                add_each(rules, path, &inner);
                Shape::Map(Box::new(next))
            }
            Shape::Leaf(_) => self.clone(),
        }
    }
}

fn add_each(rules: &mut Vec<String>, path: &str, inner: &[String]) {
    if !inner.is_empty() {
        let path = quoted(&format!("{path}[*]"));
        rules.push(format!(r#"{{"each":{{"path":{path},"rules":[{}]}}}}"#, inner.join(",")));
    }
}

/// A rule that has nothing to do with anything.
pub(super) fn odd_rule(choices: &mut Choices<'_>) -> String {
    let [from, to] = [(); 2].map(|()| quoted(ODD_PATHS[choices.below(ODD_PATHS.len())]));
    match choices.below(4) {
        0 => format!(r#"{{"move":{{"from":{from},"to":{to}}}}}"#),
        1 => format!(r#"{{"list":{{"from":{from},"to":{to}}}}}"#),
        2 => format!(r#"{{"add":{{"path":{from},"value":1}}}}"#),
        _ => format!(r#"{{"each":{{"path":{from},"rules":[{{"remove":{{"path":{to},"value":null}}}}]}}}}"#),
    }
}

fn below(path: &str, name: &str) -> String {
    if name.contains('.') { format!("{path}[\"{name}\"]") } else { format!("{path}.{name}") }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
