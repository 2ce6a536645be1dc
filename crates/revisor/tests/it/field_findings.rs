//! What suites and clients of the field found, each by comparison with the original.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Server, eventually};
use crate::objects::CONFIG_MAPS;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NODES: &str = "/api/v1/nodes";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

fn definition(scope: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"scale": scale}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.field.example")},
        "spec": {
            "group": "field.example",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    })
}

#[tokio::test]
async fn what_has_no_namespace_loses_the_one_that_it_is_sent_with() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(DEFINITIONS, &definition("Cluster", "Tool")).await.expect(201);
    let tools = "/apis/field.example/v1/tools";
    for (path, kind, api_version) in [(NODES, "Node", "v1"), (tools, "Tool", "field.example/v1")] {
        let object = |name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}});
        let one = format!("{path}/a");
        let mut answers = vec![client.post(path, &object("a")).await.expect(201)];
        let mut changed = object("a");
        changed["metadata"]["resourceVersion"] = answers[0].json()["metadata"]["resourceVersion"].clone();
        answers.push(client.put(&one, &changed).await.expect(200));
        let patch = json!({"metadata": {"namespace": "default", "labels": {"x": "y"}}});
        answers.push(client.patch(&one, MERGE, &patch).await.expect(200));
        let apply = "application/apply-patch+yaml";
        let (manager, created) = ("fieldManager=me", format!("{path}/b"));
        answers.push(client.patch(&format!("{created}?{manager}"), apply, &object("b")).await.expect(201));
        answers.push(client.patch(&format!("{created}?{manager}"), apply, &object("b")).await.expect(200));
        for answer in answers {
            assert_eq!(answer.json()["metadata"].get("namespace"), None, "{kind}: {}", answer.text());
        }
    }
    // What has one must be in the right one.
    let elsewhere = json!({"metadata": {"name": "a", "namespace": "kube-system"}});
    let refused = client.post(CONFIG_MAPS, &elsewhere).await.fails(400, "BadRequest");
    let want = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(refused["message"], want);
}

#[tokio::test]
async fn a_version_on_a_new_object_matters_only_to_the_store() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let object = |version: &str| json!({"metadata": {"name": "a", "resourceVersion": version}});
    let tried = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &object("5")).await.expect(201).json();
    assert_eq!(tried["metadata"]["resourceVersion"], "5");
    let refused = client.post(CONFIG_MAPS, &object("5")).await.fails(400, "BadRequest");
    assert_eq!(refused["message"], "resourceVersion should not be set on objects to be created");
    let invalid = json!({"metadata": {"name": "A B", "resourceVersion": "5"}});
    client.post(CONFIG_MAPS, &invalid).await.fails(422, "Invalid");
    let made = client.post(CONFIG_MAPS, &object("abc")).await.expect(201).json();
    assert!(made["metadata"]["resourceVersion"].as_str().is_some_and(|version| version.parse::<u64>().is_ok()));
}

#[tokio::test]
async fn wrong_types_are_told_with_all_fields_on_the_way() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let pods = "/api/v1/namespaces/default/pods";
    for (pod, want) in [
        (json!({"spec": {"containers": [{"image": 5}]}}), "Container.spec.containers.image of type string"),
        (json!({"metadata": {"name": 5}}), "ObjectMeta.metadata.name of type string"),
        (
            json!({"spec": {"volumes": [{"hostPath": 5}]}}),
            "Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource",
        ),
        (
            json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": {}}}}]}}),
            "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
    ] {
        let refused = client.post(pods, &pod).await.fails(400, "BadRequest");
        let message = refused["message"].as_str().expect("a message");
        assert!(message.ends_with(&format!("into Go struct field {want}")), "{message}");
    }
}

#[tokio::test]
async fn part_of_a_collection_is_deleted_and_the_answer_tells_how_to_go_on() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, &json!({"metadata": {"name": name}})).await.expect(201);
    }
    let listed = client.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200).json();
    let deleted = client.delete(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(deleted.names(), ["a", "b"]);
    let metadata = &deleted.json()["metadata"];
    assert_eq!(metadata["resourceVersion"], listed["metadata"]["resourceVersion"], "that of the list");
    assert!(metadata["continue"].as_str().is_some_and(|token| !token.is_empty()), "{metadata}");
    assert_eq!(client.get(CONFIG_MAPS).await.expect(200).names(), ["c"]);
}

