//! [`Watcher`]: reads the files again when they change. Rules that cannot be used change nothing.
//!
//! The files are read, all of them, every time: they are few and short, and there is no way to change one that is
//! overlooked, not even by swapping links as mounted volumes do.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use super::announce;
use super::rule_book::RuleBook;
use super::tally::Tally;
use crate::crd::SourceFile;

/// What the files were when they were looked at last.
type Seen = Result<Vec<SourceFile>, String>;

/// Follows the files.
pub(super) struct Watcher {
    /// Nothing if they are not to be followed.
    paths: Option<Vec<PathBuf>>,
    seen: Seen,
    rules: watch::Sender<Arc<RuleBook>>,
    trouble: watch::Sender<Option<String>>,
    tally: Arc<Tally>,
}

impl Watcher {
    /// Follows files that have just been read, and says so in `rules` when there are new ones.
    pub(super) fn new(
        paths: Option<Vec<PathBuf>>,
        files: Vec<SourceFile>,
        rules: watch::Sender<Arc<RuleBook>>,
        tally: Arc<Tally>,
    ) -> Watcher {
        Watcher { paths, seen: Ok(files), rules, trouble: watch::Sender::new(None), tally }
    }

    /// Why the rules in use are not those in the files.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Looks whether something has changed. Blocks.
    pub(super) fn look(&mut self) {
        let Some(paths) = &self.paths else { return };
        let found = SourceFile::read_all(paths).map_err(|error| format!("{error:#}"));
        if found == self.seen {
            return;
        }
        let read = match &found {
            Ok(files) => RuleBook::read(files).map_err(|problems| problems.join("\n")),
            Err(problem) => Err(problem.clone()),
        };
        self.seen = found;
        self.tally.reloaded(read.is_ok());
        match read {
            Ok(book) => {
                tracing::info!("the files have changed and are used from now on");
                announce(&book, &self.tally);
                self.rules.send_replace(Arc::new(book));
                self.trouble.send_replace(None);
            }
            Err(problem) => {
                tracing::error!(problem, "the files have changed and cannot be used; the rules stay as they are");
                self.trouble.send_replace(Some(problem));
            }
        }
    }
}
