//! URLs as expressions see them.

use std::sync::Arc;

use revisor_object::{Url, unescape_query};

use super::format::quoted;
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::map::Map;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

/// Whether a text is a URI that could be asked for; what is wrong with it otherwise.
pub(super) fn check_uri(text: &str) -> Result<(), String> {
    Url::parse_request(text).map(drop).map_err(|problem| format!("parse {}: {problem}", quoted(text)))
}

pub(super) fn url<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::String(text)] = args else { return mismatch() };
    let failed =
        |problem: String| EvalError::failed(format!("URL parse error during conversion from string: {problem}"));
    check_uri(text).map_err(failed)?;
    let url = Url::parse(text).map_err(|problem| failed(format!("parse {}: {problem}", quoted(text))))?;
    Ok(CelValue::Opaque(Opaque::Url(Arc::new(url))))
}

pub(super) fn is_url<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(check_uri(text).is_ok())),
        _ => mismatch(),
    }
}

pub(super) fn part<'a>(args: &[CelValue<'a>], of: fn(&Url) -> String) -> Result<CelValue<'a>, EvalError> {
    match args {
        [CelValue::Opaque(Opaque::Url(url))] => Ok(CelValue::text(of(url))),
        _ => mismatch(),
    }
}

pub(super) fn query<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::Opaque(Opaque::Url(url))] = args else { return mismatch() };
    let mut values: Vec<(String, Vec<CelValue<'a>>)> = Vec::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Ok(key), Ok(value)) = (unescape_query(key), unescape_query(value)) else { continue };
        match values.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(CelValue::text(value)),
            None => values.push((key, vec![CelValue::text(value)])),
        }
    }
    let entries = values.into_iter().map(|(key, values)| (CelValue::text(key), CelValue::list(values)));
    Ok(CelValue::Map(Map::made(entries)?))
}
