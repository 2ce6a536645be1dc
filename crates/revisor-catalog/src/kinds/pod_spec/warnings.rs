//! What is unwise but allowed about a spec.

mod paths;
mod ports;

use revisor_object::names::label_value;
use revisor_object::{FieldPath, Object, Seen, ip_warnings};

use super::affinity::{PREFERRED, REQUIRED};
use super::members::{all_containers, number, objects, part, text, texts};
use super::profiles::{APP_ARMOR, SECCOMP_OF_CONTAINER, SECCOMP_OF_POD, is_same_app_armor};
use crate::kinds::amounts::amount;
use crate::kinds::node_selectors::deprecated_label;
use crate::{Feature, Features};

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";
const OLD_SECCOMP: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;

/// Annotations that do nothing any more.
const ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    ("security.alpha.kubernetes.io/unsafe-sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
];

/// Volumes that do nothing any more or are not to be used, with the names under which they are shown.
const VOLUMES: &[(&str, &str, &str)] = &[
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// How many pairs of files or ports are warned of. Clients are shown the first of them only.
const MOST_WARNINGS: usize = 1000;

/// What is unwise about a pod or a template (`{metadata, spec}`).
pub(super) fn of(path: FieldPath<'_>, is_template: bool, template: &Object, features: Features) -> Vec<String> {
    let mut warnings = Vec::new();
    let found = &mut warnings;
    let spec = part(template, "spec");
    let annotations = part(part(template, "metadata"), "annotations");
    let at_spec = path.child("spec");
    let at_metadata = path.child("metadata");
    let at_annotations = at_metadata.child("annotations");
    of_placement(at_spec, spec, found);
    for (key, message) in ANNOTATIONS {
        if annotations.contains(key) {
            found.push(format!("{}: {message}", at_annotations.key(key)));
        }
    }
    of_volumes(at_spec.child("volumes"), spec, features, found);
    found.extend(paths::of(spec));
    of_repetitions(at_spec, spec, found);
    fractions(at_spec.child("overhead"), part(spec, "overhead"), &["memory", "ephemeral-storage"], found);
    let context = part(spec, "securityContext");
    let has_profiles = names_profiles(annotations);
    if !context.contains("seccompProfile") && annotations.contains(SECCOMP_OF_POD) {
        found.push(format!("{}: {OLD_SECCOMP}", at_annotations.key(SECCOMP_OF_POD)));
    }
    for (list, at, container) in all_containers(spec) {
        let at_list = at_spec.child(list);
        let path = at_list.index(at);
        if has_profiles {
            of_profiles(at_annotations, is_template, annotations, context, container, found);
        }
        let at_resources = path.child("resources");
        for name in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                fractions(at_resources.child(list), part(part(container, "resources"), list), &[name], found);
            }
        }
        of_variables(path.child("env"), container, found);
    }
    ports::of(at_spec, spec, found);
    if number(spec, "terminationGracePeriodSeconds") < 0 {
        let path = at_spec.child("terminationGracePeriodSeconds");
        found.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    of_pod_affinities(at_spec.child("affinity"), spec, found);
    let at_config = at_spec.child("dnsConfig");
    let at_servers = at_config.child("nameservers");
    for (at, server) in texts(part(spec, "dnsConfig"), "nameservers") {
        found.extend(ip_warnings(at_servers.index(at), server));
    }
    let at_aliases = at_spec.child("hostAliases");
    for (at, alias) in objects(spec, "hostAliases") {
        found.extend(ip_warnings(at_aliases.index(at).child("ip"), text(alias, "ip")));
    }
    warnings
}

/// Older names of labels where nodes are chosen by them, and constraints that select nothing.
fn of_placement(path: FieldPath<'_>, spec: &Object, found: &mut Vec<String>) {
    let at_selector = path.child("nodeSelector");
    for (key, _) in part(spec, "nodeSelector").iter() {
        found.extend(deprecated_label(key).map(|message| format!("{}: {message}", at_selector.key(key))));
    }
    let affinity = part(part(spec, "affinity"), "nodeAffinity");
    let at_affinity = path.child("affinity");
    let at_affinity = at_affinity.child("nodeAffinity");
    let at_required = at_affinity.child(REQUIRED);
    let at_terms = at_required.child("nodeSelectorTerms");
    for (at, term) in objects(part(affinity, REQUIRED), "nodeSelectorTerms") {
        of_node_term(at_terms.index(at), term, false, found);
    }
    let at_preferred = at_affinity.child(PREFERRED);
    for (at, term) in objects(affinity, PREFERRED) {
        of_node_term(at_preferred.index(at).child("preference"), part(term, "preference"), true, found);
    }
    let at_constraints = path.child("topologySpreadConstraints");
    for (at, constraint) in objects(spec, "topologySpreadConstraints") {
        let path = at_constraints.index(at);
        let key = text(constraint, "topologyKey");
        let message = deprecated_label(key);
        found.extend(message.map(|message| format!("{}: {key} is {message}", path.child("topologyKey"))));
        if !constraint.contains("labelSelector") {
            found.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
        }
    }
}

fn of_node_term(path: FieldPath<'_>, term: &Object, is_wish: bool, found: &mut Vec<String>) {
    let path = path.child("matchExpressions");
    for (at, expression) in objects(term, "matchExpressions") {
        let path = path.index(at);
        let key = text(expression, "key");
        let message = deprecated_label(key);
        found.extend(message.map(|message| format!("{}: {key} is {message}", path.child("key"))));
        if !is_wish {
            continue;
        }
        let path = path.child("values");
        for (at, value) in texts(expression, "values") {
            let shown = |problem| format!("{}: {value} is invalid, {problem}", path.index(at));
            found.extend(label_value(value).into_iter().map(shown));
        }
    }
}

