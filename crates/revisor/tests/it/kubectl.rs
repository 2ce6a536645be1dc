//! A real kubectl with the kubeconfig that the server writes.
//!
//! `REVISOR_KUBECTL` names the program; if it is unset, `cargo xtask kubectl` provides one. Each module below is one
//! part of what people do with it, and each test is one story with what its user sees. `releases` does a bit of
//! everything with the oldest kubectl too, which is `REVISOR_KUBECTL_OLDEST` or what `cargo xtask kubectl --oldest`
//! provides.

mod applying;
mod conversions;
mod deleting;
mod discovery;
mod making;
mod nodes;
mod objects;
mod reading;
mod releases;
mod rollouts;
mod version_reports;
mod walk;
mod watching;
mod workloads;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::harness::{Server, eventually, within};
use crate::xtask;

/// A kubectl for one server, with a home of its own.
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: tempfile::TempDir,
}

/// A server with these flags, and a kubectl for it.
pub(crate) async fn start(flags: &[&str]) -> (Server, Arc<Kubectl>) {
    start_program(program(), flags).await
}

async fn start_program(program: PathBuf, flags: &[&str]) -> (Server, Arc<Kubectl>) {
    let server = Server::start(flags).await;
    let home = tempfile::tempdir().expect("a temporary folder");
    let kubectl = Kubectl { program, kubeconfig: server.data().join("kubeconfig"), home };
    (server, Arc::new(kubectl))
}

/// A server whose controllers run, as soon as pods can be made in its default namespace.
async fn start_with_controllers() -> (Server, Arc<Kubectl>) {
    let (server, kubectl) = start(&["--controllers=*"]).await;
    let client = server.client();
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    eventually(|| async { (client.get(account).await.code == 200).then_some(()) }).await;
    (server, kubectl)
}

impl Kubectl {
    fn command(&self, line: &str) -> Command {
        let mut command = self.program(&self.program);
        command.args(words(line));
        command
    }

    /// A program that finds this server.
    fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            // Its cache of discovery lives there, and so do its temporary files.
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A line of a shell that knows this kubectl and the program, in a folder.
    fn shell(&self, folder: &Path, line: &str) -> Command {
        let bin = self.home.path().join("bin");
        std::fs::create_dir_all(&bin).expect("a folder can be made");
        for (name, program) in
            [("kubectl", self.program.as_path()), ("revisor", Path::new(env!("CARGO_BIN_EXE_revisor")))]
        {
            if !bin.join(name).exists() {
                std::os::unix::fs::symlink(program, bin.join(name)).expect("a link can be made");
            }
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin).chain(std::env::split_paths(&path));
        let mut command = self.program("sh");
        let paths = std::env::join_paths(paths).expect("folders without colons");
        command.args(["-c", line]).current_dir(folder).env("PATH", paths);
        command
    }

    /// Edits an object with a `sed` script in place of an editor.
    async fn edit(&self, what: &str, script: &str) -> (bool, String) {
        let mut command = self.command(&format!("edit {what}"));
        command.env("KUBE_EDITOR", format!("sed -i {script}"));
        finish(command, "").await
    }

    /// Runs a command to its end, with something to read.
    pub(crate) async fn run_with(&self, line: &str, input: &str) -> (bool, String) {
        finish(self.command(line), input).await
    }

    async fn run(&self, line: &str) -> (bool, String) {
        self.run_with(line, "").await
    }

    /// What a command that succeeds says.
    pub(crate) async fn ok(&self, line: &str) -> String {
        self.ok_with(line, "").await
    }

    /// What a command that succeeds says when it is given something to read.
    pub(crate) async fn ok_with(&self, line: &str, input: &str) -> String {
        let (succeeded, text) = self.run_with(line, input).await;
        assert!(succeeded, "kubectl {line}: {text}");
        text
    }

    /// What a command that fails says.
    pub(crate) async fn refused(&self, line: &str) -> String {
        self.refused_with(line, "").await
    }

    pub(crate) async fn refused_with(&self, line: &str, input: &str) -> String {
        let (succeeded, text) = self.run_with(line, input).await;
        assert!(!succeeded, "kubectl {line}: {text}");
        text
    }

