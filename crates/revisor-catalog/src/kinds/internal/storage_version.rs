//! Storage versions: in which version each server stores a resource, and which versions it can read.

use std::collections::{HashMap, HashSet};

use revisor_object::names::{dns1035_label, dns1123_subdomain, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::problems;
use crate::kinds::workload::{NOTHING, shown, status, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const STATUS: FieldPath<'static> = FieldPath::root("status");

const TOO_MANY_PARTS: &str = "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters \
                              or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
                              'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with \
                              an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";

pub(crate) struct StorageVersions;

impl Strategy for StorageVersions {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let metadata = object.object("metadata").unwrap_or(NOTHING);
        let path = FieldPath::root("metadata");
        let mut errors = FieldErrors::new();
        for member in ["generateName", "name"] {
            let name = text(metadata, member);
            if !name.is_empty() {
                errors.extend(problems(path.child(member), name, name_problems(name)));
            }
        }
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => FieldErrors::new(),
            Part::Subresource(_) => validate_status(status(object)),
        }
    }
}

/// A name is a group and a resource of it.
fn name_problems(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let of_group = dns1123_subdomain(group).into_iter().map(|problem| format!("the group segment {problem}"));
    let of_resource = dns1035_label(resource).into_iter().map(|problem| format!("the resource segment {problem}"));
    of_group.chain(of_resource).collect()
}

fn validate_status(status: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = STATUS.child("storageVersions");
    let mut seen = HashSet::new();
    for (at, server) in status.array("storageVersions").iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let id = text(server, "apiServerID");
        if !seen.insert(id) {
            errors.push(FieldError::duplicate(path.child("apiServerID"), id));
        }
        errors.extend(validate_server(path, server));
    }
    errors.extend(validate_common_version(status));
    errors.extend(validate_conditions(status.array("conditions")));
    errors
}

fn validate_server(path: FieldPath<'_>, server: &Object) -> FieldErrors {
    let id = text(server, "apiServerID");
    let mut errors = problems(path.child("apiServerID"), id, dns1123_subdomain(id));
    let encoding = text(server, "encodingVersion");
    errors.extend(validate_api_version(path.child("encodingVersion"), encoding));
    let texts = |name| server.array(name).iter().map(|version| version.as_str().unwrap_or_default());
    let at_decodable = path.child("decodableVersions");
    for (at, version) in texts("decodableVersions").enumerate() {
        errors.extend(validate_api_version(at_decodable.index(at), version));
    }
    if !texts("decodableVersions").any(|version| version == encoding) {
        let detail = format!("decodableVersions must include encodingVersion {encoding}");
        errors.push(FieldError::invalid(at_decodable, shown(server, "decodableVersions"), detail));
    }
    let at_served = path.child("servedVersions");
    let decodable: HashSet<&str> = texts("decodableVersions").collect();
    for (at, version) in texts("servedVersions").enumerate() {
        let path = at_served.index(at);
        errors.extend(validate_api_version(path, version));
        if !decodable.contains(version) {
            errors.push_with(|| {
                let decodable: Vec<&str> = texts("decodableVersions").collect();
                let detail = format!(
                    "individual served version : {version} must be included in decodableVersions : [{}]",
                    decodable.join(" ")
                );
                FieldError::invalid(path, version, detail)
            });
        }
    }
    errors
}

/// All problems of one version are one error.
fn validate_api_version(path: FieldPath<'_>, version: &str) -> Option<FieldError> {
    let problems = api_version_problems(version);
    (!problems.is_empty()).then(|| FieldError::invalid(path, version, problems.join(",")))
}

fn api_version_problems(api_version: &str) -> Vec<String> {
    let (group, version) = match api_version.split('/').collect::<Vec<_>>()[..] {
        [version] => (None, version),
        [group, version] => (Some(group), version),
        _ => return vec![TOO_MANY_PARTS.to_owned()],
    };
    let part = |name: &str, text: &str, rule: fn(&str) -> Vec<&'static str>| -> Vec<String> {
        let problems = if text.is_empty() { vec!["must be non-empty"] } else { rule(text) };
        problems.into_iter().map(|problem| format!("{name} part: {problem}")).collect()
    };
    let mut problems = group.map(|group| part("group", group, dns1123_subdomain)).unwrap_or_default();
    problems.extend(part("version", version, dns1035_label));
    problems
}

