//! [`PatternWalk`]: texts that a pattern matches, found by walking its automaton.
//!
//! The automaton knows of each state how many bytes are missing to a match, so a walk can be as long as is wanted and
//! still ends. Assertions (`^`, `\b`) are passed as if they held; whether they did is asked in the end.

use std::collections::VecDeque;

use regex_automata::nfa::thompson::{self, NFA, State, Transition};
use regex_automata::util::primitives::StateID;

use super::translation::translate;
use super::{MAX_PATTERN_BYTES, Pattern, PatternError, dialect, unknown_class};

/// How many steps one walk may take.
const MAX_STEPS: usize = 20_000;

/// The bytes that a walk likes best where a state takes several: texts that people can read.
const READABLE: [u8; 8] = *b"a0A-z9. ";

/// The distance of a state that no match can be reached from.
const NEVER: u32 = u32::MAX;

/// A pattern made ready to find texts that it matches.
#[derive(Debug, Clone)]
pub struct PatternWalk {
    nfa: NFA,
    /// How many bytes are missing to a match, for each state.
    distances: Vec<u32>,
    pattern: Pattern,
}

impl PatternWalk {
    /// Makes a pattern ready.
    pub fn new(text: &str) -> Result<PatternWalk, PatternError> {
        let pattern = Pattern::compile(text)?;
        let config = thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES));
        let nfa = thompson::Compiler::new().configure(config).syntax(dialect()).build(&translate(text)?);
        let nfa = nfa.map_err(|_| unknown_class(text))?;
        Ok(PatternWalk { distances: distances(&nfa), nfa, pattern })
    }

    /// A text that matches: about so many bytes long if the pattern lets it, and as short as can be for 0. What is open
    /// on the way is decided by `choose`, which answers a number below the one it is given. `None` if the walk ended at
    /// a text that does not match after all.
    pub fn text(&self, length: usize, choose: &mut dyn FnMut(usize) -> usize) -> Option<String> {
        let mut bytes = Vec::new();
        let mut at = self.nfa.start_anchored();
        for _ in 0..MAX_STEPS {
            let hurries = bytes.len() >= length;
            at = match self.nfa.state(at) {
                State::Match { .. } => {
                    let text = String::from_utf8(bytes).ok()?;
                    return self.pattern.is_match(&text).then_some(text);
                }
                State::Fail => return None,
                State::Look { next, .. } | State::Capture { next, .. } => *next,
                State::Union { alternates } => self.pick(alternates, hurries, choose)?,
                State::BinaryUnion { alt1, alt2 } => self.pick(&[*alt1, *alt2], hurries, choose)?,
                State::ByteRange { trans } => {
                    bytes.push(byte_of(trans.start, trans.end, choose));
                    trans.next
                }
                State::Sparse(sparse) => {
                    let nearest = sparse.transitions.iter().map(|to| self.distance(to.next)).min()?;
                    let farthest = if hurries { nearest } else { NEVER - 1 };
                    let is_open = |to: &&Transition| self.distance(to.next) <= farthest;
                    let open: Vec<&Transition> = sparse.transitions.iter().filter(is_open).collect();
                    // One byte is one character of ASCII, which is enough most of the time.
                    let plain = open.iter().filter(|to| to.start < 0x80).count();
                    let among = if plain > 0 && choose(16) > 0 { plain } else { open.len() };
                    let to = open.get(choose(among.max(1)))?;
                    bytes.push(byte_of(to.start, to.end, choose));
                    to.next
                }
                State::Dense(dense) => {
                    let byte = (0..=255).find(|byte| dense.transitions[usize::from(*byte)] != StateID::ZERO)?;
                    bytes.push(byte);
                    dense.transitions[usize::from(byte)]
                }
            };
        }
        None
    }

    fn distance(&self, state: StateID) -> u32 {
        self.distances[state.as_usize()]
    }

    fn pick(&self, alternates: &[StateID], hurries: bool, choose: &mut dyn FnMut(usize) -> usize) -> Option<StateID> {
        let open: Vec<StateID> = alternates.iter().copied().filter(|to| self.distance(*to) != NEVER).collect();
        if hurries {
            return open.into_iter().min_by_key(|to| self.distance(*to));
        }
        open.get(choose(open.len().max(1))).copied()
    }
}

