//! Functions of texts. Positions count characters.

use super::{Scope, mismatch};
use crate::eval::equality;
use crate::eval::error::EvalError;
use crate::eval::list::List;
use crate::eval::value::{CelValue, Text};

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

fn out_of_range<'a>(index: i64) -> Outcome<'a> {
    Err(EvalError::failed(format!("index out of range: {index}")))
}

pub(super) fn contains<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text), CelValue::String(part)] => Ok(CelValue::Bool(text.contains(&**part))),
        _ => mismatch(),
    }
}

pub(super) fn starts_with<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text), CelValue::String(part)] => Ok(CelValue::Bool(text.starts_with(&**part))),
        _ => mismatch(),
    }
}

pub(super) fn ends_with<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text), CelValue::String(part)] => Ok(CelValue::Bool(text.ends_with(&**part))),
        _ => mismatch(),
    }
}

/// Where the character with this number begins; the number after the last is the end.
fn offset_of(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

/// The part of a text between two places. What is borrowed stays so.
fn slice<'a>(text: &Text<'a>, from: usize, to: usize) -> CelValue<'a> {
    match text {
        Text::Borrowed(text) => CelValue::String(Text::Borrowed(&text[from..to])),
        Text::Owned(text) => CelValue::text(&text[from..to]),
    }
}

pub(super) fn char_at<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::String(text), CelValue::Int(index)] = args else { return mismatch() };
    let Some(at) = offset_of(text, *index) else { return out_of_range(*index) };
    let length = text[at..].chars().next().map_or(0, char::len_utf8);
    Ok(slice(text, at, at + length))
}

pub(super) fn substring<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text), CelValue::Int(start)] => match offset_of(text, *start) {
            Some(at) => Ok(slice(text, at, text.len())),
            None => out_of_range(*start),
        },
        [CelValue::String(_), CelValue::Int(start), CelValue::Int(end)] if *start > *end => {
            Err(EvalError::failed(format!("invalid substring range. start: {start}, end: {end}")))
        }
        [CelValue::String(text), CelValue::Int(start), CelValue::Int(end)] => {
            let Some(from) = offset_of(text, *start) else { return out_of_range(*start) };
            let Some(to) = offset_of(text, *end) else { return out_of_range(*end) };
            Ok(slice(text, from, to))
        }
        _ => mismatch(),
    }
}

pub(super) fn index_of<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let found = match args {
        [CelValue::List(list), item] => position(scope, list, item, 0..list.len())?,
        [CelValue::String(text), CelValue::String(part)] => first_index(text, part, 0)?,
        [CelValue::String(text), CelValue::String(part), CelValue::Int(offset)] => first_index(text, part, *offset)?,
        _ => return mismatch(),
    };
    Ok(CelValue::Int(found))
}

/// Where in a list an item is, looking at these places one after the other.
fn position<'a>(
    scope: &mut Scope<'_>,
    list: &List<'a>,
    item: &CelValue<'a>,
    places: impl Iterator<Item = usize>,
) -> Result<i64, EvalError> {
    for at in places {
        let Some(Ok(element)) = list.get(at) else { continue };
        match equality::equal(&element, item, scope.budget) {
            Ok(true) => return Ok(at as i64),
            Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
            _ => {}
        }
    }
    Ok(-1)
}

fn first_index(text: &str, part: &str, offset: i64) -> Result<i64, EvalError> {
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(EvalError::failed(format!("index out of range: {offset}")));
    }
    let Some(start) = offset_of(text, offset) else { return Ok(-1) };
    Ok(match text[start..].find(part) {
        Some(at) => offset + text[start..start + at].chars().count() as i64,
        None => -1,
    })
}

pub(super) fn last_index_of<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let found = match args {
        [CelValue::List(list), item] => position(scope, list, item, (0..list.len()).rev())?,
        [CelValue::String(text), CelValue::String(part)] => {
            let length = text.chars().count() as i64;
            match () {
                () if part.is_empty() => length,
                () if text.len() < part.len() => -1,
                () => last_index(text, part, length - 1, length)?,
            }
        }
        [CelValue::String(text), CelValue::String(part), CelValue::Int(offset)] => {
            last_index(text, part, *offset, text.chars().count() as i64)?
        }
        _ => return mismatch(),
    };
    Ok(CelValue::Int(found))
}

