//! Tools that `cargo xtask` provides, where the environment does not name them.

use std::path::PathBuf;
use std::process::Command;

/// The path that `cargo xtask TASK` prints.
pub(crate) fn path_of(task: &str) -> PathBuf {
    let words = std::iter::once("xtask").chain(task.split(' '));
    let provided = Command::new(env!("CARGO")).args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let provided = provided.expect("cargo can be started");
    assert!(provided.status.success(), "no {task}: {}", String::from_utf8_lossy(&provided.stderr));
    String::from_utf8(provided.stdout).expect("a path").trim().into()
}
