//! `revisor crd prove`: the laws of a Conversion, checked without a server.

use std::process::ExitCode;

use revisor_convert::{Conversion, Effort, Report, Verdict};
use revisor_object::FieldErrors;
use serde_json::{Value, json};

use super::{Pair, pairs};
use crate::flags::{OutputFormat, ProveFlags};

/// What was found out of one Conversion.
pub(crate) struct Finding {
    name: String,
    checked: Result<Report, FieldErrors>,
}

/// Checks every Conversion of a file.
pub(super) fn prove(flags: &ProveFlags) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    for pair in pairs(&flags.definitions, &flags.conversions)? {
        findings.push(Finding::of(&pair).0);
    }
    let text = match flags.output {
        OutputFormat::Text => findings.iter().map(Finding::text).collect(),
        OutputFormat::Json => format!("{:#}\n", Value::Array(findings.iter().map(Finding::json).collect())),
    };
    crate::print(&text)?;
    let is_good = findings.iter().all(Finding::is_good);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Finding {
    /// Checks a Conversion, and answers it too if it can be carried out.
    pub(crate) fn of(pair: &Pair) -> (Finding, Option<Conversion>) {
        let name = pair.definition.name().to_owned();
        match pair.compile() {
            Ok(conversion) => (Finding { name, checked: Ok(conversion.check(Effort::default())) }, Some(conversion)),
            Err(errors) => (Finding { name, checked: Err(errors) }, None),
        }
    }

    /// Whether it may be used.
    pub(crate) fn is_good(&self) -> bool {
        matches!(&self.checked, Ok(report) if report.broken.is_empty())
    }

    /// What its author should know.
    pub(crate) fn warnings(&self) -> &[String] {
        self.checked.as_ref().map(|report| report.warnings.as_slice()).unwrap_or_default()
    }

    /// What is printed of it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.name);
        let report = match &self.checked {
            Err(errors) => {
                errors.iter().for_each(|error| text.push_str(&format!("{error}\n")));
                return text;
            }
            Ok(report) => report,
        };
        if report.broken.is_empty() {
            for step in &report.steps {
                let objects = match step.verdict {
                    Verdict::Proved => String::new(),
                    _ => format!(" ({} objects)", step.objects),
                };
                text.push_str(&format!("{}: {} to {}: {}{objects}\n", step.field, step.from, step.to, step.verdict));
            }
        }
        for broken in &report.broken {
            text.push_str(&format!("{}: {}\n", broken.field, broken.message()));
        }
        report.warnings.iter().for_each(|warning| text.push_str(&format!("warning: {warning}\n")));
        text
    }

    fn json(&self) -> Value {
        let report = match &self.checked {
            Err(errors) => {
                let errors: Vec<Value> =
                    errors.iter().map(|error| json!({"field": error.field, "message": error.body()})).collect();
                return json!({"definition": self.name, "accepted": false, "errors": errors});
            }
            Ok(report) => report,
        };
        let steps: Vec<Value> = report
            .steps
            .iter()
            .map(|step| {
                let verdict = step.verdict.to_string();
                json!({"field": step.field, "from": step.from, "to": step.to, "verdict": verdict, "objects": step.objects})
            })
            .collect();
        let broken: Vec<Value> = report
            .broken
            .iter()
            .map(|broken| {
                let mut shown = json!({
                    "law": broken.law.to_string(), "field": broken.field, "message": broken.message(),
                    "object": broken.object,
                });
                for (name, value) in [("becomes", &broken.becomes), ("back", &broken.back)] {
                    if let Some(value) = value {
                        shown[name] = json!(value);
                    }
                }
                shown
            })
            .collect();
        let mut shown = json!({"definition": self.name, "accepted": self.is_good(), "warnings": report.warnings});
        if self.is_good() {
            shown["steps"] = json!(steps);
        } else {
            shown["broken"] = json!(broken);
        }
        shown
    }
}
