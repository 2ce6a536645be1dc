//! APIServices: a group and version, and the service behind it. Without a service it is this server's own.

use revisor_object::names::{dns1035_label, dns1123_subdomain, path_segment_name, port_number};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{one_of, problems, required};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Circumstances, Part, Places, Strategy};

/// The place of each built-in group and version among the others: `GROUP,VERSION,GROUP PRIORITY,VERSION PRIORITY`.
const PRIORITIES: &str = include_str!("../../../tables/api_services.csv");

const MAX_GROUP_PRIORITY: i64 = 20_000;
const MAX_VERSION_PRIORITY: i64 = 1000;

/// How registrations are marked that the server makes when it starts.
const AT_START: &str = "onstart";

/// How registrations are marked that come and go with definitions.
const CUSTOM: &str = "true";

/// Marks what the server registers for itself.
const AUTO_MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

pub(crate) struct ApiServices;

impl Strategy for ApiServices {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        object.remove("status");
        let is_local = object.object("spec").is_none_or(|spec| !spec.contains("service"));
        if is_local {
            let available: Object = [
                ("type", Value::from("Available")),
                ("status", "True".into()),
                ("lastTransitionTime", circumstances.now.into()),
                ("reason", "Local".into()),
                ("message", "Local APIServices are always available".into()),
            ]
            .into_iter()
            .collect();
            object.object_mut("status").insert("conditions", vec![Value::from(available)]);
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let mut errors = validate_name(object, spec);
        validate_spec(spec, &mut errors);
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::Whole { self.validate(object) } else { validate_status(object) }
    }
}

/// The name is made of the version and the group, and so is what it is to begin with.
fn validate_name(object: &Object, spec: &Object) -> FieldErrors {
    let text = |name| spec.str(name).unwrap_or_default();
    let wanted = format!("{}.{}", text("version"), text("group"));
    let path = FieldPath::root("metadata");
    let mut errors = FieldErrors::new();
    for member in ["generateName", "name"] {
        let name = object.object("metadata").and_then(|metadata| metadata.str(member)).unwrap_or_default();
        let malformed = path_segment_name(name);
        if !name.is_empty() && malformed.is_empty() && name != wanted {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
            errors.push(FieldError::invalid(path.child(member), name, detail));
        }
        // Of a name that is said already.
        if member == "generateName" && !name.is_empty() {
            errors.extend(problems(path.child(member), name, malformed));
        }
    }
    errors
}

fn validate_spec(spec: &Object, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let text = |name| spec.str(name).unwrap_or_default();
    let (group, version) = (text("group"), text("version"));
    if !group.is_empty() {
        errors.extend(problems(path.child("group"), group, dns1123_subdomain(group)));
    } else if version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(path.child("group"), detail));
    }
    errors.extend(problems(path.child("version"), version, dns1035_label(version)));
    for (name, most) in [("groupPriorityMinimum", MAX_GROUP_PRIORITY), ("versionPriority", MAX_VERSION_PRIORITY)] {
        let priority = spec.get(name).and_then(Value::as_i64).unwrap_or_default();
        if !(1..=most).contains(&priority) {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(path.child(name), priority, detail));
        }
    }
    let bundle = text("caBundle");
    let skips_verification = spec.get("insecureSkipTLSVerify").and_then(Value::as_bool) == Some(true);
    let mut unverified = |detail| errors.push(FieldError::invalid(path.child("insecureSkipTLSVerify"), true, detail));
    let Some(service) = spec.object("service") else {
        if skips_verification {
            unverified("local APIServices may not have insecureSkipTLSVerify");
        }
        if !bundle.is_empty() {
            let shown =
                format!("{} bytes", bundle.len() / 4 * 3 - bundle.bytes().rev().take_while(|b| *b == b'=').count());
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(path.child("caBundle"), shown, detail));
        }
        return;
    };
    if skips_verification && !bundle.is_empty() {
        unverified("may not be true if caBundle is present");
    }
    let at_service = path.child("service");
    for name in ["namespace", "name"] {
        errors.extend(required(at_service.child(name), service.str(name).unwrap_or_default()));
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
    let problems = port_number(port);
    if !problems.is_empty() {
        let detail = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(at_service.child("port"), port, detail));
    }
}

fn validate_status(object: &Object) -> FieldErrors {
    let status = FieldPath::root("status");
    let path = status.child("conditions");
    let conditions = object.object("status").map(|status| status.array("conditions")).unwrap_or_default();
    let truth = |condition: &Value| {
        condition.as_object().and_then(|condition| condition.str("status")).unwrap_or_default().to_owned()
    };
    let check = |(at, condition)| {
        let path = path.index(at);
        one_of(path.child("status"), &truth(condition), &["True", "False", "Unknown"])
    };
    conditions.iter().enumerate().filter_map(check).collect()
}