#[tokio::test]
async fn a_scale_without_replicas_is_none() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(DEFINITIONS, &definition("Namespaced", "Widget")).await.expect(201);
    let widgets = "/apis/field.example/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "field.example/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}});
    client.post(widgets, &widget).await.expect(201);
    let scale = format!("{widgets}/a/scale");
    let missing = client.get(&scale).await.fails(500, "InternalError");
    let want = "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
    assert_eq!(missing["message"], want);
    let unsaid = client.patch(&scale, MERGE, &json!({"metadata": {"labels": {"x": "y"}}})).await;
    let want = "the spec replicas field \".spec.replicas\" cannot be empty";
    assert_eq!(unsaid.fails(400, "BadRequest")["message"], want);
    client.patch(&scale, MERGE, &json!({"spec": {"replicas": 2}})).await.expect(200);
    assert_eq!(client.get(&scale).await.expect(200).json()["spec"]["replicas"], 2);
}

#[tokio::test]
async fn reviews_have_no_rows() {
    let server = Server::start(&[]).await;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let send = |accept: String| {
        let (client, body) = (server.client(), review.to_string());
        let headers = move || [("content-type", "application/json".to_owned()), ("accept", accept)];
        async move {
            let headers = headers();
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            client.send(http::Method::POST, path, &headers, body).await
        }
    };
    send(table.to_owned()).await.fails(406, "NotAcceptable");
    send(format!("{table},application/json")).await.expect(201);
}

#[tokio::test]
async fn the_server_says_what_it_wrote_of_a_definition() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(&format!("{DEFINITIONS}?fieldManager=me"), &definition("Cluster", "Tool")).await.expect(201);
    let made = client.get(&format!("{DEFINITIONS}/tools.field.example")).await.expect(200).json();
    let managers = made["metadata"]["managedFields"].as_array().expect("a list");
    let own = managers.iter().find(|entry| entry["manager"] == "kube-apiserver").expect("the server is among them");
    assert_eq!((&own["operation"], &own["subresource"]), (&json!("Update"), &json!("status")));
    let status = &own["fieldsV1"]["f:status"];
    assert!(status.get("f:acceptedNames").is_some() && status.get("f:conditions").is_some(), "{own}");
}

#[tokio::test]
async fn others_learn_whom_the_server_trusts_and_since_when_it_takes_note_of_tokens() {
    let server = Server::start(&["--endpoint-reconciler-type=none"]).await;
    let client = server.client();
    let path = |name: &str| format!("/api/v1/namespaces/kube-system/configmaps/{name}");
    let trust = path("extension-apiserver-authentication");
    let tracking = path("kube-apiserver-legacy-service-account-token-tracking");
    let made = client.get(&trust).await.expect(200).json();
    let bundle = made["data"]["client-ca-file"].as_str().expect("the authorities").to_owned();
    assert!(bundle.starts_with("-----BEGIN CERTIFICATE-----\n"), "{bundle}");
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    let since = client.get(&tracking).await.expect(200).json()["data"]["since"].clone();
    assert!(since.as_str().is_some_and(|day| day.len() == "2026-11-17".len()), "{since}");

    // They are put right again, and what somebody deletes comes back.
    client.patch(&tracking, MERGE, &json!({"data": {"since": "soon"}})).await.expect(200);
    client.delete(&trust).await.expect(200);
    eventually(|| async {
        let (trust, tracking) = (client.get(&trust).await, client.get(&tracking).await);
        let is_back = trust.code == 200 && trust.json()["data"]["client-ca-file"] == bundle;
        (is_back && tracking.json()["data"]["since"] == since).then_some(())
    })
    .await;
    assert!(!server.process.log().contains("not advertised"), "nobody wanted it to be");
}

