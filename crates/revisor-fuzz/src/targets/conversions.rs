//! Conversions, which are written by the owners of custom resources: what is sent as text, and rules between shapes that
//! the input decides on.

mod shapes;

use std::sync::Arc;

use revisor_catalog::BINARY;
use revisor_cel::Environment;
use revisor_convert::{
    Broken, Conversion, Definition, Effort, Generator, Kept, Law, Path, Spec, StepReport, Stored, Verdict,
    VersionSchema,
};
use revisor_object::{Value, parse_json};

use self::shapes::{Shape, odd_rule};
use crate::Choices;

/// Little: what counts is how many Conversions are tried.
const EFFORT: Effort = Effort { objects: 6, work: 300 };

/// How many objects are tried with each step that is proved, from either side.
const OBJECTS: usize = 3;

thread_local! {
    // To gather the libraries takes longer than to try an input with them.
    static ENVIRONMENT: Environment = Environment::new(BINARY);
}

/// The definition that Conversions in texts belong to.
const DEFINITION: [&str; 2] = [
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
        "a":{"type":"string","maxLength":9},"n":{"type":"integer"},"l":{"type":"array","items":{"type":"object",
        "properties":{"p":{"type":"integer"},"q":{"type":"string"}}}},
        "m":{"type":"object","additionalProperties":{"type":"string"}}}}}}"#,
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
        "b":{"type":"string","maxLength":9},"n":{"type":"integer"},"hosts":{"type":"array","items":{"type":"string"}},
        "l":{"type":"array","items":{"type":"object","properties":{"in":{"type":"object","properties":{
        "p":{"type":"integer"}}},"r":{"type":"string"}}}}}}}}"#,
];

const OBJECT: &str = r#"{"apiVersion":"e.x/v1","kind":"W","metadata":{"name":"w","labels":{"k":"v"}},
    "spec":{"a":"low","n":7,"l":[{"p":1,"q":"x"},{}],"m":{"":"y"}}}"#;

/// What is sent as text is refused or can be carried out; paths and kept parts are read as they are written. What bytes
/// decide on is held to the laws.
pub(super) fn convert(data: &[u8]) {
    if let Ok(path) = String::from_utf8_lossy(data).parse::<Path>() {
        assert_eq!(path.to_string().parse(), Ok(path));
    }
    match parse_json(data) {
        Ok(parsed) => written(&parsed.value),
        Err(_) => decided(&mut Choices::of_bytes(data)),
    }
}

/// A Conversion that can be carried out never panics, keeps the name of an object, and what it stores can be read.
fn written(sent: &Value) {
    if let Ok(kept) = Kept::read(sent) {
        assert_eq!(Kept::read(&kept.to_json()), Ok(kept));
    }
    let Some(Ok(conversion)) = sent.as_object().map(|sent| compile(&DEFINITION.map(str::to_owned), sent)) else {
        return;
    };
    check_found(&conversion);
    let stored = Stored::new(parse(OBJECT));
    let Ok(there) = conversion.read(&stored, "v2") else { return };
    assert_eq!(name(&there), name(&stored.object));
    check_shortcuts(&conversion, &stored, there.clone(), "v1");
    if let Ok(written) = conversion.write(Some(&stored), there, "v1") {
        assert_eq!(name(&written.object), name(&stored.object));
        let packed = written.clone().pack();
        assert_eq!(Stored::unpack(packed), Ok(written));
    }
}

