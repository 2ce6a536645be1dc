//! [`Asking`]: who is asking, and may they; by certificate and by the token of a service account, among many bindings.

use std::pin::pin;
use std::sync::{Arc, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use revisor_auth::{
    Anonymous, Attributes, AuthenticationNotes, Authenticator, AuthorizationModes, Authorizer, Binding, BoxFuture,
    ClientTrust, Decision, Grants, Identity, LegacySecret, LegacyTokens, NewToken, ObjectLookup, Peer, PeerIdentity,
    PeerVerifier, PolicyRule, ResourceAttributes, RoleKind, RoleRef, SecretLookup, ServiceAccountOptions,
    ServiceAccounts, SigningKey, Subject, TokenFile, TokenObject, TokenObjectState, TokenSigner, TokenSubject,
    VerifyingKey,
};
use revisor_object::Object;
use rustls_pki_types::CertificateDer;

/// How many bindings there are.
pub const BINDINGS: usize = 10_000;

const PATH: &str = "/api/v1/namespaces/team-7/configmaps/c";
const NAMESPACE: &str = "team-7";

/// A server's part that knows and allows, and requests of two who may.
pub struct Asking {
    authenticator: Authenticator,
    authorizer: Authorizer,
    certified: Peer,
    bearer: HeaderMap,
    now: SystemTime,
}

impl Asking {
    /// With as many bindings as there may be.
    pub fn new() -> Result<Asking> {
        let now = SystemTime::now();
        let accounts = service_accounts()?;
        let token = in_place(accounts.issue(new_token(now))).map_err(anyhow::Error::msg)?;
        let mut bearer = HeaderMap::new();
        bearer.insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}"))?);
        let (tokens, _) = TokenFile::parse("").map_err(anyhow::Error::msg)?;
        let modes: AuthorizationModes = "RBAC".parse()?;
        Ok(Asking {
            authenticator: Authenticator::new(tokens, Anonymous::Nowhere).with_service_accounts(accounts),
            authorizer: Authorizer::new(modes, Arc::new(RwLock::new(grants()))),
            certified: certified()?,
            bearer,
            now,
        })
    }

    /// A request on a connection whose client has shown a certificate; whether it may go on.
    pub fn by_certificate(&self) -> bool {
        self.ask(&HeaderMap::new(), &self.certified.identity(self.now))
    }

    /// A request with the token of a service account, which is bound to a pod.
    pub fn by_token(&self) -> bool {
        self.ask(&self.bearer, &PeerIdentity::Unknown)
    }

    fn ask(&self, headers: &HeaderMap, peer: &PeerIdentity) -> bool {
        let mut notes = AuthenticationNotes::default();
        let asking = self.authenticator.authenticate(PATH, headers, peer, &PeerIdentity::Unknown, self.now, &mut notes);
        in_place(asking).is_ok_and(|user| self.may(&user))
    }

    fn may(&self, user: &Identity) -> bool {
        let resource = ResourceAttributes {
            version: "v1",
            resource: "configmaps",
            namespace: Some(NAMESPACE),
            name: Some("c"),
            ..ResourceAttributes::default()
        };
        let attributes = Attributes { user, verb: "get", path: PATH, resource: Some(resource) };
        in_place(self.authorizer.authorize_request(&attributes)) == Decision::Allow
    }
}

/// What a future yields that waits for nobody.
fn in_place<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nobody is waited for"),
    }
}

