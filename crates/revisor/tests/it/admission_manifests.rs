//! Webhooks and policies that stand in files: in force from the first request, before all that is stored, and changed by
//! nobody but who can change the files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::{Client, MERGE};
use crate::harness::{Process, Server, eventually};
use crate::objects::{CONFIG_MAPS, config_map};

const GATE: &str = "--feature-gates=ManifestBasedAdmissionControlConfig=true";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn rules(resources: &str, operations: &str) -> String {
    format!(
        "resourceRules: [{{apiGroups: ['*'], apiVersions: ['*'], operations: [{operations}], resources: [{resources}]}}]"
    )
}

/// A policy that denies what an expression does not find true, and its binding.
fn policy(name: &str, resources: &str, expression: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}.static.k8s.io}}
spec:
  matchConstraints: {{{}}}
  validations: [{{expression: \"{expression}\", message: not in this cluster}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}.static.k8s.io}}
spec: {{policyName: {name}.static.k8s.io, validationActions: [Deny]}}
",
        rules(resources, "'*'")
    )
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("manifests")).expect("a folder can be made");
        Files { folder }
    }

    fn manifest(&self, name: &str) -> PathBuf {
        self.folder.path().join("manifests").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        // As an operator would, so that nobody reads half of it.
        let fresh = self.folder.path().join("fresh");
        std::fs::write(&fresh, text).expect("a file can be written");
        std::fs::rename(&fresh, self.manifest(name)).expect("a file can be renamed");
    }

    /// The flag that has the manifests of a plugin read.
    fn flag(&self, plugin: &str, kind: &str) -> String {
        let path = self.folder.path().join("admission.yaml");
        let manifests: &Path = &self.folder.path().join("manifests");
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: {plugin}\n  \
             configuration: {{apiVersion: apiserver.config.k8s.io/v1, kind: {kind}, staticManifestsDir: {}}}\n",
            manifests.display()
        );
        std::fs::write(&path, text).expect("a file can be written");
        format!("--admission-control-config-file={}", path.display())
    }
}

async fn metrics(client: &Client) -> Vec<String> {
    let text = String::from_utf8(client.get("/metrics").await.expect(200).body.to_vec()).expect("is a text");
    let prefix = "apiserver_manifest_admission_config_controller_";
    text.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect()
}

#[tokio::test]
async fn policies_in_files_protect_a_server_and_nobody_can_take_them_back() {
    let files = Files::new();
    files.write("a.yaml", &policy("maps", "configmaps", "object == null || object.metadata.name != 'bad'"));
    files.write("b.yaml", &policy("policies", "validatingadmissionpolicies", "request.userInfo.username == 'nobody'"));
    let config = files.flag("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration");
    let server = Server::start(&[GATE, &config]).await;
    let client = server.client();
    let refused = client.post(CONFIG_MAPS, &config_map("bad", "1")).await.fails(422, "Invalid");
    assert_eq!(
        refused["message"],
        "configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy 'maps.static.k8s.io' with binding \
         'maps.static.k8s.io' denied request: not in this cluster"
    );
    client.post(CONFIG_MAPS, &config_map("good", "1")).await.expect(201);
    // They are no objects, but they decide about those that are.
    assert!(client.get(&format!("{GROUP}/validatingadmissionpolicies")).await.expect(200).names().is_empty());
    let constraints = json!({"resourceRules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]});
    let stored = |name: &str| {
        json!({"metadata": {"name": name},
        "spec": {"matchConstraints": constraints, "validations": [{"expression": "true"}]}})
    };
    let path = format!("{GROUP}/validatingadmissionpolicies");
    let refused = client.post(&path, &stored("mine")).await.fails(422, "Invalid");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("ValidatingAdmissionPolicy 'policies.static.k8s.io'"), "{message}");
    let reserved = client.post(&path, &stored("maps.static.k8s.io")).await.fails(422, "Invalid");
    let message = reserved["message"].as_str().unwrap_or_default();
    assert!(message.contains("are reserved for static manifest-based configurations"), "{message}");

    // What changes is in force soon; what is wrong is told, and changes nothing.
    let count = async |status: &str| {
        let wanted = format!("status=\"{status}\"}}");
        let lines = metrics(&client).await;
        let line =
            lines.into_iter().find(|line| line.starts_with("automatic_reloads_total{") && line.contains(&wanted));
        line.and_then(|line| line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok())).unwrap_or_default()
    };
    assert_eq!((count("success").await, count("failure").await), (1, 0));
    files.write("a.yaml", "kind: Nonsense");
    eventually(|| async { (count("failure").await == 1).then_some(()) }).await;
    client.post(CONFIG_MAPS, &config_map("bad", "1")).await.fails(422, "Invalid");
    std::fs::remove_file(files.manifest("a.yaml")).expect("a file can be removed");
    eventually(|| async { (count("success").await == 2).then_some(()) }).await;
    client.post(CONFIG_MAPS, &config_map("bad", "1")).await.expect(201);
    let lines = metrics(&client).await;
    let infos: Vec<&String> = lines.iter().filter(|line| line.starts_with("last_config_info{")).collect();
    assert_eq!(infos.len(), 1, "{lines:?}");
}

