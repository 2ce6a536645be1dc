//! The table of targets.

mod continue_token;
mod conversions;
mod encodings;
mod frames;
mod languages;
mod objects;
mod patches;
mod paths;
mod policies;
mod records;
mod resources;
mod selectors;
mod snapshots;
mod text;

/// A parser under test.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name, by which its folder of seeds is found too.
    pub name: &'static str,
    /// Takes any bytes; panics if a law is broken.
    pub run: fn(&[u8]),
}

/// Every target, sorted by name.
pub const TARGETS: &[Target] = &[
    Target { name: "cbor", run: encodings::cbor },
    Target { name: "continue_token", run: continue_token::open },
    Target { name: "conversion", run: conversions::convert },
    Target { name: "encodings", run: encodings::round_trip },
    Target { name: "etcd_snapshot", run: snapshots::etcd },
    Target { name: "expression", run: languages::expression },
    Target { name: "field_selector", run: selectors::field },
    Target { name: "json", run: text::json },
    Target { name: "json_patch", run: patches::json },
    Target { name: "label_selector", run: selectors::label },
    Target { name: "merge_patch", run: patches::merge },
    Target { name: "object", run: objects::write },
    Target { name: "path", run: paths::route },
    Target { name: "pattern", run: languages::pattern },
    Target { name: "policy", run: policies::policy },
    Target { name: "protobuf", run: text::protobuf },
    Target { name: "scalar", run: languages::scalar },
    Target { name: "spdy", run: frames::spdy },
    Target { name: "stored_record", run: records::stored },
    Target { name: "strategic_merge_patch", run: patches::strategic },
    Target { name: "yaml", run: text::yaml },
];
