//! Files of one volume that get into each other's way: at the same place, or one where the other needs a directory.

use revisor_object::Object;

use crate::kinds::pod_spec::members::{objects, part, text};

/// The place of a file, and what it comes from.
#[derive(Debug, Clone, PartialEq)]
struct Place<'a> {
    path: &'a str,
    source: String,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.path)?;
        if self.source.is_empty() { Ok(()) } else { write!(f, " ({})", self.source) }
    }
}

/// What is unwise about the places of files in the volumes of a spec.
pub(super) fn of(spec: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    for (_, volume) in objects(spec, "volumes") {
        let name = text(volume, "name");
        let mut warn = |what: &str, places: Vec<Place<'_>>| {
            let shown = |overlap| format!("volume {name:?} ({what}): overlapping paths: {overlap}");
            warnings.extend(overlaps(places).into_iter().map(shown));
        };
        if let Some(source) = volume.object("configMap") {
            warn(&format!("ConfigMap {:?}", text(source, "name")), places(source, ""));
        }
        if let Some(source) = volume.object("secret") {
            warn(&format!("Secret {:?}", text(source, "secretName")), places(source, ""));
        }
        if let Some(source) = volume.object("downwardAPI") {
            warn("DownwardAPI", places(source, ""));
        }
        if let Some(projected) = volume.object("projected") {
            let all = objects(projected, "sources").flat_map(|(_, source)| places_of_source(source)).collect();
            warn("Projected", all);
            // Once is enough, however many of its sources are empty.
            if objects(projected, "sources").any(|(_, source)| source.is_empty()) {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
        }
    }
    warnings
}

fn places<'a>(holder: &'a Object, source: &str) -> Vec<Place<'a>> {
    objects(holder, "items").map(|(_, item)| Place { path: text(item, "path"), source: source.to_owned() }).collect()
}

fn places_of_source(source: &Object) -> Vec<Place<'_>> {
    let has_items = |name: &str| !part(source, name).array("items").is_empty();
    let named = |kind: &str, member: &str| format!("{kind} {:?}", text(part(source, member), "name"));
    let one = |path, source: String| vec![Place { path, source }];
    if has_items("configMap") {
        places(part(source, "configMap"), &named("ConfigMap", "configMap"))
    } else if has_items("secret") {
        places(part(source, "secret"), &named("Secret", "secret"))
    } else if has_items("downwardAPI") {
        places(part(source, "downwardAPI"), "DownwardAPI")
    } else if let Some(token) = source.object("serviceAccountToken") {
        one(text(token, "path"), "ServiceAccountToken".to_owned())
    } else if let Some(bundle) = source.object("clusterTrustBundle") {
        let name = bundle.str("name").or_else(|| bundle.str("signerName")).unwrap_or_default();
        one(text(bundle, "path"), format!("ClusterTrustBundle {name:?}"))
    } else if let Some(certificate) = source.object("podCertificate") {
        let files =
            [("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle")];
        let given = files.into_iter().filter(|(member, _)| !text(certificate, member).is_empty());
        given
            .map(|(member, what)| Place { path: text(certificate, member), source: format!("PodCertificate {what}") })
            .collect()
    } else {
        Vec::new()
    }
}

fn overlaps(places: Vec<Place<'_>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut earlier: Vec<Place<'_>> = Vec::new();
    for place in places {
        let place = Place { path: place.path.trim_end_matches('/'), ..place };
        if !place.path.is_empty() {
            let clashing = earlier.iter().filter(|other| !other.path.is_empty() && overlap(other.path, place.path));
            found.extend(clashing.map(|other| format!("{place} with {other}")));
        }
        earlier.push(place);
    }
    found
}

/// Whether two places are the same, or one is below the other.
fn overlap(one: &str, other: &str) -> bool {
    let is_below =
        |path: &str, top: &str| path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_below(one, other) || is_below(other, one)
}