/// A byte between these.
fn byte_of(start: u8, end: u8, choose: &mut dyn FnMut(usize) -> usize) -> u8 {
    let span = start..=end;
    let readable: Vec<u8> = READABLE.into_iter().filter(|byte| span.contains(byte)).collect();
    match choose(4) {
        0 | 1 if !readable.is_empty() => readable[choose(readable.len())],
        0 => start,
        1 => end,
        _ => start + choose(usize::from(end - start) + 1) as u8,
    }
}

/// For each state how many bytes are missing to a match.
fn distances(nfa: &NFA) -> Vec<u32> {
    let states = nfa.states();
    let mut back: Vec<Vec<(usize, u32)>> = vec![Vec::new(); states.len()];
    let mut distances = vec![NEVER; states.len()];
    let mut queue = VecDeque::new();
    for (at, state) in states.iter().enumerate() {
        let mut edge = |to: StateID, bytes: u32| back[to.as_usize()].push((at, bytes));
        match state {
            State::Match { .. } => {
                distances[at] = 0;
                queue.push_back(at);
            }
            State::Fail => {}
            State::Look { next, .. } | State::Capture { next, .. } => edge(*next, 0),
            State::Union { alternates } => alternates.iter().for_each(|to| edge(*to, 0)),
            State::BinaryUnion { alt1, alt2 } => [*alt1, *alt2].into_iter().for_each(|to| edge(to, 0)),
            State::ByteRange { trans } => edge(trans.next, 1),
            State::Sparse(sparse) => sparse.transitions.iter().for_each(|to| edge(to.next, 1)),
            State::Dense(dense) => dense.transitions.iter().for_each(|to| edge(*to, 1)),
        }
    }
    // Edges cost nothing or one, so a queue with two ends visits states in the order of their distance.
    while let Some(at) = queue.pop_front() {
        for (from, bytes) in &back[at] {
            let found = distances[at] + bytes;
            if found < distances[*from] {
                distances[*from] = found;
                match bytes {
                    0 => queue.push_front(*from),
                    _ => queue.push_back(*from),
                }
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance and are the same every time.
    fn dice(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        }
    }

    #[test]
    fn walks_end_in_texts_that_match() {
        for pattern in [
            "^(0|[1-9][0-9]{0,4})s$",
            "^[a-z]{1,10}:(0|[1-9][0-9]{0,3})$",
            r"^\d{3}-\w+(\.\w+)*$",
            "^[^a-z]+é?$",
            r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
            "b",
        ] {
            let walk = PatternWalk::new(pattern).expect(pattern);
            let found: Vec<String> =
                (0..200).filter_map(|seed| walk.text(seed as usize % 40, &mut dice(seed))).collect();
            assert!(found.len() > 150, "{pattern}: {} texts", found.len());
            assert!(found.iter().all(|text| walk.pattern.is_match(text)), "{pattern}");
        }
    }

    #[test]
    fn the_shortest_text_is_found_and_what_cannot_match_ends() {
        let shortest = |pattern| PatternWalk::new(pattern).expect(pattern).text(0, &mut |_| 0);
        assert_eq!(shortest("^(aaaa|bb)c*$").as_deref(), Some("bb"));
        assert_eq!(shortest("^x{3,}$").as_deref(), Some("xxx"));
        assert_eq!(shortest("a^b"), None);
        assert_eq!(PatternWalk::new("^a*$").expect("a pattern").text(9, &mut |_| 0).map(|text| text.len()), Some(9));
    }
}
