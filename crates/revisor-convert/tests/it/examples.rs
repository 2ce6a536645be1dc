//! Definitions and Conversions in few words.

use std::sync::Arc;

use revisor_cel::Environment;
use revisor_convert::{Conversion, Definition, Spec};
use revisor_object::{Value, parse_json};
use revisor_version::Release;

pub(crate) const STRING: &str = r#"{"type":"string"}"#;
pub(crate) const INTEGER: &str = r#"{"type":"integer"}"#;

#[track_caller]
pub(crate) fn parse(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")).value
}

pub(crate) fn environment() -> Environment {
    Environment::new(Release { major: 1, minor: 36 })
}

/// The schema of an object whose `spec` has these properties.
pub(crate) fn spec(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{properties}}}}}}}"#)
}

/// A definition of widgets with these versions, of which the first is stored.
#[track_caller]
pub(crate) fn definition(versions: &[(&str, &str)]) -> Arc<Definition> {
    let version = |(at, (name, schema)): (usize, &(&str, &str))| {
        let storage = at == 0;
        format!(r#"{{"name":"{name}","served":true,"storage":{storage},"schema":{{"openAPIV3Schema":{schema}}}}}"#)
    };
    let versions: Vec<String> = versions.iter().enumerate().map(version).collect();
    let text = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{{"name":"widgets.example.com"}},"spec":{{"group":"example.com","names":{{"kind":"Widget"}},
            "versions":[{}]}}}}"#,
        versions.join(",")
    );
    let definition = parse(&text);
    Arc::new(Definition::read(definition.as_object().expect("an object"), &environment(), 36).expect("a definition"))
}

/// A Conversion of these steps: from, to, rules.
#[track_caller]
pub(crate) fn try_conversion(
    definition: &Arc<Definition>,
    steps: &[(&str, &str, &str)],
    more: &str,
) -> Result<Conversion, Vec<String>> {
    let step = |(from, to, rules): &(&str, &str, &str)| format!(r#"{{"from":"{from}","to":"{to}","rules":{rules}}}"#);
    let steps: Vec<String> = steps.iter().map(step).collect();
    let text = format!(r#"{{"spec":{{"steps":[{}]{more}}}}}"#, steps.join(","));
    let shown = |errors: revisor_object::FieldErrors| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let spec = Spec::read(parse(&text).as_object().expect("an object")).map_err(shown)?;
    Conversion::compile(Arc::clone(definition), &spec, &environment()).map_err(shown)
}

#[track_caller]
pub(crate) fn conversion(definition: &Arc<Definition>, steps: &[(&str, &str, &str)]) -> Conversion {
    try_conversion(definition, steps, "").unwrap_or_else(|errors| panic!("{}", errors.join("\n")))
}

/// An object of a version with this content.
#[track_caller]
pub(crate) fn object(version: &str, content: &str) -> Value {
    let mut value = parse(content);
    let object = value.as_object_mut().expect("an object");
    object.insert("apiVersion", format!("example.com/{version}"));
    object.insert("kind", "Widget");
    object.object_mut("metadata").insert("name", "w");
    value
}

/// An object without its type and metadata.
pub(crate) fn content(value: &Value) -> String {
    let mut value = value.clone();
    if let Some(object) = value.as_object_mut() {
        for name in ["apiVersion", "kind", "metadata"] {
            object.remove(name);
        }
    }
    value.to_json()
}
