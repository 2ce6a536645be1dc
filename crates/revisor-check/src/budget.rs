//! [`Budget`]: the work that is left for a comparison, and what was found out about patterns so far. Definitions say the
//! same patterns at many places, and to walk two automata is the dearest single step there is.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use revisor_schema::{UndecidedPatterns, pattern_difference};

use crate::Effort;

/// As how many objects it counts to compare two patterns.
const PATTERNS: usize = 100;

/// Two patterns, and how long texts are.
type Question = (String, String, usize, Option<usize>);

/// What is left of an [`Effort`].
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<usize>,
    patterns: RefCell<HashMap<Question, Result<Option<String>, UndecidedPatterns>>>,
}

impl Budget {
    pub(crate) fn of(effort: Effort) -> Budget {
        Budget { left: Cell::new(effort.objects), patterns: RefCell::default() }
    }

    /// Whether an object may still be looked at; counts it.
    pub(crate) fn may(&self) -> bool {
        self.takes(1)
    }

    fn takes(&self, work: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(work));
        left > 0
    }

    /// [`pattern_difference`]; undecided where no work is left for it.
    pub(crate) fn pattern_difference(
        &self,
        one: &str,
        other: &str,
        least: usize,
        most: Option<usize>,
    ) -> Result<Option<String>, UndecidedPatterns> {
        let question = (one.to_owned(), other.to_owned(), least, most);
        if let Some(known) = self.patterns.borrow().get(&question) {
            return known.clone();
        }
        if !self.takes(PATTERNS) {
            return Err(UndecidedPatterns);
        }
        let found = pattern_difference(one, other, least, most);
        self.patterns.borrow_mut().insert(question, found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_patterns_are_compared_once_and_others_while_there_is_work_left() {
        let budget = Budget::of(Effort { objects: 2 * PATTERNS, ..Effort::default() });
        let compare = |one: &str| budget.pattern_difference(one, "^a+$", 0, None);
        for _ in 0..3 {
            assert_eq!(compare("^[ab]$"), Ok(Some("b".to_owned())));
        }
        assert_eq!(compare("^aa$"), Ok(None));
        assert_eq!(compare("^b$"), Err(UndecidedPatterns), "there is no work left");
        assert_eq!(compare("^aa$"), Ok(None), "what is known stays known");
        assert!(!budget.may());
    }
}
