//! Which versions of a custom resource objects are stored in, who asks for which, and when one can be dropped.

use serde_json::{Value, json};

use super::{Kubectl, row, start};
use crate::harness::eventually;

/// A definition with these versions, of which one is stored; all are served.
fn widgets(versions: &[&str], storage: &str) -> String {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            json!({"name": version, "served": true, "storage": *version == storage, "schema": schema})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": versions,
        },
    })
    .to_string()
}

/// The columns of the report on widgets, without its age.
async fn columns(kubectl: &Kubectl) -> Vec<String> {
    let table = kubectl.ok("get versionreports").await;
    assert!(table.starts_with("NAME "), "{table}");
    let mut cells = row(&table, "widgets.example.com");
    cells.remove(0);
    cells.pop();
    cells
}

/// Why a version cannot be dropped.
async fn reasons(kubectl: &Kubectl, version: &str) -> Vec<String> {
    let report = kubectl.json("get versionreport widgets.example.com").await;
    let versions = report["status"]["versions"].as_array().expect("versions");
    let version = versions.iter().find(|known| known["name"] == version).expect("the version is told of");
    let obstacles = version["obstacles"].as_array().cloned().unwrap_or_default();
    assert_eq!(version["droppable"], obstacles.is_empty(), "{report}");
    obstacles.iter().map(|obstacle| obstacle["reason"].as_str().expect("a reason").to_owned()).collect()
}

#[tokio::test]
async fn a_version_is_left_behind_object_by_object_and_dropped() {
    let (_server, kubectl) = start(&[]).await;
    let text = kubectl.refused("get versionreports").await;
    assert_eq!(text, "error: the server doesn't have a resource type \"versionreports\"\n", "there are no definitions");

    kubectl.ok_with("create --validate=false -f -", &widgets(&["v1", "v1beta1"], "v1beta1")).await;
    assert_eq!(columns(&kubectl).await, ["v1beta1", "<none>", "v1,v1beta1", "v1"], "nobody has asked for v1 yet");
    for name in ["a", "b", "c"] {
        let widget =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}});
        kubectl.ok_with("create --validate=false -f -", &widget.to_string()).await;
    }
    assert_eq!(columns(&kubectl).await, ["v1beta1", "v1beta1:3", "v1,v1beta1", "<none>"]);

    // Another storage version changes no object; a write does.
    kubectl.ok_with("replace --validate=false -f -", &widgets(&["v1", "v1beta1"], "v1")).await;
    assert_eq!(columns(&kubectl).await, ["v1", "v1beta1:3", "v1,v1beta1", "<none>"]);
    assert_eq!(reasons(&kubectl, "v1beta1").await, ["ObjectsStored"]);
    kubectl.ok("label widgets.v1.example.com a moved=yes").await;
    assert_eq!(columns(&kubectl).await, ["v1", "v1:1,v1beta1:2", "v1,v1beta1", "<none>"]);
    let metrics = kubectl.ok("get --raw /metrics").await;
    for (version, objects) in [("v1", 1), ("v1beta1", 2)] {
        let family = "revisor_custom_resource_stored_objects";
        let line = format!("{family}{{group=\"example.com\",resource=\"widgets\",version=\"{version}\"}} {objects}");
        assert_eq!(metrics.lines().filter(|known| *known == line).count(), 1, "{line} in {metrics}");
    }
    kubectl.ok("label widgets.v1.example.com --all moved=yes").await;
    assert_eq!(columns(&kubectl).await, ["v1", "v1:3", "v1,v1beta1", "<none>"]);

    // Nothing is stored in the old version; its definition is told so, and then it can go.
    assert_eq!(reasons(&kubectl, "v1beta1").await, ["InStoredVersions"]);
    let (succeeded, text) = kubectl.run_with("replace --validate=false -f -", &widgets(&["v1"], "v1")).await;
    assert!(!succeeded && text.contains("storedVersions"), "{text}");
    let trimmed = json!({"storedVersions": ["v1"]});
    kubectl.set_status("customresourcedefinition widgets.example.com", &trimmed).await;
    assert_eq!(reasons(&kubectl, "v1beta1").await, [""; 0]);
    assert_eq!(reasons(&kubectl, "v1").await, ["StorageVersion", "ObjectsStored", "RecentRequests"]);
    assert_eq!(columns(&kubectl).await, ["v1", "v1:3", "v1,v1beta1", "v1beta1"]);

    // Whoever asks for it is named, and keeps it.
    kubectl.ok("get widgets.v1beta1.example.com").await;
    assert_eq!(reasons(&kubectl, "v1beta1").await, ["RecentRequests"]);
    let text = kubectl.ok("describe vr widgets.example.com").await;
    assert!(text.contains("User Agent:") && text.contains("kubectl/"), "{text}");
    assert_eq!(columns(&kubectl).await, ["v1", "v1:3", "v1,v1beta1", "<none>"]);

    kubectl.ok_with("replace --validate=false -f -", &widgets(&["v1"], "v1")).await;
    assert_eq!(columns(&kubectl).await, ["v1", "v1:3", "v1", "<none>"]);
    kubectl.ok("delete customresourcedefinition widgets.example.com").await;
    // With the last definition the reports go.
    let group = "get --raw /apis/versioning.revisor.dev/v1alpha1";
    eventually(|| async { (!kubectl.run(group).await.0).then_some(()) }).await;
}

#[tokio::test]
async fn reports_are_found_and_explained_and_cannot_be_written() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.ok_with("create --validate=false -f -", &widgets(&["v1"], "v1")).await;
    let resources = kubectl.squeezed("api-resources --no-headers --api-group=versioning.revisor.dev").await;
    assert!(
        resources.ends_with("versionreports vr versioning.revisor.dev/v1alpha1 false VersionReport\n"),
        "{resources}"
    );
    let text = kubectl.squeezed("explain versionreports.status.versions").await;
    for line in
        ["KIND: VersionReport", "FIELD: versions <[]VersionUse>", "clients <[]VersionClient>", "droppable <boolean>"]
    {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    let yaml = kubectl.ok("get versionreports -o yaml").await;
    assert!(yaml.contains("  kind: VersionReport\n") && yaml.contains("      requests: 0\n"), "{yaml}");
    assert_eq!(kubectl.ok("get vr -o name --field-selector=metadata.name=other").await, "");
    let text = kubectl.refused("get versionreport other.example.com").await;
    assert_eq!(
        text,
        "Error from server (NotFound): versionreports.versioning.revisor.dev \"other.example.com\" not found\n"
    );
    let text = kubectl.refused("delete versionreport widgets.example.com").await;
    assert!(text.contains("MethodNotAllowed"), "{text}");
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let own = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "versionreports.versioning.revisor.dev"},
        "spec": {
            "group": "versioning.revisor.dev",
            "scope": "Cluster",
            "names": {"plural": "versionreports", "kind": "Mine"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    kubectl.ok_with("create --validate=false -f -", &own.to_string()).await;
    let definition = kubectl.json("get customresourcedefinition versionreports.versioning.revisor.dev").await;
    assert_eq!(definition["status"]["conditions"][0]["reason"], "PluralConflict", "{definition}");
    assert_eq!(kubectl.ok("get vr -o name").await.lines().count(), 2, "also on those that are not established");
}
