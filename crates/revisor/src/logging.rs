//! The log: lines on standard error, as text or as JSON.

use std::sync::Arc;

use revisor_api::SetVerbosity;
use tracing_subscriber::EnvFilter;

use crate::flags::LoggingFormat;

/// Starts to write the log, and answers how to set later how much is written.
pub(crate) fn start(verbosity: u8, format: LoggingFormat) -> SetVerbosity {
    let log = tracing_subscriber::fmt().with_env_filter(filter(verbosity));
    let log = log.with_writer(std::io::stderr).with_target(false);
    match format {
        LoggingFormat::Text => {
            let log = log.with_ansi(false).with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            setter(move |filter| handle.reload(filter).map_err(|error| error.to_string()))
        }
        LoggingFormat::Json => {
            let log = log.json().with_filter_reloading();
            let handle = log.reload_handle();
            log.init();
            setter(move |filter| handle.reload(filter).map_err(|error| error.to_string()))
        }
    }
}

/// Sets how much is logged to what somebody says (upstream: `GlogSetter`).
fn setter(reload: impl Fn(EnvFilter) -> Result<(), String> + Send + Sync + 'static) -> SetVerbosity {
    Arc::new(move |text| {
        let level = text.trim().parse::<i32>().map_err(|error| error.to_string());
        let set = level.and_then(|level| reload(filter(u8::try_from(level.max(0)).unwrap_or(u8::MAX))));
        match set {
            Ok(()) => Ok(format!("successfully set klog.logging.verbosity to {text}")),
            Err(error) => Err(format!("failed set klog.logging.verbosity {text}: {error}")),
        }
    })
}

/// What is written at a verbosity.
fn filter(verbosity: u8) -> EnvFilter {
    let level = match verbosity {
        0..=3 => "info",
        4..=5 => "debug",
        _ => "trace",
    };
    // What the libraries below have to say is for those who debug them.
    EnvFilter::new(format!(
        "warn,revisor={level},revisor_api={level},revisor_auth={level},revisor_cache={level},revisor_registry={level},revisor_store={level}"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn the_verbosity_is_set_in_the_words_of_the_original() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let set = setter({
            let seen = seen.clone();
            move |filter| {
                seen.lock().expect("nobody panics").push(filter.to_string());
                Ok(())
            }
        });
        assert_eq!(set("4"), Ok("successfully set klog.logging.verbosity to 4".to_owned()));
        assert!(seen.lock().expect("nobody panics")[0].contains("revisor=debug"));
        let refused = set("loud").expect_err("is no number");
        assert!(refused.starts_with("failed set klog.logging.verbosity loud: "), "{refused}");
        assert_eq!(seen.lock().expect("nobody panics").len(), 1);
    }
}
