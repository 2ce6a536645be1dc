//! [`ServiceAccounts`]: the tokens by which processes show which service account they are. A token is good while it is
//! signed, meant for this server and in its time, and while the account, and the object that it was bound to, are those
//! that it was made for. Tokens of secrets (`legacy`) have rules of their own.

mod external_signer;
mod key_set;
mod legacy;
mod metrics;
mod signed_tokens;
mod token_claims;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

pub use self::external_signer::{ExternalSigner, ExternalSignerError};
use self::key_set::KeySet;
use self::legacy::{LegacyClaims, LegacyValidator};
pub use self::legacy::{LegacySecret, LegacyTokens};
pub use self::metrics::ServiceAccountMetrics;
use self::signed_tokens::{SignedToken, SignedTokens};
use self::token_claims::{Audiences, TokenClaims, user_name};
pub use self::token_claims::{NewToken, TokenObject, TokenSubject};
use crate::rbac::quoted_list;
use crate::token_key::{algorithms, is_signed, json_web_keys, named_key, payload, unverified};
use crate::{AuthenticationNotes, Identity, SigningKey, Unauthenticated, VerifyingKey};

/// How much clocks may differ.
const LEEWAY: Duration = Duration::from_secs(60);

/// What is known about an object that a token was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenObjectState {
    /// It is there, and was marked as deleted at this time, if it was.
    There {
        /// The time.
        deleted_at: Option<SystemTime>,
    },
    /// There is another one of its name.
    Another {
        /// What tells that one from others.
        uid: String,
    },
    /// There is none of its name.
    Missing,
}

/// Knows the objects that tokens are made for.
pub trait ObjectLookup: Send + Sync {
    /// What became of the object of a core resource with this name and uid. It is asked of every request that shows a
    /// token, so that an object that is there should cost nothing.
    fn find(&self, plural: &str, namespace: Option<&str>, name: &str, uid: &str) -> TokenObjectState;
}

/// Who signs tokens, and with which keys they are checked.
#[derive(Clone)]
pub struct TokenSigner(Signer);

#[derive(Clone)]
enum Signer {
    Own(Arc<SigningKey>, Arc<KeySet>),
    External(Arc<ExternalSigner>),
}

impl TokenSigner {
    /// The server itself with this key. Tokens may be signed with any of `keys`.
    pub fn own(key: SigningKey, keys: Vec<VerifyingKey>) -> TokenSigner {
        TokenSigner(Signer::Own(Arc::new(key), Arc::new(KeySet::lasting(keys))))
    }

    /// A plugin.
    pub fn external(signer: Arc<ExternalSigner>) -> TokenSigner {
        TokenSigner(Signer::External(signer))
    }

    fn keys(&self) -> Arc<KeySet> {
        match &self.0 {
            Signer::Own(_, keys) => keys.clone(),
            Signer::External(signer) => signer.keys(),
        }
    }

    /// Keys among which there is one of this name, if there is one at all.
    async fn keys_with(&self, id: &str) -> Arc<KeySet> {
        match &self.0 {
            Signer::Own(_, keys) => keys.clone(),
            // Boxed: every request would carry the room for the call about.
            Signer::External(signer) => Box::pin(signer.keys_with(id)).await,
        }
    }

    async fn sign(&self, claims: &str) -> Result<String, String> {
        match &self.0 {
            Signer::Own(key, _) => key.sign(claims).ok_or_else(|| "the key fails".to_owned()),
            Signer::External(signer) => signer.sign(claims).await.map_err(|error| error.to_string()),
        }
    }
}

/// What tokens of service accounts are made and checked with.
pub struct ServiceAccountOptions {
    /// Who issues them: the first for new tokens, all of them for those that are shown.
    pub issuers: Vec<String>,
    /// Whom a token must be meant for to be good here; empty for the issuer.
    pub audiences: Vec<String>,
    /// Signs new tokens, and knows the keys of those that are shown.
    pub signer: TokenSigner,
    /// How long a token is good at most.
    pub max_expiration: Option<Duration>,
    /// How long tokens of pods that are meant to be replaced within the hour stay good, for programs that read theirs only
    /// once; `None` for no longer than that.
    pub extended_expiration: Option<Duration>,
    /// Where others are told to find the keys; `None` if they are told nothing.
    pub keys_uri: Option<String>,
    /// The objects that there are.
    pub objects: Arc<dyn ObjectLookup>,
    /// The secrets that hold tokens of the past.
    pub legacy: Arc<dyn LegacyTokens>,
    /// Counts.
    pub metrics: Arc<ServiceAccountMetrics>,
}

/// Makes and checks the tokens of service accounts.
#[derive(Clone)]
pub struct ServiceAccounts(Arc<Inner>);

struct Inner {
    options: ServiceAccountOptions,
    signed: SignedTokens,
}

/// Whose a token is, and for whom it is meant of those who were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// Whose it is.
    pub identity: Identity,
    /// The audiences that were asked for and that the token names.
    pub audiences: Vec<String>,
}

