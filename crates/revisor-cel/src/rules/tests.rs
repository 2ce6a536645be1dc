//! Schemas in, what is wrong with their rules out.

use revisor_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath, parse_json};
use revisor_schema::{Additional, JsonType, Structural, ValidationRule};

use super::{KnownExpressions, RuleCheck, RuleEnvironments, check_rule_texts, check_rules};
use crate::Environment;

pub(super) fn schema(text: &str) -> Structural {
    let parsed = parse_json(text.as_bytes()).expect("is JSON").value;
    Structural::read(parsed.as_object().expect("is an object"))
}

fn environments() -> RuleEnvironments {
    let release = |text: &str| Environment::new(text.parse().expect("a release"));
    RuleEnvironments { new: release("1.35"), stored: release("1.36") }
}

fn texts(schema: &Structural, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (name, property) in &schema.properties {
        texts(property, &path.child("properties").key(name), errors);
    }
    errors.extend(check_rule_texts(schema, path));
}

/// What is wrong with the rules of `schema`, without what is the same for all: how to make rules cheaper, and the
/// rules themselves.
fn faults(schema: &Structural) -> Vec<String> {
    let path = FieldPath::root("s");
    let mut errors = FieldErrors::new();
    texts(schema, &path, &mut errors);
    let environments = environments();
    let known = KnownExpressions::default();
    let how = RuleCheck { environments: &environments, known: &known, any_cost: false, schema_errors: &errors };
    let found = check_rules(schema, &path, &how);
    errors.extend(found);
    let short = |error: &FieldError| {
        let text = error.to_string();
        let text = text.split(" (try ").next().unwrap_or_default();
        match (text.find("{\"Rule\""), text.find("}: ")) {
            (Some(start), Some(end)) => format!("{}..{}", &text[..start], &text[end + 1..]),
            _ => text.to_string(),
        }
        .replace("x-kubernetes-validations", "rules")
    };
    errors.iter().map(short).collect()
}

