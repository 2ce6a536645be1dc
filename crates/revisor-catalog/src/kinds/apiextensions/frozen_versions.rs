//! Versions through which nothing is written any more, as an annotation of their definition says. Beyond the original.
//!
//! They are on their way out: who still reads them goes on, and who writes is told where to go.

use revisor_object::{Object, Seen};
use revisor_version::ApiVersion;

use crate::kinds::members::{is_true, objects, part, text};

/// The annotation that names them, separated by commas.
pub const FROZEN_VERSIONS: &str = "versioning.revisor.dev/frozen-versions";

/// What somebody is told who writes through a version of a definition; `None` if they may.
pub(super) fn refusal(definition: &Object, group: &str, version: &str) -> Option<String> {
    let frozen: Vec<&str> = named(definition).collect();
    if !frozen.contains(&version) {
        return None;
    }
    let advice = match best_written(definition, &frozen) {
        Some(better) => format!("use {group}/{}", better.as_str()),
        None => "so are all others that are served".to_owned(),
    };
    Some(format!("{group}/{version} is frozen: its objects can be read but not written; {advice}"))
}

/// What is unwise about the annotation of a definition.
pub(super) fn warnings(definition: &Object) -> Vec<String> {
    let Some(annotation) = annotation(definition) else { return Vec::new() };
    let versions = objects(part(definition, "spec"), "versions");
    let known: Seen<&str> = versions.map(|(_, version)| text(version, "name")).collect();
    let frozen: Vec<&str> = named(definition).collect();
    let mut problems: Vec<String> = Vec::new();
    if frozen.is_empty() || annotation.split(',').any(|name| name.trim().is_empty()) {
        problems.push("should be names of versions, separated by commas".to_owned());
    }
    let unknown = frozen.iter().filter(|name| !known.has(name));
    problems.extend(unknown.map(|name| format!("{name:?} is no version of this definition")));
    if frozen.iter().any(|name| known.has(name)) && best_written(definition, &frozen).is_none() {
        problems.push("no version is left through which objects can be written".to_owned());
    }
    problems.into_iter().map(|problem| format!("metadata.annotations[{FROZEN_VERSIONS}]: {problem}")).collect()
}

fn annotation(definition: &Object) -> Option<&str> {
    part(part(definition, "metadata"), "annotations").str(FROZEN_VERSIONS)
}

/// The versions that the annotation names, whether there are such or not.
fn named(definition: &Object) -> impl Iterator<Item = &str> {
    annotation(definition).into_iter().flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

/// The best version that is served and not frozen.
fn best_written(definition: &Object, frozen: &[&str]) -> Option<ApiVersion> {
    objects(part(definition, "spec"), "versions")
        .filter(|(_, version)| is_true(version, "served") && !frozen.contains(&text(version, "name")))
        .filter_map(|(_, version)| text(version, "name").parse().ok())
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    fn definition(annotation: &str) -> Object {
        object(&format!(
            r#"{{"metadata":{{"annotations":{{"{FROZEN_VERSIONS}":"{annotation}"}}}},"spec":{{"versions":[
                {{"name":"v1alpha1","served":true}},{{"name":"v1beta1","served":true}},{{"name":"v1","served":true}},
                {{"name":"v2"}}]}}}}"#
        ))
    }

    #[test]
    fn who_writes_through_a_frozen_version_is_told_the_best_that_is_not() {
        for (annotation, version, want) in [
            ("", "v1", None),
            ("v1alpha1", "v1", None),
            ("v1alpha1", "v1alpha1", Some("use g/v1")),
            ("v1alpha1 , v1,", "v1alpha1", Some("use g/v1beta1")),
            ("v1alpha1,v1beta1,v1", "v1", Some("so are all others that are served")),
        ] {
            let told = refusal(&definition(annotation), "g", version);
            let want =
                want.map(|advice| format!("g/{version} is frozen: its objects can be read but not written; {advice}"));
            assert_eq!(told, want, "{annotation:?} {version}");
        }
    }

    #[test]
    fn odd_annotations_draw_warnings() {
        for (annotation, want) in [
            ("v1alpha1, v1beta1", &[][..]),
            ("", &["should be names of versions, separated by commas"]),
            ("v1alpha1,,v1beta1", &["should be names of versions, separated by commas"]),
            ("v9 v8,v1", &["\"v9 v8\" is no version of this definition"]),
            ("v1,v1beta1,v1alpha1", &["no version is left through which objects can be written"]),
        ] {
            let want: Vec<String> =
                want.iter().map(|problem| format!("metadata.annotations[{FROZEN_VERSIONS}]: {problem}")).collect();
            assert_eq!(warnings(&definition(annotation)), want, "{annotation:?}");
        }
    }
}
