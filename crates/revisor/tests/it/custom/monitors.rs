//! Definitions in the manner of operators that embed whole pods: thousands of nodes, made here by a generator.

use serde_json::{Map, Value, json};

use super::{DEFINITIONS, define, definition, objects, version};
use crate::client::MERGE;
use crate::harness::Server;
use crate::kubectl::start;

const GROUP: &str = "watch.example";

/// How deep the parts of a monitor go, and of how many parts each consists.
const LEVELS: usize = 4;
const PARTS: usize = 6;

/// A part of a pod, which consists of smaller parts.
fn part(level: usize) -> Value {
    let mut fields = Map::new();
    for number in 0..PARTS {
        let field = match (level, number) {
            (0, 0) => json!({"type": "string", "description": format!("{:0>200}", "A field of a part.")}),
            (0, 1) => json!({"x-kubernetes-int-or-string": true}),
            (0, 2) => json!({"type": "integer", "format": "int64", "minimum": 0}),
            (0, 3) => json!({"type": "boolean", "default": false}),
            (0, 4) => json!({"type": "object", "additionalProperties": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": true,
                "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            }}),
            (0, _) => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            (_, 0) => json!({"type": "string", "default": "none"}),
            (_, 1) => json!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": named(part(level - 1)),
            }),
            (_, 2) => json!({"type": "object", "additionalProperties": part(level - 1)}),
            (_, _) => part(level - 1),
        };
        fields.insert(format!("part{number}"), field);
    }
    json!({"type": "object", "properties": fields})
}

fn named(mut schema: Value) -> Value {
    schema["required"] = json!(["name"]);
    schema["properties"]["name"] = json!({"type": "string"});
    schema
}

/// How many schemas there are in one.
fn nodes(schema: &Value) -> usize {
    let parts = schema["properties"].as_object().into_iter().flat_map(Map::values);
    1 + parts
        .chain([&schema["items"], &schema["additionalProperties"]])
        .filter(|inner| inner.is_object())
        .map(nodes)
        .sum::<usize>()
}

fn monitors() -> Value {
    let mut spec = part(LEVELS);
    spec["properties"]["replicas"] = json!({"type": "integer", "format": "int32", "default": 1});
    spec["properties"]["port"] = json!({"x-kubernetes-int-or-string": true});
    spec["properties"]["claim"] = json!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    assert!(nodes(&spec) > 3_000, "{} nodes are not many", nodes(&spec));
    let mut version = version("v1", true, spec);
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let mut definition = definition(GROUP, "monitors", json!([version]));
    definition["spec"]["names"]["shortNames"] = json!(["mon"]);
    definition
}

fn monitor(name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Monitor", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn huge_definitions_serve_like_small_ones() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &monitors()).await;
    let path = objects(GROUP, "v1", "monitors");
    let spec = json!({
        "part3": {"part1": [{"name": "a", "part3": {}}, {"name": "b"}], "part2": {"key": {"part4": {}}}},
        "part5": {"part5": {"part5": {"part5": {"part4": {"cpu": "1500m", "memory": 5}, "part5": {"any": [1]}}}}},
        "port": "http",
        "claim": {"apiVersion": "v1", "kind": "Claim", "metadata": {"name": "c", "strange": 1}, "spec": {"any": 1}},
        "unknown": {"deep": true},
    });
    let made = client.post(&format!("{path}?fieldValidation=Warn"), &monitor("m", spec)).await.expect(201);
    assert_eq!(
        made.warnings(),
        [r#"299 - "unknown field \"spec.unknown\"""#, r#"299 - "unknown field \"spec.claim.metadata.strange\"""#]
    );
    let found = client.get(&format!("{path}/m")).await.expect(200).json();
    assert_eq!(
        found["spec"],
        json!({
            "part0": "none",
            "part3": {
                "part0": "none",
                "part1": [
                    {"name": "a", "part0": "none", "part3": {"part0": "none"}},
                    {"name": "b", "part0": "none"},
                ],
                "part2": {"key": {"part0": "none", "part4": {"part0": "none"}}},
            },
            "part5": {"part0": "none", "part5": {"part0": "none", "part5": {"part0": "none", "part5": {
                "part3": false, "part4": {"cpu": "1500m", "memory": 5}, "part5": {"any": [1]},
            }}}},
            "port": "http",
            "replicas": 1,
            "claim": {"apiVersion": "v1", "kind": "Claim", "metadata": {"name": "c"}, "spec": {"any": 1}},
        })
    );
    let scaled = client.patch(&format!("{path}/m/scale"), MERGE, &json!({"spec": {"replicas": 3}})).await.expect(200);
    assert_eq!(scaled.json()["spec"]["replicas"], 3);

    let spec = json!({
        "part5": {"part5": {"part5": {"part5": {"part1": 1.5, "part2": -1, "part4": {"cpu": "much"}}}}},
        "port": true,
        "claim": {"metadata": {"name": "c"}},
    });
    let status = client.post(&path, &monitor("n", spec)).await.fails(422, "Invalid");
    let deep = "spec.part5.part5.part5.part5";
    let mut fields: Vec<&str> = super::causes(&status).into_iter().map(|(field, _)| field).collect();
    fields.sort_unstable();
    fields.dedup();
    assert_eq!(
        fields,
        [
            "spec.claim.apiVersion",
            "spec.claim.kind",
            &format!("{deep}.part1"),
            &format!("{deep}.part2"),
            &format!("{deep}.part4.cpu"),
            "spec.port",
        ],
        "{status}"
    );
}

#[tokio::test]
async fn huge_definitions_are_applied() {
    let (server, kubectl) = start(&[]).await;
    let text = monitors().to_string();
    let applied = "customresourcedefinition.apiextensions.k8s.io/monitors.watch.example serverside-applied\n";
    assert_eq!(kubectl.ok_with("apply --server-side -f -", &text).await, applied);
    assert_eq!(kubectl.ok_with("apply --server-side -f -", &text).await, applied);
    let found = server.client().get(&format!("{DEFINITIONS}/monitors.{GROUP}")).await.expect(200).json();
    assert_eq!(found["metadata"]["generation"], 1, "the second changed nothing");
    // What is too large for the annotation in which a client would keep it.
    let text = kubectl.refused_with("apply -f -", &text).await;
    assert!(text.contains("metadata.annotations: Too long: may not be more than 262144 bytes"), "{text}");
    let object = monitor("m", json!({"part1": [{"name": "a", "part0": "x"}]})).to_string();
    kubectl.ok_with("apply --server-side -f -", &object).await;
    let other = monitor("m", json!({"part1": [{"name": "b", "part0": "y"}]})).to_string();
    kubectl.ok_with("apply --server-side --field-manager=other -f -", &other).await;
    let names = "get mon m -o jsonpath={.spec.part1[*].name}";
    assert_eq!(kubectl.ok(names).await, "a b");
    assert_eq!(kubectl.ok("scale mon m --replicas=2").await, "monitor.watch.example/m scaled\n");
    kubectl.ok("wait mon/m --for=jsonpath={.spec.replicas}=2").await;
    kubectl.ok("delete mon m").await;
    kubectl.ok("delete crd monitors.watch.example").await;
}
