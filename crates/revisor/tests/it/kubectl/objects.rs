//! Objects as such: made, read, patched, labelled and deleted, with data that nobody but their owner understands.

use serde_json::json;

use super::start;

#[tokio::test]
async fn makes_reads_changes_and_deletes() {
    let (_server, kubectl) = start(&[]).await;
    let listed = kubectl.ok("get namespaces").await;
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
    }
    kubectl.create("namespace work").await;
    kubectl.create("configmap a -n work --from-literal=k=1 --from-literal=l=2").await;
    kubectl.create("secret generic s -n work --from-literal=p=word").await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  namespace: work\n  labels: {l: x}\ndata:\n  k: |\n    \
                text\n---\napiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n  name: lease\n  namespace: work\n";
    let (succeeded, text) = kubectl.create_from(yaml).await;
    assert!(succeeded && text == "configmap/b created\nlease.coordination.k8s.io/lease created\n", "{text}");

    assert_eq!(kubectl.ok("get configmaps -n work -o name").await, "configmap/a\nconfigmap/b\n");
    assert_eq!(kubectl.ok("get cm -A -l l=x -o name").await, "configmap/b\n");
    assert_eq!(kubectl.json("get configmap a -n work").await["data"], json!({"k": "1", "l": "2"}));
    let text = kubectl.ok("get configmap b -n work -o yaml").await;
    assert!(text.contains("  k: |\n    text\n") && text.contains("kind: ConfigMap\n"), "{text}");
    assert_eq!(kubectl.json("get secret s -n work").await["data"], json!({"p": "d29yZA=="}));
    assert_eq!(kubectl.ok("get cm b -n work -o jsonpath={.data.k}").await, "text\n");

    assert_eq!(
        kubectl.ok(r#"patch configmap a -n work --type=merge -p '{"data":{"k":"2","l":null}}'"#).await,
        "configmap/a patched\n"
    );
    assert_eq!(
        kubectl.ok(r#"patch configmap a -n work --type=json -p '[{"op":"add","path":"/data/m","value":"3"}]'"#).await,
        "configmap/a patched\n"
    );
    assert_eq!(kubectl.ok("label configmap a -n work colour=red").await, "configmap/a labeled\n");
    assert_eq!(kubectl.ok("annotate configmap a -n work note=kept").await, "configmap/a annotated\n");
    let object = kubectl.json("get configmap a -n work").await;
    assert_eq!(object["data"], json!({"k": "2", "m": "3"}));
    assert_eq!(object["metadata"]["labels"], json!({"colour": "red"}));
    assert_eq!(object["metadata"]["annotations"], json!({"note": "kept"}));

    assert_eq!(kubectl.ok("delete configmap a -n work").await, "configmap \"a\" deleted from work namespace\n");
    let (succeeded, text) = kubectl.run("get configmap a -n work").await;
    assert!(!succeeded && text == "Error from server (NotFound): configmaps \"a\" not found\n", "{text}");
    assert_eq!(kubectl.ok("delete namespace work --wait=false").await, "namespace \"work\" deleted\n");
    assert_eq!(kubectl.json("get namespace work").await["status"]["phase"], "Terminating");
    let late = "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: work}}";
    let (succeeded, text) = kubectl.create_from(late).await;
    assert!(!succeeded && text.contains("because it is being terminated"), "{text}");
}

/// What kubectl applies and edits, it sends as strategic merge patches.
#[tokio::test]
async fn applies_and_patches_strategically() {
    let (_server, kubectl) = start(&[]).await;
    let config_map = |data: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {data}}}");
    for (data, said) in [("{k: one, l: two}", "created"), ("{k: three}", "configured"), ("{k: three}", "unchanged")] {
        let (succeeded, text) = kubectl.run_with("apply -f -", &config_map(data)).await;
        assert!(succeeded && text == format!("configmap/a {said}\n"), "{text}");
    }
    assert_eq!(kubectl.json("get configmap a").await["data"], json!({"k": "three"}));

    let patched = kubectl.ok(r#"patch configmap a -p '{"metadata":{"finalizers":["x.io/one"]}}'"#).await;
    assert_eq!(patched, "configmap/a patched\n");
    kubectl.ok(r#"patch configmap a -p '{"metadata":{"finalizers":["x.io/two"]}}'"#).await;
    let held = kubectl.json("get configmap a").await;
    assert_eq!(held["metadata"]["finalizers"], json!(["x.io/two", "x.io/one"]), "merged as a set, the new ones first");
    kubectl.ok(r#"patch configmap a -p '{"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/one"]}}'"#).await;
    let held = kubectl.json("get configmap a").await;
    assert_eq!(held["metadata"]["finalizers"], json!(["x.io/two"]));

    let (succeeded, text) = kubectl.run(r#"patch configmap a -p '{"data":{"$patch":"nonsense"}}'"#).await;
    assert!(!succeeded && text.contains("unknown patch type: nonsense"), "{text}");
}
