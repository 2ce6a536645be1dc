//! What is a value by itself: literals, names, calls, and expressions in parentheses.

use super::token_sets::{CLOSING_PAREN, EXPR, NOTHING, PRIMARY};
use super::{Parsed, Parser, Rule};
use crate::ast::{Expr, Literal};
use crate::eval::escaping::is_reserved;
use crate::macros::{self, Expansion, MacroCall};
use crate::quoted;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Primary, |this| {
            this.tokens.sync(184, PRIMARY)?;
            match this.tokens.look(1) {
                Kind::LeftParen => this.parenthesized(),
                Kind::LeftBracket => this.list(),
                Kind::LeftBrace => this.map(),
                Kind::Identifier | Kind::Dot => this.named(),
                next if PRIMARY.has(next) => this.then(183, NOTHING, Self::literal),
                _ => Err(this.tokens.no_viable(1)),
            }
        })
    }

    fn parenthesized(&mut self) -> Parsed<Expr> {
        self.tokens.take(144, Kind::LeftParen, EXPR)?;
        let expr = self.then(145, CLOSING_PAREN, Self::expr)?;
        self.tokens.take(146, Kind::RightParen, NOTHING)?;
        Ok(expr)
    }

    /// A name, a call or an object: what comes after the dotted name decides.
    fn named(&mut self) -> Parsed<Expr> {
        let dotted = usize::from(self.at(Kind::Dot));
        if self.tokens.look(dotted + 1) != Kind::Identifier {
            return Err(self.tokens.no_viable(2));
        }
        let mut names = 1;
        let after = |this: &Self, names: usize| this.tokens.look(dotted + 2 * names);
        while after(self, names) == Kind::Dot && self.tokens.look(dotted + 2 * names + 1) == Kind::Identifier {
            names += 1;
        }
        let dot = if dotted > 0 { "." } else { "" };
        let start = self.tokens.current().start;
        if after(self, names) == Kind::LeftBrace {
            return self.object(dotted > 0, names);
        }
        if dotted > 0 {
            self.tokens.accept();
        }
        let token = self.tokens.accept();
        let word = self.tokens.text(token);
        let reserved = is_reserved(&word);
        let name = format!("{dot}{word}");
        if !self.at(Kind::LeftParen) {
            return Ok(match reserved {
                true => self.builder.wrong(start, format!("reserved identifier: {word}")),
                false => self.builder.ident(token.start, name),
            });
        }
        let open = self.tokens.accept();
        let (args, unclosed) = self.arguments(141, NOTHING)?;
        if reserved {
            let wrong = self.builder.wrong(start, format!("reserved identifier: {word}"));
            return unclosed.map_or(Ok(wrong), Err);
        }
        let call = MacroCall { position: open.start, target: None, args };
        let call = match macros::expand(&mut self.builder, self.syntax.macros, &name, call) {
            Expansion::To(expr) => expr,
            Expansion::Not(MacroCall { position, args, .. }) => self.builder.call(position, &name, args),
        };
        unclosed.map_or(Ok(call), Err)
    }

    fn literal(&mut self) -> Parsed<Expr> {
        self.expression(Rule::Literal, |this| {
            let start = this.tokens.current().start;
            let negative = this.at(Kind::Minus);
            if negative {
                if !matches!(this.tokens.look(2), Kind::Int | Kind::Float) {
                    return Err(this.tokens.no_viable(2));
                }
                this.tokens.accept();
            }
            let token = this.tokens.accept();
            let text = this.tokens.text(token);
            Ok(match literal(token.kind, &text, negative) {
                Ok(literal) => this.builder.literal(start, literal),
                Err(message) => this.builder.wrong(start, message),
            })
        })
    }
}

/// What a literal stands for.
fn literal(kind: Kind, text: &str, negative: bool) -> Result<Literal, &'static str> {
    let sign = if negative { "-" } else { "" };
    let (radix, digits) = match text.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    match kind {
        Kind::Int => {
            i64::from_str_radix(&format!("{sign}{digits}"), radix).map(Literal::Int).map_err(|_| "invalid int literal")
        }
        Kind::Uint => u64::from_str_radix(digits.trim_end_matches(['u', 'U']), radix)
            .map(Literal::Uint)
            .map_err(|_| "invalid uint literal"),
        Kind::Float => match format!("{sign}{text}").parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Literal::Double(number)),
            _ => Err("invalid double literal"),
        },
        Kind::String => quoted::string(text).map(Literal::String),
        Kind::Bytes => quoted::bytes(&text[1..]).map(Literal::Bytes),
        Kind::True => Ok(Literal::Bool(true)),
        Kind::False => Ok(Literal::Bool(false)),
        _ => Ok(Literal::Null),
    }
}
