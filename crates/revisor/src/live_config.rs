//! [`LiveConfig`]: a configuration that follows its file while the server runs. What cannot be put in force changes
//! nothing: the old one stays, and the log and a metric say so.

use std::path::Path;
use std::time::Duration;

use crate::config_file::read;

/// How often the file is looked at.
const LOOKING: Duration = Duration::from_secs(1);

/// A configuration in force, and the file that it came from.
pub(crate) trait LiveConfig: Send + Sized + 'static {
    /// What it is called in the log.
    const NAME: &'static str;

    /// Where the file is.
    fn path(&self) -> &Path;

    /// What stood in the file when it was put in force.
    fn text(&self) -> &[u8];

    /// Puts in force what the file says now: all of it, or nothing. May block.
    fn put_in_force(&mut self, text: Vec<u8>) -> anyhow::Result<()>;
}

/// Follows the file until it is dropped. `count` is told of each change: what is in force now, or that it is not taken.
pub(crate) async fn follow<C: LiveConfig>(mut config: C, count: impl Fn(Result<&[u8], ()>)) {
    let mut ticks = tokio::time::interval(LOOKING);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut refused: Option<String> = None;
    loop {
        ticks.tick().await;
        let looked = tokio::task::spawn_blocking(move || {
            let outcome = look(&mut config);
            (config, outcome)
        });
        let Ok((looked, outcome)) = looked.await else {
            tracing::error!("the {} configuration is not followed any more", C::NAME);
            return;
        };
        config = looked;
        match outcome {
            Ok(false) => refused = None,
            Ok(true) => {
                refused = None;
                count(Ok(config.text()));
                tracing::info!(file = %config.path().display(), "the {} configuration changed", C::NAME);
            }
            Err(error) => {
                let error = format!("{error:#}");
                // Said once for each way in which it is wrong, not every second.
                if refused.as_ref() != Some(&error) {
                    count(Err(()));
                    let file = config.path().display();
                    tracing::error!(%file, error, "the {} configuration is not taken, the old one stays", C::NAME);
                    refused = Some(error);
                }
            }
        }
    }
}

fn look(config: &mut impl LiveConfig) -> anyhow::Result<bool> {
    let text = read(config.path())?;
    if text == config.text() {
        return Ok(false);
    }
    config.put_in_force(text)?;
    Ok(true)
}
