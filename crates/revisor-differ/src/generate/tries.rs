//! Objects that are only tried, because something is odd about them.

use super::{Subject, texts};
use crate::group::Step;

/// Some objects of the resource that are created without being stored, or asked about.
pub(super) fn steps(subject: &mut Subject<'_>) -> Vec<Step> {
    let path = subject.collection();
    let mut steps = Vec::new();
    for _ in 0..5 {
        let object = subject.odd();
        let validation = *subject.choices.of(&["", "", "&fieldValidation=Strict", "&fieldValidation=Ignore"]);
        let step = Step::new("POST", format!("{path}?dryRun=All{validation}"));
        steps.push(if subject.choices.once_in(6) {
            step.text("application/yaml", texts::yaml(&object))
        } else {
            step.object(object)
        });
    }
    steps
}
