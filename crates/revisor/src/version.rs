//! What this program is, and which releases of Kubernetes it is, behaves as and gets along with.

use revisor_catalog::BINARY;
use revisor_version::EffectiveVersion;
use serde_json::{Value, json};

/// What `/version` answers.
pub(crate) fn info(version: EffectiveVersion) -> Value {
    let (binary, emulation, least) = (version.binary(), version.emulation(), version.min_compatibility());
    json!({
        "major": binary.major.to_string(),
        "minor": binary.minor.to_string(),
        "emulationMajor": emulation.major.to_string(),
        "emulationMinor": emulation.minor.to_string(),
        "minCompatibilityMajor": least.major.to_string(),
        "minCompatibilityMinor": least.minor.to_string(),
        "gitVersion": format!("v{}", binary_version()),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

/// The version of this program, in the way of a release of Kubernetes.
pub(crate) fn binary_version() -> String {
    format!("{BINARY}.0+revisor-{}", env!("CARGO_PKG_VERSION"))
}

/// What `revisor version` prints.
pub(crate) fn text() -> String {
    format!("revisor {} (Kubernetes {BINARY})\n", env!("CARGO_PKG_VERSION"))
}

/// The machine's architecture, by the name that clients know.
pub(crate) fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
