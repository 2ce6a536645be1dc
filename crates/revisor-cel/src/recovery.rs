//! What the parser does about what it did not expect: [`Recovery`].
//!
//! Clients see the messages, so they are those that a generated LL parser with its default strategy gives: a token too
//! many is skipped, one that is missing is assumed, and otherwise the rule is given up and parsing goes on at the next
//! token that may follow it. Each is reported once, and never more than a bounded number of times.

use crate::lexer;
use crate::source::{Issue, Location, Source};
use crate::token::{Kind, Token, TokenSet};

/// How often the parser may recover before it gives up.
const ATTEMPTS: u32 = 30;

/// How many tokens it may skip at once.
const SKIPPED: u32 = 256;

/// How many syntax errors are reported before it gives up.
const REPORTED: usize = 100;

/// Why a rule was not matched.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The token at hand is none of these.
    Mismatch(TokenSet),
    /// No alternative of the rule begins like this; the indices of the first token and of the one that did not fit.
    NoViable(usize, usize),
    /// Parsing ends here; what there is to say was said.
    Abort,
}

/// Where the grammar stands, as a number that differs from place to place.
pub(crate) type State = u8;

/// The tokens of an expression, how far they are read, and what went wrong.
pub(crate) struct Recovery<'a> {
    pub(crate) source: &'a Source,
    /// All tokens, also those that the grammar does not see.
    all: Vec<Token>,
    /// The indices of those that it sees.
    seen: Vec<u32>,
    at: usize,
    /// What may come after each rule that is being matched, outermost first.
    follow: Vec<TokenSet>,
    pub(crate) state: State,
    recovering: bool,
    last_fault: Option<(usize, Vec<State>)>,
    attempts: u32,
    pub(crate) issues: Vec<Issue>,
}

impl<'a> Recovery<'a> {
    pub(crate) fn new(source: &'a Source) -> Recovery<'a> {
        let mut issues = Vec::new();
        let all = lexer::tokens(source, &mut issues);
        let seen = (0..all.len() as u32)
            .filter(|index| !matches!(all[*index as usize].kind, Kind::Space | Kind::Comment))
            .collect();
        if issues.len() > REPORTED {
            issues.truncate(REPORTED + 1);
            if let Some(last) = issues.last_mut() {
                last.message = format!("Syntax error: More than {REPORTED} syntax errors");
            }
        }
        Recovery {
            source,
            all,
            seen,
            at: 0,
            follow: Vec::new(),
            state: 0,
            recovering: false,
            last_fault: None,
            attempts: 0,
            issues,
        }
    }

    /// The token `ahead` of the one at hand; the last one if there are not as many.
    fn token(&self, ahead: usize) -> Token {
        let index = (self.at + ahead).min(self.seen.len() - 1);
        self.all[self.seen[index] as usize]
    }

    pub(crate) fn current(&self) -> Token {
        self.token(0)
    }

    /// The kind of the `nth` token from here; the first is the one at hand.
    pub(crate) fn look(&self, nth: usize) -> Kind {
        self.token(nth - 1).kind
    }

    pub(crate) fn text(&self, token: Token) -> String {
        self.source.text(token.start, token.end)
    }

    fn consume(&mut self) {
        if self.look(1) != Kind::End {
            self.at += 1;
        }
    }

    /// Runs a rule after which one of `follow` comes.
    pub(crate) fn push(&mut self, follow: TokenSet) {
        self.follow.push(follow);
    }

    pub(crate) fn pop(&mut self) {
        self.follow.pop();
    }

    /// No alternative fits the first `tokens` tokens from here.
    pub(crate) fn no_viable(&self, tokens: usize) -> Fault {
        let last = self.seen.len() - 1;
        Fault::NoViable(self.at.min(last), (self.at + tokens - 1).min(last))
    }

    /// What may come where `next` does, given the rules that are being matched.
    fn expected(&self, next: TokenSet) -> TokenSet {
        let mut expected = next.without_nothing();
        let mut next = next;
        for follow in self.follow.iter().rev() {
            if !next.has_nothing() {
                return expected;
            }
            next = *follow;
            expected = expected.and(next.without_nothing());
        }
        if next.has_nothing() { expected.and(TokenSet::of(&[Kind::End])) } else { expected }
    }

    /// What may come after any of the rules that are being matched.
    fn recovery_set(&self) -> TokenSet {
        self.follow.iter().fold(TokenSet::EMPTY, |set, follow| set.and(follow.without_nothing()))
    }

    /// Before a choice: makes sure that the token at hand is one of `next`, skipping one if that helps.
    pub(crate) fn sync(&mut self, state: State, next: TokenSet) -> Result<(), Fault> {
        self.state = state;
        if self.recovering || next.has_nothing() || next.has(self.look(1)) || self.delete(next)? {
            return Ok(());
        }
        Err(Fault::Mismatch(self.expected(next)))
    }

    /// Before another turn of a loop: skips what is neither another turn nor what comes after the loop.
    pub(crate) fn sync_loop(&mut self, state: State, next: TokenSet) -> Result<(), Fault> {
        self.state = state;
        if self.recovering || next.has_nothing() || next.has(self.look(1)) {
            return Ok(());
        }
        self.report_unwanted(next)?;
        let until = self.expected(next).and(self.recovery_set());
        while self.look(1) != Kind::End && !until.has(self.look(1)) {
            self.consume();
        }
        Ok(())
    }

    /// Takes a token of this kind; `after` is what may come next. One too many is skipped, a missing one assumed.
    pub(crate) fn take(&mut self, state: State, kind: Kind, after: TokenSet) -> Result<Token, Fault> {
        self.state = state;
        if self.look(1) == kind {
            return Ok(self.accept());
        }
        self.count_attempt()?;
        let wanted = TokenSet::of(&[kind]);
        if self.delete(wanted)? {
            return Ok(self.accept());
        }
        if self.expected(after).has(self.look(1)) {
            if !self.recovering {
                self.recovering = true;
                let found = self.display(self.current());
                self.report(self.current(), format!("missing {wanted} at {found}"))?;
            }
            let at = if self.look(1) == Kind::End && self.at > 0 {
                self.all[self.seen[self.at - 1] as usize]
            } else {
                self.current()
            };
            return Ok(Token { kind, start: at.start, end: at.start });
        }
        Err(Fault::Mismatch(self.expected(wanted)))
    }

    /// Takes the token at hand.
    pub(crate) fn accept(&mut self) -> Token {
        self.recovering = false;
        self.last_fault = None;
        let token = self.current();
        self.consume();
        token
    }

    /// Skips the token at hand if the one after it is what is wanted.
    fn delete(&mut self, wanted: TokenSet) -> Result<bool, Fault> {
        if !self.expected(wanted).has(self.look(2)) {
            return Ok(false);
        }
        self.report_unwanted(wanted)?;
        self.consume();
        self.recovering = false;
        self.last_fault = None;
        Ok(true)
    }

    fn report_unwanted(&mut self, wanted: TokenSet) -> Result<(), Fault> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let (found, expected) = (self.display(self.current()), self.expected(wanted));
        self.report(self.current(), format!("extraneous input {found} expecting {expected}"))
    }

