//! Requests without credentials: where they are let in, and what the server says about that.

use std::path::Path;

use crate::client::Client;
use crate::harness::{Process, Server};

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";

/// Writes a configuration and returns the flag that names it.
fn config_flag(folder: &Path, text: &str) -> String {
    let path = folder.join("authentication.yaml");
    std::fs::write(&path, format!("{CONFIG}{text}")).expect("a file can be written");
    format!("--authentication-config={}", path.display())
}

#[tokio::test]
async fn where_everybody_may_do_everything_nobody_comes_unknown_unless_that_is_asked_for() {
    let namespace = "/api/v1/namespaces/default";
    for (flags, code, warning) in [
        (&["--authorization-mode=AlwaysAllow"][..], 401, "requests without credentials are refused"),
        (&["--authorization-mode=AlwaysAllow", "--anonymous-auth=true"], 200, "requests without credentials may do"),
    ] {
        let server = Server::start(flags).await;
        let anonymous = Client::new(server.kubeconfig.clone());
        for path in [namespace, "/healthz"] {
            anonymous.get(path).await.expect(code);
        }
        assert!(server.process.log().contains(warning), "{flags:?}: {}", server.process.log());
        server.client().get(namespace).await.expect(200);
    }
}

#[tokio::test]
async fn anonymous_requests_can_be_kept_to_paths() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let flag = config_flag(folder.path(), "anonymous: {enabled: true, conditions: [{path: /livez}, {path: /version}]}");
    let server = Server::start(&[&flag]).await;
    let anonymous = Client::new(server.kubeconfig.clone());
    for (path, code) in [
        ("/livez", 200),
        ("/livez?verbose", 200),
        ("/version", 200),
        ("/healthz", 401),
        ("/livez/ping", 401),
        ("/api", 401),
    ] {
        anonymous.get(path).await.expect(code);
    }
    server.client().get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_had_stops_the_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (text, more, want) in [
        ("anonymous: {enabled: true}", Some("--anonymous-auth=true"), "--anonymous-auth flag cannot be set"),
        ("anonymous: {conditions: [{path: /a}]}", None, "enabled should be set to true when conditions are defined"),
        ("anonymus: {}", None, "strict decoding error: unknown field \"anonymus\""),
        (
            "jwt: [{issuer: {url: https://issuer.example}}]",
            None,
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
    ] {
        let data = folder.path().join("data");
        let mut arguments = vec!["serve".to_owned(), "--secure-port=0".to_owned(), config_flag(folder.path(), text)];
        arguments.push(format!("--data-dir={}", data.display()));
        arguments.extend(more.map(str::to_owned));
        let mut process = Process::start(&arguments, &folder.path().join("log"));
        assert_eq!(process.ended().await.code(), Some(1), "{text}");
        let (_, log) = process.said();
        assert!(log.contains(want), "{text}: {log}");
        assert!(!data.exists(), "nothing was made before the flags were understood");
    }
}
