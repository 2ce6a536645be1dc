//! [`FieldErrors`]: everything that is wrong with an object, in bounded space.
//!
//! An object can break a rule as often as it has fields, and a message may show much of the object. So that an answer
//! is never much larger than what was asked, a list of errors keeps only so many, and of those only so much text. What
//! it does not keep it counts: a list that overflowed ends with one error of the kind
//! [`LeftOut`](FieldErrorKind::LeftOut), which stands for the rest. Because that one travels like every other error,
//! lists can be iterated, chained and flattened into another without losing count.

use std::ops::Deref;

use crate::field_error::{FieldError, FieldErrorKind};

/// How many errors a list keeps. The original keeps all; nobody reads as many.
pub const MAX_FIELD_ERRORS: usize = 1000;

/// How many bytes the kept errors have as text. A status shows that text twice, as its message and in its causes.
pub const MAX_FIELD_ERROR_BYTES: usize = 128 * 1024;

/// What validation finds, in the order in which it finds it: a list that cannot grow beyond bounds.
///
/// ```
/// use revisor_object::{FieldError, FieldErrors, MAX_FIELD_ERRORS};
///
/// let errors: FieldErrors = (0..MAX_FIELD_ERRORS + 5).map(|at| FieldError::required(format!("a[{at}]"), "")).collect();
/// assert_eq!(errors.len(), MAX_FIELD_ERRORS + 1);
/// assert_eq!(errors.last().map(ToString::to_string).as_deref(), Some("and 5 more errors"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldErrors {
    /// Only the last one may stand for others that were left out.
    kept: Vec<FieldError>,
    bytes: usize,
}

impl FieldErrors {
    /// Nothing is wrong so far.
    pub const fn new() -> FieldErrors {
        FieldErrors { kept: Vec::new(), bytes: 0 }
    }

    /// Adds an error, or counts it if there is no room.
    pub fn push(&mut self, error: FieldError) {
        let more = match error.kind {
            FieldErrorKind::LeftOut(more) => more,
            _ => 1,
        };
        if let Some(FieldErrorKind::LeftOut(count)) = self.kept.last_mut().map(|last| &mut last.kind) {
            *count += more;
        } else if matches!(error.kind, FieldErrorKind::LeftOut(_)) {
            self.kept.push(error);
        } else {
            let bytes = error.shown_bytes();
            if self.kept.len() == MAX_FIELD_ERRORS || self.bytes + bytes > MAX_FIELD_ERROR_BYTES {
                self.kept.push(FieldError::left_out(1));
            } else {
                self.bytes += bytes;
                self.kept.push(error);
            }
        }
    }

    /// Counts errors that were found and not even put into words.
    pub fn leave_out(&mut self, errors: usize) {
        if errors > 0 {
            self.push(FieldError::left_out(errors));
        }
    }

    /// Adds an error that takes long to describe, or counts it if there is no room: each of many errors may show a list
    /// that is as long as they are many.
    pub fn push_with(&mut self, error: impl FnOnce() -> FieldError) {
        self.push(if self.is_full() { FieldError::left_out(1) } else { error() });
    }

    /// Adds an error so many times, or counts it as often.
    pub fn push_times(&mut self, times: usize, error: impl Fn() -> FieldError) {
        for done in 0..times {
            if self.is_full() {
                return self.push(FieldError::left_out(times - done));
            }
            self.push(error());
        }
    }

    /// Puts the errors into the order of their texts. What was left out stays at the end.
    pub fn sort_by_text(&mut self) {
        let told = self.kept.len() - usize::from(self.is_full());
        self.kept[..told].sort_by_cached_key(ToString::to_string);
    }

    /// Whether further errors are only counted. Whoever has to look at much for each error may stop here.
    pub fn is_full(&self) -> bool {
        matches!(self.kept.last(), Some(FieldError { kind: FieldErrorKind::LeftOut(_), .. }))
    }
}

