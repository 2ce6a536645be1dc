//! Rules that two shapes suggest.

use revisor_convert::{Inference, Law, Sureness, version_order};

use crate::examples::{INTEGER, STRING, definition, environment, spec};

/// What is proposed between `v1` and `v2`.
fn infer(left: &str, right: &str) -> Inference {
    let definition = definition(&[("v1", &spec(left)), ("v2", &spec(right))]);
    Inference::of(&definition, None, &[("v1".to_owned(), "v2".to_owned())], &environment())
}

/// The rules of the only step, each with how sure it is.
fn proposals(inference: &Inference) -> Vec<(String, Sureness)> {
    let [step] = &inference.steps[..] else { panic!("one step: {inference:?}") };
    step.proposals.iter().map(|proposal| (proposal.rule.to_json(), proposal.sureness)).collect()
}

fn object(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

fn list(items: &str) -> String {
    format!(r#"{{"type":"array","items":{items}}}"#)
}

fn choice(values: &[&str]) -> String {
    format!(r#"{{"type":"string","enum":{values:?}}}"#)
}

fn moved(from: &str, to: &str) -> String {
    format!(r#"{{"move":{{"from":"{from}","to":"{to}"}}}}"#)
}

#[test]
fn fields_are_found_again_by_name_and_shape() {
    use Sureness::{Guess, Likely, Sure};
    let tls = object(&format!(r#""mode":{},"ca":{STRING}"#, choice(&["On", "Off"])));
    let refs = list(&object(&format!(r#""name":{STRING},"kind":{STRING}"#)));
    let well_known = choice(&["System"]);
    for (name, left, right, want) in [
        (
            "a tree has another name",
            format!(r#""image":{STRING},"tls":{tls}"#),
            format!(r#""image":{STRING},"validation":{tls}"#),
            vec![(moved(".spec.tls", ".spec.validation"), Sure)],
        ),
        (
            "a tree has another name, and so has what is in it",
            format!(
                r#""tls":{}"#,
                object(&format!(r#""caCertRefs":{refs},"wellKnownCACerts":{well_known},"hostname":{STRING}"#))
            ),
            format!(
                r#""validation":{}"#,
                object(&format!(
                    r#""caCertificateRefs":{refs},"wellKnownCACertificates":{well_known},"hostname":{STRING}"#
                ))
            ),
            vec![
                (moved(".spec.tls", ".spec.validation"), Likely),
                (moved(".spec.tls.caCertRefs", ".spec.validation.caCertificateRefs"), Sure),
                (moved(".spec.tls.wellKnownCACerts", ".spec.validation.wellKnownCACertificates"), Sure),
            ],
        ),
        (
            "a field has another parent",
            format!(r#""host":{STRING},"port":{INTEGER},"note":{STRING}"#),
            format!(r#""note":{STRING},"backend":{}"#, object(&format!(r#""host":{STRING},"port":{INTEGER}"#))),
            vec![(moved(".spec.host", ".spec.backend.host"), Sure), (moved(".spec.port", ".spec.backend.port"), Sure)],
        ),
        (
            "names are similar",
            format!(r#""serviceName":{STRING},"colour":{STRING}"#),
            format!(r#""color":{STRING},"serviceNames":{STRING}"#),
            vec![
                (moved(".spec.serviceName", ".spec.serviceNames"), Sure),
                (moved(".spec.colour", ".spec.color"), Sure),
            ],
        ),
        (
            "nothing else is left",
            format!(r#""size":{INTEGER},"a":{STRING}"#),
            format!(r#""count":{INTEGER},"a":{STRING}"#),
            vec![(moved(".spec.size", ".spec.count"), Guess)],
        ),
        ("two went and one came", format!(r#""one":{STRING},"two":{STRING}"#), format!(r#""three":{STRING}"#), vec![]),
        (
            "other units are another value",
            format!(r#""timeoutSeconds":{INTEGER}"#),
            format!(r#""timeoutMilliseconds":{INTEGER}"#),
            vec![],
        ),
        (
            "one value is a list",
            format!(r#""host":{STRING}"#),
            format!(r#""hosts":{}"#, list(STRING)),
            vec![(r#"{"list":{"from":".spec.host","to":".spec.hosts"}}"#.to_owned(), Sure)],
        ),
        (
            "values are written otherwise",
            format!(r#""level":{}"#, choice(&["low", "very-high"])),
            format!(r#""level":{}"#, choice(&["VeryHigh", "Low"])),
            vec![(r#"{"values":{"map":{"low":"Low","very-high":"VeryHigh"},"path":".spec.level"}}"#.to_owned(), Sure)],
        ),
        (
            "in the items of a list",
            format!(r#""rules":{}"#, list(&object(&format!(r#""portNumber":{INTEGER},"kind":{}"#, choice(&["a"]))))),
            format!(r#""rules":{}"#, list(&object(&format!(r#""port":{INTEGER},"kind":{}"#, choice(&["A"]))))),
            vec![
                (r#"{"values":{"map":{"a":"A"},"path":".spec.rules[*].kind"}}"#.to_owned(), Sure),
                (moved(".spec.rules[*].portNumber", ".spec.rules[*].port"), Likely),
            ],
        ),
        ("nothing has changed", format!(r#""a":{STRING}"#), format!(r#""a":{STRING}"#), vec![]),
    ] {
        let inference = infer(&format!("{{{left}}}"), &format!("{{{right}}}"));
        let sorted = |mut rules: Vec<(String, Sureness)>| {
            rules.sort();
            rules
        };
        assert_eq!(sorted(proposals(&inference)), sorted(want), "{name}");
        assert!(inference.holds(), "{name}: {:?}", inference.checked);
        assert!(inference.left_out.is_empty(), "{name}: {:?}", inference.left_out);
    }
}

#[test]
fn a_list_that_became_one_value_turns_the_step_round() {
    let inference = infer(&format!(r#"{{"hosts":{}}}"#, list(STRING)), &format!(r#"{{"host":{STRING}}}"#));
    assert_eq!((&*inference.steps[0].from, inference.steps[0].to.as_deref()), ("v2", Some("v1")));
    assert_eq!(proposals(&inference)[0].0, r#"{"list":{"from":".spec.host","to":".spec.hosts"}}"#);
    assert!(inference.holds(), "{:?}", inference.checked);
}

#[test]
fn what_is_required_gets_a_value_and_what_does_not_hold_says_why() {
    let required = |properties: &str, names: &str| {
        format!(
            r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{properties},"required":{names}}}}},"required":["spec"]}}"#
        )
    };
    let mode = format!(r#"{{"mode":{},"n":{INTEGER}}}"#, choice(&["Fast", "Safe"]));
    let versions = [("v1", required(&format!(r#"{{"n":{INTEGER}}}"#), "[]")), ("v2", required(&mode, r#"["mode"]"#))];
    let made = definition(&[(versions[0].0, &versions[0].1), (versions[1].0, &versions[1].1)]);
    let pair = [("v1".to_owned(), "v2".to_owned())];
    let inference = Inference::of(&made, None, &pair, &environment());
    assert_eq!(
        proposals(&inference),
        [(r#"{"add":{"path":".spec.mode","value":"Fast"}}"#.to_owned(), Sureness::Guess)]
    );
    assert!(inference.holds(), "{:?}", inference.checked);

    // What may be three things in one version may be two in the other: nobody can say what becomes of the third.
    let inference = infer(
        &format!(r#"{{"level":{}}}"#, choice(&["low", "middle", "high"])),
        &format!(r#"{{"level":{}}}"#, choice(&["Low", "High"])),
    );
    let report = inference.checked.as_ref().expect("can be carried out");
    assert!(report.broken.iter().any(|broken| broken.law == Law::Valid), "{report:?}");
    assert!(inference.steps[0].notes[0].contains("middle"), "{:?}", inference.steps[0].notes);

    // A guess that breaks a law is left out.
    let bounded = |most: u32| format!(r#"{{"type":"integer","minimum":0,"maximum":{most}}}"#);
    let inference = infer(&format!(r#"{{"size":{}}}"#, bounded(100)), &format!(r#"{{"count":{}}}"#, bounded(10)));
    assert_eq!(proposals(&inference), []);
    assert!(inference.holds() && inference.left_out[0].contains("L2"), "{:?}", inference.left_out);
}

#[test]
fn a_version_that_looks_otherwise_gets_a_canonical_form() {
    let tls = object(&format!(r#""ca":{STRING},"depth":{INTEGER}"#));
    let old = definition(&[("v1alpha3", &spec(&format!(r#"{{"tls":{tls}}}"#)))]);
    let new = definition(&[("v1alpha3", &spec(&format!(r#"{{"validation":{tls}}}"#)))]);
    let inference = Inference::of(&new, Some(&old), &[], &environment());
    assert!(inference.holds() && inference.steps.is_empty(), "{:?}", inference.checked);
    let [form] = &inference.canonical[..] else { panic!("one form: {inference:?}") };
    assert_eq!(form.proposals[0].rule.to_json(), moved(".spec.tls", ".spec.validation"));
}

#[test]
fn versions_come_about_in_an_order() {
    let mut names = ["v2", "v1", "v1beta2", "v1beta1", "v2alpha1", "odd", "v1alpha10", "v1alpha2", "v10"];
    names.sort_by_key(|name| version_order(name));
    assert_eq!(names, ["odd", "v1alpha2", "v1alpha10", "v1beta1", "v1beta2", "v1", "v2alpha1", "v2", "v10"]);
}
