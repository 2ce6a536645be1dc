//! [`ExpressionAuthorizer`]: what expressions are answered that ask what the one who writes may do.

use revisor_auth::{Attributes as Asked, Claims, Explanation, Identity, NotAllowed, ResourceAttributes, Selectors};
use revisor_catalog::Requester;
use revisor_cel::{Authorizer, Decision, Question, Target};

/// Answers for the one who makes a write, or for a service account that an expression names.
#[derive(Debug)]
pub(crate) struct ExpressionAuthorizer<'a> {
    authorizer: &'a revisor_auth::Authorizer,
    user: Identity,
}

impl<'a> ExpressionAuthorizer<'a> {
    pub(crate) fn new(authorizer: &'a revisor_auth::Authorizer, requester: Requester<'_>) -> ExpressionAuthorizer<'a> {
        let claims = Claims {
            name: requester.name.to_owned(),
            uid: Some(requester.uid).filter(|uid| !uid.is_empty()).map(str::to_owned),
            groups: requester.groups.to_vec(),
            extra: requester.extra.to_vec(),
        };
        ExpressionAuthorizer { authorizer, user: Identity::exactly(claims) }
    }
}

impl Authorizer for ExpressionAuthorizer<'_> {
    fn authorize(&self, question: &Question) -> Decision {
        let account = question.service_account.as_ref().map(|account| {
            let all = "system:serviceaccounts";
            Identity::authenticated(Claims {
                name: format!("system:serviceaccount:{}:{}", account.namespace, account.name),
                groups: vec![all.to_owned(), format!("{all}:{}", account.namespace)],
                ..Claims::default()
            })
        });
        let given = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
        let user = account.as_ref().unwrap_or(&self.user);
        let explained = match &question.target {
            Target::Path(path) => {
                self.authorizer.explain_in_place(&Asked { user, verb: &question.verb, path, resource: None })
            }
            Target::Resource(target) => {
                let (part, namespace, name) =
                    (given(&target.subresource), given(&target.namespace), given(&target.name));
                let selectors = Selectors {
                    fields: target.field_selector.parse().unwrap_or_default(),
                    labels: target.label_selector.parse().unwrap_or_default(),
                };
                let resource = ResourceAttributes {
                    group: &target.group,
                    version: "*",
                    resource: &target.resource,
                    subresource: part.as_deref(),
                    namespace: namespace.as_deref(),
                    name: name.as_deref(),
                    selectors: Some(&selectors).filter(|selectors| !selectors.is_everything()),
                };
                self.authorizer.explain_in_place(&Asked {
                    user,
                    verb: &question.verb,
                    path: "",
                    resource: Some(resource),
                })
            }
        };
        match explained {
            Explanation::Allow(reason) => Decision { allowed: true, reason, error: None },
            Explanation::Forbidden(NotAllowed { reason, error, .. }) => {
                Decision { allowed: false, reason: reason.into_owned(), error }
            }
        }
    }
}
