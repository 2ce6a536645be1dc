//! [`LabelSelector`]: which objects a request is about, by their labels.
//!
//! Reads the form that stands in a query (`a=b,c!=d,e in (x,y),!f`) and explains what it cannot read in the words of
//! Kubernetes. The structured form inside of objects is made of the same [`Requirement`]s.

use std::fmt;
use std::iter::Peekable;
use std::str::FromStr;

use crate::field_error::{FieldError, aggregate_message};
use crate::field_errors::FieldErrors;
use crate::field_path::FieldPath;
use crate::names;

/// The longest selector that is read, in bytes. No longer one fits into the URL of a request.
pub const MAX_LABEL_SELECTOR_BYTES: usize = 64 * 1024;

/// The most requirements in one selector. Each of them is evaluated for each object that a list or watch passes over.
pub const MAX_LABEL_REQUIREMENTS: usize = 1024;

/// A condition on the labels of an object: all of its requirements must hold.
///
/// ```
/// use revisor_object::LabelSelector;
///
/// let selector: LabelSelector = "tier in (web, db), !canary".parse().unwrap();
/// assert!(selector.matches(|key| (key == "tier").then_some("web")));
/// assert!(!selector.matches(|_| Some("web")));
/// assert_eq!(selector.to_string(), "!canary,tier in (db,web)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    // Sorted by key, so that selectors that mean the same mostly read the same.
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// The selector that every object satisfies.
    pub const fn everything() -> LabelSelector {
        LabelSelector { requirements: Vec::new() }
    }

    /// The selector that asks for all of these.
    pub fn new(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector { requirements }
    }

    /// Whether every object satisfies it.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// What it asks for, ordered by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object satisfies it, whose labels `lookup` knows.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(lookup(&requirement.key)))
    }

    /// The only value that it allows for this label, if it allows only one.
    pub fn exact(&self, key: &str) -> Option<&str> {
        self.requirements.iter().filter(|requirement| requirement.key == key).find_map(Requirement::exact)
    }
}

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: LabelOperator,
    // Sorted and distinct. As many as the operator asks for.
    values: Vec<String>,
}

/// How a [`Requirement`] relates a label to its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelOperator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is missing.
    NotIn,
    /// The label has the value. Written `=`.
    Equals,
    /// The same, written `==`.
    DoubleEquals,
    /// The label has another value, or is missing.
    NotEquals,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is an integer greater than the value.
    GreaterThan,
    /// The label is an integer less than the value.
    LessThan,
}

impl Requirement {
    /// The requirement that `key` relates to `values` in this way.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the key, the values and their number.
    pub fn new(key: &str, operator: LabelOperator, mut values: Vec<String>) -> Result<Requirement, FieldErrors> {
        let none = FieldPath::none();
        let path = none.child("values");
        let mut errors = FieldErrors::new();
        errors.extend(check_key(key, &none.child("key")));

        let miscounted = |detail: &str| {
            // Kubernetes holds "no values" as a null list.
            let shown = if values.is_empty() { serde_json::Value::Null } else { values.clone().into() };
            FieldError::invalid(path, shown, detail)
        };
        match operator {
            LabelOperator::In | LabelOperator::NotIn if values.is_empty() => {
                errors.push(miscounted("for 'in', 'notin' operators, values set can't be empty"));
            }
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::NotEquals if values.len() != 1 => {
                errors.push(miscounted("exact-match compatibility requires one single value"));
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist if !values.is_empty() => {
                errors.push(miscounted("values set must be empty for exists and does not exist"));
            }
            LabelOperator::GreaterThan | LabelOperator::LessThan => {
                if values.len() != 1 {
                    errors.push(miscounted("for 'Gt', 'Lt' operators, exactly one value is required"));
                }
                for (index, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                    let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(FieldError::invalid(path.index(index), value.as_str(), detail));
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(path.index(index).key(key), value.as_str(), problems.join("; ")));
            }
        }

        if !errors.is_empty() {
            return Err(errors);
        }
        values.sort_unstable();
        values.dedup();
        Ok(Requirement { key: key.to_owned(), operator, values })
    }

    /// The key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> LabelOperator {
        self.operator
    }

    /// The values, sorted and distinct.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value satisfies it; `None` is a label that is missing.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let among = |label: &str| self.values.binary_search_by(|value| value.as_str().cmp(label)).is_ok();
        match self.operator {
            LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => label.is_some_and(among),
            LabelOperator::NotIn | LabelOperator::NotEquals => !label.is_some_and(among),
            LabelOperator::Exists => label.is_some(),
            LabelOperator::DoesNotExist => label.is_none(),
            LabelOperator::GreaterThan => self.numbers(label).is_some_and(|(label, bound)| label > bound),
            LabelOperator::LessThan => self.numbers(label).is_some_and(|(label, bound)| label < bound),
        }
    }

    fn numbers(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn exact(&self) -> Option<&str> {
        match (self.operator, self.values.as_slice()) {
            (LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In, [only]) => Some(only),
            _ => None,
        }
    }
}

