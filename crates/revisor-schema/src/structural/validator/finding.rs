//! What was found wrong, on its way to becoming a [`FieldError`].
//!
//! Checks are often made only to learn whether a value passes, of alternatives above all. Then nothing is written down.

use std::collections::HashSet;
use std::fmt::Write as _;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Value};

use super::super::value_ref::ValueRef;

/// More findings than these are not written down. Nobody reads them, and an object can have a million.
const MAX_FINDINGS: usize = 10_000;

/// Nor are more once they take up so much memory: many can be found about one large value.
const MAX_BYTES: usize = 8 << 20;

/// One fault, with its place below the value that is checked.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// `None` for a fault that is said of the value as a whole.
    place: Option<String>,
    fault: Fault,
}

#[derive(Debug, Clone)]
enum Fault {
    Required,
    NotSupported(BadValue, Vec<String>),
    TooLong(i64),
    TooMany(usize, i64),
    WrongType(BadValue, String),
    Invalid(BadValue, String),
}

impl Finding {
    /// A fault whose text names its place itself.
    pub(super) fn general(text: String) -> Finding {
        Finding { place: None, fault: Fault::Invalid(BadValue::from(""), text) }
    }

    /// About how much memory it takes up beside its place.
    fn size(&self) -> usize {
        match &self.fault {
            Fault::Required | Fault::TooLong(_) | Fault::TooMany(..) => 0,
            Fault::NotSupported(value, supported) => {
                shown_size(value) + supported.iter().map(String::len).sum::<usize>()
            }
            Fault::WrongType(value, text) | Fault::Invalid(value, text) => shown_size(value) + text.len(),
        }
    }

    fn into_error(self, path: &FieldPath<'_>) -> FieldError {
        let field = match self.place.as_deref().map(|place| place.strip_prefix('.').unwrap_or(place)) {
            None | Some("") => path.to_string(),
            Some(place) => path.child(place).to_string(),
        };
        match self.fault {
            Fault::Required => FieldError::required(field, ""),
            Fault::NotSupported(value, supported) => FieldError::not_supported(field, value, &supported),
            Fault::TooLong(most) => FieldError::too_long(field, count(most)),
            Fault::TooMany(actual, most) => FieldError::too_many(field, actual, count(most)),
            Fault::WrongType(value, text) => FieldError::type_invalid(field, value, text),
            Fault::Invalid(value, text) => FieldError::invalid(field, value, text),
        }
    }
}

fn shown_size(value: &BadValue) -> usize {
    value.to_string().len()
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// Where a value stands below the one that is checked.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Start,
    /// A member that the schema names.
    Property(&'a str),
    /// Any other member. At the start a dot stands before it.
    Other(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(super) const START: Place<'static> = Place { parent: None, step: Step::Start };

    pub(super) fn property(&'a self, name: &'a str) -> Place<'a> {
        Place { parent: Some(self), step: Step::Property(name) }
    }

    pub(super) fn other(&'a self, name: &'a str) -> Place<'a> {
        Place { parent: Some(self), step: Step::Other(name) }
    }

    pub(super) fn index(&'a self, at: usize) -> Place<'a> {
        Place { parent: Some(self), step: Step::Index(at) }
    }

    pub(super) fn is_start(&self) -> bool {
        matches!(self.step, Step::Start)
    }

    fn text(&self) -> String {
        let steps: Vec<Step<'_>> = std::iter::successors(Some(self), |place| place.parent).map(|at| at.step).collect();
        let mut text = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Start => {}
                Step::Property(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Step::Other(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Step::Index(at) => {
                    let _ = write!(text, "[{at}]");
                }
            }
        }
        text
    }
}

/// How much is in a notebook.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    findings: usize,
    unwritten: usize,
}

/// The notebook of one walk over a value.
#[derive(Default)]
pub(super) struct Notes {
    findings: Vec<Finding>,
    bytes: usize,
    /// How many were found and not written down.
    unwritten: usize,
    /// How many checks around this one only ask whether a value passes.
    quiet: u32,
}

