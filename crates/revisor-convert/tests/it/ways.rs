//! Ways between versions: shortest ones, in any direction, in rings, and none.

use revisor_convert::Stored;

use crate::examples::{INTEGER, STRING, content, conversion, definition, object, spec, try_conversion};

#[test]
fn steps_lead_from_every_version_to_every_other() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"size":{STRING}}}"#))),
        ("v2", &spec(&format!(r#"{{"grade":{STRING}}}"#))),
        (
            "v3",
            &spec(&format!(
                r#"{{"shape":{{"type":"object","properties":{{"grades":{{"type":"array","items":{STRING}}}}}}}}}"#
            )),
        ),
    ]);
    let conversion = conversion(
        &definition,
        &[
            ("v1", "v2", r#"[{"values":{"path":".spec.size","to":".spec.grade","map":{"small":"S","large":"L"}}}]"#),
            ("v2", "v3", r#"[{"list":{"from":".spec.grade","to":".spec.shape.grades"}}]"#),
        ],
    );
    let seen = [
        ("v1", r#"{"spec":{"size":"large"}}"#),
        ("v2", r#"{"spec":{"grade":"L"}}"#),
        ("v3", r#"{"spec":{"shape":{"grades":["L"]}}}"#),
    ];
    let check = |stored: &Stored, version: &str, want: &str| {
        assert_eq!(content(&conversion.read(stored, version).expect("is read")), want);
    };
    for storage in ["v1", "v2", "v3"] {
        for (written, content) in seen {
            let stored = conversion.write(None, object(written, content), storage).expect("is written");
            seen.iter().for_each(|(version, want)| check(&stored, version, want));
        }
        let three = r#"{"spec":{"shape":{"grades":["S","L","S"]}}}"#;
        let stored = conversion.write(None, object("v3", three), storage).expect("is written");
        check(&stored, "v1", r#"{"spec":{"size":"small"}}"#);
        let changed = object("v1", r#"{"spec":{"size":"large"}}"#);
        let stored = conversion.write(Some(&stored), changed, storage).expect("is written");
        check(&stored, "v3", r#"{"spec":{"shape":{"grades":["L","L","S"]}}}"#);
        for other in ["v1", "v2", "v3"] {
            let moved = conversion.restore_as(&stored, other).expect("is stored otherwise");
            check(&moved, "v3", r#"{"spec":{"shape":{"grades":["L","L","S"]}}}"#);
            check(&moved, "v1", r#"{"spec":{"size":"large"}}"#);
            assert_eq!(conversion.restore_as(&moved, storage).expect("and back"), stored);
        }
    }
}

#[test]
fn a_field_is_one_in_two_versions_if_a_direct_step_says_so() {
    let with = spec(&format!(r#"{{"n":{INTEGER},"a":{STRING}}}"#));
    let without = spec(&format!(r#"{{"n":{INTEGER}}}"#));
    let definition = definition(&[("v1", &with), ("v2", &without), ("v3", &with)]);
    let chain = [("v1", "v2", "[]"), ("v2", "v3", "[]")];
    let ring = [chain[0], chain[1], ("v1", "v3", "[]")];
    for (steps, want) in [(&chain[..], r#"{"spec":{"n":1}}"#), (&ring[..], r#"{"spec":{"a":"x","n":1}}"#)] {
        let conversion = conversion(&definition, steps);
        for storage in ["v1", "v2", "v3"] {
            let one = object("v1", r#"{"spec":{"n":1,"a":"x"}}"#);
            let stored = conversion.write(None, one.clone(), storage).expect("is written");
            assert_eq!(content(&conversion.read(&stored, "v3").expect("is read")), want, "stored as {storage}");
            assert_eq!(conversion.read(&stored, "v1").expect("is read"), one, "stored as {storage}");
            let three = object("v3", r#"{"spec":{"n":2,"a":"y"}}"#);
            let stored = conversion.write(Some(&stored), three.clone(), storage).expect("is written");
            assert_eq!(conversion.read(&stored, "v3").expect("is read"), three, "stored as {storage}");
            let of_one = if steps.len() == 2 { "x" } else { "y" };
            let want = format!(r#"{{"spec":{{"a":"{of_one}","n":2}}}}"#);
            assert_eq!(content(&conversion.read(&stored, "v1").expect("is read")), want, "stored as {storage}");
        }
    }
}

#[test]
fn ten_versions_in_a_ring_take_the_shortest_way() {
    let schema = spec(&format!(r#"{{"n":{INTEGER},"own":{STRING}}}"#));
    let names: Vec<String> = (0..10).map(|number| format!("v{number}")).collect();
    let versions: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), schema.as_str())).collect();
    let steps: Vec<(&str, &str, &str)> = (0..10).map(|at| (versions[at].0, versions[(at + 1) % 10].0, "[]")).collect();
    let conversion = conversion(&definition(&versions), &steps);
    let stored = conversion.write(None, object("v7", r#"{"spec":{"n":1,"own":"x"}}"#), "v2").expect("is written");
    for name in &names {
        assert_eq!(content(&conversion.read(&stored, name).expect("is read")), r#"{"spec":{"n":1,"own":"x"}}"#);
    }
    assert!(stored.kept.is_empty());
}

#[test]
fn versions_that_no_step_reaches_are_shown_by_name_only() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"a":{STRING},"n":{INTEGER}}}"#))),
        ("v2", &spec(&format!(r#"{{"b":{STRING},"n":{INTEGER},"own":{STRING}}}"#))),
        ("v3", &spec(&format!(r#"{{"a":{STRING},"b":{STRING},"own":{STRING}}}"#))),
    ]);
    let conversion = conversion(&definition, &[("v1", "v2", r#"[{"move":{"from":".spec.a","to":".spec.b"}}]"#)]);
    assert_eq!(conversion.unreached(), ["v3"]);
    let two = object("v2", r#"{"spec":{"b":"1","n":1,"own":"o"}}"#);
    let stored = conversion.write(None, two.clone(), "v1").expect("is written");
    assert_eq!(conversion.read(&stored, "v2").expect("is read"), two);
    assert_eq!(content(&conversion.read(&stored, "v3").expect("is read")), r#"{"spec":{"a":"1"}}"#);
    let three = object("v3", r#"{"spec":{"a":"2","b":"3","own":"x"}}"#);
    let stored = conversion.write(Some(&stored), three, "v1").expect("is written");
    assert_eq!(content(&conversion.read(&stored, "v2").expect("is read")), r#"{"spec":{"b":"2","own":"o"}}"#);
    assert!(conversion.read(&stored, "v9").expect_err("there is none").to_string().contains("v9"));
}

#[test]
fn what_is_canonical_stays_and_the_new_name_wins() {
    let definition = definition(&[(
        "v1",
        &spec(&format!(r#"{{"new":{STRING},"level":{STRING},"hosts":{{"type":"array","items":{STRING}}}}}"#)),
    )]);
    let more = r#","canonicalize":[{"version":"v1","rules":[{"move":{"from":".spec.old","to":".spec.new"}},
        {"values":{"path":".spec.level","map":{"lo":"low"}}},{"list":{"from":".spec.host","to":".spec.hosts"}}]}]"#;
    let conversion = try_conversion(&definition, &[], more).expect("is right");
    for (seen, want) in [
        (r#"{"spec":{"old":"x"}}"#, r#"{"spec":{"new":"x"}}"#),
        (r#"{"spec":{"new":"y","old":"x"}}"#, r#"{"spec":{"new":"y"}}"#),
        (r#"{"spec":{"level":"lo","new":"y"}}"#, r#"{"spec":{"level":"low","new":"y"}}"#),
        (r#"{"spec":{"host":"h"}}"#, r#"{"spec":{"hosts":["h"]}}"#),
        (r#"{"spec":{"level":"low"}}"#, r#"{"spec":{"level":"low"}}"#),
        ("{}", "{}"),
    ] {
        let mut value = object("v1", seen);
        let changed = conversion.canonicalize("v1", &mut value).expect("is canonical");
        assert_eq!(content(&value), want);
        assert_eq!(changed, seen != want, "{seen}");
    }
    let errors = try_conversion(&definition, &[], &more.replace(".spec.new", ".spec.nope")).expect_err("no such field");
    assert!(errors[0].starts_with("spec.canonicalize[0].rules[0]"), "{errors:?}");
}
