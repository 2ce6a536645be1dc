//! Searches for patterns.

use std::borrow::Cow;

use ::regex::Regex;

use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::pattern;
use crate::eval::value::{CelValue, Text};

/// What it takes to make a pattern ready, in steps for each character of it.
const COMPILE_TOIL: usize = 1000;

/// The pattern that a call searches for.
fn ready<'r>(scope: &mut Scope<'r>, text: &str) -> Result<Cow<'r, Regex>, EvalError> {
    if let Some(pattern) = scope.pattern {
        return Ok(Cow::Borrowed(pattern));
    }
    scope.budget.toil(COMPILE_TOIL.saturating_mul(text.len() + 1))?;
    pattern::compile(text).map(Cow::Owned)
}

fn illegal(error: EvalError) -> EvalError {
    match error {
        EvalError::Failed(message) => EvalError::failed(format!("Illegal regex: {message}")),
        error => error,
    }
}

pub(super) fn matches<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::String(text), CelValue::String(pattern)] = args else { return mismatch() };
    Ok(CelValue::Bool(ready(scope, pattern)?.is_match(text)))
}

pub(super) fn find<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::String(text), CelValue::String(pattern)] = args else { return mismatch() };
    let pattern = ready(scope, pattern).map_err(illegal)?;
    Ok(CelValue::text(pattern.find(text).map_or("", |found| found.as_str())))
}

pub(super) fn find_all<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let (text, pattern, count) = match args {
        [CelValue::String(text), CelValue::String(pattern)] => (text, pattern, -1),
        [CelValue::String(text), CelValue::String(pattern), CelValue::Int(count)] => (text, pattern, *count),
        _ => return mismatch(),
    };
    let pattern = ready(scope, pattern).map_err(illegal)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let text = &*text;
    let part = |found: ::regex::Match<'_>| match text {
        Text::Borrowed(text) => CelValue::String(Text::Borrowed(&text[found.range()])),
        Text::Owned(_) => CelValue::text(found.as_str()),
    };
    Ok(CelValue::list(pattern.find_iter(text).take(count).map(part).collect()))
}
