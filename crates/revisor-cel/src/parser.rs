//! From tokens to a tree, one method per rule of the grammar.
//!
//! Linear in the length of the expression: a choice that one token does not decide is decided by looking along a dotted
//! name once. The numbers are the places of the grammar, by which [`Recovery`] knows whether it is stuck.

use crate::ast::{Element, Entry, Expr, ExprKind, FieldInit, Literal, Struct};
use crate::builder::{Builder, DEEPEST};
use crate::macros::{self, Expansion, Macro, MacroCall};
use crate::quoted;
use crate::recovery::{Fault, Recovery, State};
use crate::source::{Issue, Location, Source};
use crate::token::{Kind, Token, TokenSet};

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

/// Parses an expression.
pub(crate) fn parse(source: &Source, syntax: Syntax<'_>) -> Result<Ast, Vec<Issue>> {
    let length = source.chars().len();
    if length > LONGEST {
        let message = format!("expression code point size exceeds limit: size: {length}, limit {LONGEST}");
        return Err(vec![Issue { location: Location::NONE, message }]);
    }
    let mut parser =
        Parser { tokens: Recovery::new(source), builder: Builder::new(source), syntax, depths: [0; RULES] };
    let root = parser.start();
    let Parser { tokens, mut builder, .. } = parser;
    let mut issues = tokens.issues;
    let root = match root {
        Ok(root) => root,
        Err(_) => return Err(issues),
    };
    if builder.too_deep || builder.too_many {
        let message = if builder.too_deep { "max recursion depth exceeded" } else { "expression is too large" };
        issues.push(Issue { location: Location::NONE, message: message.to_string() });
        return Err(issues);
    }
    issues.append(&mut builder.issues);
    if issues.is_empty() { Ok(Ast { root, positions: builder.positions }) } else { Err(issues) }
}

const PRIMARY: TokenSet = TokenSet::of(&[
    Kind::LeftBracket,
    Kind::LeftBrace,
    Kind::LeftParen,
    Kind::Dot,
    Kind::Minus,
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
    Kind::Identifier,
]);
/// What an expression begins with.
const EXPR: TokenSet = PRIMARY.and(TokenSet::of(&[Kind::Exclamation]));
const NOTHING: TokenSet = TokenSet::EMPTY.or_nothing();
const RELATIONS: TokenSet = TokenSet::of(&[
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
]);
const PRODUCTS: TokenSet = TokenSet::of(&[Kind::Star, Kind::Slash, Kind::Percent]);
const SUMS: TokenSet = TokenSet::of(&[Kind::Plus, Kind::Minus]);
const MEMBERS: TokenSet = TokenSet::of(&[Kind::Dot, Kind::LeftBracket]);
const QUESTION: TokenSet = TokenSet::of(&[Kind::Question]);
const FIELD_NAME: TokenSet = TokenSet::of(&[Kind::Identifier, Kind::EscapedIdentifier]);
const FIELD: TokenSet = FIELD_NAME.and(QUESTION);
const OPTIONAL_EXPR: TokenSet = EXPR.and(QUESTION);
const COMMA: TokenSet = TokenSet::of(&[Kind::Comma]);
const COLON: TokenSet = TokenSet::of(&[Kind::Colon]);
const CLOSING_PAREN: TokenSet = TokenSet::of(&[Kind::RightParen]);
const CLOSING_BRACKET: TokenSet = TokenSet::of(&[Kind::RightBracket]);
const CLOSING_BRACE: TokenSet = TokenSet::of(&[Kind::RightBrace]);

/// Names that may not be used for variables and functions.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

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

/// A field's name and where it stands; nothing if there was none to read.
type FieldName = (Option<String>, u32);

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

    fn expr(&mut self) -> Parsed<Expr> {
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

    fn member(&mut self) -> Parsed<Expr> {
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
    fn arguments(&mut self, state: State, after: TokenSet) -> Parsed<(Vec<Expr>, Option<Fault>)> {
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
    fn question(&mut self, state: State, next: TokenSet) -> Parsed<bool> {
        self.tokens.sync(state, next)?;
        let there = self.at(Kind::Question);
        if there {
            self.tokens.accept();
        }
        Ok(there)
    }

    fn primary(&mut self) -> Parsed<Expr> {
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
        let reserved = RESERVED.contains(&word.as_str());
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

    fn object(&mut self, dotted: bool, names: usize) -> Parsed<Expr> {
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

    fn list(&mut self) -> Parsed<Expr> {
        let open = self.tokens.take(148, Kind::LeftBracket, OPTIONAL_EXPR)?;
        let end = COMMA.and(CLOSING_BRACKET);
        self.tokens.sync(150, OPTIONAL_EXPR.and(end))?;
        let elements = if self.at_any(OPTIONAL_EXPR) { self.then(149, end, Self::elements)? } else { Vec::new() };
        self.trailing_comma(153, end)?;
        self.tokens.take(155, Kind::RightBracket, NOTHING)?;
        Ok(self.builder.node(open.start, ExprKind::List(elements)))
    }

    fn map(&mut self) -> Parsed<Expr> {
        let open = self.tokens.take(156, Kind::LeftBrace, OPTIONAL_EXPR)?;
        let end = COMMA.and(CLOSING_BRACE);
        self.tokens.sync(158, OPTIONAL_EXPR.and(end))?;
        let entries = if self.at_any(OPTIONAL_EXPR) { self.then(157, end, Self::entries)? } else { Vec::new() };
        self.trailing_comma(161, end)?;
        self.tokens.take(163, Kind::RightBrace, NOTHING)?;
        Ok(self.builder.node(open.start, ExprKind::Map(entries)))
    }

    fn exprs(&mut self) -> Parsed<Vec<Expr>> {
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

    fn field_name(&mut self) -> Parsed<FieldName> {
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
