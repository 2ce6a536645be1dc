//! IPAddresses: that an address is taken, and by whom. The address is the name.

use revisor_object::names::{dns1123_subdomain, path_segment_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value, ip_problems};

use crate::checks::{immutable, problems};
use crate::{Part, Strategy};

pub(crate) struct IpAddresses;

impl Strategy for IpAddresses {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let metadata = FieldPath::root("metadata");
        let prefix = object.at(&["metadata", "generateName"]).and_then(Value::as_str).unwrap_or_default();
        if !prefix.is_empty() {
            errors.extend(problems(metadata.child("generateName"), prefix, ip_problems(prefix)));
        }
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() {
            errors.extend(problems(metadata.child("name"), name, ip_problems(name)));
        }
        let spec = FieldPath::root("spec");
        let path = spec.child("parentRef");
        let Some(parent) = object.at(&["spec", "parentRef"]).and_then(Value::as_object) else {
            errors.push(FieldError::required(path, ""));
            return errors;
        };
        // The core group has no name, so that a group cannot be asked for.
        if let Some(group) = parent.str("group") {
            errors.extend(problems(path.child("group"), group, dns1123_subdomain(group)));
        }
        for (name, is_required) in [("resource", true), ("name", true), ("namespace", false)] {
            match parent.str(name).unwrap_or_default() {
                "" if is_required => errors.push(FieldError::required(path.child(name), "")),
                "" => {}
                text => errors.extend(problems(path.child(name), text, path_segment_name(text))),
            }
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        let spec = FieldPath::root("spec");
        let parent = ["spec", "parentRef"];
        errors.extend(immutable(spec.child("parentRef"), object.at(&parent), old.at(&parent)));
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    #[test]
    fn the_name_is_an_address_and_the_parent_is_known() {
        for (name, parent, want) in [
            ("10.0.0.1", r#"{"resource":"services","name":"a","namespace":"b"}"#, vec![]),
            ("10.0.0.01", r#"{"resource":"services","name":"a"}"#, vec!["metadata.name"]),
            ("2001:DB8::1", r#"{"resource":"services","name":"a"}"#, vec!["metadata.name"]),
            ("10.0.0.1", "null", vec!["spec.parentRef"]),
            (
                "10.0.0.1",
                r#"{"group":"A","name":"a/b"}"#,
                vec!["spec.parentRef.group", "spec.parentRef.resource", "spec.parentRef.name"],
            ),
        ] {
            let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"parentRef":{parent}}}}}"#);
            let value = parse_json(text.as_bytes()).expect("is JSON").value;
            let errors = IpAddresses.validate(value.as_object().expect("is an object"));
            assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), want, "{text}");
        }
    }
}
