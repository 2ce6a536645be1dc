//! [`pattern_difference`]: a text that one pattern matches and another does not, or the certainty that there is none.
//!
//! Both patterns are walked at once, byte by byte, as automata that grow while they are used. So texts are found in the
//! order of their length, and when all pairs of states were seen, there is no such text. The work is bounded: patterns
//! that are too large stay undecided.

use std::collections::{HashSet, VecDeque};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Input, MatchKind};

use super::translation::translate;
use super::{MAX_PATTERN_BYTES, dialect};

/// How many pairs of states are looked at.
const MAX_PAIRS: usize = 60_000;

/// How much memory the states of one pattern may take up.
const CACHE_BYTES: usize = 16 << 20;

/// Nobody knows whether one pattern matches more than the other: that would take too much work, or one is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it takes too much work to compare the patterns")]
pub struct UndecidedPatterns;

/// The shortest text that `one` matches and `other` does not, of so many characters; `None` if there is none. An empty
/// pattern matches everything.
pub fn pattern_difference(
    one: &str,
    other: &str,
    least: usize,
    most: Option<usize>,
) -> Result<Option<String>, UndecidedPatterns> {
    let mut sides = [Side::new(one)?, Side::new(other)?];
    let bytes = representatives(&sides);
    let start = Pair { at: [sides[0].start()?, sides[1].start()?], utf8: Utf8::Boundary, characters: 0 };
    let mut seen: HashSet<Pair> = [start].into();
    // Where each pair was reached from, and by which byte.
    let mut reached: Vec<(Pair, usize, u8)> = vec![(start, usize::MAX, 0)];
    // By the number of characters: bytes that go on with one cost nothing.
    let mut ahead: VecDeque<(usize, usize)> = [(0, 0)].into();
    while let Some((number, length)) = ahead.pop_front() {
        if most.is_some_and(|most| length > most) {
            return Ok(None);
        }
        let pair = reached[number].0;
        if pair.utf8 == Utf8::Boundary
            && pair.characters >= least
            && sides[0].matches_at_end(pair.at[0])?
            && !sides[1].matches_at_end(pair.at[1])?
        {
            return Ok(text_of(&reached, number));
        }
        for byte in &bytes {
            let Some(utf8) = pair.utf8.then(*byte) else { continue };
            let at = [sides[0].step(pair.at[0], *byte)?, sides[1].step(pair.at[1], *byte)?];
            if at[0] == At::Never || at[1] == At::Matched {
                continue;
            }
            let is_new = pair.utf8 == Utf8::Boundary;
            let next = Pair { at, utf8, characters: (pair.characters + usize::from(is_new)).min(least) };
            if seen.insert(next) {
                if seen.len() > MAX_PAIRS {
                    return Err(UndecidedPatterns);
                }
                reached.push((next, number, *byte));
                match is_new {
                    true => ahead.push_back((reached.len() - 1, length + 1)),
                    false => ahead.push_front((reached.len() - 1, length)),
                }
            }
        }
    }
    Ok(None)
}

/// Where both patterns are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Pair {
    at: [At; 2],
    utf8: Utf8,
    /// How many characters there were, as far as that matters.
    characters: usize,
}

/// Where a pattern is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// It has matched, whatever comes.
    Matched,
    /// It will not match any more.
    Never,
    /// It may.
    State(LazyStateID),
}

struct Side {
    dfa: DFA,
    cache: Cache,
}

impl Side {
    fn new(pattern: &str) -> Result<Side, UndecidedPatterns> {
        let translated = translate(pattern).map_err(|_| UndecidedPatterns)?;
        let config = DFA::config()
            .match_kind(MatchKind::LeftmostFirst)
            .cache_capacity(CACHE_BYTES)
            // Numbers of states are good until the cache is cleared, so it never is.
            .minimum_cache_clear_count(Some(0));
        let built = DFA::builder()
            .configure(config)
            .syntax(dialect())
            .thompson(thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES)))
            .build(&translated);
        let dfa = built.map_err(|_| UndecidedPatterns)?;
        Ok(Side { cache: dfa.create_cache(), dfa })
    }

    fn start(&mut self) -> Result<At, UndecidedPatterns> {
        let start = self.dfa.start_state_forward(&mut self.cache, &Input::new("")).map_err(|_| UndecidedPatterns)?;
        self.at(start)
    }

    fn step(&mut self, at: At, byte: u8) -> Result<At, UndecidedPatterns> {
        let At::State(state) = at else { return Ok(at) };
        let next = self.dfa.next_state(&mut self.cache, state, byte).map_err(|_| UndecidedPatterns)?;
        self.at(next)
    }

    fn matches_at_end(&mut self, at: At) -> Result<bool, UndecidedPatterns> {
        let At::State(state) = at else { return Ok(at == At::Matched) };
        let end = self.dfa.next_eoi_state(&mut self.cache, state).map_err(|_| UndecidedPatterns)?;
        Ok(end.is_match())
    }

    fn at(&self, state: LazyStateID) -> Result<At, UndecidedPatterns> {
        match state {
            state if state.is_match() => Ok(At::Matched),
            state if state.is_dead() => Ok(At::Never),
            state if state.is_quit() => Err(UndecidedPatterns),
            state => Ok(At::State(state)),
        }
    }
}

