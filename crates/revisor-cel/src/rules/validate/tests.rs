//! Objects in, what rules say of them out. `cases.json` has schemas of one property, what the property was and is, and
//! what is wrong with it, newly (`errors`, sorted) or as before (`warnings`).

use revisor_object::{FieldErrorKind, FieldPath, Object, Value, parse_json};
use revisor_schema::Structural;

use super::super::DefaultRules;
use super::{CompiledRules, OBJECT_BUDGET, Subject, Verdict};
use crate::Environment;

const CASES: &str = include_str!("cases.json");

fn value(text: &str) -> Value {
    parse_json(text.as_bytes()).expect("is JSON").value
}

/// An object whose only member is `p`.
fn object(member: Value) -> Value {
    Object::from_members(vec![("p".into(), member)]).into()
}

fn resource(property: Value) -> Structural {
    let mut schema = Object::new();
    schema.insert("type", "object");
    schema.insert("properties", object(property));
    Structural::read(&schema)
}

fn validate(schema: &Structural, old: Option<Value>, new: Value, budget: i64) -> Verdict {
    let environment = Environment::new("1.36".parse().expect("a release"));
    let rules = CompiledRules::compile(schema, true, &environment).expect("has rules");
    let (old, object) = (old.map(object), object(new));
    let subject = Subject { schema, object: &object, old: old.as_ref(), ratcheting: true };
    rules.validate(&subject, &FieldPath::none(), budget)
}

fn errors(verdict: &Verdict) -> Vec<String> {
    verdict.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_hold_or_do_not() {
    let groups = value(CASES);
    let mut count = 0;
    for group in groups.as_array().expect("is a list").iter().filter_map(Value::as_object) {
        let schema = resource(group.get("schema").expect("has a schema").clone());
        for case in group.array("cases").iter().filter_map(Value::as_object) {
            let texts = |name: &str| -> Vec<&str> { case.array(name).iter().filter_map(Value::as_str).collect() };
            let new = case.get("new").expect("has a value").clone();
            let verdict = validate(&schema, case.get("old").cloned(), new, OBJECT_BUDGET);
            let mut found = errors(&verdict);
            found.sort();
            assert_eq!(found, texts("errors"), "{case:?}");
            assert_eq!(*verdict.warnings, texts("warnings")[..], "{case:?}");
            assert!(verdict.budget.is_some_and(|left| left < OBJECT_BUDGET || found.is_empty()), "{case:?}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

fn numbers(count: i64) -> Value {
    Value::Array((0..count).map(Value::Int).collect())
}

#[test]
fn a_rule_may_cost_so_much() {
    let schema = value(
        r#"{"type":"array","items":{"type":"integer"},"x-kubernetes-validations":[
            {"rule":"self.all(x, self.all(y, self.all(z, x + y + z >= 0)))","message":"m"},{"rule":"false"}]}"#,
    );
    let schema = resource(schema);
    let verdict = validate(&schema, None, numbers(95), OBJECT_BUDGET);
    let stopped = "p: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation \
                   rules will be run due to call cost exceeds limit for rule: m";
    assert_eq!((errors(&verdict), verdict.budget), (vec![stopped.to_string()], None));
    let verdict = validate(&schema, None, numbers(20), OBJECT_BUDGET);
    assert_eq!(errors(&verdict), ["p: Invalid value: failed rule: false"]);
    assert!(verdict.budget.is_some());
}

#[test]
fn a_message_may_cost_so_much() {
    let schema = value(
        r#"{"type":"array","items":{"type":"integer"},"x-kubernetes-validations":[{"rule":"self.size() > 500",
            "messageExpression":"self.all(x, self.all(y, self.all(z, x + y + z >= 0))) ? 'a' : 'b'"}]}"#,
    );
    let schema = resource(schema);
    let verdict = validate(&schema, None, numbers(95), OBJECT_BUDGET);
    let stopped = "p: Invalid value: \"array\": no further validation rules will be run due to call cost exceeds limit \
                   for messageExpression: \"self.all(x, self.all(y, self.all(z, x + y + z >= 0))) ? 'a' : 'b'\"";
    assert_eq!((errors(&verdict), verdict.budget), (vec![stopped.to_string()], None));
    let verdict = validate(&schema, None, numbers(20), 1_000);
    let stopped = "p: Invalid value: \"array\": messageExpression evaluation failed due to running out of cost budget, \
                   no further validation rules will be run";
    assert_eq!((errors(&verdict), verdict.budget), (vec![stopped.to_string()], None));
}

#[test]
fn all_rules_together_may_cost_so_much() {
    let schema = value(
        r#"{"type":"array","items":{"type":"array","items":{"type":"integer"},"x-kubernetes-validations":[
            {"rule":"self.all(x, self.all(y, x != y || y >= 0))"},
            {"rule":"self.all(x, self.all(y, x != y || y >= -1))"}]}}"#,
    );
    let verdict = validate(&resource(schema), None, Value::Array(vec![numbers(255); 20]), OBJECT_BUDGET);
    let stopped = "p[12]: Invalid value: \"array\": validation failed due to running out of cost budget, no further \
                   validation rules will be run";
    assert_eq!((errors(&verdict), verdict.budget), (vec![stopped.to_string()], None));
}

