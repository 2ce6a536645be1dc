//! Changes of schemas: the class, the path, and that the witness is one.

use revisor_check::Class::{Additive, BreaksReaders, BreaksWriters};

use crate::definitions::{boats, check, report, told};

/// The schema of a spec with these properties.
fn spec(properties: &str, more: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}{more}}}"#)
}

#[test]
fn what_one_field_may_be_is_told_apart_by_an_object() {
    for (name, old, new, class) in [
        ("maximum lowered", r#""type":"integer","maximum":100"#, r#""type":"integer","maximum":99"#, BreaksWriters),
        ("maximum raised", r#""type":"integer","maximum":100"#, r#""type":"integer","maximum":200"#, Additive),
        (
            "maximum excluded",
            r#""type":"number","maximum":1"#,
            r#""type":"number","maximum":1,"exclusiveMaximum":true"#,
            BreaksWriters,
        ),
        ("minimum raised", r#""type":"integer","minimum":0"#, r#""type":"integer","minimum":1"#, BreaksWriters),
        ("multiples only", r#""type":"integer""#, r#""type":"integer","multipleOf":3"#, BreaksWriters),
        ("shorter", r#""type":"string","maxLength":9"#, r#""type":"string","maxLength":8"#, BreaksWriters),
        (
            "shorter, of a long text",
            r#""type":"string","maxLength":3000"#,
            r#""type":"string","maxLength":2000"#,
            BreaksWriters,
        ),
        ("never empty", r#""type":"string""#, r#""type":"string","minLength":1"#, BreaksWriters),
        (
            "shorter, with a pattern",
            r#""type":"string","pattern":"^x+$","maxLength":90"#,
            r#""type":"string","pattern":"^x+$","maxLength":80"#,
            BreaksWriters,
        ),
        (
            "a pattern written otherwise",
            r#""type":"string","pattern":"^[a-z]+$""#,
            r#""type":"string","pattern":"^([a-m]|[n-z])[a-z]*$""#,
            Additive,
        ),
        (
            "a pattern narrowed",
            r#""type":"string","pattern":"^[a-z]+$""#,
            r#""type":"string","pattern":"^[a-z]+[a-y]$""#,
            BreaksWriters,
        ),
        (
            "a pattern wanted",
            r#""type":"string","maxLength":5"#,
            r#""type":"string","maxLength":5,"pattern":"^a*$""#,
            BreaksWriters,
        ),
        (
            "a pattern that all lengths match",
            r#""type":"string","pattern":"^a+$","maxLength":3"#,
            r#""type":"string","pattern":"^a{1,3}$","maxLength":3"#,
            Additive,
        ),
        ("a pattern dropped", r#""type":"string","pattern":"^a$""#, r#""type":"string""#, Additive),
        ("a format wanted", r#""type":"string""#, r#""type":"string","format":"date-time""#, BreaksWriters),
        ("a format that nobody knows", r#""type":"string""#, r#""type":"string","format":"my-own""#, Additive),
        (
            "a smaller format",
            r#""type":"integer","format":"int64""#,
            r#""type":"integer","format":"int32""#,
            BreaksWriters,
        ),
        (
            "a value less",
            r#""type":"string","enum":["a","b","c"]"#,
            r#""type":"string","enum":["a","b"]"#,
            BreaksWriters,
        ),
        ("values wanted", r#""type":"string""#, r#""type":"string","enum":["a","b"]"#, BreaksWriters),
        (
            "a value more",
            r#""type":"string","enum":["a","b"]"#,
            r#""type":"string","enum":["a","b","c"]"#,
            BreaksReaders,
        ),
        ("any value", r#""type":"string","enum":["a","b"]"#, r#""type":"string""#, BreaksReaders),
        (
            "values that keep below the maximum",
            r#""type":"integer","enum":[1,2],"maximum":9"#,
            r#""type":"integer","enum":[1,2],"maximum":5"#,
            Additive,
        ),
        ("another type", r#""type":"integer""#, r#""type":"string""#, BreaksWriters),
        ("integer made number", r#""type":"integer""#, r#""type":"number""#, BreaksReaders),
        ("number made integer", r#""type":"number""#, r#""type":"integer""#, BreaksWriters),
        ("text made int-or-string", r#""type":"string""#, r#""x-kubernetes-int-or-string":true"#, BreaksReaders),
        ("int-or-string made integer", r#""x-kubernetes-int-or-string":true"#, r#""type":"integer""#, BreaksWriters),
        (
            "alternatives",
            r#""type":"string""#,
            r#""type":"string","anyOf":[{"pattern":"^a"},{"enum":["b"]}]"#,
            BreaksWriters,
        ),
        ("something is not allowed", r#""type":"string""#, r#""type":"string","not":{"enum":["a"]}"#, BreaksWriters),
        (
            "alternatives dropped",
            r#""type":"integer","oneOf":[{"maximum":3},{"minimum":7}]"#,
            r#""type":"integer""#,
            Additive,
        ),
        ("null is no value", r#""type":"string","nullable":true"#, r#""type":"string""#, BreaksReaders),
        ("null is a value", r#""type":"string""#, r#""type":"string","nullable":true"#, BreaksReaders),
        (
            "fewer items",
            r#""type":"array","items":{"type":"string"},"maxItems":5"#,
            r#""type":"array","items":{"type":"string"},"maxItems":4"#,
            BreaksWriters,
        ),
        (
            "fewer of many items",
            r#""type":"array","items":{"type":"string"},"maxItems":500,"x-kubernetes-list-type":"set""#,
            r#""type":"array","items":{"type":"string"},"maxItems":300,"x-kubernetes-list-type":"set""#,
            BreaksWriters,
        ),
        (
            "at least one item",
            r#""type":"array","items":{"type":"string"}"#,
            r#""type":"array","items":{"type":"string"},"minItems":1"#,
            BreaksWriters,
        ),
        (
            "any number of items",
            r#""type":"array","items":{"type":"string"},"maxItems":5"#,
            r#""type":"array","items":{"type":"string"}"#,
            Additive,
        ),
        (
            "a list becomes a set",
            r#""type":"array","items":{"type":"string"}"#,
            r#""type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set""#,
            BreaksWriters,
        ),
        (
            "a set of one stays one",
            r#""type":"array","items":{"type":"string"},"maxItems":1"#,
            r#""type":"array","items":{"type":"string"},"maxItems":1,"x-kubernetes-list-type":"set""#,
            Additive,
        ),
        (
            "fewer members",
            r#""type":"object","additionalProperties":{"type":"integer"}"#,
            r#""type":"object","additionalProperties":{"type":"integer"},"maxProperties":2"#,
            BreaksWriters,
        ),
        (
            "members no longer kept",
            r#""type":"object","additionalProperties":{"type":"integer"}"#,
            r#""type":"object""#,
            BreaksReaders,
        ),
        (
            "unknown fields no longer kept",
            r#""type":"object","x-kubernetes-preserve-unknown-fields":true"#,
            r#""type":"object""#,
            BreaksReaders,
        ),
        (
            "unknown fields kept",
            r#""type":"object""#,
            r#""type":"object","x-kubernetes-preserve-unknown-fields":true"#,
            Additive,
        ),
        ("another default", r#""type":"string","default":"a""#, r#""type":"string","default":"b""#, BreaksReaders),
        ("no default", r#""type":"string","default":"a""#, r#""type":"string""#, BreaksReaders),
        ("a default", r#""type":"string""#, r#""type":"string","default":"a""#, BreaksReaders),
        ("a description", r#""type":"string""#, r#""type":"string","description":"What to know.""#, Additive),
        (
            "fewer keys",
            r#""type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"],"items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}"#,
            r#""type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}"#,
            BreaksWriters,
        ),
    ] {
        let field = |schema: &str| spec(&format!(r#""f":{{{schema}}},"g":{{"type":"string"}}"#), "");
        check(name, &field(old), &field(new), class, ".spec.f");
        // Deep inside, beside what must be there.
        let deep = |schema: &str| {
            let item =
                spec(&format!(r#""f":{{{schema}}},"id":{{"type":"integer","minimum":3}}"#), r#","required":["id"]"#);
            spec(&format!(r#""l":{{"type":"array","items":{item}}}"#), "")
        };
        check(name, &deep(old), &deep(new), class, ".spec.l[*].f");
    }
}

#[test]
fn what_an_object_has_is_told_apart_by_an_object() {
    const A: &str = r#""a":{"type":"string"}"#;
    const B: &str = r#""b":{"type":"string"}"#;
    let both = format!("{A},{B}");
    let with_default = format!(r#"{A},"b":{{"type":"string","default":"x"}}"#);
    for (name, old, new, class, path) in [
        ("a field is new", spec(A, ""), spec(&both, ""), Additive, ".spec.b"),
        ("a field is new and required", spec(A, ""), spec(&both, r#","required":["b"]"#), BreaksWriters, ".spec.b"),
        (
            "a field is new and required, with a default",
            spec(A, ""),
            spec(&with_default, r#","required":["b"]"#),
            Additive,
            ".spec.b",
        ),
        ("a field is required", spec(&both, ""), spec(&both, r#","required":["b"]"#), BreaksWriters, ".spec.b"),
        ("a field is optional", spec(&both, r#","required":["b"]"#), spec(&both, ""), BreaksReaders, ".spec.b"),
        (
            "a field is optional that has a default",
            spec(&with_default, r#","required":["b"]"#),
            spec(&with_default, ""),
            Additive,
            ".spec.b",
        ),
        ("a field is gone", spec(&both, ""), spec(A, ""), BreaksReaders, ".spec.b"),
        (
            "a field is gone that is kept",
            spec(&both, r#","x-kubernetes-preserve-unknown-fields":true"#),
            spec(A, r#","x-kubernetes-preserve-unknown-fields":true"#),
            Additive,
            ".spec.b",
        ),
        (
            "a field gets a shape that was kept whatever it was",
            spec(A, r#","x-kubernetes-preserve-unknown-fields":true"#),
            spec(&both, r#","x-kubernetes-preserve-unknown-fields":true"#),
            BreaksWriters,
            ".spec.b",
        ),
        (
            "a default goes from what is required",
            spec(&with_default, r#","required":["b"]"#),
            spec(&both, r#","required":["b"]"#),
            BreaksWriters,
            ".spec.b",
        ),
        (
            "one of two",
            spec(&both, ""),
            spec(&both, r#","oneOf":[{"required":["a"]},{"required":["b"]}]"#),
            BreaksWriters,
            ".spec",
        ),
    ] {
        check(name, &old, &new, class, path);
    }
}

#[test]
fn rules_are_told_apart_by_a_search() {
    let properties = r#""n":{"type":"integer","maximum":100},"s":{"type":"string","maxLength":40}"#;
    let with = |rules: &[&str]| {
        let rules: Vec<String> = rules.iter().map(|rule| format!(r#"{{"rule":"{rule}"}}"#)).collect();
        spec(properties, &format!(r#","x-kubernetes-validations":[{}]"#, rules.join(",")))
    };
    for (name, old, new, class) in [
        ("added", &[][..], &["!has(self.n) || !has(self.s) || self.n != self.s.size()"][..], BreaksWriters),
        ("tightened", &["!has(self.n) || self.n < 90"], &["!has(self.n) || self.n < 80"], BreaksWriters),
        ("loosened", &["!has(self.n) || self.n < 80"], &["!has(self.n) || self.n < 90"], Additive),
        ("dropped", &["!has(self.n) || self.n < 80"], &[], Additive),
        ("nothing that the schema does not say", &[], &["!has(self.n) || self.n < 101"], Additive),
    ] {
        check(name, &with(old), &with(new), class, ".spec");
    }
}

#[test]
fn a_bound_that_a_rule_keeps_within_breaks_nobody() {
    let rule = r#","x-kubernetes-validations":[{"rule":"!has(self.n) || self.n < 50"}]"#;
    let old = spec(r#""n":{"type":"integer","maximum":100}"#, rule);
    let new = spec(r#""n":{"type":"integer","maximum":60}"#, rule);
    check("rule", &old, &new, Additive, ".spec.n");
}

#[test]
fn a_rule_about_changes_is_shown_by_two_objects() {
    let old = spec(r#""n":{"type":"integer"}"#, "");
    let new = spec(
        r#""n":{"type":"integer"}"#,
        r#","x-kubernetes-validations":[{"rule":"!has(oldSelf.n) || self.n == oldSelf.n"}]"#,
    );
    let found = report(&boats(&[("v1", &old)], ""), &boats(&[("v1", &new)], ""));
    assert_eq!(told(&found.findings), ["breaks writers: .spec"]);
    assert!(found.findings[0].message.contains("in the place of {"), "{}", found.findings[0].message);
}

#[test]
fn a_witness_is_as_small_as_can_be() {
    let many: Vec<String> = (0..40).map(|n| format!(r#""f{n}":{{"type":"string"}}"#)).collect();
    let of = |most: u32| spec(&format!(r#"{},"n":{{"type":"integer","maximum":{most}}}"#, many.join(",")), "");
    let found = report(&boats(&[("v1", &of(100))], ""), &boats(&[("v1", &of(99))], ""));
    let witness = found.findings[0].witness.as_ref().expect("is shown").to_json();
    assert_eq!(witness, r#"{"apiVersion":"sea.example/v1","kind":"Boat","metadata":{"name":"x"},"spec":{"n":100}}"#);
    assert!(found.findings[0].message.starts_with("maximum is 99 now, and was 100"), "{}", found.findings[0].message);
}

#[test]
fn nothing_differs_between_the_same() {
    let same = spec(r#""a":{"type":"string","enum":["a","b"]}"#, "");
    let other_order = spec(r#""a":{"type":"string","enum":["b","a"]}"#, "");
    assert_eq!(told(&report(&boats(&[("v1", &same)], ""), &boats(&[("v1", &other_order)], "")).findings), [""; 0]);
}

#[test]
fn a_rule_about_a_field_that_came_with_it_breaks_nobody() {
    let old = spec(r#""role":{"type":"string"}"#, "");
    let new = spec(
        r#""role":{"type":"string"},"id":{"type":"string"}"#,
        r#","x-kubernetes-validations":[{"rule":"!has(self.id) || has(self.role)"}]"#,
    );
    check("rule", &old, &new, Additive, ".spec");
}

#[test]
fn what_is_optional_now_is_shown_beside_alternatives_and_rules() {
    let address = |more: &str| {
        let properties =
            r#""type":{"type":"string","default":"IP","maxLength":9},"value":{"type":"string","maxLength":9}"#;
        let choice = r#","oneOf":[{"properties":{"type":{"enum":["IP"]},"value":{"anyOf":[{"format":"ipv4"},{"format":"ipv6"}]}}},
            {"properties":{"type":{"not":{"enum":["IP"]}}}}]"#;
        spec(properties, &format!("{choice}{more}"))
    };
    let rule = "self.all(a, a.type == 'IP' ? self.exists_one(b, b.type == a.type && b.value == a.value) : true)";
    let rule = format!(r#""x-kubernetes-validations":[{{"rule":"{rule}"}}]"#);
    let list = |item: &str| spec(&format!(r#""addresses":{{"type":"array","maxItems":4,{rule},"items":{item}}}"#), "");
    let (old, new) = (list(&address(r#","required":["value"]"#)), list(&address("")));
    check("optional", &old, &new, BreaksReaders, ".spec.addresses[*].value");
}

#[test]
fn a_list_that_says_that_it_is_atomic_is_what_it_was() {
    let list = |more: &str| spec(&format!(r#""l":{{"type":"array","items":{{"type":"string"}}{more}}}"#), "");
    check("atomic", &list(""), &list(r#","x-kubernetes-list-type":"atomic""#), Additive, ".spec.l");
    check("map", &list(r#","x-kubernetes-list-type":"atomic""#), &list(""), Additive, ".spec.l");
}

#[test]
fn an_object_that_is_applied_as_a_whole_is_shown() {
    let of =
        |more: &str| spec(&format!(r#""o":{{"type":"object","properties":{{"a":{{"type":"string"}}}}{more}}}"#), "");
    let (old, new) = (of(""), of(r#","x-kubernetes-map-type":"atomic""#));
    let found = report(&boats(&[("v1", &old)], ""), &boats(&[("v1", &new)], ""));
    assert_eq!(told(&found.findings), ["breaks writers: .spec.o"]);
    let witness = found.findings[0].witness.as_ref().expect("is shown").to_json();
    assert!(witness.ends_with(r#""spec":{"o":{}}}"#), "{witness}");
}

/// As where a provider got a default for a name and, in the same release, a rule for another field that refuses what is
/// usually made up for it.
#[test]
fn a_change_is_not_hidden_by_another_that_refuses_the_same_objects() {
    let item = |default: &str| format!(r#"{{"type":"object","properties":{{"name":{{"type":"string"{default}}}}}}}"#);
    let boat = |item: &str, more: &str, image: &str| {
        let crew = format!(r#""crew":{{"type":"array","items":{item}}},"image":{{"type":"string"{image}}}"#);
        boats(&[("v1", &spec(&format!("{crew}{more}"), r#","required":["image"]"#))], "")
    };
    let old = boat(&item(""), r#","oars":{"type":"integer"}"#, "");
    let new = boat(&item(r#","default":"""#), "", r#","pattern":"^[a-z]+/[a-z]+:v[0-9]+$""#);
    let found = report(&old, &new);
    for (path, class) in
        [(".spec.crew[*].name", BreaksReaders), (".spec.oars", BreaksReaders), (".spec.image", BreaksWriters)]
    {
        let finding = found.findings.iter().find(|finding| finding.path == path).expect(path);
        assert_eq!((finding.class, finding.witness.is_some()), (class, true), "{path}: {}", finding.message);
    }
}

/// An object that shows it would fill screens; who has such lists is told all the same.
#[test]
fn a_bound_for_very_many_is_told_without_a_witness() {
    for (name, old, new, class) in [
        ("items", r#""type":"array","items":{"type":"string"}"#, r#","maxItems":2000"#, BreaksWriters),
        (
            "members",
            r#""type":"object","additionalProperties":{"type":"string"}"#,
            r#","maxProperties":2000"#,
            BreaksWriters,
        ),
        (
            "members that all have names",
            r#""type":"object","properties":{"a":{"type":"string"}}"#,
            r#","maxProperties":2000"#,
            Additive,
        ),
        ("texts", r#""type":"string""#, r#","maxLength":10000"#, BreaksWriters),
    ] {
        let of = |more: &str| boats(&[("v1", &spec(&format!(r#""f":{{{old}{more}}}"#), ""))], "");
        let found = report(&of(""), &of(new));
        assert_eq!(told(&found.findings), [format!("{class}: .spec.f")], "{name}");
    }
}

/// As the filters of routes are: a new kind of filter comes with a part of its own that it must have, in a list in a list
/// whose items have rules too.
#[test]
fn a_value_that_rules_tie_to_other_fields_is_found_deep_inside() {
    let kinds = ["Header", "Mirror", "Redirect", "Rewrite", "Cors"];
    let filter = |count: usize| {
        let known = &kinds[..count];
        let names: Vec<String> = known.iter().map(|kind| format!("{kind:?}")).collect();
        let parts = known.iter().map(|kind| {
            format!(r#""{}":{{"type":"object","properties":{{"a":{{"type":"string"}}}}}}"#, kind.to_lowercase())
        });
        let kind = format!(r#""kind":{{"type":"string","enum":[{}]}}"#, names.join(","));
        let properties: Vec<String> = parts.chain([kind]).collect();
        let rules = known.iter().map(|kind| {
            let part = kind.to_lowercase();
            format!(r#"{{"rule":"has(self.{part}) == (self.kind == '{kind}')"}}"#)
        });
        let rules: Vec<String> = rules.collect();
        let more = format!(r#","required":["kind"],"x-kubernetes-validations":[{}]"#, rules.join(","));
        spec(&properties.join(","), &more)
    };
    let target = |filter: &str| {
        let properties = format!(
            r#""name":{{"type":"string","minLength":1}},"group":{{"type":"string","default":""}},"port":{{"type":"integer"}},
               "filters":{{"type":"array","maxItems":4,"items":{filter}}}"#
        );
        let rule = r#","required":["name"],"x-kubernetes-validations":[{"rule":"self.group != '' || has(self.port)"}]"#;
        format!(r#"{{"type":"array","maxItems":4,"items":{}}}"#, spec(&properties, rule))
    };
    let route = |count: usize| {
        let rule = spec(&format!(r#""targets":{},"name":{{"type":"string"}}"#, target(&filter(count))), "");
        spec(&format!(r#""rules":{{"type":"array","maxItems":4,"items":{rule}}}"#), "")
    };
    check("a kind more", &route(4), &route(5), BreaksReaders, ".spec.rules[*].targets[*].filters[*].kind");
}
