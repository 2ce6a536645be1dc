//! [`Server`]: the real binary on a folder of its own, from its first line to its last breath.
//!
//! Nothing that is started here outlives its test: dropping a [`Process`] ends it, also when the test panics, and then
//! its log is shown.

use std::future::Future;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::client::{Client, Kubeconfig};

/// How long a test waits for anything. Generous, because machines that run tests are busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Servers of tests listen on another port after each restart, and say so in the endpoints of the service `kubernetes`;
/// and every few seconds they say that they are there. Those are writes that tests that count them do not want.
pub(crate) const SILENT: [&str; 2] = [
    "--endpoint-reconciler-type=none",
    "--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
];

/// How much of a log is shown when a test fails.
const SHOWN_LOG: usize = 16 * 1024;

/// The token of the administrator, and that of somebody who may do nothing.
pub(crate) const ADMIN_TOKEN: &str = "token-of-the-administrator";
pub(crate) const GUEST_TOKEN: &str = "token-of-a-guest";

/// Fails a test that waits for something that does not come.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(DEADLINE, future).await;
        done.unwrap_or_else(|_| panic!("nothing came within {DEADLINE:?} at {caller}"))
    }
}

/// Asks again and again until there is an answer.
#[track_caller]
pub(crate) fn eventually<T, F: Future<Output = Option<T>>>(mut ask: impl FnMut() -> F) -> impl Future<Output = T> {
    within(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        loop {
            pause.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    })
}

/// A running program whose standard error goes to a file.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts the binary with these arguments. Its log is appended to `log`. Whoever starts it leaves new files open to
    /// everybody, which must not matter.
    pub(crate) fn start(arguments: &[String], log: &Path) -> Process {
        Process::start_with_workers(arguments, None, log)
    }

    /// The same with so many async workers, if that matters.
    fn start_with_workers(arguments: &[String], workers: Option<usize>, log: &Path) -> Process {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log can be written");
        let child = Command::new("sh")
            .args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_revisor")])
            .args(arguments)
            .envs(workers.map(|workers| ("TOKIO_WORKER_THREADS", workers.to_string())))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .expect("the binary can be started");
        Process { child, log: log.to_owned() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The first line that the program prints; empty if it ends without one.
    pub(crate) async fn first_line(&mut self) -> String {
        let out = self.child.stdout.take().expect("asked once");
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line).expect("what is printed is text");
            line
        });
        within(reading).await.expect("reading does not panic")
    }

    /// How the program ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        eventually(|| std::future::ready(self.child.try_wait().expect("a child can be asked"))).await
    }

    /// Everything that a program that has ended wrote to standard output and to its log.
    pub(crate) fn said(&mut self) -> (String, String) {
        let mut printed = String::new();
        if let Some(out) = &mut self.child.stdout {
            out.read_to_string(&mut printed).expect("what is printed is text");
        }
        (printed, self.log())
    }

    /// Ends the program at once, as SIGKILL does.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        self.child.wait().expect("a child can be waited for");
    }

    /// Asks the program to end.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status();
        assert!(sent.expect("there is a kill command").success(), "the process is there");
    }

    /// The resident memory in kibibytes.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("the process is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel counts memory");
        line.trim().trim_end_matches("kB").trim().parse().expect("a number")
    }
}

impl Drop for Process {
    #[allow(clippy::print_stderr, reason = "the log belongs to the output of the test that failed")]
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let from = log.char_indices().map(|(at, _)| at).find(|at| log.len() - at <= SHOWN_LOG).unwrap_or_default();
            eprintln!("---- log of the server\n{}----", &log[from..]);
        }
    }
}

/// A server that serves.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) kubeconfig: Arc<Kubeconfig>,
    flags: Vec<String>,
    folder: TempDir,
}

impl Server {
    /// Starts a server with so many async workers on an empty folder and waits until it is ready.
    pub(crate) async fn start_with_workers(workers: usize) -> Server {
        Stopped { workers: Some(workers), ..Server::prepare(&[]) }.start().await
    }

    /// Starts a server with these flags on an empty folder and waits until it is ready.
    pub(crate) async fn start(flags: &[&str]) -> Server {
        Server::prepare(flags).start().await
    }

    fn prepare(flags: &[&str]) -> Stopped {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tokens = format!("{ADMIN_TOKEN},admin,1,\"system:masters\"\n{GUEST_TOKEN},jane,2,\"guests,readers\"\n");
        std::fs::write(folder.path().join("tokens.csv"), tokens).expect("a file can be written");
        Stopped { flags: flags.iter().map(|flag| (*flag).to_owned()).collect(), folder, workers: None }
    }

