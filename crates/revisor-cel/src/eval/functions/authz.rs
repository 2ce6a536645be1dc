//! Questions about permissions, and the answers.

use std::sync::Arc;

use revisor_object::names;

use super::{Scope, mismatch};
use crate::eval::authorization::{Authorization, Decision, ResourceTarget, ServiceAccount};
use crate::eval::error::EvalError;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

/// Goes on with a question by saying one more thing.
pub(super) fn step<'a>(
    args: &[CelValue<'a>],
    next: impl FnOnce(&Authorization<'a>, &str) -> Result<Option<Authorization<'a>>, EvalError>,
) -> Outcome<'a> {
    let [CelValue::Opaque(Opaque::Authorization(asked)), CelValue::String(text)] = args else { return mismatch() };
    match next(asked, text)? {
        Some(asked) => Ok(CelValue::Opaque(Opaque::Authorization(Arc::new(asked)))),
        None => mismatch(),
    }
}

pub(super) fn narrow<'a>(args: &[CelValue<'a>], set: fn(&mut ResourceTarget, String)) -> Outcome<'a> {
    step(args, |asked, text| Ok(asked.narrowed(|target| set(target, text.to_owned()))))
}

pub(super) fn path<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    step(args, |asked, text| match text.trim().is_empty() {
        true => Err(EvalError::failed("path must not be empty")),
        false => Ok(asked.with_path(text)),
    })
}

pub(super) fn resource<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    step(args, |asked, text| match text.trim().is_empty() {
        true => Err(EvalError::failed("resource must not be empty")),
        false => Ok(asked.with_resource(text)),
    })
}

pub(super) fn service_account<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::Opaque(Opaque::Authorization(asked)), CelValue::String(namespace), CelValue::String(name)] = args
    else {
        return mismatch();
    };
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(EvalError::failed("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(EvalError::failed("Invalid service account namespace"));
    }
    let account = ServiceAccount { namespace: namespace.to_string(), name: name.to_string() };
    match asked.of_service_account(account) {
        Some(asked) => Ok(CelValue::Opaque(Opaque::Authorization(Arc::new(asked)))),
        None => mismatch(),
    }
}

pub(super) fn check<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::Opaque(Opaque::Authorization(asked)), CelValue::String(verb)] = args else { return mismatch() };
    match asked.check(verb) {
        Some(decision) => Ok(CelValue::Opaque(Opaque::Decision(Arc::new(decision)))),
        None => mismatch(),
    }
}

pub(super) fn answer<'a>(args: &[CelValue<'a>], of: fn(&Decision) -> CelValue<'a>) -> Outcome<'a> {
    match args {
        [CelValue::Opaque(Opaque::Decision(decision))] => Ok(of(decision)),
        _ => mismatch(),
    }
}
