//! Tokens of service accounts that a plugin signs (`--service-account-signing-endpoint`).

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use revisor_grpc::wire::{Writer, read};
use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::harness::{Process, Server, eventually};
use crate::plugin::{Answer, Plugin};

const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/robot/token";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// What the signer has, and how it behaves.
struct Signer {
    /// The last one signs. The last member says whether others are not told of it.
    keys: Vec<(String, EcdsaKeyPair, bool)>,
    max_expiration: i64,
    refresh: i64,
    algorithm: &'static str,
}

impl Signer {
    fn new() -> Signer {
        let mut signer = Signer { keys: Vec::new(), max_expiration: 24 * 3600, refresh: 1, algorithm: "ES256" };
        signer.add("one", false);
        signer
    }

    fn add(&mut self, id: &str, is_unpublished: bool) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("keys can be made");
        self.keys.push((id.to_owned(), pair, is_unpublished));
    }

    fn answer(&self, method: &str, request: &[u8]) -> Answer {
        match method {
            "/v1.ExternalJWTSigner/Sign" => {
                let (_, claims) = read(request).next().expect("there are claims").expect("is a message");
                let claims = claims.as_text().expect("is a text");
                let Some((id, pair, _)) = self.keys.last() else { return Err((9, "no key")) };
                let header = json!({"alg": self.algorithm, "kid": id, "typ": "JWT"}).to_string();
                let header = URL_SAFE_NO_PAD.encode(header);
                let signature = pair.sign(&SystemRandom::new(), format!("{header}.{claims}").as_bytes());
                let signature = URL_SAFE_NO_PAD.encode(signature.expect("can be signed").as_ref());
                Ok(Writer::new().bytes(1, header).bytes(2, signature).finish())
            }
            "/v1.ExternalJWTSigner/FetchKeys" => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("is later").as_secs();
                let timestamp = Writer::new().number(1, now).finish();
                let mut keys = Writer::new();
                for (id, pair, is_unpublished) in &self.keys {
                    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().expect("has a public half");
                    let key = Writer::new().bytes(1, id).bytes(2, public.as_ref()).number(3, (*is_unpublished).into());
                    keys = keys.bytes(1, key.finish());
                }
                Ok(keys.bytes(2, timestamp).number(3, self.refresh as u64).finish())
            }
            "/v1.ExternalJWTSigner/Metadata" => Ok(Writer::new().number(1, self.max_expiration as u64).finish()),
            _ => Err((12, "unknown method")),
        }
    }
}

/// A signer that runs, and can be changed.
struct Running {
    signer: Arc<Mutex<Signer>>,
    plugin: Plugin,
}

impl Running {
    fn start(signer: Signer) -> Running {
        let signer = Arc::new(Mutex::new(signer));
        let asked = signer.clone();
        let plugin =
            Plugin::start(move |method, request| asked.lock().expect("no holder panics").answer(method, request));
        Running { signer, plugin }
    }

    fn signer(&self) -> MutexGuard<'_, Signer> {
        self.signer.lock().expect("no holder panics")
    }

    fn flag(&self) -> String {
        format!("--service-account-signing-endpoint={}", self.plugin.path().display())
    }
}

async fn request(client: &Client, seconds: u64) -> Reply {
    client.post(TOKEN, &json!({"spec": {"expirationSeconds": seconds}})).await
}

async fn token(client: &Client) -> String {
    let reply = request(client, 3600).await.expect(201).json();
    reply["status"]["token"].as_str().expect("there is a token").to_owned()
}

