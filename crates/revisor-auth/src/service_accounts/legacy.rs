//! Tokens of the past: each stands in a secret of type `kubernetes.io/service-account-token`, names no audience, and is good
//! for as long as the secret holds it. The rules are those of the original (`pkg/serviceaccount/legacy.go`).

use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{Object, Value};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use super::metrics::ServiceAccountMetrics;
use super::token_claims::{Audiences, TokenObject, account_identity, user_name};
use crate::token_authenticator::BoxFuture;
use crate::{AuthenticationNotes, Identity, SecretLookup};

/// Who issues them.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";
/// The label with the day on which a token was last shown, and that with the day from which on it is not good any more.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const GENERATED_WARNING: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";

/// Knows the secrets that hold tokens, and the accounts that they are of.
pub trait LegacyTokens: SecretLookup {
    /// The account with this name, if there is one.
    fn account(&self, namespace: &str, name: &str) -> Option<Object>;

    /// Puts a label on a secret, if it is still the one with this identity. That it fails is for the log.
    fn label<'a>(&'a self, secret: &'a LegacySecret, label: &'a str, value: &'a str) -> BoxFuture<'a, ()>;
}

/// Which secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacySecret {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What tells it from others that had the name.
    pub uid: String,
}

/// What such a token says. The fields are in the order in which they are written.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LegacyClaims {
    #[serde(default, skip_serializing)]
    pub(super) aud: Audiences,
    pub(super) iss: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace", default)]
    namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name", default)]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name", default)]
    account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid", default)]
    account_uid: String,
    #[serde(default)]
    pub(super) sub: String,
}

impl LegacyClaims {
    /// What the token of a secret says (`LegacyClaims`).
    pub(super) fn new(namespace: &str, account: &TokenObject, secret: &str) -> LegacyClaims {
        LegacyClaims {
            aud: Audiences::default(),
            iss: ISSUER.to_owned(),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            account: account.name.clone(),
            account_uid: account.uid.clone(),
            sub: user_name(namespace, &account.name),
        }
    }

    /// Refuses claims that say too little, or not the same twice.
    fn check(&self) -> Result<(), &'static str> {
        match self {
            LegacyClaims { sub, .. } if sub.is_empty() => Err("sub claim is missing"),
            LegacyClaims { namespace, .. } if namespace.is_empty() => Err("namespace claim is missing"),
            LegacyClaims { secret, .. } if secret.is_empty() => Err("secretName claim is missing"),
            LegacyClaims { account, .. } if account.is_empty() => Err("serviceAccountName claim is missing"),
            LegacyClaims { account_uid, .. } if account_uid.is_empty() => Err("serviceAccountUID claim is missing"),
            LegacyClaims { sub, namespace, account, .. } if *sub != user_name(namespace, account) => {
                Err("sub claim is invalid")
            }
            _ => Ok(()),
        }
    }
}

/// Those who know whether such a token is still good.
pub(super) struct LegacyValidator<'a> {
    pub(super) tokens: &'a Arc<dyn LegacyTokens>,
    pub(super) metrics: &'a ServiceAccountMetrics,
}

impl LegacyValidator<'_> {
    /// Who shows the token, or why it is not good (`legacyValidator.Validate`).
    pub(super) async fn validate(
        &self,
        token: &str,
        claims: &LegacyClaims,
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<Identity, String> {
        claims.check()?;
        let LegacyClaims { namespace, secret: secret_name, account: name, account_uid, .. } = claims;
        let secret = self.tokens.secret(namespace, secret_name).filter(|secret| !is_deleted(secret));
        let secret = secret.ok_or("Token has been invalidated")?;
        let held = secret.at(&["data", "token"]).and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
        if verify_slices_are_equal(&held.unwrap_or_default(), token.as_bytes()).is_err() {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = self.tokens.account(namespace, name);
        let account = account.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        if is_deleted(&account) {
            return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
        }
        let uid = text_of(&account, "uid");
        if uid != account_uid {
            return Err(format!("ServiceAccount UID ({uid}) does not match claim ({account_uid})"));
        }
        let label = |name| secret.at(&["metadata", "labels", name]).and_then(Value::as_str).unwrap_or_default();
        if !label(INVALID_SINCE).is_empty() {
            notes.annotate("authentication.k8s.io/legacy-token-invalidated", format!("{secret_name}/{namespace}"));
            self.metrics.invalid.inc();
            self.note_use(&secret, claims, label(LAST_USED), now).await;
            return Err(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked \
                 invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        let mut references = account.array("secrets").iter().filter_map(Value::as_object);
        if references.any(|reference| reference.str("name") == Some(secret_name)) {
            notes.warnings.push(GENERATED_WARNING.to_owned());
            notes.annotate("authentication.k8s.io/legacy-token-autogenerated-secret", secret_name);
            self.metrics.generated.inc();
        } else {
            notes.annotate("authentication.k8s.io/legacy-token-manual-secret", secret_name);
            self.metrics.manual.inc();
        }
        self.note_use(&secret, claims, label(LAST_USED), now).await;
        let account = TokenObject { name: name.clone(), uid: account_uid.clone() };
        Ok(account_identity(namespace, &account, Vec::new()))
    }

    /// Notes on the secret that its token was shown, once a day (`patchSecretWithLastUsedDate`).
    async fn note_use(&self, secret: &Object, claims: &LegacyClaims, last_used: &str, now: SystemTime) {
        let now = OffsetDateTime::from(now);
        let [today, tomorrow] = [now, now + Duration::DAY].map(|time| time.date().to_string());
        if last_used == today || last_used == tomorrow {
            return;
        }
        let secret = LegacySecret {
            namespace: claims.namespace.clone(),
            name: claims.secret.clone(),
            uid: text_of(secret, "uid").to_owned(),
        };
        self.tokens.label(&secret, LAST_USED, &today).await;
    }
}

fn is_deleted(object: &Object) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

fn text_of<'a>(object: &'a Object, name: &str) -> &'a str {
    object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default()
}
