//! `revisor crd infer`: a Conversion that two definitions, or the versions of one, suggest.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use revisor_catalog::BINARY;
use revisor_convert::{Definition, Inference, InferredRules, Verdict, version_order};
use revisor_object::{Object, Value};
use serde_json::json;

use super::{Located, SourceFile, environment, read_definition};
use crate::flags::{InferFlags, OutputFormat};

/// Proposes a Conversion for every definition of the files.
pub(super) fn infer(flags: &InferFlags) -> anyhow::Result<ExitCode> {
    let old = definitions(&flags.old)?;
    let new = flags.new.as_ref().map(|path| definitions(path)).transpose()?;
    let mut inferences = Vec::new();
    for found in new.as_ref().unwrap_or(&old) {
        let before = new.is_some().then(|| old.iter().find(|old| old.name() == found.name())).flatten();
        if new.is_some() && before.is_none() {
            bail!("{}: {} has no definition of this name", found.place, flags.old.display());
        }
        inferences.push(of_definition(found, before, flags)?);
    }
    let text = match flags.output {
        OutputFormat::Text => inferences.iter().map(yaml).collect::<Vec<_>>().join("---\n"),
        OutputFormat::Json => format!("{:#}\n", json!(inferences.iter().map(as_json).collect::<Vec<_>>())),
    };
    crate::print(&text)?;
    Ok(if inferences.iter().all(Inference::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn definitions(path: &std::path::Path) -> anyhow::Result<Vec<Located>> {
    let files = SourceFile::read_all(&[path.to_owned()])?;
    let mut found = Vec::new();
    for file in &files {
        found.extend(file.objects()?.into_iter().filter(Located::is_definition).map(Located::in_v1));
    }
    if found.is_empty() {
        bail!("{}: there is no CustomResourceDefinition in it", path.display());
    }
    Ok(found)
}

fn of_definition(found: &Located, before: Option<&Located>, flags: &InferFlags) -> anyhow::Result<Inference> {
    let old = before.map(read_definition).transpose()?;
    read_definition(found)?;
    let merged = before.map_or_else(|| found.object.clone(), |before| merged(&before.object, &found.object));
    let definition = Definition::read(&merged, &environment(), BINARY.minor.into());
    let definition = Arc::new(definition.with_context(|| format!("{}, with the old versions", found.place))?);
    let mut names: Vec<&str> = definition.versions().iter().map(|version| version.name()).collect();
    names.sort_by_key(|name| version_order(name));
    for name in [&flags.from, &flags.to].into_iter().flatten() {
        if !names.contains(&name.as_str()) {
            bail!("{}: there is no version {name:?}: there are {}", found.place, names.join(", "));
        }
    }
    let owned = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let pairs: Vec<(String, String)> = match (&flags.from, &flags.to) {
        (Some(from), Some(to)) => vec![owned(from, to)],
        _ => names.windows(2).map(|pair| owned(pair[0], pair[1])).collect(),
    };
    let inference = Inference::of(&definition, old.as_deref(), &pairs, &environment());
    if inference.steps.is_empty() && inference.canonical.is_empty() {
        bail!("{}: {} has one version, and nothing to convert it to", found.place, definition.name());
    }
    Ok(inference)
}

/// The new definition with the versions that only the old one has.
fn merged(old: &Object, new: &Object) -> Object {
    let versions = |definition: &Object| definition.object("spec").map(|spec| spec.array("versions").to_vec());
    let name = |version: &Value| version.as_object().and_then(|version| version.str("name")).map(str::to_owned);
    let mut all = versions(new).unwrap_or_default();
    let known: Vec<Option<String>> = all.iter().map(name).collect();
    for mut version in versions(old).unwrap_or_default() {
        if !known.contains(&name(&version)) {
            if let Value::Object(version) = &mut version {
                version.insert("storage", false);
            }
            all.push(version);
        }
    }
    let mut merged = new.clone();
    merged.object_mut("spec").insert("versions", all);
    merged
}

/// The Conversion, with what is known of it in comments.
fn yaml(inference: &Inference) -> String {
    let mut text =
        String::from("# Proposed by `revisor crd infer`. Rules are about what fields mean: read them first.\n");
    comment(&mut text, 0, &verdict(inference));
    for rule in &inference.left_out {
        comment(&mut text, 0, &format!("left out: {rule}"));
    }
    let name = quoted(&inference.name);
    let head = "apiVersion: versioning.revisor.dev/v1alpha1\nkind: Conversion\nmetadata:\n";
    let _ = write!(text, "{head}  name: {name}\nspec:\n");
    text.push_str(if inference.steps.is_empty() { "  steps: []\n" } else { "  steps:\n" });
    for step in &inference.steps {
        let to = step.to.as_deref().unwrap_or_default();
        let _ = write!(text, "  - from: {}\n    to: {}\n", quoted(&step.from), quoted(to));
        write_rules(&mut text, step);
    }
    if !inference.canonical.is_empty() {
        text.push_str("  canonicalize:\n");
    }
    for form in &inference.canonical {
        let _ = writeln!(text, "  - version: {}", quoted(&form.from));
        write_rules(&mut text, form);
    }
    text
}

fn write_rules(text: &mut String, inferred: &InferredRules) {
    for note in &inferred.notes {
        comment(text, 4, note);
    }
    if let Some(to) = &inferred.to {
        for (version, paths) in [&inferred.from, to].into_iter().zip(&inferred.alone) {
            if !paths.is_empty() {
                comment(text, 4, &format!("only {version} has these, and they are kept for it: {}", paths.join(", ")));
            }
        }
    }
    text.push_str(if inferred.proposals.is_empty() { "    rules: []\n" } else { "    rules:\n" });
    for proposal in &inferred.proposals {
        comment(text, 4, &format!("{}: {}", proposal.sureness, proposal.why));
        let _ = writeln!(text, "    - {}", rule(&proposal.rule));
    }
}

/// A rule on one line.
fn rule(rule: &Value) -> String {
    let Some((name, body)) = rule.as_object().and_then(|rule| rule.iter().next()) else { return rule.to_json() };
    format!("{name}: {}", flow(body))
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let order = ["path", "from", "to", "value", "map"];
            let place = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
            let mut members: Vec<(&str, &Value)> = object.iter().collect();
            members.sort_by_key(|(name, _)| place(name));
            let shown: Vec<String> =
                members.iter().map(|(name, value)| format!("{}: {}", quoted(name), flow(value))).collect();
            format!("{{{}}}", shown.join(", "))
        }
        Value::String(text) => quoted(text),
        other => other.to_json(),
    }
}

/// A text as it may stand in braces: in quotes, unless it is a word or a plain path.
fn quoted(text: &str) -> String {
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
        && revisor_object::parse_yaml(text.as_bytes()).is_ok_and(|parsed| parsed.value.as_str() == Some(text));
    if is_word { text.to_owned() } else { Value::from(text).to_json() }
}

fn comment(text: &mut String, indent: usize, what: &str) {
    for line in what.lines() {
        let _ = writeln!(text, "{:indent$}# {line}", "");
    }
}

/// What `revisor crd prove` would say.
fn verdict(inference: &Inference) -> String {
    let report = match &inference.checked {
        Ok(report) => report,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return format!("It cannot be used yet:\n{}", errors.join("\n"));
        }
    };
    if report.broken.is_empty() {
        let is_proved = report.steps.iter().all(|step| step.verdict == Verdict::Proved);
        return format!("It keeps the laws: {}.", if is_proved { "proved" } else { "tested" });
    }
    let broken = report.broken.iter().map(|broken| format!("{}: {}", broken.field, broken.message()));
    format!("It does not keep the laws yet:\n{}", broken.collect::<Vec<_>>().join("\n"))
}

fn as_json(inference: &Inference) -> serde_json::Value {
    let rules = |inferred: &InferredRules| {
        let proposals: Vec<serde_json::Value> = inferred
            .proposals
            .iter()
            .map(|found| json!({"rule": found.rule, "sureness": found.sureness.to_string(), "why": found.why}))
            .collect();
        json!({
            "from": inferred.from, "to": inferred.to, "proposals": proposals, "notes": inferred.notes,
            "only": {"from": inferred.alone[0], "to": inferred.alone[1]},
        })
    };
    json!({
        "definition": inference.name,
        "holds": inference.holds(),
        "verdict": verdict(inference),
        "conversion": inference.conversion(),
        "steps": inference.steps.iter().map(rules).collect::<Vec<_>>(),
        "canonicalize": inference.canonical.iter().map(rules).collect::<Vec<_>>(),
        "leftOut": inference.left_out,
    })
}
