//! A real kubectl with the kubeconfig that the server writes.
//!
//! `REVISOR_KUBECTL` names the program; if it is unset, `cargo xtask kubectl` provides one.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::harness::{Server, within};
use crate::xtask;

struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: tempfile::TempDir,
}

impl Kubectl {
    fn of(server: &Server) -> Arc<Kubectl> {
        let home = tempfile::tempdir().expect("a temporary folder");
        Arc::new(Kubectl { program: program(), kubeconfig: server.data().join("kubeconfig"), home })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            // Its cache of discovery lives there.
            .env("HOME", self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end, with something to read.
    async fn run_with(self: &Arc<Kubectl>, arguments: &[&str], input: &str) -> (bool, String) {
        let (kubectl, input) = (self.clone(), input.to_owned());
        let owned: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let running = tokio::task::spawn_blocking(move || {
            let borrowed: Vec<&str> = owned.iter().map(String::as_str).collect();
            let mut child = kubectl.command(&borrowed).stdin(Stdio::piped()).spawn().expect("kubectl can be started");
            let mut pipe = child.stdin.take().expect("it has an input");
            // It may not read at all.
            let _ = pipe.write_all(input.as_bytes());
            drop(pipe);
            let output = child.wait_with_output().expect("kubectl ends");
            let both = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&both).into_owned())
        });
        within(running).await.expect("waiting does not panic")
    }

    async fn run(self: &Arc<Kubectl>, line: &str) -> (bool, String) {
        self.run_with(&line.split(' ').collect::<Vec<_>>(), "").await
    }

    /// What a command that succeeds says.
    async fn ok(self: &Arc<Kubectl>, line: &str) -> String {
        let (succeeded, text) = self.run(line).await;
        assert!(succeeded, "kubectl {line}: {text}");
        text
    }

    /// Makes what this text describes.
    async fn create_from(self: &Arc<Kubectl>, text: &str) -> (bool, String) {
        self.run_with(&["create", "-f", "-"], text).await
    }

    /// Makes something as `kubectl create` does by itself, which sends protobuf.
    async fn create(self: &Arc<Kubectl>, line: &str) {
        let text = self.ok(&format!("create {line}")).await;
        assert!(text.ends_with(" created\n"), "kubectl create {line}: {text}");
    }

    async fn json(self: &Arc<Kubectl>, line: &str) -> Value {
        let text = self.ok(line).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("kubectl {line}: {error}: {text}"))
    }
}

/// The kubectl to use, provided once for all tests.
fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| std::env::var_os("REVISOR_KUBECTL").map_or_else(|| xtask::path_of("kubectl"), PathBuf::from))
        .clone()
}

