//! The program from its first line to its last: health, numbers, signals, and what it says when it cannot start.

use std::process::Command;

use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Client;
use crate::harness::{ADMIN_TOKEN, GUEST_TOKEN, Process, Server, eventually, within};
use crate::objects::{CONFIG_MAPS, config_map, make_config_maps};

#[tokio::test]
async fn health_is_told_in_words_and_check_by_check() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/etcd", "/readyz/shutdown"] {
        let reply = client.get(path).await.expect(200);
        assert_eq!((reply.text(), reply.header("content-type")), ("ok".to_owned(), Some("text/plain; charset=utf-8")));
    }
    let report = |path: &'static str| {
        let client = client.clone();
        async move { client.get(path).await.expect(200).text().lines().map(str::to_owned).collect::<Vec<_>>() }
    };
    let (alive, ready) = (report("/livez?verbose").await, report("/readyz?verbose&exclude=etcd").await);
    // The names and their order are the original's.
    assert_eq!(alive[..4], ["[+]ping ok", "[+]log ok", "[+]loopback-serving-certificate ok", "[+]etcd ok"]);
    assert_eq!(ready[..4], ["[+]ping ok", "[+]log ok", "[+]etcd excluded: ok", "[+]etcd-readiness ok"]);
    assert_eq!(ready.last().map(String::as_str), Some("readyz check passed"));
    for name in ["poststarthook/rbac/bootstrap-roles", "autoregister-completion"] {
        let line = format!("[+]{name} ok");
        assert!(alive.contains(&line) && ready.contains(&line), "{name}");
        assert_eq!(client.get(&format!("/healthz/{name}")).await.expect(200).text(), "ok");
    }
    let indicators = client.get("/metrics/slis").await.expect(200).text();
    assert!(indicators.contains("kubernetes_healthcheck{name=\"etcd\",type=\"livez\"} 1\n"), "{indicators}");
    assert_eq!(client.get("/readyz/none").await.expect(404).text(), "404 page not found\n");
}

#[tokio::test]
async fn the_version_is_that_of_the_release_that_is_served() {
    let server = Server::start(&[]).await;
    let version = server.client().get("/version").await.expect(200).json();
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    assert!(version["gitVersion"].as_str().is_some_and(|text| text.starts_with("v1.36.0+revisor-")), "{version}");
    assert!(version["platform"].as_str().is_some_and(|text| text.starts_with("linux/")), "{version}");
}

