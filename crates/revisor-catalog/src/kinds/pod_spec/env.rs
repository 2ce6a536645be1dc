//! The environment of containers: variables, and where their values come from.

use std::cell::LazyCell;
use std::collections::HashSet;

use revisor_object::names::{
    NameRule, config_map_key, dns1123_label, env_var_name, qualified_name, relaxed_env_var_name,
};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::file_path;
use super::members::{all_containers, objects, part, text};
use super::options::Options;
use crate::checks::{problems, required};
use crate::kinds::amounts::amount;

/// What a variable can be set to of its pod.
const VARIABLE_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// What a file can show of its pod.
const FILE_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// What can be shown of a container's resources.
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const SIZES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// What is wrong with the variables of one container.
pub(super) fn validate(path: FieldPath<'_>, container: &Object, options: Options, errors: &mut FieldErrors) {
    for (at, variable) in objects(container, "env") {
        let path = path.index(at);
        match text(variable, "name") {
            "" => errors.push(FieldError::required(path.child("name"), "")),
            name => errors.extend(problems(path.child("name"), name, name_problems(name, options))),
        }
        if let Some(source) = variable.object("valueFrom") {
            validate_source(path.child("valueFrom"), source, !text(variable, "value").is_empty(), options, errors);
        }
    }
}

fn name_problems(name: &str, options: Options) -> Vec<&'static str> {
    if options.relaxed_variables { relaxed_env_var_name(name) } else { env_var_name(name) }
}

/// Whether a variable or prefix of the new spec is one of the old that only the relaxed rule lets pass.
pub(super) fn keeps_relaxed_name(spec: &Object, old: &Object) -> bool {
    let is_relaxed = |name: &str| !env_var_name(name).is_empty() && relaxed_env_var_name(name).is_empty();
    let known = LazyCell::new(|| names(old).collect::<HashSet<&str>>());
    names(spec).filter(|name| is_relaxed(name)).any(|name| known.contains(name))
}

/// The names of all variables of a spec, and the prefixes of those that come many at once.
fn names(spec: &Object) -> impl Iterator<Item = &str> {
    all_containers(spec).flat_map(|(_, _, container)| {
        let variables = objects(container, "env").map(|(_, variable)| text(variable, "name"));
        variables.chain(objects(container, "envFrom").map(|(_, source)| text(source, "prefix")))
    })
}

fn validate_source(path: FieldPath<'_>, source: &Object, has_value: bool, options: Options, errors: &mut FieldErrors) {
    let mut sources = 0;
    if let Some(field) = source.object("fieldRef") {
        sources += 1;
        validate_field(path.child("fieldRef"), field, VARIABLE_FIELDS, errors);
    }
    if let Some(resource) = source.object("resourceFieldRef") {
        sources += 1;
        validate_resource(path.child("resourceFieldRef"), resource, false, errors);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(key) = source.object(name) {
            sources += 1;
            validate_key(path.child(name), key, errors);
        }
    }
    if let Some(file) = source.object("fileKeyRef") {
        sources += 1;
        validate_file(path.child("fileKeyRef"), file, errors);
    }
    let detail = match sources {
        0 if options.variable_files => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", detail));
}

/// What is wrong with a reference to a field of the pod, as a file in a volume makes it.
pub(super) fn validate_file_field(path: FieldPath<'_>, reference: &Object, errors: &mut FieldErrors) {
    validate_field(path, reference, FILE_FIELDS, errors);
}

fn validate_field(path: FieldPath<'_>, reference: &Object, supported: &[&str], errors: &mut FieldErrors) {
    let (version, field) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    for (name, given) in [("apiVersion", version), ("fieldPath", field)] {
        if given.is_empty() {
            errors.push(FieldError::required(path.child(name), ""));
            return;
        }
    }
    let refused = |reason: String| {
        FieldError::invalid(path.child("fieldPath"), field, format!("error converting fieldPath: {reason}"))
    };
    if version != "v1" {
        errors.push(refused(format!("unsupported pod version: {version}")));
        return;
    }
    let subscripted = field.strip_suffix("']").and_then(|rest| rest.split_once("['")).filter(|(of, _)| !of.is_empty());
    match subscripted {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            errors.extend(problems(path, &key, qualified_name(&key)));
        }
        Some(("metadata.labels", key)) => errors.extend(problems(path, key, qualified_name(key))),
        Some(_) => errors.push(refused(format!("field label does not support subscript: {field}"))),
        None => {
            // An older name of the field.
            let field = if field == "spec.host" { "spec.nodeName" } else { field };
            let is_known = VARIABLE_FIELDS.contains(&field)
                || FILE_FIELDS.contains(&field)
                || matches!(field, "spec.restartPolicy" | "spec.schedulerName" | "status.phase");
            if !is_known {
                errors.push(refused(format!("field label not supported: {field}")));
            } else if !supported.contains(&field) {
                errors.push(FieldError::not_supported(path.child("fieldPath"), field, supported));
            }
        }
    }
}

