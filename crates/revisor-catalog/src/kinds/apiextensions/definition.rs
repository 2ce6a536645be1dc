//! [`Definition`]: what a CustomResourceDefinition says, read once when it is installed.

use revisor_object::{Object, Value};
use revisor_schema::Structural;
use revisor_version::ApiVersion;

use super::condition::{self, ESTABLISHED};
use super::frozen_versions;
use crate::kinds::members::{is_true, objects, part, text};
use crate::{CustomConversion, PrinterColumn, ScalePaths, ScaleSelector};

/// The names of a custom resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The name in paths.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of its lists.
    pub list_kind: String,
    /// Short names for people.
    pub short_names: Vec<String>,
    /// Groups of kinds that people ask for together.
    pub categories: Vec<String>,
}

impl Names {
    pub(super) fn read(names: &Object) -> Names {
        let text = |name| text(names, name).to_owned();
        let texts = |name| names.array(name).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Names {
            plural: text("plural"),
            singular: text("singular"),
            kind: text("kind"),
            list_kind: text("listKind"),
            short_names: texts("shortNames"),
            categories: texts("categories"),
        }
    }

    pub(super) fn write(&self) -> Object {
        let mut names = Object::new();
        for (name, value) in [("plural", &self.plural), ("singular", &self.singular), ("listKind", &self.list_kind)] {
            if !value.is_empty() || name == "plural" {
                names.insert(name, value.as_str());
            }
        }
        names.insert("kind", self.kind.as_str());
        for (name, values) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !values.is_empty() {
                names.insert(name, values.iter().map(|value| Value::from(value.as_str())).collect::<Vec<_>>());
            }
        }
        names
    }
}

/// One version of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinedVersion {
    /// Its name.
    pub name: String,
    /// Whether clients can use it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// What clients are told whenever they use it.
    pub deprecation: Option<String>,
    /// What clients are told who write through it, if nobody is to do that any more.
    pub frozen: Option<String>,
    /// What its objects look like.
    pub schema: Structural,
    /// Whether status has an address of its own.
    pub has_status: bool,
    /// Where its objects keep what their scale shows.
    pub scale: Option<ScalePaths>,
    /// How its objects are shown as a table.
    pub columns: Vec<PrinterColumn>,
    /// The paths of its selectable fields: `.spec.color`.
    pub selectable: Vec<String>,
}

/// What a CustomResourceDefinition says.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The group of its resources.
    pub group: String,
    /// The names that it got.
    pub accepted: Names,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Its versions, in the order in which they are written.
    pub versions: Vec<DefinedVersion>,
    /// How objects get from one version to another, as far as the definition says it.
    pub conversion: CustomConversion,
    /// Whether objects keep what their schemas do not know, as those of the oldest definitions do.
    pub preserves_unknown_fields: bool,
    /// Whether its resources are served.
    pub is_established: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

impl Definition {
    /// Reads a stored definition. It was validated when it was stored.
    pub fn read(object: &Object) -> Definition {
        let spec = part(object, "spec");
        let group = text(spec, "group").to_owned();
        let requested = Names::read(part(spec, "names"));
        Definition {
            accepted: Names::read(part(part(object, "status"), "acceptedNames")),
            namespaced: text(spec, "scope") == "Namespaced",
            versions: objects(spec, "versions")
                .map(|(_, version)| DefinedVersion {
                    frozen: frozen_versions::refusal(object, &group, text(version, "name")),
                    ..DefinedVersion::read(version, spec, &group, &requested.kind)
                })
                .collect(),
            conversion: CustomConversion::read(part(spec, "conversion"), text(part(object, "metadata"), "name")),
            preserves_unknown_fields: is_true(spec, "preserveUnknownFields"),
            is_established: condition::is_true(object, ESTABLISHED),
            is_terminating: part(object, "metadata").contains("deletionTimestamp"),
            group,
        }
    }
}

impl DefinedVersion {
    fn read(version: &Object, spec: &Object, group: &str, kind: &str) -> DefinedVersion {
        let schema = part(version, "schema").object("openAPIV3Schema");
        let schema = schema.map(Structural::read).unwrap_or_default();
        let subresources = part(version, "subresources");
        let name = text(version, "name").to_owned();
        let deprecation = is_true(version, "deprecated").then(|| match version.str("deprecationWarning") {
            Some(warning) => warning.to_owned(),
            None => deprecation(spec, group, &name, kind),
        });
        DefinedVersion {
            served: is_true(version, "served"),
            storage: is_true(version, "storage"),
            deprecation,
            frozen: None,
            schema,
            has_status: subresources.object("status").is_some(),
            scale: subresources.object("scale").map(scale_paths),
            columns: PrinterColumn::of_version(version),
            selectable: objects(version, "selectableFields")
                .map(|(_, field)| text(field, "jsonPath").to_owned())
                .collect(),
            name,
        }
    }
}

/// What clients of a deprecated version are told if its owner has no words of their own.
fn deprecation(spec: &Object, group: &str, version: &str, kind: &str) -> String {
    let own: Option<ApiVersion> = version.parse().ok();
    let better = objects(spec, "versions")
        .filter(|(_, other)| is_true(other, "served") && !is_true(other, "deprecated"))
        .filter_map(|(_, other)| text(other, "name").parse::<ApiVersion>().ok())
        .filter(|other| Some(other) > own.as_ref())
        .max();
    let advice = better.map(|better| format!("; use {group}/{} {kind}", better.as_str())).unwrap_or_default();
    format!("{group}/{version} {kind} is deprecated{advice}")
}

fn scale_paths(scale: &Object) -> ScalePaths {
    let path = |name| segments(text(scale, name));
    ScalePaths {
        replicas: path("specReplicasPath"),
        observed_replicas: path("statusReplicasPath"),
        selector: match scale.str("labelSelectorPath").filter(|path| !path.is_empty()) {
            Some(path) => ScaleSelector::Text(segments(path)),
            None => ScaleSelector::None,
        },
    }
}

/// `["spec", "replicas"]` of `.spec.replicas`.
pub(crate) fn segments(path: &str) -> Vec<String> {
    path.strip_prefix('.').unwrap_or(path).split('.').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn a_definition_is_read_with_its_versions() {
        let definition = Definition::read(&object(
            r#"{"metadata":{"name":"things.example.com"},
                "spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
                    "versions":[
                        {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},
                         "subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},
                         "selectableFields":[{"jsonPath":".spec.color"}]},
                        {"name":"v1beta1","served":true,"deprecated":true},
                        {"name":"v1alpha1","deprecated":true,"deprecationWarning":"go away"}]},
                "status":{"acceptedNames":{"plural":"things","kind":"Thing","shortNames":["th"]},
                    "conditions":[{"type":"Established","status":"True"}]}}"#,
        ));
        assert_eq!((definition.group.as_str(), definition.namespaced), ("example.com", true));
        assert!(definition.is_established && !definition.is_terminating);
        assert_eq!(definition.accepted.short_names, ["th"]);
        let [first, second, third] = &definition.versions[..] else { panic!("has three versions") };
        assert!(first.served && first.storage && first.has_status && first.deprecation.is_none());
        assert_eq!(first.scale.as_ref().map(|scale| scale.replicas.clone()), Some(vec!["spec".into(), "n".into()]));
        assert_eq!(first.selectable, [".spec.color"]);
        assert_eq!(
            second.deprecation.as_deref(),
            Some("example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing")
        );
        assert_eq!(third.deprecation.as_deref(), Some("go away"));
    }
}