impl Deref for FieldErrors {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.kept
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        for error in errors {
            self.push(error);
        }
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> FieldErrors {
        let mut found = FieldErrors::new();
        found.extend(errors);
        found
    }
}

impl<const N: usize> From<[FieldError; N]> for FieldErrors {
    fn from(errors: [FieldError; N]) -> FieldErrors {
        errors.into_iter().collect()
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl<const N: usize> PartialEq<[FieldError; N]> for FieldErrors {
    fn eq(&self, errors: &[FieldError; N]) -> bool {
        self.kept == errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip::MAX_TEXT_BYTES;

    fn at(index: usize) -> FieldError {
        FieldError::required(format!("spec.items[{index}]"), "")
    }

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn up_to_the_bound_everything_is_kept() {
        let errors: FieldErrors = (0..MAX_FIELD_ERRORS).map(at).collect();
        assert!(!errors.is_full());
        assert_eq!(errors.len(), MAX_FIELD_ERRORS);
        assert_eq!(errors.last(), Some(&at(MAX_FIELD_ERRORS - 1)));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_without_being_made() {
        let made = std::cell::Cell::new(0);
        let make = || {
            made.set(made.get() + 1);
            at(0)
        };
        let mut errors = FieldErrors::new();
        errors.push_times(1_000_000_000, make);
        errors.push_with(make);
        errors.push_times(7, make);
        assert_eq!(made.get(), MAX_FIELD_ERRORS + 1);
        let more = 1_000_000_000 - MAX_FIELD_ERRORS + 1 + 7;
        assert_eq!(errors.last().map(ToString::to_string), Some(format!("and {more} more errors")));
    }

    #[test]
    fn what_is_too_many_is_counted() {
        let mut errors: FieldErrors = (0..=MAX_FIELD_ERRORS).map(at).collect();
        assert!(errors.is_full());
        assert_eq!(texts(&errors[MAX_FIELD_ERRORS - 1..]), ["spec.items[999]: Required value", "and 1 more error"]);
        errors.extend((0..41).map(at));
        assert_eq!(errors.len(), MAX_FIELD_ERRORS + 1);
        assert_eq!(texts(&errors[MAX_FIELD_ERRORS..]), ["and 42 more errors"]);
    }

    #[test]
    fn what_is_too_long_is_counted_and_so_is_everything_behind_it() {
        let long = FieldError::forbidden("a", "x".repeat(MAX_TEXT_BYTES));
        let fitting = MAX_FIELD_ERROR_BYTES / MAX_TEXT_BYTES - 1;
        let errors: FieldErrors = [at(0)].into_iter().chain(vec![long; fitting + 3]).chain([at(1)]).collect();
        assert_eq!(errors.len(), 1 + fitting + 1);
        assert_eq!(errors.last().map(ToString::to_string).as_deref(), Some("and 4 more errors"));
    }

    #[test]
    fn lists_of_lists_do_not_lose_count() {
        let full: FieldErrors = (0..MAX_FIELD_ERRORS + 5).map(at).collect();
        let short: FieldErrors = (0..2).map(at).collect();
        for (lists, more) in [
            (vec![full.clone(), short.clone()], 7),
            (vec![short.clone(), full.clone()], 7),
            (vec![full.clone(), full.clone(), short], 5 + MAX_FIELD_ERRORS + 5 + 2),
        ] {
            let flat: FieldErrors = lists.into_iter().flatten().collect();
            assert_eq!(flat.len(), MAX_FIELD_ERRORS + 1);
            assert_eq!(flat.last().map(|last| last.kind), Some(FieldErrorKind::LeftOut(more)));
        }
    }

    #[test]
    fn in_order_what_was_left_out_is_still_last() {
        let mut errors: FieldErrors = (0..MAX_FIELD_ERRORS + 1).rev().map(at).collect();
        errors.sort_by_text();
        assert_eq!(texts(&errors[..2]), ["spec.items[1000]: Required value", "spec.items[100]: Required value"]);
        assert!(errors.is_full());
    }
}