/// Rules between shapes: who finds fault with them has an object that shows it, and what is proved holds.
fn decided(choices: &mut Choices<'_>) {
    let mut shapes = vec![Shape::object(choices, 0)];
    let mut steps = Vec::new();
    for from in 1..=1 + choices.below(2) {
        let mut rules = Vec::new();
        let next = shapes[from - 1].next(choices, ".spec", &mut rules);
        shapes.push(next);
        if choices.once_in(8) {
            rules.push(odd_rule(choices));
        }
        steps.push(format!(r#"{{"from":"v{from}","to":"v{}","rules":[{}]}}"#, from + 1, rules.join(",")));
    }
    let schemas: Vec<String> = shapes
        .iter()
        .map(|shape| format!(r#"{{"type":"object","properties":{{"spec":{}}}}}"#, shape.to_json()))
        .collect();
    let conversion = parse(&format!(r#"{{"spec":{{"steps":[{}]}}}}"#, steps.join(",")));
    let Some(Ok(conversion)) = conversion.as_object().map(|sent| compile(&schemas, sent)) else { return };
    for step in check_found(&conversion).iter().filter(|step| step.verdict == Verdict::Proved) {
        let seed = choices.below(256) as u64;
        for (from, to) in [(&step.from, &step.to), (&step.to, &step.from)] {
            check_proved(&conversion, from, to, seed);
        }
    }
}

/// The rules of a Conversion between versions with these schemas, of which the first is stored.
fn compile(schemas: &[String], conversion: &revisor_object::Object) -> Result<Conversion, ()> {
    let versions: Vec<String> = schemas
        .iter()
        .zip(1..)
        .map(|(schema, number)| {
            format!(r#"{{"name":"v{number}","storage":{},"schema":{{"openAPIV3Schema":{schema}}}}}"#, number == 1)
        })
        .collect();
    let definition = parse(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"ws.e.x"}},
            "spec":{{"group":"e.x","names":{{"kind":"W"}},"versions":[{}]}}}}"#,
        versions.join(",")
    ));
    ENVIRONMENT.with(|environment| {
        let Some(definition) = definition.as_object() else { panic!("the definition is an object") };
        let definition = Definition::read(definition, environment, BINARY.minor.into());
        let definition = definition.unwrap_or_else(|error| panic!("{error}"));
        let spec = Spec::read(conversion).map_err(drop)?;
        Conversion::compile(Arc::new(definition), &spec, environment).map_err(drop)
    })
}

/// Looks for objects that break a law, and whether those that are found do. Answers what is known of the steps.
fn check_found(conversion: &Conversion) -> Vec<StepReport> {
    let report = conversion.check(EFFORT);
    for broken in &report.broken {
        assert!(breaks(conversion, broken), "breaks nothing: {}: {}", broken.field, broken.message());
    }
    report.steps
}

/// Whether a counterexample to L1 or L2 is one, by the word of the schemas and of the objects that are shown. The other
/// laws are about more than one object.
fn breaks(conversion: &Conversion, broken: &Broken) -> bool {
    let is_valid = |value: &Value| {
        let version = value.as_object().and_then(|object| conversion.definition().version_of(object));
        version.is_some_and(|version| version.is_valid(value))
    };
    match broken.law {
        Law::ThereAndBack => is_valid(&broken.object) && broken.back.as_ref() != Some(&broken.object),
        Law::Valid => is_valid(&broken.object) && broken.becomes.as_ref().is_some_and(|value| !is_valid(value)),
        Law::Written | Law::AnyWay => is_valid(&broken.object),
        Law::Once => true,
    }
}

/// L1, L2 and L3 for objects of a version that were not looked at before.
fn check_proved(conversion: &Conversion, from: &str, to: &str, seed: u64) {
    let version = |name: &str| conversion.definition().versions().iter().find(|version| version.name() == name);
    let (Some(own), Some(other)) = (version(from), version(to)) else { panic!("the versions are there") };
    let others = objects(other, seed);
    for (at, object) in objects(own, seed ^ 0xff).into_iter().enumerate() {
        let shown = object.to_json();
        let stored = conversion.write(None, object.clone(), to).unwrap_or_else(|error| panic!("{error}: {shown}"));
        let read = conversion.read(&stored, from).unwrap_or_else(|error| panic!("{error}: {shown}"));
        assert_eq!(read.to_json(), shown, "there and back again from {from}");
        assert!(other.is_valid(&stored.object), "{to} would not have {} of {shown}", stored.object.to_json());
        for (version, name) in [(own, from), (other, to)] {
            let seen = conversion.read(&stored, name).unwrap_or_else(|error| panic!("{error}: {shown}"));
            assert!(version.is_valid(&seen), "{name} shows {}", seen.to_json());
            let again = conversion.write(Some(&stored), seen, to).unwrap_or_else(|error| panic!("{error}: {shown}"));
            assert_eq!(again.clone().pack().to_json(), stored.clone().pack().to_json(), "written back through {name}");
        }
        let packed = stored.clone().pack();
        assert_eq!(Stored::unpack(packed).as_ref(), Ok(&stored));
        if let Some(over) = others.get(at) {
            let old = Stored::new(over.clone());
            check_shortcuts(conversion, &old, object.clone(), to);
            let written = conversion.write(Some(&old), object, to).unwrap_or_else(|error| panic!("{error}: {shown}"));
            let read = conversion.read(&written, from).unwrap_or_else(|error| panic!("{error}: {shown}"));
            assert_eq!(read.to_json(), shown, "written through {from} over {}", over.to_json());
        }
    }
}

/// What a write finds out on the way is what it would find out without it.
fn check_shortcuts(conversion: &Conversion, old: &Stored, new: Value, storage: &str) {
    let version = new.as_object().and_then(|new| conversion.definition().version_of(new)).map(VersionSchema::name);
    let Some(Ok((_, opened))) = version.map(|version| conversion.open(old.clone(), version)) else { return };
    let (Ok(short), Ok(long)) =
        (conversion.replace(Some(&opened), new.clone(), storage), conversion.write(Some(old), new, storage))
    else {
        return;
    };
    assert_eq!(short.stored, long);
    if let (Some(shown), Some(version)) = (short.shown, version) {
        let read = conversion.read(&long, version).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(shown.to_json(), read.to_json(), "what was written through {version}");
    }
}

/// Some objects of a version, as they are once they are stored.
fn objects(version: &VersionSchema, seed: u64) -> Vec<Value> {
    let mut generator = Generator::new(version, &[], seed);
    let made = std::iter::repeat_with(|| generator.sample()).take(OBJECTS).flatten();
    let filled = made.map(|mut object| {
        version.fill_defaults(&mut object);
        object
    });
    filled.filter(|object| version.is_valid(object)).collect()
}

fn parse(text: &str) -> Value {
    parse_json(text.as_bytes()).map(|parsed| parsed.value).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn name(object: &Value) -> Option<&Value> {
    object.as_object().and_then(|object| object.at(&["metadata", "name"]))
}
