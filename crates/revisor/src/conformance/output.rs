//! How a report is printed: a table for people, JSON for programs, JUnit for those who collect tests.

use std::fmt::Write as _;

use serde_json::json;

use super::flags::ReportFormat;
use super::report::{Aspect, Report, ResourceReport, Verdict};

pub(super) fn print(report: &Report, format: ReportFormat) -> String {
    match format {
        ReportFormat::Text => text(report),
        ReportFormat::Json => format!("{:#}\n", json(report)),
        ReportFormat::Junit => junit(report),
    }
}

/// The table, what is wrong, and what was not looked at.
fn text(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} {}\n", report.server, report.release);
    let width = report.resources.iter().map(|resource| resource.name.len()).max().unwrap_or_default().max(8);
    let _ = write!(out, "{:<width$}  {:<8}  {:>7}", "RESOURCE", "VERSION", "OBJECTS");
    for aspect in Aspect::ALL {
        let _ = write!(out, "  {:<1$}", aspect.name().to_uppercase(), width_of(aspect));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    for resource in &report.resources {
        let _ = write!(out, "{:<width$}  {:<8}  {:>7}", resource.name, resource.version, resource.objects);
        for aspect in Aspect::ALL {
            let cell = match resource.verdict(aspect) {
                Some(Verdict::Passed) => "ok",
                Some(Verdict::Failed(_)) => "FAULT",
                Some(Verdict::Skipped(_)) | None => "-",
            };
            let _ = write!(out, "  {cell:<0$}", width_of(aspect));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    faults(&mut out, report);
    skipped(&mut out, report);
    for (path, error) in &report.left_out {
        let _ = writeln!(out, "\nnote: {path} could not be asked for: {error}");
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nnote: {note}");
    }
    let (passed, failed, skipped) = report.counts();
    let resources = report.resources.len();
    let _ = writeln!(
        out,
        "\n{resources} resources, {passed} ok, {failed} faulty, {skipped} not looked at, in {:.1} s",
        report.seconds
    );
    out
}

/// The column of an aspect is as wide as its name and as `FAULT`.
fn width_of(aspect: Aspect) -> usize {
    aspect.name().len().max(5)
}

fn faults(out: &mut String, report: &Report) {
    for resource in &report.resources {
        for (aspect, verdict) in resource.verdicts() {
            let Verdict::Failed(faults) = verdict else { continue };
            let _ = writeln!(out, "\n{} {}: {}", resource.name, aspect.name(), aspect.meaning());
            for fault in faults {
                let _ = writeln!(out, "  {}\n    want {}\n    got  {}", fault.asked, fault.want, fault.got);
            }
        }
    }
}

/// Resources of which nothing is known, with the reason; single aspects are left to the other forms.
fn skipped(out: &mut String, report: &Report) {
    for resource in &report.resources {
        let mut reasons = resource.verdicts().map(|(_, verdict)| match verdict {
            Verdict::Skipped(why) => Some(why),
            _ => None,
        });
        if let Some(Some(first)) = reasons.next()
            && reasons.all(|why| why == Some(first))
        {
            let _ = writeln!(out, "\n{} was not looked at: {first}", resource.name);
        }
    }
}

fn json(report: &Report) -> serde_json::Value {
    let resources: Vec<serde_json::Value> = report.resources.iter().map(resource_json).collect();
    let (passed, failed, skipped) = report.counts();
    let left_out: Vec<serde_json::Value> =
        report.left_out.iter().map(|(path, error)| json!({"path": path, "message": error.to_string()})).collect();
    json!({
        "server": report.server,
        "release": report.release,
        "isComplete": report.is_complete,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "seconds": report.seconds,
        "resources": resources,
        "leftOut": left_out,
        "notes": report.notes,
    })
}

fn resource_json(resource: &ResourceReport) -> serde_json::Value {
    let checks: Vec<serde_json::Value> = resource
        .verdicts()
        .map(|(aspect, verdict)| match verdict {
            Verdict::Passed => json!({"name": aspect.name(), "result": "passed"}),
            Verdict::Skipped(why) => json!({"name": aspect.name(), "result": "skipped", "message": why}),
            Verdict::Failed(faults) => {
                let faults: Vec<serde_json::Value> = faults
                    .iter()
                    .map(|fault| json!({"asked": fault.asked, "want": fault.want, "got": fault.got}))
                    .collect();
                json!({"name": aspect.name(), "result": "failed", "message": aspect.meaning(), "faults": faults})
            }
        })
        .collect();
    json!({
        "resource": resource.name,
        "version": resource.version,
        "servedBy": resource.served_by,
        "objects": resource.objects,
        "seconds": resource.seconds,
        "checks": checks,
    })
}

/// One suite for each resource, one case for each aspect.
pub(super) fn junit(report: &Report) -> String {
    let (passed, failed, skipped) = report.counts();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"resource-versions\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{:.3}\">",
        passed + failed + skipped,
        report.seconds
    );
    for resource in &report.resources {
        let count = |is_it: fn(&Verdict) -> bool| resource.verdicts().filter(|(_, verdict)| is_it(verdict)).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3}\">",
            escape(&resource.name),
            count(|_| true),
            count(|verdict| matches!(verdict, Verdict::Failed(_))),
            count(|verdict| matches!(verdict, Verdict::Skipped(_))),
            resource.seconds
        );
        for (aspect, verdict) in resource.verdicts() {
            let name = format!("classname=\"{}\" name=\"{}\"", escape(&resource.name), aspect.name());
            let _ = match verdict {
                Verdict::Passed => writeln!(out, "    <testcase {name}/>"),
                Verdict::Skipped(why) => {
                    writeln!(out, "    <testcase {name}><skipped message=\"{}\"/></testcase>", escape(why))
                }
                Verdict::Failed(faults) => {
                    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    writeln!(
                        out,
                        "    <testcase {name}><failure message=\"{}\">{}</failure></testcase>",
                        escape(aspect.meaning()),
                        escape(&told.join("\n"))
                    )
                }
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// A text as it may stand in XML. What no XML may hold becomes a replacement character.
fn escape(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => made.push_str("&amp;"),
            '<' => made.push_str("&lt;"),
            '>' => made.push_str("&gt;"),
            '"' => made.push_str("&quot;"),
            '\n' => made.push_str("&#10;"),
            '\t' => made.push_str("&#9;"),
            control if control.is_control() || matches!(control, '\u{FFFE}' | '\u{FFFF}') => made.push('\u{FFFD}'),
            plain => made.push(plain),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_holds_any_text() {
        assert_eq!(escape("a<b> & \"c\"\n\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;\u{FFFD}");
    }
}
