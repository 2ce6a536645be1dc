//! When single containers restart, where that is not as their pod says: by a policy of their own, with rules by exit
//! code, of which some restart all containers.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::members::{objects, text};
use super::resource_list::is_sidecar;
use crate::checks::one_of;
use crate::{Feature, Features};

const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RESTART_ALL: &str = "RestartAllContainers";
const ACTIONS: &[&str] = &["Restart"];
const ACTIONS_AND_ALL: &[&str] = &["Restart", RESTART_ALL];
const EXIT_CODE_OPERATORS: &[&str] = &["In", "NotIn"];

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

/// What containers may say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RestartRules {
    /// Containers have policies and rules of their own.
    pub(crate) of_containers: bool,
    /// Rules may restart all containers, and sidecars have rules too.
    pub(crate) of_all: bool,
}

impl RestartRules {
    /// For a new spec, or for one in place of an old one.
    pub(crate) fn new(old: Option<&Object>, features: Features) -> RestartRules {
        RestartRules {
            of_containers: features.has(Feature::ContainerRestartRules) || old.is_some_and(are_used),
            of_all: features.has(Feature::RestartAllContainersOnContainerExits) || old.is_some_and(of_all_are_used),
        }
    }
}

/// Whether containers of a spec have policies or rules of their own.
pub(super) fn are_used(spec: &Object) -> bool {
    objects(spec, "containers").any(|(_, container)| container.contains("restartPolicy"))
        || objects(spec, "initContainers").any(|(_, container)| {
            container.str("restartPolicy").is_some_and(|policy| policy != "Always")
                || !container.array("restartPolicyRules").is_empty()
        })
}

fn of_all_are_used(spec: &Object) -> bool {
    let restarts_all = |container: &Object| {
        objects(container, "restartPolicyRules").any(|(_, rule)| text(rule, "action") == RESTART_ALL)
    };
    objects(spec, "containers").any(|(_, container)| restarts_all(container))
        || objects(spec, "initContainers").any(|(_, container)| {
            restarts_all(container) || is_sidecar(container) && !container.array("restartPolicyRules").is_empty()
        })
}

/// What is wrong with when a container that does the work restarts.
pub(super) fn validate(path: FieldPath<'_>, container: &Object, allowed: RestartRules, errors: &mut FieldErrors) {
    if allowed.of_containers {
        validate_own(path, container, allowed, errors);
    } else if container.contains("restartPolicy") {
        let detail = "may not be set for non-init containers";
        errors.push(FieldError::forbidden(path.child("restartPolicy"), detail));
    }
}

/// What is wrong with when a container that prepares the work restarts.
pub(super) fn validate_init(path: FieldPath<'_>, container: &Object, allowed: RestartRules, errors: &mut FieldErrors) {
    let has_rules = !container.array("restartPolicyRules").is_empty();
    match container.str("restartPolicy") {
        Some("Always") if allowed.of_containers && !allowed.of_all && has_rules => {
            let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
            errors.push(FieldError::forbidden(path.child("restartPolicyRules"), detail));
        }
        Some("Always") if !allowed.of_containers || !allowed.of_all => {}
        Some(policy) if !allowed.of_containers => {
            errors.push(FieldError::not_supported(path.child("restartPolicy"), policy, &["Always"]));
        }
        Some(_) => validate_own(path, container, allowed, errors),
        None if has_rules => errors.push(without_policy(path)),
        None => {}
    }
}

fn without_policy(path: FieldPath<'_>) -> FieldError {
    FieldError::required(path.child("restartPolicy"), "must specify restartPolicy when restart rules are used")
}

fn validate_own(path: FieldPath<'_>, container: &Object, allowed: RestartRules, errors: &mut FieldErrors) {
    let rules = container.array("restartPolicyRules");
    match container.str("restartPolicy") {
        None if rules.is_empty() => return,
        None => errors.push(without_policy(path)),
        Some(policy) => errors.extend(one_of(path.child("restartPolicy"), policy, POLICIES)),
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(path, rules.len(), MAX_RULES));
    }
    let actions = if allowed.of_all { ACTIONS_AND_ALL } else { ACTIONS };
    for (at, rule) in objects(container, "restartPolicyRules") {
        let path = path.index(at);
        errors.extend(one_of(path.child("action"), text(rule, "action"), actions));
        let path = path.child("exitCodes");
        let Some(codes) = rule.object("exitCodes") else {
            errors.push(FieldError::required(path, "must be specified"));
            continue;
        };
        errors.extend(one_of(path.child("operator"), text(codes, "operator"), EXIT_CODE_OPERATORS));
        let count = codes.array("values").len();
        if count > MAX_EXIT_CODES {
            errors.push(FieldError::too_many(path.child("values"), count, MAX_EXIT_CODES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object, terms};

    const NEVER: &str = r#"{"restartPolicy":"Never"}"#;
    const SIDECAR: &str = r#"{"restartPolicy":"Always"}"#;
    const RULES: &str = r#"{"restartPolicy":"Never",
        "restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]}"#;
    const SIDECAR_RULES: &str = r#"{"restartPolicy":"Always",
        "restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]}"#;
    const ALL: &str = r#"{"restartPolicy":"Never",
        "restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[1]}}]}"#;

    #[test]
    fn rules_are_allowed_by_features_and_by_use() {
        let without_all = terms().features.without(Feature::RestartAllContainersOnContainerExits);
        let none = without_all.without(Feature::ContainerRestartRules);
        for (features, old, of_containers, of_all) in [
            (terms().features, "{}".to_owned(), true, true),
            (without_all, "{}".to_owned(), true, false),
            (none, "{}".to_owned(), false, false),
            (none, format!(r#"{{"containers":[{NEVER}]}}"#), true, false),
            (none, format!(r#"{{"initContainers":[{SIDECAR}]}}"#), false, false),
            (none, format!(r#"{{"initContainers":[{NEVER}]}}"#), true, false),
            (none, format!(r#"{{"initContainers":[{SIDECAR_RULES}]}}"#), true, true),
            (none, format!(r#"{{"containers":[{ALL}]}}"#), true, true),
        ] {
            let got = RestartRules::new(Some(&object(&old)), features);
            assert_eq!(got, RestartRules { of_containers, of_all }, "{old}");
        }
    }

    #[test]
    fn containers_say_what_is_allowed() {
        let path = FieldPath::root("c");
        let none = RestartRules::default();
        let own = RestartRules { of_containers: true, of_all: false };
        let all = RestartRules { of_containers: true, of_all: true };
        for (allowed, is_init, container, want) in [
            (none, false, "{}", None),
            (none, false, NEVER, Some("FieldValueForbidden c.restartPolicy")),
            (none, true, NEVER, Some("FieldValueNotSupported c.restartPolicy")),
            (none, true, SIDECAR, None),
            (own, false, RULES, None),
            (own, false, ALL, Some("FieldValueNotSupported c.restartPolicyRules[0].action")),
            (own, true, SIDECAR_RULES, Some("FieldValueForbidden c.restartPolicyRules")),
            (all, false, ALL, None),
            (all, true, SIDECAR_RULES, None),
            (all, true, r#"{"restartPolicyRules":[{}]}"#, Some("FieldValueRequired c.restartPolicy")),
        ] {
            let validate = if is_init { validate_init } else { validate };
            let mut errors = FieldErrors::new();
            validate(path, &object(container), allowed, &mut errors);
            check(container, &errors, want.as_slice());
        }
    }
}
