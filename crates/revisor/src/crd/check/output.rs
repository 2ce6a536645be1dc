//! How findings are told: to people, to programs, and to GitHub.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use revisor_check::{Class, Finding, SemverStep};
use revisor_object::Value;
use serde_json::json;

use super::field_lines::FieldLines;
use super::{CheckFormat, Checked};

/// How much is shown of a witness on a line.
const MAX_WITNESS: usize = 600;

/// Everything that was found out.
pub(super) fn text(checked: &[Checked], format: CheckFormat) -> String {
    match format {
        CheckFormat::Text => {
            let is_coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            for_people(checked, is_coloured)
        }
        CheckFormat::Json => format!("{:#}\n", for_programs(checked)),
        CheckFormat::Github => checked.iter().map(for_github).collect(),
    }
}

fn largest_step(checked: &[Checked]) -> SemverStep {
    checked.iter().map(|found| found.report.step()).max().unwrap_or(SemverStep::None)
}

fn for_programs(checked: &[Checked]) -> serde_json::Value {
    let finding = |finding: &Finding| {
        json!({
            "definition": finding.definition,
            "version": finding.version,
            "path": finding.path,
            "class": finding.class.to_string(),
            "step": finding.class.step().to_string(),
            "message": finding.message,
            "witness": finding.witness,
        })
    };
    let findings: Vec<_> = checked.iter().flat_map(|found| &found.report.findings).map(finding).collect();
    json!({"step": largest_step(checked).to_string(), "findings": findings})
}

fn for_people(checked: &[Checked], is_coloured: bool) -> String {
    let paint = |colour: &str, text: &str| match is_coloured {
        true => format!("\x1b[{colour}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let mut text = String::new();
    for found in checked {
        let is_quiet = found.report.findings.is_empty() && found.complaint().is_none() && found.notes.is_empty();
        if is_quiet {
            continue;
        }
        let versions = found.declared.as_ref().map(|step| format!(" {} -> {}", step.old, step.new)).unwrap_or_default();
        let _ = writeln!(text, "{}{versions}", paint("1", &found.name));
        for class in Class::ALL {
            let findings: Vec<&Finding> =
                found.report.findings.iter().filter(|finding| finding.class == class).collect();
            if findings.is_empty() {
                continue;
            }
            let colour = match class {
                Class::BreaksAll => "1;31",
                Class::BreaksReaders | Class::BreaksWriters => "31",
                Class::Additive => "32",
            };
            let _ = writeln!(text, "  {}", paint(colour, &format!("{class} ({})", class.step())));
            let mut alike: Vec<(&Finding, usize)> = Vec::new();
            for finding in findings {
                let same = |known: &&mut (&Finding, usize)| {
                    (&known.0.message, &known.0.version) == (&finding.message, &finding.version)
                };
                match alike.iter_mut().find(same) {
                    Some((_, others)) => *others += 1,
                    None => alike.push((finding, 0)),
                }
            }
            for (finding, others) in alike {
                let version = finding.version.as_ref().map(|version| format!(" [{version}]")).unwrap_or_default();
                let others = match others {
                    0 => String::new(),
                    others => format!(" (and at {others} other places)"),
                };
                let _ = writeln!(text, "    {}{version}: {}{others}", paint("1", &finding.path), finding.message);
                if let Some(witness) = &finding.witness {
                    let _ = writeln!(text, "      witness: {}", paint("36", &inline(witness)));
                }
            }
        }
        if found.report.left_out > 0 {
            let _ = writeln!(text, "  and {} more that are not shown", found.report.left_out);
        }
        found.notes.iter().for_each(|note| text.push_str(&format!("  {note}\n")));
        if let Some(complaint) = found.complaint() {
            let _ = writeln!(text, "  {}: {complaint}", paint("1;31", "versioning.revisor.dev/semver"));
        }
    }
    let _ = writeln!(text, "step: {}", largest_step(checked));
    text
}

/// A witness on one line, without what every object has.
fn inline(witness: &Value) -> String {
    let Value::Object(object) = witness else { return witness.to_json() };
    let mut content = object.clone();
    for name in ["apiVersion", "kind", "metadata"] {
        content.remove(name);
    }
    let json = Value::Object(content).to_json();
    match json.char_indices().nth(MAX_WITNESS) {
        Some((end, _)) => format!("{}… ({} bytes)", &json[..end], json.len()),
        None => json,
    }
}

/// Annotations of a workflow, in the form of its commands.
fn for_github(found: &Checked) -> String {
    let mut text = String::new();
    let place = |line: usize| match found.file.as_str() {
        "" | "-" => String::new(),
        file => format!("file={},line={line},", property(file)),
    };
    let lines = FieldLines::of(&found.origin, &found.versions);
    // What a step that is large enough announces is no error.
    let worst = if found.declared.is_some() && !found.is_bad() { "warning" } else { "error" };
    for finding in &found.report.findings {
        let level = if finding.class == Class::Additive { "notice" } else { worst };
        let version = finding.version.as_ref().map(|version| format!(" [{version}]")).unwrap_or_default();
        let witness = finding.witness.as_ref().map(|witness| format!("\nwitness: {}", inline(witness)));
        let message = format!(
            "{} {}{version}: {}{}",
            finding.definition,
            finding.path,
            finding.message,
            witness.unwrap_or_default()
        );
        let title = property(&format!("{} ({})", finding.class, finding.class.step()));
        let place = place(lines.line(finding).unwrap_or(found.line));
        let _ = writeln!(text, "::{level} {place}title={title}::{}", data(&message));
    }
    if let Some(complaint) = found.complaint() {
        let place = place(found.line);
        let _ = writeln!(text, "::error {place}title=semantic version::{}", data(&complaint));
    }
    text
}

/// A text as it may stand behind the colons of an annotation.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A text as it may stand before them.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
