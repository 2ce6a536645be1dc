//! [`MatchResources`]: what a policy, a binding or a webhook applies to.

use std::ops::Deref;

use revisor_object::{LabelSelector, Object, StructuredLabelSelector, Value};

use crate::rule::{Rule, RuleTarget};
use crate::{GroupVersionResource, Operation};

/// How rules are compared with the resource of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchPolicy {
    /// By the version that the client speaks of.
    Exact,
    /// By any version in which the object can be shown.
    Equivalent,
}

/// What somebody applies to.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchResources {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    policy: MatchPolicy,
    namespaces: Selector,
    objects: Selector,
}

/// A selector, or why it is none.
type Selector = Result<LabelSelector, String>;

/// Why it cannot be told whether a write is meant.
#[derive(Debug)]
pub enum Unmatched<E> {
    /// A selector cannot be evaluated.
    Selector(String),
    /// The labels of the namespace are not to be had.
    Namespace(E),
}

impl MatchResources {
    /// What `matchConstraints` or `matchResources` says. Without rules, everything that is selected is meant.
    pub fn read(resources: &Object) -> MatchResources {
        MatchResources { rules: Rule::read_all(resources.array("resourceRules")), ..MatchResources::common(resources) }
    }

    /// What a webhook says of itself.
    pub fn of_webhook(webhook: &Object) -> MatchResources {
        MatchResources { rules: Rule::read_all(webhook.array("rules")), ..MatchResources::common(webhook) }
    }

    fn common(object: &Object) -> MatchResources {
        MatchResources {
            rules: Vec::new(),
            excluded: Rule::read_all(object.array("excludeResourceRules")),
            policy: match object.str("matchPolicy") {
                Some("Exact") => MatchPolicy::Exact,
                _ => MatchPolicy::Equivalent,
            },
            namespaces: selector(object, "namespaceSelector"),
            objects: selector(object, "objectSelector"),
        }
    }

    /// Whether there are rules. A binding without any narrows its policy down by its selectors alone.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The resource by which a write is meant: that of the client, or another version of it; `None` if it is not meant.
    ///
    /// `equivalents` are the other versions of the resource, `objects` the new and the old object of the write, and
    /// `labels` answers which labels its namespace has.
    pub fn matches<'t, E, L: Deref<Target = Object>>(
        &self,
        target: &RuleTarget<'t>,
        equivalents: &[GroupVersionResource<'t>],
        objects: [Option<&Object>; 2],
        labels: impl FnOnce() -> Result<Option<L>, E>,
    ) -> Result<Option<GroupVersionResource<'t>>, Unmatched<E>> {
        if self.meant_by(&self.excluded, target, equivalents).is_some() {
            return Ok(None);
        }
        let meant = match self.rules.is_empty() {
            true => Some(target.resource),
            false => self.meant_by(&self.rules, target, equivalents),
        };
        let Some(meant) = meant else { return Ok(None) };
        let is_selected = self.selects(target, objects, labels)?;
        Ok(Some(meant).filter(|_| is_selected))
    }

    /// Whether the selectors select a write, whatever the rules say of it. The `objects` are the new and the old one;
    /// `labels` are those of the namespace, which is only looked for where that matters.
    pub fn selects<E, L: Deref<Target = Object>>(
        &self,
        target: &RuleTarget<'_>,
        objects: [Option<&Object>; 2],
        labels: impl FnOnce() -> Result<Option<L>, E>,
    ) -> Result<bool, Unmatched<E>> {
        let objects_are_meant = match &self.objects {
            Ok(selector) => {
                let is_selected = |object: &Object| selects(selector, object.at(&["metadata", "labels"]));
                selector.is_everything() || objects.into_iter().flatten().any(is_selected)
            }
            Err(why) => return Err(Unmatched::Selector(why.clone())),
        };
        // What is in no namespace is never left out by one.
        let is_beyond = target.namespace.is_empty() && target.resource.resource != "namespaces";
        if !objects_are_meant || is_beyond {
            return Ok(objects_are_meant);
        }
        let selector = self.namespaces.as_ref().map_err(|why| Unmatched::Selector(why.clone()))?;
        if selector.is_everything() {
            return Ok(true);
        }
        // A namespace that is being written is not yet stored with its labels.
        let is_written = target.resource.resource == "namespaces"
            && target.subresource.is_empty()
            && matches!(target.operation, Operation::Create | Operation::Update);
        Ok(match is_written {
            true => selects(selector, objects[0].and_then(|object| object.at(&["metadata", "labels"]))),
            false => {
                let labels = labels().map_err(Unmatched::Namespace)?;
                selector.matches(|name| labels.as_ref().and_then(|labels| labels.str(name)))
            }
        })
    }

    /// The resource by which one of the rules names a write, whatever the selectors say of it.
    pub fn meant<'t>(
        &self,
        target: &RuleTarget<'t>,
        equivalents: &[GroupVersionResource<'t>],
    ) -> Option<GroupVersionResource<'t>> {
        self.meant_by(&self.rules, target, equivalents)
    }

    fn meant_by<'t>(
        &self,
        rules: &[Rule],
        target: &RuleTarget<'t>,
        equivalents: &[GroupVersionResource<'t>],
    ) -> Option<GroupVersionResource<'t>> {
        if rules.iter().any(|rule| rule.matches(target)) {
            return Some(target.resource);
        }
        if self.policy == MatchPolicy::Exact {
            return None;
        }
        rules.iter().find_map(|rule| {
            let others = equivalents.iter().filter(|resource| **resource != target.resource);
            others.copied().find(|resource| rule.matches(&RuleTarget { resource: *resource, ..*target }))
        })
    }
}