#[tokio::test]
async fn policies_in_files_change_what_is_written() {
    let files = Files::new();
    let text = format!(
        "apiVersion: v1
kind: List
items:
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicy
  metadata: {{name: label.static.k8s.io}}
  spec:
    reinvocationPolicy: Never
    matchConstraints: {{{}}}
    mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {{expression: 'Object{{metadata: Object.metadata{{labels: {{\"from\": \"file\"}}}}}}'}}
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicyBinding
  metadata: {{name: label.static.k8s.io}}
  spec: {{policyName: label.static.k8s.io}}
",
        rules("configmaps", "CREATE")
    );
    files.write("label.yaml", &text);
    let config = files.flag("MutatingAdmissionPolicy", "MutatingAdmissionPolicyConfiguration");
    let server = Server::start(&[GATE, &config]).await;
    let made = server.client().post(CONFIG_MAPS, &config_map("c", "1")).await.expect(201).json();
    assert_eq!(made["metadata"]["labels"], json!({"from": "file"}));
}

#[tokio::test]
async fn webhooks_in_files_are_asked_about_stored_webhooks_too() {
    let files = Files::new();
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard.static.k8s.io"},
        "webhooks": [{
            "name": "guard.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:9/x"},
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"],
                "resources": ["validatingwebhookconfigurations"]}],
        }],
    });
    files.write("guard.json", &webhook.to_string());
    let config = files.flag("ValidatingAdmissionWebhook", "WebhookAdmissionConfiguration");
    let server = Server::start(&[GATE, &config]).await;
    let client = server.client();
    let path = format!("{GROUP}/validatingwebhookconfigurations");
    client.post(&path, &json!({"metadata": {"name": "mine"}})).await.expect(201);
    client.patch(&format!("{path}/mine"), MERGE, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    let refused: Value = client.delete(&format!("{path}/mine")).await.fails(500, "InternalError");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("failed calling webhook \"guard.example.com\""), "{message}");
}

#[tokio::test]
async fn a_server_does_not_start_without_what_should_protect_it() {
    let name = "must have a name ending with \".static.k8s.io\"";
    let unnamed = policy("x", "pods", "true").replace("x.static.k8s.io", "x");
    for (text, gate, want) in [
        (policy("x", "pods", "object."), GATE, "failed to load static policy manifests from"),
        (unnamed, GATE, name),
        (policy("x", "pods", "true"), "--feature-gates=ManifestBasedAdmissionControlConfig=false", "feature gate"),
    ] {
        let files = Files::new();
        files.write("a.yaml", &text);
        let config = files.flag("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration");
        let data = files.folder.path().join("data");
        let arguments = [
            "serve".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--data-dir={}", data.display()),
            gate.to_owned(),
            config,
        ];
        let mut process = Process::start(&arguments, &files.folder.path().join("log"));
        assert!(!process.ended().await.success(), "{want}");
        let log = process.log();
        assert!(log.contains(want), "{want} is missing in {log}");
    }
}
