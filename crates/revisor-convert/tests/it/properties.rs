//! Random schemas and random rules: what loses nothing is never refused, what loses something always is, and objects
//! become what a naive reading of the rules makes of them.
//!
//! `REVISOR_CONVERT_OBJECTS` sets how many objects are compared with the naive reading in each case.

use proptest::collection::vec;
use proptest::prelude::*;
use revisor_convert::{Conversion, Effort, Generator, Law, Report};
use revisor_object::{Object, Value};

use crate::examples::{definition, parse, spec, try_conversion};

/// Types of fields.
const TYPES: [&str; 9] = [
    r#"{"type":"string"}"#,
    r#"{"type":"integer","minimum":-5,"maximum":500}"#,
    r#"{"type":"boolean"}"#,
    r#"{"type":"number"}"#,
    r#"{"type":"string","pattern":"^[a-f]{1,4}$"}"#,
    r#"{"type":"array","items":{"type":"integer"},"maxItems":3}"#,
    r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
    r#"{"type":"object","required":["p"],"properties":{"p":{"type":"string"},"q":{"type":"integer"}}}"#,
    r#"{"type":"string","nullable":true}"#,
];

/// What becomes of a field.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Same,
    Rename,
    Sink,
    Rise,
    OnlyLeft,
    OnlyRight,
    Added,
    Removed,
    Values,
    Listed,
    Shifted,
}

/// How a rule loses something.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Merged,
    Rounded,
    NarrowerEnum,
    NarrowerBounds,
    Missing,
    WrongType,
}

/// A field of either side.
#[derive(Debug, Clone)]
struct Field {
    name: String,
    kind: usize,
    fate: Fate,
}

/// The properties of both sides, and the rules.
#[derive(Default)]
struct Shapes {
    left: Vec<String>,
    right: Vec<String>,
    rules: Vec<String>,
    required: [Vec<String>; 2],
}

