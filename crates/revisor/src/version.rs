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

/// The version of this program, and the releases that it can be.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (Kubernetes 1.36; 1.33, 1.34 and 1.35 by --emulation-version)");

/// What `revisor version` prints.
pub(crate) fn text() -> String {
    format!("revisor {VERSION}\n")
}

/// The machine's architecture, by the name that clients know.
pub(crate) fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_releases_that_it_can_be_are_named() {
        let releases: Vec<String> = EffectiveVersion::reachable(BINARY).map(|release| release.to_string()).collect();
        let (newest, others) = releases.split_last().expect("there is one");
        let (last, first) = others.split_last().expect("there are others");
        let want = format!("(Kubernetes {newest}; {} and {last} by --emulation-version)", first.join(", "));
        assert!(VERSION.ends_with(&want), "{VERSION}, want {want}");
    }
}
