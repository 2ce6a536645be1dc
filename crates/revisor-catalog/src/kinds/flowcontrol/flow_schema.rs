//! FlowSchemas: which requests go to which priority level.

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::{mandatory_spec, name_of, number, validate_status};
use crate::checks::{problems, required};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const MAX_PRECEDENCE: i64 = 10_000;
const DISTINGUISHERS: [&str; 2] = ["ByNamespace", "ByUser"];
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The kinds of subjects, each with the field that describes it.
const SUBJECTS: [(&str, &str); 3] = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

pub(crate) struct FlowSchemas {
    /// The specs that may not be changed, by name.
    pub(super) mandatory: Vec<(String, Object)>,
}

impl Strategy for FlowSchemas {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        validate_spec(name_of(object), spec, &mut errors);
        if mandatory_spec(&self.mandatory, object).is_some_and(|fixed| fixed != spec) {
            let detail = format!("spec of '{}' must equal the fixed value", name_of(object));
            errors.push(FieldError::invalid("spec", BadValue::of(spec), detail));
        }
        errors.extend(validate_status(object));
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::Whole { self.validate(object) } else { validate_status(object) }
    }
}

fn validate_spec(name: &str, spec: &Object, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let precedence = number(spec, "matchingPrecedence");
    let mut invalid =
        |detail: String| errors.push(FieldError::invalid(path.child("matchingPrecedence"), precedence, detail));
    if precedence <= 0 {
        invalid("must be a positive value".to_owned());
    }
    if precedence > MAX_PRECEDENCE {
        invalid(format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if precedence == 1 && name != "exempt" {
        invalid("only the schema named 'exempt' may have matchingPrecedence 1".to_owned());
    }
    if let Some(method) = spec.object("distinguisherMethod")
        && !DISTINGUISHERS.contains(&method.str("type").unwrap_or_default())
    {
        let at_method = path.child("distinguisherMethod");
        errors.push(FieldError::not_supported(at_method.child("type"), BadValue::of(method), &DISTINGUISHERS));
    }
    let level = path.child("priorityLevelConfiguration");
    match spec.object("priorityLevelConfiguration").and_then(|level| level.str("name")).unwrap_or_default() {
        "" => errors.push(FieldError::required(level.child("name"), "must reference a priority level")),
        name => errors.extend(problems(level.child("name"), name, dns1123_subdomain(name))),
    }
    let rules = path.child("rules");
    for (at, rule) in objects(spec, "rules") {
        validate_rule(rules.index(at), rule, errors);
    }
}

fn objects<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (usize, &'a Object)> {
    object.array(name).iter().enumerate().filter_map(|(at, value)| Some((at, value.as_object()?)))
}

fn texts<'a>(object: &'a Object, name: &str) -> impl ExactSizeIterator<Item = &'a str> + Clone {
    object.array(name).iter().map(|value| value.as_str().unwrap_or_default())
}

fn validate_rule(path: FieldPath<'_>, rule: &Object, errors: &mut FieldErrors) {
    let subjects = path.child("subjects");
    if rule.array("subjects").is_empty() {
        errors.push(FieldError::required(subjects, "subjects must contain at least one value"));
    }
    for (at, subject) in objects(rule, "subjects") {
        validate_subject(subjects.index(at), subject, errors);
    }
    if rule.array("resourceRules").is_empty() && rule.array("nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    let resources = path.child("resourceRules");
    for (at, rule) in objects(rule, "resourceRules") {
        validate_resource_rule(resources.index(at), rule, errors);
    }
    let paths = path.child("nonResourceRules");
    for (at, rule) in objects(rule, "nonResourceRules") {
        validate_path_rule(paths.index(at), rule, errors);
    }
}

fn validate_subject(path: FieldPath<'_>, subject: &Object, errors: &mut FieldErrors) {
    let kind = subject.str("kind").unwrap_or_default();
    let Some((_, own)) = SUBJECTS.iter().find(|(known, _)| *known == kind) else {
        return errors.push(FieldError::not_supported(path.child("kind"), kind, &SUBJECTS.map(|(kind, _)| kind)));
    };
    let at_own = path.child(own);
    match subject.object(own) {
        None => errors.push(FieldError::required(at_own, format!("{own} is required when subject kind is '{kind}'"))),
        Some(described) => {
            let name = described.str("name").unwrap_or_default();
            errors.extend(required(at_own.child("name"), name));
            if kind == "ServiceAccount" {
                validate_account(at_own, described, errors);
            }
        }
    }
    for (other_kind, other) in SUBJECTS.iter().filter(|(known, _)| *known != kind) {
        if subject.contains(other) {
            let detail = format!("{other} is forbidden when subject kind is not '{other_kind}'");
            errors.push(FieldError::forbidden(path.child(other), detail));
        }
    }
}

fn validate_account(path: FieldPath<'_>, account: &Object, errors: &mut FieldErrors) {
    let name = account.str("name").unwrap_or_default();
    if !matches!(name, "" | "*") {
        errors.extend(problems(path.child("name"), name, dns1123_subdomain(name)));
    }
    match account.str("namespace").unwrap_or_default() {
        "" => errors.push(FieldError::required(path.child("namespace"), "must specify namespace for service account")),
        namespace => errors.extend(problems(path.child("namespace"), namespace, dns1123_label(namespace))),
    }
}

/// The error of an asterisk among others.
fn alone(path: FieldPath<'_>, rule: &Object, name: &str, what: &str) -> Option<FieldError> {
    let is_among_others = rule.array(name).len() > 1 && texts(rule, name).any(|text| text == "*");
    is_among_others.then(|| {
        let detail = format!("if '*' is present, must not specify other {what}");
        FieldError::invalid(path.child(name), BadValue::of(&rule.get(name)), detail)
    })
}

fn validate_verbs(path: FieldPath<'_>, rule: &Object, errors: &mut FieldErrors) {
    let mut verbs = texts(rule, "verbs");
    if verbs.len() == 0 {
        errors.push(FieldError::required(path.child("verbs"), "verbs must contain at least one value"));
    } else if verbs.clone().any(|verb| verb == "*") {
        errors.extend(alone(path, rule, "verbs", "verbs"));
    } else if verbs.any(|verb| !VERBS.contains(&verb)) {
        errors.push(FieldError::not_supported(path.child("verbs"), BadValue::of(&rule.get("verbs")), &VERBS));
    }
}

fn validate_resource_rule(path: FieldPath<'_>, rule: &Object, errors: &mut FieldErrors) {
    validate_verbs(path, rule, errors);
    for (name, one, many) in [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")] {
        if rule.array(name).is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            errors.push(FieldError::required(path.child(name), detail));
        }
        errors.extend(alone(path, rule, name, many));
    }
    let at_namespaces = path.child("namespaces");
    let mut namespaces = texts(rule, "namespaces");
    let is_cluster_scoped = rule.get("clusterScope").and_then(Value::as_bool) == Some(true);
    if namespaces.len() == 0 && !is_cluster_scoped {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(at_namespaces, detail));
    } else if namespaces.clone().any(|namespace| namespace == "*") {
        errors.extend(alone(path, rule, "namespaces", "namespaces"));
    } else {
        for (at, namespace) in namespaces.by_ref().enumerate() {
            let detail = |problem| format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
            errors.extend(problems(
                at_namespaces.index(at),
                namespace,
                dns1123_label(namespace).into_iter().map(detail),
            ));
        }
    }
}

