//! Tokens from their making to their end, with objects that the tests own.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{Object, Value, parse_json};

use super::*;
use crate::{BoxFuture, SecretLookup};

struct Objects;

impl ObjectLookup for Objects {
    fn find(&self, plural: &str, namespace: Option<&str>, name: &str, uid: &str) -> TokenObjectState {
        let known = match (plural, namespace, name) {
            ("serviceaccounts", Some("n"), "a") => "1",
            ("pods", Some("n"), "p") => "2",
            ("secrets", Some("n"), "going") => "3",
            ("nodes", None, "m") => "4",
            _ => return TokenObjectState::Missing,
        };
        match known == uid {
            true => TokenObjectState::There { deleted_at: (name == "going").then_some(UNIX_EPOCH) },
            false => TokenObjectState::Another { uid: known.to_owned() },
        }
    }
}

/// One secret, one account, and the labels that were put on the secret.
#[derive(Default)]
struct Secrets {
    secret: Mutex<Object>,
    account: Mutex<Object>,
    labels: Mutex<Vec<String>>,
}

impl SecretLookup for Secrets {
    fn secret(&self, namespace: &str, name: &str) -> Option<Object> {
        (namespace == "n" && name == "s").then(|| self.secret.lock().expect("no holder panics").clone())
    }
}

impl LegacyTokens for Secrets {
    fn account(&self, namespace: &str, name: &str) -> Option<Object> {
        (namespace == "n" && name == "a").then(|| self.account.lock().expect("no holder panics").clone())
    }

    fn label<'a>(&'a self, secret: &'a LegacySecret, label: &'a str, value: &'a str) -> BoxFuture<'a, ()> {
        let LegacySecret { namespace, name, uid } = secret;
        let told = format!("{namespace}/{name}/{uid} {label}={value}");
        self.labels.lock().expect("no holder panics").push(told);
        Box::pin(std::future::ready(()))
    }
}

fn json(text: &str) -> Object {
    match parse_json(text.as_bytes()).expect("is JSON").value {
        Value::Object(object) => object,
        other => panic!("{other:?} is no object"),
    }
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000)
}

fn accounts() -> ServiceAccounts {
    accounts_with(Arc::new(Secrets::default()))
}

fn accounts_with(legacy: Arc<Secrets>) -> ServiceAccounts {
    let pem = rcgen::KeyPair::generate().expect("keys can be made").serialize_pem();
    ServiceAccounts::new(ServiceAccountOptions {
        issuers: vec!["https://issuer".to_owned()],
        audiences: Vec::new(),
        signer: TokenSigner::own(
            SigningKey::from_pem(pem.as_bytes()).expect("is a key"),
            VerifyingKey::from_pem(pem.as_bytes()).expect("is a key"),
        ),
        max_expiration: None,
        extended_expiration: None,
        keys_uri: None,
        objects: Arc::new(Objects),
        legacy,
        metrics: Arc::default(),
    })
}

