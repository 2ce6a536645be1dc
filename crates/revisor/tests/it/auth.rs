//! Who is let in, and what those who are not get to hear.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Client;
use crate::harness::{ADMIN_TOKEN, GUEST_TOKEN, Server, within};
use crate::objects::{CONFIG_MAPS, LEASES, NAMESPACES, config_map};

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

#[tokio::test]
async fn tokens_and_certificates_say_who_asks() {
    let server = Server::start(&[]).await;
    let stranger = || Client::new(server.kubeconfig.clone());
    for client in [
        stranger().with_token(ADMIN_TOKEN),
        stranger().with_token(ADMIN_TOKEN).over_http1(),
        stranger().with_certificate(),
        stranger().with_certificate().over_http1(),
    ] {
        let name = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json()["metadata"]["name"].take();
        assert_eq!(name, "a");
        client.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    }
    // A wrong token is refused everywhere, also where none would do.
    for path in [CONFIG_MAPS, "/healthz", "/version", "/none"] {
        let status = stranger().with_token("wrong").get(path).await.fails(401, "Unauthorized");
        assert_eq!(status["message"], "Unauthorized");
    }
    for value in ["", "Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer "] {
        let headers = [("authorization", value)];
        let reply = stranger().send(http::Method::GET, CONFIG_MAPS, &headers, "").await;
        reply.fails(403, "Forbidden");
    }
}

#[tokio::test]
async fn others_can_check_tokens_by_the_keys_that_are_published() {
    let server =
        Server::start(&["--service-account-issuer=https://issuer.example", "--external-hostname=api.example"]).await;
    let admin = server.client();
    let configuration = admin.get(CONFIGURATION).await.expect(200).json();
    assert_eq!(configuration["issuer"], "https://issuer.example");
    let port = server.kubeconfig.address.port();
    assert_eq!(configuration["jwks_uri"], format!("https://api.example:{port}{KEYS}"));
    let keys = admin.get(KEYS).await.expect(200);
    assert_eq!(keys.header("content-type"), Some("application/jwk-set+json"));
    let keys = keys.json()["keys"].as_array().expect("a list").clone();
    assert!(keys.iter().all(|key| key["use"] == "sig" && key["kid"].is_string()) && !keys.is_empty(), "{keys:?}");
    admin.post(KEYS, &json!({})).await.fails(405, "MethodNotAllowed");
    for (path, offered) in [(CONFIGURATION, "application/json"), (KEYS, "application/jwk-set+json")] {
        let other = admin.send(http::Method::GET, path, &[("accept", "application/x")], "").await.expect(406);
        let told = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
        assert_eq!(other.json()["message"], told);
    }
    let refused = Client::new(server.kubeconfig.clone()).get(KEYS).await;
    assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
    refused.fails(403, "Forbidden");
}

#[tokio::test]
async fn where_the_server_is_does_not_depend_on_where_a_client_says_that_it_is() {
    let flags = ["--advertise-address=192.0.2.7", "--endpoint-reconciler-type=none"];
    let server = Server::start(&flags).await;
    let at = format!("192.0.2.7:{}", server.kubeconfig.address.port());
    let liar = server.client().over_http1();
    let told = async |path: &str| -> Value {
        let mut request = liar.request(http::Method::GET, path, &[], "");
        request.headers_mut().insert("host", http::HeaderValue::from_static("evil.example"));
        within(liar.try_request(request)).await.expect("is answered").expect(200).json()
    };
    assert_eq!(told(CONFIGURATION).await["jwks_uri"], format!("https://{at}{KEYS}"));
    assert_eq!(told("/api").await["serverAddressByClientCIDRs"][0]["serverAddress"], at);

    let flags = ["--service-account-jwks-uri=https://keys.example/all", "--external-hostname=api.example:443"];
    let (stopped, _) = server.terminate().await;
    let server = stopped.with_flags(&flags).start().await;
    let told = server.client().get(CONFIGURATION).await.expect(200).json();
    assert_eq!(told["jwks_uri"], "https://keys.example/all");
    let versions = server.client().get("/api").await.expect(200).json();
    assert_eq!(versions["serverAddressByClientCIDRs"][0]["serverAddress"], "api.example:443");

    // Nobody could ask such an issuer for its keys.
    let (stopped, _) = server.terminate().await;
    let server = stopped.with_flags(&["--service-account-issuer=api"]).start().await;
    for path in [CONFIGURATION, KEYS] {
        assert_eq!(server.client().get(path).await.code, 404, "{path}");
    }
}

