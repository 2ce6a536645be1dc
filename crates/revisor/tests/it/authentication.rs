//! Who is asking, by those who are not in the server itself: issuers of tokens, webhooks, bootstrap tokens.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::{Server, eventually};
use crate::outsider::Outsider;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Keys with the names by which tokens say that they signed them.
type Keys = Arc<Mutex<Vec<(String, EcdsaKeyPair)>>>;

/// An issuer of tokens with a key that can be replaced.
struct Issuer {
    outsider: Outsider,
    keys: Keys,
}

impl Issuer {
    async fn start() -> Issuer {
        let keys = Keys::default();
        let (shown, url) = (keys.clone(), Arc::new(Mutex::new(String::new())));
        let told = url.clone();
        let outsider = Outsider::start(move |path, _| match path {
            "/.well-known/openid-configuration" => {
                let url = told.lock().expect("nobody panics with it");
                json!({"issuer": &*url, "jwks_uri": format!("{url}/keys?all=1")})
            }
            "/keys" => {
                let keys = shown.lock().expect("nobody panics with it");
                let key = |(id, pair): &(String, EcdsaKeyPair)| {
                    let point = pair.public_key().as_ref();
                    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
                    json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": text(&point[1..33]), "y": text(&point[33..])})
                };
                json!({"keys": keys.iter().map(key).collect::<Vec<_>>()})
            }
            // Where tokens of others say that groups are.
            "/groups" => {
                let url = told.lock().expect("nobody panics with it");
                Value::from(sign(&shown, &url, json!({"roles": ["far", "away"]})))
            }
            _ => json!({}),
        })
        .await;
        url.lock().expect("nobody panics with it").clone_from(&outsider.url);
        let issuer = Issuer { outsider, keys };
        issuer.replace_key("one");
        issuer
    }

    fn replace_key(&self, id: &str) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("keys can be made");
        *self.keys.lock().expect("nobody panics with it") = vec![(id.to_owned(), pair)];
    }

    fn token(&self, claims: Value) -> String {
        sign(&self.keys, &self.outsider.url, claims)
    }

    fn configuration(&self, more: Value) -> String {
        let mut jwt = json!({
            "issuer": {"url": self.outsider.url, "audiences": ["cluster"], "certificateAuthority": self.outsider.authority},
            "claimMappings": {
                "username": {"expression": "'oidc:' + claims.sub"},
                "groups": {"claim": "roles", "prefix": "oidc:"},
                "uid": {"claim": "sub"},
                "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
            },
            "claimValidationRules": [{"expression": "claims.tenant != 'evil'", "message": "no evil tenants"}],
            "userValidationRules": [{"expression": "!user.username.startsWith('oidc:system:')"}],
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            jwt[name] = value.clone();
        }
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]})
            .to_string()
    }
}

/// A token of an issuer with these claims beside the usual ones.
fn sign(keys: &Keys, issuer: &str, claims: Value) -> String {
    let keys = keys.lock().expect("nobody panics with it");
    let (id, pair) = keys.first().expect("there is a key");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("is later").as_secs();
    let mut all = json!({"iss": issuer, "aud": "cluster", "exp": now + 600, "iat": now});
    for (name, value) in claims.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&json!({"alg": "ES256", "kid": id})), part(&all));
    let signature = pair.sign(&SystemRandom::new(), message.as_bytes()).expect("can be signed");
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

async fn who(server: &Server, token: &str) -> Result<Value, u16> {
    let reply = Client::new(server.kubeconfig.clone()).with_token(token).post(WHO, &json!({})).await;
    if reply.code == 201 { Ok(reply.json()["status"]["userInfo"].clone()) } else { Err(reply.code) }
}

fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("can be written");
    std::fs::rename(new, path).expect("can be renamed");
}

