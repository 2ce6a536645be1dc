//! The semantic version that a definition says it is, and the step from one to the next.

use revisor_object::{Object, Value};

use crate::SemverStep;

/// Says which semantic version a definition is.
pub const SEMVER_ANNOTATION: &str = "versioning.revisor.dev/semver";

/// Says what the server does about a step that is too small: `Enforce` to refuse it, anything else to warn.
pub const SEMVER_POLICY_ANNOTATION: &str = "versioning.revisor.dev/semver-policy";

/// The step that two definitions declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The version before.
    pub old: String,
    /// The version after.
    pub new: String,
    /// What is between them; `None` if it leads backwards.
    pub step: Option<SemverStep>,
}

/// A text that is no semantic version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no semantic version: three numbers with dots between them, such as 1.4.0")]
pub struct SemverError(pub String);

impl Declared {
    /// Whether the step is large enough for a change that calls for `called_for`.
    pub fn suffices(&self, called_for: SemverStep) -> bool {
        self.step.is_some_and(|step| step >= called_for)
    }

    /// What is wrong with a step that is too small.
    pub fn complaint(&self, called_for: SemverStep) -> String {
        let Declared { old, new, step } = self;
        let is = match step {
            None => "is a step back".to_owned(),
            Some(SemverStep::None) => "is no step".to_owned(),
            Some(step) => format!("is a {step} step"),
        };
        format!("{new} after {old} {is}, and the change calls for a {called_for} one")
    }
}

/// The step that two definitions declare, if both say which version they are. What was none before holds nobody up.
pub fn declared(old: &Object, new: &Object) -> Result<Option<Declared>, SemverError> {
    let (Some(old), Some(new)) = (annotation(old, SEMVER_ANNOTATION), annotation(new, SEMVER_ANNOTATION)) else {
        return Ok(None);
    };
    let after = parse(new)?;
    let Ok(before) = parse(old) else { return Ok(None) };
    let step = match (before, after) {
        _ if after.0 != before.0 => (after.0 > before.0).then_some(SemverStep::Major),
        _ if after.1 != before.1 => (after.1 > before.1).then_some(SemverStep::Minor),
        _ if after.2 != before.2 => (after.2 > before.2).then_some(SemverStep::Patch),
        _ => Some(SemverStep::None),
    };
    Ok(Some(Declared { old: old.to_owned(), new: new.to_owned(), step }))
}

/// Whether a definition wants steps that are too small to be refused.
pub fn enforces_semver(definition: &Object) -> bool {
    annotation(definition, SEMVER_POLICY_ANNOTATION) == Some("Enforce")
}

fn annotation<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.at(&["metadata", "annotations", name]).and_then(Value::as_str)
}

/// The three numbers. What says that it comes before a version or how it was built does not count: that is no step.
fn parse(text: &str) -> Result<(u64, u64, u64), SemverError> {
    let error = || SemverError(text.chars().take(100).collect());
    let plain = text.strip_prefix('v').unwrap_or(text);
    let plain = &plain[..plain.find(['-', '+']).unwrap_or(plain.len())];
    let mut numbers = plain.split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|_| is_number && (part.len() == 1 || !part.starts_with('0')))
    });
    let mut next = || numbers.next().flatten().ok_or_else(error);
    let found = (next()?, next()?, next()?);
    if numbers.next().is_some() { Err(error()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(semver: &str) -> Object {
        let mut made = Object::new();
        made.object_mut("metadata").object_mut("annotations").insert(SEMVER_ANNOTATION, semver);
        made
    }

    #[test]
    fn a_step_is_the_first_number_that_differs() {
        use SemverStep::{Major, Minor, None, Patch};
        for (old, new, want) in [
            ("1.2.3", "1.2.4", Some(Patch)),
            ("1.2.3", "1.3.0", Some(Minor)),
            ("1.2.3", "2.0.0", Some(Major)),
            ("1.2.3", "1.2.3", Some(None)),
            ("1.2.3", "1.1.9", Option::None),
            ("v0.9.9", "0.10.0-rc.1+b", Some(Minor)),
        ] {
            let found = declared(&definition(old), &definition(new)).expect("are versions").expect("are there");
            assert_eq!(found.step, want, "{old} {new}");
        }
        assert_eq!(declared(&Object::new(), &definition("1.0.0")), Ok(Option::None));
        assert_eq!(declared(&definition("first"), &definition("1.0.0")), Ok(Option::None));
    }

    #[test]
    fn what_is_no_version_is_an_error() {
        for text in ["", "1", "1.2", "1.2.x", "1.2.3.4", "01.2.3", "1.-2.3"] {
            assert!(declared(&definition("1.0.0"), &definition(text)).is_err(), "{text}");
        }
    }
}
