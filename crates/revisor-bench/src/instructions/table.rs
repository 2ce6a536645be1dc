//! [`Table`]: how many instructions each operation took when somebody last looked, and what became of that.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// By how much an operation may grow before somebody has to say that this is meant, in hundredths.
const TOLERANCE: u64 = 10;

/// The first line of the file.
const HEADER: &str = "operation,instructions";

/// What one operation takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// The kind of object and what is done, `pods-create` say.
    pub operation: String,
    /// Of the server, for one of them.
    pub instructions: u64,
}

/// What operations took before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table(BTreeMap<String, u64>);

impl Table {
    /// Reads a table that was written.
    pub fn read(path: &Path) -> Result<Table> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Table::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Table> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            bail!("does not begin with {HEADER}");
        }
        let row = |line: &str| -> Result<(String, u64)> {
            let (operation, count) = line.split_once(',').with_context(|| format!("{line:?} is no row"))?;
            Ok((operation.to_owned(), count.parse().with_context(|| format!("{line:?} has no count"))?))
        };
        Ok(Table(lines.map(row).collect::<Result<_>>()?))
    }

    /// The table that says what was counted, as it is kept. Counts are rounded to three digits: the others differ from
    /// run to run, and a change should show what changed.
    pub fn text(counts: &[Count]) -> String {
        let mut text = format!("{HEADER}\n");
        for count in counts {
            // Nothing fails that writes to a string.
            let _ = writeln!(text, "{},{}", count.operation, rounded(count.instructions));
        }
        text
    }

    /// What was counted beside what was counted before, for people.
    pub fn compare(&self, counts: &[Count]) -> String {
        let mut text = format!("{:<32} {:>14} {:>14} {:>9}\n", "operation", "instructions", "before", "change");
        for Count { operation, instructions } in counts {
            let before = self.0.get(operation);
            let shown = before.map_or_else(|| "-".to_owned(), u64::to_string);
            let change = before.map_or_else(String::new, |before| {
                format!("{:+.1} %", (*instructions as f64 / (*before).max(1) as f64 - 1.0) * 100.0)
            });
            let _ = writeln!(text, "{operation:<32} {instructions:>14} {shown:>14} {change:>9}");
        }
        text
    }

    /// What grew by more than may go unnoticed, or is not in the table.
    pub fn grown<'a>(&self, counts: &'a [Count]) -> Vec<&'a str> {
        let has_grown = |count: &&Count| {
            let limit = self.0.get(&count.operation).map(|before| before.saturating_mul(100 + TOLERANCE) / 100);
            limit.is_none_or(|limit| count.instructions > limit)
        };
        counts.iter().filter(has_grown).map(|count| count.operation.as_str()).collect()
    }
}

fn rounded(count: u64) -> u64 {
    let digits = count.checked_ilog10().unwrap_or_default().saturating_sub(2);
    let unit = 10_u64.saturating_pow(digits);
    count.saturating_add(unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, u64)]) -> Vec<Count> {
        let count = |&(operation, instructions): &(&str, u64)| Count { operation: operation.to_owned(), instructions };
        counts.iter().map(count).collect()
    }

    #[test]
    fn what_grows_by_more_than_a_tenth_is_told() {
        let before = Table::parse(&Table::text(&counts(&[("pods-create", 100_000), ("pods-get", 20_000)])));
        let before = before.expect("it is a table");
        for (name, now, want) in [
            ("equal", vec![("pods-create", 100_000), ("pods-get", 20_000)], vec![]),
            ("less", vec![("pods-create", 1)], vec![]),
            ("a tenth", vec![("pods-create", 110_000)], vec![]),
            ("more", vec![("pods-create", 110_001), ("pods-get", 20_000)], vec!["pods-create"]),
            ("new", vec![("pods-sing", 1)], vec!["pods-sing"]),
        ] {
            assert_eq!(before.grown(&counts(&now)), want, "{name}");
        }
        let shown = before.compare(&counts(&[("pods-create", 90_000), ("pods-sing", 7)]));
        assert!(shown.contains("-10.0 %") && shown.contains("pods-sing"), "{shown}");
    }

    #[test]
    fn a_table_that_is_none_is_refused() {
        for text in ["", "operation\n", "operation,instructions\npods", "operation,instructions\npods-create,many"] {
            assert!(Table::parse(text).is_err(), "{text:?}");
        }
        assert_eq!((rounded(0), rounded(999), rounded(1_234_567)), (0, 999, 1_230_000));
    }
}
