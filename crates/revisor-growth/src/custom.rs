//! Lists and maps of custom resources: one definition for each thing that a schema can ask of its items.

use std::sync::Arc;

use anyhow::Context;
use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};

use crate::growth::Growth;
use crate::objects::{name, renamed};
use crate::report::{Measured, Report};
use crate::server::{Server, Way};
use crate::survey::Extent;

/// A list or map under `spec.things`.
struct Case {
    name: &'static str,
    /// The schema of the list or map.
    schema: &'static str,
    /// An item, in which `#` is its number; a map has it under a key with that number.
    item: &'static str,
}

const fn case(name: &'static str, schema: &'static str, item: &'static str) -> Case {
    Case { name, schema, item }
}

const CASES: &[Case] = &[
    case("list", r#"{"type":"array","items":{"type":"string"}}"#, r##""v#""##),
    case("atomic list", r#"{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string"}}"#, r##""v#""##),
    case("set of texts", r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#, r##""v#""##),
    case("set of numbers", r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}"#, "#"),
    case(
        "list by a key",
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
            "items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"v":{"type":"integer"}}}}"#,
        r##"{"name":"n#","v":#}"##,
    ),
    case(
        "list by two keys with a default",
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
            "items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},
            "protocol":{"type":"string","default":"TCP"},"note":{"type":"string"}}}}"#,
        r##"{"port":#,"note":"v#"}"##,
    ),
    case(
        "list by a key of lists by a key",
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
            "items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
            "in":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
            "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}}}"#,
        r##"{"name":"n#","in":[{"k":"a"},{"k":"b"}]}"##,
    ),
    case("map of texts", r#"{"type":"object","additionalProperties":{"type":"string"}}"#, r##""v#""##),
    case(
        "map of objects",
        r#"{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
        r##"{"a":"v#"}"##,
    ),
    case("preserved", r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#, r##"{"a":"v#"}"##),
    case("pruned", r#"{"type":"object","properties":{"known":{"type":"string"}}}"#, r##"{"a":"v#"}"##),
    case("pattern", r#"{"type":"array","items":{"type":"string","pattern":"^[a-z]+[0-9]+$"}}"#, r##""v#""##),
    case("pattern that fails", r#"{"type":"array","items":{"type":"string","pattern":"^x$"}}"#, r##""v#""##),
    case("format", r#"{"type":"array","items":{"type":"string","format":"date-time"}}"#, r##""v#""##),
    case("enum", r#"{"type":"array","items":{"type":"string","enum":["a","b","c"]}}"#, r##""b""##),
    case("enum that fails", r#"{"type":"array","items":{"type":"string","enum":["a","b","c"]}}"#, r##""v#""##),
    case("wrong type", r#"{"type":"array","items":{"type":"integer"}}"#, r##""v#""##),
    case(
        "alternatives",
        r#"{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
            "oneOf":[{"required":["a"]},{"required":["b"]}],"anyOf":[{"required":["a"]},{"required":["b"]}]}}"#,
        r##"{"a":"v#"}"##,
    ),
    case(
        "embedded resources",
        r#"{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,
            "x-kubernetes-preserve-unknown-fields":true}}"#,
        r##"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n#"}}"##,
    ),
    case(
        "rule on each item",
        r#"{"type":"array","maxItems":100000,"items":{"type":"string","maxLength":20,
            "x-kubernetes-validations":[{"rule":"self != 'x'"}]}}"#,
        r##""v#""##,
    ),
    case(
        "rule on all items",
        r#"{"type":"array","maxItems":100000,"items":{"type":"string","maxLength":20},
            "x-kubernetes-validations":[{"rule":"self.all(v, v != 'x')"}]}"#,
        r##""v#""##,
    ),
    case(
        "rule on a map",
        r#"{"type":"object","maxProperties":100000,"additionalProperties":{"type":"integer"},
            "x-kubernetes-validations":[{"rule":"self.all(k, self[k] >= 0)"}]}"#,
        "#",
    ),
    case(
        "rule that fails",
        r#"{"type":"array","maxItems":100000,"items":{"type":"string","maxLength":20,
            "x-kubernetes-validations":[{"rule":"self == 'x'"}]}}"#,
        r##""v#""##,
    ),
    case(
        "rule on what was there",
        r#"{"type":"array","maxItems":20000,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
            "items":{"type":"object","required":["name"],"properties":{"name":{"type":"string","maxLength":20},
            "v":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.v >= oldSelf.v"}]}}"#,
        r##"{"name":"n#","v":#}"##,
    ),
];

const GROUP: &str = "custom.example.com";

/// Measures all of them.
pub fn run(server: &Server, extent: &Extent, report: &mut Report) -> anyhow::Result<()> {
    for (number, case) in CASES.iter().enumerate() {
        let subject = format!("custom {}", case.name);
        if !subject.contains(&extent.only) {
            continue;
        }
        let resource = define(server, number, case).with_context(|| format!("cannot define {subject}"))?;
        for is_distinct in [true, false] {
            measure(server, extent, &subject, case, &resource, is_distinct, report);
        }
    }
    Ok(())
}

fn define(server: &Server, number: usize, case: &Case) -> anyhow::Result<Arc<Resource>> {
    let catalog = server.catalog();
    let definitions = catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let plural = format!("things{number}");
    let text = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{{"name":"{plural}.{GROUP}"}},
            "spec":{{"group":"{GROUP}","scope":"Namespaced","names":{{"plural":"{plural}","singular":"thing{number}",
            "kind":"Thing{number}","listKind":"Thing{number}List"}},"versions":[{{"name":"v1","served":true,
            "storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object",
            "properties":{{"things":{}}}}}}}}}}},
            "additionalPrinterColumns":[{{"name":"Things","type":"string","jsonPath":".spec.things"}}]}}]}}}}"#,
        case.schema
    );
    server.store(definitions.context("definitions are served")?, &object(&text))?;
    server.catalog().resource(GROUP, "v1", &plural).cloned().context("it is not served")
}

