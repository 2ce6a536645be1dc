//! Provides valgrind, by which instructions are counted, where the system's package client can be asked for it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::{self, find_on_path};

/// Makes sure that there is a valgrind on PATH; says why there cannot be one.
pub(crate) fn provide() -> Result<()> {
    if is_there() {
        return Ok(());
    }
    if !cfg!(target_os = "linux") {
        bail!("valgrind is not made for this system");
    }
    let client = find_on_path("apt-get").context("there is no valgrind, and no apt-get to install it")?;
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let mut command = if is_root {
        Command::new(client)
    } else {
        let mut command = Command::new("sudo");
        // Who is not there cannot be asked for a password.
        command.arg("--non-interactive").arg(client);
        command
    };
    command.args(["install", "--yes", "--quiet", "valgrind"]).env("DEBIAN_FRONTEND", "noninteractive");
    workspace::run(command.stdin(Stdio::null())).context("there is no valgrind, and it cannot be installed")?;
    if !is_there() {
        bail!("valgrind was installed and is not on PATH");
    }
    Ok(())
}

fn is_there() -> bool {
    ["valgrind", "vgdb", "callgrind_annotate"].iter().all(|program| find_on_path(program).is_some())
}
