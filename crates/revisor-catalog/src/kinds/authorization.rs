//! `authorization.k8s.io`: questions about who may do what. They are answered, not stored; here is what may be asked.

mod access_review;

use access_review::{About, AccessReviews};

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    let about = match plural {
        "localsubjectaccessreviews" => About::SubjectInNamespace,
        "selfsubjectaccessreviews" => About::Oneself,
        "selfsubjectrulesreviews" => About::OwnRules,
        "subjectaccessreviews" => About::Subject,
        _ => return None,
    };
    Some(Kind::usual(AccessReviews { about }))
}