fn selects(selector: &LabelSelector, labels: Option<&Value>) -> bool {
    let labels = labels.and_then(Value::as_object);
    selector.matches(|name| labels.and_then(|labels| labels.str(name)))
}

fn selector(object: &Object, name: &str) -> Selector {
    let Some(selector) = object.object(name) else { return Ok(LabelSelector::everything()) };
    StructuredLabelSelector::new(selector).to_selector().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn object(text: &str) -> Object {
        parse_json(text.as_bytes()).expect("is JSON").value.as_object().expect("is an object").clone()
    }

    const RULES: &str = r#""resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE"]}]"#;

    #[test]
    fn what_is_meant_must_be_named_selected_and_not_excluded() {
        let v1 = GroupVersionResource { group: "apps", version: "v1", resource: "deployments" };
        let beta = GroupVersionResource { version: "v1beta1", ..v1 };
        let target = |resource| RuleTarget {
            resource,
            subresource: "",
            namespace: "n",
            name: "a",
            operation: Operation::Create,
        };
        let new = object(r#"{"metadata":{"labels":{"app":"web"}}}"#);
        let old = object(r#"{"metadata":{"labels":{"app":"db"}}}"#);
        let excluded = RULES.replace("resourceRules", "excludeResourceRules");
        for (spec, asked, want) in [
            (format!("{{{RULES}}}"), v1, Some(v1)),
            (format!("{{{RULES}}}"), beta, Some(v1)),
            (format!(r#"{{{RULES},"matchPolicy":"Exact"}}"#), beta, None),
            (format!("{{{RULES},{excluded}}}"), v1, None),
            ("{}".to_owned(), beta, Some(beta)),
            (format!(r#"{{{RULES},"objectSelector":{{"matchLabels":{{"app":"web"}}}}}}"#), v1, Some(v1)),
            (format!(r#"{{{RULES},"objectSelector":{{"matchLabels":{{"app":"db"}}}}}}"#), v1, Some(v1)),
            (format!(r#"{{{RULES},"objectSelector":{{"matchLabels":{{"app":"no"}}}}}}"#), v1, None),
            (format!(r#"{{{RULES},"namespaceSelector":{{"matchLabels":{{"team":"a"}}}}}}"#), v1, Some(v1)),
            (format!(r#"{{{RULES},"namespaceSelector":{{"matchLabels":{{"team":"b"}}}}}}"#), v1, None),
        ] {
            let resources = MatchResources::read(&object(&spec));
            let labels = Box::new(object(r#"{"team":"a"}"#));
            let found = resources.matches(&target(asked), &[v1, beta], [Some(&new), Some(&old)], || {
                Ok::<_, std::convert::Infallible>(Some(labels))
            });
            assert_eq!(found.expect("has selectors"), want, "{spec}");
        }
    }

    #[test]
    fn only_who_would_be_asked_is_told_that_the_namespace_is_missing() {
        let spec = format!(r#"{{{RULES},"namespaceSelector":{{"matchLabels":{{"team":"a"}}}}}}"#);
        let resources = MatchResources::read(&object(&spec));
        let v1 = GroupVersionResource { group: "apps", version: "v1", resource: "deployments" };
        for (name, namespace, want_error) in
            [("deployments", "n", true), ("deployments", "", false), ("pods", "n", false)]
        {
            let resource = GroupVersionResource { resource: name, ..v1 };
            let target = RuleTarget { resource, subresource: "", namespace, name: "a", operation: Operation::Create };
            let found = resources.matches(&target, &[], [None, None], || Err::<Option<Box<Object>>, _>("gone"));
            assert_eq!(found.is_err(), want_error, "{name} in {namespace:?}");
        }
    }
}
