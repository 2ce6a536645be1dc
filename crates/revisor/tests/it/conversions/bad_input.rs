//! Rules that make no sense: always a `Status`, soon, and nothing is stored.

use serde_json::json;

use super::*;
use crate::harness::Server;

fn rules(rules: Value) -> Value {
    json!({"steps": [step("v1", "v2", rules)]})
}

fn moved(from: &str, to: &str) -> Value {
    json!({"move": {"from": from, "to": to}})
}

#[tokio::test]
async fn rules_that_make_no_sense_are_refused_at_their_place() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let properties = json!({
        "a": {"type": "string"},
        "n": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "string"}},
        "tree": {"type": "object", "properties": {"b": {"type": "string"}}},
    });
    let other = json!({
        "x": {"type": "string"},
        "t": {"type": "string"},
        "tree": {"type": "object", "properties": {"c": {"type": "string"}}},
    });
    define(&client, &boats(&[("v1", properties), ("v2", other)])).await;
    let compute = |forward: &str| {
        json!({"compute": {
            "from": {"l": ".spec.l"}, "to": {"t": ".spec.t"}, "forward": {"t": forward}, "backward": {"l": "[t]"},
        }})
    };
    let costly = "l.all(a, l.all(b, l.all(c, l.all(d, a + b != c + d)))) ? 'y' : 'n'";
    let long = format!(".spec{}", ".a".repeat(5000));
    for (name, spec, field) in [
        (
            "two rules write one place",
            rules(json!([moved(".spec.a", ".spec.x"), moved(".spec.n", ".spec.x")])),
            "spec.steps[0].rules[1]",
        ),
        (
            "two rules read one place",
            rules(json!([moved(".spec.a", ".spec.x"), moved(".spec.a", ".spec.t")])),
            "spec.steps[0].rules[1]",
        ),
        (
            "one place is in another",
            rules(json!([moved(".spec.tree", ".spec.x"), moved(".spec.tree.b", ".spec.t")])),
            "spec.steps[0].rules",
        ),
        ("outside the schema", rules(json!([moved(".spec.nowhere", ".spec.x")])), "spec.steps[0].rules[0]"),
        ("into its own member", rules(json!([moved(".spec.tree", ".spec.tree.c")])), "spec.steps[0].rules[0]"),
        ("odd keys", rules(json!([moved(r#".spec["a\u0000"]"#, ".spec.x")])), "spec.steps[0].rules[0]"),
        ("an open bracket", rules(json!([moved(r#".spec["a"#, ".spec.x")])), "spec.steps[0].rules[0].move.from"),
        ("a path without an end", rules(json!([moved(&long, ".spec.x")])), "spec.steps[0].rules[0]"),
        ("an expression that costs too much", rules(json!([compute(costly)])), "spec.steps[0].rules[0]"),
        ("an expression that is none", rules(json!([compute("l.")])), "spec.steps[0].rules[0]"),
        ("no rule", rules(json!([{}])), "spec.steps[0].rules[0]"),
        ("a step to itself", json!({"steps": [step("v1", "v1", json!([]))]}), "spec.steps[0].to"),
        (
            "one step twice",
            json!({"steps": [step("v1", "v2", json!([])), step("v2", "v1", json!([]))]}),
            "spec.steps[1]",
        ),
        ("too many rules", rules(json!(vec![moved(".spec.a", ".spec.x"); 1000])), "spec.steps[0].rules"),
        (
            "too many steps",
            json!({"steps": (0..100).map(|at| step("v1", &format!("w{at}"), json!([]))).collect::<Vec<_>>()}),
            "spec.steps",
        ),
        (
            "canonical by turns",
            json!({"canonicalize": [{"version": "v1", "rules": [moved(".spec.a", ".spec.tree.b"), moved(".spec.tree.b", ".spec.a")]}]}),
            "spec.canonicalize[0].rules",
        ),
        (
            "each in each in each",
            rules((0..12).fold(
                json!([moved(".a", ".b")]),
                |inner, _| json!([{"each": {"path": ".spec.l[*]", "rules": inner}}]),
            )),
            "spec.steps[0].rules[0].each",
        ),
    ] {
        let reply = propose(&client, &spec).await;
        let told = causes(&reply);
        assert_eq!(reply.code, 422, "{name}: {}", reply.json());
        assert!(told.iter().any(|(at, _)| at.starts_with(field)), "{name}: {told:?}");
    }
    let wrong = json!({"steps": [{"from": "v1", "to": "v2", "rules": "none"}]});
    let reply = propose(&client, &wrong).await.expect(400).json();
    assert_eq!(reply["kind"], "Status");
    client.get(&at()).await.expect(404);
}

#[tokio::test]
async fn ten_versions_in_a_ring_are_checked_in_bounded_work() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let names: Vec<String> = (1..=10).map(|at| format!("v{at}")).collect();
    let field = |at: usize| format!("f{at}");
    let versions: Vec<(&str, Value)> = (names.iter().enumerate())
        .map(|(at, name)| {
            (name.as_str(), json!({field(at): {"type": "string", "maxLength": 20}, "n": {"type": "integer"}}))
        })
        .collect();
    define(&client, &boats(&versions)).await;
    let ring = |last: &str| {
        let steps = (0..10).map(|at| {
            let next = (at + 1) % 10;
            let to = if next == 0 { last.to_owned() } else { format!(".spec.{}", field(next)) };
            let rules = json!([{"move": {"from": format!(".spec.{}", field(at)), "to": to}}]);
            step(&names[at], &names[next], rules)
        });
        json!({"steps": steps.collect::<Vec<_>>()})
    };
    let made = propose(&client, &ring(".spec.f0")).await.expect(201).json();
    assert_eq!(made["status"]["steps"].as_array().map(Vec::len), Some(10));
    let mut body = made;
    body["spec"] = ring(".spec.n");
    let told = causes(&client.put(&at(), &body).await.expect(422));
    assert!(told.iter().any(|(at, message)| at.starts_with("spec.steps[9]") && message.contains("L2")), "{told:?}");
}