#[tokio::test]
async fn strangers_see_health_and_version_only() {
    let server = Server::start(&[]).await;
    let stranger = Client::new(server.kubeconfig.clone());
    for path in ["/healthz", "/livez", "/readyz", "/version", "/version/", "/readyz?verbose"] {
        stranger.get(path).await.expect(200);
    }
    for (path, message) in [
        ("/", "forbidden: User \"system:anonymous\" cannot get path \"/\""),
        ("/api", "forbidden: User \"system:anonymous\" cannot get path \"/api\""),
        ("/metrics", "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""),
        ("/healthz/ping", "forbidden: User \"system:anonymous\" cannot get path \"/healthz/ping\""),
        ("/none", "forbidden: User \"system:anonymous\" cannot get path \"/none\""),
        (
            "/api/v1/configmaps?watch=1",
            "configmaps is forbidden: User \"system:anonymous\" cannot watch resource \"configmaps\" in API group \"\" at \
             the cluster scope",
        ),
    ] {
        let status = stranger.get(path).await.fails(403, "Forbidden");
        assert_eq!(status["message"], message);
    }
    let server = Server::start(&["--anonymous-auth=false"]).await;
    Client::new(server.kubeconfig.clone()).get("/healthz").await.fails(401, "Unauthorized");
    server.client().get("/healthz").await.expect(200);
}

#[tokio::test]
async fn users_without_rights_are_told_what_they_lack() {
    let server = Server::start(&[]).await;
    let guest = server.client().with_token(GUEST_TOKEN);
    let one = format!("{CONFIG_MAPS}/a");
    for (method, path, subject, verb, resource, place) in [
        ("GET", CONFIG_MAPS, "configmaps", "list", ("configmaps", ""), " in the namespace \"default\""),
        ("GET", &one, "configmaps \"a\"", "get", ("configmaps", ""), " in the namespace \"default\""),
        ("POST", CONFIG_MAPS, "configmaps", "create", ("configmaps", ""), " in the namespace \"default\""),
        ("PUT", &one, "configmaps \"a\"", "update", ("configmaps", ""), " in the namespace \"default\""),
        ("PATCH", &one, "configmaps \"a\"", "patch", ("configmaps", ""), " in the namespace \"default\""),
        ("DELETE", &one, "configmaps \"a\"", "delete", ("configmaps", ""), " in the namespace \"default\""),
        ("DELETE", CONFIG_MAPS, "configmaps", "deletecollection", ("configmaps", ""), " in the namespace \"default\""),
        ("GET", "/api/v1/configmaps", "configmaps", "list", ("configmaps", ""), " at the cluster scope"),
        ("GET", NAMESPACES, "namespaces", "list", ("namespaces", ""), " at the cluster scope"),
        (
            "GET",
            "/api/v1/namespaces/default",
            "namespaces \"default\"",
            "get",
            ("namespaces", ""),
            " in the namespace \"default\"",
        ),
        (
            "PUT",
            "/api/v1/namespaces/default/status",
            "namespaces \"default\"",
            "update",
            ("namespaces/status", ""),
            " in the namespace \"default\"",
        ),
        (
            "GET",
            LEASES,
            "leases.coordination.k8s.io",
            "list",
            ("leases", "coordination.k8s.io"),
            " in the namespace \"default\"",
        ),
    ] {
        let method = method.parse().expect("a method");
        let status = guest.send(method, path, &[], "{}").await.fails(403, "Forbidden");
        let (resource, group) = resource;
        let want = format!(
            "{subject} is forbidden: User \"jane\" cannot {verb} resource \"{resource}\" in API group \"{group}\"{place}"
        );
        assert_eq!(status["message"], want);
        let kind = resource.split('/').next();
        assert_eq!(status["details"]["kind"].as_str(), kind, "{status}");
    }
    // Nobody who may not is told whether something is there.
    let there = guest.get("/api/v1/namespaces/default").await.fails(403, "Forbidden");
    let missing = guest.get("/api/v1/namespaces/missing").await.fails(403, "Forbidden");
    let message = |status: &Value| status["message"].as_str().expect("a message").replace("missing", "default");
    assert_eq!(message(&there), message(&missing));

    let server = Server::start(&["--authorization-mode=AlwaysAllow"]).await;
    let guest = server.client().with_token(GUEST_TOKEN);
    guest.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201);
    Client::new(server.kubeconfig.clone()).get(&one).await.fails(401, "Unauthorized");
}

#[tokio::test]
async fn a_request_that_may_not_is_answered_before_its_body_is_read() {
    let server = Server::start(&[]).await;
    for (token, code) in [("wrong", "401"), (GUEST_TOKEN, "403")] {
        for expectation in ["", "Expect: 100-continue\r\n"] {
            let mut stream = server.client().over_http1().connect().await.expect("the server listens");
            let head = format!(
                "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{expectation}\
                 Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
            );
            within(stream.write_all(head.as_bytes())).await.expect("the server reads");
            // No byte of the body is sent, and none is asked for. Upholds A2.
            let mut answer = [0; 12];
            within(stream.read_exact(&mut answer)).await.expect("the server answers");
            assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {code}"), "{expectation}");
        }
    }
}

#[tokio::test]
async fn secrets_of_the_server_are_for_its_owner_only() {
    let server = Server::start(&[]).await;
    let data = server.data();
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&data.join("kubeconfig")), 0o600);
    assert_eq!(mode(&data.join("continue.key")), 0o600);
    let mut keys = 0;
    for entry in std::fs::read_dir(data.join("certificates")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        if text.contains("PRIVATE KEY") {
            keys += 1;
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
    assert!(keys >= 2, "keys of the authority and of the server, at least");
}

#[tokio::test]
async fn credentials_never_appear_in_the_log() {
    for format in ["text", "json"] {
        let server = Server::start(&["-v=6", &format!("--logging-format={format}")]).await;
        let wrong = "token-that-nobody-has";
        for client in [server.client(), server.client().over_http1()] {
            client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201);
            client.clone().with_token(wrong).get(CONFIG_MAPS).await.fails(401, "Unauthorized");
            client.clone().with_token(GUEST_TOKEN).get(CONFIG_MAPS).await.fails(403, "Forbidden");
            let secret = json!({"metadata": {"name": "a"}, "stringData": {"password": "word-that-is-secret"}});
            let secrets = crate::objects::SECRETS;
            client.post(secrets, &secret).await.expect(201);
            client.delete(&format!("{secrets}/a")).await.expect(200);
            client.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
        }
        let log = server.process.log();
        assert!(log.contains(CONFIG_MAPS), "requests are logged at this level: {log}");
        for credential in [ADMIN_TOKEN, GUEST_TOKEN, wrong, "Bearer", "word-that-is-secret", "PRIVATE KEY"] {
            assert!(!log.contains(credential), "{credential} in {log}");
        }
    }
}
