//! The laws, and what breaks them.

use std::sync::Arc;

use revisor_convert::{Conversion, Definition, Effort, Law, Report, Verdict};

use crate::examples::{INTEGER, STRING, content, conversion, definition, spec, try_conversion};

const LEVELS: &str = r#"{"type":"string","enum":["low","lo","high"]}"#;
const NAMES: &str = r#"{"type":"string","enum":["Low","High"]}"#;

fn number(least: i64, most: i64) -> String {
    format!(r#"{{"type":"integer","minimum":{least},"maximum":{most}}}"#)
}

fn effort() -> Effort {
    Effort { objects: 400, work: 60_000 }
}

fn check(definition: &Arc<Definition>, steps: &[(&str, &str, &str)], more: &str) -> Report {
    let conversion = try_conversion(definition, steps, more);
    conversion.unwrap_or_else(|errors| panic!("{}", errors.join("\n"))).check(effort())
}

/// The one breach of a law, which must be one.
#[track_caller]
fn broken(report: &Report, definition: &Definition, law: Law, field: &str, want: &[&str]) {
    let found: Vec<_> = report.broken.iter().filter(|broken| broken.law == law).collect();
    let [found] = found[..] else { panic!("{law} is not broken once: {report:#?}") };
    assert!(found.field == field || found.field.starts_with(&format!("{field}.")), "{}", found.field);
    let version = |value: &revisor_object::Value| {
        let object = value.as_object().expect("an object");
        definition.version_of(object).expect("names its version").name().to_owned()
    };
    let judge = |value: &revisor_object::Value| {
        let name = version(value);
        let version = definition.versions().iter().find(|version| version.name() == name);
        version.expect("is known").is_valid(value)
    };
    assert!(judge(&found.object), "{}", found.message());
    match law {
        Law::Valid => assert!(!judge(found.becomes.as_ref().expect("becomes something")), "{}", found.message()),
        Law::ThereAndBack if found.detail.contains("fails") => {}
        Law::ThereAndBack | Law::Written => assert_ne!(found.back.as_ref(), Some(&found.object)),
        Law::AnyWay | Law::Once => assert_ne!(found.back, found.becomes),
    }
    let shown: Vec<String> = [Some(&found.object), found.becomes.as_ref(), found.back.as_ref()]
        .into_iter()
        .flatten()
        .map(|value| format!("{} {}", version(value), content(value)))
        .collect();
    assert_eq!(shown, want, "{}", found.message());
}

#[test]
fn a_broken_law_is_shown_by_the_smallest_object_that_breaks_it() {
    for (name, one, two, rules, law, field, want) in [
        (
            "two values become one",
            spec(&format!(r#"{{"level":{LEVELS},"n":{INTEGER}}}"#)),
            spec(&format!(r#"{{"level":{NAMES},"n":{INTEGER}}}"#)),
            r#"[{"values":{"path":".spec.level","map":{"low":"Low","lo":"Low","high":"High"}}}]"#,
            Law::ThereAndBack,
            "spec.steps[0].rules[0]",
            vec![r#"v1 {"spec":{"level":"low"}}"#, r#"v2 {"spec":{"level":"Low"}}"#, r#"v1 {"spec":{"level":"lo"}}"#],
        ),
        (
            "an expression forgets",
            spec(&format!(r#"{{"seconds":{},"s":{STRING}}}"#, number(0, 6000))),
            spec(&format!(r#"{{"minutes":{},"s":{STRING}}}"#, number(0, 100))),
            r#"[{"compute":{"from":{"s":".spec.seconds"},"to":{"m":".spec.minutes"},"forward":{"m":"s / 60"},"backward":{"s":"m * 60"}}}]"#,
            Law::ThereAndBack,
            "spec.steps[0].rules[0]",
            vec![r#"v1 {"spec":{"seconds":1}}"#, r#"v2 {"spec":{"minutes":0}}"#, r#"v1 {"spec":{"seconds":0}}"#],
        ),
        (
            "an expression fails",
            spec(&format!(r#"{{"n":{}}}"#, number(0, 9))),
            spec(r#"{"digit":{"type":"string","maxLength":5}}"#),
            r#"[{"compute":{"from":{"n":".spec.n"},"to":{"d":".spec.digit"},"forward":{"d":"string(n)"},"backward":{"n":"int(d)"}}}]"#,
            Law::ThereAndBack,
            "spec.steps[0].rules[0]",
            vec![r#"v2 {"spec":{"digit":""}}"#],
        ),
        (
            "a required field is not filled in",
            spec(&format!(r#"{{"n":{INTEGER}}}"#)),
            spec(&format!(r#"{{"n":{INTEGER},"mode":{STRING}}}"#))
                .replace(r#""spec":{"#, r#""spec":{"required":["mode"],"#),
            "[]",
            Law::Valid,
            "spec.steps[0]",
            vec![r#"v1 {"spec":{}}"#, r#"v2 {"spec":{}}"#],
        ),
        (
            "a value has no counterpart",
            spec(r#"{"level":{"type":"string","enum":["low","mid","high"]}}"#),
            spec(&format!(r#"{{"level":{NAMES}}}"#)),
            r#"[{"values":{"path":".spec.level","map":{"low":"Low","high":"High"}}}]"#,
            Law::Valid,
            "spec.steps[0].rules[0]",
            vec![r#"v1 {"spec":{"level":"mid"}}"#, r#"v2 {"spec":{"level":"mid"}}"#],
        ),
        (
            "a value that is carried over is not allowed",
            spec(r#"{"level":{"type":"string","enum":["a","b"]}}"#),
            spec(r#"{"level":{"type":"string","enum":["a"]}}"#),
            "[]",
            Law::Valid,
            "spec.steps[0]",
            vec![r#"v1 {"spec":{"level":"b"}}"#, r#"v2 {"spec":{"level":"b"}}"#],
        ),
        (
            "an added value is not allowed",
            spec(&format!(r#"{{"size":{INTEGER}}}"#)),
            spec(&format!(r#"{{"count":{INTEGER},"mode":{NAMES}}}"#)),
            r#"[{"move":{"from":".spec.size","to":".spec.count"}},{"add":{"path":".spec.mode","value":"Loose"}}]"#,
            Law::Valid,
            "spec.steps[0].rules[1]",
            vec![r#"v1 {"spec":{}}"#, r#"v2 {"spec":{"mode":"Loose"}}"#],
        ),
        (
            "a number moves where a text is wanted",
            spec(&format!(r#"{{"size":{INTEGER}}}"#)),
            spec(&format!(r#"{{"text":{STRING}}}"#)),
            r#"[{"move":{"from":".spec.size","to":".spec.text"}}]"#,
            Law::Valid,
            "spec.steps[0].rules[0]",
            vec![r#"v1 {"spec":{"size":0}}"#, r#"v2 {"spec":{"text":0}}"#],
        ),
        (
            "bounds are narrower",
            spec(&format!(r#"{{"n":{}}}"#, number(0, 100))),
            spec(&format!(r#"{{"n":{}}}"#, number(0, 10))),
            "[]",
            Law::Valid,
            "spec.steps[0]",
            vec![r#"v1 {"spec":{"n":11}}"#, r#"v2 {"spec":{"n":11}}"#],
        ),
        (
            "a pattern is narrower",
            spec(r#"{"s":{"type":"string","maxLength":20}}"#),
            spec(r#"{"s":{"type":"string","maxLength":20,"pattern":"^[a-z]*$"}}"#),
            "[]",
            Law::Valid,
            "spec.steps[0]",
            vec![r#"v1 {"spec":{"s":"0"}}"#, r#"v2 {"spec":{"s":"0"}}"#],
        ),
        (
            "a rule in CEL does not hold",
            spec(&format!(r#"{{"min":{INTEGER},"max":{INTEGER}}}"#))
                .replace(r#""spec":{"#, r#""spec":{"required":["min","max"],"#),
            spec(&format!(r#"{{"least":{INTEGER},"max":{INTEGER}}}"#)).replace(
                r#""spec":{"#,
                r#""spec":{"required":["least","max"],"x-kubernetes-validations":[{"rule":"self.least <= self.max"}],"#,
            ),
            r#"[{"move":{"from":".spec.min","to":".spec.least"}}]"#,
            Law::Valid,
            "spec.steps[0]",
            vec![r#"v1 {"spec":{"max":0,"min":1}}"#, r#"v2 {"spec":{"least":1,"max":0}}"#],
        ),
        (
            "the first of an empty list is required",
            spec(&format!(r#"{{"host":{STRING}}}"#)).replace(r#""spec":{"#, r#""spec":{"required":["host"],"#),
            spec(&format!(r#"{{"hosts":{{"type":"array","items":{STRING}}}}}"#)),
            r#"[{"list":{"from":".spec.host","to":".spec.hosts"}}]"#,
            Law::Valid,
            "spec.steps[0]",
            vec![r#"v2 {"spec":{}}"#, r#"v1 {"spec":{}}"#],
        ),
    ] {
        let definition = definition(&[("v1", &one), ("v2", &two)]);
        let report = check(&definition, &[("v1", "v2", rules)], "");
        assert!(report.broken.len() <= 3, "{name}: {report:#?}");
        broken(&report, &definition, law, field, &want);
    }
}

#[test]
fn two_ways_that_differ_are_found_and_others_are_welcome() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"a":{STRING}}}"#))),
        ("v2", &spec(&format!(r#"{{"b":{STRING}}}"#))),
        ("v3", &spec(&format!(r#"{{"c":{STRING},"d":{STRING}}}"#))),
    ]);
    let there = [
        ("v1", "v2", r#"[{"move":{"from":".spec.a","to":".spec.b"}}]"#),
        ("v2", "v3", r#"[{"move":{"from":".spec.b","to":".spec.c"}}]"#),
    ];
    let same = ("v3", "v1", r#"[{"move":{"from":".spec.c","to":".spec.a"}}]"#);
    let other = ("v1", "v3", r#"[{"move":{"from":".spec.a","to":".spec.d"}}]"#);
    let report = check(&definition, &[there[0], there[1], same], "");
    assert_eq!(report.broken, []);
    assert!(report.steps.iter().all(|step| step.verdict == Verdict::Tested && step.objects > 10), "{report:?}");
    let report = check(&definition, &[there[0], there[1], other], "");
    let want = [r#"v1 {"spec":{"a":""}}"#, r#"v3 {"spec":{"d":""}}"#, r#"v3 {"spec":{"c":""}}"#];
    broken(&report, &definition, Law::AnyWay, "spec.steps[2]", &want);
}

#[test]
fn what_a_version_between_cannot_say_is_no_other_way() {
    let with = spec(&format!(r#"{{"n":{INTEGER},"a":{STRING}}}"#));
    let without = spec(&format!(r#"{{"n":{INTEGER}}}"#));
    let definition = definition(&[("v1", &with), ("v2", &without), ("v3", &with)]);
    let report = check(&definition, &[("v1", "v2", "[]"), ("v2", "v3", "[]"), ("v1", "v3", "[]")], "");
    assert_eq!(report.broken, []);
}

#[test]
fn a_loss_is_tolerated_where_it_is_said_and_nowhere_else() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"level":{LEVELS},"kind":{{"type":"string","enum":["a","b"]}}}}"#))),
        ("v2", &spec(&format!(r#"{{"level":{NAMES},"kind":{{"type":"string","enum":["A"]}}}}"#))),
    ]);
    let rules = r#"[{"values":{"path":".spec.level","map":{"low":"Low","lo":"Low","high":"High"}}},
        {"values":{"path":".spec.kind","map":{"a":"A","b":"A"}}}]"#;
    let tolerate = |entries: &[(&str, &str)]| {
        let entry =
            |(version, path): &(&str, &str)| format!(r#"{{"version":"{version}","path":"{path}","reason":"r"}}"#);
        format!(r#","tolerate":[{}]"#, entries.iter().map(entry).collect::<Vec<_>>().join(","))
    };
    for (entries, field) in [
        (&[("v1", ".spec.kind")][..], "spec.steps[0].rules[0]"),
        (&[("v1", ".spec.level")], "spec.steps[0].rules[1]"),
        (&[("v1", ".spec.kind"), ("v2", ".spec.level")], "spec.steps[0].rules[0]"),
    ] {
        let report = check(&definition, &[("v1", "v2", rules)], &tolerate(entries));
        let laws: Vec<_> = report.broken.iter().map(|broken| (broken.law, broken.field.as_str())).collect();
        assert_eq!(laws, [(Law::ThereAndBack, field)], "{entries:?}");
    }
    let report = check(&definition, &[("v1", "v2", rules)], &tolerate(&[("v1", ".spec.level"), ("v1", ".spec.kind")]));
    assert_eq!((report.broken.len(), report.steps[0].verdict), (0, Verdict::Tolerated));
    assert_eq!(report.warnings, Vec::<String>::new());
}

#[test]
fn a_tolerance_that_is_not_needed_draws_a_warning() {
    let definition =
        definition(&[("v1", &spec(&format!(r#"{{"a":{STRING}}}"#))), ("v2", &spec(&format!(r#"{{"b":{STRING}}}"#)))]);
    let rules = r#"[{"move":{"from":".spec.a","to":".spec.b"}}]"#;
    let more = r#","tolerate":[{"version":"v1","path":".spec.a","reason":"r"}]"#;
    let report = check(&definition, &[("v1", "v2", rules)], more);
    assert!(report.warnings[0].contains(".spec.a"), "{:?}", report.warnings);
}

#[test]
fn what_shapes_decide_is_proved_and_the_rest_is_tested() {
    let duration = r#"{"type":"string","pattern":"^(0|[1-9][0-9]{0,4})s$","maxLength":6}"#;
    let seconds = number(0, 99999);
    let compute = r#"{"compute":{"from":{"s":".spec.timeoutSeconds"},"to":{"t":".spec.timeout"},
        "forward":{"t":"string(s) + 's'"},"backward":{"s":"int(t.substring(0, t.size() - 1))"}}}"#;
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"size":{INTEGER},"timeoutSeconds":{seconds}}}"#))),
        ("v2", &spec(&format!(r#"{{"count":{INTEGER},"timeoutSeconds":{seconds}}}"#))),
        ("v3", &spec(&format!(r#"{{"count":{INTEGER},"timeout":{duration}}}"#))),
    ]);
    let steps = [
        ("v1", "v2", r#"[{"move":{"from":".spec.size","to":".spec.count"}}]"#.to_owned()),
        ("v2", "v3", format!("[{compute}]")),
    ];
    let steps: Vec<_> = steps.iter().map(|(from, to, rules)| (*from, *to, rules.as_str())).collect();
    let report = check(&definition, &steps, "");
    assert_eq!(report.broken, []);
    let verdicts: Vec<_> = report.steps.iter().map(|step| step.verdict).collect();
    assert_eq!(verdicts, [Verdict::Proved, Verdict::Tested]);
    assert!(report.steps[0].objects == 0 && report.steps[1].objects > 10, "{report:?}");
    assert_eq!(report, check(&definition, &steps, ""), "the same every time");
}

#[test]
fn defaults_of_one_side_break_nothing() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"n":{INTEGER},"m":{INTEGER},"level":{{"type":"string","enum":["a","b"]}}}}"#))),
        (
            "v2",
            &spec(
                r#"{"n":{"type":"integer","default":5},"k":{"type":"integer","default":7},
                    "level":{"type":"string","enum":["A","B"],"default":"A"}}"#,
            ),
        ),
    ]);
    let rules =
        r#"[{"move":{"from":".spec.m","to":".spec.k"}},{"values":{"path":".spec.level","map":{"a":"A","b":"B"}}}]"#;
    let report = check(&definition, &[("v1", "v2", rules)], "");
    assert_eq!(report.broken, []);
    let conversion: Conversion = conversion(&definition, &[("v1", "v2", rules)]);
    let one = crate::examples::object("v1", r#"{"spec":{}}"#);
    let stored = conversion.write(None, one.clone(), "v2").expect("is written");
    assert_eq!(content(&stored.object), r#"{"spec":{"k":7,"level":"A","n":5}}"#);
    assert_eq!(conversion.read(&stored, "v1").expect("is read"), one);
    let two = crate::examples::object("v2", r#"{"spec":{"k":7,"level":"B","n":6}}"#);
    let stored = conversion.write(Some(&stored), two, "v2").expect("is written");
    assert_eq!(content(&conversion.read(&stored, "v1").expect("is read")), r#"{"spec":{"level":"b","n":6}}"#);
}

#[test]
fn to_canonicalize_twice_is_to_canonicalize_once() {
    let definition =
        definition(&[("v1", &spec(r#"{"level":{"type":"string","enum":["a","b","c"]},"new":{"type":"string"}}"#))]);
    let canonicalize = |rule: &str| format!(r#","canonicalize":[{{"version":"v1","rules":[{rule}]}}]"#);
    let report = check(&definition, &[], &canonicalize(r#"{"values":{"path":".spec.level","map":{"a":"b","b":"c"}}}"#));
    let want = [r#"v1 {"spec":{"level":"a"}}"#, r#"v1 {"spec":{"level":"b"}}"#, r#"v1 {"spec":{"level":"c"}}"#];
    broken(&report, &definition, Law::Once, "spec.canonicalize[0].rules[0]", &want);
    let report = check(&definition, &[], &canonicalize(r#"{"values":{"path":".spec.level","map":{"a":"x"}}}"#));
    let want = [r#"v1 {"spec":{"level":"a"}}"#, r#"v1 {"spec":{"level":"x"}}"#];
    broken(&report, &definition, Law::Valid, "spec.canonicalize[0].rules[0]", &want);
    for rule in
        [r#"{"move":{"from":".spec.old","to":".spec.new"}}"#, r#"{"values":{"path":".spec.level","map":{"a":"b"}}}"#]
    {
        assert_eq!(check(&definition, &[], &canonicalize(rule)).broken, [], "{rule}");
    }
}

#[test]
fn rules_that_lose_nothing_are_accepted() {
    let endpoint = r#"{"type":"object","required":["host","port"],"properties":{"host":{"type":"string","pattern":"^[a-z]{1,10}$","maxLength":10},
        "port":{"type":"integer","minimum":0,"maximum":9999}}}"#;
    let address = r#"{"type":"string","pattern":"^[a-z]{1,10}:(0|[1-9][0-9]{0,3})$","maxLength":15}"#;
    for (name, one, two, rules) in [
        (
            "a parent comes and goes",
            r#"{"type":"object","properties":{"config":{"type":"string"},"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}"#.to_owned(),
            spec(&format!(r#"{{"n":{INTEGER},"config":{STRING}}}"#)),
            r#"[{"move":{"from":".config","to":".spec.config"}}]"#,
        ),
        (
            "items of maps",
            spec(&format!(r#"{{"p":{{"type":"object","additionalProperties":{{"type":"object","properties":{{"a":{INTEGER},"x":{STRING}}}}}}}}}"#)),
            spec(&format!(r#"{{"p":{{"type":"object","additionalProperties":{{"type":"object","properties":{{"b":{{"type":"object","properties":{{"a":{INTEGER}}}}},"y":{STRING}}}}}}}}}"#)),
            r#"[{"move":{"from":".spec.p[*].a","to":".spec.p[*].b.a"}}]"#,
        ),
        (
            "two become one",
            spec(&format!(r#"{{"endpoint":{endpoint}}}"#)),
            spec(&format!(r#"{{"address":{address}}}"#)),
            r#"[{"compute":{"from":{"host":".spec.endpoint.host","port":".spec.endpoint.port"},"to":{"address":".spec.address"},
                "forward":{"address":"host + ':' + string(port)"},
                "backward":{"host":"address.split(':')[0]","port":"int(address.split(':')[1])"}}}]"#,
        ),
        (
            "one becomes many",
            spec(&format!(r#"{{"host":{STRING},"n":{INTEGER}}}"#)),
            spec(&format!(r#"{{"hosts":{{"type":"array","items":{STRING}}},"n":{INTEGER}}}"#)),
            r#"[{"list":{"from":".spec.host","to":".spec.hosts"}}]"#,
        ),
        (
            "what is unknown",
            r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}}}}"#.to_owned(),
            r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"b":{"type":"string"}}}}}"#.to_owned(),
            r#"[{"move":{"from":".spec.a","to":".spec.b"}}]"#,
        ),
    ] {
        let definition = definition(&[("v1", &one), ("v2", &two)]);
        let report = check(&definition, &[("v1", "v2", rules)], "");
        let messages: Vec<String> = report.broken.iter().map(|broken| format!("{}: {}", broken.field, broken.message())).collect();
        assert!(messages.is_empty(), "{name}: {}", messages.join("\n"));
    }
}

#[test]
fn an_object_in_the_place_of_another_is_not_taken_for_a_loss() {
    let ports = |more: &str| {
        spec(&format!(
            r#"{{"ports":{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
                "items":{{"type":"object","required":["name"],"properties":{{"name":{STRING},"port":{INTEGER}{more}}}}}}}}}"#
        ))
    };
    let definition = definition(&[("v1", &ports("")), ("v2", &ports(&format!(r#","tls":{STRING}"#)))]);
    // Many objects are needed, until one is mended so.
    let report = conversion(&definition, &[("v1", "v2", "[]")]).check(Effort::default());
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
}

#[test]
fn what_could_not_be_tried_is_said() {
    let impossible = spec(&format!(r#"{{"n":{INTEGER}}}"#)).replacen(
        r#"{"type":"object""#,
        r#"{"type":"object","required":["spec"],"x-kubernetes-validations":[{"rule":"false"}]"#,
        1,
    );
    let definition = definition(&[("v1", &impossible), ("v2", &spec(&format!(r#"{{"m":{INTEGER}}}"#)))]);
    let report = check(&definition, &[("v1", "v2", r#"[{"move":{"from":".spec.n","to":".spec.m"}}]"#)], "");
    assert!(report.warnings.iter().any(|warning| warning.contains("no valid object of v1")), "{report:?}");
}

#[test]
fn schemas_that_ask_for_too_much_end() {
    let mut deep = r#"{"type":"string"}"#.to_owned();
    for _ in 0..12 {
        deep = format!(r#"{{"type":"array","minItems":9,"items":{deep}}}"#);
    }
    let mut wide = INTEGER.to_owned();
    for _ in 0..9 {
        wide = format!(r#"{{"type":"object","properties":{{"a":{wide},"b":{wide}}}}}"#);
    }
    let one = spec(&format!(r#"{{"deep":{deep},"wide":{wide},"n":{INTEGER}}}"#));
    let two = spec(&format!(r#"{{"wide":{wide},"m":{INTEGER}}}"#));
    let definition = definition(&[("v1", &one), ("v2", &two)]);
    let rules =
        r#"[{"compute":{"from":{"n":".spec.n"},"to":{"m":".spec.m"},"forward":{"m":"n"},"backward":{"n":"m"}}}]"#;
    let conversion = try_conversion(&definition, &[("v1", "v2", rules)], "").expect("is right");
    let report = conversion.check(Effort { objects: 20, work: 5_000 });
    assert!(report.broken.is_empty() && report.steps[0].objects > 0, "{report:?}");
}