    /// What a command that succeeds says, with every run of blanks as one: how wide columns are is not the point.
    pub(crate) async fn squeezed(&self, line: &str) -> String {
        squeezed(&self.ok(line).await)
    }

    /// Makes what this text describes.
    async fn create_from(&self, text: &str) -> (bool, String) {
        self.run_with("create -f -", text).await
    }

    /// Makes something as `kubectl create` does by itself, which sends protobuf.
    async fn create(&self, line: &str) {
        let text = self.ok(&format!("create {line}")).await;
        assert!(text.ends_with(" created\n"), "kubectl create {line}: {text}");
    }

    pub(crate) async fn json(&self, line: &str) -> Value {
        let text = self.ok(&format!("{line} -o json")).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("kubectl {line}: {error}: {text}"))
    }

    /// Writes the status that a controller or a kubelet would.
    async fn set_status(&self, what: &str, status: &Value) {
        let patch = json!({ "status": status });
        self.ok(&format!("patch {what} --subresource=status --type=merge -p '{patch}'")).await;
    }

    /// Starts a command that goes on while others run.
    pub(crate) fn begin(&self, line: &str) -> Running {
        let mut child = self.command(line).spawn().expect("kubectl can be started");
        let out = BufReader::new(child.stdout.take().expect("it prints"));
        Running { child, out: Some(out) }
    }
}

/// Runs a command to its end: whether it succeeded, and all that it said.
async fn finish(mut command: Command, input: &str) -> (bool, String) {
    let input = input.to_owned();
    let running = tokio::task::spawn_blocking(move || {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("kubectl can be started");
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

/// A command that goes on until it is dropped.
pub(crate) struct Running {
    child: Child,
    /// Away only while somebody reads.
    out: Option<BufReader<ChildStdout>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; in either case nothing is left to do about an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// The next line that it prints, squeezed.
    pub(crate) async fn line(&mut self) -> String {
        let mut out = self.out.take().expect("one reads at a time");
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            out.read_line(&mut line).expect("what is printed is text");
            (line, out)
        });
        let (line, out) = within(reading).await.expect("reading does not panic");
        self.out = Some(out);
        squeezed(&line)
    }

    /// Reads on until a line begins with this.
    async fn line_with(&mut self, start: &str) -> String {
        loop {
            let line = self.line().await;
            assert!(!line.is_empty(), "it ended before it said {start:?}");
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// All that is left of what it prints, when it has ended well.
    pub(crate) async fn rest(mut self) -> String {
        let mut out = self.out.take().expect("one reads at a time");
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).expect("what is printed is text");
            text
        });
        let text = within(reading).await.expect("reading does not panic");
        let status = self.child.wait().expect("it has closed its output");
        assert!(status.success(), "{status}: {text}");
        text
    }
}

/// The kubectl to use, provided once for all tests.
fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| std::env::var_os("REVISOR_KUBECTL").map_or_else(|| xtask::path_of("kubectl"), PathBuf::from))
        .clone()
}

/// The oldest kubectl that is to work.
fn oldest_program() -> PathBuf {
    let named = std::env::var_os("REVISOR_KUBECTL_OLDEST");
    named.map_or_else(|| xtask::path_of("kubectl --oldest"), PathBuf::from)
}

/// The words of a command. What stands between single quotes is one word.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
}

pub(crate) fn squeezed(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n");
    lines.collect()
}

/// The cells of the row that begins with this name.
fn row(table: &str, name: &str) -> Vec<String> {
    let found = table.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let mut found = found.filter(|cells| cells.first().is_some_and(|first| first == name));
    found.next().unwrap_or_else(|| panic!("no row {name} in\n{table}"))
}

/// A pod that names its owner, if it has one.
fn pod(name: &str, app: &str, owner: Option<&Value>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    });
    if let Some(owner) = owner {
        pod["metadata"]["ownerReferences"] = json!([reference(owner)]);
    }
    pod
}

/// How an object names its controller.
fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A replica set as the controller of deployments would make it, without replicas.
fn replica_set(name: &str, app: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"labels": {"app": app}},
                "spec": {"containers": [{"name": app, "image": image}]},
            },
        },
    })
}
