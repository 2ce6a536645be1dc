//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::format::quoted;
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

/// A semantic version. What it says about the build is checked, and then of no interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pre: Vec<Identifier>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Semver {
    /// Which of two versions comes first. One that is on its way comes before the one that it becomes.
    pub(crate) fn cmp_precedence(&self, other: &Semver) -> Ordering {
        let numbers = |version: &Semver| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        })
    }

    fn parse(text: &str) -> Result<Semver, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let patch = number(patch, "Patch")?;
        let pre = pre.map_or(Ok(Vec::new()), |pre| pre.split('.').map(identifier).collect())?;
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(is_identifier_byte) {
                return Err(format!("Invalid character(s) found in build meta data {}", quoted(part)));
            }
        }
        Ok(Semver { major, minor, patch, pre })
    }

    /// Reads also what is not quite a version: one with a `v` before it, without minor or patch, or with leading zeros.
    fn parse_tolerant(text: &str) -> Result<Semver, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|part| part.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Semver::parse(&parts.join("."))
    }
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|first: char| first.is_ascii_digit()) { trimmed.to_owned() } else { format!("0{trimmed}") }
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {} number {}", what.to_ascii_lowercase(), quoted(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{what} number must not contain leading zeroes {}", quoted(text)));
    }
    text.parse().map_err(|_| {
        let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {why}", quoted(text))
    })
}

fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quoted(text)));
        }
        let parsed = text.parse().map(Identifier::Number);
        return parsed.map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quoted(text)));
    }
    match text.bytes().all(is_identifier_byte) {
        true => Ok(Identifier::Text(text.to_owned())),
        false => Err(format!("Invalid character(s) found in prerelease {}", quoted(text))),
    }
}

fn parse(args: &[CelValue<'_>]) -> Result<Result<Semver, String>, EvalError> {
    match args {
        [CelValue::String(text)] | [CelValue::String(text), CelValue::Bool(false)] => Ok(Semver::parse(text)),
        [CelValue::String(text), CelValue::Bool(true)] => Ok(Semver::parse_tolerant(text)),
        _ => Err(EvalError::no_such_overload()),
    }
}

pub(super) fn semver<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    match parse(args)? {
        Ok(version) => Ok(CelValue::Opaque(Opaque::Semver(Arc::new(version)))),
        Err(problem) => Err(EvalError::failed(problem)),
    }
}

pub(super) fn is_semver<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    Ok(CelValue::Bool(parse(args)?.is_ok()))
}

pub(super) fn part<'a>(args: &[CelValue<'a>], of: fn(&Semver) -> u64) -> Result<CelValue<'a>, EvalError> {
    match args {
        [CelValue::Opaque(Opaque::Semver(version))] => Ok(CelValue::Int(of(version) as i64)),
        _ => mismatch(),
    }
}
