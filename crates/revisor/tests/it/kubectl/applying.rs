//! Declared objects: applied on either side, compared, replaced and edited.

use serde_json::json;

use super::start;

/// What people keep in their repositories, with the image and the datum that change between the steps of a story.
fn manifest(image: &str, datum: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: app, labels: {{app: app}}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: app}}}}
  template:
    metadata: {{labels: {{app: app}}}}
    spec:
      containers:
      - {{name: app, image: \"registry.example/{image}\", ports: [{{containerPort: 80}}]}}
      - {{name: side, image: \"registry.example/side:1\"}}
---
apiVersion: v1
kind: Service
metadata: {{name: app}}
spec:
  selector: {{app: app}}
  ports: [{{name: http, port: 80}}, {{name: https, port: 443}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: app}}
data: {{key: \"{datum}\"}}
"
    )
}

/// The line per object that a command on the manifest prints.
fn said(deployment: &str, service: &str, config_map: &str) -> String {
    format!("deployment.apps/app {deployment}\nservice/app {service}\nconfigmap/app {config_map}\n")
}

const IMAGES: &str =
    r#"get deployment app -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image}{"\n"}{end}'"#;

#[tokio::test]
async fn a_manifest_is_applied_changed_and_left_alone() {
    let (_server, kubectl) = start(&[]).await;
    let (first, second) = (manifest("app:1", "one"), manifest("app:2", "two"));
    assert_eq!(kubectl.ok_with("apply -f -", &first).await, said("created", "created", "created"));
    assert_eq!(kubectl.ok_with("apply -f -", &first).await, said("unchanged", "unchanged", "unchanged"));

    let differences = kubectl.refused_with("diff -f -", &second).await;
    for line in
        ["-  generation: 1", "+  generation: 2", "+      - image: registry.example/app:2", "-  key: one", "+  key: two"]
    {
        assert!(differences.lines().any(|found| found == line), "{line}: {differences}");
    }
    let tried = "configured (server dry run)";
    assert_eq!(
        kubectl.ok_with("apply -f - --dry-run=server", &second).await,
        said(tried, "unchanged (server dry run)", tried)
    );
    assert_eq!(kubectl.ok(IMAGES).await, "app=registry.example/app:1\nside=registry.example/side:1\n");
    assert_eq!(kubectl.ok_with("apply -f -", &second).await, said("configured", "unchanged", "configured"));
    assert_eq!(kubectl.ok(IMAGES).await, "app=registry.example/app:2\nside=registry.example/side:1\n");
    assert_eq!(kubectl.ok_with("diff -f -", &second).await, "");

    // What somebody else set stays, and what the manifest no longer has goes.
    kubectl.ok("scale deployment app --replicas=4").await;
    kubectl.ok("annotate service app note=kept").await;
    let without = second.replace("  replicas: 1\n", "").replace(", {name: https, port: 443}", "");
    assert_eq!(kubectl.ok_with("apply -f -", &without).await, said("configured", "configured", "unchanged"));
    let service = kubectl.json("get service app").await;
    assert_eq!(service["spec"]["ports"].as_array().map(Vec::len), Some(1), "{service}");
    assert_eq!(service["metadata"]["annotations"]["note"], "kept");
    let deployment = kubectl.json("get deployment app").await;
    assert_eq!(deployment["spec"]["replicas"], 1, "its default, because the field is nobody's any more");

    let pruned = "apply -f - --prune -l app=app --prune-allowlist=apps/v1/Deployment";
    let labelled = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app, labels: {app: app}}, data: {key: two}}";
    let text = kubectl.ok_with(pruned, labelled).await;
    assert_eq!(text, "configmap/app configured\ndeployment.apps/app pruned\n");
    assert_eq!(kubectl.ok_with("delete -f - --ignore-not-found", &second).await.lines().count(), 2);
}

#[tokio::test]
async fn a_manifest_with_mistakes_is_refused_with_all_of_them() {
    let (_server, kubectl) = start(&[]).await;
    let nameless = manifest("app:1", "one").replace("name: https, ", "");
    let (succeeded, text) = kubectl.run_with("apply -f -", &nameless).await;
    assert!(!succeeded, "{text}");
    assert!(text.contains("The Service \"app\" is invalid: spec.ports[1].name: Required value"), "{text}");
    assert!(text.contains("configmap/app created\n"), "the others are not held up: {text}");

    let unknown = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, dat: {a: b}}";
    let text = kubectl.refused_with("create -f -", unknown).await;
    assert!(text.contains("strict decoding error: unknown field \"dat\""), "{text}");
    let text = kubectl.ok_with("create -f - --validate=warn", unknown).await;
    assert_eq!(text, "configmap/x created\nWarning: unknown field \"dat\"\n");

    let strange = manifest("app:1", "one")
        .replace("replicas: 1", "replicas: -1")
        .replace("containerPort: 80", "containerPort: 0");
    let text = kubectl.refused_with("apply -f -", &strange).await;
    for path in ["spec.replicas: Invalid value: -1", "spec.template.spec.containers[0].ports[0].containerPort"] {
        assert!(text.contains(path), "{path}: {text}");
    }
}

#[tokio::test]
async fn managers_who_apply_on_the_server_learn_of_each_other() {
    let (_server, kubectl) = start(&[]).await;
    let (first, second) = (manifest("app:1", "one"), manifest("app:1", "two"));
    let applied = said("serverside-applied", "serverside-applied", "serverside-applied");
    assert_eq!(kubectl.ok_with("apply --server-side -f -", &first).await, applied);
    let before = kubectl.ok("get deployment app -o jsonpath={.metadata.resourceVersion}").await;
    assert_eq!(kubectl.ok_with("apply --server-side -f -", &first).await, applied);
    let after = kubectl.ok("get deployment app -o jsonpath={.metadata.resourceVersion}").await;
    assert_eq!(before, after, "what changes nothing is not written");

    assert_eq!(kubectl.ok_with("apply --server-side --field-manager=other -f -", &first).await, applied);
    let text = kubectl.refused_with("apply --server-side --field-manager=other -f -", &second).await;
    assert!(text.contains("Apply failed with 1 conflict: conflict with \"kubectl\": .data.key"), "{text}");
    let forced = "apply --server-side --field-manager=other --force-conflicts -f -";
    assert_eq!(kubectl.ok_with(forced, &second).await, applied);
    let map = kubectl.json("get configmap app --show-managed-fields").await;
    assert_eq!(map["data"], json!({"key": "two"}));
    let managers = map["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let owns = |name: &str| {
        managers.iter().any(|entry| entry["manager"] == name && !entry["fieldsV1"]["f:data"]["f:key"].is_null())
    };
    assert!(owns("other") && !owns("kubectl"), "{map}");
}

#[tokio::test]
async fn objects_are_replaced_and_edited() {
    let (_server, kubectl) = start(&[]).await;
    let (first, second) = (manifest("app:1", "one"), manifest("app:2", "two"));
    kubectl.ok_with("create -f -", &first).await;
    let uid = kubectl.ok("get deployment app -o jsonpath={.metadata.uid}").await;
    assert_eq!(kubectl.ok_with("replace -f -", &second).await, said("replaced", "replaced", "replaced"));
    let replaced = kubectl.json("get deployment app").await;
    assert_eq!((&replaced["metadata"]["uid"], &replaced["metadata"]["generation"]), (&json!(uid), &json!(2)));
    let text = kubectl.ok_with("replace --force --cascade=background -f -", &first).await;
    assert!(text.contains("deployment.apps \"app\" deleted from default namespace\n"), "{text}");
    assert_ne!(kubectl.ok("get deployment app -o jsonpath={.metadata.uid}").await, uid, "it is another one");

    let (succeeded, text) = kubectl.edit("deployment app", "s,app:1,app:3,").await;
    assert!(succeeded && text == "deployment.apps/app edited\n", "{text}");
    assert_eq!(kubectl.ok(IMAGES).await, "app=registry.example/app:3\nside=registry.example/side:1\n");
    let (succeeded, text) = kubectl.edit("deployment app", "s,nothing,something,").await;
    assert!(succeeded && text == "Edit cancelled, no changes made.\n", "{text}");
    // An editor that leaves the same mistake twice gives up.
    let (succeeded, text) = kubectl.edit("deployment app", "s,replicas:.1,replicas:-1,").await;
    assert!(!succeeded && text.contains("Edit cancelled, no valid changes were saved."), "{text}");
}