fn with_rules(properties: &str, rules: &str) -> Structural {
    schema(&format!(r#"{{"type":"object","properties":{{{properties}}},"x-kubernetes-validations":[{rules}]}}"#))
}

#[test]
fn rules_are_well_formed() {
    let of = |rule: &str| faults(&with_rules(r#""a":{"type":"string"}"#, rule));
    let breaks = "must not contain line breaks";
    for (rule, want) in [
        (r#"{"rule":"self.a == 'x'","message":"m","reason":"FieldValueInvalid","fieldPath":".a"}"#, vec![]),
        (r#"{"rule":" "}"#, vec!["s.rules[0].rule: Required value: rule is not specified".to_string()]),
        (
            r#"{"rule":"true","message":" "}"#,
            vec![r#"s.rules[0].message: Invalid value: " ": must be non-empty if specified"#.to_string()],
        ),
        (
            r#"{"rule":"true","message":"a\nb"}"#,
            vec![format!(r#"s.rules[0].message: Invalid value: "a\nb": {breaks}"#)],
        ),
        (
            r#"{"rule":"true\n&& true"}"#,
            vec![
                "s.rules[0].message: Required value: message must be specified if rule contains line breaks"
                    .to_string(),
            ],
        ),
        (r#"{"rule":"true\n&& true","message":"m"}"#, vec![]),
        (
            r#"{"rule":"true","messageExpression":" "}"#,
            vec![
                "s.rules[0].messageExpression: Required value: messageExpression must be non-empty if specified"
                    .to_string(),
            ],
        ),
        (
            r#"{"rule":"true","reason":"Other"}"#,
            vec![
                "s.rules[0].reason: Unsupported value: \"Other\": supported values: \"FieldValueDuplicate\", \
                 \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
                    .to_string(),
            ],
        ),
        (
            r#"{"rule":"true","fieldPath":"\n"}"#,
            vec![
                r#"s.rules[0].fieldPath: Invalid value: "\n": must be non-empty if specified"#.to_string(),
                format!(r#"s.rules[0].fieldPath: Invalid value: "\n": {breaks}"#),
                r#"s.rules[0].fieldPath: Invalid value: "\n": must be a valid path"#.to_string(),
            ],
        ),
        (
            r#"{"rule":"true","fieldPath":".b"}"#,
            vec![r#"s.rules[0].fieldPath: Invalid value: ".b": must be a valid path"#.to_string()],
        ),
    ] {
        assert_eq!(of(rule), want, "{rule}");
    }
}

#[test]
fn rules_make_sense() {
    let properties = r#""a":{"type":"string","maxLength":9},"t":{"type":"string","format":"date"},
        "any":{"x-kubernetes-int-or-string":true},"namespace":{"type":"string","maxLength":9},
        "b":{"type":"object","properties":{"c":{"type":"integer"}}}"#;
    for (rule, want) in [
        (r#"{"rule":"self.a == 'x' && self.b.c > 1"}"#, vec![]),
        (r#"{"rule":"self.namespace == 'x' && self.__namespace__ == 'x'"}"#, vec![]),
        (r#"{"rule":"self.any"}"#, vec!["s.rules[0].rule: Invalid value: ..: cel expression must evaluate to a bool"]),
        (
            r#"{"rule":"self.x"}"#,
            vec![
                "s.rules[0].rule: Invalid value: ..: compilation failed: ERROR: <input>:1:5: undefined field 'x'\n | \
                 self.x\n | ....^",
            ],
        ),
        (
            r#"{"rule":"self.b + 1 == 2"}"#,
            vec![
                "s.rules[0].rule: Invalid value: ..: compilation failed: ERROR: <input>:1:8: found no matching overload \
                 for '_+_' applied to '(selfType0.b, int)'\n | self.b + 1 == 2\n | .......^",
            ],
        ),
        (
            r#"{"rule":"type(self.t) == timestamp"}"#,
            vec![
                "s.rules[0].rule: Invalid value: ..: program instantiation failed: reference to undefined type: \
                 timestamp",
            ],
        ),
        (
            r#"{"rule":"true","messageExpression":"1"}"#,
            vec!["s.rules[0].messageExpression: Invalid value: ..: messageExpression must evaluate to a string"],
        ),
        (
            r#"{"rule":"true","messageExpression":"x"}"#,
            vec![
                "s.rules[0].messageExpression: Invalid value: ..: messageExpression compilation failed: ERROR: \
                 <input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^",
            ],
        ),
        (
            r#"{"rule":"true","optionalOldSelf":false}"#,
            vec!["s.rules[0].optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule"],
        ),
        (r#"{"rule":"self.a == oldSelf.a","optionalOldSelf":false}"#, vec![]),
        (r#"{"rule":"!oldSelf.hasValue() || self.a == oldSelf.value().a","optionalOldSelf":true}"#, vec![]),
    ] {
        assert_eq!(faults(&with_rules(properties, rule)), want, "{rule}");
    }
}

#[test]
fn a_rule_is_shown_whole() {
    let schema = with_rules("", r#"{"rule":"'<b>'","message":"m","reason":"FieldValueForbidden"}"#);
    let (environments, known) = (environments(), KnownExpressions::default());
    let how = RuleCheck { environments: &environments, known: &known, any_cost: false, schema_errors: &[] };
    assert_eq!(
        check_rules(&schema, &FieldPath::root("s"), &how)[0].to_string(),
        r#"s.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"'\u003cb\u003e'","Message":"m","MessageExpression":"","Reason":"FieldValueForbidden","FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool"#
    );
}

#[test]
fn rules_may_not_cost_too_much() {
    let all = r#"[{"rule":"self.all(x, self.all(y, x == y))"}]"#;
    let list = |most: u32| {
        format!(
            r#"{{"type":"array","maxItems":{most},"items":{{"type":"string","maxLength":10}},
                "x-kubernetes-validations":{all}}}"#
        )
    };
    let listed: Vec<String> = (0..30).map(|number| format!(r#""f{number:02}":{}"#, list(900 + number))).collect();
    let item = |count: &str, rule: &str| {
        format!(
            r#"{{"type":"array",{count}"items":{{"type":"string","x-kubernetes-validations":[{{"rule":"{rule}"}}]}}}}"#
        )
    };
    let cost = "estimated rule cost exceeds budget by factor of";
    for (text, want) in [
        (list(1200), vec!["s.rules[0].rule: Forbidden: ".to_string() + cost + " 1.296600x"]),
        (list(1400), vec!["s.rules[0].rule: Forbidden: ".to_string() + cost + " 1.8x"]),
        (
            format!(r#"{{"type":"array","items":{{"type":"string"}},"x-kubernetes-validations":{all}}}"#),
            vec![
                "s.rules[0].rule: Forbidden: ".to_string() + cost + " more than 100x",
                "s.rules[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire \
                 OpenAPIv3 schema"
                    .to_string(),
                "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds \
                 budget by factor of more than 100x"
                    .replace("x-kubernetes-validations", "rules"),
            ],
        ),
        (list(1000), vec![]),
        (item("", "self.startsWith('abc')"), vec![]),
        (item("\"maxItems\":10,", "self.contains('abc')"), vec![]),
    ] {
        assert_eq!(faults(&schema(&text)), want, "{text}");
    }
    let many = schema(&format!(r#"{{"type":"object","properties":{{{}}}}}"#, listed.join(",")));
    let found = faults(&many);
    let named: Vec<&str> = found.iter().filter_map(|fault| fault.split("properties[").nth(1)).collect();
    assert_eq!(named.iter().map(|name| &name[..3]).collect::<Vec<_>>(), ["f29", "f28", "f27", "f26"]);
    assert!(found.last().is_some_and(|total| total.ends_with("exceeds budget by factor of 2.3x")), "{found:?}");
}

#[test]
fn rules_compare_only_what_belongs_together() {
    let list = |kind: &str| {
        format!(
            r#"{{"type":"array","maxItems":3,{kind}"items":{{"type":"object","properties":{{"v":{{"type":"integer",
                "x-kubernetes-validations":[{{"rule":"self >= oldSelf"}}]}}}}}}}}"#
        )
    };
    let refused = "s.items.properties[v].rules[0].rule: Invalid value: \"self >= oldSelf\": oldSelf cannot be used on \
                   the uncorrelatable portion of the schema within s";
    let keyed = r#""x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["v"],"#;
    assert_eq!(faults(&schema(&list(""))), [refused]);
    assert_eq!(faults(&schema(&list(r#""x-kubernetes-list-type":"set","#))), [refused]);
    assert_eq!(faults(&schema(&list(keyed))), Vec::<String>::new());
}

#[test]
fn types_are_those_of_the_nearest_schema_that_has_them() {
    for (text, want) in [
        // Of the root, name and type are known though its schema is silent; other metadata is not.
        (
            r#"{"type":"object","x-kubernetes-validations":[
                {"rule":"self.metadata.name == self.kind"},{"rule":"has(self.metadata.labels)"}]}"#,
            vec![
                "s.rules[1].rule: Invalid value: ..: compilation failed: ERROR: <input>:1:4: undefined field 'labels'\n \
                  | has(self.metadata.labels)\n | ...^",
            ],
        ),
        // What has no name in expressions has rules of its own.
        (
            r#"{"type":"object","x-kubernetes-validations":[{"rule":"true"}],"properties":{"a b":{"type":"object",
                "properties":{"x":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}}}}}"#,
            vec![],
        ),
        (
            r#"{"type":"object","properties":{"p":{"x-kubernetes-preserve-unknown-fields":true,
                "x-kubernetes-validations":[{"rule":"true"}]}}}"#,
            vec![
                "s.properties[p].rules: Internal error: internal error: failed to construct type information for rules \
                  rules: unable to convert structural schema to CEL declarations",
            ],
        ),
        // Where something else is wrong, the rules around it are not looked at.
        (
            r#"{"type":"object","x-kubernetes-validations":[{"rule":"x"}],"properties":{
                "a":{"type":"string","x-kubernetes-validations":[{"rule":""}]},
                "b":{"type":"string","x-kubernetes-validations":[{"rule":"self"}]}}}"#,
            vec![
                "s.properties[a].rules[0].rule: Required value: rule is not specified",
                "s.properties[b].rules[0].rule: Invalid value: ..: cel expression must evaluate to a bool",
            ],
        ),
    ] {
        assert_eq!(faults(&schema(text)), want, "{text}");
    }
}

#[test]
fn stored_rules_may_use_all_that_there_is() {
    let release = |text: &str| Environment::new(text.parse().expect("a release"));
    let environments = RuleEnvironments { new: release("1.33"), stored: release("1.36") };
    let schema = with_rules("", r#"{"rule":"[2,1].sort() == [1,2]","messageExpression":"string([1].reverse()[0])"}"#);
    let mut known = KnownExpressions::default();
    for wrong in [1, 0] {
        let how = RuleCheck { environments: &environments, known: &known, any_cost: false, schema_errors: &[] };
        assert_eq!(check_rules(&schema, &FieldPath::root("s"), &how).len(), wrong);
        known.add(&schema);
    }
}

#[test]
fn a_thousand_levels_with_a_rule_each_are_no_danger() {
    let rule = ValidationRule { rule: "has(self.a)".to_string(), ..ValidationRule::default() };
    let mut deep = Structural { kind: Some(JsonType::Object), ..Structural::default() };
    for level in 0..1000 {
        let is_map = level % 2 == 0;
        deep = Structural {
            kind: Some(JsonType::Object),
            validations: if is_map { vec![] } else { vec![rule.clone()] },
            additional: is_map.then(|| Additional::Schema(Box::new(deep.clone()))),
            properties: if is_map { vec![] } else { vec![("a".into(), deep)] },
            ..Structural::default()
        };
    }
    let (environments, mut known) = (environments(), KnownExpressions::default());
    known.add(&deep);
    let how = RuleCheck { environments: &environments, known: &known, any_cost: false, schema_errors: &[] };
    let errors = check_rules(&deep, &FieldPath::root("s"), &how);
    // There may be many of each, so that all of them together cost too much.
    assert_eq!(errors.len(), 5);
    assert!(errors.iter().all(|error| error.kind == FieldErrorKind::Forbidden));
}

#[test]
fn short_rules_that_become_large_are_refused_together() {
    let rule = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(12));
    let rule = ValidationRule { rule, ..ValidationRule::default() };
    let wrong = ValidationRule { rule: rule.rule.clone() + " + 1", ..rule.clone() };
    let validations = (0..400).map(|index| if index % 2 == 0 { rule.clone() } else { wrong.clone() }).collect();
    let found = faults(&Structural { kind: Some(JsonType::Object), validations, ..Structural::default() });
    let last = found.last().expect("is refused");
    assert!(last.ends_with("]: Forbidden: the expressions of this schema are too large together"), "{last}");
    assert!(found.len() < 100, "{}", found.len());
    let rule = ValidationRule { rule: "true".to_string(), ..ValidationRule::default() };
    assert!(
        faults(&Structural { kind: Some(JsonType::Object), validations: vec![rule; 400], ..Structural::default() })
            .is_empty()
    );
}
