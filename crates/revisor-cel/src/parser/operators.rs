//! Operators, from the one that binds the least.

use super::token_sets::{COLON, EXPR, NOTHING, PRIMARY, PRODUCTS, QUESTION, RELATIONS, SUMS};
use super::{Parsed, Parser, Rule};
use crate::ast::Expr;
use crate::recovery::State;
use crate::token::{Kind, Token, TokenSet};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Expr, |this| {
            let condition = this.then(37, QUESTION.or_nothing(), Self::or)?;
            if !this.at(Kind::Question) {
                return Ok(condition);
            }
            let operator = this.tokens.accept();
            let yes = this.then(39, COLON, Self::or)?;
            this.tokens.take(40, Kind::Colon, EXPR)?;
            let no = this.then(41, NOTHING, Self::expr)?;
            let choice = this.builder.call(operator.start, "_?_:_", vec![condition, yes, no]);
            Ok(this.builder.deepen(choice))
        })
    }

    fn or(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Or, |this| this.joined(Kind::Or, "_||_", 45, Self::and))
    }

    fn and(&mut self) -> Parsed<Expr> {
        self.expression(Rule::And, |this| this.joined(Kind::And, "_&&_", 53, |this| this.relation(0)))
    }

    fn joined(
        &mut self,
        operator: Kind,
        function: &str,
        state: State,
        term: impl Fn(&mut Self) -> Parsed<Expr>,
    ) -> Parsed<Expr> {
        let follow = TokenSet::of(&[operator]).or_nothing();
        let first = self.then(state, follow, &term)?;
        if !self.at(operator) {
            return Ok(first);
        }
        let mut terms = vec![first];
        let mut operators = Vec::new();
        while self.at(operator) {
            operators.push(self.tokens.accept().start);
            terms.push(self.then(state + 2, follow, &term)?);
        }
        Ok(self.builder.balanced(function, terms, &operators))
    }

    fn relation(&mut self, precedence: u8) -> Parsed<Expr> {
        self.expression(Rule::Relation, |this| {
            let follow = RELATIONS.or_nothing();
            let mut left = this.then(62, follow, |this| this.calc(0))?;
            while precedence <= 1 && this.at_any(RELATIONS) {
                let operator = this.tokens.accept();
                let right = this.then(66, follow, |this| this.relation(2))?;
                left = this.binary(operator, left, right);
            }
            Ok(left)
        })
    }

    fn calc(&mut self, precedence: u8) -> Parsed<Expr> {
        self.expression(Rule::Calc, |this| {
            let follow = PRODUCTS.and(SUMS).or_nothing();
            let mut left = this.then(73, follow, Self::unary)?;
            loop {
                let (state, right_precedence) = match () {
                    () if precedence <= 2 && this.at_any(PRODUCTS) => (77, 3),
                    () if precedence <= 1 && this.at_any(SUMS) => (80, 2),
                    () => return Ok(left),
                };
                let operator = this.tokens.accept();
                let right = this.then(state, follow, |this| this.calc(right_precedence))?;
                left = this.binary(operator, left, right);
            }
        })
    }

    fn binary(&mut self, operator: Token, left: Expr, right: Expr) -> Expr {
        let function = match operator.kind {
            Kind::Equals => "_==_",
            Kind::NotEquals => "_!=_",
            Kind::In => "@in",
            Kind::Less => "_<_",
            Kind::LessEquals => "_<=_",
            Kind::GreaterEquals => "_>=_",
            Kind::Greater => "_>_",
            Kind::Star => "_*_",
            Kind::Slash => "_/_",
            Kind::Percent => "_%_",
            Kind::Plus => "_+_",
            _ => "_-_",
        };
        let call = self.builder.call(operator.start, function, vec![left, right]);
        self.builder.deepen(call)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Unary, |this| {
            this.tokens.sync(99, EXPR)?;
            match (this.tokens.look(1), this.tokens.look(2)) {
                (Kind::Exclamation, _) => this.not(),
                // The sign belongs to the literal.
                (Kind::Minus, Kind::Int | Kind::Float) => this.then(86, NOTHING, Self::member),
                (Kind::Minus, next) if PRIMARY.has(next) => this.negate(),
                (Kind::Minus, _) => Err(this.tokens.no_viable(2)),
                (next, _) if PRIMARY.has(next) => this.then(86, NOTHING, Self::member),
                _ => Err(this.tokens.no_viable(1)),
            }
        })
    }

    fn not(&mut self) -> Parsed<Expr> {
        let first = self.tokens.current();
        let mut odd = false;
        while {
            self.tokens.take(87, Kind::Exclamation, EXPR)?;
            odd = !odd;
            self.tokens.sync_loop(90, EXPR)?;
            self.at(Kind::Exclamation)
        } {}
        let operand = self.then(92, NOTHING, Self::member)?;
        Ok(if odd { self.builder.call(first.start, "!_", vec![operand]) } else { operand })
    }

    fn negate(&mut self) -> Parsed<Expr> {
        let first = self.tokens.current();
        let mut odd = false;
        loop {
            self.tokens.take(93, Kind::Minus, PRIMARY)?;
            odd = !odd;
            self.tokens.sync_loop(96, PRIMARY)?;
            match (self.tokens.look(1), self.tokens.look(2)) {
                (Kind::Minus, next) if PRIMARY.has(next) => {}
                (Kind::Minus, _) => return Err(self.tokens.no_viable(2)),
                (next, _) if PRIMARY.has(next) => break,
                _ => return Err(self.tokens.no_viable(1)),
            }
        }
        let operand = self.then(98, NOTHING, Self::member)?;
        Ok(if odd { self.builder.call(first.start, "-_", vec![operand]) } else { operand })
    }
}
