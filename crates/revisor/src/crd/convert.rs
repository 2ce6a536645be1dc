//! `revisor crd convert`: the objects of a YAML stream in another version.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context, bail};
use revisor_convert::{Conversion, ConvertError};
use revisor_object::{KeyOrder, Value, aggregate_message, repeated_yaml_keys};

use super::documents::Document;
use super::pairs;
use super::yaml_text::to_yaml;
use crate::flags::{ConvertFlags, ObjectFormat};

/// Converts what comes from standard input. Nothing is printed unless all of it can be converted.
pub(super) fn convert(flags: &ConvertFlags) -> anyhow::Result<ExitCode> {
    let mut conversions = Vec::new();
    for pair in pairs(&flags.crd, &flags.conversion)? {
        let compiled = pair.compile().map_err(|errors| anyhow::anyhow!(aggregate_message(&errors)));
        let compiled = compiled.with_context(|| format!("{} cannot be used", flags.conversion.display()))?;
        if pair.definition.versions().iter().all(|version| version.name() != flags.to) {
            let names: Vec<&str> = pair.definition.versions().iter().map(|version| version.name()).collect();
            bail!("{} has no version {:?}: it has {}", pair.definition.name(), flags.to, names.join(", "));
        }
        conversions.push(compiled);
    }
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input).context("cannot read standard input")?;
    let input = String::from_utf8(input).context("standard input is no text")?;
    let (mut converted, mut problems, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let documents = Document::all(&input);
    for document in &documents {
        let mut note = |what: String| notes.push(format!("revisor: note: {}: {what}", document.place()));
        match Converted::of(&conversions, document, &flags.to, &mut note) {
            Ok(one) => converted.push(one),
            Err(error) => problems.push(format!("revisor: {}: {error:#}", document.place())),
        }
    }
    let shown = match flags.output {
        ObjectFormat::Yaml => {
            let texts = converted.into_iter().zip(&documents).map(|(one, document)| {
                one.text(document, &mut |what| notes.push(format!("revisor: note: {}: {what}", document.place())))
            });
            texts.collect::<Vec<_>>().join("---\n")
        }
        ObjectFormat::Json => list(converted),
    };
    notes.iter().chain(&problems).for_each(|line| crate::complain(line));
    if !problems.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    crate::print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

/// All objects in one list, as `kubectl get -o json` prints several.
fn list(converted: Vec<Converted>) -> String {
    let items: Vec<Value> = converted.into_iter().map(|one| one.value).collect();
    let members = [("apiVersion", Value::from("v1")), ("kind", Value::from("List")), ("items", Value::from(items))];
    format!("{}\n", Value::Object(members.into_iter().collect()).to_json())
}

/// A document after its conversion.
struct Converted {
    value: Value,
    has_changed: bool,
}

impl Converted {
    fn of(
        conversions: &[Conversion],
        document: &Document<'_>,
        to: &str,
        note: &mut impl FnMut(String),
    ) -> anyhow::Result<Converted> {
        let mut value = document.value()?;
        let has_changed = convert_value(conversions, &mut value, to, note)?;
        if has_changed {
            repeated_yaml_keys(document.text).into_iter().for_each(note);
        }
        Ok(Converted { value, has_changed })
    }

    /// As people would have written it, and as it was if nothing has changed.
    fn text(&self, document: &Document<'_>, note: &mut impl FnMut(String)) -> String {
        let object = match &self.value {
            Value::Object(object) if self.has_changed => object,
            _ => return ended(document.text),
        };
        if document.is_json() {
            return format!("{}{}\n", document.head(), self.value.to_json());
        }
        let comments = document.comments();
        if comments > 0 {
            note(format!("{comments} lines with comments were rewritten, and their comments are lost"));
        }
        format!("{}{}", document.head(), to_yaml(object, &KeyOrder::of(document.text)))
    }
}

/// Converts an object, or the objects of a list; answers whether anything changed.
fn convert_value(
    conversions: &[Conversion],
    value: &mut Value,
    to: &str,
    note: &mut impl FnMut(String),
) -> anyhow::Result<bool> {
    let Value::Object(object) = value else { return Ok(false) };
    if object.str("kind").is_some_and(|kind| kind.ends_with("List"))
        && let Some(items) = object.array_mut("items")
    {
        let mut has_changed = false;
        for item in items {
            has_changed |= convert_value(conversions, item, to, note)?;
        }
        if has_changed
            && let Some(Value::String(version)) = object.get_mut("apiVersion")
            && let Some((group, _)) = version.split_once('/')
        {
            *version = format!("{group}/{to}").into();
        }
        return Ok(has_changed);
    }
    let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = object.str("apiVersion").and_then(|version| version.split_once('/')).map(|(group, _)| group);
    let owner = conversions.iter().find(|conversion| {
        let storage = conversion.definition().storage();
        let is_group = storage.api_version().split_once('/').map(|(group, _)| group) == group;
        is_group && object.str("kind") == Some(storage.kind())
    });
    let Some(conversion) = owner else { return Ok(false) };
    let Some(version) = conversion.definition().version_of(object) else {
        let version = object.str("apiVersion").unwrap_or_default();
        bail!("{name}: {} has no version {version:?}", conversion.definition().name());
    };
    let in_object = |error: ConvertError| anyhow::anyhow!(error).context(name.clone());
    let before = value.clone();
    conversion.canonicalize(version.name(), value).map_err(in_object)?;
    if version.name() != to {
        let mut known = value.clone();
        let lost = version.structural().prune(&mut known, true);
        if !lost.is_empty() {
            note(format!("{name}: lost what version {} does not know: {}", version.name(), lost.join(", ")));
        }
        *value = conversion.convert(known, to).map_err(in_object)?;
    }
    Ok(*value != before)
}

fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
