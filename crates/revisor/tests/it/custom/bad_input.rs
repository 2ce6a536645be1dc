//! Definitions and custom objects that are made to hurt: each is answered with what is wrong, soon, and nobody else
//! has to wait.

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, anything, causes, define, definition, objects, text, version};
use crate::client::{Client, MERGE};
use crate::harness::Server;
use crate::objects::CONFIG_MAPS;

const GROUP: &str = "bad.example";
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const YAML: &[(&str, &str)] = &[("content-type", "application/yaml")];

fn bad(spec: Value) -> Value {
    definition(GROUP, "things", json!([version("v1", true, spec)]))
}

/// Sends something, and reads something else at the same time.
async fn beside(client: &Client, method: Method, path: &str, body: String) -> crate::client::Reply {
    let other = client.apart();
    let (reply, _) = tokio::join!(client.send(method, path, JSON, body), async {
        other.get(CONFIG_MAPS).await.expect(200);
    });
    reply
}

/// A text with an opening, something inside and a closing, many times around each other.
fn nested(times: usize, open: &str, inside: &str, close: &str) -> String {
    [&open.repeat(times), inside, &close.repeat(times)].concat()
}

#[tokio::test]
async fn definitions_that_are_made_to_hurt_are_refused() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let rule = |rule: &str| json!([{"rule": rule}]);
    let lists = |rules: Value| json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "x-kubernetes-validations": rules});
    let spec = "spec.validation.openAPIV3Schema.properties[spec]";
    let endless = "self.all(a, self.all(b, a.all(c, b.all(d, c == d))))";
    let parentheses = nested(2_000, "(", "true", ")");
    for (name, schema, field, told) in [
        ("a reference to itself", json!({"$ref": "#/spec"}), "$ref", "Forbidden: $ref is not supported"),
        (
            "an open parenthesis",
            json!({"type": "string", "pattern": "(a"}),
            "pattern",
            "must be a valid regular expression",
        ),
        (
            "a look back",
            json!({"type": "string", "pattern": r"(a)\1"}),
            "pattern",
            "must be a valid regular expression",
        ),
        (
            "a pattern that is larger than it looks",
            json!({"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}"}),
            "pattern",
            "must be a valid regular expression",
        ),
        (
            "a rule without end",
            lists(rule(endless)),
            "x-kubernetes-validations[0].rule",
            "estimated rule cost exceeds budget",
        ),
        ("a deep rule", lists(rule(&parentheses)), "x-kubernetes-validations[0].rule", ""),
        ("no rule at all", lists(rule("self.all(")), "x-kubernetes-validations[0].rule", "compilation failed"),
    ] {
        let reply = beside(&client, Method::POST, DEFINITIONS, bad(schema).to_string()).await;
        let status = reply.fails(422, "Invalid");
        let found = causes(&status);
        let want = format!("{spec}.{field}");
        assert!(found.iter().any(|(at, message)| *at == want && message.contains(told)), "{name}: {found:?}");
    }
    // What is only long costs no more than its length.
    let long = vec!["self.size() > 1"; 3_000].join(" && ");
    beside(&client, Method::POST, &format!("{DEFINITIONS}?dryRun=All"), bad(lists(rule(&long))).to_string())
        .await
        .expect(201);
    let whole = bad(json!("HERE")).to_string();
    let levels = |schema: &str| whole.replacen("\"HERE\"", schema, 1);
    for schema in [
        nested(1_000, r#"{"type":"object","properties":{"a":"#, r#"{"type":"string"}"#, "}}"),
        nested(1_000, r#"{"type":"array","items":"#, r#"{"type":"string"}"#, "}"),
        nested(100_000, r#"{"not":"#, "{}", "}"),
    ] {
        beside(&client, Method::POST, DEFINITIONS, levels(&schema)).await.fails(400, "BadRequest");
    }
    let mut bomb = format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: things.{GROUP}}}, a: &a [x,x,x,x,x,x,x,x,x]"
    );
    for (name, before) in ('b'..='i').zip('a'..) {
        bomb.push_str(&format!(", {name}: &{name} [{}]", vec![format!("*{before}"); 9].join(",")));
    }
    bomb.push('}');
    client.send(Method::POST, DEFINITIONS, YAML, bomb).await.fails(400, "BadRequest");
    assert_eq!(client.get(DEFINITIONS).await.expect(200).names(), Vec::<String>::new());
    server.assert_well().await;
}