/// Whether the server knows whose token this is.
async fn is_good(server: &Server, token: &str) -> bool {
    let reply = Client::new(server.kubeconfig.clone()).with_token(token).post(WHO, &json!({})).await;
    if reply.code == 201 {
        assert_eq!(reply.json()["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    }
    reply.code == 201
}

async fn published(client: &Client) -> Vec<String> {
    let keys = client.get("/openid/v1/jwks").await.expect(200).json();
    let names = keys["keys"].as_array().expect("there are keys").iter();
    names.map(|key| key["kid"].as_str().expect("has a name").to_owned()).collect()
}

#[tokio::test]
async fn a_plugin_signs_tokens_and_tells_the_keys_that_check_them() {
    let running = Running::start(Signer::new());
    let server = Server::start(&[&running.flag()]).await;
    let client = server.client();
    let account = json!({"metadata": {"name": "robot"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    let first = token(&client).await;
    assert!(is_good(&server, &first).await);
    assert_eq!(published(&client).await, ["one"]);
    let discovery = client.get("/.well-known/openid-configuration").await.expect(200);
    assert_eq!(discovery.json()["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let age = discovery.header("cache-control").and_then(|text| text.strip_prefix("public, max-age="));
    assert!(age.and_then(|age| age.parse::<u64>().ok()).is_some_and(|age| age <= 1), "{age:?}");

    // A token of a key that nobody has heard of is good at once: the plugin is asked for it.
    running.signer().add("two", false);
    let second = token(&client).await;
    assert!(is_good(&server, &second).await && is_good(&server, &first).await);
    eventually(|| async { (published(&client).await == ["one", "two"]).then_some(()) }).await;

    // A key that the plugin drops is dropped here as soon as it hinted that there may be news.
    running.signer().keys.remove(0);
    eventually(|| async { (!is_good(&server, &first).await).then_some(()) }).await;
    assert!(is_good(&server, &second).await);

    // What others could not check is not handed out.
    running.signer().add("hidden", true);
    let refused = request(&client, 3600).await.fails(500, "InternalError");
    let why = refused["message"].as_str().unwrap_or_default();
    let hidden =
        "failed to generate token: while validating header: key used for signing JWT (kid: hidden) is excluded";
    assert!(why.contains(hidden), "{why}");
    assert_eq!(published(&client).await, ["two"]);
    running.signer().keys.pop();
    running.signer().algorithm = "HS256";
    let refused = request(&client, 3600).await.fails(500, "InternalError");
    assert!(refused["message"].as_str().unwrap_or_default().ends_with("bad signing algorithm \"HS256\""), "{refused}");
    running.signer().algorithm = "ES256";

    // Nobody gets tokens for longer than the plugin signs them.
    let long = request(&client, 48 * 3600).await.expect(201);
    assert!(long.warnings().iter().any(|text| text.contains("172800 seconds shortened to 86400 seconds")));

    let metrics = String::from_utf8_lossy(&client.get("/metrics").await.expect(200).body).into_owned();
    for line in [
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 3",
        "apiserver_externaljwt_sign_request_total{code=\"unknown-non-grpc\"} 2",
        "apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"}",
        "apiserver_externaljwt_fetch_keys_success_timestamp ",
        "apiserver_externaljwt_fetch_keys_data_timestamp ",
        "apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/Metadata\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}");
    }

    // Without the plugin what is known stays good.
    drop(running);
    assert!(is_good(&server, &second).await);
    client.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_plugin_that_does_not_fit_stops_the_start() {
    type Change = fn(&mut Signer);
    for (change, flags, why) in [
        ((|_| ()) as Change, &["--service-account-key-file=nowhere"][..], "They are mutually exclusive"),
        (|_| (), &["--emulated-version=1.33"], "requires enabling ExternalServiceAccountTokenSigner feature gate"),
        (|_| (), &["--service-account-max-token-expiration=30m"], "must be between 1 hour and 2^32 seconds"),
        (
            |_| (),
            &["--service-account-max-token-expiration=25h"],
            "supported by service-account-signing-endpoint: 25h0m0s > 24h0m0s",
        ),
        (|signer| signer.max_expiration = 599, &[], "(599s) is less than acceptable (min 600s)"),
        (|signer| signer.keys.clear(), &[], "while fetching token verification keys: found no keys"),
        (|signer| signer.refresh = 0, &[], "found invalid refresh hint (0s)"),
        (|signer| signer.keys[0].0.clear(), &[], "found invalid public key id \"\""),
    ] {
        let mut signer = Signer::new();
        change(&mut signer);
        let running = Running::start(signer);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data").display().to_string();
        let flag = running.flag();
        let arguments =
            ["serve", "--data-dir", &data, "--secure-port=0", &flag].into_iter().chain(flags.iter().copied());
        let arguments: Vec<String> = arguments.map(str::to_owned).collect();
        let mut process = Process::start(&arguments, &folder.path().join("log"));
        assert!(!process.ended().await.success(), "{why}");
        let (_, log) = process.said();
        assert!(log.contains(why), "{why}: {log}");
    }
}

#[tokio::test]
async fn tokens_of_secrets_are_good_while_their_secret_and_account_are_there() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let server = Server::start(&["--controllers=serviceaccount-token-controller"]).await;
    let client = server.client();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client.post(accounts, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    let secret = |name: &str, account: &str| {
        json!({
            "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
            "type": "kubernetes.io/service-account-token",
        })
    };
    client.post(SECRETS, &secret("mine", "robot")).await.expect(201);
    let path = format!("{SECRETS}/mine");
    let filled = eventually(|| async {
        let found = client.get(&path).await.expect(200).json();
        found["data"]["token"].is_string().then_some(found)
    })
    .await;
    let text = |value: &Value| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().expect("is a text"));
        String::from_utf8(bytes.expect("is base64")).expect("is a text")
    };
    assert_eq!(text(&filled["data"]["namespace"]), "default");
    assert!(text(&filled["data"]["ca.crt"]).starts_with("-----BEGIN CERTIFICATE-----"));
    let uid = client.get(&format!("{accounts}/robot")).await.expect(200).json()["metadata"]["uid"].clone();
    assert_eq!(filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"], uid);
    let token = text(&filled["data"]["token"]);
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).expect("has claims")).expect("is base64");
    let claims: Value = serde_json::from_slice(&claims).expect("is JSON");
    assert_eq!(
        claims,
        json!({
            "iss": "kubernetes/serviceaccount",
            "kubernetes.io/serviceaccount/namespace": "default",
            "kubernetes.io/serviceaccount/secret.name": "mine",
            "kubernetes.io/serviceaccount/service-account.name": "robot",
            "kubernetes.io/serviceaccount/service-account.uid": uid,
            "sub": "system:serviceaccount:default:robot",
        })
    );

    // It is noted when it was shown, once a day.
    assert!(is_good(&server, &token).await);
    let used = client.get(&path).await.expect(200).json();
    let day = used["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"].clone();
    assert!(day.as_str().is_some_and(|day| day.len() == 10), "{used}");
    assert!(is_good(&server, &token).await);
    assert_eq!(client.get(&path).await.expect(200).json(), used);
    let metrics = String::from_utf8_lossy(&client.get("/metrics").await.expect(200).body).into_owned();
    let counted: Vec<&str> = metrics.lines().filter(|line| line.starts_with("serviceaccount_legacy_")).collect();
    for line in ["serviceaccount_legacy_tokens_total 2", "serviceaccount_legacy_manual_token_uses_total 2"] {
        assert!(counted.contains(&line), "{line} is not in {counted:?}");
    }

    // Who is marked as invalid is refused, whoever is without a secret too, and a secret goes with its account.
    let mark = |value: Value| json!({"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": value}}});
    let merge = "application/merge-patch+json";
    client.patch(&path, merge, &mark(json!("2026-01-01"))).await.expect(200);
    assert!(!is_good(&server, &token).await);
    client.patch(&path, merge, &mark(Value::Null)).await.expect(200);
    assert!(is_good(&server, &token).await);
    client.delete(&format!("{accounts}/robot")).await.expect(200);
    assert!(!is_good(&server, &token).await);
    eventually(|| async { (client.get(&path).await.code == 404).then_some(()) }).await;
    client.post(SECRETS, &secret("nobody's", "nobody")).await.fails(422, "Invalid");
    client.post(SECRETS, &secret("nobodys", "nobody")).await.expect(201);
    eventually(|| async { (client.get(&format!("{SECRETS}/nobodys")).await.code == 404).then_some(()) }).await;
}
