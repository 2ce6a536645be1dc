//! What differs on purpose: a table with reasons. ARCHITECTURE.md tells the same to people.

use std::sync::LazyLock;

use regex::Regex;

/// A difference that is meant.
#[derive(Debug, Clone, Copy)]
pub struct Deliberate {
    /// A pattern that the causes of such findings match.
    pub cause: &'static str,
    /// Why it is meant.
    pub reason: &'static str,
}

/// All of them.
pub const DELIBERATE: &[Deliberate] = &[];

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| DELIBERATE.iter().map(|row| Regex::new(row.cause).expect("a pattern of the table")).collect());

/// The row that a cause belongs to.
pub fn find(cause: &str) -> Option<&'static Deliberate> {
    PATTERNS.iter().zip(DELIBERATE).find(|(pattern, _)| pattern.is_match(cause)).map(|(_, row)| row)
}