/// Roles and bindings of many, half of the whole cluster and half of a thousand namespaces.
fn grants() -> Grants {
    let mut grants = Grants::default();
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let rule = |resources: &[&str]| PolicyRule {
        verbs: texts(&["get", "list", "watch"]),
        groups: texts(&[""]),
        resources: texts(resources),
        ..PolicyRule::default()
    };
    grants.put_role(None, "others", vec![rule(&["nodes"]), rule(&["pods", "services"]), rule(&["secrets"])]);
    grants.put_role(None, "reader", vec![rule(&["pods"]), rule(&["configmaps"])]);
    let role = |name: &str| RoleRef { kind: RoleKind::ClusterRole, name: name.to_owned() };
    for at in 0..BINDINGS {
        let namespace = (at % 2 == 1).then(|| format!("team-{}", at % 1000));
        let subjects = vec![Subject::User(format!("user-{at}")), Subject::Group(format!("group-{at}"))];
        grants.put_binding(Binding::new(namespace.as_deref(), &format!("b-{at}"), role("others"), subjects));
    }
    let account = Subject::ServiceAccount { namespace: Some(NAMESPACE.to_owned()), name: "robot".to_owned() };
    let everybody = vec![Subject::Group("system:authenticated".to_owned())];
    grants.put_binding(Binding::new(None, "everybody", role("others"), everybody));
    let readers = vec![Subject::User("carl".to_owned()), account];
    grants.put_binding(Binding::new(Some(NAMESPACE), "readers", role("reader"), readers));
    grants
}

/// A client with a certificate of an authority that is trusted.
fn certified() -> Result<Peer> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let trusted = CertificateDer::from(authority.self_signed(&key)?.der().to_vec());
    let mut client = CertificateParams::default();
    client.distinguished_name.push(DnType::CommonName, "carl");
    client.distinguished_name.push(DnType::OrganizationName, "readers");
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let shown = client.signed_by(&KeyPair::generate()?, &Issuer::new(authority, key))?;
    let verifier = PeerVerifier::new(ClientTrust::new(vec![trusted])?);
    Ok(verifier.peer(&[CertificateDer::from(shown.der().to_vec())]))
}

fn service_accounts() -> Result<ServiceAccounts> {
    let pem = KeyPair::generate()?.serialize_pem();
    let (key, keys) = (SigningKey::from_pem(pem.as_bytes())?, VerifyingKey::from_pem(pem.as_bytes())?);
    if keys.is_empty() {
        bail!("a key that was made cannot be read");
    }
    Ok(ServiceAccounts::new(ServiceAccountOptions {
        issuers: vec!["https://kubernetes.default.svc.cluster.local".to_owned()],
        audiences: Vec::new(),
        signer: TokenSigner::own(key, keys),
        max_expiration: None,
        extended_expiration: None,
        keys_uri: None,
        objects: Arc::new(Everything),
        legacy: Arc::new(Everything),
        metrics: Arc::default(),
    }))
}

fn new_token(now: SystemTime) -> NewToken {
    let object =
        |name: &str| TokenObject { name: name.to_owned(), uid: "0f1c1d0e-1c5e-4f62-9d0c-2a9e8d6f5b11".to_owned() };
    NewToken {
        subject: TokenSubject {
            namespace: NAMESPACE.to_owned(),
            serviceaccount: object("robot"),
            pod: Some(object("robot-5d8f7b9c4-x2x2x")),
            node: Some(object("node-1")),
            ..TokenSubject::default()
        },
        audiences: vec!["https://kubernetes.default.svc.cluster.local".to_owned()],
        now,
        lifetime: Duration::from_secs(3600),
        id: "9c3f2f4e-7d1a-4a55-8a35-0f6f9d4f7a10".to_owned(),
    }
}

/// Every object that a token is bound to is there. What it takes a server to find them is not measured.
struct Everything;

impl ObjectLookup for Everything {
    fn find(&self, _: &str, _: Option<&str>, _: &str, _: &str) -> TokenObjectState {
        TokenObjectState::There { deleted_at: None }
    }
}

impl SecretLookup for Everything {
    fn secret(&self, _: &str, _: &str) -> Option<Object> {
        None
    }
}

impl LegacyTokens for Everything {
    fn account(&self, _: &str, _: &str) -> Option<Object> {
        None
    }

    fn label<'a>(&'a self, _: &'a LegacySecret, _: &'a str, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