async fn verify(
    accounts: &ServiceAccounts,
    token: &str,
    audiences: &[String],
    now: SystemTime,
) -> Result<TokenHolder, Unauthenticated> {
    accounts.verify(token, audiences, now, &mut AuthenticationNotes::default()).await
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

#[tokio::test]
async fn a_token_shows_its_account() {
    let accounts = accounts();
    let made = accounts.issue(token(|token| token.subject.pod = Some(object("p", "2")))).await.expect("is made");
    let holder = verify(&accounts, &made, &[], now()).await.expect("is good");
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

#[tokio::test]
async fn a_token_is_good_while_all_that_it_is_for_is_there() {
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
        ("of a secret on its way out", |token| token.subject.secret = Some(object("going", "3")), &none, now(), false),
        ("of a node", |token| token.subject.node = Some(object("m", "4")), &none, now(), true),
        ("of a node that is gone", |token| token.subject.node = Some(object("o", "4")), &none, now(), false),
    ] {
        let made = accounts.issue(token(change)).await.expect("is made");
        let verified = verify(&accounts, &made, audiences, at).await;
        assert_eq!(verified.is_ok(), is_good, "{name}: {verified:?}");
    }
}

#[tokio::test]
async fn tokens_of_others_are_not_for_us() {
    let other = accounts().issue(token(|_| ())).await.expect("is made");
    assert!(matches!(verify(&accounts(), &other, &[], now()).await, Err(Unauthenticated::ServiceAccount(_))));
    assert_eq!(verify(&accounts(), "nonsense", &[], now()).await, Err(Unauthenticated::Token));
}
#[tokio::test]
async fn a_token_that_should_be_replaced_is_noted() {
    let accounts = accounts();
    let made = accounts.issue(token(|token| token.subject.warnafter = Some(1_000_000))).await.expect("is made");
    for (after, want) in
        [(0, None), (7, Some("subject: system:serviceaccount:n:a, seconds after warning threshold: 7"))]
    {
        let mut notes = AuthenticationNotes::default();
        let at = now() + Duration::from_secs(after);
        accounts.verify(&made, &[], at, &mut notes).await.expect("is good");
        let note = notes.annotations.first().map(|(key, value)| (*key, &**value));
        assert_eq!(note, want.map(|note| ("authentication.k8s.io/stale-token", note)));
    }
    let metrics = &accounts.options().metrics;
    assert_eq!((metrics.valid.get(), metrics.stale.get()), (1, 1));
}

#[tokio::test]
async fn a_token_of_a_secret_is_good_while_the_secret_holds_it() {
    let secrets = Arc::new(Secrets::default());
    let accounts = accounts_with(secrets.clone());
    let sign = accounts.legacy_signer().expect("the key is its own");
    let made = sign("n", &object("a", "1"), "s").expect("is made");
    let with_token = |labels: &str, token: &str, deleted: &str| {
        let data = STANDARD.encode(token);
        format!(r#"{{"metadata":{{"uid":"5","labels":{{{labels}}}{deleted}}},"data":{{"token":"{data}"}}}}"#)
    };
    let secret = |labels: &str| with_token(labels, &made, "");
    let account = r#"{"metadata":{"uid":"1"}}"#;
    let today = r#""kubernetes.io/legacy-token-last-used":"1970-01-12""#;
    let deleted = r#","deletionTimestamp":"1970-01-01T00:00:00Z""#;
    let label = "n/s/5 kubernetes.io/legacy-token-last-used=1970-01-12";
    let manual = ("authentication.k8s.io/legacy-token-manual-secret", "s");
    let legacy = ("authentication.k8s.io/legacy-token", "system:serviceaccount:n:a");
    let generated = r#"{"metadata":{"uid":"1"},"secrets":[{"name":"s"}]}"#;
    for (name, secret, account, want, labels, annotations) in [
        ("good", secret(""), account, Ok(()), &[label][..], vec![legacy, manual]),
        ("shown today", secret(today), account, Ok(()), &[], vec![legacy, manual]),
        (
            "of the account itself",
            secret(today),
            generated,
            Ok(()),
            &[],
            vec![legacy, ("authentication.k8s.io/legacy-token-autogenerated-secret", "s")],
        ),
        (
            "replaced",
            with_token("", "another", ""),
            account,
            Err("Token does not match server's copy"),
            &[],
            vec![legacy],
        ),
        ("going", with_token("", &made, deleted), account, Err("Token has been invalidated"), &[], vec![legacy]),
        (
            "of an account of the past",
            secret(""),
            r#"{"metadata":{"uid":"2"}}"#,
            Err("ServiceAccount UID (2) does not match claim (1)"),
            &[],
            vec![legacy],
        ),
        (
            "marked as invalid",
            secret(r#""kubernetes.io/legacy-token-invalid-since":"1970-01-01""#),
            account,
            Err("the token in secret n/s for service account n/a has been marked invalid"),
            &[label],
            vec![legacy, ("authentication.k8s.io/legacy-token-invalidated", "s/n")],
        ),
    ] {
        *secrets.secret.lock().expect("no holder panics") = json(&secret);
        *secrets.account.lock().expect("no holder panics") = json(account);
        secrets.labels.lock().expect("no holder panics").clear();
        let mut notes = AuthenticationNotes::default();
        match (accounts.verify(&made, &[], now(), &mut notes).await, want) {
            (Ok(holder), Ok(())) => {
                assert_eq!((holder.identity.name(), holder.identity.uid()), ("system:serviceaccount:n:a", Some("1")));
                assert_eq!(holder.audiences, ["https://issuer"], "{name}");
            }
            (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{name}: {error}"),
            (got, _) => panic!("{name}: {got:?}"),
        }
        assert_eq!(*secrets.labels.lock().expect("no holder panics"), labels, "{name}");
        let noted: Vec<_> = notes.annotations.iter().map(|(key, value)| (*key, &**value)).collect();
        assert_eq!(noted, annotations, "{name}");
        assert_eq!(notes.warnings.len(), usize::from(account == generated), "{name}");
    }
    let elsewhere = accounts.verify(&made, &["other".to_owned()], now(), &mut AuthenticationNotes::default()).await;
    assert!(elsewhere.is_err(), "it is for this server only");
}

#[tokio::test]
async fn what_signed_tokens_of_secrets_say_is_not_taken_on_trust() {
    let accounts = accounts();
    let Signer::Own(key, _) = &accounts.options().signer.0 else { panic!("the key is its own") };
    let part = |name: &str| format!("kubernetes.io/serviceaccount/{name}");
    let whole = [
        ("sub".to_owned(), "system:serviceaccount:n:a"),
        (part("namespace"), "n"),
        (part("secret.name"), "s"),
        (part("service-account.name"), "a"),
        (part("service-account.uid"), "1"),
    ];
    let problems = [
        "sub claim is missing",
        "namespace claim is missing",
        "secretName claim is missing",
        "serviceAccountName claim is missing",
        "serviceAccountUID claim is missing",
    ];
    for (missing, problem) in problems.into_iter().enumerate() {
        let mut claims = serde_json::json!({"iss": "kubernetes/serviceaccount"});
        for (_, (name, value)) in whole.iter().enumerate().filter(|(at, _)| *at != missing) {
            claims[name] = (*value).into();
        }
        let made = key.sign(&payload(&claims).expect("can be written")).expect("is signed");
        let error = verify(&accounts, &made, &[], now()).await.expect_err("is not good");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