#[tokio::test]
async fn tokens_of_an_issuer_are_good_while_its_keys_and_its_rules_say_so() {
    let issuer = Issuer::start().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("authentication.yaml");
    write(&path, &issuer.configuration(json!({})));
    let server = Server::start(&[&format!("--authentication-config={}", path.display())]).await;
    let jane = || json!({"sub": "jane", "roles": ["dev", "ops"], "tenant": "acme", "jti": "7"});
    let user = eventually(|| async { who(&server, &issuer.token(jane())).await.ok() }).await;
    assert_eq!(user["username"], "oidc:jane");
    assert_eq!(user["uid"], "jane");
    assert_eq!(user["groups"], json!(["oidc:dev", "oidc:ops", "system:authenticated"]));
    assert_eq!(
        user["extra"],
        json!({"example.com/tenant": ["acme"], "authentication.kubernetes.io/credential-id": ["JTI=7"]})
    );
    for (name, claims) in [
        ("of an evil tenant", json!({"sub": "jane", "tenant": "evil"})),
        ("for somebody else", json!({"sub": "jane", "tenant": "acme", "aud": "others"})),
        ("of the past", json!({"sub": "jane", "tenant": "acme", "exp": 1})),
        ("in the name of the system", json!({"sub": "system:admin", "tenant": "acme"})),
        ("without a name", json!({"tenant": "acme"})),
        ("of another issuer", json!({"sub": "jane", "tenant": "acme", "iss": "https://elsewhere"})),
    ] {
        assert_eq!(who(&server, &issuer.token(claims)).await, Err(401), "{name}");
    }
    let mut forged = issuer.token(jane());
    forged.truncate(forged.len() - 4);
    assert_eq!(who(&server, &format!("{forged}AAAA")).await, Err(401));

    // The issuer has a new key, and then the file another rule: a wrong one first, which changes nothing.
    issuer.replace_key("two");
    eventually(|| async { who(&server, &issuer.token(jane())).await.ok() }).await;
    write(&path, &issuer.configuration(json!({"claimMappings": {"username": {"expression": "nonsense("}}})));
    let failures = || async {
        let text = String::from_utf8_lossy(&server.client().get("/metrics").await.expect(200).body).into_owned();
        let name = "apiserver_authentication_config_controller_automatic_reloads_total";
        text.lines().any(|line| line.starts_with(name) && line.contains("failure")).then_some(())
    };
    eventually(failures).await;
    who(&server, &issuer.token(jane())).await.expect("the old rules stay");
    let mapping = json!({"claimMappings": {"username": {"claim": "sub", "prefix": "new:"}}, "userValidationRules": []});
    write(&path, &issuer.configuration(mapping));
    let renamed =
        || async { who(&server, &issuer.token(jane())).await.ok().filter(|user| user["username"] == "new:jane") };
    eventually(renamed).await;
}

