//! How often the webhooks and policies that stand in files were read, and which are in force.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use sha2::{Digest, Sha256};

use super::registered;

const LABELS: [&str; 3] = ["status", "plugin", "apiserver_id_hash"];

pub(super) struct ManifestMetrics {
    reloads: IntCounterVec,
    last: GaugeVec,
    info: IntGaugeVec,
    /// The server and the hash that each plugin has a series with.
    in_force: Mutex<HashMap<String, [String; 2]>>,
}

impl ManifestMetrics {
    pub(super) fn new(registry: &Registry) -> ManifestMetrics {
        let name = |name: &str| format!("apiserver_manifest_admission_config_controller_{name}");
        let help = "Times that the admission manifests of a plugin were read, by whether they could be used";
        let reloads = IntCounterVec::new(Opts::new(name("automatic_reloads_total"), help), &LABELS);
        let help = "When the admission manifests of a plugin were last read, by whether they could be used";
        let last = GaugeVec::new(Opts::new(name("automatic_reload_last_timestamp_seconds"), help), &LABELS);
        let help = "Always 1: the hash of the admission manifests of a plugin that are in force";
        let labels = ["plugin", "apiserver_id_hash", "hash"];
        let info = IntGaugeVec::new(Opts::new(name("last_config_info"), help), &labels);
        ManifestMetrics {
            reloads: registered(registry, reloads),
            last: registered(registry, last),
            info: registered(registry, info),
            in_force: Mutex::default(),
        }
    }

    /// The manifests of a plugin were read: with this hash, or they could not be used.
    pub(super) fn reloaded(&self, plugin: &str, server: &str, hash: Option<&str>, now: SystemTime) {
        let hex = |name: &str| Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let server = if server.is_empty() { String::new() } else { format!("sha256:{}", hex(server)) };
        let labels = [if hash.is_some() { "success" } else { "failure" }, plugin, server.as_str()];
        self.reloads.with_label_values(&labels).inc();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.last.with_label_values(&labels).set(since.as_secs_f64());
        let Some(hash) = hash else { return };
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = in_force.insert(plugin.to_owned(), [server.clone(), hash.to_owned()]) {
            let [server, hash] = &before;
            // That it was there is known.
            let _ = self.info.remove_label_values(&[plugin, server, hash]);
        }
        self.info.with_label_values(&[plugin, &server, hash]).set(1);
    }
}

#[cfg(test)]
mod tests {
    use crate::Metrics;

    #[test]
    fn only_what_is_in_force_is_told() {
        let metrics = Metrics::new(Vec::new);
        assert!(!metrics.render().contains("manifest_admission_config"));
        for hash in [Some("sha256:a"), None, Some("sha256:b")] {
            metrics.manifests_reloaded("ValidatingAdmissionPolicy", "", hash);
        }
        let text = metrics.render();
        let name = "apiserver_manifest_admission_config_controller";
        for (line, want) in [
            (
                r#"automatic_reloads_total{apiserver_id_hash="",plugin="ValidatingAdmissionPolicy",status="success"} 2"#,
                true,
            ),
            (
                r#"automatic_reloads_total{apiserver_id_hash="",plugin="ValidatingAdmissionPolicy",status="failure"} 1"#,
                true,
            ),
            (r#"last_config_info{apiserver_id_hash="",hash="sha256:b",plugin="ValidatingAdmissionPolicy"} 1"#, true),
            (r#"last_config_info{apiserver_id_hash="",hash="sha256:a",plugin="ValidatingAdmissionPolicy"} 1"#, false),
        ] {
            assert_eq!(text.contains(&format!("{name}_{line}")), want, "{line}\n{text}");
        }
    }
}
