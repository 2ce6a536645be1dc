//! What tokens of service accounts say, in the form that the original writes (`pkg/serviceaccount/claims.go`).

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::{Claims, Identity};

const USER_PREFIX: &str = "system:serviceaccount:";
const ALL_ACCOUNTS: &str = "system:serviceaccounts";
const EXTRA_PREFIX: &str = "authentication.kubernetes.io/";

/// The name of an object, and what tells it from others that had the name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenObject {
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The identity; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Which account a token is for, and to what it is bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSubject {
    /// The namespace of the account.
    #[serde(default)]
    pub namespace: String,
    /// The node of the pod; if there is no pod, the node without which the token is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<TokenObject>,
    /// The pod without which the token is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<TokenObject>,
    /// The secret without which the token is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<TokenObject>,
    /// The account.
    #[serde(default)]
    pub serviceaccount: TokenObject,
    /// When a token that is good for longer should have been replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<u64>,
}

/// A token that is to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// For whom.
    pub subject: TokenSubject,
    /// Who should accept it.
    pub audiences: Vec<String>,
    /// From when on it is good.
    pub now: SystemTime,
    /// How long it is good.
    pub lifetime: Duration,
    /// What tells it from other tokens.
    pub id: String,
}

/// All that a token says that was asked for. The fields are in the order in which they are written.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TokenClaims {
    #[serde(default)]
    pub(super) aud: Audiences,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) iat: Option<u64>,
    pub(super) iss: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) jti: String,
    #[serde(rename = "kubernetes.io", default)]
    pub(super) subject: TokenSubject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<u64>,
    #[serde(default)]
    pub(super) sub: String,
}

/// One audience may be written without a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Audiences {
    Many(Vec<String>),
    One(String),
}

impl Default for Audiences {
    fn default() -> Audiences {
        Audiences::Many(Vec::new())
    }
}

impl Audiences {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Audiences::Many(audiences) => audiences,
            Audiences::One(audience) => std::slice::from_ref(audience),
        }
    }
}

/// The name of an account as a user.
pub(super) fn user_name(namespace: &str, account: &str) -> String {
    format!("{USER_PREFIX}{namespace}:{account}")
}

/// Who shows that they are an account, with further facts.
pub(super) fn account_identity(namespace: &str, account: &TokenObject, extra: Vec<(String, Vec<String>)>) -> Identity {
    Identity::authenticated(Claims {
        name: user_name(namespace, &account.name),
        uid: Some(account.uid.clone()),
        groups: vec![ALL_ACCOUNTS.to_owned(), format!("{ALL_ACCOUNTS}:{namespace}")],
        extra,
    })
}

impl TokenClaims {
    /// Who shows such a token.
    pub(super) fn identity(&self) -> Identity {
        let TokenSubject { namespace, serviceaccount, pod, node, .. } = &self.subject;
        let mut extra = Vec::new();
        let mut add = |key: &str, value: String| {
            if !value.is_empty() {
                extra.push((format!("{EXTRA_PREFIX}{key}"), vec![value]));
            }
        };
        if !self.jti.is_empty() {
            add("credential-id", format!("JTI={}", self.jti));
        }
        for (object, name, uid) in [(pod, "pod-name", "pod-uid"), (node, "node-name", "node-uid")] {
            if let Some(object) = object {
                add(name, object.name.clone());
                add(uid, object.uid.clone());
            }
        }
        account_identity(namespace, serviceaccount, extra)
    }
}
