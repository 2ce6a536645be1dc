//! Conversions, which are written by the owners of custom resources.

use std::sync::Arc;

use revisor_catalog::BINARY;
use revisor_cel::Environment;
use revisor_convert::{Conversion, Definition, Kept, Path, Spec, Stored};
use revisor_object::{Value, parse_json};

const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.e.x"},
    "spec":{"group":"e.x","names":{"kind":"W"},"versions":[
    {"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
        "a":{"type":"string","maxLength":9},"n":{"type":"integer"},"l":{"type":"array","items":{"type":"object","properties":{
        "p":{"type":"integer"},"q":{"type":"string"}}}},"m":{"type":"object","additionalProperties":{"type":"string"}}}}}}}},
    {"name":"v2","schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
        "b":{"type":"string","maxLength":9},"n":{"type":"integer"},"hosts":{"type":"array","items":{"type":"string"}},
        "l":{"type":"array","items":{"type":"object","properties":{"in":{"type":"object","properties":{"p":{"type":"integer"}}},
        "r":{"type":"string"}}}}}}}}}}]}}"#;

const OBJECT: &str = r#"{"apiVersion":"e.x/v1","kind":"W","metadata":{"name":"w","labels":{"k":"v"}},
    "spec":{"a":"low","n":7,"l":[{"p":1,"q":"x"},{}],"m":{"":"y"}}}"#;

/// A Conversion that can be carried out never panics, keeps the name of an object, and gives an object that was written
/// through a version to whoever reads it in the stored one; a write of what was read changes nothing in the stored
/// version that only this one can say. Paths and kept parts are read as they are written.
pub(super) fn convert(data: &[u8]) {
    if let Ok(path) = String::from_utf8_lossy(data).parse::<Path>() {
        assert_eq!(path.to_string().parse(), Ok(path));
    }
    let Ok(parsed) = parse_json(data) else { return };
    if let Ok(kept) = Kept::read(&parsed.value) {
        assert_eq!(Kept::read(&kept.to_json()), Ok(kept));
    }
    let Some(conversion) = parsed.value.as_object() else { return };
    let Ok(spec) = Spec::read(conversion) else { return };
    let parse = |text: &str| parse_json(text.as_bytes()).map(|parsed| parsed.value).unwrap_or_default();
    let environment = Environment::new(BINARY);
    let definition = parse(DEFINITION);
    let definition = definition
        .as_object()
        .and_then(|definition| Definition::read(definition, &environment, BINARY.minor.into()).ok());
    let Some(definition) = definition else { panic!("the definition is one") };
    let Ok(conversion) = Conversion::compile(Arc::new(definition), &spec, &environment) else { return };
    let stored = Stored::new(parse(OBJECT));
    let Ok(there) = conversion.read(&stored, "v2") else { return };
    let name = |value: &Value| value.as_object().and_then(|object| object.at(&["metadata", "name"])).cloned();
    assert_eq!(name(&there), name(&stored.object));
    if let Ok(written) = conversion.write(Some(&stored), there, "v1") {
        assert_eq!(name(&written.object), name(&stored.object));
        let packed = written.clone().pack();
        assert_eq!(Stored::unpack(packed), Ok(written));
    }
}