fn check_key(key: &str, path: &FieldPath<'_>) -> Option<FieldError> {
    let problems = names::qualified_name(key);
    (!problems.is_empty()).then(|| FieldError::invalid(path, key, problems.join("; ")))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Equals => write!(f, "{key}={values}"),
            LabelOperator::DoubleEquals => write!(f, "{key}=={values}"),
            LabelOperator::NotEquals => write!(f, "{key}!={values}"),
            LabelOperator::Exists => f.write_str(key),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// Why a text is not a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelSelectorError {
    /// More than [`MAX_LABEL_SELECTOR_BYTES`].
    #[error("label selector is longer than {MAX_LABEL_SELECTOR_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_LABEL_REQUIREMENTS`].
    #[error("label selector has more than {MAX_LABEL_REQUIREMENTS} requirements")]
    TooManyRequirements,
    /// Does not follow the grammar, or names what cannot be a label.
    #[error("{0}")]
    Syntax(String),
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    fn from_str(text: &str) -> Result<LabelSelector, LabelSelectorError> {
        if text.len() > MAX_LABEL_SELECTOR_BYTES {
            return Err(LabelSelectorError::TooLong);
        }
        Parser { tokens: Tokens { rest: text }.peekable() }.selector().map(LabelSelector::new)
    }
}

/// A word, or one of the symbols `! = == != ( ) , > <`.
///
/// `in` and `notin` are words like all others: only their position makes them operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Symbol(text) => text,
            Token::End => "",
        }
    }

    fn is(self, symbol: &str) -> bool {
        self == Token::Symbol(symbol)
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        const BLANKS: &[char] = &[' ', '\t', '\r', '\n'];
        const SYMBOLS: &[char] = &['=', '!', '(', ')', ',', '>', '<'];

        self.rest = self.rest.trim_start_matches(BLANKS);
        if self.rest.is_empty() {
            return None;
        }
        // DIFFERENCE: to the original a NUL ends the selector, and what follows is silently ignored. Here it belongs
        // to a word and makes that an invalid one.
        let (length, token): (usize, fn(&'a str) -> Token<'a>) =
            if self.rest.starts_with("==") || self.rest.starts_with("!=") {
                (2, Token::Symbol)
            } else if self.rest.starts_with(SYMBOLS) {
                (1, Token::Symbol)
            } else {
                let end = self.rest.find(|c| BLANKS.contains(&c) || SYMBOLS.contains(&c));
                (end.unwrap_or(self.rest.len()), Token::Word)
            };
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token(text))
    }
}

/// One method per rule of the grammar. None of them recurses.
struct Parser<'a> {
    tokens: Peekable<Tokens<'a>>,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Token<'a> {
        self.tokens.peek().copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        self.tokens.next().unwrap_or(Token::End)
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, LabelSelectorError> {
        let syntax = |message| Err(LabelSelectorError::Syntax(message));
        let begins_requirement = |token: Token<'_>| matches!(token, Token::Word(_)) || token.is("!");

        let mut requirements = Vec::new();
        let first = self.peek();
        if first == Token::End {
            return Ok(requirements);
        }
        if !begins_requirement(first) {
            return syntax(format!("found '{}', expected: !, identifier, or 'end of string'", first.text()));
        }
        loop {
            if requirements.len() == MAX_LABEL_REQUIREMENTS {
                return Err(LabelSelectorError::TooManyRequirements);
            }
            match self.requirement() {
                Ok(requirement) => requirements.push(requirement),
                Err(message) => return syntax(format!("unable to parse requirement: {message}")),
            }
            let separator = self.take();
            if separator == Token::End {
                return Ok(requirements);
            }
            if !separator.is(",") {
                return syntax(format!("found '{}', expected: ',' or 'end of string'", separator.text()));
            }
            let next = self.peek();
            if !begins_requirement(next) {
                return syntax(format!("found '{}', expected: identifier after ','", next.text()));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek().is("!");
        if negated {
            self.take();
        }
        let key = self.word()?;
        if let Some(error) = check_key(key, &FieldPath::none()) {
            return Err(error.to_string());
        }
        let next = self.peek();
        let (operator, values) = if negated {
            (LabelOperator::DoesNotExist, Vec::new())
        } else if next == Token::End || next.is(",") {
            (LabelOperator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                LabelOperator::In | LabelOperator::NotIn => self.value_set()?,
                _ => vec![self.single_value()?],
            };
            (operator, values)
        };
        Requirement::new(key, operator, values).map_err(|errors| aggregate_message(&errors))
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.take() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn operator(&mut self) -> Result<LabelOperator, String> {
        Ok(match self.take() {
            Token::Word("in") => LabelOperator::In,
            Token::Word("notin") => LabelOperator::NotIn,
            Token::Symbol("=") => LabelOperator::Equals,
            Token::Symbol("==") => LabelOperator::DoubleEquals,
            Token::Symbol("!=") => LabelOperator::NotEquals,
            Token::Symbol(">") => LabelOperator::GreaterThan,
            Token::Symbol("<") => LabelOperator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        })
    }

    /// The value of an equation. Nothing before the end or a comma is the empty value.
    fn single_value(&mut self) -> Result<String, String> {
        let next = self.peek();
        if next == Token::End || next.is(",") { Ok(String::new()) } else { self.word().map(str::to_owned) }
    }

    /// The values in parentheses. Nothing beside a comma or between the parentheses is the empty value.
    fn value_set(&mut self) -> Result<Vec<String>, String> {
        let open = self.take();
        if !open.is("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let first = self.peek();
        if !matches!(first, Token::Word(_)) && !first.is(",") && !first.is(")") {
            return Err(format!("found '{}', expected: ',', ')' or identifier", first.text()));
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                Token::Word(word) => {
                    self.take();
                    values.push(word.to_owned());
                }
                token if token.is(",") || token.is(")") => values.push(String::new()),
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
            match self.take() {
                token if token.is(",") => {}
                token if token.is(")") => break,
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
        // Errors count the values in this order.
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

#[cfg(test)]
mod tests;
