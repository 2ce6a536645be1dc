//! What a client sends that is no object yet, or none at all: JSON, YAML, protobuf, selectors, patches.

use std::sync::Arc;

use anyhow::Context;
use revisor_catalog::Resource;
use revisor_merge::JsonPatch;
use revisor_object::{FieldSelector, LabelSelector, Value, parse_json, parse_yaml};

use crate::growth::Growth;
use crate::report::{Measured, Report};
use crate::server::Server;
use crate::survey::Extent;

/// Work on a text of some size, ready to be done.
type Work = Box<dyn FnMut()>;

/// Makes the work for so many items.
type Make = fn(usize) -> Work;

const CASES: &[(&str, &str, Make)] = &[
    ("JSON", "list", |items| json(format!("[{}]", joined(items, ",", |at| format!("{{\"a\":{at}}}"))))),
    ("JSON", "object", |items| json(format!("{{{}}}", joined(items, ",", |at| format!("\"k{at}\":{at}"))))),
    ("JSON", "object in reverse", |items| {
        json(format!("{{{}}}", joined(items, ",", |at| format!("\"k{:09}\":{at}", items - at))))
    }),
    ("JSON", "members twice", |items| {
        json(format!("{{{}}}", joined(items, ",", |at| format!("\"k{}\":{at}", at / 2))))
    }),
    ("JSON", "one member often", |items| json(format!("{{{}}}", joined(items, ",", |at| format!("\"k\":{at}"))))),
    ("JSON", "escapes", |items| json(format!("\"{}\"", "\\u00e9\\n".repeat(items)))),
    ("YAML", "list", |items| yaml(joined(items, "\n", |at| format!("- a: {at}\n  b: x")))),
    ("YAML", "flow list", |items| yaml(format!("[{}]", joined(items, ", ", |at| at.to_string())))),
    ("YAML", "object", |items| yaml(joined(items, "\n", |at| format!("k{at}: v{at}")))),
    ("YAML", "members twice", |items| yaml(joined(items, "\n", |at| format!("k{}: v{at}", at / 2)))),
    ("YAML", "block of text", |items| yaml(format!("a: |\n{}", joined(items, "\n", |at| format!("  line {at}"))))),
    ("YAML", "quoted text", |items| yaml(format!("a: \"{}\"", "word \\n ".repeat(items)))),
    ("YAML", "comments", |items| yaml(format!("{}\na: 1", joined(items, "\n", |at| format!("# comment {at}"))))),
    ("label selector", "terms", |items| labels(joined(items, ",", |at| format!("k{at}=v")))),
    ("label selector", "values", |items| labels(format!("k in ({})", joined(items, ",", |at| format!("v{at}"))))),
    ("field selector", "terms", |items| {
        let text = joined(items, ",", |at| format!("k{at}=v"));
        Box::new(move || {
            let parsed = text.parse::<FieldSelector>();
            std::hint::black_box(parsed.is_ok_and(|selector| selector.matches(|_| Some("v"))));
        })
    }),
    ("JSON patch", "add at the end", |items| {
        patch(items.min(MAX_OPERATIONS), |at| format!("{{\"op\":\"add\",\"path\":\"/list/-\",\"value\":{at}}}"))
    }),
    ("JSON patch", "add members", |items| {
        patch(items.min(MAX_OPERATIONS), |at| format!("{{\"op\":\"add\",\"path\":\"/k{at}\",\"value\":{at}}}"))
    }),
];

/// How many operations a JSON patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// Measures all of them.
pub fn run(server: &Server, extent: &Extent, report: &mut Report) -> anyhow::Result<()> {
    let catalog = server.catalog();
    let config_maps = catalog.resource("", "v1", "configmaps").context("is served")?.clone();
    let mut add = |subject: &str, place: &str, make: &dyn Fn(usize) -> Work| {
        if format!("{subject} {place}").contains(&extent.only) {
            let growth = Growth::measure(extent.items, make);
            let (subject, place) = (subject.to_owned(), place.to_owned());
            report.add(Measured { subject, place, variation: "distinct", way: "read", growth, is_taken: true });
        }
    };
    for (subject, place, make) in CASES {
        add(subject, place, make);
    }
    add("protobuf", "map", &|items| protobuf(&config_maps, items, 2));
    add("protobuf", "list", &|items| protobuf(&config_maps, items, 1));
    Ok(())
}

fn joined(items: usize, between: &str, item: impl Fn(usize) -> String) -> String {
    (0..items).map(item).collect::<Vec<_>>().join(between)
}

fn json(text: String) -> Work {
    Box::new(move || _ = std::hint::black_box(parse_json(text.as_bytes()).is_ok()))
}

fn yaml(text: String) -> Work {
    Box::new(move || _ = std::hint::black_box(parse_yaml(text.as_bytes()).is_ok()))
}

fn labels(text: String) -> Work {
    Box::new(move || {
        let parsed = text.parse::<LabelSelector>();
        std::hint::black_box(parsed.is_ok_and(|selector| selector.matches(|_| Some("v"))));
    })
}

fn patch(items: usize, operation: impl Fn(usize) -> String) -> Work {
    let text = format!("[{}]", joined(items, ",", operation));
    let target = parse_json(br#"{"list":[]}"#).map(|parsed| parsed.value).unwrap_or_default();
    Box::new(move || {
        let patch = parse_json(text.as_bytes()).map(|parsed| parsed.value).unwrap_or_default();
        let mut target: Value = target.clone();
        let applied = JsonPatch::parse(patch).and_then(|patch| patch.apply(&mut target));
        std::hint::black_box(applied.is_ok());
    })
}

/// A ConfigMap with so many members of its data, field 2, or finalizers in its metadata, field 1.
fn protobuf(resource: &Arc<Resource>, items: usize, field: u8) -> Work {
    let mut message = Vec::new();
    for at in 0..items {
        let text = format!("example.com/k{at}");
        let text = text.as_bytes();
        let length = text.len() as u8;
        match field {
            1 => message.extend_from_slice(&[&[14 << 3 | 2, length], text].concat()),
            _ => message
                .extend_from_slice(&[&[field << 3 | 2, length + 5, 1 << 3 | 2, length], text, b"\x12\x01v"].concat()),
        }
    }
    if field == 1 {
        message = [[1 << 3 | 2].to_vec(), varint(message.len()), message].concat();
    }
    let resource = resource.clone();
    Box::new(move || _ = std::hint::black_box(resource.read_protobuf(&message).is_ok()))
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
