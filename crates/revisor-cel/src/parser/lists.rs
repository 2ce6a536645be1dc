//! What is listed between brackets: arguments, and the content of lists, maps and objects.

use super::token_sets::{
    CLOSING_BRACE, CLOSING_BRACKET, COLON, COMMA, EXPR, FIELD, FIELD_NAME, NOTHING, OPTIONAL_EXPR,
};
use super::{Parsed, Parser, Rule};
use crate::ast::{Element, Entry, Expr, ExprKind, FieldInit, Struct};
use crate::recovery::State;
use crate::token::{Kind, TokenSet};

/// A field's name and where it stands; nothing if there was none to read.
pub(super) type FieldName = (Option<String>, u32);

impl Parser<'_> {
    pub(super) fn object(&mut self, dotted: bool, names: usize) -> Parsed<Expr> {
        let mut name = String::new();
        for _ in 0..2 * names - 1 + usize::from(dotted) {
            let token = self.tokens.accept();
            name += &self.tokens.text(token);
        }
        let open = self.tokens.accept();
        let end = COMMA.and(CLOSING_BRACE);
        self.tokens.sync(177, FIELD.and(end))?;
        let fields = if self.at_any(FIELD) { self.then(176, end, Self::fields)? } else { Vec::new() };
        self.trailing_comma(180, end)?;
        self.tokens.take(182, Kind::RightBrace, NOTHING)?;
        Ok(self.builder.node(open.start, ExprKind::Struct(Box::new(Struct { name, fields }))))
    }

    fn trailing_comma(&mut self, state: State, end: TokenSet) -> Parsed<()> {
        self.tokens.sync(state, end)?;
        if self.at(Kind::Comma) {
            self.tokens.accept();
        }
        Ok(())
    }

    pub(super) fn list(&mut self) -> Parsed<Expr> {
        let open = self.tokens.take(148, Kind::LeftBracket, OPTIONAL_EXPR)?;
        let end = COMMA.and(CLOSING_BRACKET);
        self.tokens.sync(150, OPTIONAL_EXPR.and(end))?;
        let elements = if self.at_any(OPTIONAL_EXPR) { self.then(149, end, Self::elements)? } else { Vec::new() };
        self.trailing_comma(153, end)?;
        self.tokens.take(155, Kind::RightBracket, NOTHING)?;
        Ok(self.builder.node(open.start, ExprKind::List(elements)))
    }

    pub(super) fn map(&mut self) -> Parsed<Expr> {
        let open = self.tokens.take(156, Kind::LeftBrace, OPTIONAL_EXPR)?;
        let end = COMMA.and(CLOSING_BRACE);
        self.tokens.sync(158, OPTIONAL_EXPR.and(end))?;
        let entries = if self.at_any(OPTIONAL_EXPR) { self.then(157, end, Self::entries)? } else { Vec::new() };
        self.trailing_comma(161, end)?;
        self.tokens.take(163, Kind::RightBrace, NOTHING)?;
        Ok(self.builder.node(open.start, ExprKind::Map(entries)))
    }

    pub(super) fn exprs(&mut self) -> Parsed<Vec<Expr>> {
        let body = |this: &mut Self| {
            let mut exprs = vec![this.then(186, COMMA.or_nothing(), Self::expr)?];
            while this.at(Kind::Comma) {
                this.tokens.accept();
                exprs.push(this.then(188, COMMA.or_nothing(), Self::expr)?);
            }
            Ok(exprs)
        };
        self.rule(Rule::Exprs, body, |_, _| Vec::new())
    }

    fn elements(&mut self) -> Parsed<Vec<Element>> {
        let body = |this: &mut Self| {
            let mut elements = vec![this.then(194, COMMA.or_nothing(), Self::optional_expr)?];
            while this.at(Kind::Comma) && OPTIONAL_EXPR.has(this.tokens.look(2)) {
                this.tokens.accept();
                elements.push(this.then(196, COMMA.or_nothing(), Self::optional_expr)?);
            }
            Ok(elements)
        };
        self.rule(Rule::Elements, body, |_, _| Vec::new())
    }

    fn optional_expr(&mut self) -> Parsed<Element> {
        let body = |this: &mut Self| {
            let mark = this.tokens.current();
            let optional = this.question(238, OPTIONAL_EXPR)?;
            let value = this.then(240, NOTHING, Self::expr)?;
            if optional && !this.syntax.optionals {
                this.builder.wrong(mark.start, "unsupported syntax '?'");
            }
            Ok(Element { value, optional })
        };
        self.rule(Rule::OptionalExpr, body, |this, start| Element {
            value: this.builder.unspecified(start),
            optional: false,
        })
    }

    fn entries(&mut self) -> Parsed<Vec<Entry>> {
        let body = |this: &mut Self| {
            let mut entries = vec![this.entry(220)?];
            while this.at(Kind::Comma) && OPTIONAL_EXPR.has(this.tokens.look(2)) {
                this.tokens.accept();
                entries.push(this.entry(224)?);
            }
            Ok(entries)
        };
        self.rule(Rule::Entries, body, |_, _| Vec::new())
    }

    fn entry(&mut self, state: State) -> Parsed<Entry> {
        let Element { value: key, optional } = self.then(state, COLON, Self::optional_expr)?;
        let colon = self.tokens.take(state + 1, Kind::Colon, EXPR)?;
        let value = self.then(state + 2, COMMA.or_nothing(), Self::expr)?;
        Ok(Entry { id: self.builder.id(colon.start), key, value, optional })
    }

    fn fields(&mut self) -> Parsed<Vec<FieldInit>> {
        let body = |this: &mut Self| {
            let mut fields = Vec::new();
            this.field(202, &mut fields)?;
            while this.at(Kind::Comma) && FIELD.has(this.tokens.look(2)) {
                this.tokens.accept();
                this.field(206, &mut fields)?;
            }
            Ok(fields)
        };
        self.rule(Rule::Fields, body, |_, _| Vec::new())
    }

    fn field(&mut self, state: State, fields: &mut Vec<FieldInit>) -> Parsed<()> {
        let ((name, _), optional) = self.then(state, COLON, |this| {
            let body = |this: &mut Self| {
                let mark = this.tokens.current();
                let optional = this.question(216, FIELD)?;
                if optional && !this.syntax.optionals {
                    this.builder.wrong(mark.start, "unsupported syntax '?'");
                }
                Ok((this.then(218, NOTHING, Self::field_name)?, optional))
            };
            this.rule(Rule::Field, body, |_, start| ((None, start), false))
        })?;
        let colon = self.tokens.take(state + 1, Kind::Colon, EXPR)?;
        let value = self.then(state + 2, COMMA.or_nothing(), Self::expr)?;
        if let Some(name) = name {
            fields.push(FieldInit { id: self.builder.id(colon.start), name, value, optional });
        }
        Ok(())
    }

    pub(super) fn field_name(&mut self) -> Parsed<FieldName> {
        let body = |this: &mut Self| {
            this.tokens.sync(235, FIELD_NAME)?;
            let token = this.tokens.current();
            match token.kind {
                Kind::Identifier => {
                    this.tokens.accept();
                    Ok((Some(this.tokens.text(token)), token.start))
                }
                Kind::EscapedIdentifier => {
                    this.tokens.accept();
                    this.builder.wrong(token.start, "unsupported syntax: '`'");
                    Ok((None, token.start))
                }
                _ => Err(this.tokens.no_viable(1)),
            }
        };
        self.rule(Rule::FieldName, body, |this, start| {
            this.builder.wrong(start, "unsupported ident kind");
            (None, start)
        })
    }
}