/// One byte for all that make no difference to either pattern: those first that people can read.
fn representatives(sides: &[Side; 2]) -> Vec<u8> {
    let readable = |byte: &u8| match byte {
        b'a' => 0,
        b'0' => 1,
        b'A' => 2,
        b'-' => 3,
        byte if byte.is_ascii_alphanumeric() => 4,
        byte if byte.is_ascii_graphic() => 5,
        b' ' => 6,
        0x80.. => 7,
        _ => 8,
    };
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.sort_by_key(|byte| (readable(byte), *byte));
    let mut seen = HashSet::new();
    let class = |side: &Side, byte: u8| side.dfa.byte_classes().get(byte);
    bytes.retain(|byte| seen.insert((class(&sides[0], *byte), class(&sides[1], *byte), utf8_class(*byte))));
    bytes
}

fn text_of(reached: &[(Pair, usize, u8)], mut number: usize) -> Option<String> {
    let mut bytes = Vec::new();
    while let Some((_, from, byte)) = reached.get(number).filter(|(_, from, _)| *from != usize::MAX) {
        bytes.push(*byte);
        number = *from;
    }
    bytes.reverse();
    String::from_utf8(bytes).ok()
}

/// How far a character has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Utf8 {
    Boundary,
    /// So many bytes follow.
    More(u8),
    /// The next one is between these, and so many follow it.
    Between(u8, u8, u8),
}

impl Utf8 {
    fn then(self, byte: u8) -> Option<Utf8> {
        let after = |left: u8| if left == 0 { Utf8::Boundary } else { Utf8::More(left) };
        match self {
            Utf8::Boundary => match byte {
                0x00..=0x7f => Some(Utf8::Boundary),
                0xc2..=0xdf => Some(Utf8::More(1)),
                0xe0 => Some(Utf8::Between(0xa0, 0xbf, 1)),
                0xed => Some(Utf8::Between(0x80, 0x9f, 1)),
                0xe1..=0xef => Some(Utf8::More(2)),
                0xf0 => Some(Utf8::Between(0x90, 0xbf, 2)),
                0xf1..=0xf3 => Some(Utf8::More(3)),
                0xf4 => Some(Utf8::Between(0x80, 0x8f, 2)),
                _ => None,
            },
            Utf8::More(left) => (0x80..=0xbf).contains(&byte).then(|| after(left - 1)),
            Utf8::Between(first, last, left) => (first..=last).contains(&byte).then(|| after(left)),
        }
    }
}

/// Bytes of one class mean the same to UTF-8, wherever they stand.
fn utf8_class(byte: u8) -> u8 {
    const STARTS: [u8; 14] = [0x00, 0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4, 0xf5];
    STARTS.iter().rposition(|start| *start <= byte).map_or(0, |class| class as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_pattern_matches_and_the_other_does_not_is_found() {
        for (one, other, least, most, want) in [
            ("^[a-z]+$", "^([a-m]|[n-z])[a-z]*$", 0, None, Ok(None)),
            ("^[a-z]+$", "^[a-z]+[a-y]$", 0, None, Ok(Some("a"))),
            ("^[a-z]+$", "^[a-z]{1,3}$", 0, None, Ok(Some("aaaa"))),
            ("^[a-z]+$", "^[a-z]{1,3}$", 0, Some(3), Ok(None)),
            ("^[a-z]+$", "^[a-z]{4,}$", 4, None, Ok(None)),
            ("", "^$", 0, Some(0), Ok(None)),
            ("", "^.*$", 0, None, Ok(Some("\n"))),
            ("", "(?s)^.*$", 0, None, Ok(None)),
            ("b", "a|b", 0, None, Ok(None)),
            ("a|b", "b", 0, None, Ok(Some("a"))),
            ("^é?$", "^$", 0, None, Ok(Some("é"))),
            ("^.$", r"^[\x00-\x7f]$", 0, None, Ok(Some("\u{80}"))),
            (r"^\bfoo\b$", "^foo$", 0, None, Ok(None)),
            ("^(a{1,200}){1,5}$", "^a{1,1000}$", 0, None, Ok(None)),
            ("(", "a", 0, None, Err(UndecidedPatterns)),
        ] {
            let found = pattern_difference(one, other, least, most);
            assert_eq!(found, want.map(|text: Option<&str>| text.map(str::to_owned)), "{one} {other}");
        }
    }

    #[test]
    fn the_names_of_kubernetes_are_compared() {
        let label = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
        let domain = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
        assert_eq!(pattern_difference(label, domain, 1, Some(63)), Ok(None));
        assert_eq!(pattern_difference(domain, label, 1, Some(253)), Ok(Some("a.a".to_owned())));
    }
}