impl Notes {
    pub(super) fn at<'n>(&'n mut self, place: &'n Place<'n>) -> Findings<'n> {
        Findings { notes: self, place }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { findings: self.findings.len(), unwritten: self.unwritten }
    }

    pub(super) fn forget_since(&mut self, mark: Mark) {
        self.findings.truncate(mark.findings);
        self.unwritten = mark.unwritten;
    }

    pub(super) fn be_quiet(&mut self) {
        self.quiet += 1;
    }

    pub(super) fn be_loud_again(&mut self) {
        self.quiet -= 1;
    }

    /// The errors of a value at `path`, each once.
    pub(super) fn into_errors(self, path: &FieldPath<'_>) -> FieldErrors {
        let mut seen = HashSet::new();
        let errors = self.findings.into_iter().map(|finding| finding.into_error(path));
        let mut errors: FieldErrors =
            errors.filter(|error| seen.insert((error.field.clone(), error.kind, error.detail.clone()))).collect();
        errors.leave_out(self.unwritten);
        errors
    }
}

/// The notebook, opened at one place. Everything that refuses answers `false`.
pub(super) struct Findings<'n> {
    notes: &'n mut Notes,
    place: &'n Place<'n>,
}

impl Findings<'_> {
    pub(super) fn add(&mut self, finding: impl FnOnce(&str) -> Finding) -> bool {
        let notes = &mut self.notes;
        if notes.quiet > 0 {
            return false;
        }
        if notes.findings.len() == MAX_FINDINGS || notes.bytes >= MAX_BYTES {
            notes.unwritten += 1;
        } else {
            let place = self.place.text();
            let finding = finding(&place);
            notes.bytes += place.len() + finding.size();
            notes.findings.push(finding);
        }
        false
    }

    fn fault(&mut self, fault: impl FnOnce(&str) -> Fault) -> bool {
        self.add(|place| Finding { place: Some(place.to_owned()), fault: fault(place) })
    }

    pub(super) fn invalid(&mut self, value: impl Into<BadValue>, text: impl FnOnce(&str) -> String) -> bool {
        self.fault(|place| Fault::Invalid(value.into(), text(place)))
    }

    /// Said of the value as a whole, with the place in quotes.
    pub(super) fn general(&mut self, text: &str) -> bool {
        self.add(|place| Finding::general(format!("{} {text}", BadValue::from(place))))
    }

    pub(super) fn wrong_type(&mut self, wanted: &str, found: &str) -> bool {
        self.fault(|place| {
            let found = BadValue::from(found);
            let text = format!("{place} in body must be of type {wanted}: {found}");
            Fault::WrongType(found, text)
        })
    }

    pub(super) fn missing(&mut self, name: &str) -> bool {
        self.add(|place| Finding { place: Some(format!("{place}.{name}")), fault: Fault::Required })
    }

    pub(super) fn not_supported(&mut self, value: ValueRef<'_>, allowed: &[Value]) -> bool {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        self.fault(|_| Fault::NotSupported(value.quote(), allowed.iter().map(text).collect()))
    }

    pub(super) fn too_long(&mut self, most: i64) -> bool {
        self.fault(|_| Fault::TooLong(most))
    }

    pub(super) fn too_many(&mut self, actual: usize, most: i64) -> bool {
        self.fault(|_| Fault::TooMany(actual, most))
    }

    pub(super) fn refuse_bound(&mut self, words: &str, bound: BadValue, value: BadValue) -> bool {
        self.invalid(value, |place| format!("{place} in body should be {words} {bound}"))
    }

    pub(super) fn refuse_multiple(&mut self, factor: BadValue, value: BadValue) -> bool {
        self.invalid(value, |place| format!("{place} in body should be a multiple of {factor}"))
    }

    pub(super) fn refuse_factor(&mut self, factor: BadValue) -> bool {
        let shown = factor.clone();
        self.invalid(factor, |place| format!("factor MultipleOf declared for {place} must be positive: {shown}"))
    }
}
