//! What the server is, which features are on, and who should move on: series that say more with labels than with
//! numbers.

use prometheus::{IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};
use revisor_version::{EffectiveVersion, FeatureGates};

use super::registered;

/// The program whose version it is. Programs that extend the API would be others.
const COMPONENT: &str = "kube";

/// What is told of a build: the label, and the member of `/version`.
const BUILD: [(&str, &str); 9] = [
    ("build_date", "buildDate"),
    ("compiler", "compiler"),
    ("git_commit", "gitCommit"),
    ("git_tree_state", "gitTreeState"),
    ("git_version", "gitVersion"),
    ("go_version", "goVersion"),
    ("major", "major"),
    ("minor", "minor"),
    ("platform", "platform"),
];

pub(super) struct VersionMetrics {
    info: IntGaugeVec,
    build: IntGaugeVec,
    features: IntGaugeVec,
    deprecated: IntGaugeVec,
    outside_skew: IntCounterVec,
}

impl VersionMetrics {
    pub(super) fn new(registry: &Registry) -> VersionMetrics {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        VersionMetrics {
            info: gauge(
                "version_info",
                "Always 1: which release the server is, behaves as, and keeps compatible with",
                &["component", "binary", "emulation", "min_compat"],
            ),
            build: gauge(
                "kubernetes_build_info",
                "Always 1: of what the server was built",
                &BUILD.map(|(label, _)| label),
            ),
            features: gauge(
                "kubernetes_feature_enabled",
                "Whether a feature is on, with the stage that it has in the release that the server behaves as",
                &["name", "stage"],
            ),
            deprecated: gauge(
                "apiserver_requested_deprecated_apis",
                "1 for every deprecated API that somebody asked for since the server started",
                &["group", "version", "resource", "subresource", "removed_release"],
            ),
            outside_skew: registered(
                registry,
                IntCounterVec::new(
                    Opts::new(
                        "revisor_requests_outside_skew_total",
                        "Requests of components that are too old or too new for the server, by their release",
                    ),
                    &["component", "version"],
                ),
            ),
        }
    }

    pub(super) fn tell(&self, binary: &str, version: EffectiveVersion, gates: &FeatureGates) {
        let (emulation, least) = (version.emulation().to_string(), version.min_compatibility().to_string());
        self.info.with_label_values(&[COMPONENT, binary, &emulation, &least]).set(1);
        for (name, gate, is_enabled) in gates.iter() {
            self.features.with_label_values(&[name, gate.stage.label()]).set(is_enabled.into());
        }
    }

    pub(super) fn tell_build(&self, version: &serde_json::Value) {
        let values = BUILD.map(|(_, member)| version[member].as_str().unwrap_or_default());
        self.build.with_label_values(&values).set(1);
    }

    pub(super) fn deprecated(&self, api: &DeprecatedApi<'_>) {
        let DeprecatedApi { group, version, resource, subresource, removed } = *api;
        self.deprecated.with_label_values(&[group, version, resource, subresource, removed]).set(1);
    }

    pub(super) fn outside_skew(&self, component: &str, version: &str) -> IntCounter {
        self.outside_skew.with_label_values(&[component, version])
    }
}

/// A deprecated API that somebody asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeprecatedApi<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    /// The release that no longer has it; empty if that is not decided.
    pub(crate) removed: &'a str,
}

#[cfg(test)]
mod tests {
    use revisor_version::Release;

    use crate::Metrics;

    use super::*;

    #[test]
    fn the_server_says_what_it_is_and_which_features_are_on() {
        let metrics = Metrics::new(Vec::new);
        let text = metrics.render();
        for name in ["version_info", "kubernetes_feature_enabled", "apiserver_requested_deprecated_apis"] {
            assert!(!text.contains(name), "{name} without anything to say");
        }
        let version = EffectiveVersion::parse(Release { major: 1, minor: 36 }, &["1.34"], &[]).expect("can be reached");
        let gates = FeatureGates::parse(&["WatchList=false"], version, false).expect("can be set");
        metrics.tell_version("1.36.0+revisor-0", version, &gates);
        let api = DeprecatedApi { group: "", version: "v1", resource: "endpoints", subresource: "", removed: "" };
        metrics.deprecated_api_requested(&api);
        metrics.deprecated_api_requested(&api);
        metrics.outside_skew("kubectl", "1.30").inc_by(2);
        let text = metrics.render();
        for line in [
            "version_info{binary=\"1.36.0+revisor-0\",component=\"kube\",emulation=\"1.34\",min_compat=\"1.33\"} 1",
            "kubernetes_feature_enabled{name=\"WatchList\",stage=\"BETA\"} 0",
            "kubernetes_feature_enabled{name=\"JobManagedBy\",stage=\"BETA\"} 1",
            "kubernetes_feature_enabled{name=\"AllAlpha\",stage=\"ALPHA\"} 0",
            "kubernetes_feature_enabled{name=\"APIServerTracing\",stage=\"\"} 1",
            "apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"endpoints\",\
             subresource=\"\",version=\"v1\"} 1",
            "revisor_requests_outside_skew_total{component=\"kubectl\",version=\"1.30\"} 2",
        ] {
            assert!(text.lines().any(|got| got == line), "{line}\nis not in\n{text}");
        }
        let shown = text.lines().filter(|line| line.starts_with("kubernetes_feature_enabled{")).count();
        assert_eq!(shown, gates.iter().count());
    }
}
