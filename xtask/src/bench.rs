//! `cargo xtask bench`: builds the release binaries and hands over to `revisor-bench`.
//!
//! The load generator is a crate of its own because it shares the machine with the server that it measures, so it must
//! be built with the same optimisations; xtask itself is a debug build.

use anyhow::Result;

use crate::workspace::{self, Workspace};
use crate::{instructions, valgrind};

/// Measures with these arguments; see `revisor-bench --help`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if instructions::is_asked_for(arguments) {
        valgrind::provide()?;
        return instructions::count(workspace, arguments);
    }
    let mut build = vec!["build", "--release", "--quiet", "--package", "revisor-bench"];
    let needs_server = needs_server(arguments);
    if needs_server {
        build.extend(["--package", "revisor"]);
    }
    eprintln!("building release binaries");
    workspace::run(&mut workspace.cargo(build))?;

    let release = workspace.target().join("release");
    let mut bench = std::process::Command::new(release.join("revisor-bench"));
    if needs_server {
        bench.arg("--binary").arg(release.join("revisor"));
    }
    workspace::run(bench.args(arguments))
}

/// Whether the arguments leave it to the bench to start a server.
fn needs_server(arguments: &[String]) -> bool {
    let names = |argument: &String, flag: &str| argument == flag || argument.starts_with(&format!("{flag}="));
    !arguments.iter().any(|argument| {
        names(argument, "--server") || names(argument, "--binary") || matches!(argument.as_str(), "--help" | "-h")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_built_unless_one_is_named() {
        for (line, want) in [
            ("", true),
            ("--objects 100", true),
            ("--peer https://127.0.0.1:6443", true),
            ("--server https://127.0.0.1:6443", false),
            ("--server=https://127.0.0.1:6443", false),
            ("--binary ./revisor", false),
            ("--help", false),
        ] {
            let arguments: Vec<String> = line.split_whitespace().map(String::from).collect();
            assert_eq!(needs_server(&arguments), want, "{line}");
        }
    }
}
