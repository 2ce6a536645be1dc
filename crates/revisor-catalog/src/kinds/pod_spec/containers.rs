//! The containers of a spec, of all three sorts: those that do the work, those that prepare it, and those that look
//! inside.

use std::collections::BTreeSet;

use revisor_object::names::dns1123_label;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use super::members::{objects, part, text};
use super::mounts::{self, Volumes};
use super::options::Options;
use super::resource_list::is_sidecar;
use super::{env, handlers, ports, resources, restart_rules, security_context};
use crate::checks::{problems, required, required_one_of};

const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: &[&str] = &["File", "FallbackToLogsOnError"];

/// What containers that look inside may not have, in the order in which the original finds it.
const NOT_EPHEMERAL: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// What containers are looked at in the light of.
pub(super) struct Surroundings<'a> {
    pub(super) spec: &'a Object,
    pub(super) volumes: Volumes<'a>,
    pub(super) claims: BTreeSet<&'a str>,
    pub(super) options: Options,
}

/// What is wrong with the containers that do the work.
pub(super) fn validate(path: FieldPath<'_>, around: &Surroundings<'_>, errors: &mut FieldErrors) {
    if around.spec.array("containers").is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut names = Seen::default();
    for (at, container) in objects(around.spec, "containers") {
        let path = path.index(at);
        validate_common(path, container, around, errors);
        let name = text(container, "name");
        if !names.is_new(name) {
            errors.push(FieldError::duplicate(path.child("name"), name));
        }
        handlers::validate(path, container, around.spec, around.options, errors);
        restart_rules::validate(path, container, around.options.restart_rules, errors);
    }
    ports::validate_host_ports(path, objects(around.spec, "containers"), errors);
}

/// What is wrong with the containers that prepare the work.
pub(super) fn validate_init(path: FieldPath<'_>, around: &Surroundings<'_>, errors: &mut FieldErrors) {
    let mut names: Seen<&str> = objects(around.spec, "containers").map(|(_, other)| text(other, "name")).collect();
    for (at, container) in objects(around.spec, "initContainers") {
        let list_path = path;
        let path = path.index(at);
        validate_common(path, container, around, errors);
        restart_rules::validate_init(path, container, around.options.restart_rules, errors);
        let name = text(container, "name");
        if names.has(&name) {
            errors.push(FieldError::duplicate(path.child("name"), name));
        } else if !name.is_empty() {
            names.is_new(name);
        }
        // They run one after the other, so each is looked at by itself, as if it were the first.
        ports::validate_host_ports(list_path, std::iter::once((0, container)), errors);
        if is_sidecar(container) {
            handlers::validate(path, container, around.spec, around.options, errors);
        } else {
            handlers::forbid(path, container, errors);
        }
        if !around.options.resize_of_init_containers && !container.array("resizePolicy").is_empty() {
            // The original shows the names that it has inside.
            let policies = objects(container, "resizePolicy").map(|(_, policy)| {
                let members = [("ResourceName", "resourceName"), ("RestartPolicy", "restartPolicy")];
                Value::from(Object::from_iter(members.map(|(inner, name)| (inner, Value::from(text(policy, name))))))
            });
            let shown = BadValue::of(&Value::from(policies.collect::<Vec<_>>()));
            errors.push(FieldError::invalid(path.child("resizePolicy"), shown, "must not be set for init containers"));
        }
        if is_sidecar(container) || around.options.restarting_init_containers {
            continue;
        }
        let path = path.child("resizePolicy");
        for (at, policy) in objects(container, "resizePolicy") {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                let path = path.index(at);
                errors.push(FieldError::invalid(path.child("restartPolicy"), "RestartContainer", detail));
            }
        }
    }
}

/// What is wrong with the containers that look inside.
pub(super) fn validate_ephemeral(
    path: FieldPath<'_>,
    containers: &Object,
    around: &Surroundings<'_>,
    errors: &mut FieldErrors,
) {
    let others = objects(around.spec, "containers").chain(objects(around.spec, "initContainers"));
    let others: Seen<&str> = others.map(|(_, other)| text(other, "name")).collect();
    let mut names = others.clone();
    for (at, container) in objects(containers, "ephemeralContainers") {
        let path = path.index(at);
        validate_common(path, container, around, errors);
        errors.extend(validate_image_padding(path.child("image"), container));
        let name = text(container, "name");
        if !names.is_new(name) {
            errors.push(FieldError::duplicate(path.child("name"), name));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.has(&target) {
            errors.push(FieldError::not_found(path.child("targetContainerName"), target));
        }
        let detail = "cannot be set for an Ephemeral Container";
        for name in NOT_EPHEMERAL {
            let is_set = match container.object(name).filter(|_| *name == "resources") {
                Some(resources) => !resources.is_empty() || resources.has_sent_empty(),
                None => container.is_sent(name),
            };
            if is_set {
                errors.push(FieldError::forbidden(path.child(name), detail));
            }
        }
        let path = path.child("volumeMounts");
        for (at, mount) in objects(container, "volumeMounts") {
            for name in ["subPath", "subPathExpr"] {
                if !text(mount, name).is_empty() {
                    let path = path.index(at);
                    errors.push(FieldError::forbidden(path.child(name), detail));
                }
            }
        }
    }
}

/// The error that the name of an image has white space around it. Templates may, for reasons of history.
pub(super) fn validate_image_padding(path: FieldPath<'_>, container: &Object) -> Option<FieldError> {
    let image = text(container, "image");
    let detail = "must not have leading or trailing whitespace";
    (image.trim() != image).then(|| FieldError::invalid(path, image, detail))
}

fn validate_common(path: FieldPath<'_>, container: &Object, around: &Surroundings<'_>, errors: &mut FieldErrors) {
    let Surroundings { spec, volumes, claims, options } = around;
    match text(container, "name") {
        "" => errors.push(FieldError::required(path.child("name"), "")),
        name => errors.extend(problems(path.child("name"), name, dns1123_label(name))),
    }
    errors.extend(required(path.child("image"), text(container, "image")));
    let message_policy = text(container, "terminationMessagePolicy");
    errors.extend(required_one_of(path.child("terminationMessagePolicy"), message_policy, MESSAGE_POLICIES));
    ports::validate(path.child("ports"), container, errors);
    env::validate(path.child("env"), container, *options, errors);
    env::validate_sources(path.child("envFrom"), container, *options, errors);
    mounts::validate(path.child("volumeMounts"), container, volumes, errors);
    mounts::validate_devices(path.child("volumeDevices"), container, volumes, errors);
    errors.extend(validate_pull_policy(path.child("imagePullPolicy"), text(container, "imagePullPolicy")));
    let at_resources = path.child("resources");
    resources::validate(at_resources, part(container, "resources"), claims, options.partial_huge_pages, errors);
    resources::validate_resize_policy(path.child("resizePolicy"), container, text(spec, "restartPolicy"), errors);
    if let Some(context) = container.object("securityContext") {
        security_context::validate(path.child("securityContext"), context, spec, *options, errors);
    }
}

/// What is wrong with the word on when an image is pulled.
pub(super) fn validate_pull_policy(path: FieldPath<'_>, policy: &str) -> Option<FieldError> {
    required_one_of(path, policy, PULL_POLICIES)
}