#[tokio::test]
async fn kubectl_makes_reads_changes_and_deletes() {
    let server = Server::start(&[]).await;
    let kubectl = Kubectl::of(&server);
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
    assert_eq!(kubectl.json("get configmap a -n work -o json").await["data"], json!({"k": "1", "l": "2"}));
    let text = kubectl.ok("get configmap b -n work -o yaml").await;
    assert!(text.contains("  k: |\n    text\n") && text.contains("kind: ConfigMap\n"), "{text}");
    assert_eq!(kubectl.json("get secret s -n work -o json").await["data"], json!({"p": "d29yZA=="}));
    assert_eq!(kubectl.ok("get cm b -n work -o jsonpath={.data.k}").await, "text\n");

    assert_eq!(
        kubectl.ok(r#"patch configmap a -n work --type=merge -p {"data":{"k":"2","l":null}}"#).await,
        "configmap/a patched\n"
    );
    assert_eq!(
        kubectl.ok(r#"patch configmap a -n work --type=json -p [{"op":"add","path":"/data/m","value":"3"}]"#).await,
        "configmap/a patched\n"
    );
    assert_eq!(kubectl.ok("label configmap a -n work colour=red").await, "configmap/a labeled\n");
    assert_eq!(kubectl.ok("annotate configmap a -n work note=kept").await, "configmap/a annotated\n");
    let object = kubectl.json("get configmap a -n work -o json").await;
    assert_eq!(object["data"], json!({"k": "2", "m": "3"}));
    assert_eq!(object["metadata"]["labels"], json!({"colour": "red"}));
    assert_eq!(object["metadata"]["annotations"], json!({"note": "kept"}));

    assert_eq!(kubectl.ok("delete configmap a -n work").await, "configmap \"a\" deleted from work namespace\n");
    let (succeeded, text) = kubectl.run("get configmap a -n work").await;
    assert!(!succeeded && text == "Error from server (NotFound): configmaps \"a\" not found\n", "{text}");
    assert_eq!(kubectl.ok("delete namespace work --wait=false").await, "namespace \"work\" deleted\n");
    assert_eq!(kubectl.json("get namespace work -o json").await["status"]["phase"], "Terminating");
    let late = "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: work}}";
    let (succeeded, text) = kubectl.create_from(late).await;
    assert!(!succeeded && text.contains("because it is being terminated"), "{text}");
}

/// What kubectl applies and edits, it sends as strategic merge patches.
#[tokio::test]
async fn kubectl_applies_and_patches_strategically() {
    let server = Server::start(&[]).await;
    let kubectl = Kubectl::of(&server);
    let config_map = |data: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {data}}}");
    for (data, said) in [("{k: one, l: two}", "created"), ("{k: three}", "configured"), ("{k: three}", "unchanged")] {
        let (succeeded, text) = kubectl.run_with(&["apply", "-f", "-"], &config_map(data)).await;
        assert!(succeeded && text == format!("configmap/a {said}\n"), "{text}");
    }
    assert_eq!(kubectl.json("get configmap a -o json").await["data"], json!({"k": "three"}));

    let patched = kubectl.ok(r#"patch configmap a -p {"metadata":{"finalizers":["x.io/one"]}}"#).await;
    assert_eq!(patched, "configmap/a patched\n");
    kubectl.ok(r#"patch configmap a -p {"metadata":{"finalizers":["x.io/two"]}}"#).await;
    let held = kubectl.json("get configmap a -o json").await;
    assert_eq!(held["metadata"]["finalizers"], json!(["x.io/two", "x.io/one"]), "merged as a set, the new ones first");
    kubectl.ok(r#"patch configmap a -p {"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/one"]}}"#).await;
    let held = kubectl.json("get configmap a -o json").await;
    assert_eq!(held["metadata"]["finalizers"], json!(["x.io/two"]));

    let (succeeded, text) = kubectl.run(r#"patch configmap a -p {"data":{"$patch":"nonsense"}}"#).await;
    assert!(!succeeded && text.contains("unknown patch type: nonsense"), "{text}");
}

#[tokio::test]
async fn kubectl_finds_out_what_there_is() {
    let server = Server::start(&[]).await;
    let kubectl = Kubectl::of(&server);
    assert_eq!(kubectl.ok("api-versions").await, "coordination.k8s.io/v1\nv1\n");
    let resources = kubectl.ok("api-resources --no-headers").await;
    let names: Vec<&str> = resources.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["configmaps", "events", "namespaces", "secrets", "serviceaccounts", "leases"]);
    let version = kubectl.json("version -o json").await;
    assert_eq!(version["serverVersion"]["minor"], "36", "{version}");
    assert_eq!(kubectl.ok("get --raw /readyz").await, "ok");
    let raw = kubectl.json("get --raw /api/v1/namespaces/default").await;
    assert_eq!(raw["metadata"]["name"], "default");

    for name in ["a", "b", "c", "d", "e"] {
        kubectl.create(&format!("configmap {name}")).await;
    }
    let chunked = kubectl.ok("get configmaps --chunk-size=2 -o name").await;
    assert_eq!(chunked.lines().count(), 5, "{chunked}");

    let event = r#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"},"reason":"Tested","message":"it works",
        "type":"Normal","involvedObject":{"kind":"ConfigMap","namespace":"default","name":"a"}}"#;
    let (succeeded, text) = kubectl.create_from(event).await;
    assert!(succeeded, "{text}");
    let events = kubectl.ok("get events").await;
    assert!(events.contains("e "), "{events}");
    assert_eq!(kubectl.json("get events -o json").await["items"][0]["reason"], "Tested");
}

/// A command that goes on until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; in either case nothing is left to do about an error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// The next line that it prints.
    async fn line(
        &mut self,
        out: BufReader<std::process::ChildStdout>,
    ) -> (String, BufReader<std::process::ChildStdout>) {
        let reading = tokio::task::spawn_blocking(move || {
            let (mut out, mut line) = (out, String::new());
            out.read_line(&mut line).expect("what is printed is text");
            (line, out)
        });
        within(reading).await.expect("reading does not panic")
    }
}

#[tokio::test]
async fn kubectl_watches_and_waits() {
    let server = Server::start(&[]).await;
    let kubectl = Kubectl::of(&server);
    kubectl.create("configmap a").await;
    let arguments = ["get", "configmaps", "-w", "--output-watch-events", "-o", "name"];
    let mut watch = Running(kubectl.command(&arguments).spawn().expect("kubectl can be started"));
    let out = BufReader::new(watch.0.stdout.take().expect("it prints"));
    let (line, out) = watch.line(out).await;
    assert!(line.starts_with("configmap/a"), "{line}");
    kubectl.create("configmap b").await;
    let (line, _out) = watch.line(out).await;
    assert!(line.starts_with("configmap/b"), "{line}");
    drop(watch);

    // The waiting command says nothing until the object is gone, so what it is waiting for is looked up on the server.
    let mut waiting = Running(
        kubectl
            .command(&["wait", "--for=delete", "configmap/a", "--timeout=30s"])
            .spawn()
            .expect("kubectl can be started"),
    );
    let client = server.client();
    crate::harness::eventually(|| async {
        let metrics = client.get("/metrics").await;
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let mut lines = text.lines().filter(|line| line.starts_with("apiserver_longrunning_requests{"));
        lines.any(|line| line.contains("configmaps") && line.ends_with(" 1")).then_some(())
    })
    .await;
    kubectl.ok("delete configmap a").await;
    let mut out = waiting.0.stdout.take().expect("it prints");
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).expect("what is printed is text");
        text
    });
    let text = within(reading).await.expect("reading does not panic");
    assert_eq!(text, "configmap/a condition met\n");
    assert!(waiting.0.wait().expect("it has ended").success());
}