impl ServiceAccounts {
    /// Tokens with these keys.
    pub fn new(mut options: ServiceAccountOptions) -> ServiceAccounts {
        if options.audiences.is_empty() {
            options.audiences.extend(options.issuers.first().cloned());
        }
        if options.signer.keys().published.is_empty() {
            // Who would check tokens by themselves has nothing to do that with.
            options.keys_uri = None;
        }
        ServiceAccounts(Arc::new(Inner { options, signed: SignedTokens::default() }))
    }

    fn options(&self) -> &ServiceAccountOptions {
        &self.0.options
    }

    /// Whom tokens must be meant for to be good here.
    pub fn audiences(&self) -> &[String] {
        &self.options().audiences
    }

    /// Whether others are told how to check tokens.
    pub fn is_published(&self) -> bool {
        self.options().keys_uri.is_some()
    }

    /// What whoever wants to check tokens without asking the server needs to know, if they are told.
    pub fn discovery(&self) -> Option<serde_json::Value> {
        let keys_uri = self.options().keys_uri.as_ref()?;
        Some(serde_json::json!({
            "issuer": self.options().issuers.first(),
            "jwks_uri": keys_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms(&self.options().signer.keys().published),
        }))
    }

    /// The keys that others check tokens with, as a `JWKS`.
    pub fn json_web_keys(&self) -> serde_json::Value {
        json_web_keys(&self.options().signer.keys().published)
    }

    /// For how many seconds others may keep what they are told of keys.
    pub fn keys_max_age(&self) -> u64 {
        self.options().signer.keys().max_age()
    }

    /// How long a token is good at most.
    pub fn max_expiration(&self) -> Option<Duration> {
        self.options().max_expiration
    }

    /// How long tokens of pods stay good that are meant to be used for less, if they do.
    pub fn extended_expiration(&self) -> Option<Duration> {
        self.options().extended_expiration
    }

    /// Makes a token; or says why that is not possible.
    pub async fn issue(&self, token: NewToken) -> Result<String, String> {
        let NewToken { subject, audiences, now, lifetime, id } = token;
        let begins = seconds(now);
        let claims = payload(&TokenClaims {
            aud: Audiences::Many(audiences),
            exp: Some(begins.saturating_add(lifetime.as_secs())),
            iat: Some(begins),
            iss: self.options().issuers.first().cloned().unwrap_or_default(),
            jti: id,
            sub: user_name(&subject.namespace, &subject.serviceaccount.name),
            nbf: Some(begins),
            subject,
        });
        self.options().signer.sign(&claims.ok_or("the claims cannot be written")?).await
    }

    /// What signs the tokens of secrets: a function of the namespace, the account and the secret. `None` if the server
    /// has no key of its own.
    pub fn legacy_signer(&self) -> Option<impl Fn(&str, &TokenObject, &str) -> Option<String> + Send + Sync + use<>> {
        let Signer::Own(key, _) = &self.options().signer.0 else { return None };
        let key = key.clone();
        Some(move |namespace: &str, account: &TokenObject, secret: &str| {
            key.sign(&payload(&LegacyClaims::new(namespace, account, secret))?)
        })
    }

