//! What stands behind a value: fields, methods and indices.

use super::token_sets::{CLOSING_BRACKET, CLOSING_PAREN, EXPR, FIELD, MEMBERS, OPTIONAL_EXPR};
use super::{Parsed, Parser, Rule};
use crate::ast::{Expr, Literal};
use crate::macros::{self, Expansion, MacroCall};
use crate::recovery::{Fault, State};
use crate::token::{Kind, TokenSet};

impl Parser<'_> {
    pub(super) fn member(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Member, |this| {
            let follow = MEMBERS.or_nothing();
            let mut operand = this.then(102, follow, Self::primary)?;
            loop {
                operand = match (this.tokens.look(1), this.tokens.look(2)) {
                    (Kind::LeftBracket, _) => this.index(operand)?,
                    (Kind::Dot, Kind::Identifier) if this.tokens.look(3) == Kind::LeftParen => this.method(operand)?,
                    (Kind::Dot, Kind::Identifier | Kind::EscapedIdentifier | Kind::Question) => this.select(operand)?,
                    (Kind::Dot, _) => {
                        this.tokens.state = 126;
                        return Err(this.tokens.no_viable(2));
                    }
                    _ => return Ok(operand),
                };
            }
        })
    }

    fn select(&mut self, operand: Expr) -> Parsed<Expr> {
        let dot = self.tokens.take(105, Kind::Dot, FIELD)?;
        let optional = self.question(107, FIELD)?;
        let (name, at) = self.then(109, MEMBERS.or_nothing(), Self::field_name)?;
        let name = match name {
            Some(name) => name,
            None => return Ok(self.builder.unspecified(at)),
        };
        if !optional {
            let select = self.builder.select(dot.start, operand, name, false);
            return Ok(self.builder.deepen(select));
        }
        if !self.syntax.optionals {
            return Ok(self.builder.wrong(dot.start, "unsupported syntax '.?'"));
        }
        let name = self.builder.literal(at, Literal::String(name));
        let call = self.builder.call(dot.start, "_?._", vec![operand, name]);
        Ok(self.builder.deepen(call))
    }

    fn method(&mut self, target: Expr) -> Parsed<Expr> {
        self.tokens.take(111, Kind::Dot, TokenSet::of(&[Kind::Identifier]))?;
        let name = self.tokens.take(112, Kind::Identifier, TokenSet::of(&[Kind::LeftParen]))?;
        let name = self.tokens.text(name);
        let open = self.tokens.take(113, Kind::LeftParen, EXPR.and(CLOSING_PAREN))?;
        let (args, unclosed) = self.arguments(115, MEMBERS.or_nothing())?;
        let call = MacroCall { position: open.start, target: Some(target), args };
        let call = match macros::expand(&mut self.builder, self.syntax.macros, &name, call) {
            Expansion::To(expr) => expr,
            Expansion::Not(MacroCall { position, target, args }) => {
                let target = target.unwrap_or_else(|| self.builder.unspecified(position));
                self.builder.member_call(position, &name, target, args)
            }
        };
        unclosed.map_or_else(|| Ok(self.builder.deepen(call)), Err)
    }

    /// What stands between parentheses, and what is wrong if there is no closing one, after which `after` comes: what
    /// can be said about the arguments is said nevertheless.
    pub(super) fn arguments(&mut self, state: State, after: TokenSet) -> Parsed<(Vec<Expr>, Option<Fault>)> {
        self.tokens.sync(state, EXPR.and(CLOSING_PAREN))?;
        let args = if self.at_any(EXPR) { self.then(state - 1, CLOSING_PAREN, Self::exprs)? } else { Vec::new() };
        let unclosed = self.tokens.take(state + 2, Kind::RightParen, after).err();
        Ok((args, unclosed))
    }

    fn index(&mut self, operand: Expr) -> Parsed<Expr> {
        let open = self.tokens.take(119, Kind::LeftBracket, OPTIONAL_EXPR)?;
        let optional = self.question(121, OPTIONAL_EXPR)?;
        let index = self.then(123, CLOSING_BRACKET, Self::expr)?;
        self.tokens.take(124, Kind::RightBracket, MEMBERS.or_nothing())?;
        if optional && !self.syntax.optionals {
            return Ok(self.builder.wrong(open.start, "unsupported syntax '[?'"));
        }
        let function = if optional { "_[?_]" } else { "_[_]" };
        let call = self.builder.call(open.start, function, vec![operand, index]);
        Ok(self.builder.deepen(call))
    }

    /// Takes a question mark if there is one.
    pub(super) fn question(&mut self, state: State, next: TokenSet) -> Parsed<bool> {
        self.tokens.sync(state, next)?;
        let there = self.at(Kind::Question);
        if there {
            self.tokens.accept();
        }
        Ok(there)
    }
}
