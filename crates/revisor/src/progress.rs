//! [`Progress`]: shows on standard error how far a command is: a bar on a terminal, lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How wide a bar is.
const WIDTH: usize = 30;

/// How often a count is shown anew on a terminal, and elsewhere.
const ON_TERMINAL: Duration = Duration::from_millis(100);
const ELSEWHERE: Duration = Duration::from_secs(10);

/// What was shown last, and where.
pub(crate) struct Progress {
    is_terminal: bool,
    shown: String,
    counted: Instant,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { is_terminal: std::io::stderr().is_terminal(), shown: String::new(), counted: Instant::now() }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows a text in place of what was shown before, if it is another one.
    pub(crate) fn show(&mut self, text: String) {
        if text == self.shown {
            return;
        }
        let mut out = std::io::stderr().lock();
        // Whoever cannot be shown anything is told by the exit code.
        let _ = if self.is_terminal { write!(out, "\r\x1b[K{text}") } else { writeln!(out, "{text}") };
        let _ = out.flush();
        self.shown = text;
    }

    /// Shows how much of something is done, now and then.
    pub(crate) fn count(&mut self, doing: &str, done: u64, all: u64) {
        let rest = if self.is_terminal { ON_TERMINAL } else { ELSEWHERE };
        let is_end = self.is_terminal && done >= all;
        if self.counted.elapsed() >= rest || is_end {
            self.counted = Instant::now();
            self.show(format!("{doing} {}", bar(done, all.saturating_sub(done))));
        }
    }

    /// Leaves the line of a bar.
    pub(crate) fn end(&mut self) {
        if self.is_terminal && !self.shown.is_empty() {
            let _ = writeln!(std::io::stderr().lock());
            self.shown.clear();
        }
    }
}

/// `[######........................]  20 % 12 of 60`
pub(crate) fn bar(done: u64, left: u64) -> String {
    let all = done.saturating_add(left);
    let share = |of: u64| {
        if all == 0 { of } else { u64::try_from(u128::from(done) * u128::from(of) / u128::from(all)).unwrap_or(of) }
    };
    let filled = usize::try_from(share(WIDTH as u64)).unwrap_or(WIDTH);
    format!("[{}{}] {:>3} % {done} of {all}", "#".repeat(filled), ".".repeat(WIDTH - filled), share(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        for (done, left, want) in [
            (0, 60, "[..............................]   0 % 0 of 60"),
            (12, 48, "[######........................]  20 % 12 of 60"),
            (60, 0, "[##############################] 100 % 60 of 60"),
            (0, 0, "[##############################] 100 % 0 of 0"),
        ] {
            assert_eq!(bar(done, left), want);
        }
    }
}
