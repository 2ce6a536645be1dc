//! Each rule, forwards and backwards.

use revisor_convert::Stored;

use crate::examples::{INTEGER, STRING, content, conversion, definition, object, parse, spec, try_conversion};

/// What v1 has, what v2 has, the rules, and one object as each of them shows it.
fn rows() -> Vec<(&'static str, String, String, &'static str, &'static str, &'static str)> {
    let tree =
        r#"{"type":"object","properties":{"n":{"type":"integer"},"list":{"type":"array","items":{"type":"string"}}}}"#;
    let anything = r#""b":{"type":"boolean"},"f":{"type":"number"},"i":{"type":"integer"},"s":{"type":"string"},
        "l":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
        "m":{"type":"object","additionalProperties":{"type":"string"}},"either":{"x-kubernetes-int-or-string":true},
        "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"null":{"type":"string","nullable":true}"#;
    vec![
        (
            "a field moves to another parent",
            spec(r#"{"tls":{"type":"object","properties":{"mode":{"type":"string"},"ca":{"type":"string"}}}}"#),
            spec(
                r#"{"tls":{"type":"object","properties":{"ca":{"type":"string"}}},
                    "validation":{"type":"object","properties":{"level":{"type":"string"},"depth":{"type":"integer"}}}}"#,
            ),
            r#"[{"move":{"from":".spec.tls.mode","to":".spec.validation.level"}}]"#,
            r#"{"spec":{"tls":{"ca":"c","mode":"x"}}}"#,
            r#"{"spec":{"tls":{"ca":"c"},"validation":{"level":"x"}}}"#,
        ),
        (
            "a tree moves, and deeper",
            spec(&format!(r#"{{"a":{{"type":"object","properties":{{"b":{tree}}}}}}}"#)),
            spec(&format!(
                r#"{{"x":{{"type":"object","properties":{{"y":{{"type":"object","properties":{{"z":{tree}}}}}}}}}}}"#
            )),
            r#"[{"move":{"from":".spec.a.b","to":".spec.x.y.z"}}]"#,
            r#"{"spec":{"a":{"b":{"list":["p","q"],"n":1}}}}"#,
            r#"{"spec":{"x":{"y":{"z":{"list":["p","q"],"n":1}}}}}"#,
        ),
        (
            "a field moves into the spec",
            r#"{"type":"object","properties":{"config":{"type":"object","additionalProperties":{"type":"string"}},
                "spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}"#
                .to_owned(),
            spec(r#"{"n":{"type":"integer"},"config":{"type":"object","additionalProperties":{"type":"string"}}}"#),
            r#"[{"move":{"from":".config","to":".spec.config"}}]"#,
            r#"{"config":{"k":"v"},"spec":{"n":1}}"#,
            r#"{"spec":{"config":{"k":"v"},"n":1}}"#,
        ),
        (
            "a field is added",
            spec(&format!(r#"{{"n":{INTEGER}}}"#)),
            spec(&format!(r#"{{"n":{INTEGER},"mode":{STRING}}}"#)),
            r#"[{"add":{"path":".spec.mode","value":"Strict"}}]"#,
            r#"{"spec":{"n":1}}"#,
            r#"{"spec":{"mode":"Strict","n":1}}"#,
        ),
        (
            "a field is removed",
            spec(r#"{"n":{"type":"integer"},"legacy":{"type":"object","properties":{"on":{"type":"boolean"}}}}"#),
            spec(&format!(r#"{{"n":{INTEGER}}}"#)),
            r#"[{"remove":{"path":".spec.legacy","value":{"on":false}}}]"#,
            r#"{"spec":{"legacy":{"on":false},"n":1}}"#,
            r#"{"spec":{"n":1}}"#,
        ),
        (
            "values have other names, here or elsewhere",
            spec(&format!(r#"{{"level":{STRING},"mode":{STRING},"n":{INTEGER}}}"#)),
            spec(&format!(
                r#"{{"level":{STRING},"policy":{{"type":"object","properties":{{"mode":{STRING}}}}},"n":{STRING}}}"#
            )),
            r#"[{"values":{"path":".spec.level","map":{"low":"Low","high":"High"}}},
                {"values":{"path":".spec.mode","to":".spec.policy.mode","map":{"a":"A"}}},
                {"values":{"path":".spec.n","map":{"1":"one","2":"two"}}}]"#,
            r#"{"spec":{"level":"high","mode":"a","n":2}}"#,
            r#"{"spec":{"level":"High","n":"two","policy":{"mode":"A"}}}"#,
        ),
        (
            "one becomes many",
            spec(&format!(r#"{{"host":{STRING},"backend":{{"type":"object","properties":{{"name":{STRING}}}}}}}"#)),
            spec(&format!(
                r#"{{"hosts":{{"type":"array","items":{STRING}}},"backends":{{"type":"array","items":
                    {{"type":"object","properties":{{"name":{STRING},"weight":{INTEGER}}}}}}}}}"#
            )),
            r#"[{"list":{"from":".spec.host","to":".spec.hosts"}},{"list":{"from":".spec.backend","to":".spec.backends"}}]"#,
            r#"{"spec":{"backend":{"name":"b"},"host":"h"}}"#,
            r#"{"spec":{"backends":[{"name":"b"}],"hosts":["h"]}}"#,
        ),
        (
            "one field is computed of two",
            spec(
                r#"{"endpoint":{"type":"object","properties":{"host":{"type":"string","maxLength":10},"port":{"type":"integer"}}}}"#,
            ),
            spec(r#"{"address":{"type":"string","maxLength":30}}"#),
            r#"[{"compute":{"from":{"host":".spec.endpoint.host","port":".spec.endpoint.port"},"to":{"address":".spec.address"},
                "forward":{"address":"host + ':' + string(port)"},
                "backward":{"host":"address.split(':')[0]","port":"int(address.split(':')[1])"}}}]"#,
            r#"{"spec":{"endpoint":{"host":"db","port":5432}}}"#,
            r#"{"spec":{"address":"db:5432"}}"#,
        ),
        (
            "rules hold in items of items",
            spec(&format!(
                r#"{{"groups":{{"type":"array","items":{{"type":"object","properties":{{"members":{{"type":"array","items":
                    {{"type":"object","properties":{{"name":{STRING},"addr":{STRING}}}}}}}}}}}}}}}"#
            )),
            spec(&format!(
                r#"{{"groups":{{"type":"array","items":{{"type":"object","properties":{{"members":{{"type":"array","items":
                    {{"type":"object","properties":{{"name":{STRING},"address":{{"type":"object","properties":{{"ip":{STRING}}}}},
                    "weight":{INTEGER}}}}}}}}}}}}}}}"#
            )),
            r#"[{"each":{"path":".spec.groups[*]","rules":[{"each":{"path":".members[*]","rules":[
                {"move":{"from":".addr","to":".address.ip"}},{"add":{"path":".weight","value":1}}]}}]}}]"#,
            r#"{"spec":{"groups":[{"members":[{"addr":"1","name":"a"},{"addr":"2"}]},{"members":[]}]}}"#,
            r#"{"spec":{"groups":[{"members":[{"address":{"ip":"1"},"name":"a","weight":1},{"address":{"ip":"2"},"weight":1}]},{"members":[]}]}}"#,
        ),
        (
            "paths reach every value of a map, and computing happens there",
            spec(&format!(
                r#"{{"unit":{STRING},"pools":{{"type":"object","additionalProperties":{{"type":"object","properties":
                    {{"size":{INTEGER},"os":{STRING},"age":{INTEGER}}}}}}}}}"#
            )),
            spec(&format!(
                r#"{{"unit":{STRING},"pools":{{"type":"object","additionalProperties":{{"type":"object","properties":
                    {{"capacity":{{"type":"object","properties":{{"nodes":{INTEGER}}}}},"os":{STRING},"old":{STRING}}}}}}}}}"#
            )),
            r#"[{"move":{"from":".spec.pools[*].size","to":".spec.pools[*].capacity.nodes"}},
                {"values":{"path":".spec.pools[*].os","map":{"linux":"Linux","win":"Windows"}}},
                {"compute":{"from":{"age":".spec.pools[*].age","unit":".spec.unit"},"to":{"old":".spec.pools[*].old"},
                    "forward":{"old":"string(age) + unit"},"backward":{"age":"int(old.replace('d', ''))"}}}]"#,
            r#"{"spec":{"pools":{"x":{"age":3,"os":"win","size":1},"y/z.w":{"size":2}},"unit":"d"}}"#,
            r#"{"spec":{"pools":{"x":{"capacity":{"nodes":1},"old":"3d","os":"Windows"},"y/z.w":{"capacity":{"nodes":2}}},"unit":"d"}}"#,
        ),
        (
            "items become members of items, and lists have other names",
            spec(&format!(
                r#"{{"names":{{"type":"array","items":{STRING}}},"levels":{{"type":"array","items":{STRING}}}}}"#
            )),
            spec(&format!(
                r#"{{"people":{{"type":"array","items":{{"type":"object","properties":{{"name":{STRING},"age":{INTEGER}}}}}}},
                    "levels":{{"type":"array","items":{STRING}}}}}"#
            )),
            r#"[{"move":{"from":".spec.names[*]","to":".spec.people[*].name"}},
                {"values":{"path":".spec.levels[*]","map":{"a":"A"}}}]"#,
            r#"{"spec":{"levels":["a","b"],"names":["x","y"]}}"#,
            r#"{"spec":{"levels":["A","b"],"people":[{"name":"x"},{"name":"y"}]}}"#,
        ),
        (
            "a list moves, and rules hold in its items",
            spec(&format!(
                r#"{{"rules":{{"type":"array","items":{{"type":"object","properties":{{"port":{INTEGER}}}}}}}}}"#
            )),
            spec(&format!(
                r#"{{"http":{{"type":"object","properties":{{"routes":{{"type":"array","items":{{"type":"object","properties":
                    {{"target":{{"type":"object","properties":{{"port":{INTEGER}}}}}}}}}}}}}}}}}"#
            )),
            r#"[{"move":{"from":".spec.rules","to":".spec.http.routes"}},
                {"each":{"path":".spec.rules[*]","rules":[{"move":{"from":".port","to":".target.port"}}]}}]"#,
            r#"{"spec":{"rules":[{"port":1},{"port":2}]}}"#,
            r#"{"spec":{"http":{"routes":[{"target":{"port":1}},{"target":{"port":2}}]}}}"#,
        ),
        (
            "rules stand in each other crosswise",
            spec(&format!(
                r#"{{"a":{{"type":"object","properties":{{"b":{{"type":"object","properties":{{"k":{STRING}}}}},"n":{INTEGER}}}}}}}"#
            )),
            spec(&format!(
                r#"{{"x":{{"type":"object","properties":{{"y":{{"type":"object","properties":{{"n":{INTEGER}}}}},"k":{STRING}}}}}}}"#
            )),
            r#"[{"move":{"from":".spec.a","to":".spec.x.y"}},{"move":{"from":".spec.a.b","to":".spec.x"}}]"#,
            r#"{"spec":{"a":{"b":{"k":"v"},"n":1}}}"#,
            r#"{"spec":{"x":{"k":"v","y":{"n":1}}}}"#,
        ),
        (
            "fields have odd names",
            spec(&format!(r#"{{"odd.name":{STRING},"n":{INTEGER}}}"#)),
            spec(&format!(r#"{{"a/b":{{"type":"object","properties":{{"c d":{STRING}}}}},"n":{INTEGER}}}"#)),
            r#"[{"move":{"from":".spec[\"odd.name\"]","to":".spec[\"a/b\"][\"c d\"]"}}]"#,
            r#"{"spec":{"n":1,"odd.name":"x"}}"#,
            r#"{"spec":{"a/b":{"c d":"x"},"n":1}}"#,
        ),
        (
            "what both have is carried over",
            spec(&format!(r#"{{{anything},"old":{STRING}}}"#)),
            spec(&format!(r#"{{{anything},"new":{STRING}}}"#)),
            r#"[{"move":{"from":".spec.old","to":".spec.new"}}]"#,
            r#"{"spec":{"any":{"deep":[{"er":null},1.5]},"b":false,"either":"50%","f":0.5,"i":0,"l":[[],[1,2]],"m":{"":"e"},"null":null,"old":"x","s":""}}"#,
            r#"{"spec":{"any":{"deep":[{"er":null},1.5]},"b":false,"either":"50%","f":0.5,"i":0,"l":[[],[1,2]],"m":{"":"e"},"new":"x","null":null,"s":""}}"#,
        ),
    ]
}

#[test]
fn a_rule_leads_there_and_back() {
    for (name, one, two, rules, first, second) in rows() {
        let definition = definition(&[("v1", &one), ("v2", &two)]);
        let conversion = try_conversion(&definition, &[("v1", "v2", rules)], "");
        let conversion = conversion.unwrap_or_else(|errors| panic!("{name}: {}", errors.join("\n")));
        for storage in ["v1", "v2"] {
            for (version, seen) in [("v1", first), ("v2", second)] {
                let stored = conversion.write(None, object(version, seen), storage).expect(name);
                for (at, want) in [("v1", first), ("v2", second)] {
                    let read = conversion.read(&stored, at).expect(name);
                    assert_eq!(content(&read), want, "{name}: stored as {storage}, written as {version}, read as {at}");
                    let api_version = read.as_object().and_then(|object| object.str("apiVersion"));
                    assert_eq!(api_version, Some(format!("example.com/{at}").as_str()), "{name}");
                }
            }
        }
        for (version, to, seen, want) in [("v1", "v2", first, second), ("v2", "v1", second, first)] {
            let there = conversion.convert(object(version, seen), to).expect(name);
            assert_eq!(content(&there), want, "{name}");
            let back = conversion.convert(there, version).expect(name);
            assert_eq!(content(&back), seen, "{name}");
        }
    }
}

#[test]
fn labels_are_computed_and_the_rest_of_metadata_stays() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"tier":{STRING},"n":{INTEGER}}}"#))),
        ("v2", &spec(&format!(r#"{{"n":{INTEGER}}}"#))),
    ]);
    let rules = r#"[{"compute":{"from":{"tier":".spec.tier","name":".metadata.name"},"to":{"label":".metadata.labels[\"example.com/tier\"]"},
        "forward":{"label":"tier + '.' + name"},"backward":{"tier":"label.split('.')[0]"}}}]"#;
    let conversion = conversion(&definition, &[("v1", "v2", rules)]);
    let one = object("v1", r#"{"spec":{"tier":"gold"},"metadata":{"labels":{"a":"b"},"uid":"7"}}"#);
    let there = conversion.convert(one.clone(), "v2").expect("converts");
    assert_eq!(
        there.to_json(),
        r#"{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"labels":{"a":"b","example.com/tier":"gold.w"},"name":"w","uid":"7"},"spec":{}}"#
    );
    assert_eq!(conversion.convert(there, "v1").expect("converts"), one);
}

#[test]
fn an_expression_that_fails_says_which_rule_it_is() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"n":{INTEGER}}}"#))),
        ("v2", &spec(r#"{"t":{"type":"string","maxLength":9}}"#)),
    ]);
    let rules = r#"[{"compute":{"from":{"n":".spec.n"},"to":{"t":".spec.t"},"forward":{"t":"string(n)"},"backward":{"n":"int(t)"}}}]"#;
    let conversion = conversion(&definition, &[("v1", "v2", rules)]);
    let stored = Stored::new(object("v2", r#"{"spec":{"t":"x"}}"#));
    let error = conversion.read(&stored, "v1").expect_err("fails").to_string();
    assert!(error.starts_with("spec.steps[0].rules[0]: "), "{error}");
}

#[test]
fn rules_that_cannot_be_carried_out_are_refused_at_their_place() {
    let list = format!(r#"{{"type":"array","items":{STRING}}}"#);
    let one = spec(&format!(
        r#"{{"a":{STRING},"n":{INTEGER},"l":{list},"o":{{"type":"object","properties":{{"p":{STRING}}}}}}}"#
    ));
    let two = spec(&format!(
        r#"{{"b":{STRING},"t":{STRING},"l":{list},"m":{list},"q":{{"type":"object","properties":{{"p":{STRING}}}}}}}"#
    ));
    let definition = definition(&[("v1", &one), ("v2", &two)]);
    let compute = |from: &str, to: &str, forward: &str, backward: &str| {
        format!(r#"{{"compute":{{"from":{from},"to":{to},"forward":{forward},"backward":{backward}}}}}"#)
    };
    for (rule, place, says) in [
        (
            compute(r#"{"n":".spec.n"}"#, r#"{"t":".spec.t"}"#, r#"{"t":"string(m)"}"#, r#"{"n":"int(t)"}"#),
            "compute.forward.t",
            "undeclared reference",
        ),
        (
            compute(r#"{"n":".spec.n"}"#, r#"{"t":".spec.t"}"#, r#"{"t":"n + 1"}"#, r#"{"n":"int(t)"}"#),
            "compute.forward.t",
            "is of type int",
        ),
        (
            compute(
                r#"{"l":".spec.l"}"#,
                r#"{"t":".spec.t"}"#,
                r#"{"t":"l.all(a, l.all(b, l.all(c, l.all(d, a + b != c + d)))) ? 'y' : 'n'"}"#,
                r#"{"l":"[t]"}"#,
            ),
            "compute.forward.t",
            "cost",
        ),
        (r#"{"move":{"from":".metadata.name","to":".spec.t"}}"#.to_owned(), "move.from", "metadata"),
        (r#"{"move":{"from":".kind","to":".spec.t"}}"#.to_owned(), "move.from", "kind"),
        (r#"{"move":{"from":".spec.l[*]","to":".spec.t"}}"#.to_owned(), "move.to", "stars"),
        (r#"{"move":{"from":".spec.l[*]","to":".spec.m[*]"}}"#.to_owned(), "", "not the same list"),
        (r#"{"move":{"from":".spec.l.x","to":".spec.t"}}"#.to_owned(), "move.from", "write .spec.l[*]"),
        (r#"{"move":{"from":".spec.nope","to":".spec.t"}}"#.to_owned(), "move.from", r#"no field "nope""#),
        (
            r#"{"move":{"from":".spec.n","to":".spec.b"}}"#.to_owned(),
            "move.to",
            "spec.steps[0].rules[0] has this place",
        ),
        (r#"{"add":{"path":".spec.b","value":"x"}}"#.to_owned(), "add.path", "spec.steps[0].rules[0] has this place"),
        (r#"{"list":{"from":".spec.n","to":".spec.t"}}"#.to_owned(), "list.to", "is no list"),
        (r#"{"values":{"path":".spec.n","to":".spec.t","map":{"x":"y"}}}"#.to_owned(), "values.map", "integer"),
        (r#"{"move":{"from":".","to":".spec.t"}}"#.to_owned(), "move.from", "not the whole"),
        (
            r#"{"each":{"path":".spec.l[*]","rules":[{"add":{"path":".x","value":1}}]}}"#.to_owned(),
            "each.rules[0].add.path",
            "no field",
        ),
        (r#"{"each":{"path":".spec.m[*]","rules":[]}}"#.to_owned(), "each.path", r#"no field "m""#),
    ] {
        let rules = format!(r#"[{{"move":{{"from":".spec.a","to":".spec.b"}}}},{rule}]"#);
        let errors = try_conversion(&definition, &[("v1", "v2", &rules)], "").expect_err(&rule);
        let at = format!("spec.steps[0].rules[1]{}{place}", if place.is_empty() { "" } else { "." });
        assert!(errors.iter().any(|error| error.starts_with(&at) && error.contains(says)), "{rule}: {errors:?}");
    }
    let overlapping = r#"[{"add":{"path":".spec.q","value":{}}},{"move":{"from":".spec.o.p","to":".spec.q.p"}}]"#;
    let errors = try_conversion(&definition, &[("v1", "v2", overlapping)], "").expect_err("overlaps");
    assert!(errors[0].contains("overlaps"), "{errors:?}");
    let twice = try_conversion(&definition, &[("v1", "v2", "[]"), ("v2", "v1", "[]")], "").expect_err("twice");
    assert!(twice[0].starts_with("spec.steps[1]"), "{twice:?}");
}

#[test]
fn what_looks_the_same_and_is_not_draws_a_warning() {
    let definition = definition(&[
        ("v1", &spec(&format!(r#"{{"a":{STRING},"n":{INTEGER}}}"#))),
        ("v2", &spec(&format!(r#"{{"a":{INTEGER},"n":{INTEGER}}}"#))),
        ("v3", &spec("{}")),
    ]);
    let conversion = conversion(&definition, &[("v1", "v2", "[]")]);
    let warnings = conversion.warnings().join("\n");
    assert!(warnings.contains(".spec.a has different types in v1 and v2"), "{warnings}");
    assert!(warnings.contains("no step reaches v3"), "{warnings}");
    let there = conversion.convert(object("v1", r#"{"spec":{"a":"x","n":1}}"#), "v2").expect("converts");
    assert_eq!(content(&there), r#"{"spec":{"n":1}}"#);
    let mut changed = there;
    changed.as_object_mut().expect("an object").insert("spec", parse(r#"{"a":7,"n":2}"#));
    let back = conversion.convert(changed, "v1").expect("converts");
    assert_eq!(content(&back), r#"{"spec":{"a":"x","n":2}}"#);
    assert_eq!(content(&conversion.convert(back, "v2").expect("converts")), r#"{"spec":{"a":7,"n":2}}"#);
}

#[test]
fn a_conversion_may_name_versions_to_come() {
    let definition = definition(&[("v1", &spec("{}"))]);
    let conversion = conversion(&definition, &[("v1", "v2", r#"[{"move":{"from":".spec.a","to":".spec.b"}}]"#)]);
    assert!(conversion.warnings()[0].contains("v2"), "{:?}", conversion.warnings());
}
