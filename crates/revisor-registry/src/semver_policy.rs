//! The semantic version that a definition says it is, held against what its change calls for: a step that is too small
//! is warned of, or refused where the definition wants that. What a change calls for is found out by `revisor-check`.

use revisor_catalog::Resource;
use revisor_check::{Declared, Effort, Report, SEMVER_ANNOTATION, declared, enforces_semver};
use revisor_convert::Conversion;
use revisor_object::{FieldError, Object};

use crate::admission::Attributes;
use crate::definitions::is_definitions;
use crate::workbench::off_the_workers;
use crate::write::{encode, reject_invalid};
use crate::{Decoded, Registry, RegistryError, WriteOptions};

/// How far is searched for objects that show what a change breaks: a fraction of a second.
const EFFORT: Effort = Effort { objects: 12_000, objects_of_rule: 400, findings: 200 };

/// How many reasons are told.
const TOLD: usize = 3;

impl Registry {
    /// Holds the step that a definition declares against its change. Answers what its writer should know.
    ///
    /// # Errors
    /// The step is too small, and the definition enforces it.
    pub(crate) fn check_semver(
        &self,
        attributes: &Attributes<'_>,
        new: &Object,
        rules: Option<&Conversion>,
        options: WriteOptions<'_>,
    ) -> Result<Vec<String>, RegistryError> {
        let Some(old) = attributes.old.filter(|_| options.subresource.is_none() && is_definitions(attributes.resource))
        else {
            return Ok(Vec::new());
        };
        let step = match declared(old, new) {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(step)) => step,
            Err(error) => return complain(attributes, new, &error.0, error.to_string()),
        };
        let Some(report) = self.report_of(attributes.resource, old, new, rules) else { return Ok(Vec::new()) };
        if step.suffices(report.step()) {
            return Ok(Vec::new());
        }
        complain(attributes, new, &step.new, complaint(&step, &report))
    }

    /// What a change of a definition does; nothing if it cannot be compared.
    fn report_of(
        &self,
        definitions: &std::sync::Arc<Resource>,
        old: &Object,
        new: &Object,
        rules: Option<&Conversion>,
    ) -> Option<Report> {
        // Compared as what is stored: written and read again.
        let new = Decoded::stored(encode(definitions, new).bytes()).ok()?;
        if old.get("spec") == new.get("spec") {
            return Some(Report::default());
        }
        off_the_workers(|| {
            let (old, new) = (self.catalog.comparable(old).ok()?, self.catalog.comparable(&new).ok()?);
            Some(old.compare(&new, rules, EFFORT))
        })
    }
}

/// Refuses, or warns.
fn complain(
    attributes: &Attributes<'_>,
    new: &Object,
    version: &str,
    message: String,
) -> Result<Vec<String>, RegistryError> {
    if enforces_semver(new) {
        let field = format!("metadata.annotations[{SEMVER_ANNOTATION}]");
        let error = FieldError::invalid(field, version, message);
        reject_invalid(attributes.resource, attributes.name, [error].into_iter().collect())?;
        return Ok(Vec::new());
    }
    Ok(vec![format!("{SEMVER_ANNOTATION}: {message}")])
}

/// That a step is too small, and why.
fn complaint(step: &Declared, report: &Report) -> String {
    let called_for = report.step();
    let reasons: Vec<String> = (report.findings.iter())
        .filter(|finding| finding.class.step() == called_for)
        .map(|finding| format!("{} {}: {}", finding.path, finding.class, finding.message))
        .collect();
    let more = match reasons.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let told = reasons[..reasons.len().min(TOLD)].join("; ");
    format!("{} ({told}{more})", step.complaint(called_for))
}