fn of_volumes(path: FieldPath<'_>, spec: &Object, features: Features, found: &mut Vec<String>) {
    for (at, volume) in objects(spec, "volumes") {
        let path = path.index(at);
        for (name, shown, message) in VOLUMES {
            if volume.contains(name) {
                let is_disabled = *name == "gitRepo" && !features.has(Feature::GitRepoVolumeDriver);
                let more = if is_disabled { ", and disabled by default in v1.33+" } else { "" };
                found.push(format!("{}: {message}{more}", path.child(shown)));
            }
        }
        if let Some(template) = part(volume, "ephemeral").object("volumeClaimTemplate") {
            let resources = part(part(template, "spec"), "resources");
            let path = path.child("ephemeral");
            let path = path.child("volumeClaimTemplate");
            let path = path.child("spec");
            let path = path.child("resources");
            for list in ["requests", "limits"] {
                fractions(path.child(list), part(resources, list), &["storage"], found);
            }
        }
    }
}

/// Amounts of bytes that are not whole.
fn fractions(path: FieldPath<'_>, list: &Object, names: &[&str], found: &mut Vec<String>) {
    for name in names {
        let Some(amount) = list.get(name).map(amount) else { continue };
        if amount.milli_value() % 1000 != 0 {
            let path = path.key(name);
            found.push(format!("{path}: fractional byte value \"{amount}\" is invalid, must be an integer"));
        }
    }
}

/// Elements of lists that are told apart by a key which two of them share.
fn of_repetitions(path: FieldPath<'_>, spec: &Object, found: &mut Vec<String>) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let path = path.child(list);
        let mut seen = Seen::default();
        for (at, item) in objects(spec, list) {
            let given = text(item, key);
            if !seen.is_new(given) {
                found.push(format!("{}: duplicate {key} {given:?}", path.index(at).child(key)));
            }
        }
    }
    let path = path.child("imagePullSecrets");
    for (at, secret) in objects(spec, "imagePullSecrets") {
        if text(secret, "name").is_empty() {
            found.push(format!("{}: invalid empty name \"\"", path.index(at).child("name")));
        }
    }
}

/// Whether there are annotations for the profiles of containers.
fn names_profiles(annotations: &Object) -> bool {
    annotations.iter().any(|(key, _)| key.starts_with(SECCOMP_OF_CONTAINER) || key.starts_with(APP_ARMOR))
}

fn of_profiles(
    path: FieldPath<'_>,
    is_template: bool,
    annotations: &Object,
    of_pod: &Object,
    container: &Object,
    found: &mut Vec<String>,
) {
    let name = text(container, "name");
    let context = part(container, "securityContext");
    let key = format!("{SECCOMP_OF_CONTAINER}{name}");
    if !context.contains("seccompProfile") && annotations.contains(&key) {
        found.push(format!("{}: {OLD_SECCOMP}", path.key(&key)));
    }
    // For pods the annotation becomes a field, so that it has to be looked at earlier.
    if is_template {
        found.extend(of_app_armor(path, annotations, of_pod, container));
    }
}

/// The annotations of a pod as it was sent that stand where a field should.
pub(super) fn of_app_armor_annotations(path: FieldPath<'_>, annotations: &Object, spec: &Object) -> Vec<String> {
    if !names_profiles(annotations) {
        return Vec::new();
    }
    let of_pod = part(spec, "securityContext");
    let of = |(_, _, container)| of_app_armor(path, annotations, of_pod, container);
    all_containers(spec).filter_map(of).collect()
}

fn of_app_armor(path: FieldPath<'_>, annotations: &Object, of_pod: &Object, container: &Object) -> Option<String> {
    if part(container, "securityContext").contains("appArmorProfile") {
        return None;
    }
    let key = format!("{APP_ARMOR}{}", text(container, "name"));
    let annotation = annotations.str(&key)?;
    let is_said = of_pod.object("appArmorProfile").is_some_and(|profile| is_same_app_armor(profile, annotation));
    let message = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
    (!is_said).then(|| format!("{}: {message}", path.key(&key)))
}

/// Variables that hide an earlier one without making use of it.
fn of_variables(path: FieldPath<'_>, container: &Object, found: &mut Vec<String>) {
    let mut seen = Seen::default();
    for (at, variable) in objects(container, "env") {
        let name = text(variable, "name");
        if seen.is_new(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = text(variable, "value");
        if variable.contains("valueFrom") || value == reference || !value.contains(&reference) {
            let path = path.index(at);
            found.push(format!("{path}: hides previous definition of {name:?}, which may be dropped when using apply"));
        }
    }
}

fn of_pod_affinities(path: FieldPath<'_>, spec: &Object, found: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = part(part(spec, "affinity"), kind);
        let path = path.child(kind);
        let at_required = path.child(REQUIRED);
        for (at, term) in objects(affinity, REQUIRED) {
            if !term.contains("labelSelector") {
                found.push(format!("{}: {NO_SELECTOR}", at_required.index(at).child("labelSelector")));
            }
        }
        let at_preferred = path.child(PREFERRED);
        for (at, weighted) in objects(affinity, PREFERRED) {
            if !part(weighted, "podAffinityTerm").contains("labelSelector") {
                let path = at_preferred.index(at);
                let path = path.child("podAffinityTerm");
                found.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
            }
        }
    }
}
