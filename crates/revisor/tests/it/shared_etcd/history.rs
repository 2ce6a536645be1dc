//! [`History`]: what concurrent clients did to one object and what they were told, and whether that can have happened.
//!
//! A history is linearizable if there is an order of its operations in which each takes effect at one moment between its
//! call and its answer, and in which every answer is that of one object. The search is that of Wing and Gong, with the
//! memory of Lowe: which operations were put in order, and what the object was then, is tried once.

use std::collections::HashSet;

/// The content of an object; `None` if there is none. Every write of a history has another.
pub(super) type State = Option<u64>;

/// What a client wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Get,
    Create(u64),
    /// Replaces what has this content.
    Replace {
        expected: u64,
        new: u64,
    },
    Delete,
}

/// What it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The object has this content.
    Is(State),
    Done,
    Exists,
    Conflict,
    NotFound,
    /// Nobody knows whether it happened, or will.
    Unknown,
}

/// An operation, from its call to its answer, by a clock that all share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) client: usize,
    pub(super) call: Call,
    pub(super) answer: Answer,
    pub(super) called: u64,
    pub(super) answered: u64,
}

/// The operations on one object: 128 at most.
#[derive(Debug, Default)]
pub(super) struct History(pub(super) Vec<Operation>);

impl History {
    /// Whether it is linearizable, for an object that was not there at first.
    pub(super) fn is_linearizable(&self) -> bool {
        assert!(self.0.len() <= 128, "a set of operations is a number of 128 bits");
        let mut seen = HashSet::new();
        let mut open: Vec<(u128, State)> = vec![(0, None)];
        while let Some((done, state)) = open.pop() {
            let left = |at: &usize| done & (1 << at) == 0;
            let certain = (0..self.0.len()).filter(left).filter(|at| self.0[*at].answer != Answer::Unknown);
            // Nothing that was called after this can be next.
            let Some(first) = certain.map(|at| self.0[at].answered).min() else { return true };
            for at in (0..self.0.len()).filter(left).filter(|at| self.0[*at].called <= first) {
                if let Some(next) = self.0[at].apply(state)
                    && seen.insert((done | 1 << at, next))
                {
                    open.push((done | 1 << at, next));
                }
            }
        }
        false
    }

    /// For those who have to find out why it is not: an operation for each line, in the order of their calls.
    pub(super) fn to_text(&self) -> String {
        let mut sorted: Vec<&Operation> = self.0.iter().collect();
        sorted.sort_by_key(|operation| operation.called);
        let line = |operation: &&Operation| {
            let Operation { client, call, answer, called, answered } = operation;
            format!("{called:>8} {answered:>8} client {client}: {call:?} -> {answer:?}\n")
        };
        sorted.iter().map(line).collect()
    }
}

impl Operation {
    /// What the object is after this; `None` if this cannot have been answered so.
    fn apply(&self, state: State) -> Option<State> {
        let (answer, next) = match (self.call, state) {
            (Call::Get, state) => (Answer::Is(state), state),
            (Call::Create(new), None) => (Answer::Done, Some(new)),
            (Call::Create(_), state) => (Answer::Exists, state),
            (Call::Replace { .. } | Call::Delete, None) => (Answer::NotFound, None),
            (Call::Delete, Some(_)) => (Answer::Done, None),
            (Call::Replace { expected, new }, Some(is)) if is == expected => (Answer::Done, Some(new)),
            (Call::Replace { .. }, state) => (Answer::Conflict, state),
        };
        (self.answer == answer || self.answer == Answer::Unknown).then_some(next)
    }
}

#[test]
fn a_history_that_cannot_have_happened_is_found() {
    let make = |operations: &[(Call, Answer, u64, u64)]| {
        let operation = |(call, answer, called, answered)| Operation { client: 0, call, answer, called, answered };
        History(operations.iter().copied().map(operation).collect())
    };
    let made = (Call::Create(1), Answer::Done, 0, 9);
    for (name, operations, want) in [
        ("a read beside a write may see it", vec![made, (Call::Get, Answer::Is(Some(1)), 1, 2)], true),
        ("or not", vec![made, (Call::Get, Answer::Is(None), 1, 2)], true),
        (
            "what was seen stays so",
            vec![made, (Call::Get, Answer::Is(Some(1)), 1, 2), (Call::Get, Answer::Is(None), 3, 4)],
            false,
        ),
        ("a read after a write sees it", vec![made, (Call::Get, Answer::Is(None), 10, 11)], false),
        (
            "what nobody knows may have happened",
            vec![(Call::Create(1), Answer::Unknown, 0, 1), (Call::Get, Answer::Is(Some(1)), 5, 6)],
            true,
        ),
        ("or may not", vec![(Call::Create(1), Answer::Unknown, 0, 1), (Call::Get, Answer::Is(None), 5, 6)], true),
        (
            "of two that replace the same, one does",
            vec![
                made,
                (Call::Replace { expected: 1, new: 2 }, Answer::Done, 10, 12),
                (Call::Replace { expected: 1, new: 3 }, Answer::Done, 10, 12),
            ],
            false,
        ),
        (
            "a conflict has a cause",
            vec![made, (Call::Replace { expected: 1, new: 2 }, Answer::Conflict, 10, 12)],
            false,
        ),
    ] {
        assert_eq!(make(&operations).is_linearizable(), want, "{name}");
    }
}
