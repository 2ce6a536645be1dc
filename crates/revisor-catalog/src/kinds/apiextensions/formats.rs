//! The formats that values are checked for. Others may be named, and are passed over with a warning.

use revisor_object::Object;
use revisor_schema::{JsonType, is_known_format};
use revisor_version::Release;

use super::schema_tree;
use super::shared_parts::SharedParts;
use crate::kinds::members::text;

/// The formats in a definition that mean nothing in a release.
fn unknown(definition: &Object, release: Release) -> Vec<&str> {
    let mut found = Vec::new();
    for schema in SharedParts::of(definition).schemas() {
        schema_tree::any(schema, &mut |schema| {
            let format = text(schema, "format");
            let is_known = |kind| is_known_format(kind, false, format, release.minor.into());
            if !format.is_empty() && !is_known(JsonType::parse(text(schema, "type"))) {
                found.push(format);
            }
            false
        });
    }
    found
}

/// A warning for each format that is new in a definition and means nothing.
pub(super) fn warnings(definition: &Object, old: Option<&Object>, release: Release) -> Vec<String> {
    let before = old.map(|old| unknown(old, release)).unwrap_or_default();
    let mut now = unknown(definition, release);
    now.retain(|format| !before.contains(format));
    now.into_iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn formats_without_a_meaning_are_told_once() {
        let definition = |format: &str| {
            object(&format!(
                r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{"properties":{{"a":{format}}}}}}}}}]}}}}"#
            ))
        };
        for (schema, want) in [
            (r#"{"type":"string","format":"date-time"}"#, None),
            (r#"{"type":"string","format":"k8s-short-name"}"#, None),
            (r#"{"format":"uuid"}"#, None),
            (r#"{"type":"integer","format":"int32"}"#, None),
            (r#"{"type":"integer","format":"int16"}"#, Some("unrecognized format \"int16\"")),
            (r#"{"type":"boolean","format":"byte"}"#, Some("unrecognized format \"byte\"")),
            (r#"{"type":"string","format":"phone"}"#, Some("unrecognized format \"phone\"")),
        ] {
            let definition = definition(schema);
            let release = |minor| Release { major: 1, minor };
            assert_eq!(warnings(&definition, None, release(34)).first().map(String::as_str), want, "{schema}");
            assert!(warnings(&definition, Some(&definition), release(34)).is_empty(), "{schema}");
            let is_new = schema.contains("k8s-short-name");
            assert_eq!(warnings(&definition, None, release(33)).is_empty(), want.is_none() && !is_new, "{schema}");
        }
    }
}