#[tokio::test]
async fn what_a_body_says_twice_is_read_over_what_it_said_before() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let body =
        r#"{"metadata":{"name":"a","x":1},"data":{"a":"1","b":"2"},"data":{"b":"3","c":"4"},"metadata":{"y":2}}"#;
    let json = [("content-type", "application/json")];
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let refused = client.send(Method::POST, &strict, &json, body).await.fails(400, "BadRequest");
    let want =
        r#"unknown field "metadata.x", duplicate field "data", duplicate field "metadata", unknown field "metadata.y""#;
    let message = refused["message"].as_str().expect("a message");
    assert!(message.ends_with(want), "{message}");
    let made = client.send(Method::POST, CONFIG_MAPS, &json, body).await.expect(201).json();
    assert_eq!(made["metadata"]["name"], "a");
    assert_eq!(made["data"], json!({"a": "1", "b": "3", "c": "4"}));
}

#[tokio::test]
async fn odd_paths_and_selectors_lead_where_they_lead_in_the_original() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post("/api/v1/namespaces/kube-system/configmaps", &json!({"metadata": {"name": "c"}})).await.expect(201);
    let listed = client.get("/api/v1/namespaces//configmaps").await.expect(200);
    assert!(listed.names().contains(&"c".to_owned()), "{}", listed.text());
    client.get("/api/v1/namespaces//nodes").await.fails(404, "NotFound");
    for client in [client.apart().over_http1(), client.apart()] {
        let unread = client.get("/api/v1/%zz").await.expect(400);
        assert_eq!(
            (unread.text().as_str(), unread.header("content-type")),
            ("400 Bad Request", Some("text/plain; charset=utf-8"))
        );
    }
    client.post(ACCOUNTS, &json!({"metadata": {"name": "default"}})).await.expect(201);
    for (name, node) in [("here", "n"), ("there", "m")] {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        client.post(PODS, &pod).await.expect(201);
    }
    assert_eq!(client.get("/api/v1/pods?fieldSelector=spec.host%3Dn").await.expect(200).names(), ["here"]);
    assert_eq!(client.get("/api/v1/pods?fieldSelector=spec.host!%3Dn").await.expect(200).names(), ["there"]);
}

#[tokio::test]
async fn an_eviction_is_refused_for_its_options_only_if_there_is_a_pod() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let evict = |name: &str| json!({"metadata": {"name": name}, "deleteOptions": {"dryRun": ["x"]}});
    client.post("/api/v1/namespaces/default/pods/none/eviction", &evict("none")).await.fails(404, "NotFound");
    client.post(ACCOUNTS, &json!({"metadata": {"name": "default"}})).await.expect(201);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(PODS, &pod).await.expect(201);
    client.post("/api/v1/namespaces/default/pods/p/eviction", &evict("p")).await.fails(422, "Invalid");
    client.get("/api/v1/namespaces/default/pods/p").await.expect(200);
}

#[tokio::test]
async fn the_status_of_a_custom_object_keeps_its_type() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut definition = definition("Namespaced", "Tool");
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"]["status"] = json!({});
    let part = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    version["schema"] = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": part, "status": part}}});
    client.post(DEFINITIONS, &definition).await.expect(201);
    let tools = "/apis/field.example/v1/namespaces/default/tools";
    let (one, status) = (format!("{tools}/a"), format!("{tools}/a/status"));
    let object = json!({"apiVersion": "field.example/v1", "kind": "Tool", "metadata": {"name": "a"}});
    client.post(tools, &object).await.expect(201);
    let patch = json!({"kind": "Other", "apiVersion": "v9", "status": {"n": 1}, "spec": {"odd": 1}});
    let changed = client.patch(&status, MERGE, &patch).await.expect(200);
    assert_eq!([&changed.json()["kind"], &changed.json()["apiVersion"]], ["Tool", "field.example/v1"]);
    assert_eq!(changed.json()["status"], json!({"n": 1}));
    let refused = client.patch(&one, MERGE, &patch).await;
    assert!(refused.warnings().is_empty(), "{:?}", refused.warnings());
    refused.fails(422, "Invalid");
    for (path, code) in [(&one, 200), (&status, 200), (&tools.to_owned(), 200), (&format!("{tools}/b/status"), 404)] {
        let head = client.send(Method::HEAD, path, &[], "").await.expect(code);
        assert!(head.body.is_empty(), "{path}");
        let refused = client.send(Method::OPTIONS, path, &[], "").await.fails(405, "MethodNotAllowed");
        assert_eq!(refused["message"], " is not supported on resources of kind \"tools.field.example\"");
    }
}