    /// Whose token this is, if it is good for one of `audiences`; if none are named, for this server.
    pub async fn verify(
        &self,
        token: &str,
        audiences: &[String],
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<TokenHolder, Unauthenticated> {
        let (identity, signed) = self.holder(token, audiences, now, notes).await?;
        let (named, wanted) = (self.named(&signed), self.wanted(audiences));
        let audiences = wanted.iter().filter(|audience| named.contains(audience)).cloned().collect();
        Ok(TokenHolder { identity, audiences })
    }

    /// The same for those who only ask whose it is: it is asked of every request.
    pub(crate) async fn identify(
        &self,
        token: &str,
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<Identity, Unauthenticated> {
        Ok(self.holder(token, &[], now, notes).await?.0)
    }

    /// Whom a token is meant for; those of the past are for this server.
    fn named<'a>(&'a self, signed: &'a SignedToken) -> &'a [String] {
        match signed.audiences() {
            [] => self.audiences(),
            named => named,
        }
    }

    fn wanted<'a>(&'a self, audiences: &'a [String]) -> &'a [String] {
        if audiences.is_empty() { self.audiences() } else { audiences }
    }

    /// Whose a token is, and what it says.
    async fn holder(
        &self,
        token: &str,
        audiences: &[String],
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<(Identity, Arc<SignedToken>), Unauthenticated> {
        let refused = |why: String| Unauthenticated::ServiceAccount(why.into());
        let signed = self.signed(token).await?;
        if signed.audiences().is_empty() {
            notes.annotate("authentication.k8s.io/legacy-token", signed.subject());
            self.options().metrics.legacy.inc();
        }
        let (named, wanted) = (self.named(&signed), self.wanted(audiences));
        if !wanted.iter().any(|audience| named.contains(audience)) {
            let (named, wanted) = (quoted_list(named), quoted_list(wanted));
            return Err(refused(format!("token audiences {named} is invalid for the target audiences {wanted}")));
        }
        let identity = match &*signed {
            SignedToken::Bound(claims, identity) => {
                self.validate(claims, now, notes).map_err(refused)?;
                identity.clone()
            }
            SignedToken::Legacy(claims) => {
                let ServiceAccountOptions { legacy, metrics, .. } = self.options();
                let validator = LegacyValidator { tokens: legacy, metrics };
                Box::pin(validator.validate(token, claims, now, notes)).await.map_err(refused)?
            }
        };
        Ok((identity, signed))
    }

    /// What a token says that one of the keys signed.
    async fn signed(&self, token: &str) -> Result<Arc<SignedToken>, Unauthenticated> {
        #[derive(Deserialize)]
        struct Issued {
            #[serde(default)]
            iss: String,
        }
        let digest = SignedTokens::digest(token);
        let ServiceAccountOptions { signer, issuers, .. } = self.options();
        if let Some(known) = self.0.signed.recall(&digest, signer.keys().generation) {
            return Ok(known);
        }
        let Issued { iss } = unverified(token).ok_or(Unauthenticated::Token)?;
        // Tokens of other issuers are somebody else's to check.
        if iss != legacy::ISSUER && !issuers.contains(&iss) {
            return Err(Unauthenticated::Token);
        }
        let refused = |why: &str| Unauthenticated::ServiceAccount(why.into());
        let key = named_key(token).ok_or(Unauthenticated::Token)?;
        let keys = signer.keys_with(&key).await;
        if !keys.knows(&key) {
            return Err(refused("invalid signature, no keys found"));
        }
        if !is_signed(token, &keys.keys) {
            return Err(refused("go-jose/go-jose: error in cryptographic primitive"));
        }
        let signed = if iss == legacy::ISSUER {
            unverified(token).map(SignedToken::Legacy)
        } else {
            unverified(token).map(|claims: TokenClaims| {
                let identity = claims.identity();
                SignedToken::Bound(Box::new(claims), identity)
            })
        };
        let signed = Arc::new(signed.ok_or_else(|| refused("the claims cannot be read"))?);
        self.0.signed.remember(digest, keys.generation, &signed);
        Ok(signed)
    }

    /// Whether a token that was asked for still counts (`validator.Validate`).
    fn validate(&self, claims: &TokenClaims, now: SystemTime, notes: &mut AuthenticationNotes) -> Result<(), String> {
        let late = seconds(now).saturating_sub(LEEWAY.as_secs());
        let early = seconds(now).saturating_add(LEEWAY.as_secs());
        if claims.nbf.is_some_and(|begins| begins > early) {
            return Err("service account token is not valid yet".to_owned());
        }
        if claims.exp.is_some_and(|ends| ends < late) {
            return Err("service account token has expired".to_owned());
        }
        if claims.iat.is_some_and(|issued| issued > early) {
            return Err("service account token is issued in the future".to_owned());
        }
        self.check_objects(&claims.subject, now)?;
        if let Some(after) = claims.subject.warnafter.filter(|after| *after != 0) {
            if seconds(now) > after {
                let late = seconds(now) - after;
                let note = format!("subject: {}, seconds after warning threshold: {late}", claims.sub);
                notes.annotate("authentication.k8s.io/stale-token", note);
                self.options().metrics.stale.inc();
            } else {
                self.options().metrics.valid.inc();
            }
        }
        Ok(())
    }

    /// Whether all that the token depends on is still what it was.
    fn check_objects(&self, subject: &TokenSubject, now: SystemTime) -> Result<(), String> {
        let TokenSubject { namespace, serviceaccount: account, .. } = subject;
        let objects = &self.options().objects;
        let is_gone = |deleted: Option<SystemTime>| deleted.is_some_and(|deleted| deleted + LEEWAY < now);
        match objects.find("serviceaccounts", Some(namespace), &account.name, &account.uid) {
            TokenObjectState::There { deleted_at } if is_gone(deleted_at) => {
                return Err(format!("service account {namespace}/{} has been deleted", account.name));
            }
            TokenObjectState::There { .. } => {}
            TokenObjectState::Another { uid } => {
                return Err(format!("service account UID ({uid}) does not match claim ({})", account.uid));
            }
            TokenObjectState::Missing => return Err(format!("serviceaccounts {:?} not found", account.name)),
        }
        let node = subject.node.as_ref().filter(|_| subject.pod.is_none());
        let bound = [
            ("secret", "secrets", Some(&**namespace), subject.secret.as_ref()),
            ("pod", "pods", Some(&**namespace), subject.pod.as_ref()),
            ("node", "nodes", None, node),
        ];
        for (kind, plural, namespace, object) in bound {
            let Some(object) = object else { continue };
            match objects.find(plural, namespace, &object.name, &object.uid) {
                TokenObjectState::There { deleted_at } if !is_gone(deleted_at) => {}
                TokenObjectState::Another { uid } => {
                    let own = &object.uid;
                    return Err(format!("{kind} UID ({uid}) does not match service account {kind} ref claim ({own})"));
                }
                TokenObjectState::There { .. } | TokenObjectState::Missing => {
                    return Err("service account token has been invalidated".to_owned());
                }
            }
        }
        Ok(())
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Debug for ServiceAccounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccounts").field("issuers", &self.options().issuers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
