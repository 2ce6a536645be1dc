//! [`Report`]: what was found, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use revisor_registry::{RehearsalEffect, RehearsalFinding};
use serde_json::json;

use crate::flags::OutputFormat;

/// How many objects of a resource are named to people for each effect.
const NAMED: usize = 10;

/// What a rehearsal has found.
pub(super) struct Report {
    /// The release that is to come.
    pub(super) release: String,
    /// How many objects were looked at.
    pub(super) objects: usize,
    pub(super) findings: Vec<RehearsalFinding>,
}

impl Report {
    /// Whether nothing is in the way.
    pub(super) fn is_harmless(&self) -> bool {
        !self.findings.iter().any(|found| found.effect.is_harm())
    }

    pub(super) fn print(&self, output: OutputFormat) -> String {
        match output {
            OutputFormat::Text => self.text(),
            OutputFormat::Json => format!("{:#}\n", self.json()),
        }
    }

    fn json(&self) -> serde_json::Value {
        let findings: Vec<serde_json::Value> = self
            .findings
            .iter()
            .map(|found| {
                let RehearsalFinding { resource, namespace, name, effect, message } = found;
                json!({
                    "resource": resource, "namespace": namespace, "name": name,
                    "effect": effect.as_str(), "message": message,
                })
            })
            .collect();
        json!({"release": self.release, "objects": self.objects, "findings": findings})
    }

    fn text(&self) -> String {
        let mut by_resource: BTreeMap<&str, Vec<&RehearsalFinding>> = BTreeMap::new();
        for found in &self.findings {
            by_resource.entry(&found.resource).or_default().push(found);
        }
        let mut text = String::new();
        for (resource, findings) in by_resource {
            let _ = writeln!(text, "{resource}");
            for effect in RehearsalEffect::ALL {
                let of_effect: Vec<_> = findings.iter().filter(|found| found.effect == effect).collect();
                if of_effect.is_empty() {
                    continue;
                }
                let _ = writeln!(text, "  {effect}: {}", of_effect.len());
                for found in of_effect.iter().take(NAMED) {
                    let place = match (&*found.namespace, &*found.name) {
                        (_, "") => "requests".to_owned(),
                        ("", name) => name.to_owned(),
                        (namespace, name) => format!("{namespace}/{name}"),
                    };
                    let _ = writeln!(text, "    {place}: {}", found.message.replace('\n', "\n      "));
                }
                if let Some(more) = of_effect.len().checked_sub(NAMED).filter(|more| *more > 0) {
                    let _ = writeln!(text, "    and {more} more; -o json names all");
                }
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }

    /// What it comes to, in a sentence.
    fn summary(&self) -> String {
        let count = |effect: RehearsalEffect| self.findings.iter().filter(|found| found.effect == effect).count();
        let counted = RehearsalEffect::ALL.into_iter().map(|effect| (count(effect), effect));
        let told: Vec<String> =
            counted.filter(|(count, _)| *count > 0).map(|(count, effect)| format!("{count} {effect}")).collect();
        let told = if told.is_empty() { "nothing changes for them".to_owned() } else { told.join(", ") };
        format!("{} objects as {}: {told}", self.objects, self.release)
    }
}
