//! [`ServiceAccounts`]: the tokens by which processes show which service account they are. A token is good while it is
//! signed, meant for this server and in its time, and while the account, and the object that it was bound to, are those
//! that it was made for.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::token_key::{algorithms, is_signed, json_web_keys, unverified};
use crate::{Claims, Identity, SigningKey, Unauthenticated, VerifyingKey};

/// How much clocks may differ.
const LEEWAY: Duration = Duration::from_secs(60);

const USER_PREFIX: &str = "system:serviceaccount:";
const ALL_ACCOUNTS: &str = "system:serviceaccounts";
const EXTRA_PREFIX: &str = "authentication.kubernetes.io/";

/// What is known about an object that a token was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveObject {
    /// What tells it from others that had its name before.
    pub uid: String,
    /// When it was marked as deleted.
    pub deleted_at: Option<SystemTime>,
}

/// Knows the objects that tokens are made for.
pub trait ObjectLookup: Send + Sync {
    /// The object of a core resource with this name, if there is one.
    fn find(&self, plural: &str, namespace: Option<&str>, name: &str) -> Option<LiveObject>;
}

/// What tokens of service accounts are made and checked with.
pub struct ServiceAccountOptions {
    /// Who issues them: the first for new tokens, all of them for those that are shown.
    pub issuers: Vec<String>,
    /// Whom a token must be meant for to be good here; empty for the issuer.
    pub audiences: Vec<String>,
    /// Signs new tokens.
    pub signing_key: SigningKey,
    /// Those who may have signed the tokens that are shown.
    pub verifying_keys: Vec<VerifyingKey>,
    /// How long a token is good at most.
    pub max_expiration: Option<Duration>,
    /// Whether tokens of pods that are meant to be replaced within the hour stay good for a year, for programs that read
    /// theirs only once.
    pub extends_expiration: bool,
    /// Where others are told to find the keys; `None` if they are told nothing.
    pub keys_uri: Option<String>,
    /// The objects that there are.
    pub objects: Arc<dyn ObjectLookup>,
}

/// Makes and checks the tokens of service accounts.
#[derive(Clone)]
pub struct ServiceAccounts(Arc<ServiceAccountOptions>);

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
    /// The account.
    #[serde(default)]
    pub serviceaccount: TokenObject,
    /// The pod without which the token is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<TokenObject>,
    /// The secret without which the token is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<TokenObject>,
    /// The node of the pod; if there is no pod, the node without which the token is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<TokenObject>,
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

#[derive(Debug, Serialize, Deserialize)]
struct TokenClaims {
    #[serde(default)]
    aud: Audiences,
    exp: u64,
    #[serde(default)]
    iat: u64,
    iss: String,
    #[serde(default)]
    jti: String,
    #[serde(rename = "kubernetes.io")]
    subject: TokenSubject,
    #[serde(default)]
    nbf: u64,
    sub: String,
}

/// One audience may be written without a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Audiences {
    Many(Vec<String>),
    One(String),
}

impl Default for Audiences {
    fn default() -> Audiences {
        Audiences::Many(Vec::new())
    }
}

