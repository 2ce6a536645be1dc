//! A spec as a whole: the order in which its parts are looked at, and the parts that are single values.

use std::collections::{BTreeSet, HashSet};

use revisor_object::names::{dns1123_label, dns1123_subdomain, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};

use super::containers::{self, Surroundings};
use super::members::{given_number, objects, part, text};
use super::options::Options;
use super::{affinity, annotations, dns, env, ports, resources, security_context, topology_spread, volumes, windows};
use crate::checks::{in_range, labels, problems, required_one_of};
use crate::kinds::taints::validate_tolerations;

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PREEMPTION_POLICIES: &[&str] = &["PreemptLowerPriority", "Never"];

/// The rule of a single name.
type NameCheck = fn(&str) -> Vec<&'static str>;

/// What is wrong with a spec. Metadata are given if it is that of a pod.
pub(super) fn validate(path: FieldPath<'_>, spec: &Object, metadata: Option<&Object>, options: Options) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let errors = &mut errors;
    if !spec.contains("terminationGracePeriodSeconds") {
        errors.push(FieldError::required(path.child("terminationGracePeriodSeconds"), ""));
    }
    let around = surroundings(path, spec, metadata, options, errors);
    validate_claims(path.child("resourceClaims"), spec, metadata, errors);
    containers::validate(path.child("containers"), &around, errors);
    containers::validate_init(path.child("initContainers"), &around, errors);
    containers::validate_ephemeral(path.child("ephemeralContainers"), spec, &around, errors);
    if options.pod_resources {
        resources::validate_of_pod(path, spec, &around.claims, options.partial_huge_pages, errors);
    }
    ports::validate_on_host(path, spec, options.is_pod, errors);
    errors.extend(required_one_of(path.child("restartPolicy"), text(spec, "restartPolicy"), RESTART_POLICIES));
    errors.extend(required_one_of(path.child("dnsPolicy"), text(spec, "dnsPolicy"), DNS_POLICIES));
    errors.extend(labels(path.child("nodeSelector"), spec.object("nodeSelector")));
    security_context::validate_of_pod(path, spec, options, errors);
    if let Some(given) = spec.object("affinity") {
        affinity::validate(path.child("affinity"), given, options, errors);
    }
    dns::validate(path.child("dnsConfig"), spec, options, errors);
    validate_gates(path, spec, errors);
    topology_spread::validate(path.child("topologySpreadConstraints"), spec, options, errors);
    windows::validate_host_processes(path, spec, options, errors);
    security_context::validate_user_namespace(path, spec, options, errors);
    dns::validate_override(path, spec, errors);
    validate_name(path, spec, "serviceAccountName", dns1123_subdomain, errors);
    validate_name(path, spec, "nodeName", dns1123_subdomain, errors);
    if let Some(seconds) = given_number(spec, "activeDeadlineSeconds") {
        errors.extend(in_range(path.child("activeDeadlineSeconds"), seconds, 1, i32::MAX.into()));
    }
    validate_name(path, spec, "hostname", dns1123_label, errors);
    validate_name(path, spec, "subdomain", dns1123_label, errors);
    let may_compare = options.comparing_tolerations;
    errors.extend(validate_tolerations(path.child("tolerations"), spec.array("tolerations"), may_compare));
    dns::validate_aliases(path.child("hostAliases"), spec, options, errors);
    validate_name(path, spec, "priorityClassName", dns1123_subdomain, errors);
    if let Some(name) = spec.str("runtimeClassName") {
        errors.extend(problems(path.child("runtimeClassName"), name, dns1123_subdomain(name)));
    }
    if let Some(policy) = spec.str("preemptionPolicy") {
        errors.extend(required_one_of(path.child("preemptionPolicy"), policy, PREEMPTION_POLICIES));
    }
    if let Some(overhead) = spec.object("overhead") {
        resources::validate_overhead(path.child("overhead"), overhead, options.partial_huge_pages, errors);
    }
    windows::validate_system(path, spec, errors);
    validate_scheduling_group(path.child("schedulingGroup"), spec, errors);
    env::validate_files(path, spec, errors);
    std::mem::take(errors)
}

/// What the containers of a spec are looked at in the light of; what is wrong with the volumes is found on the way.
pub(super) fn surroundings<'a>(
    path: FieldPath<'_>,
    spec: &'a Object,
    metadata: Option<&Object>,
    options: Options,
    errors: &mut FieldErrors,
) -> Surroundings<'a> {
    let volumes = volumes::validate(path.child("volumes"), spec, metadata, options, errors);
    let names = objects(spec, "resourceClaims").map(|(_, claim)| text(claim, "name"));
    let claims: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    Surroundings { spec, volumes, claims, options }
}

/// What is wrong with the claims of devices that a pod has.
fn validate_claims(path: FieldPath<'_>, spec: &Object, metadata: Option<&Object>, errors: &mut FieldErrors) {
    let is_static = metadata.is_some_and(annotations::is_mirror);
    let mut names = HashSet::new();
    for (at, claim) in objects(spec, "resourceClaims") {
        if is_static {
            errors.push(FieldError::forbidden("[]", "static pods do not support resource claims"));
            continue;
        }
        let path = path.index(at);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path.child("name"), ""));
        } else if !names.insert(name) {
            errors.push(FieldError::duplicate(path.child("name"), name));
        } else {
            errors.extend(problems(path.child("name"), name, dns1123_label(name)));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let detail = match sources.iter().filter(|source| claim.contains(source)).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        errors.extend(detail.map(|detail| FieldError::invalid(path, BadValue::of(claim), detail)));
        for source in sources {
            if let Some(name) = claim.str(source) {
                errors.extend(problems(path.child(source), name, dns1123_subdomain(name)));
            }
        }
    }
}

/// What must be true before a pod is ready, and what must be gone before it is scheduled.
fn validate_gates(path: FieldPath<'_>, spec: &Object, errors: &mut FieldErrors) {
    let at_readiness = path.child("readinessGates");
    for (at, gate) in objects(spec, "readinessGates") {
        let condition = text(gate, "conditionType");
        let path = at_readiness.index(at);
        errors.extend(problems(path.child("conditionType"), condition, qualified_name(condition)));
    }
    let at_scheduling = path.child("schedulingGates");
    let mut seen = HashSet::new();
    for (at, gate) in objects(spec, "schedulingGates") {
        let name = text(gate, "name");
        errors.extend(problems(at_scheduling.index(at), name, qualified_name(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(at_scheduling.index(at), name));
        }
    }
}

fn validate_name(path: FieldPath<'_>, spec: &Object, member: &str, rule: NameCheck, errors: &mut FieldErrors) {
    let name = text(spec, member);
    if !name.is_empty() {
        errors.extend(problems(path.child(member), name, rule(name)));
    }
}

fn validate_scheduling_group(path: FieldPath<'_>, spec: &Object, errors: &mut FieldErrors) {
    if !spec.contains("schedulingGroup") {
        return;
    }
    let path = path.child("podGroupName");
    match part(spec, "schedulingGroup").str("podGroupName") {
        Some(name) => errors.extend(problems(path, name, dns1123_subdomain(name))),
        None => {
            let nothing = BadValue::of(&revisor_object::Value::Null);
            errors.push(FieldError::invalid(path, nothing, "must specify one of: `podGroupName`"));
        }
    }
}
