//! [`FieldNames`]: the paths of fields of which a client is told, in bounded space.

use std::fmt;
use std::ops::Deref;

use crate::clip::clip_shown;
use crate::field_errors::{MAX_FIELD_ERROR_BYTES, MAX_FIELD_ERRORS};

/// Paths of fields, as many as there may be errors. Those for which there is no room are counted.
///
/// ```
/// use revisor_object::{FieldNames, MAX_FIELD_ERRORS};
///
/// let mut names = FieldNames::default();
/// (0..MAX_FIELD_ERRORS + 3).for_each(|at| names.push(format_args!("spec.items[{at}]")));
/// assert_eq!((names.len(), names.left_out()), (MAX_FIELD_ERRORS, 3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldNames {
    names: Vec<String>,
    bytes: usize,
    left_out: usize,
}

impl FieldNames {
    /// Adds a path, which is not even written where there is no room for it.
    pub fn push(&mut self, path: impl fmt::Display) {
        let is_full = self.names.len() == MAX_FIELD_ERRORS || self.bytes >= MAX_FIELD_ERROR_BYTES;
        if is_full || self.left_out > 0 {
            self.left_out += 1;
            return;
        }
        let path = clip_shown(path);
        self.bytes += path.len();
        self.names.push(path);
    }

    /// Adds what another list has, each path behind `prefix`.
    pub fn append_below(&mut self, prefix: &str, other: &FieldNames) {
        for name in &other.names {
            self.push(format_args!("{prefix}{name}"));
        }
        self.left_out += other.left_out;
    }

    /// Puts the paths in order.
    pub fn sort(&mut self) {
        self.names.sort_unstable();
    }

    /// How many there are beside those that are told.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl Deref for FieldNames {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_leave_less_room() {
        let mut names = FieldNames::default();
        let long = "x".repeat(MAX_FIELD_ERROR_BYTES);
        (0..100).for_each(|_| names.push(&long));
        assert!(names.iter().map(String::len).sum::<usize>() < 2 * MAX_FIELD_ERROR_BYTES);
        assert_eq!(names.len() + names.left_out(), 100);
    }

    #[test]
    fn lists_of_lists_do_not_lose_count() {
        let mut full = FieldNames::default();
        (0..MAX_FIELD_ERRORS + 2).for_each(|at| full.push(at));
        let mut all = FieldNames::default();
        all.push("a");
        all.append_below("b.", &full);
        assert_eq!((all[1].as_str(), all.len(), all.left_out()), ("b.0", MAX_FIELD_ERRORS, 3));
    }
}
