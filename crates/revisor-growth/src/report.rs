//! [`Report`]: what was measured, for people.

use std::fmt::Write as _;
use std::time::Duration;

use revisor_registry::RegistryError;

use crate::growth::Growth;

/// One thing that was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The API version and resource, or another name.
    pub subject: String,
    /// The list or map that grew.
    pub place: String,
    /// How its items differ.
    pub variation: &'static str,
    /// The way in which it was written.
    pub way: &'static str,
    /// What it costs.
    pub growth: Growth,
    /// Whether it was taken, or refused with a reason.
    pub is_taken: bool,
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Report {
    measured: Vec<Measured>,
    /// Kinds whose small object was refused, with the reason.
    refused: Vec<String>,
}

impl Report {
    /// Adds one thing.
    pub fn add(&mut self, measured: Measured) {
        self.measured.push(measured);
    }

    /// Notes whether the small object of a kind was stored.
    pub fn note_small(&mut self, subject: &str, refusal: Option<RegistryError>) {
        self.refused.extend(refusal.map(|error| format!("{subject}: {error}: {error:?}")));
    }

    /// The kinds whose small object was refused: nothing is known of their updates.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// What was measured.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// What grows with a higher power than this, the worst first.
    pub fn above(&self, limit: f64) -> Vec<&Measured> {
        let mut above: Vec<&Measured> = self.sorted();
        above.retain(|measured| measured.growth.exponent().is_some_and(|exponent| exponent > limit));
        above
    }

    /// All that was measured, what grows most first, and what is too small to say last.
    fn sorted(&self) -> Vec<&Measured> {
        let mut all: Vec<&Measured> = self.measured.iter().collect();
        let exponent = |measured: &Measured| measured.growth.exponent().unwrap_or(f64::MIN);
        all.sort_by(|one, two| exponent(two).total_cmp(&exponent(one)));
        all
    }

    /// The report as a table of so many rows, and what is above the limit in full.
    pub fn table(&self, rows: usize, limit: f64) -> String {
        let sorted = self.sorted();
        let above = self.above(limit);
        let mut text = format!(
            "{:>8} {:>7} {:>7} {:>10} {:>10}  {:<10} {:<9} {}\n",
            "exponent", "reading", "items", "at n", "at 4n", "way", "items are", "where"
        );
        for measured in sorted.iter().take(rows.max(above.len())) {
            let Growth { items, small, large, reading } = measured.growth;
            let power = |exponent: Option<f64>| exponent.map_or("-".to_owned(), |exponent| format!("{exponent:.2}"));
            let (exponent, reading) = (power(measured.growth.exponent()), power(reading));
            let refused = if measured.is_taken { "" } else { " (refused)" };
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{exponent:>8} {reading:>7} {items:>7} {:>10} {:>10}  {:<10} {:<9} {} {}{refused}",
                shown(small),
                shown(large),
                measured.way,
                measured.variation,
                measured.subject,
                measured.place,
            );
        }
        let small = sorted.iter().filter(|measured| measured.growth.exponent().is_none()).count();
        let _ = writeln!(
            text,
            "{} measured, {small} too small to say, {} above {limit}, {} small objects refused",
            sorted.len(),
            above.len(),
            self.refused.len()
        );
        for refused in &self.refused {
            let _ = writeln!(text, "refused: {refused}");
        }
        text
    }
}

fn shown(time: Duration) -> String {
    format!("{:.2}ms", time.as_secs_f64() * 1e3)
}
