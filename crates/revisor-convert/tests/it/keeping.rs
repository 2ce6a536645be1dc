//! What one version cannot say is never lost.

use revisor_convert::{Conversion, KEPT_ANNOTATION, Stored};
use revisor_object::Value;

use crate::examples::{INTEGER, STRING, content, conversion, definition, object, parse, spec};

/// A stored object that is written and read in several versions.
struct Resource {
    conversion: Conversion,
    storage: &'static str,
    stored: Option<Stored>,
}

impl Resource {
    fn write(&mut self, version: &str, seen: &str) {
        let new = object(version, seen);
        let stored = self.conversion.write(self.stored.as_ref(), new, self.storage).expect("is written");
        // What is stored is bytes in between.
        let packed = parse(&stored.pack().to_json());
        self.stored = Some(Stored::unpack(packed).expect("is read again"));
    }

    fn read(&self, version: &str) -> String {
        content(&self.conversion.read(self.stored.as_ref().expect("is stored"), version).expect("is read"))
    }

    fn edit(&mut self, version: &str, change: impl FnOnce(&mut Value)) {
        let mut seen = parse(&self.read(version));
        change(&mut seen);
        self.write(version, &seen.to_json());
    }
}

fn both(one: &str, two: &str, rules: &str) -> [Resource; 2] {
    ["v1", "v2"].map(|storage| {
        let definition = definition(&[("v1", one), ("v2", two)]);
        Resource { conversion: conversion(&definition, &[("v1", "v2", rules)]), storage, stored: None }
    })
}

