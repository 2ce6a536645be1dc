//! Groups of the community: whoever defines a kind in one of them says who approved it.

use revisor_object::{FieldError, Object, Url};

use super::condition::{API_APPROVAL, Condition};
use crate::kinds::members::{part, text};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation of a definition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

impl Approval {
    fn of(annotation: &str) -> Approval {
        let is_address = || {
            // The original reads it as the target of a request, which has no fragment.
            let url = Url::parse(annotation).ok();
            url.is_some_and(|url| !url.host.is_empty() && !url.scheme.is_empty()) && !annotation.is_empty()
        };
        match annotation {
            "" => Approval::Missing,
            text if text.starts_with("unapproved") => Approval::Bypassed,
            _ if is_address() => Approval::Approved,
            _ => Approval::Invalid,
        }
    }

    fn reason(self, annotation: &str) -> String {
        match self {
            Approval::Missing => format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}"),
            Approval::Bypassed => format!("not approved: {annotation:?}"),
            Approval::Approved => format!("approved in {annotation}"),
            Approval::Invalid => format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting \
                 with \"unapproved\", {SEE}"
            ),
        }
    }
}

/// Whether kinds of a group must be approved.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

fn annotation(definition: &Object) -> &str {
    text(part(part(definition, "metadata"), "annotations"), ANNOTATION)
}

/// What is wrong with the approval of a definition. What did not change is not refused.
pub(super) fn validate(definition: &Object, old: Option<&Object>) -> Option<FieldError> {
    if !is_protected(text(part(definition, "spec"), "group")) {
        return None;
    }
    let annotation_now = annotation(definition);
    let now = Approval::of(annotation_now);
    if old.is_some_and(|old| Approval::of(annotation(old)) == now) {
        return None;
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    match now {
        Approval::Invalid => Some(FieldError::invalid(path, annotation_now, now.reason(annotation_now))),
        Approval::Missing => Some(FieldError::required(path, now.reason(annotation_now))),
        Approval::Approved | Approval::Bypassed => None,
    }
}

/// What the status of a definition says about its approval, if its group needs one.
pub fn api_approval(definition: &Object) -> Option<Condition> {
    if !is_protected(text(part(definition, "spec"), "group")) {
        return None;
    }
    let annotation = annotation(definition);
    let approval = Approval::of(annotation);
    let (status, reason) = match approval {
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    Some(Condition::new(API_APPROVAL, status, reason, approval.reason(annotation)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    fn definition(group: &str, annotation: &str) -> Object {
        object(&format!(
            r#"{{"metadata":{{"annotations":{{"{ANNOTATION}":"{annotation}"}}}},"spec":{{"group":"{group}"}}}}"#
        ))
    }

    #[test]
    fn groups_of_the_community_need_approval() {
        for (group, annotation, error, condition) in [
            ("example.com", "", false, None),
            ("notk8s.io", "", false, None),
            ("k8s.io", "", true, Some("MissingAnnotation")),
            ("a.kubernetes.io", "nobody", true, Some("InvalidAnnotation")),
            ("a.k8s.io", "unapproved, just a test", false, Some("UnapprovedAnnotation")),
            ("a.k8s.io", "https://example.com/1", false, Some("ApprovedAnnotation")),
        ] {
            let definition = definition(group, annotation);
            assert_eq!(validate(&definition, None).is_some(), error, "{group} {annotation}");
            assert_eq!(validate(&definition, Some(&definition)), None, "{group} {annotation}");
            let reason = api_approval(&definition).map(|condition| condition.reason);
            assert_eq!(reason.as_deref(), condition, "{group} {annotation}");
        }
    }
}
