//! [`Tally`]: how many tests of a suite passed, failed and were left out, read from what its runner prints,
//! and how long they took.

use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u32,
    pub(super) failed: u32,
    pub(super) skipped: u32,
    /// Without what it takes to fetch and build them, where that can be told.
    pub(super) time: Duration,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.time += other.time;
    }
}

/// Something that prints results.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runner {
    /// `go test -v`, with or without Ginkgo.
    Go,
    /// Python's unittest.
    Unittest,
    /// `node --test --test-reporter=tap`.
    Node,
}

/// Runs a suite, passes on what it prints, and counts.
pub(super) fn count(command: &mut Command, runner: Runner) -> Result<Tally> {
    let program = command.get_program().to_string_lossy().into_owned();
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {program}"))?;
    let mut reader = Reader::new(runner);
    for line in BufReader::new(child.stdout.take().context("its output is a pipe")?).lines() {
        let line = line.with_context(|| format!("{program} does not speak UTF-8"))?;
        println!("{line}");
        reader.read(&line);
    }
    let status = child.wait().with_context(|| format!("cannot wait for {program}"))?;
    let mut tally = reader.tally;
    if tally.time.is_zero() {
        tally.time = begun.elapsed();
    }
    if !status.success() && tally.failed == 0 {
        bail!("{program} ended with {status}, and not because of a test");
    }
    Ok(tally)
}

/// Counts line by line.
struct Reader {
    runner: Runner,
    tally: Tally,
    /// Whether Ginkgo's specs of the test that runs are counted already, so that it is none by itself.
    of_ginkgo: bool,
}

impl Reader {
    fn new(runner: Runner) -> Reader {
        Reader { runner, tally: Tally::default(), of_ginkgo: false }
    }

    fn read(&mut self, line: &str) {
        match self.runner {
            Runner::Go => self.read_go(line),
            Runner::Unittest => self.read_unittest(line),
            Runner::Node => match line.rsplit_once(' ').map(|(words, number)| (words, number.parse())) {
                Some(("# pass", Ok(passed))) => self.tally.passed = passed,
                Some(("# fail", Ok(failed))) => self.tally.failed = failed,
                Some(("# skipped", Ok(skipped))) => self.tally.skipped = skipped,
                _ => {}
            },
        }
    }

    fn read_go(&mut self, line: &str) {
        if line.contains(" Passed | ") && line.contains(" Pending | ") {
            let [passed, failed, pending, skipped] =
                ["Passed", "Failed", "Pending", "Skipped"].map(|word| number_before(line, word));
            self.tally += Tally { passed, failed, skipped: pending + skipped, ..Tally::default() };
            self.of_ginkgo = true;
            return;
        }
        if let Some(time) = time_of_package(line) {
            self.tally.time += time;
            return;
        }
        // Subtests are indented; they are part of their test.
        let counter = match line.split_once(": ").map(|(verdict, _)| verdict) {
            Some("--- PASS") => &mut self.tally.passed,
            Some("--- FAIL") => &mut self.tally.failed,
            Some("--- SKIP") => &mut self.tally.skipped,
            _ => return,
        };
        *counter += u32::from(!std::mem::take(&mut self.of_ginkgo));
    }

    /// `Ran 4 tests in 0.1s`, and then `FAILED (failures=1, errors=1, skipped=1)` or `OK`.
    fn read_unittest(&mut self, line: &str) {
        if line.starts_with("Ran ") {
            self.tally.passed = number_before(line, "tests") + number_before(line, "test");
            return;
        }
        let Some((verdict, counts)) = line.trim_end_matches(')').split_once(" (") else { return };
        if !matches!(verdict, "OK" | "FAILED") {
            return;
        }
        for (what, number) in counts.split(", ").filter_map(|count| count.split_once('=')) {
            let number = number.parse().unwrap_or_default();
            self.tally.passed = self.tally.passed.saturating_sub(number);
            match what {
                "skipped" => self.tally.skipped += number,
                _ => self.tally.failed += number,
            }
        }
    }
}

/// The time that the tests of a package took: `ok  <package>  3.214s`, or `FAIL`.
fn time_of_package(line: &str) -> Option<Duration> {
    let mut fields = line.split('\t');
    let verdict = fields.next()?.trim();
    let seconds = fields.nth(1)?.trim().strip_suffix('s')?.parse().ok()?;
    matches!(verdict, "ok" | "FAIL").then(|| Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// The number in front of a word; nothing is none.
fn number_before(line: &str, word: &str) -> u32 {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|candidate| *candidate == word).filter(|at| *at > 0);
    at.and_then(|at| words[at - 1].parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_understood() {
        let table = [
            (
                Runner::Go,
                "=== RUN   TestSource\nRan 12 of 15 Specs in 3.214 seconds\n\
                 FAIL! -- 10 Passed | 2 Failed | 2 Pending | 1 Skipped\n--- FAIL: TestSource (3.22s)\n\
                 === RUN   TestPlain\n    --- PASS: TestPlain/part (0.00s)\n--- PASS: TestPlain (0.00s)\n\
                 --- SKIP: TestLater (0.00s)\nFAIL\nFAIL\texample.com/a\t3.250s\nok  \texample.com/b\t0.750s",
                (11, 2, 4, 4),
            ),
            (
                Runner::Unittest,
                "test_a (m.A.test_a) ... said\nok\ntest_b (m.A.test_b) ... FAIL\n\nRan 4 tests in 0.1s\n\n\
                 FAILED (failures=1, errors=1, skipped=1)",
                (1, 2, 1, 0),
            ),
            (Runner::Node, "ok 1 - a\n# tests 6\n# pass 5\n# fail 1\n# skipped 0", (5, 1, 0, 0)),
        ];
        for (runner, text, (passed, failed, skipped, seconds)) in table {
            let mut reader = Reader::new(runner);
            text.lines().for_each(|line| reader.read(line));
            let time = Duration::from_secs(seconds);
            assert_eq!(reader.tally, Tally { passed, failed, skipped, time }, "{runner:?}");
        }
    }
}
