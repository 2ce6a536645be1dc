//! Roles and ClusterRoles: lists of rules. A ClusterRole may also gather the rules of others, and speak of paths.

use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector,
};

use crate::{Part, Strategy};

pub(crate) struct Roles;

impl Strategy for Roles {
    fn validate(&self, object: &Object) -> FieldErrors {
        validate_rules(object, true)
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        self.validate(object)
    }
}

pub(crate) struct ClusterRoles;

impl Strategy for ClusterRoles {
    fn validate(&self, object: &Object) -> FieldErrors {
        validate_cluster_role(object, LabelSelectorOptions::default())
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        // What was stored before label values were checked may stay.
        let allow_invalid_values =
            selectors(old).any(|(_, selector)| StructuredLabelSelector::new(selector).has_invalid_value());
        validate_cluster_role(object, LabelSelectorOptions { allow_invalid_values, ..LabelSelectorOptions::default() })
    }
}

fn validate_cluster_role(object: &Object, options: LabelSelectorOptions) -> FieldErrors {
    let mut errors = validate_rules(object, false);
    let Some(aggregation) = object.object("aggregationRule") else { return errors };
    let root = FieldPath::root("aggregationRule");
    let path = root.child("clusterRoleSelectors");
    if aggregation.array("clusterRoleSelectors").is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, detail));
    }
    for (at, selector) in selectors(object) {
        let path = path.index(at);
        let structured = StructuredLabelSelector::new(selector);
        errors.extend(structured.validate(&path, options));
        if structured.to_selector().is_err() {
            errors.push(FieldError::invalid(path, BadValue::nothing(), "invalid label selector."));
        }
    }
    errors
}

/// The selectors of the roles that a ClusterRole gathers, with their places.
fn selectors(object: &Object) -> impl Iterator<Item = (usize, &Object)> {
    let selectors = object.object("aggregationRule").map(|rule| rule.array("clusterRoleSelectors"));
    selectors.unwrap_or_default().iter().enumerate().filter_map(|(at, value)| Some((at, value.as_object()?)))
}

fn validate_rules(object: &Object, namespaced: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let rules = FieldPath::root("rules");
    for (at, rule) in object.array("rules").iter().enumerate() {
        if let Some(rule) = rule.as_object() {
            validate_rule(rule, namespaced, rules.index(at), &mut errors);
        }
    }
    errors
}

fn validate_rule(rule: &Object, namespaced: bool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let has = |name| !rule.array(name).is_empty();
    if !has("verbs") {
        errors.push(FieldError::required(path.child("verbs"), "verbs must contain at least one value"));
    }
    if has("nonResourceURLs") {
        let urls = path.child("nonResourceURLs");
        let shown = || BadValue::of(&rule.get("nonResourceURLs"));
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(urls, shown(), detail));
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(urls, shown(), detail));
        }
        return;
    }
    if !has("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.push(FieldError::required(path.child("apiGroups"), detail));
    }
    if !has("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.push(FieldError::required(path.child("resources"), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn rules_are_about_resources_or_about_paths() {
        for (rule, in_role, in_cluster_role) in [
            (r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}"#, &[][..], &[][..]),
            (
                r#"{"apiGroups":[""],"resources":["pods"]}"#,
                &["FieldValueRequired rules[0].verbs"],
                &["FieldValueRequired rules[0].verbs"],
            ),
            (
                r#"{"verbs":["get"]}"#,
                &["FieldValueRequired rules[0].apiGroups", "FieldValueRequired rules[0].resources"],
                &["FieldValueRequired rules[0].apiGroups", "FieldValueRequired rules[0].resources"],
            ),
            (r#"{"verbs":["get"],"nonResourceURLs":["/a"]}"#, &["FieldValueInvalid rules[0].nonResourceURLs"], &[]),
            (
                r#"{"verbs":["get"],"nonResourceURLs":["/a"],"resourceNames":["b"]}"#,
                &["FieldValueInvalid rules[0].nonResourceURLs", "FieldValueInvalid rules[0].nonResourceURLs"],
                &["FieldValueInvalid rules[0].nonResourceURLs"],
            ),
        ] {
            let role = object(&format!(r#"{{"rules":[{rule}]}}"#));
            check(rule, &Roles.validate(&role), in_role);
            check(rule, &ClusterRoles.validate(&role), in_cluster_role);
        }
    }

    #[test]
    fn bad_label_values_may_stay_where_they_were() {
        let stored = object(
            r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"In","values":["b c"]}]}]}}"#,
        );
        let path = "aggregationRule.clusterRoleSelectors[0]";
        let conversion = format!("FieldValueInvalid {path}");
        let value = format!("FieldValueInvalid {path}.matchExpressions[0].values[0]");
        check("new", &ClusterRoles.validate(&stored), &[&value, &conversion]);
        check("kept", &ClusterRoles.validate_update(&stored, &stored, Part::Whole), &[&conversion]);
    }
}