impl Audiences {
    fn as_slice(&self) -> &[String] {
        match self {
            Audiences::Many(audiences) => audiences,
            Audiences::One(audience) => std::slice::from_ref(audience),
        }
    }
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
        ServiceAccounts(Arc::new(options))
    }

    /// Whom tokens must be meant for to be good here.
    pub fn audiences(&self) -> &[String] {
        &self.0.audiences
    }

    /// Whether others are told how to check tokens.
    pub fn is_published(&self) -> bool {
        self.0.keys_uri.is_some()
    }

    /// What whoever wants to check tokens without asking the server needs to know, if they are told.
    pub fn discovery(&self) -> Option<serde_json::Value> {
        let keys_uri = self.0.keys_uri.as_ref()?;
        Some(serde_json::json!({
            "issuer": self.0.issuers.first(),
            "jwks_uri": keys_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms(&self.0.verifying_keys),
        }))
    }

    /// The keys that tokens are checked with, as a `JWKS`.
    pub fn json_web_keys(&self) -> serde_json::Value {
        json_web_keys(&self.0.verifying_keys)
    }

    /// How long a token is good at most.
    pub fn max_expiration(&self) -> Option<Duration> {
        self.0.max_expiration
    }

    /// Whether tokens of pods stay good for longer than they are meant to be used.
    pub fn extends_expiration(&self) -> bool {
        self.0.extends_expiration
    }

    /// Makes a token; `None` if the key fails.
    pub fn issue(&self, token: NewToken) -> Option<String> {
        let NewToken { subject, audiences, now, lifetime, id } = token;
        let account = &subject.serviceaccount.name;
        let begins = seconds(now);
        self.0.signing_key.sign(&TokenClaims {
            aud: Audiences::Many(audiences),
            exp: begins.saturating_add(lifetime.as_secs()),
            iat: begins,
            iss: self.0.issuers.first().cloned().unwrap_or_default(),
            jti: id,
            sub: format!("{USER_PREFIX}{}:{account}", subject.namespace),
            nbf: begins,
            subject,
        })
    }

    /// Whose token this is, if it is good for one of `audiences`; if none are named, for this server.
    pub fn verify(&self, token: &str, audiences: &[String], now: SystemTime) -> Result<TokenHolder, Unauthenticated> {
        let claims: TokenClaims = unverified(token).ok_or(Unauthenticated::Token)?;
        // Tokens of other issuers are somebody else's to check.
        if !self.0.issuers.contains(&claims.iss) {
            return Err(Unauthenticated::Token);
        }
        let refused = |why: String| Unauthenticated::ServiceAccount(why.into());
        if !is_signed(token, &self.0.verifying_keys) {
            return Err(refused("invalid signature".to_owned()));
        }
        let wanted = if audiences.is_empty() { self.audiences() } else { audiences };
        let named = claims.aud.as_slice();
        let meant: Vec<String> = wanted.iter().filter(|audience| named.contains(audience)).cloned().collect();
        if meant.is_empty() {
            return Err(refused(format!("token audiences {named:?} is invalid for the target audiences {wanted:?}")));
        }
        let late = seconds(now).saturating_sub(LEEWAY.as_secs());
        let early = seconds(now).saturating_add(LEEWAY.as_secs());
        if claims.exp < late {
            return Err(refused("service account token has expired".to_owned()));
        }
        if claims.nbf > early {
            return Err(refused("service account token is not valid yet".to_owned()));
        }
        self.check_objects(&claims.subject, now).map_err(refused)?;
        Ok(TokenHolder { identity: identity(claims), audiences: meant })
    }

    /// Whether all that the token depends on is still what it was.
    fn check_objects(&self, subject: &TokenSubject, now: SystemTime) -> Result<(), String> {
        let namespace = Some(&*subject.namespace);
        let account = &subject.serviceaccount;
        self.check_object("serviceaccounts", namespace, account, now)
            .ok_or_else(|| format!("serviceaccounts {:?} is not the one of the token", account.name))?;
        let node = subject.node.as_ref().filter(|_| subject.pod.is_none());
        let bound = [
            ("secrets", namespace, subject.secret.as_ref()),
            ("pods", namespace, subject.pod.as_ref()),
            ("nodes", None, node),
        ];
        for (plural, namespace, object) in bound {
            if object.is_some_and(|object| self.check_object(plural, namespace, object, now).is_none()) {
                return Err("service account token has been invalidated".to_owned());
            }
        }
        Ok(())
    }

    fn check_object(&self, plural: &str, namespace: Option<&str>, object: &TokenObject, now: SystemTime) -> Option<()> {
        let found = self.0.objects.find(plural, namespace, &object.name)?;
        let is_gone = found.deleted_at.is_some_and(|deleted| deleted + LEEWAY < now);
        (found.uid == object.uid && !is_gone).then_some(())
    }
}