impl Shapes {
    fn of(fields: &[Field], at: &str) -> Shapes {
        let mut shapes = Shapes::default();
        for Field { name, kind, fate } in fields {
            let schema = TYPES[*kind];
            let deep = |name: &str| format!(r#""in{name}":{{"type":"object","properties":{{"{name}":{schema}}}}}"#);
            let (left, right, rule) = match fate {
                Fate::Same => (format!(r#""{name}":{schema}"#), format!(r#""{name}":{schema}"#), None),
                Fate::Rename => (
                    format!(r#""{name}":{schema}"#),
                    format!(r#""new{name}":{schema}"#),
                    Some(format!(r#"{{"move":{{"from":"{at}.{name}","to":"{at}.new{name}"}}}}"#)),
                ),
                Fate::Sink => (
                    format!(r#""{name}":{schema}"#),
                    deep(name),
                    Some(format!(r#"{{"move":{{"from":"{at}.{name}","to":"{at}.in{name}.{name}"}}}}"#)),
                ),
                Fate::Rise => (
                    deep(name),
                    format!(r#""{name}":{schema}"#),
                    Some(format!(r#"{{"move":{{"from":"{at}.in{name}.{name}","to":"{at}.{name}"}}}}"#)),
                ),
                Fate::OnlyLeft => (format!(r#""{name}":{schema}"#), String::new(), None),
                Fate::OnlyRight => (String::new(), format!(r#""{name}":{schema}"#), None),
                Fate::Added => (
                    String::new(),
                    format!(r#""{name}":{{"type":"string","enum":["x","y"]}}"#),
                    Some(format!(r#"{{"add":{{"path":"{at}.{name}","value":"x"}}}}"#)),
                ),
                Fate::Removed => (
                    format!(r#""{name}":{{"type":"string","enum":["x","y"]}}"#),
                    String::new(),
                    Some(format!(r#"{{"remove":{{"path":"{at}.{name}","value":"y"}}}}"#)),
                ),
                Fate::Values => (
                    format!(r#""{name}":{{"type":"string","enum":["a","b","c"]}}"#),
                    format!(r#""{name}":{{"type":"string","enum":["A","B","C"]}}"#),
                    Some(format!(r#"{{"values":{{"path":"{at}.{name}","map":{{"a":"A","b":"B","c":"C"}}}}}}"#)),
                ),
                Fate::Listed => (
                    format!(r#""{name}":{schema}"#),
                    format!(r#""{name}s":{{"type":"array","items":{schema}}}"#),
                    Some(format!(r#"{{"list":{{"from":"{at}.{name}","to":"{at}.{name}s"}}}}"#)),
                ),
                Fate::Shifted => (
                    format!(r#""{name}":{{"type":"integer","minimum":0,"maximum":90}}"#),
                    format!(r#""up{name}":{{"type":"integer","minimum":7,"maximum":97}}"#),
                    Some(format!(
                        r#"{{"compute":{{"from":{{"n":"{at}.{name}"}},"to":{{"m":"{at}.up{name}"}},"forward":{{"m":"n + 7"}},"backward":{{"n":"m - 7"}}}}}}"#
                    )),
                ),
            };
            shapes.left.extend(Some(left).filter(|text| !text.is_empty()));
            shapes.right.extend(Some(right).filter(|text| !text.is_empty()));
            shapes.rules.extend(rule);
        }
        shapes
    }

    fn lose(&mut self, loss: Loss, at: &str) {
        let (left, right, rule) = match loss {
            Loss::Merged => (
                r#""loss":{"type":"string","enum":["a","b","c"]}"#,
                r#""loss":{"type":"string","enum":["A","C"]}"#,
                format!(r#"{{"values":{{"path":"{at}.loss","map":{{"a":"A","b":"A","c":"C"}}}}}}"#),
            ),
            Loss::Rounded => (
                r#""loss":{"type":"integer","minimum":0,"maximum":1000}"#,
                r#""loss2":{"type":"integer","minimum":0,"maximum":250}"#,
                format!(
                    r#"{{"compute":{{"from":{{"n":"{at}.loss"}},"to":{{"m":"{at}.loss2"}},"forward":{{"m":"n / 4"}},"backward":{{"n":"m * 4"}}}}}}"#
                ),
            ),
            Loss::NarrowerEnum => (
                r#""loss":{"type":"string","enum":["a","b"]}"#,
                r#""loss":{"type":"string","enum":["b"]}"#,
                String::new(),
            ),
            Loss::NarrowerBounds => (
                r#""loss":{"type":"integer","minimum":0,"maximum":7}"#,
                r#""lost":{"type":"integer","minimum":0,"maximum":6}"#,
                format!(r#"{{"move":{{"from":"{at}.loss","to":"{at}.lost"}}}}"#),
            ),
            Loss::Missing => {
                self.required[1].push("loss".to_owned());
                ("", r#""loss":{"type":"string"}"#, String::new())
            }
            Loss::WrongType => (
                r#""loss":{"type":"integer"}"#,
                r#""lost":{"type":"string"}"#,
                format!(r#"{{"move":{{"from":"{at}.loss","to":"{at}.lost"}}}}"#),
            ),
        };
        self.left.extend(Some(left.to_owned()).filter(|text| !text.is_empty()));
        self.right.push(right.to_owned());
        self.rules.extend(Some(rule).filter(|text| !text.is_empty()));
    }

    fn conversion(&self, in_items: bool) -> Conversion {
        let side = |properties: &[String], required: &[String]| {
            let properties = format!("{{{}}}", properties.join(","));
            let required = match required {
                [] => String::new(),
                names => format!(r#","required":["{}"]"#, names.join("\",\"")),
            };
            match in_items {
                true => spec(&format!(
                    r#"{{"items":{{"type":"array","items":{{"type":"object","properties":{properties}{required}}}}}}}"#
                )),
                false => format!(
                    r#"{{"type":"object","required":["spec"],"properties":{{"spec":{{"type":"object","properties":{properties}{required}}}}}}}"#
                ),
            }
        };
        let rules = self.rules.join(",");
        let rules = match in_items {
            true => format!(r#"[{{"each":{{"path":".spec.items[*]","rules":[{rules}]}}}}]"#),
            false => format!("[{rules}]"),
        };
        let (left, right) = (side(&self.left, &self.required[0]), side(&self.right, &self.required[1]));
        let definition = definition(&[("v1", &left), ("v2", &right)]);
        let conversion = try_conversion(&definition, &[("v1", "v2", &rules)], "");
        conversion.unwrap_or_else(|errors| panic!("{}\n{left}\n{right}\n{rules}", errors.join("\n")))
    }
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    let fate = prop_oneof![
        Just(Fate::Same),
        Just(Fate::Rename),
        Just(Fate::Sink),
        Just(Fate::Rise),
        Just(Fate::OnlyLeft),
        Just(Fate::OnlyRight),
        Just(Fate::Added),
        Just(Fate::Removed),
        Just(Fate::Values),
        Just(Fate::Listed),
        Just(Fate::Shifted),
    ];
    vec((0..TYPES.len(), fate), 1..7).prop_map(|fields| {
        let field = |(at, (kind, fate)): (usize, (usize, Fate))| {
            // Null is no value of a list whose items are not nullable in `list`, where one and many are told apart.
            let kind = if matches!(fate, Fate::Listed) && kind == 8 { 0 } else { kind };
            Field { name: format!("f{at}"), kind, fate }
        };
        fields.into_iter().enumerate().map(field).collect()
    })
}

fn shown(report: &Report) -> String {
    report.broken.iter().map(|broken| format!("{}: {}\n", broken.field, broken.message())).collect()
}

/// Whether a counterexample breaks its law, by the word of the conversion and the schemas alone.
fn really_breaks(conversion: &Conversion, broken: &revisor_convert::Broken) -> bool {
    let versions = conversion.definition().versions();
    let version = |value: &Value| {
        let version = value.as_object().and_then(|object| conversion.definition().version_of(object));
        version.expect("names its version").name().to_owned()
    };
    let judge = |value: &Value| {
        let name = version(value);
        versions.iter().any(|version| version.name() == name && version.is_valid(value))
    };
    let at = version(&broken.object);
    let other = if at == "v1" { "v2" } else { "v1" };
    judge(&broken.object)
        && match broken.law {
            Law::ThereAndBack => match conversion.write(None, broken.object.clone(), other) {
                Ok(stored) => conversion.read(&stored, &at).as_ref() != Ok(&broken.object),
                Err(_) => true,
            },
            Law::Valid => broken.becomes.as_ref().is_some_and(|value| !judge(value)),
            _ => false,
        }
}

/// What a field of one side is on the other, in the words of the fates.
fn naive(fields: &[Field], source: &Object, forward: bool) -> Object {
    let mut made = Object::new();
    let shift = |value: &Value, by: i64| Value::Int(value.as_i64().unwrap_or_default() + by);
    for Field { name, fate, .. } in fields {
        let (new, deep, many, up) =
            (format!("new{name}"), format!("in{name}"), format!("{name}s"), format!("up{name}"));
        let flat = |one: &str| source.get(one).cloned();
        let sunk = || source.object(&deep).and_then(|inner| inner.get(name)).cloned();
        match (fate, forward) {
            (Fate::Same, _) => made.set(name, flat(name)),
            (Fate::Rename, true) => made.set(&new, flat(name)),
            (Fate::Rename, false) => made.set(name, flat(&new)),
            (Fate::Sink, true) | (Fate::Rise, false) => {
                if let Some(value) = flat(name) {
                    made.object_mut(&deep).insert(name, value);
                }
            }
            (Fate::Sink, false) | (Fate::Rise, true) => made.set(name, sunk()),
            (Fate::OnlyLeft | Fate::OnlyRight, _) => {}
            (Fate::Added, true) => made.set(name, Some("x".into())),
            (Fate::Removed, false) => made.set(name, Some("y".into())),
            (Fate::Added, false) | (Fate::Removed, true) => {}
            (Fate::Values, _) => {
                let swap = |text: &str| if forward { text.to_uppercase() } else { text.to_lowercase() };
                made.set(name, source.str(name).map(|text| swap(text).into()));
            }
            (Fate::Listed, true) => made.set(&many, flat(name).map(|one| Value::Array(vec![one]))),
            (Fate::Listed, false) => made.set(name, source.array(&many).first().cloned()),
            (Fate::Shifted, true) => made.set(&up, source.get(name).map(|value| shift(value, 7))),
            (Fate::Shifted, false) => made.set(name, source.get(&up).map(|value| shift(value, -7))),
        }
    }
    made
}

fn objects_per_case() -> usize {
    std::env::var("REVISOR_CONVERT_OBJECTS").ok().and_then(|count| count.parse().ok()).unwrap_or(30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_loses_nothing_is_never_refused(fields in fields(), in_items in any::<bool>()) {
        let at = if in_items { "" } else { ".spec" };
        let conversion = Shapes::of(&fields, at).conversion(in_items);
        let report = conversion.check(Effort { objects: 120, work: 10_000 });
        prop_assert!(report.broken.is_empty(), "{}", shown(&report));
    }

    #[test]
    fn what_loses_something_is_always_refused(
        fields in fields(),
        in_items in any::<bool>(),
        loss in prop_oneof![
            Just(Loss::Merged), Just(Loss::Rounded), Just(Loss::NarrowerEnum), Just(Loss::NarrowerBounds),
            Just(Loss::Missing), Just(Loss::WrongType)
        ],
    ) {
        let at = if in_items { "" } else { ".spec" };
        let mut shapes = Shapes::of(&fields, at);
        shapes.lose(loss, at);
        let conversion = shapes.conversion(in_items);
        let report = conversion.check(Effort { objects: 200, work: 20_000 });
        prop_assert!(!report.broken.is_empty(), "{loss:?} was not found");
        for broken in &report.broken {
            prop_assert!(really_breaks(&conversion, broken), "{}: {}", broken.field, broken.message());
        }
    }

    #[test]
    fn objects_become_what_the_rules_say(fields in fields(), in_items in any::<bool>(), seed in any::<u64>()) {
        let at = if in_items { "" } else { ".spec" };
        let conversion = Shapes::of(&fields, at).conversion(in_items);
        for (from, to) in [("v1", "v2"), ("v2", "v1")] {
            let version = conversion.definition().versions().iter().find(|version| version.name() == from);
            let mut generator = Generator::new(version.expect("is there"), &[], seed);
            for object in (0..objects_per_case()).filter_map(|_| generator.sample()) {
                let stored = conversion.write(None, object.clone(), to).expect("is written");
                let source = object.as_object().and_then(|object| object.object("spec"));
                let want = source.map(|source| match in_items {
                    false => naive(&fields, source, from == "v1"),
                    true => {
                        let mut made = Object::new();
                        let convert = |item: &Value| item.as_object().map_or(item.clone(), |item| naive(&fields, item, from == "v1").into());
                        if let Some(Value::Array(items)) = source.get("items") {
                            made.insert("items", items.iter().map(convert).collect::<Vec<Value>>());
                        }
                        made
                    }
                });
                let made = stored.object.as_object().and_then(|made| made.object("spec")).cloned();
                prop_assert_eq!(made, want, "{}", object.to_json());
                let read = conversion.read(&stored, from).expect("is read");
                prop_assert_eq!(&read, &object);
                // What is written again as it was read changes nothing, in whichever version.
                for version in ["v1", "v2"] {
                    let seen = conversion.read(&stored, version).expect("is read");
                    let again = conversion.write(Some(&stored), seen.clone(), to).expect("is written");
                    prop_assert_eq!(&again, &stored);
                    // What is found out on the way is what would be found out without it.
                    let (opened, old) = conversion.open(stored.clone(), version).expect("is read");
                    prop_assert_eq!(&opened, &seen);
                    let written = conversion.replace(Some(&old), seen.clone(), to).expect("is written");
                    prop_assert_eq!(&written.stored, &stored);
                    prop_assert_eq!(written.shown, (version != to).then_some(seen));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_kept_parts_or_none(text in ".{0,60}", forged in any::<bool>()) {
        let text = if forged { format!(r#"{{"v2":{{".spec":{text}}}}}"#) } else { text };
        let conversion = Shapes::of(&[Field { name: "a".to_owned(), kind: 0, fate: Fate::OnlyRight }], ".spec").conversion(false);
        let mut object = parse(r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{}}"#);
        object.as_object_mut().expect("an object").object_mut("metadata").object_mut("annotations")
            .insert(revisor_convert::KEPT_ANNOTATION, text);
        if let Ok(there) = conversion.convert(object, "v2") {
            let there = there.as_object().cloned().unwrap_or_default();
            prop_assert_eq!(there.str("kind"), Some("Widget"));
        }
    }
}