    /// A rule is given up: reports why, and skips to what may come after it or the rules around it.
    pub(crate) fn give_up(&mut self, fault: Fault) -> Result<(), Fault> {
        match fault {
            Fault::Abort => return Err(Fault::Abort),
            _ if self.recovering => {}
            Fault::Mismatch(expected) => {
                self.recovering = true;
                let found = self.display(self.current());
                self.report(self.current(), format!("mismatched input {found} expecting {expected}"))?;
            }
            Fault::NoViable(first, last) => {
                self.recovering = true;
                self.report_no_viable(first, last)?;
            }
        }
        self.recover()
    }

    fn report_no_viable(&mut self, first: usize, last: usize) -> Result<(), Fault> {
        let offending = self.all[self.seen[last] as usize];
        let tokens = &self.all[self.seen[first] as usize..=self.seen[last] as usize];
        let input = match tokens.first() {
            Some(token) if token.kind == Kind::End => "<EOF>".to_string(),
            _ => tokens.iter().map(|token| self.text(*token)).collect(),
        };
        // A word with a meaning of its own where a field should be is what this mostly is, and is said so.
        let message = match input.chars().next().map(|first| &input[first.len_utf8()..]) {
            Some(word @ ("true" | "false" | "null")) => format!("mismatched input '{word}' expecting IDENTIFIER"),
            _ => format!("no viable alternative at input {}", quote(&input)),
        };
        self.report(offending, message)
    }

    fn recover(&mut self) -> Result<(), Fault> {
        self.count_attempt()?;
        let mut skipped = 0;
        let mut states = match self.last_fault.take() {
            Some((at, states)) if at == self.at && states.contains(&self.state) => {
                // Nothing was skipped since the last fault in this place: skip one token, or this never ends.
                self.skip(&mut skipped)?;
                states
            }
            Some((_, states)) => states,
            None => Vec::new(),
        };
        if !states.contains(&self.state) {
            states.push(self.state);
        }
        self.last_fault = Some((self.at, states));
        let until = self.recovery_set();
        while self.look(1) != Kind::End && !until.has(self.look(1)) {
            self.skip(&mut skipped)?;
        }
        Ok(())
    }

    fn skip(&mut self, skipped: &mut u32) -> Result<(), Fault> {
        if *skipped >= SKIPPED {
            return Err(self.abort(format!("error recovery token lookahead limit exceeded: {SKIPPED}")));
        }
        *skipped += 1;
        self.consume();
        Ok(())
    }

    fn count_attempt(&mut self) -> Result<(), Fault> {
        self.attempts += 1;
        if self.attempts > ATTEMPTS {
            self.report(self.current(), format!("error recovery attempt limit exceeded: {ATTEMPTS}"))?;
            return Err(Fault::Abort);
        }
        Ok(())
    }

    /// Ends parsing with something to say about the expression as a whole.
    pub(crate) fn abort(&mut self, message: String) -> Fault {
        self.issues.push(Issue { location: Location::NONE, message });
        Fault::Abort
    }

    fn report(&mut self, at: Token, message: String) -> Result<(), Fault> {
        let location = self.source.location(at.start);
        let full = self.issues.len() >= REPORTED;
        let message = if full { format!("More than {REPORTED} syntax errors") } else { message };
        self.issues.push(Issue { location, message: format!("Syntax error: {message}") });
        if full { Err(Fault::Abort) } else { Ok(()) }
    }

    fn display(&self, token: Token) -> String {
        if token.kind == Kind::End { "'<EOF>'".to_string() } else { quote(&self.text(token)) }
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
