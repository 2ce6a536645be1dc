//! [`ReloadMetrics`]: what is counted of a configuration that is read again while the server runs. Names and labels are the
//! original's.

use std::time::SystemTime;

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use sha2::{Digest as _, Sha256};

/// What is counted of one configuration.
pub(crate) struct ReloadMetrics {
    reloads: IntCounterVec,
    times: GaugeVec,
    info: IntGaugeVec,
    /// The hash of the server's name.
    server: String,
}

impl ReloadMetrics {
    /// Nothing was read again yet. `what` is the configuration (`authentication`), `server` this server's name among
    /// others.
    pub(crate) fn register(what: &str, server: &str, registry: &Registry) -> anyhow::Result<ReloadMetrics> {
        let name = |end: &str| format!("apiserver_{what}_config_controller_{end}");
        let labels = ["status", "apiserver_id_hash"];
        let reloads = Opts::new(
            name("automatic_reloads_total"),
            format!("How often the {what} configuration was read anew, by how it went"),
        );
        let times = Opts::new(
            name("automatic_reload_last_timestamp_seconds"),
            format!("When the {what} configuration was last read anew, by how it went"),
        );
        let info = Opts::new(name("last_config_info"), format!("Which {what} configuration is in force, by its hash"));
        let metrics = ReloadMetrics {
            reloads: IntCounterVec::new(reloads, &labels)?,
            times: GaugeVec::new(times, &labels)?,
            info: IntGaugeVec::new(info, &["apiserver_id_hash", "hash"])?,
            server: hash(server.as_bytes()),
        };
        registry.register(Box::new(metrics.reloads.clone()))?;
        registry.register(Box::new(metrics.times.clone()))?;
        registry.register(Box::new(metrics.info.clone()))?;
        Ok(metrics)
    }

    /// The configuration with these bytes was read while the server ran, or could not be.
    pub(crate) fn reloaded(&self, result: Result<&[u8], ()>) {
        let status = if result.is_ok() { "success" } else { "failure" };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.reloads.with_label_values(&[status, &self.server]).inc();
        self.times.with_label_values(&[status, &self.server]).set(now.as_secs_f64());
        if let Ok(config) = result {
            self.in_force(config);
        }
    }

    /// The configuration with these bytes is in force.
    pub(crate) fn in_force(&self, config: &[u8]) {
        self.info.reset();
        self.info.with_label_values(&[&self.server, &hash(config)]).set(1);
    }
}

fn hash(data: &[u8]) -> String {
    let digits: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