    /// The folder with all state.
    pub(crate) fn data(&self) -> PathBuf {
        data(self.folder.path())
    }

    /// The arguments that this server was started with.
    pub(crate) fn arguments(&self) -> Vec<String> {
        arguments(self.folder.path(), &self.flags)
    }

    /// A client with the token of the administrator, over HTTP/2.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.kubeconfig.clone()).with_token(ADMIN_TOKEN)
    }

    /// Ends the server in the middle of whatever it does.
    pub(crate) fn kill9(self) -> Stopped {
        let Server { mut process, flags, folder, .. } = self;
        process.kill();
        Stopped { flags, folder, workers: None }
    }

    /// Ends the server in the middle of whatever it does, and starts it again on the same folder.
    pub(crate) async fn restart(self) -> Server {
        self.kill9().start().await
    }

    /// Ends the server as an operator would, and starts it again on the same folder.
    pub(crate) async fn restart_in_order(self) -> Server {
        let (stopped, status) = self.terminate().await;
        assert!(status.success(), "{status}");
        stopped.start().await
    }

    /// Asks the server to stop and waits until it has.
    pub(crate) async fn terminate(self) -> (Stopped, ExitStatus) {
        let Server { mut process, flags, folder, .. } = self;
        process.signal("TERM");
        let status = process.ended().await;
        (Stopped { flags, folder, workers: None }, status)
    }

    /// Whether the server still answers, as one that was not hurt does.
    pub(crate) async fn assert_well(&self) {
        self.client().get("/readyz").await.expect(200);
        self.client().get("/api/v1/namespaces/default").await.expect(200);
    }
}

impl Server {
    /// Runs a command of the program that talks to this server, with more arguments behind, and waits for its end.
    /// Answers its exit code, what it printed, and what it complained about.
    pub(crate) async fn command(&self, line: &str, more: &[&str]) -> (Option<i32>, String, String) {
        let kubeconfig = self.data().join("kubeconfig");
        let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
        command.args(line.split_whitespace()).arg("--kubeconfig").arg(kubeconfig).args(more).stdin(Stdio::null());
        let ended = within(tokio::task::spawn_blocking(move || command.output())).await;
        let output = ended.expect("does not panic").expect("the program can be started");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

/// What is left of a server when its process has ended.
pub(crate) struct Stopped {
    flags: Vec<String>,
    folder: TempDir,
    /// How many async workers the next process has, if that matters.
    workers: Option<usize>,
}

impl Stopped {
    /// The same with other flags.
    pub(crate) fn with_flags(self, flags: &[&str]) -> Stopped {
        Stopped { flags: flags.iter().map(|flag| (*flag).to_owned()).collect(), ..self }
    }

    /// Starts a server on what is left and waits until it is ready.
    pub(crate) async fn start(self) -> Server {
        let Stopped { flags, folder, workers } = self;
        let mut process = server_process(&folder, &flags, workers);
        let line = process.first_line().await;
        assert!(line.starts_with("KUBECONFIG="), "the server did not start, but said {line:?}");
        let kubeconfig = Arc::new(Kubeconfig::read(&data(folder.path()).join("kubeconfig")));
        let server = Server { process, kubeconfig, flags, folder };
        // Which every server speaks.
        let client = server.client().over_http1();
        eventually(|| async { (client.get("/readyz").await.code == 200).then_some(()) }).await;
        server
    }

    /// Starts a server and ends it so soon that it may not have come to serve.
    pub(crate) async fn start_and_kill(&self, after: Duration) {
        let mut process = server_process(&self.folder, &self.flags, self.workers);
        // Whether it was faster is of no interest.
        let _ = tokio::time::timeout(after, process.first_line()).await;
        process.kill();
    }
}

fn server_process(folder: &TempDir, flags: &[String], workers: Option<usize>) -> Process {
    Process::start_with_workers(&arguments(folder.path(), flags), workers, &folder.path().join("log"))
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn arguments(folder: &Path, flags: &[String]) -> Vec<String> {
    let mut arguments = vec![
        "serve".to_owned(),
        "--secure-port=0".to_owned(),
        format!("--data-dir={}", data(folder).display()),
        format!("--token-auth-file={}", folder.join("tokens.csv").display()),
    ];
    // Most tests are about what the API does by itself.
    if !flags.iter().any(|flag| flag.starts_with("--controllers=")) {
        arguments.push("--controllers=none".to_owned());
    }
    arguments.extend(flags.iter().cloned());
    arguments
}
