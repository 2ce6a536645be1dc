//! The upstream client for Python, doing what its users do.
//!
//! `REVISOR_PYTHON` names a Python that has it; if it is unset, `cargo xtask python` provides one.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::harness::{Server, within};
use crate::xtask;

#[tokio::test]
async fn programs_written_with_the_python_client_work() {
    let server = Server::start(&[]).await;
    let kubeconfig = server.data().join("kubeconfig");
    let home = tempfile::tempdir().expect("a temporary folder");
    let running = tokio::task::spawn_blocking(move || {
        let python = std::env::var_os("REVISOR_PYTHON").map_or_else(|| xtask::path_of("python"), PathBuf::from);
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python_client.py");
        Command::new(python)
            .arg(script)
            .env("KUBECONFIG", kubeconfig)
            // Its cache of discovery lives there.
            .env("TMPDIR", home.path())
            .stdin(Stdio::null())
            .output()
            .expect("python can be started")
    });
    let output = within(running).await.expect("waiting does not panic");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all as it should be"), "{said}");
}