fn identity(claims: TokenClaims) -> Identity {
    let TokenSubject { namespace, serviceaccount, pod, node, .. } = claims.subject;
    let mut extra = Vec::new();
    let mut add = |key: &str, value: String| {
        if !value.is_empty() {
            extra.push((format!("{EXTRA_PREFIX}{key}"), vec![value]));
        }
    };
    if !claims.jti.is_empty() {
        add("credential-id", format!("JTI={}", claims.jti));
    }
    for (object, name, uid) in [(pod, "pod-name", "pod-uid"), (node, "node-name", "node-uid")] {
        if let Some(object) = object {
            add(name, object.name);
            add(uid, object.uid);
        }
    }
    Identity::authenticated(Claims {
        name: format!("{USER_PREFIX}{namespace}:{}", serviceaccount.name),
        uid: Some(serviceaccount.uid),
        groups: vec![ALL_ACCOUNTS.to_owned(), format!("{ALL_ACCOUNTS}:{namespace}")],
        extra,
    })
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Debug for ServiceAccounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccounts").field("issuers", &self.0.issuers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Objects;

    impl ObjectLookup for Objects {
        fn find(&self, plural: &str, namespace: Option<&str>, name: &str) -> Option<LiveObject> {
            let uid = match (plural, namespace, name) {
                ("serviceaccounts", Some("n"), "a") => "1",
                ("pods", Some("n"), "p") => "2",
                ("secrets", Some("n"), "going") => "3",
                ("nodes", None, "m") => "4",
                _ => return None,
            };
            let deleted_at = (name == "going").then_some(UNIX_EPOCH);
            Some(LiveObject { uid: uid.to_owned(), deleted_at })
        }
    }

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000)
    }

    fn accounts() -> ServiceAccounts {
        let pem = rcgen::KeyPair::generate().expect("keys can be made").serialize_pem();
        ServiceAccounts::new(ServiceAccountOptions {
            issuers: vec!["https://issuer".to_owned()],
            audiences: Vec::new(),
            signing_key: SigningKey::from_pem(pem.as_bytes()).expect("is a key"),
            verifying_keys: VerifyingKey::from_pem(pem.as_bytes()).expect("is a key"),
            max_expiration: None,
            extends_expiration: true,
            keys_uri: None,
            objects: Arc::new(Objects),
        })
    }

    fn object(name: &str, uid: &str) -> TokenObject {
        TokenObject { name: name.to_owned(), uid: uid.to_owned() }
    }

    fn token(change: impl FnOnce(&mut NewToken)) -> NewToken {
        let subject =
            TokenSubject { namespace: "n".to_owned(), serviceaccount: object("a", "1"), ..TokenSubject::default() };
        let audiences = vec!["https://issuer".to_owned()];
        let lifetime = Duration::from_secs(600);
        let mut token = NewToken { subject, audiences, now: now(), lifetime, id: "id".to_owned() };
        change(&mut token);
        token
    }

    #[test]
    fn a_token_shows_its_account() {
        let accounts = accounts();
        let made = accounts.issue(token(|token| token.subject.pod = Some(object("p", "2")))).expect("is made");
        let holder = accounts.verify(&made, &[], now()).expect("is good");
        assert_eq!(holder.audiences, ["https://issuer"]);
        assert_eq!((holder.identity.name(), holder.identity.uid()), ("system:serviceaccount:n:a", Some("1")));
        let groups = ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"];
        assert_eq!(holder.identity.groups(), groups);
        let extra: Vec<_> = holder.identity.extra().iter().map(|(key, values)| (&**key, &*values[0])).collect();
        assert_eq!(
            extra,
            [
                ("authentication.kubernetes.io/credential-id", "JTI=id"),
                ("authentication.kubernetes.io/pod-name", "p"),
                ("authentication.kubernetes.io/pod-uid", "2"),
            ]
        );
    }

    #[test]
    fn a_token_is_good_while_all_that_it_is_for_is_there() {
        let accounts = accounts();
        let wanted = |name: &str| vec![name.to_owned()];
        let after = |seconds| now() + Duration::from_secs(seconds);
        let none = Vec::new();
        type Change = fn(&mut NewToken);
        for (name, change, audiences, at, is_good) in [
            ("good", (|_| ()) as Change, &none, now(), true),
            ("a moment too late", |_| (), &none, after(659), true),
            ("too late", |_| (), &none, after(661), false),
            ("too early", |_| (), &none, now() - Duration::from_secs(61), false),
            ("for somebody else", |token| token.audiences = vec!["other".to_owned()], &none, now(), false),
            ("for who asks", |token| token.audiences = vec!["other".to_owned()], &wanted("other"), now(), true),
            ("of another account", |token| token.subject.serviceaccount.uid = "9".to_owned(), &none, now(), false),
            ("of no account", |token| token.subject.serviceaccount.name = "b".to_owned(), &none, now(), false),
            ("of a pod", |token| token.subject.pod = Some(object("p", "2")), &none, now(), true),
            ("of a pod of the past", |token| token.subject.pod = Some(object("p", "1")), &none, now(), false),
            (
                "of a secret on its way out",
                |token| token.subject.secret = Some(object("going", "3")),
                &none,
                now(),
                false,
            ),
            ("of a node", |token| token.subject.node = Some(object("m", "4")), &none, now(), true),
            ("of a node that is gone", |token| token.subject.node = Some(object("o", "4")), &none, now(), false),
        ] {
            let made = accounts.issue(token(change)).expect("is made");
            let verified = accounts.verify(&made, audiences, at);
            assert_eq!(verified.is_ok(), is_good, "{name}: {verified:?}");
        }
    }

    #[test]
    fn tokens_of_others_are_not_for_us() {
        let other = accounts().issue(token(|_| ())).expect("is made");
        assert!(matches!(accounts().verify(&other, &[], now()), Err(Unauthenticated::ServiceAccount(_))));
        assert_eq!(accounts().verify("nonsense", &[], now()), Err(Unauthenticated::Token));
    }
}