/// Where `part` begins for the last time, at `offset` or before.
fn last_index(text: &str, part: &str, offset: i64, length: i64) -> Result<i64, EvalError> {
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(EvalError::failed(format!("index out of range: {offset}")));
    }
    if offset >= length {
        return Ok(-1);
    }
    let last = offset_of(text, offset).unwrap_or(text.len());
    let end = last.saturating_add(part.len()).min(text.len());
    // An end within a character cannot end a match there, so it may be moved on.
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let found = text[..end].rfind(part).filter(|at| *at <= last);
    Ok(found.map_or(-1, |at| text[..at].chars().count() as i64))
}

pub(super) fn join<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let (list, separator) = match args {
        [CelValue::List(list)] => (list, ""),
        [CelValue::List(list), CelValue::String(separator)] => (list, &**separator),
        _ => return mismatch(),
    };
    if !matches!(list.get(0), None | Some(Ok(CelValue::String(_)))) {
        return mismatch();
    }
    let mut text = String::new();
    for (at, element) in list.iter().enumerate() {
        if at > 0 {
            text.push_str(separator);
        }
        match element? {
            CelValue::String(element) => text.push_str(&element),
            element => {
                return Err(EvalError::failed(format!("join: invalid input: {}", super::display(&element))));
            }
        }
    }
    Ok(CelValue::text(text))
}

pub(super) fn lower_ascii<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::text(text.to_ascii_lowercase())),
        _ => mismatch(),
    }
}

pub(super) fn upper_ascii<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::text(text.to_ascii_uppercase())),
        _ => mismatch(),
    }
}

pub(super) fn trim<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::String(text)] = args else { return mismatch() };
    // What Go takes for white space is what Unicode does.
    let from = text.len() - text.trim_start().len();
    let to = from + text.trim().len();
    Ok(slice(text, from, to))
}

pub(super) fn replace<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let (text, old, new, count) = match args {
        [CelValue::String(text), CelValue::String(old), CelValue::String(new)] => (text, old, new, -1),
        [CelValue::String(text), CelValue::String(old), CelValue::String(new), CelValue::Int(count)] => {
            (text, old, new, *count)
        }
        _ => return mismatch(),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // The result can be as long as both lengths multiplied; nobody has paid for that yet.
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.matches(&**old).count() }.min(count);
    scope.budget.toil(places.saturating_mul(new.len()) / 8)?;
    Ok(CelValue::text(text.replacen(&**old, new, count)))
}

pub(super) fn split<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let (text, separator, count) = match args {
        [CelValue::String(text), CelValue::String(separator)] => (text, separator, -1),
        [CelValue::String(text), CelValue::String(separator), CelValue::Int(count)] => (text, separator, *count),
        _ => return mismatch(),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    scope.budget.toil(text.len())?;
    let parts: Vec<CelValue<'a>> = if count == 0 {
        Vec::new()
    } else if separator.is_empty() {
        let ends = text.char_indices().map(|(at, char)| (at, at + char.len_utf8()));
        let mut parts = Vec::new();
        for (from, to) in ends {
            let last = parts.len() + 1 == count;
            parts.push(slice(text, from, if last { text.len() } else { to }));
            if last {
                break;
            }
        }
        parts
    } else {
        let start = text.as_ptr() as usize;
        text.splitn(count, &**separator)
            .map(|part| {
                let from = part.as_ptr() as usize - start;
                slice(text, from, from + part.len())
            })
            .collect()
    };
    Ok(CelValue::list(parts))
}

pub(super) fn quote<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::String(text)] = args else { return mismatch() };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    Ok(CelValue::text(quoted))
}

pub(super) fn escape_key<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(key)] => Ok(CelValue::text(key.replace('~', "~0").replace('/', "~1"))),
        _ => mismatch(),
    }
}