#[test]
fn a_write_leaves_what_only_the_other_version_can_say() {
    let one = spec(&format!(r#"{{"replicas":{INTEGER},"image":{STRING},"legacy":{STRING}}}"#));
    let two = spec(&format!(
        r#"{{"scale":{{"type":"object","properties":{{"count":{INTEGER},"max":{INTEGER}}}}},"image":{STRING},
            "limits":{{"type":"object","additionalProperties":{INTEGER}}}}}"#
    ));
    for mut r in both(&one, &two, r#"[{"move":{"from":".spec.replicas","to":".spec.scale.count"}}]"#) {
        r.write("v2", r#"{"spec":{"image":"a","limits":{"cpu":4},"scale":{"count":2,"max":9}}}"#);
        r.write("v1", r#"{"spec":{"image":"a","legacy":"x","replicas":2}}"#);
        assert_eq!(r.read("v2"), r#"{"spec":{"image":"a","limits":{"cpu":4},"scale":{"count":2,"max":9}}}"#);
        r.write("v2", r#"{"spec":{"image":"b","limits":{"cpu":4},"scale":{"count":3,"max":9}}}"#);
        assert_eq!(r.read("v1"), r#"{"spec":{"image":"b","legacy":"x","replicas":3}}"#);
        r.write("v1", r#"{"spec":{"image":"b","legacy":"x"}}"#);
        assert_eq!(r.read("v2"), r#"{"spec":{"image":"b","limits":{"cpu":4},"scale":{"max":9}}}"#, "{}", r.storage);
        let before = r.stored.clone();
        for version in ["v1", "v2"] {
            r.edit(version, |_| ());
            assert_eq!(r.stored, before, "a write that changes nothing is none");
        }
    }
}

#[test]
fn kept_parts_follow_keys_equality_and_position() {
    let item = |more: &str| {
        format!(r#"{{"type":"object","required":["name"],"properties":{{"name":{STRING},"port":{INTEGER}{more}}}}}"#)
    };
    let keyed = |more: &str| {
        let item = item(more);
        spec(&format!(
            r#"{{"ports":{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{item}}}}}"#
        ))
    };
    let tls = format!(r#","tls":{STRING}"#);
    for mut r in both(&keyed(""), &keyed(&tls), "[]") {
        r.write("v2", r#"{"spec":{"ports":[{"name":"a","port":1,"tls":"x"},{"name":"b","port":2,"tls":"y"},{"name":"c","port":3,"tls":"z"}]}}"#);
        r.write("v1", r#"{"spec":{"ports":[{"name":"c","port":3},{"name":"a","port":10},{"name":"d","port":4}]}}"#);
        let want = r#"{"spec":{"ports":[{"name":"c","port":3,"tls":"z"},{"name":"a","port":10,"tls":"x"},{"name":"d","port":4}]}}"#;
        assert_eq!(r.read("v2"), want, "{}", r.storage);
    }
    let plain = |more: &str| spec(&format!(r#"{{"ports":{{"type":"array","items":{}}}}}"#, item(more)));
    for mut r in both(&plain(""), &plain(&tls), "[]") {
        r.write("v2", r#"{"spec":{"ports":[{"name":"x","tls":"1"},{"name":"y","tls":"2"},{"name":"z","tls":"3"}]}}"#);
        r.write("v1", r#"{"spec":{"ports":[{"name":"z"},{"name":"y"},{"name":"x"}]}}"#);
        assert_eq!(
            r.read("v2"),
            r#"{"spec":{"ports":[{"name":"z","tls":"3"},{"name":"y","tls":"2"},{"name":"x","tls":"1"}]}}"#
        );
        r.write("v1", r#"{"spec":{"ports":[{"name":"z"},{"name":"new"},{"name":"x"}]}}"#);
        assert_eq!(
            r.read("v2"),
            r#"{"spec":{"ports":[{"name":"z","tls":"3"},{"name":"new","tls":"2"},{"name":"x","tls":"1"}]}}"#
        );
        r.write("v1", r#"{"spec":{"ports":[{"name":"new"},{"name":"x"}]}}"#);
        assert_eq!(
            r.read("v2"),
            r#"{"spec":{"ports":[{"name":"new","tls":"2"},{"name":"x","tls":"1"}]}}"#,
            "{}",
            r.storage
        );
    }
}

#[test]
fn what_was_left_out_stays_out_and_what_was_set_stays() {
    let one = spec(&format!(r#"{{"n":{INTEGER},"old":{STRING}}}"#));
    let two = spec(&format!(r#"{{"n":{INTEGER},"new":{STRING}}}"#));
    let rules = r#"[{"remove":{"path":".spec.old","value":"was"}},{"add":{"path":".spec.new","value":"is"}}]"#;
    for (version, written, first, second) in [
        ("v1", r#"{"spec":{"n":1}}"#, r#"{"spec":{"n":1}}"#, r#"{"spec":{"n":1,"new":"is"}}"#),
        ("v2", r#"{"spec":{"n":1}}"#, r#"{"spec":{"n":1,"old":"was"}}"#, r#"{"spec":{"n":1}}"#),
        (
            "v2",
            r#"{"spec":{"n":1,"new":"mine"}}"#,
            r#"{"spec":{"n":1,"old":"was"}}"#,
            r#"{"spec":{"n":1,"new":"mine"}}"#,
        ),
    ] {
        for mut r in both(&one, &two, rules) {
            r.write(version, written);
            assert_eq!((r.read("v1").as_str(), r.read("v2").as_str()), (first, second), "{}", r.storage);
            r.edit("v1", |seen| {
                seen.as_object_mut().expect("an object").object_mut("spec").insert("n", 2);
            });
            assert_eq!(r.read("v2"), second.replace(r#""n":1"#, r#""n":2"#), "{}", r.storage);
        }
    }
}

#[test]
fn a_parent_that_was_not_there_is_not_there_again() {
    let one = r#"{"type":"object","properties":{"config":{"type":"string"},"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}"#;
    let two = spec(&format!(r#"{{"n":{INTEGER},"config":{STRING}}}"#));
    for mut r in both(one, &two, r#"[{"move":{"from":".config","to":".spec.config"}}]"#) {
        for seen in [r#"{"config":"c"}"#, r#"{"config":"c","spec":{}}"#, r#"{"spec":{}}"#, "{}"] {
            r.stored = None;
            r.write("v1", seen);
            assert_eq!(r.read("v1"), seen, "stored as {}", r.storage);
            r.edit("v2", |_| ());
            assert_eq!(r.read("v1"), seen, "stored as {}, written again as v2", r.storage);
        }
        r.stored = None;
        r.write("v1", r#"{"config":"c"}"#);
        r.write("v2", r#"{"spec":{"config":"c","n":3}}"#);
        assert_eq!(r.read("v1"), r#"{"config":"c","spec":{"n":3}}"#);
    }
}

#[test]
fn a_list_goes_with_its_one_value_and_not_before() {
    let one = spec(&format!(r#"{{"host":{STRING}}}"#));
    let two = spec(&format!(r#"{{"hosts":{{"type":"array","items":{STRING}}}}}"#));
    for mut r in both(&one, &two, r#"[{"list":{"from":".spec.host","to":".spec.hosts"}}]"#) {
        r.write("v2", r#"{"spec":{"hosts":["a","b","c"]}}"#);
        assert_eq!(r.read("v1"), r#"{"spec":{"host":"a"}}"#);
        r.write("v1", r#"{"spec":{"host":"x"}}"#);
        assert_eq!(r.read("v2"), r#"{"spec":{"hosts":["x","b","c"]}}"#, "{}", r.storage);
        r.write("v1", r#"{"spec":{}}"#);
        assert_eq!(r.read("v2"), r#"{"spec":{}}"#, "{}", r.storage);
        r.write("v2", r#"{"spec":{"hosts":[]}}"#);
        assert_eq!((r.read("v1").as_str(), r.read("v2").as_str()), (r#"{"spec":{}}"#, r#"{"spec":{"hosts":[]}}"#));
    }
}

#[test]
fn the_annotation_travels_and_is_not_a_clients_to_set() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"n":{INTEGER}}}"#))),
        ("v2", &spec(&format!(r#"{{"n":{INTEGER},"mode":{STRING}}}"#))),
    ]);
    let conversion = conversion(&definition, &[("v1", "v2", "[]")]);
    let two = object("v2", r#"{"spec":{"n":1,"mode":"fast"},"metadata":{"annotations":{"mine":"1"}}}"#);
    let there = conversion.convert(two.clone(), "v1").expect("converts");
    let text = there.as_object().and_then(|object| object.at(&["metadata", "annotations", KEPT_ANNOTATION]));
    assert_eq!(text.and_then(Value::as_str), Some(r#"{"v2":{".spec":{".mode":["fast"]}}}"#));
    assert_eq!(conversion.convert(there.clone(), "v2").expect("converts"), two);
    assert!(Stored::new(there.clone()).kept.is_empty());
    for damaged in ["", "{", "[]", r#"{"v2":7}"#] {
        let mut object = there.clone();
        let members = object.as_object_mut().expect("an object").object_mut("metadata").object_mut("annotations");
        members.insert(KEPT_ANNOTATION, damaged);
        let error = conversion.convert(object, "v2").expect_err(damaged).to_string();
        assert!(error.contains("damaged"), "{error}");
    }
    let mut forged = there;
    let members = forged.as_object_mut().expect("an object").object_mut("metadata").object_mut("annotations");
    members.insert(KEPT_ANNOTATION, r#"{"v2":{".spec":{".n":[9],".mode":["slow"]},".kind":["Other"]},"v9":[1]}"#);
    let forged = conversion.convert(forged, "v2").expect("converts");
    assert_eq!(content(&forged), r#"{"spec":{"mode":"slow","n":1}}"#);
}

#[test]
fn defaults_are_filled_in_and_not_kept() {
    let one = spec(&format!(r#"{{"n":{INTEGER}}}"#));
    let two = spec(&format!(r#"{{"n":{INTEGER},"mode":{{"type":"string","default":"x"}}}}"#));
    for mut r in both(&one, &two, "[]") {
        r.write("v1", r#"{"spec":{"n":1}}"#);
        assert_eq!(r.read("v2"), r#"{"spec":{"mode":"x","n":1}}"#);
        r.edit("v2", |_| ());
        let stored = r.stored.as_ref().expect("is stored");
        assert!(stored.kept.is_empty(), "{stored:?}");
        r.write("v2", r#"{"spec":{"mode":"y","n":1}}"#);
        assert_eq!(
            (r.read("v1").as_str(), r.read("v2").as_str()),
            (r#"{"spec":{"n":1}}"#, r#"{"spec":{"mode":"y","n":1}}"#)
        );
    }
}

/// A default fills in what a rule then moves to where nothing was. That nothing was there comes back; what somebody set
/// stays.
#[test]
fn what_came_of_a_default_goes_where_there_was_nothing() {
    let filled = r#"{"type":"string","default":"x"}"#;
    let one = spec(&format!(r#"{{"a":{filled}}}"#));
    let deep = |schema: &str| spec(&format!(r#"{{"in":{{"type":"object","properties":{{"a":{schema}}}}}}}"#));
    let list = spec(&format!(r#"{{"l":{{"type":"array","items":{STRING}}}}}"#));
    let many = spec(&format!(r#"{{"l":{{"type":"array","items":{STRING},"default":["x","y"]}}}}"#));
    let sink = r#"[{"move":{"from":".spec.a","to":".spec.in.a"}}]"#;
    let wrap = r#"[{"list":{"from":".spec.a","to":".spec.l"}}]"#;
    for (one, two, rules, empty, other) in [
        (&one, &deep(filled), sink, r#"{"spec":{}}"#, r#"{"spec":{"in":{"a":"z"}}}"#),
        (&one, &deep(STRING), sink, r#"{"spec":{}}"#, r#"{"spec":{"in":{"a":"z"}}}"#),
        (&one, &deep(STRING), sink, r#"{"spec":{"in":{}}}"#, r#"{"spec":{"in":{"a":"z"}}}"#),
        (&one, &list, wrap, r#"{"spec":{}}"#, r#"{"spec":{"l":["z"]}}"#),
        (&one, &list, wrap, r#"{"spec":{"l":[]}}"#, r#"{"spec":{"l":["z"]}}"#),
        (&one, &many, wrap, r#"{"spec":{"l":[]}}"#, r#"{"spec":{"l":["z"]}}"#),
    ] {
        for mut r in both(one, two, rules) {
            r.write("v2", empty);
            assert_eq!(r.read("v1"), r#"{"spec":{"a":"x"}}"#, "{two} in {}", r.storage);
            assert_eq!(r.read("v2"), empty, "{two} in {}", r.storage);
            r.write("v1", r#"{"spec":{"a":"z"}}"#);
            assert_eq!(r.read("v2"), other, "{two} in {}", r.storage);
        }
    }
    // And the other way about: the list has a default, the one value has none.
    for mut r in both(&spec(&format!(r#"{{"a":{STRING}}}"#)), &many, wrap) {
        r.write("v1", r#"{"spec":{}}"#);
        assert_eq!(r.read("v1"), r#"{"spec":{}}"#);
        assert_eq!(r.read("v2"), r#"{"spec":{"l":["x","y"]}}"#);
    }
}

#[test]
fn what_came_of_the_default_of_a_holder_goes_where_there_was_nothing() {
    let holder = |default: &str, members: &str| {
        let default = if default.is_empty() { String::new() } else { format!(r#""default":{default},"#) };
        spec(&format!(r#"{{"in":{{"type":"object",{default}"properties":{{{members}}}}}}}"#))
    };
    let one = holder(r#"{"a":1}"#, &format!(r#""a":{{"type":"integer","default":2}},"z":{STRING}"#));
    let beside = spec(&format!(r#"{{"b":{INTEGER},"in":{{"type":"object","properties":{{"z":{STRING}}}}}}}"#));
    let within = holder("", &format!(r#""b":{INTEGER},"z":{STRING}"#));
    let listed = holder("", &format!(r#""b":{{"type":"array","items":{INTEGER}}},"z":{STRING}"#));
    let away = spec(&format!(r#"{{"far":{{"type":"object","properties":{{"b":{INTEGER}}}}}}}"#));
    for (name, two, rule) in [
        ("renamed in it", &within, r#"[{"move":{"from":".spec.in.a","to":".spec.in.b"}}]"#),
        ("moved out of it", &beside, r#"[{"move":{"from":".spec.in.a","to":".spec.b"}}]"#),
        ("moved into something else", &away, r#"[{"move":{"from":".spec.in.a","to":".spec.far.b"}}]"#),
        ("made a list in it", &listed, r#"[{"list":{"from":".spec.in.a","to":".spec.in.b"}}]"#),
    ] {
        for mut r in both(&one, two, rule) {
            let full = match name {
                "renamed in it" => r#"{"spec":{"in":{"b":1}}}"#,
                "moved out of it" => r#"{"spec":{"b":1,"in":{}}}"#,
                "moved into something else" => r#"{"spec":{"far":{"b":1}}}"#,
                _ => r#"{"spec":{"in":{"b":[1]}}}"#,
            };
            for seen in [r#"{"spec":{}}"#, full, r#"{"spec":{}}"#] {
                r.write("v2", seen);
                r.edit("v1", |_| ());
                assert_eq!(r.read("v2"), seen, "{name}, stored in {}", r.storage);
            }
        }
    }
}