/// The object by which a server registers a built-in group and version of its own; `None` where it registers none.
pub(crate) fn bootstrap_object(group: &str, version: &str) -> Option<Object> {
    let mut rows = PRIORITIES.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let (group_priority, version_priority): (i64, i64) = rows.find_map(|row| match row[..] {
        [of, at, first, second] if (of, at) == (group, version) => Some((first.parse().ok()?, second.parse().ok()?)),
        _ => None,
    })?;
    Some(registration(group, version, AT_START, (group_priority, version_priority)))
}

/// The object by which a server registers a group and version of custom resources.
pub fn custom_registration(group: &str, version: &str) -> Object {
    registration(group, version, CUSTOM, (1000, 100))
}

/// Whether a server registered this by itself for custom resources.
pub fn is_custom_registration(service: &Object) -> bool {
    mark(service) == Some(CUSTOM)
}

/// Whether a server registered this by itself, for whatever it serves.
pub fn is_own_registration(service: &Object) -> bool {
    matches!(mark(service), Some(AT_START | CUSTOM))
}

fn mark(service: &Object) -> Option<&str> {
    service.at(&["metadata", "labels", AUTO_MANAGED]).and_then(Value::as_str)
}

fn registration(group: &str, version: &str, managed: &str, priorities: (i64, i64)) -> Object {
    let labels: Object = [(AUTO_MANAGED, Value::from(managed))].into_iter().collect();
    let metadata: Object =
        [("name", Value::from(format!("{version}.{group}"))), ("labels", labels.into())].into_iter().collect();
    let mut spec: Object = [
        ("version", Value::from(version)),
        ("groupPriorityMinimum", priorities.0.into()),
        ("versionPriority", priorities.1.into()),
    ]
    .into_iter()
    .collect();
    if !group.is_empty() {
        spec.insert("group", group);
    }
    [("metadata", Value::from(metadata)), ("spec", spec.into())].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requester;
    use crate::kinds::tests::{check, object};

    #[test]
    fn services_are_checked() {
        let verify = "FieldValueInvalid spec.insecureSkipTLSVerify";
        for (change, want) in [
            ("{}", &[][..]),
            (r#"{"group":"h"}"#, &["FieldValueInvalid metadata.name"]),
            (r#"{"group":""}"#, &["FieldValueInvalid metadata.name"]),
            (
                r#"{"group":"","version":"V"}"#,
                &["FieldValueInvalid metadata.name", "FieldValueRequired spec.group", "FieldValueInvalid spec.version"],
            ),
            (
                r#"{"groupPriorityMinimum":20001,"versionPriority":0}"#,
                &["FieldValueInvalid spec.groupPriorityMinimum", "FieldValueInvalid spec.versionPriority"],
            ),
            (r#"{"insecureSkipTLSVerify":true}"#, &[verify]),
            (r#"{"caBundle":"aGVsbG8="}"#, &["FieldValueInvalid spec.caBundle"]),
            (
                r#"{"insecureSkipTLSVerify":true,"caBundle":"aGVsbG8=","service":{"name":"s","namespace":"n","port":1}}"#,
                &[verify],
            ),
            (
                r#"{"service":{"port":0}}"#,
                &[
                    "FieldValueRequired spec.service.name",
                    "FieldValueRequired spec.service.namespace",
                    "FieldValueInvalid spec.service.port",
                ],
            ),
        ] {
            let mut service = object(
                r#"{"metadata":{"name":"v1.g"},"spec":{"group":"g","version":"v1","groupPriorityMinimum":1,"versionPriority":1}}"#,
            );
            for (name, value) in object(change).iter() {
                service.object_mut("spec").insert(name, value.clone());
            }
            check(change, &ApiServices.validate(&service), want);
        }
    }

    #[test]
    fn what_a_server_registers_for_itself_is_available() {
        for (group, version, priorities) in
            [("", "v1", (18000, 1)), ("apps", "v1", (17800, 15)), ("autoscaling", "v2", (17500, 30))]
        {
            let mut service = bootstrap_object(group, version).expect("is registered");
            check(group, &ApiServices.validate(&service), &[]);
            let number = |name| service.at(&["spec", name]).and_then(Value::as_i64).unwrap_or_default();
            assert_eq!((number("groupPriorityMinimum"), number("versionPriority")), priorities, "{group}");
            ApiServices.prepare_create(&mut service, Circumstances { now: "now", requester: Requester::default() });
            assert_eq!(service.object("status").map(|status| status.array("conditions").len()), Some(1));
        }
    }
}