#[tokio::test]
async fn flags_name_an_issuer_a_webhook_and_bootstrap_tokens() {
    let issuer = Issuer::start().await;
    let reviewer = Outsider::start(|_, review| {
        let user = json!({"username": "hooked", "groups": ["a"], "extra": {"k": ["v"]}});
        let is_known = review["spec"]["token"] == "known-to-the-webhook";
        json!({
            "apiVersion": review["apiVersion"], "kind": "TokenReview",
            "status": if is_known { json!({"authenticated": true, "user": user}) } else { json!({"authenticated": false}) },
        })
    })
    .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (authority, kubeconfig) = (folder.path().join("ca.pem"), folder.path().join("hook.yaml"));
    write(&authority, &issuer.outsider.authority);
    write(&kubeconfig, &reviewer.kubeconfig("/review"));
    let server = Server::start(&[
        &format!("--oidc-issuer-url={}", issuer.outsider.url),
        "--oidc-client-id=cluster",
        &format!("--oidc-ca-file={}", authority.display()),
        "--oidc-signing-algs=ES256",
        "--oidc-groups-claim=roles",
        "--oidc-required-claim=tenant=acme",
        &format!("--authentication-token-webhook-config-file={}", kubeconfig.display()),
        "--enable-bootstrap-token-auth",
    ])
    .await;
    let user =
        eventually(|| async { who(&server, &issuer.token(json!({"sub": "jane", "tenant": "acme"}))).await.ok() }).await;
    assert_eq!(user["username"], format!("{}#jane", issuer.outsider.url));
    assert_eq!(who(&server, &issuer.token(json!({"sub": "jane", "tenant": "other"}))).await, Err(401));
    let user = who(&server, "known-to-the-webhook").await.expect("is known");
    assert_eq!((&user["username"], &user["extra"]), (&json!("hooked"), &json!({"k": ["v"]})));
    assert_eq!(who(&server, "known-to-nobody").await, Err(401));

    let data: Value = [
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-authentication", "true"),
        ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), json!(STANDARD.encode(value))))
    .collect::<serde_json::Map<_, _>>()
    .into();
    let secret =
        json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": data});
    server.client().post("/api/v1/namespaces/kube-system/secrets", &secret).await.expect(201);
    let user = who(&server, "abcdef.0123456789abcdef").await.expect("is known");
    assert_eq!(user["username"], "system:bootstrap:abcdef");
    assert_eq!(who(&server, "abcdef.0123456789abcdee").await, Err(401));

    // Tokens that say nothing about whom they are for, or name an issuer's own client, are for the server.
    let own = json!(["https://kubernetes.default.svc.cluster.local"]);
    let reviewed = async |token: &str, audiences: &Value| {
        let review = json!({"spec": {"token": token, "audiences": audiences}});
        let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
        server.client().post(reviews, &review).await.expect(201).json()["status"].clone()
    };
    let oidc = issuer.token(json!({"sub": "jane", "tenant": "acme"}));
    for token in [&*oidc, "abcdef.0123456789abcdef", "known-to-the-webhook"] {
        for audiences in [json!([]), own.clone(), json!(["elsewhere", own[0]])] {
            let status = reviewed(token, &audiences).await;
            assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &own), "{token} {audiences}");
        }
        let status = reviewed(token, &json!(["cluster"])).await;
        assert_eq!((&status["authenticated"], &status["error"]), (&Value::Null, &json!("invalid bearer token")));
    }
    // What is asked about is what somebody would send as a header.
    for (token, want) in [
        ("abcdef.0123456789abcdef\n", json!("system:bootstrap:abcdef")),
        ("abcdef.0123456789abcdef and more", json!("system:bootstrap:abcdef")),
        (" abcdef.0123456789abcdef", json!("system:anonymous")),
    ] {
        assert_eq!(reviewed(token, &json!([])).await["user"]["username"], want, "{token:?}");
    }
    // Why a token is not good is told as in the original.
    for (claims, want) in [
        (json!({"tenant": "acme"}), "oidc: parse username claims \"sub\": claim not present"),
        (json!({"sub": "jane"}), "oidc: required claim tenant not present in ID token"),
        (
            json!({"sub": "jane", "tenant": "other"}),
            "oidc: required claim tenant value does not match. Got = other, want = acme",
        ),
        (
            json!({"sub": "jane", "exp": 1}),
            "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)",
        ),
        (
            json!({"sub": "jane", "aud": "other"}),
            "oidc: verify token: oidc: expected audience in [\"cluster\"] got [\"other\"]",
        ),
    ] {
        let status = reviewed(&issuer.token(claims), &json!([])).await;
        assert_eq!(status["error"], format!("[invalid bearer token, {want}]"));
    }
}

#[tokio::test]
async fn groups_are_got_from_where_a_token_says_that_they_are() {
    let (issuer, elsewhere) = (Issuer::start().await, Issuer::start().await);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("authentication.yaml");
    let both = format!("{}{}", issuer.outsider.authority, elsewhere.outsider.authority);
    let trusted = json!({"url": issuer.outsider.url, "audiences": ["cluster"], "certificateAuthority": both});
    write(&path, &issuer.configuration(json!({"issuer": trusted})));
    let server = Server::start(&[&format!("--authentication-config={}", path.display())]).await;
    let token = |names: Value, sources: Value| {
        issuer.token(json!({"sub": "jane", "tenant": "acme", "_claim_names": names, "_claim_sources": sources}))
    };
    let endpoint = |path: &str| json!({"endpoint": format!("{}{path}", elsewhere.outsider.url), "access_token": "x"});
    let far = token(json!({"roles": "src"}), json!({"src": endpoint("/groups")}));
    let user = eventually(|| async { who(&server, &far).await.ok() }).await;
    assert_eq!(user["groups"], json!(["oidc:far", "oidc:away", "system:authenticated"]));
    for (name, names, sources, want) in [
        ("another claim", json!({"other": "src"}), json!({"src": endpoint("/groups")}), true),
        ("a claim that is there", json!({"roles": "src"}), json!({"src": {"JWT": "x"}}), true),
        ("no source", json!({"roles": "src"}), json!({}), false),
        ("no such document", json!({"roles": "src"}), json!({"src": endpoint("/nothing")}), false),
        ("no names", json!("roles"), json!({"src": endpoint("/groups")}), false),
        ("no endpoints", json!({"roles": "src"}), json!({"src": 1}), false),
    ] {
        assert_eq!(who(&server, &token(names, sources)).await.is_ok(), want, "{name}");
    }
}
