//! The log: lines on standard error, as text or as JSON.

use tracing_subscriber::EnvFilter;

use crate::flags::LoggingFormat;

/// Starts to write the log.
pub(crate) fn start(verbosity: u8, format: LoggingFormat) {
    let level = match verbosity {
        0..=3 => "info",
        4..=5 => "debug",
        _ => "trace",
    };
    // What the libraries below have to say is for those who debug them.
    let filter = EnvFilter::new(format!(
        "warn,revisor={level},revisor_api={level},revisor_auth={level},revisor_cache={level},revisor_registry={level},revisor_store={level}"
    ));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match format {
        LoggingFormat::Text => log.with_ansi(false).init(),
        LoggingFormat::Json => log.json().init(),
    }
}