/// What all servers agree on must be said, and nothing else.
fn validate_common_version(status: &Object) -> Option<FieldError> {
    let path = STATUS.child("commonEncodingVersion");
    let mut versions = status
        .array("storageVersions")
        .iter()
        .filter_map(Value::as_object)
        .map(|server| text(server, "encodingVersion"));
    let common = versions.next().filter(|first| versions.all(|version| version == *first));
    match (common, status.str("commonEncodingVersion")) {
        (None, Some(said)) => {
            let detail = "should be nil if servers do not agree on the same encoding version, or if there is no server \
                          reporting the supported versions yet";
            Some(FieldError::invalid(path, said, detail))
        }
        (Some(common), None) => {
            let detail = format!("the common encoding version is {common}");
            Some(FieldError::invalid(path, BadValue::of(&Value::Null), detail))
        }
        (Some(common), Some(said)) if common != said => {
            Some(FieldError::invalid(path, said, format!("the actual common encoding version is {common}")))
        }
        _ => None,
    }
}

/// The original leaves `conditions` out of the paths.
fn validate_conditions(conditions: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut seen = HashMap::new();
    for (at, condition) in conditions.iter().filter_map(Value::as_object).enumerate() {
        let path = STATUS.index(at);
        let kind = text(condition, "type");
        if let Some(before) = seen.insert(kind, at) {
            let detail = format!("the type of the condition is not unique, it also appears in conditions[{before}]");
            errors.push(FieldError::invalid(path.child("type"), kind, detail));
        }
        for name in ["type", "status"] {
            let word = text(condition, name);
            errors.extend(problems(path.child(name), word, qualified_name(word)));
        }
        for name in ["reason", "message"] {
            if text(condition, name).is_empty() {
                errors.push(FieldError::required(path.child(name), ""));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn names_are_a_group_and_a_resource() {
        for (name, want) in
            [("apps.deployments", 0), ("a.b.pods", 0), ("pods", 1), ("A.pods", 1), ("A.P", 2), (".p", 1)]
        {
            let version = object(&format!(r#"{{"metadata":{{"name":"{name}"}}}}"#));
            assert_eq!(StorageVersions.validate(&version).len(), want, "{name}");
        }
    }

    #[test]
    fn versions_of_servers_fit_together() {
        let server = |id: &str, encoding: &str, decodable: &str, served: &str| {
            format!(
                r#"{{"apiServerID":"{id}","encodingVersion":"{encoding}","decodableVersions":[{decodable}],"servedVersions":[{served}]}}"#
            )
        };
        let all = |servers: &[String], common: &str| {
            let common =
                if common.is_empty() { String::new() } else { format!(r#","commonEncodingVersion":"{common}""#) };
            format!(r#"{{"storageVersions":[{}]{common}}}"#, servers.join(","))
        };
        let good = server("a", "v1", r#""v1","v1beta1""#, r#""v1""#);
        let common = "FieldValueInvalid status.commonEncodingVersion";
        let first = "status.storageVersions[0]";
        for (status, want) in [
            (all(std::slice::from_ref(&good), "v1"), vec![]),
            ("{}".to_owned(), vec![]),
            (all(std::slice::from_ref(&good), ""), vec![common.to_owned()]),
            (all(std::slice::from_ref(&good), "v2"), vec![common.to_owned()]),
            (all(&[], "v1"), vec![common.to_owned()]),
            (
                all(&[good.clone(), good.clone()], "v1"),
                vec!["FieldValueDuplicate status.storageVersions[1].apiServerID".to_owned()],
            ),
            (all(&[good.clone(), server("b", "v2", r#""v2""#, "")], ""), vec![]),
            (
                all(&[server("A", "a/b/c", r#""v1""#, r#""v2""#)], "a/b/c"),
                vec![
                    format!("FieldValueInvalid {first}.apiServerID"),
                    format!("FieldValueInvalid {first}.encodingVersion"),
                    format!("FieldValueInvalid {first}.decodableVersions"),
                    format!("FieldValueInvalid {first}.servedVersions[0]"),
                ],
            ),
        ] {
            let want: Vec<&str> = want.iter().map(String::as_str).collect();
            check(&status, &validate_status(&object(&status)), &want);
        }
    }

    #[test]
    fn conditions_have_types_reasons_and_messages() {
        let status = object(
            r#"{"conditions":[{"type":"T","status":"True","reason":"R","message":"m"},{"type":"T","status":"?"}]}"#,
        );
        let want = [
            "FieldValueInvalid status[1].type",
            "FieldValueInvalid status[1].status",
            "FieldValueRequired status[1].reason",
            "FieldValueRequired status[1].message",
        ];
        check("twice", &validate_status(&status), &want);
    }
}