/// What is wrong with a reference to a resource of a container; files must say which container they mean.
pub(super) fn validate_resource(path: FieldPath<'_>, reference: &Object, is_file: bool, errors: &mut FieldErrors) {
    let resource = text(reference, "resource");
    let is_huge_pages = resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if is_file && text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !is_huge_pages {
        errors.push(FieldError::not_supported(path.child("resource"), resource, RESOURCES));
    }
    let Some(divisor) = reference.get("divisor").map(amount).filter(|divisor| !divisor.is_zero()) else { return };
    let divisor = divisor.to_string();
    let kind = match resource {
        "limits.cpu" | "requests.cpu" => {
            if !matches!(divisor.as_str(), "1" | "1m") {
                let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
                errors.push(FieldError::invalid(path.child("divisor"), resource, detail));
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if is_huge_pages => "hugepages",
        _ => return,
    };
    if !SIZES.contains(&divisor.as_str()) {
        let detail = format!("only divisor's values {} are supported with the {kind} resource", SIZES.join(", "));
        errors.push(FieldError::invalid(path.child("divisor"), resource, detail));
    }
}

fn validate_key(path: FieldPath<'_>, reference: &Object, errors: &mut FieldErrors) {
    let name = text(reference, "name");
    errors.extend(problems(path.child("name"), name, NameRule::Dns1123Subdomain.check(name)));
    match text(reference, "key") {
        "" => errors.push(FieldError::required(path.child("key"), "")),
        key => errors.extend(problems(path.child("key"), key, config_map_key(key))),
    }
}

fn validate_file(path: FieldPath<'_>, reference: &Object, errors: &mut FieldErrors) {
    match text(reference, "key") {
        "" => errors.push(FieldError::required(path.child("key"), "")),
        key => errors.extend(problems(path.child("key"), key, relaxed_env_var_name(key))),
    }
    match text(reference, "volumeName") {
        "" => errors.push(FieldError::required(path.child("volumeName"), "")),
        volume => errors.extend(problems(path.child("volumeName"), volume, dns1123_label(volume))),
    }
    let file = text(reference, "path");
    errors.extend(required(path.child("path"), file));
    errors.extend(file_path::no_backsteps(path.child("path"), file));
}

/// What is wrong with the sources of many variables at once.
pub(super) fn validate_sources(path: FieldPath<'_>, container: &Object, options: Options, errors: &mut FieldErrors) {
    for (at, source) in objects(container, "envFrom") {
        let at_source = path.index(at);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.extend(problems(at_source.child("prefix"), prefix, name_problems(prefix, options)));
        }
        let mut sources = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = source.object(kind) else { continue };
            sources += 1;
            let path = at_source.child(kind);
            match text(reference, "name") {
                "" => errors.push(FieldError::required(path.child("name"), "")),
                name => {
                    errors.extend(problems(path.child("name"), name, NameRule::Dns1123Subdomain.check_prefix(name)))
                }
            }
        }
        match sources {
            0 => errors.push(FieldError::invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(FieldError::invalid(path, "", "may not have more than one field specified at a time")),
        }
    }
}

/// Files with variables must be in empty directories, which only the pod itself writes to.
pub(super) fn validate_files(path: FieldPath<'_>, spec: &Object, errors: &mut FieldErrors) {
    for (list, at, container) in all_containers(spec) {
        for (variable, reference) in objects(container, "env")
            .filter_map(|(at, variable)| Some((at, part(variable, "valueFrom").object("fileKeyRef")?)))
        {
            let wanted = text(reference, "volumeName");
            // The last volume of a name is the one that counts.
            let volume = objects(spec, "volumes").filter(|(_, volume)| text(volume, "name") == wanted).last();
            let problem = match volume {
                None => None,
                Some((_, volume)) if volume.contains("emptyDir") => continue,
                Some(_) => Some("referenced volume must be of type emptyDir"),
            };
            let field = format!("{path}.{list}[{at}].env[{variable}].valueFrom.fileKeyRef.volumeName");
            errors.push(match problem {
                None => FieldError::not_found(field, wanted),
                Some(problem) => FieldError::invalid(field, wanted, problem),
            });
        }
    }
}
