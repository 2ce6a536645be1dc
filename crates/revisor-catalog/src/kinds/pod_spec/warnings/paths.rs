//! Files of one volume that get into each other's way: at the same place, or one where the other needs a directory.

use std::collections::HashMap;

use revisor_object::{Object, Seen};

use super::MOST_WARNINGS;
use crate::kinds::pod_spec::members::{objects, part, text};

/// The place of a file, and what it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place<'a> {
    path: &'a str,
    source: Source<'a>,
}

/// What a file comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source<'a> {
    /// The only source of the volume.
    Only,
    Kind(&'static str),
    Named(&'static str, &'a str),
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.path)?;
        match self.source {
            Source::Only => Ok(()),
            Source::Kind(kind) => write!(f, " ({kind})"),
            Source::Named(kind, name) => write!(f, " ({kind} {name:?})"),
        }
    }
}

/// What is unwise about the places of files in the volumes of a spec.
pub(super) fn of(spec: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    for (_, volume) in objects(spec, "volumes") {
        let name = text(volume, "name");
        let mut warn = |kind: &str, called: Option<&str>, places: Vec<Place<'_>>| {
            let shown = |overlap| match called {
                None => format!("volume {name:?} ({kind}): overlapping paths: {overlap}"),
                Some(called) => format!("volume {name:?} ({kind} {called:?}): overlapping paths: {overlap}"),
            };
            warnings.extend(overlaps(places).into_iter().map(shown));
        };
        if let Some(source) = volume.object("configMap") {
            warn("ConfigMap", Some(text(source, "name")), places(source, Source::Only));
        }
        if let Some(source) = volume.object("secret") {
            warn("Secret", Some(text(source, "secretName")), places(source, Source::Only));
        }
        if let Some(source) = volume.object("downwardAPI") {
            warn("DownwardAPI", None, places(source, Source::Only));
        }
        if let Some(projected) = volume.object("projected") {
            let all = objects(projected, "sources").flat_map(|(_, source)| places_of_source(source)).collect();
            warn("Projected", None, all);
            // Once is enough, however many of its sources are empty.
            if objects(projected, "sources").any(|(_, source)| source.is_empty()) {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
        }
    }
    warnings
}

fn places<'a>(holder: &'a Object, source: Source<'a>) -> Vec<Place<'a>> {
    objects(holder, "items").map(|(_, item)| Place { path: text(item, "path"), source }).collect()
}

fn places_of_source(source: &Object) -> Vec<Place<'_>> {
    let has_items = |name: &str| !part(source, name).array("items").is_empty();
    let named = |kind, member: &str| Source::Named(kind, text(part(source, member), "name"));
    let one = |path, source| vec![Place { path, source }];
    if has_items("configMap") {
        places(part(source, "configMap"), named("ConfigMap", "configMap"))
    } else if has_items("secret") {
        places(part(source, "secret"), named("Secret", "secret"))
    } else if has_items("downwardAPI") {
        places(part(source, "downwardAPI"), Source::Kind("DownwardAPI"))
    } else if let Some(token) = source.object("serviceAccountToken") {
        one(text(token, "path"), Source::Kind("ServiceAccountToken"))
    } else if let Some(bundle) = source.object("clusterTrustBundle") {
        let name = bundle.str("name").or_else(|| bundle.str("signerName")).unwrap_or_default();
        one(text(bundle, "path"), Source::Named("ClusterTrustBundle", name))
    } else if let Some(certificate) = source.object("podCertificate") {
        let files = [
            ("certificateChainPath", "PodCertificate chain"),
            ("keyPath", "PodCertificate key"),
            ("credentialBundlePath", "PodCertificate credential bundle"),
        ];
        let given = files.into_iter().filter(|(member, _)| !text(certificate, member).is_empty());
        given.map(|(member, kind)| Place { path: text(certificate, member), source: Source::Kind(kind) }).collect()
    } else {
        Vec::new()
    }
}

fn overlaps(mut places: Vec<Place<'_>>) -> Vec<String> {
    let mut found = Vec::new();
    places.iter_mut().for_each(|place| place.path = place.path.trim_end_matches('/'));
    // Nearly always they part at their first steps.
    let mut firsts = Seen::default();
    let mut paths = places.iter().map(|place| place.path).filter(|path| !path.is_empty());
    if paths.all(|path| firsts.is_new(path.split('/').next())) {
        return found;
    }
    let mut tree = Tree::default();
    for (at, place) in places.iter().enumerate().filter(|(_, place)| !place.path.is_empty()) {
        for other in tree.insert(place.path, at) {
            if found.len() == MOST_WARNINGS {
                return found;
            }
            found.push(format!("{place} with {}", places[other]));
        }
    }
    found
}

/// Places by their steps, so that none has to be compared with all others.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

#[derive(Default)]
struct Node<'a> {
    steps: HashMap<&'a str, usize>,
    here: Vec<usize>,
    below: Vec<usize>,
}

impl Default for Tree<'_> {
    fn default() -> Self {
        Tree { nodes: vec![Node::default()] }
    }
}

impl<'a> Tree<'a> {
    /// Adds a place. Answers, in their order, the earlier ones that are the same, above it or below it.
    fn insert(&mut self, path: &'a str, place: usize) -> Vec<usize> {
        let mut clashing = Vec::new();
        let mut at = 0;
        for step in path.split('/') {
            clashing.extend_from_slice(&self.nodes[at].here);
            self.nodes[at].below.push(place);
            let new = self.nodes.len();
            at = *self.nodes[at].steps.entry(step).or_insert(new);
            if at == new {
                self.nodes.push(Node::default());
            }
        }
        let last = &mut self.nodes[at];
        clashing.extend_from_slice(&last.here);
        clashing.extend_from_slice(&last.below);
        last.here.push(place);
        clashing.sort_unstable();
        clashing
    }
}