#[test]
fn a_thousand_levels_are_no_danger() {
    let rules = r#"{"type":"object","x-kubernetes-validations":[{"rule":"has(self.q)"}]}"#;
    let mut schema = Structural::read(value(rules).as_object().expect("is an object"));
    let (kind, validations) = (schema.kind, schema.validations.clone());
    let mut new = object(Value::Int(1));
    for _ in 0..1000 {
        let properties = vec![("p".into(), schema)];
        schema = Structural { kind, properties, validations: validations.clone(), ..Structural::default() };
        new = object(new);
    }
    let environment = Environment::new("1.36".parse().expect("a release"));
    let rules = CompiledRules::compile(&schema, true, &environment).expect("has rules");
    let subject = Subject { schema: &schema, object: &new, old: Some(&new), ratcheting: true };
    let verdict = rules.validate(&subject, &FieldPath::none(), OBJECT_BUDGET);
    // The innermost has a member of which the schema says nothing, so nothing around it counts as unchanged.
    let found = verdict.errors.iter().map(|error| match error.kind {
        FieldErrorKind::LeftOut(more) => more,
        _ => 1,
    });
    assert_eq!((found.sum::<usize>(), verdict.warnings.len()), (1001, 0));
}

#[test]
fn a_message_knows_the_old_value_plainly() {
    let schema = resource(value(
        r#"{"type":"string","x-kubernetes-validations":[
            {"rule":"oldSelf.hasValue() && oldSelf.value() == 'z'","optionalOldSelf":true,
             "messageExpression":"oldSelf.value()"},
            {"rule":"oldSelf.orValue('') == 'z'","optionalOldSelf":true,"message":"otherwise",
             "messageExpression":"oldSelf.hasValue() ? 'has' : 'has not'"},
            {"rule":"self == 'y'","messageExpression":"'was ' + oldSelf"}]}"#,
    ));
    let optional = "p: Invalid value: \"x\": failed rule: oldSelf.hasValue() && oldSelf.value() == 'z'";
    for (old, last) in [
        (None, "p: Invalid value: \"x\": failed rule: self == 'y'"),
        (Some(Value::from("a")), "p: Invalid value: \"x\": was a"),
    ] {
        let found = errors(&validate(&schema, old, Value::from("x"), OBJECT_BUDGET));
        assert_eq!(found, [optional, "p: Invalid value: \"x\": otherwise", last]);
    }
}

#[test]
fn rules_of_the_whole_object_know_its_name() {
    let schema = value(
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}},
            "x-kubernetes-validations":[{"rule":"self.metadata.name.startsWith('w')","message":"name it w"},
            {"rule":"self.metadata.name.startsWith('w')","fieldPath":".spec.n"},{"rule":"self.spec.n > 3"},
            {"rule":"self.kind == 'X'","reason":"FieldValueForbidden"}]}"#,
    );
    let schema = Structural::read(schema.as_object().expect("is an object"));
    let rules = CompiledRules::compile(&schema, true, &Environment::new("1.36".parse().expect("a release")));
    let object = value(r#"{"kind":"K","metadata":{"name":"x"},"spec":{"n":1}}"#);
    let subject = Subject { schema: &schema, object: &object, old: None, ratcheting: true };
    let verdict = rules.expect("has rules").validate(&subject, &FieldPath::none(), OBJECT_BUDGET);
    let want = [
        "<nil>: Invalid value: name it w",
        "spec.n: Invalid value: failed rule: self.metadata.name.startsWith('w')",
        "<nil>: Invalid value: failed rule: self.spec.n > 3",
        "<nil>: Forbidden: failed rule: self.kind == 'X'",
    ];
    assert_eq!(errors(&verdict), want);
}

#[test]
fn defaults_obey_the_rules() {
    let environment = Environment::new("1.36".parse().expect("a release"));
    for (schema, want) in [
        (r#"{"type":"integer","default":5,"x-kubernetes-validations":[{"rule":"self > 3"}]}"#, vec![]),
        (
            r#"{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 3"}]}"#,
            vec!["s.default: Invalid value: 1: failed rule: self > 3"],
        ),
        // Right when it was there before, wrong when it comes.
        (
            r#"{"type":"integer","default":1,"x-kubernetes-validations":[
                {"rule":"oldSelf.hasValue()","optionalOldSelf":true}]}"#,
            vec!["s.default: Invalid value: 1: failed rule: oldSelf.hasValue()"],
        ),
        (
            r#"{"type":"object","default":{"l":[{"x":1}],"m":{"k":1}},"properties":{
                "l":{"type":"array","items":{"type":"object","properties":{
                    "x":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 3"}]},
                    "y":{"type":"integer","x-kubernetes-validations":[{"rule":"false"}]}}}},
                "m":{"type":"object","additionalProperties":{
                    "type":"integer","x-kubernetes-validations":[{"rule":"self > 4"}]}},
                "n":{"type":"integer","x-kubernetes-validations":[{"rule":"false"}]}}}"#,
            vec![
                "s.default.l[0].x: Invalid value: 1: failed rule: self > 3",
                "s.default.m[k]: Invalid value: 1: failed rule: self > 4",
            ],
        ),
        (r#"{"type":"integer","x-kubernetes-validations":[{"rule":"false"}]}"#, vec![]),
    ] {
        let read = Structural::read(value(schema).as_object().expect("is an object"));
        let path = FieldPath::root("s");
        let found = DefaultRules::new(&environment).check(&read, false, &path.child("default"));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), want, "{schema}");
    }
}

#[test]
fn rules_can_be_shared_among_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<CompiledRules>();
}