#[tokio::test]
async fn objects_that_are_made_to_hurt_are_refused() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let keyed = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}});
    let spec = json!({"type": "object", "properties": {
        "text": {"type": "string", "pattern": "^(a+)+$"},
        "matched": {"type": "string", "maxLength": 100_000, "x-kubernetes-validations": [{"rule": "self.matches('^(a+)+$')"}]},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": keyed},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "any": anything(),
    }});
    define(&client, &bad(spec)).await;
    let path = objects(GROUP, "v1", "things");
    let thing = |spec: Value| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
            .to_string()
    };
    for field in ["text", "matched"] {
        let reply = beside(&client, Method::POST, &path, thing(json!({field: "a".repeat(50_000) + "b"}))).await;
        assert_eq!(causes(&reply.fails(422, "Invalid"))[0].0, format!("spec.{field}"));
    }
    let large = thing(json!({"any": {"x": "x".repeat(3 << 20)}}));
    beside(&client, Method::POST, &path, large).await.fails(413, "RequestEntityTooLarge");
    let whole = thing(json!({"any": {"x": "HERE"}}));
    for deep in [nested(1_000, "[", "1", "]"), nested(1_000, r#"{"a":"#, "1", "}"), nested(200_000, "[", "", "]")] {
        let reply = beside(&client, Method::POST, &path, whole.replacen("\"HERE\"", &deep, 1)).await;
        reply.fails(400, "BadRequest");
    }

    const MANY: usize = 10_000;
    const TOLD: usize = 1_000;
    let twice = |at: usize| format!("k{}", at % (MANY / 2));
    let map: Vec<Value> = (0..MANY).map(|at| json!({"k": twice(at)})).collect();
    let set: Vec<String> = (0..MANY).map(twice).collect();
    let reply = beside(&client, Method::POST, &path, thing(json!({"map": map, "set": set}))).await;
    let status = reply.fails(422, "Invalid");
    let found = causes(&status);
    assert_eq!(found.len(), TOLD + 1, "so many are told, and how many more there are");
    assert_eq!(found.last(), Some(&("", "and 9000 more errors")), "each that is there twice counts once");
    assert!(found.contains(&("spec.map[5000]", "Duplicate value: {\"k\":\"k0\"}")), "{}", text(&status["message"]));
    let wrong: Vec<Value> = (0..MANY).map(|at| json!({"k": at})).collect();
    let status = beside(&client, Method::POST, &path, thing(json!({"map": wrong}))).await.fails(422, "Invalid");
    let found = causes(&status);
    assert_eq!((found.len(), found.last()), (TOLD + 1, Some(&("", "and 9001 more errors"))), "rules were not checked");

    let map: Vec<Value> = (0..MANY).map(|at| json!({"k": format!("k{at}")})).collect();
    beside(&client, Method::POST, &path, thing(json!({"map": map}))).await.expect(201);
    let apply = thing(json!({"map": map}));
    let applied = client
        .send(
            Method::PATCH,
            &format!("{path}/t?fieldManager=m"),
            &[("content-type", "application/apply-patch+yaml")],
            apply,
        )
        .await;
    applied.expect(200);
    server.assert_well().await;
}

#[tokio::test]
async fn a_definition_of_a_version_that_is_gone_is_told_so() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut old = bad(anything());
    old["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
    assert_eq!(
        text(&client.post(DEFINITIONS, &old).await.fails(400, "BadRequest")["message"]),
        "the API version in the data (apiextensions.k8s.io/v1beta1) does not match the expected API version \
         (apiextensions.k8s.io/v1)"
    );
}

#[tokio::test]
async fn who_is_refused_is_told_too_what_was_wrong_before() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &bad(json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}})))
        .await;
    let things = objects(GROUP, "v1", "things");
    let thing =
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "metadata": {"name": "a"}, "spec": {"n": 9}});
    client.post(&things, &thing).await.expect(201);
    let under = json!([{"rule": "self < 3", "message": "under three"}]);
    let short = json!([{"rule": "self.size() < 3", "message": "too long"}]);
    let rules = json!({"spec": {"versions": [version("v1", true, json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": under},
        "s": {"type": "string", "x-kubernetes-validations": short}}}))]}});
    client.patch(&format!("{DEFINITIONS}/things.{GROUP}"), MERGE, &rules).await.expect(200);
    let told = ["299 - \"spec.n: Invalid value: 9: under three\""];
    let path = format!("{things}/a");
    let refused = client.patch(&path, MERGE, &json!({"spec": {"s": "long"}})).await;
    assert_eq!(refused.warnings(), told);
    refused.fails(422, "Invalid");
    assert_eq!(client.patch(&path, MERGE, &json!({"spec": {"s": "ok"}})).await.expect(200).warnings(), told);
}
