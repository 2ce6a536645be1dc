//! Decisions about a config map, by the specification of the policy.

use super::*;
use crate::fixture::{Write, environment, object};

fn policy(spec: &str) -> ValidatingPolicy {
    ValidatingPolicy::compile(&environment(), "p", &object(&format!(r#"{{"spec":{spec}}}"#)))
}

/// The messages with which a write is denied.
fn denials(spec: &str, write: &Write) -> Vec<String> {
    let verdict = write.look(|inputs| policy(spec).validate(inputs));
    let denied = verdict.decisions.into_iter().filter(|decision| decision.action == Action::Deny);
    denied.chain(verdict.failed_annotations).map(|decision| decision.message).collect()
}

fn config_map() -> Write {
    Write::creating(r#"{"metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"}}"#)
}

#[test]
fn expressions_see_the_write() {
    let updated = Write { old: config_map().object, ..config_map() };
    let deleted = Write { object: None, old: config_map().object, ..Write::default() };
    let with_params = Write { params: Some(object(r#"{"data":{"least":"3"}}"#)), ..config_map() };
    for (write, expression) in [
        (&config_map(), "object.apiVersion == 'v1' && object.kind == 'ConfigMap' && object.data.k == 'v'"),
        (&config_map(), "has(object.kind) && !has(object.status) && 'kind' in object"),
        (&config_map(), "oldObject == null && params == null"),
        (&config_map(), "request.operation == 'CREATE' && request.name == 'a' && request.namespace == 'n'"),
        (&config_map(), "!has(request.subResource) && !request.dryRun && request.userInfo.groups == ['readers']"),
        (&config_map(), "request.kind.kind == 'ConfigMap' && request.requestResource.resource == 'configmaps'"),
        (&config_map(), "namespaceObject.metadata.labels.team == 'red'"),
        (&config_map(), "authorizer.group('').resource('secrets').check('get').allowed()"),
        (&config_map(), "!authorizer.group('').resource('secrets').check('list').allowed()"),
        (&config_map(), "authorizer.requestResource.check('delete').allowed()"),
        (&config_map(), "object == object && object != {'kind': 'ConfigMap'}"),
        (&config_map(), "object.map(k, k).exists(k, k == 'apiVersion') && size(object) == 4"),
        (&updated, "oldObject == object && oldObject.kind == 'ConfigMap'"),
        (&deleted, "object == null && oldObject.data.k == 'v'"),
        (&with_params, "params.kind == 'ConfigMap' && int(params.data.least) == 3"),
        (&config_map(), "variables.twice == 'vv' && variables.again"),
        (&config_map(), "has(variables.twice)"),
    ] {
        let spec = format!(
            r#"{{"paramKind":{{"apiVersion":"v1","kind":"ConfigMap"}},"variables":[
                {{"name":"odd","expression":"object.missing"}},
                {{"name":"twice","expression":"[object, oldObject].filter(o, o != null)[0].data.k + 'v'"}},
                {{"name":"again","expression":"variables.twice.size() == 2"}}],
                "validations":[{{"expression":"{expression}"}}]}}"#
        );
        assert_eq!(denials(&spec, write), Vec::<String>::new(), "{expression}");
    }
}

#[test]
fn a_denial_says_why() {
    for (validation, want) in [
        (r#"{"expression":" false "}"#, "failed expression: false"),
        (r#"{"expression":"false","message":" no "}"#, "no"),
        (r#"{"expression":"false","message":"no","messageExpression":"' not ' + object.metadata.name"}"#, "not a"),
        (r#"{"expression":"false","message":"no","messageExpression":"string(object.data.gone)"}"#, "no"),
        (r#"{"expression":"false","message":"no","messageExpression":"'a\\nb'"}"#, "no"),
        (r#"{"expression":"false","messageExpression":"'  '"}"#, "failed expression: false"),
        (
            r#"{"expression":"object.data.gone == 'x'","message":"no"}"#,
            "expression 'object.data.gone == 'x'' resulted in error: no such key: gone",
        ),
        (
            r#"{"expression":"variables.bad"}"#,
            "expression 'variables.bad' resulted in error: composited variable \"bad\" fails to evaluate: no such key: gone",
        ),
        (
            r#"{"expression":"nobody.knows"}"#,
            "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'nobody' \
             (in container '')\n | nobody.knows\n | ^",
        ),
        (r#"{"expression":"1"}"#, "compilation error: must evaluate to bool but got int"),
    ] {
        let spec = format!(
            r#"{{"variables":[{{"name":"bad","expression":"object.data.gone == 1"}}],"validations":[{validation}]}}"#
        );
        assert_eq!(denials(&spec, &config_map()), [want], "{validation}");
    }
}

#[test]
fn what_has_no_answer_obeys_the_failure_policy() {
    let failing = r#""validations":[{"expression":"object.gone"},{"expression":"1"},{"expression":"false"}]"#;
    assert_eq!(denials(&format!(r#"{{"failurePolicy":"Fail",{failing}}}"#), &config_map()).len(), 3);
    assert_eq!(denials(&format!(r#"{{"failurePolicy":"Ignore",{failing}}}"#), &config_map()).len(), 1);
    let reason = config_map().look(|inputs| {
        policy(r#"{"validations":[{"expression":"false","reason":"Forbidden"},{"expression":"object.gone"}]}"#)
            .validate(inputs)
            .decisions
            .iter()
            .map(|decision| (decision.reason.clone(), decision.error))
            .collect::<Vec<_>>()
    });
    assert_eq!(reason, [("Forbidden".to_owned(), ErrorType::InvalidError), (String::new(), ErrorType::CompileError)]);
}

#[test]
fn match_conditions_narrow_a_policy_down() {
    for (conditions, failure_policy, want) in [
        (&["true", "true"][..], "Fail", &["failed expression: false"][..]),
        (&["true", "false"], "Fail", &[]),
        (&["object.gone == 1", "false"], "Fail", &[]),
        (
            &["object.gone == 1", "true"],
            "Fail",
            &["expression 'object.gone == 1' resulted in error: no such key: gone"],
        ),
        (&["object.gone == 1", "true"], "Ignore", &[]),
        // They are asked before the namespace is known.
        (&["namespaceObject == null"], "Fail", &["failed expression: false"]),
        (&["variables.yes"], "Fail", &["failed expression: false"]),
    ] {
        let conditions: Vec<String> = conditions
            .iter()
            .enumerate()
            .map(|(at, expression)| format!(r#"{{"name":"c{at}","expression":"{expression}"}}"#))
            .collect();
        let spec = format!(
            r#"{{"failurePolicy":"{failure_policy}","variables":[{{"name":"yes","expression":"true"}}],
                "matchConditions":[{}],"validations":[{{"expression":"false"}}]}}"#,
            conditions.join(",")
        );
        assert_eq!(denials(&spec, &config_map()), want, "{spec}");
    }
}

#[test]
fn annotations_are_texts_or_nothing() {
    for (expression, failure_policy, want, denied) in [
        ("' a ' + object.data.k", "Fail", &["a v"][..], 0),
        ("null", "Fail", &[], 0),
        ("' '", "Fail", &[], 0),
        ("object.data.gone + 'x'", "Fail", &[], 1),
        ("object.data.gone + 'x'", "Ignore", &[], 0),
        ("1", "Fail", &[], 1),
    ] {
        let spec = format!(
            r#"{{"failurePolicy":"{failure_policy}","auditAnnotations":[{{"key":"k","valueExpression":"{expression}"}}]}}"#
        );
        let verdict = config_map().look(|inputs| policy(&spec).validate(inputs));
        let values: Vec<&str> = verdict.annotations.iter().map(|annotation| annotation.value.as_str()).collect();
        assert_eq!((values.as_slice(), verdict.failed_annotations.len()), (want, denied), "{expression}");
    }
}

#[test]
fn a_policy_ends_when_its_budget_does() {
    let items: Vec<String> = (0..700).map(|at| at.to_string()).collect();
    let write = Write::creating(&format!(r#"{{"data":[{}]}}"#, items.join(",")));
    let one = "object.data.all(x, object.data.all(y, x + y >= 0))";
    assert_eq!(
        denials(&format!(r#"{{"validations":[{{"expression":"{one}"}}]}}"#), &write),
        [format!("expression '{one}' resulted in error: operation cancelled: actual cost limit exceeded")]
    );
    let many = vec![format!(r#"{{"expression":"{one}"}}"#); 12].join(",");
    let spent = "validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(denials(&format!(r#"{{"validations":[{many}]}}"#), &write), [spent]);
    // What a variable costs is paid by the expressions that ask for it.
    let variables: Vec<String> =
        (0..12).map(|at| format!(r#"{{"name":"v{at}","expression":"{one} || {at} < 0"}}"#)).collect();
    let asked: Vec<String> = (0..12).map(|at| format!("variables.v{at}")).collect();
    let spec = format!(
        r#"{{"variables":[{}],"validations":[{{"expression":"{}"}}]}}"#,
        variables.join(","),
        asked.join(" || ")
    );
    assert_eq!(denials(&spec, &write), [spent]);
}