fn validate_path_rule(path: FieldPath<'_>, rule: &Object, errors: &mut FieldErrors) {
    validate_verbs(path, rule, errors);
    let at_urls = path.child("nonResourceURLs");
    let urls = texts(rule, "nonResourceURLs");
    if urls.len() == 0 {
        errors.push(FieldError::required(at_urls, "nonResourceURLs must contain at least one value"));
    } else if urls.clone().any(|url| url == "*") {
        errors.extend(alone(path, rule, "nonResourceURLs", "non-resource URLs"));
    } else {
        for (at, url) in urls.enumerate() {
            errors.extend(url_problem(url).map(|detail| FieldError::invalid(at_urls.index(at), url, detail)));
        }
    }
}

/// What is wrong with a path, which may end in an asterisk.
fn url_problem(url: &str) -> Option<&'static str> {
    let asterisks = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if asterisks > 1 || (asterisks == 1 && !url.ends_with("/*")) => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::mandatory_specs;
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn rules_are_checked() {
        let subject = r#""subjects":[{"kind":"User","user":{"name":"u"}}]"#;
        let resource =
            r#""resourceRules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"clusterScope":true}]"#;
        for (rule, want) in [
            (format!("{subject},{resource}"), &[][..]),
            (subject.to_owned(), &["FieldValueRequired r"]),
            (resource.to_owned(), &["FieldValueRequired r.subjects"]),
            (
                format!(
                    r#""subjects":[{{"kind":"Pod"}},{{"kind":"User"}},{{"kind":"Group","group":{{}},"user":{{}}}}],{resource}"#
                ),
                &[
                    "FieldValueNotSupported r.subjects[0].kind",
                    "FieldValueRequired r.subjects[1].user",
                    "FieldValueRequired r.subjects[2].group.name",
                    "FieldValueForbidden r.subjects[2].user",
                ],
            ),
            (
                format!(r#""subjects":[{{"kind":"ServiceAccount","serviceAccount":{{"name":"A"}}}}],{resource}"#),
                &[
                    "FieldValueInvalid r.subjects[0].serviceAccount.name",
                    "FieldValueRequired r.subjects[0].serviceAccount.namespace",
                ],
            ),
            (
                format!(
                    r#"{subject},"resourceRules":[{{"verbs":["*","get"],"apiGroups":["*","a"],"namespaces":["N"]}}]"#
                ),
                &[
                    "FieldValueInvalid r.resourceRules[0].verbs",
                    "FieldValueInvalid r.resourceRules[0].apiGroups",
                    "FieldValueRequired r.resourceRules[0].resources",
                    "FieldValueInvalid r.resourceRules[0].namespaces[0]",
                ],
            ),
            (
                format!(
                    r#"{subject},"nonResourceRules":[{{"verbs":["fly"],"nonResourceURLs":["/a/*","/*a","b","/a//b"]}}]"#
                ),
                &[
                    "FieldValueNotSupported r.nonResourceRules[0].verbs",
                    "FieldValueInvalid r.nonResourceRules[0].nonResourceURLs[1]",
                    "FieldValueInvalid r.nonResourceRules[0].nonResourceURLs[2]",
                    "FieldValueInvalid r.nonResourceRules[0].nonResourceURLs[3]",
                ],
            ),
        ] {
            let mut errors = FieldErrors::new();
            validate_rule(FieldPath::root("r"), &object(&format!("{{{rule}}}")), &mut errors);
            check(&rule, &errors, want);
        }
    }

    #[test]
    fn what_the_server_needs_cannot_be_changed() {
        let schemas = FlowSchemas { mandatory: mandatory_specs("flowschemas") };
        let changed = object(
            r#"{"metadata":{"name":"exempt"},"spec":{"matchingPrecedence":1,"priorityLevelConfiguration":{"name":"exempt"}}}"#,
        );
        check("exempt", &schemas.validate(&changed), &["FieldValueInvalid spec"]);
    }
}