#[tokio::test]
async fn metrics_have_the_names_that_dashboards_know() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let start = make_config_maps(&client, &["a"]).await[0];
    client.get(&format!("{CONFIG_MAPS}/none")).await.expect(404);
    let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={start}")).await;
    let next = make_config_maps(&client, &["b"]).await[0];
    watch.expect("ADDED", "b", next).await;
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let path = format!("{CONFIG_MAPS}/c?fieldManager=test");
    client.patch(&path, "application/apply-patch+yaml", &applied).await.expect(201);
    client.delete(&format!("{CONFIG_MAPS}?labelSelector=none&dryRun=All")).await.expect(200);
    client.get("/healthz").await.expect(200);
    // Whoever is refused was not served.
    client.clone().with_token(GUEST_TOKEN).get("/api/v1/secrets").await.fails(403, "Forbidden");
    client.put(CONFIG_MAPS, &json!({})).await.fails(405, "MethodNotAllowed");

    let reply = client.get("/metrics").await.expect(200);
    assert!(reply.header("content-type").is_some_and(|value| value.starts_with("text/plain")), "{:?}", reply.headers);
    let text = String::from_utf8(reply.body.to_vec()).expect("a text");
    for name in [
        "apiserver_request_total",
        "apiserver_request_duration_seconds",
        "apiserver_current_inflight_requests",
        "apiserver_longrunning_requests",
    ] {
        assert!(text.lines().any(|line| line.starts_with(&format!("# TYPE {name} "))), "{name} in {text}");
    }
    let number = |name: &str, labels: &[&str]| {
        let has_labels = |line: &str| labels.iter().all(|label| line.contains(label));
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")) && has_labels(line));
        let line = line.unwrap_or_else(|| panic!("{name} with {labels:?} in {text}"));
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number")
    };
    let of_config_maps = r#"resource="configmaps""#;
    let posts = ["code=\"201\"", "scope=\"resource\"", "verb=\"POST\"", of_config_maps];
    assert_eq!(number("apiserver_request_total", &posts), 2.0);
    assert_eq!(number("apiserver_request_total", &["code=\"404\"", "verb=\"GET\"", of_config_maps]), 1.0);
    assert_eq!(number("apiserver_longrunning_requests", &["verb=\"WATCH\"", of_config_maps]), 1.0);
    let applies = ["code=\"201\"", "scope=\"resource\"", "verb=\"APPLY\"", of_config_maps];
    assert_eq!(number("apiserver_request_total", &applies), 1.0);
    let deletions = ["code=\"200\"", "dry_run=\"All\"", "scope=\"namespace\"", "verb=\"DELETE\"", of_config_maps];
    assert_eq!(number("apiserver_request_total", &deletions), 1.0);
    let health = ["component=\"\"", "subresource=\"/healthz\""];
    assert!(number("apiserver_request_total", &health) >= 1.0);
    let counted = |label: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
        lines.any(|line| line.contains(label))
    };
    assert!(!counted("code=\"403\"") && !counted("code=\"405\""), "{text}");
    assert_eq!(number("authorization_attempts_total", &["result=\"no-opinion\""]), 1.0);
    assert!(number("authentication_attempts", &["result=\"success\""]) > 5.0);
    let count = "apiserver_request_duration_seconds_count";
    assert_eq!(number(count, &["verb=\"POST\"", of_config_maps]), 2.0);
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_leaves_in_good_order() {
    // Long enough for what follows also on a busy machine.
    let mut server = Server::start(&["--shutdown-delay-duration=3s"]).await;
    let client = server.client();
    let start = make_config_maps(&client, &["a"]).await[0];
    let mut watches = Vec::new();
    for client in [client.apart(), client.apart().over_http1()] {
        watches.push(client.watch(CONFIG_MAPS, &format!("resourceVersion={start}")).await);
    }
    let body = config_map("late", "1").to_string();
    let mut half_sent = half_of_a_request(&client.clone().over_http1(), &body).await;

    server.process.signal("TERM");
    let report = eventually(|| async {
        let reply = client.get("/readyz").await;
        (reply.code != 200).then_some(reply)
    })
    .await;
    assert!(report.text().contains("[-]shutdown failed: reason withheld\n"), "{}", report.text());
    report.expect(500);
    // Not ready is not dead: what comes is still served.
    client.get("/livez").await.expect(200);
    let made = client.post(CONFIG_MAPS, &config_map("b", "1")).await.expect(201).version();
    for watch in &mut watches {
        watch.expect("ADDED", "b", made).await;
    }

    // Once watches end, nobody new is let in, but what was begun is finished.
    for watch in &mut watches {
        assert!(watch.next().await.is_none(), "a watch ends without an error");
    }
    let answer = within(async {
        half_sent.write_all(&body.as_bytes()[10..]).await.expect("the server still reads");
        let mut answer = String::new();
        // The server may close without a farewell once it has answered.
        let _ = half_sent.read_to_string(&mut answer).await;
        answer
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let status = server.process.ended().await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(client.apart().connect().await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn an_interrupt_from_the_keyboard_stops_the_server_too() {
    let mut server = Server::start(&[]).await;
    let mut watch = server.client().watch(CONFIG_MAPS, "resourceVersion=1").await;
    server.process.signal("INT");
    assert!(watch.next().await.is_none(), "a watch ends without an error");
    let status = server.process.ended().await;
    assert_eq!(status.code(), Some(0), "{status}");
}

/// A connection on which the head of a request was sent, and ten bytes of its body.
async fn half_of_a_request(client: &Client, body: &str) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    let mut stream = client.connect().await.expect("the server listens");
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("the server reads");
    // The server asks for the body once it has let the request in.
    let mut asked = [0; 25];
    within(stream.read_exact(&mut asked)).await.expect("the server answers");
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&body.as_bytes()[..10]).await.expect("the server reads");
    stream
}

#[tokio::test]
async fn a_folder_belongs_to_one_server_at_a_time() {
    let server = Server::start(&[]).await;
    let log = server.data().join("second.log");
    let mut second = Process::start(&server.arguments(), &log);
    let status = second.ended().await;
    let (printed, said) = second.said();
    assert_eq!((status.code(), &*printed), (Some(1), ""), "{said}");
    assert!(said.contains(&server.data().join("store").display().to_string()), "{said}");
    assert_eq!(last_line(&said).matches("revisor: ").count(), 1, "{said}");
    server.assert_well().await;

    // The first one's kubeconfig is not that of a server that never was.
    let again = crate::client::Kubeconfig::read(&server.data().join("kubeconfig"));
    assert_eq!(again.address, server.kubeconfig.address);
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[tokio::test]
async fn what_cannot_be_started_says_why_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "not,enough\n").expect("a file can be written");
    let (file, data) = (file.display().to_string(), folder.path().join("data").display().to_string());
    for (flags, want) in [
        (vec!["--no-such-flag".to_owned()], "--no-such-flag"),
        (vec!["--secure-port=70000".to_owned()], "70000"),
        (vec!["--history=soon".to_owned()], "soon"),
        (vec!["--authorization-mode=Perhaps".to_owned()], "Perhaps"),
        (vec!["--controllers=unheard-of".to_owned()], "unheard-of"),
        (vec!["--enable-admission-plugins=Priority,Unheard".to_owned()], "plugin \"Unheard\" is unknown"),
        (
            vec!["--enable-admission-plugins=Priority".to_owned(), "--disable-admission-plugins=Priority".to_owned()],
            "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
        (vec!["--admission-control-config-file=/none/file".to_owned()], "\"/none/file\""),
        (vec![format!("--admission-control-config-file={file}")], &file),
        (vec!["--enable-admission-plugins=ImagePolicyWebhook".to_owned()], "no config specified"),
        (vec!["--tls-cert-file=x".to_owned()], "--tls-private-key-file"),
        (vec!["--token-auth-file=/none/tokens".to_owned()], "/none/tokens"),
        (vec![format!("--token-auth-file={file}")], &file),
        (vec![format!("--data-dir={file}")], &file),
        (vec!["--client-ca-file=/none/ca".to_owned()], "/none/ca"),
        (vec!["--bind-address=192.0.2.1".to_owned()], "192.0.2.1"),
    ] {
        let mut arguments = vec!["serve".to_owned()];
        if !flags[0].starts_with("--data-dir") {
            arguments.push(format!("--data-dir={data}"));
        }
        if !flags[0].starts_with("--secure-port") {
            arguments.push("--secure-port=0".to_owned());
        }
        arguments.extend(flags.iter().cloned());
        let log = folder.path().join("log");
        let _ = std::fs::remove_file(&log);
        let mut process = Process::start(&arguments, &log);
        let status = process.ended().await;
        let (printed, said) = process.said();
        assert_eq!((status.code(), &*printed), (Some(1), ""), "{flags:?}: {said}");
        assert!(said.contains(want), "{flags:?}: {said}");
        assert!(!said.contains("panicked") && !said.contains("stack backtrace"), "{flags:?}: {said}");
    }
}

#[test]
fn the_program_tells_what_it_is_and_what_it_can_do() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_revisor")).args(arguments).output().expect("it can be started");
        assert!(output.status.success(), "{arguments:?}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        String::from_utf8(output.stdout).expect("a text")
    };
    let want = format!(
        "revisor {} (Kubernetes 1.36; 1.33, 1.34 and 1.35 by --emulation-version)\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(run(&["version"]), want);
    assert_eq!(run(&["--version"]), want);
    let help = run(&["--help"]);
    for command in ["serve", "version", "completions"] {
        assert!(help.contains(command), "{help}");
    }
    let help = run(&["serve", "--help"]);
    for flag in ["--data-dir", "--secure-port", "--token-auth-file", "--history", "--authorization-mode"] {
        assert!(help.contains(flag), "{help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).contains("secure-port"), "{shell}");
    }
}

#[tokio::test]
async fn discovery_lists_what_is_served() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let core = client.get("/api/v1").await.expect(200).json();
    let names: Vec<&str> =
        core["resources"].as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect();
    for name in ["configmaps", "events", "namespaces", "namespaces/finalize", "namespaces/status", "secrets"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(client.get("/api").await.expect(200).json()["versions"], json!(["v1"]));
    let groups = client.get("/apis").await.expect(200).json();
    let preferred = |group: &serde_json::Value| group["preferredVersion"]["groupVersion"] == "coordination.k8s.io/v1";
    assert!(groups["groups"].as_array().is_some_and(|groups| groups.iter().any(preferred)), "{groups}");
    client.send(Method::POST, "/api/v1", &[], "{}").await.fails(405, "MethodNotAllowed");
}
