//! [`FieldTree`]: the fields of a version as a tree for people, with how many objects set each and who manages it.

use std::fmt;

use anyhow::Context;
use revisor_convert::{Path, Segment};
use revisor_object::{Object, Value};

/// The fields of a version.
#[derive(Debug)]
pub(super) struct FieldTree {
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    /// The steps behind those of the field that it is in.
    label: String,
    /// How many fields it is in.
    depth: usize,
    objects: i64,
    managers: String,
}

impl FieldTree {
    /// Reads what is told of a version: its fields, each before those in it.
    pub(super) fn read(version: &Object) -> anyhow::Result<FieldTree> {
        let mut fields = Vec::new();
        // The paths of the fields that the next one may be in.
        let mut above: Vec<Path> = Vec::new();
        for field in version.array("fields").iter().filter_map(Value::as_object) {
            let text = field.str("path").unwrap_or_default();
            let path: Path = text.parse().with_context(|| format!("{text:?} is no path"))?;
            while above.last().is_some_and(|last| !path.segments().starts_with(last.segments())) {
                above.pop();
            }
            let known = above.last().map_or(0, |last| last.segments().len());
            let label = path.segments()[known..].iter().fold(Path::root(), |label, step| label.then(step.clone()));
            fields.push(Field {
                label: shown(&label),
                depth: above.len(),
                objects: field.get("objects").and_then(Value::as_i64).unwrap_or_default(),
                managers: managers(field),
            });
            above.push(path);
        }
        Ok(FieldTree { fields })
    }

    /// Whether a field is the last one in the field that it is in.
    fn is_last(&self, at: usize, depth: usize) -> bool {
        let mut behind = self.fields[at + 1..].iter().map(|field| field.depth);
        behind.find(|other| *other <= depth).is_none_or(|other| other < depth)
    }
}

/// A step without the dot before it: `spec`, `[*].name`, `["odd.name"]`.
fn shown(label: &Path) -> String {
    let text = label.to_string();
    match label.segments().first() {
        Some(Segment::Name(_)) => text.strip_prefix('.').unwrap_or(&text).to_owned(),
        _ => text,
    }
}

fn managers(field: &Object) -> String {
    let named = field.array("managers").iter().filter_map(Value::as_object).map(|manager| {
        let name = manager.str("manager").unwrap_or_default();
        match manager.str("lastWriteTime") {
            Some(time) => format!("{name} ({time})"),
            None => name.to_owned(),
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for FieldTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<(String, &Field)> = Vec::new();
        // Which of the fields above have more to come.
        let mut goes_on: Vec<bool> = Vec::new();
        for (at, field) in self.fields.iter().enumerate() {
            goes_on.truncate(field.depth);
            let mut line: String = goes_on.iter().map(|more| if *more { "│  " } else { "   " }).collect();
            let is_last = self.is_last(at, field.depth);
            line.push_str(if is_last { "└─ " } else { "├─ " });
            line.push_str(&field.label);
            goes_on.push(!is_last);
            lines.push((line, field));
        }
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or_default();
        let digits = self.fields.iter().map(|field| field.objects.to_string().len()).max().unwrap_or_default();
        for (line, field) in lines {
            let text = format!("{line:width$}  {:>digits$}  {}", field.objects, field.managers);
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn fields_are_drawn_below_those_that_they_are_in() {
        let field = |path: &str, objects: u32, managers: &str| {
            format!(r#"{{"path":{},"objects":{objects},"managers":[{managers}]}}"#, Value::from(path).to_json())
        };
        let ada = r#"{"manager":"ada","lastWriteTime":"2026-11-17T18:00:00Z"}"#;
        let fields = [
            field(".spec", 12, ada),
            field(".spec.ports", 3, ""),
            field(".spec.ports[*].name", 3, &format!(r#"{ada},{{"manager":"bob"}}"#)),
            field(".spec.ports[*].port", 0, ""),
            field(r#".spec["odd.one"]"#, 1, ""),
            field(".status", 0, ""),
        ];
        let text = format!(r#"{{"fields":[{}]}}"#, fields.join(","));
        let Ok(Value::Object(version)) = parse_json(text.as_bytes()).map(|parsed| parsed.value) else {
            panic!("no object: {text}")
        };
        let want = [
            "├─ spec            12  ada (2026-11-17T18:00:00Z)",
            "│  ├─ ports         3",
            "│  │  ├─ [*].name   3  ada (2026-11-17T18:00:00Z), bob",
            "│  │  └─ [*].port   0",
            "│  └─ [\"odd.one\"]   1",
            "└─ status           0",
            "",
        ];
        assert_eq!(FieldTree::read(&version).expect("is one").to_string(), want.join("\n"));
    }
}
