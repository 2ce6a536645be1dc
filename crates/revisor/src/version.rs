//! What this program is, and which release of Kubernetes it behaves as.

use revisor_version::Release;
use serde_json::{Value, json};

/// The release of Kubernetes that this program behaves as.
pub(crate) const BINARY: Release = Release { major: 1, minor: 36 };

/// What `/version` answers.
pub(crate) fn info() -> Value {
    let least = BINARY.minus(1);
    json!({
        "major": BINARY.major.to_string(),
        "minor": BINARY.minor.to_string(),
        "emulationMajor": BINARY.major.to_string(),
        "emulationMinor": BINARY.minor.to_string(),
        "minCompatibilityMajor": least.major.to_string(),
        "minCompatibilityMinor": least.minor.to_string(),
        "gitVersion": format!("v{BINARY}.0+revisor-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

/// What `revisor version` prints.
pub(crate) fn text() -> String {
    format!("revisor {} (Kubernetes {BINARY})\n", env!("CARGO_PKG_VERSION"))
}

/// The machine's architecture, by the name that clients know.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
