//! From tokens to a tree, one method per rule of the grammar.
//!
//! Linear in the length of the expression: a choice that one token does not decide is decided by looking along a dotted
//! name once. The numbers are the places of the grammar, by which [`Recovery`] knows whether it is stuck.
//!
//! Here is how any rule is matched; the rules themselves are in the modules below, from the outermost to the innermost:
//! `operators.rs`, `members.rs`, `primaries.rs` and what those hold, `lists.rs`.

mod lists;
mod members;
mod operators;
mod primaries;
mod token_sets;

use self::token_sets::NOTHING;
use crate::ast::Expr;
use crate::builder::{Builder, DEEPEST};
use crate::macros::Macro;
use crate::recovery::{Fault, Recovery, State};
use crate::source::{Issue, Location, Source};
use crate::token::{Kind, TokenSet};

/// How long an expression may be, in characters.
const LONGEST: usize = 100_000;

/// A tree, and where each of its nodes stands.
#[derive(Debug)]
pub(crate) struct Ast {
    pub(crate) root: Expr,
    pub(crate) positions: Vec<u32>,
}

/// What the parser takes beside the grammar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Syntax<'a> {
    pub(crate) macros: &'a [&'static Macro],
    /// Whether `a.?b`, `a[?b]` and `[?a]` are taken.
    pub(crate) optionals: bool,
}

/// Parses an expression. If it is none, says why, and of how many nodes it was made until that showed.
pub(crate) fn parse(source: &Source, syntax: Syntax<'_>) -> Result<Ast, (Vec<Issue>, usize)> {
    let length = source.chars().len();
    if length > LONGEST {
        let message = format!("expression code point size exceeds limit: size: {length}, limit {LONGEST}");
        return Err((vec![Issue { location: Location::NONE, message }], 0));
    }
    let mut parser =
        Parser { tokens: Recovery::new(source), builder: Builder::new(source), syntax, depths: [0; RULES] };
    let root = parser.start();
    let Parser { tokens, mut builder, .. } = parser;
    let mut issues = tokens.issues;
    let nodes = builder.positions.len();
    let root = match root {
        Ok(root) => root,
        Err(_) => return Err((issues, nodes)),
    };
    if builder.too_deep || builder.too_many {
        let message = if builder.too_deep { "max recursion depth exceeded" } else { "expression is too large" };
        issues.push(Issue { location: Location::NONE, message: message.to_string() });
        return Err((issues, nodes));
    }
    issues.append(&mut builder.issues);
    if issues.is_empty() { Ok(Ast { root, positions: builder.positions }) } else { Err((issues, nodes)) }
}

#[derive(Clone, Copy)]
enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    Exprs,
    Elements,
    Fields,
    Field,
    Entries,
    FieldName,
    OptionalExpr,
    Literal,
}

const RULES: usize = Rule::Literal as usize + 1;

struct Parser<'a> {
    tokens: Recovery<'a>,
    builder: Builder<'a>,
    syntax: Syntax<'a>,
    /// How often each rule is being matched.
    depths: [u16; RULES],
}

type Parsed<T> = Result<T, Fault>;

impl Parser<'_> {
    /// Matches a rule. If it is given up, what it stands for is `without`, made for the place where it began.
    fn rule<T>(
        &mut self,
        rule: Rule,
        body: impl FnOnce(&mut Self) -> Parsed<T>,
        without: impl FnOnce(&mut Self, u32) -> T,
    ) -> Parsed<T> {
        let depth = &mut self.depths[rule as usize];
        *depth += 1;
        if *depth > DEEPEST {
            return Err(self.tokens.abort(format!("expression recursion limit exceeded: {DEEPEST}")));
        }
        let start = self.tokens.current().start;
        let matched = body(self);
        let result = match matched {
            Ok(matched) => matched,
            Err(fault) => {
                self.tokens.give_up(fault)?;
                without(self, start)
            }
        };
        self.depths[rule as usize] -= 1;
        Ok(result)
    }

    fn expression(&mut self, rule: Rule, body: impl FnOnce(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        self.rule(rule, body, |this, start| this.builder.unspecified(start))
    }

    /// Matches a rule after which one of `follow` comes.
    fn then<T>(&mut self, state: State, follow: TokenSet, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.tokens.state = state;
        self.tokens.push(follow);
        let result = rule(self)?;
        self.tokens.pop();
        self.tokens.state = state;
        Ok(result)
    }

    fn at(&self, kind: Kind) -> bool {
        self.tokens.look(1) == kind
    }

    fn at_any(&self, kinds: TokenSet) -> bool {
        kinds.has(self.tokens.look(1))
    }

    fn start(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Start, |this| {
            let expr = this.then(34, TokenSet::of(&[Kind::End]), Self::expr)?;
            this.tokens.take(35, Kind::End, NOTHING)?;
            Ok(expr)
        })
    }
}
