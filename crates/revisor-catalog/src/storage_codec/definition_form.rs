//! CustomResourceDefinitions as the original keeps them: in `v1beta1`, which it has not served for years.
//!
//! There a definition has one schema, one set of subresources, columns and selectable fields for all versions, unless they
//! differ; names its first version once more; and says of its webhook what `v1` says one level deeper (upstream:
//! `Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec` and its neighbours).

use revisor_object::{Object, Value};

const STORED: &str = "apiextensions.k8s.io/v1beta1";
const SHOWN: &str = "apiextensions.k8s.io/v1";

const COLUMNS: &str = "additionalPrinterColumns";

/// What stands once for all versions where it is the same in all of them: its name in a version, and above them.
const COMMON: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    (COLUMNS, COLUMNS),
    ("selectableFields", "selectableFields"),
];

/// From the canonical bytes of a definition to the text that is kept. Its parts stay as they are written, so that they are
/// in the order in which the original writes them too; they are only put elsewhere.
pub(super) fn to_stored(canonical: &str) -> String {
    let definition = Parts::of(canonical);
    let mut text = Text::begin();
    for (name, part) in definition.all() {
        match name {
            "apiVersion" => text.member(name, &format!("\"{STORED}\"")),
            "spec" => text.member(name, &stored_spec(&Parts::of(part))),
            _ => text.member(name, part),
        }
    }
    text.end()
}

fn stored_spec(spec: &Parts<'_>) -> String {
    let versions: Vec<Parts<'_>> = elements(spec.get("versions").unwrap_or("[]")).map(Parts::of).collect();
    let common = COMMON.map(|(below, above)| {
        let mut values = versions.iter().map(|version| version.get(below));
        let first = values.next().flatten();
        let is_common = values.all(|value| value == first);
        (below, above, is_common, first.filter(|_| is_common))
    });
    let above = |wanted: &str| common.iter().find(|(_, above, ..)| *above == wanted).and_then(|(.., value)| *value);
    let each = versions.iter().map(|version| {
        let mut text = Text::begin();
        let stays = |name: &str| !common.iter().any(|(below, _, is_common, _)| *below == name && *is_common);
        for (name, part) in version.all().filter(|(name, _)| stays(name)) {
            text.member(name, &if name == COLUMNS { stored_columns(part) } else { part.to_owned() });
        }
        text.end()
    });
    let each: Vec<String> = each.collect();
    let mut text = Text::begin();
    text.maybe("group", spec.get("group"));
    text.maybe("version", versions.first().and_then(|version| version.get("name")));
    text.maybe("names", spec.get("names"));
    text.maybe("scope", spec.get("scope"));
    text.maybe("validation", above("validation"));
    text.maybe("subresources", above("subresources"));
    text.member("versions", &format!("[{}]", each.join(",")));
    text.maybe(COLUMNS, above(COLUMNS).map(stored_columns).as_deref());
    text.maybe("selectableFields", above("selectableFields"));
    text.maybe("conversion", spec.get("conversion").map(stored_conversion).as_deref());
    text.member("preserveUnknownFields", spec.get("preserveUnknownFields").unwrap_or("false"));
    text.end()
}

/// In a text a quote has a backslash before it, so that this can only be the name of a member.
fn stored_columns(columns: &str) -> String {
    columns.replace("\"jsonPath\":", "\"JSONPath\":")
}

fn stored_conversion(conversion: &str) -> String {
    let conversion = Parts::of(conversion);
    let webhook = conversion.get("webhook").map(Parts::of);
    let of_webhook = |name| webhook.as_ref().and_then(|webhook| webhook.get(name));
    let mut text = Text::begin();
    text.maybe("strategy", conversion.get("strategy"));
    text.maybe("webhookClientConfig", of_webhook("clientConfig"));
    text.maybe("conversionReviewVersions", of_webhook("conversionReviewVersions"));
    text.end()
}

/// The members of an object, as they are written.
struct Parts<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Parts<'t> {
    fn of(object: &'t str) -> Parts<'t> {
        let member = |member: &'t str| {
            let (name, part) = member.strip_prefix('"')?.split_once("\":")?;
            Some((name, part))
        };
        Parts(elements(object).filter_map(member).collect())
    }

    fn get(&self, name: &str) -> Option<&'t str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
    }

    fn all(&self) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.0.iter().copied()
    }
}

/// What stands between the commas of a list or an object without blanks.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let parts = inside.split(move |c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_text => is_escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' => return depth == 0,
            _ => {}
        }
        false
    });
    parts.filter(|part| !part.is_empty())
}

/// An object that is written member by member.
struct Text(String);

impl Text {
    fn begin() -> Text {
        Text("{".to_owned())
    }

    fn member(&mut self, name: &str, part: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{name}\":{part}"));
    }

    fn maybe(&mut self, name: &str, part: Option<&str>) {
        if let Some(part) = part {
            self.member(name, part);
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// From what is kept to the form that is shown. Answers whether it was kept in the usual form.
pub(super) fn from_stored(definition: &mut Object) -> bool {
    if definition.str("apiVersion") != Some(STORED) {
        return false;
    }
    definition.insert("apiVersion", SHOWN);
    let spec = definition.object_mut("spec");
    // What was not said then was the opposite of what is not said now.
    if !spec.contains("preserveUnknownFields") {
        spec.insert("preserveUnknownFields", true);
    }
    let name = spec.remove("version");
    if let (true, Some(name)) = (spec.array("versions").is_empty(), name) {
        let only: Object =
            [("name", name), ("served", Value::from(true)), ("storage", Value::from(true))].into_iter().collect();
        spec.insert("versions", vec![Value::from(only)]);
    }
    rename_paths(spec);
    for (below, above) in COMMON {
        if let Some(common) = spec.remove(above) {
            each_version(spec, |version| {
                version.insert(below, common.clone());
            });
        }
    }
    if spec.contains("conversion") {
        let conversion = spec.object_mut("conversion");
        let config = conversion.remove("webhookClientConfig");
        let reviews = conversion.remove("conversionReviewVersions");
        if config.is_some() || reviews.is_some() {
            let mut webhook = Object::new();
            webhook.set("clientConfig", config);
            webhook.set("conversionReviewVersions", reviews);
            conversion.insert("webhook", webhook);
        }
    }
    true
}

fn each_version(spec: &mut Object, mut change: impl FnMut(&mut Object)) {
    let versions = spec.array_mut("versions").into_iter().flatten();
    versions.filter_map(Value::as_object_mut).for_each(&mut change);
}

/// Columns say where their value stands, in both forms by another name.
fn rename_paths(spec: &mut Object) {
    let rename = |holder: &mut Object| {
        let columns = holder.array_mut(COLUMNS).into_iter().flatten();
        for column in columns.filter_map(Value::as_object_mut) {
            if let Some(path) = column.remove("JSONPath") {
                column.insert("jsonPath", path);
            }
        }
    };
    rename(spec);
    each_version(spec, rename);
}
