//! This test binary as a child process, for tests in which a process must end badly.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a line that a child means for its parent begins with; the rest is the test harness talking.
const MARK: &str = "> ";
const ROLE: &str = "REVISOR_TEST_ROLE";
const FOLDER: &str = "REVISOR_TEST_FOLDER";
const ARGUMENT: &str = "REVISOR_TEST_ARGUMENT";

/// A command that runs `role` on the store in `folder`.
pub(crate) fn command(role: &str, folder: &Path, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its binary"));
    configure(&mut command, role, folder, argument);
    command
}

/// The same, started by a shell that runs `setup` first.
pub(crate) fn command_after(setup: &str, role: &str, folder: &Path, argument: &str) -> Command {
    let mut command = Command::new("sh");
    let binary = std::env::current_exe().expect("a test knows its binary");
    command.arg("-c").arg(format!("{setup}; exec \"$0\" \"$@\"")).arg(binary);
    configure(&mut command, role, folder, argument);
    command
}

fn configure(command: &mut Command, role: &str, folder: &Path, argument: &str) {
    command
        .args(["child::entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .env(ARGUMENT, argument)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
}

/// Where children start. As a test of its own it shows that a plain run of the tests is nobody's child.
#[test]
fn entry() {
    let Ok(role) = std::env::var(ROLE) else {
        assert!(std::env::var(FOLDER).is_err(), "a child without a role");
        return;
    };
    let folder = std::env::var(FOLDER).expect("a child is told its folder");
    let argument = std::env::var(ARGUMENT).expect("a child is told its argument");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be started").block_on(async {
        match role.as_str() {
            "frozen" => crate::frozen_disk::child(Path::new(&folder)).await,
            "killed" => crate::kill::child(Path::new(&folder), &argument).await,
            "full" => crate::read_only::child(Path::new(&folder)).await,
            _ => panic!("unknown role {role}"),
        }
    });
}

/// Tells the parent a line.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The harness leaves its own line unfinished. In one piece, so that lines of threads do not mix.
    out.write_all(format!("\n{MARK}{line}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}

/// What of a child's output was meant for the parent. A line that the end cut short does not count.
pub(crate) fn said(output: &str) -> impl Iterator<Item = &str> {
    output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.strip_prefix(MARK))
}