fn measure(
    server: &Server,
    extent: &Extent,
    subject: &str,
    case: &Case,
    resource: &Arc<Resource>,
    is_distinct: bool,
    report: &mut Report,
) {
    let make = |items: usize| {
        let item = |index: usize| {
            let text = case.item.replace('#', &if is_distinct { index } else { 0 }.to_string());
            parse_json(text.as_bytes()).map(|parsed| parsed.value).unwrap_or_default()
        };
        let things = if case.schema.starts_with(r#"{"type":"array""#) {
            Value::Array((0..items).map(item).collect())
        } else {
            let members: Vec<(String, Value)> = (0..items).map(|index| (format!("k{index}"), item(index))).collect();
            Value::Object(members.iter().map(|(key, value)| (key.as_str(), value.clone())).collect())
        };
        let mut object = Object::new();
        object.insert("kind", resource.kind.as_str());
        object.insert("apiVersion", resource.api_version.as_str());
        object.object_mut("metadata").insert("name", "growth");
        object.object_mut("spec").insert("things", things);
        object
    };
    let items = extent.items_of(|items| Value::Object(make(items)).to_json().len());
    for (number, way) in [Way::Create, Way::Update, Way::Merge, Way::Apply, Way::Table].into_iter().enumerate() {
        let mut is_taken = true;
        let mut numbers = number * 1000 + usize::from(is_distinct) * 100;
        let mut growth = Growth::measure(items, |items| {
            numbers += 1;
            let object = renamed(&make(items), numbers);
            if way != Way::Create {
                // Where this is refused, so is what is measured.
                let _ = server.store(resource, &object);
            }
            let mut changed = object.clone();
            if way == Way::Update {
                let read = server.read(resource, name(&object));
                let version = read.as_ref().and_then(|read| read.at(&["metadata", "resourceVersion"]).cloned());
                changed.object_mut("metadata").set("resourceVersion", version);
            }
            changed.object_mut("metadata").object_mut("labels").insert("changed", "yes");
            let text = Value::Object(changed.clone()).to_json();
            is_taken = server.send(way, resource, &changed, text.as_bytes()).is_ok();
            move || _ = std::hint::black_box(server.send(way, resource, &changed, text.as_bytes()).is_ok())
        });
        growth.hold_against_reading(make);
        report.add(Measured {
            subject: subject.to_owned(),
            place: "spec.things".to_owned(),
            variation: if is_distinct { "distinct" } else { "equal" },
            way: way.name(),
            growth,
            is_taken,
        });
    }
}

fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).map(|parsed| parsed.value) {
        Ok(Value::Object(object)) => object,
        _ => Object::new(),
    }
}
