//! What expressions ask about permissions, put to the authorizer of the server: [`AskedAuthorizer`].

use std::fmt;
use std::sync::{Mutex, PoisonError};

use revisor_auth::{Attributes, Authorizer, Claims, Identity, ResourceAttributes};
use revisor_catalog::Requester;
use revisor_cel::{Decision, Question, ServiceAccount, Target};

/// How many answers are remembered. Each costs an expression so much that few policies come to more.
const MOST_REMEMBERED: usize = 64;

/// Answers for who makes a write, and for the service accounts that expressions name. What was asked in a pass over the
/// policies is not asked again in it (upstream: `NewCachingAuthorizer`).
pub(super) struct AskedAuthorizer<'a> {
    authorizer: &'a Authorizer,
    user: Identity,
    answered: Mutex<Vec<(Question, Decision)>>,
}

impl<'a> AskedAuthorizer<'a> {
    pub(super) fn new(authorizer: &'a Authorizer, requester: Requester<'_>) -> AskedAuthorizer<'a> {
        let user = Identity::exactly(Claims {
            name: requester.name.to_owned(),
            uid: Some(requester.uid).filter(|uid| !uid.is_empty()).map(str::to_owned),
            groups: requester.groups.to_vec(),
            extra: requester.extra.to_vec(),
        });
        AskedAuthorizer { authorizer, user, answered: Mutex::default() }
    }

    fn decide(&self, question: &Question) -> Decision {
        let account = question.service_account.as_ref().map(identity_of);
        let user = account.as_ref().unwrap_or(&self.user);
        let verb = question.verb.as_str();
        let (allowed, reason) = match &question.target {
            Target::Path(path) => self.authorizer.explain(&Attributes { user, verb, path, resource: None }),
            Target::Resource(target) => {
                let resource = ResourceAttributes {
                    group: &target.group,
                    version: "*",
                    resource: &target.resource,
                    subresource: given(&target.subresource),
                    namespace: given(&target.namespace),
                    name: given(&target.name),
                };
                self.authorizer.explain(&Attributes { user, verb, path: "", resource: Some(resource) })
            }
        };
        Decision { allowed, reason, error: None }
    }
}

impl revisor_cel::Authorizer for AskedAuthorizer<'_> {
    fn authorize(&self, question: &Question) -> Decision {
        let remembered = || self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, decision)) = remembered().iter().find(|(known, _)| known == question) {
            return decision.clone();
        }
        let decision = self.decide(question);
        let mut answered = remembered();
        if answered.len() < MOST_REMEMBERED {
            answered.push((question.clone(), decision.clone()));
        }
        decision
    }
}

impl fmt::Debug for AskedAuthorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedAuthorizer").finish_non_exhaustive()
    }
}

fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The user that a service account is.
fn identity_of(account: &ServiceAccount) -> Identity {
    let ServiceAccount { namespace, name } = account;
    Identity::exactly(Claims {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        uid: None,
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        extra: Vec::new(),
    })
}
