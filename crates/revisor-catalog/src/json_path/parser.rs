//! Reading paths, as the original does it.

use revisor_object::Value;

use super::{Node, Slice};

/// How deep paths may stand within each other.
const MAX_DEPTH: usize = 32;

/// Reads a template: texts, and paths in braces. `None` if it is malformed.
pub(super) fn parse(template: &str) -> Option<Vec<Vec<Node>>> {
    parse_within(template, 0)
}

fn parse_within(template: &str, depth: usize) -> Option<Vec<Vec<Node>>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut actions = Vec::new();
    let mut rest = template;
    loop {
        let open = rest.find('{').unwrap_or(rest.len());
        let (text, behind) = rest.split_at(open);
        if !text.is_empty() {
            actions.push(vec![Node::Literal(Value::from(text))]);
        }
        let Some(inside) = behind.strip_prefix('{') else { return Some(actions) };
        let mut reader = Reader { rest: inside, depth, nodes: Vec::new() };
        reader.action()?;
        actions.push(reader.nodes);
        rest = reader.rest;
    }
}

/// The path that stands by itself inside of another.
fn inner(path: &str, depth: usize) -> Option<Vec<Node>> {
    parse_within(&format!("{{{path}}}"), depth + 1)?.into_iter().next()
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
    nodes: Vec<Node>,
}

impl<'a> Reader<'a> {
    /// Reads up to the closing brace, and over it.
    fn action(&mut self) -> Option<()> {
        loop {
            if self.eat("}") {
                return Some(());
            }
            if self.eat("[?(") {
                self.filter()?;
                continue;
            }
            if self.eat("..") {
                if self.nodes.last() == Some(&Node::Descent) {
                    return None;
                }
                self.nodes.push(Node::Descent);
                if self.rest.chars().next().is_some_and(is_alphanumeric) {
                    self.field();
                }
                continue;
            }
            match self.rest.chars().next()? {
                ' ' | '@' | '$' => self.rest = &self.rest[1..],
                '[' => {
                    self.rest = &self.rest[1..];
                    self.array()?;
                }
                quote @ ('"' | '\'') => self.quoted(quote)?,
                '.' => {
                    self.rest = &self.rest[1..];
                    self.field();
                }
                '+' | '-' | '0'..='9' => self.number()?,
                letter if is_alphanumeric(letter) => self.word(),
                _ => return None,
            }
        }
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let behind = self.rest.strip_prefix(prefix);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// A name up to what cannot be in one. A backslash takes the meaning of what is behind it.
    fn field(&mut self) {
        let mut is_escaped = false;
        let end = self.rest.char_indices().find(|(_, character)| {
            let ends = !is_escaped && is_terminator(*character);
            is_escaped = !is_escaped && *character == '\\';
            ends
        });
        let name = self.take(end.map_or(self.rest.len(), |(at, _)| at));
        self.nodes.push(if name == "*" { Node::Wildcard } else { Node::Field(name.replace('\\', "")) });
    }

    fn word(&mut self) {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let node = match self.take(end) {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            _ => Node::Word,
        };
        self.nodes.push(node);
    }

    fn number(&mut self) -> Option<()> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |at| at + sign));
        let whole = text.parse().map(Value::Int).ok();
        let number = whole.or_else(|| text.parse().map(Value::Float).ok())?;
        self.nodes.push(Node::Literal(number));
        Some(())
    }

    fn quoted(&mut self, quote: char) -> Option<()> {
        let end = closing_quote(&self.rest[1..], quote)?;
        let text = self.take(end + 2);
        self.nodes.push(Node::Literal(Value::from(unescape(&text[1..=end]))));
        Some(())
    }

    /// What stands in brackets, of which the first is read.
    fn array(&mut self) -> Option<()> {
        let end = self.rest.find(']')?;
        let text = &self.take(end + 1)[..end];
        if text.contains('\n') {
            return None;
        }
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let paths = text.split(',').map(|part| inner(&format!("[{}]", part.trim_matches(' ')), self.depth));
            self.nodes.push(Node::Union(paths.collect::<Option<_>>()?));
            return Some(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            self.nodes.extend(inner(&format!(".{key}"), self.depth)?);
            return Some(());
        }
        self.nodes.push(Node::Slice(slice(text)?));
        Some(())
    }

    /// A condition, up to its closing parenthesis and bracket.
    fn filter(&mut self) -> Option<()> {
        let (mut quote, mut is_closed, mut last) = (None, false, ' ');
        let end = self.rest.char_indices().find(|(_, character)| {
            match (*character, quote) {
                ('"' | '\'', None) => quote = Some(*character),
                (character, Some(open)) if character == open && last != '\\' => is_closed = true,
                (')', _) if quote.is_some() == is_closed => return true,
                ('\n', _) => return true,
                _ => {}
            }
            last = *character;
            false
        });
        let text = self.take(end?.0);
        if !self.eat(")]") {
            return None;
        }
        let is_operator = |character: char| matches!(character, '!' | '<' | '>' | '=');
        let parts = text.find(is_operator).filter(|at| *at > 0).and_then(|start| {
            let (left, rest) = text.split_at(start);
            // Something stands on the right: if nothing else does, the last sign of the operator.
            let end = rest.find(|c| !is_operator(c)).unwrap_or(rest.len() - 1);
            let (operator, right) = rest.split_at(end);
            (end > 0).then_some((left, operator, right))
        });
        self.nodes.push(match parts {
            None => Node::Filter { left: inner(text, self.depth)?, operator: "exists".to_owned(), right: Vec::new() },
            Some((left, operator, right)) => Node::Filter {
                left: inner(left, self.depth)?,
                operator: operator.to_owned(),
                right: inner(right, self.depth)?,
            },
        });
        Some(())
    }
}

/// `START:END:STEP`, each of which may be left out.
fn slice(text: &str) -> Option<Slice> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return None;
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Some(None),
        Some(part) if part.starts_with('+') => None,
        Some(part) => part.parse::<i64>().ok().map(Some),
    };
    let start = number(0)?;
    let (end, is_single) = match parts.len() {
        // Behind the largest number the original begins anew, and finds nothing there.
        1 => (Some(start.unwrap_or_default().wrapping_add(1)), true),
        _ => (number(1)?, false),
    };
    Some(Slice { start, end, is_single, step: number(2)? })
}

fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut last = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '\n' => return None,
            _ if character == quote && last != '\\' => return Some(at),
            _ => last = character,
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    out
}

fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
