//! Requests that are whole but wrong. The codes and reasons are the original's, save where a comment says otherwise.

use http::Method;
use serde_json::Value;

use crate::client::{Client, JSON_PATCH, MERGE};
use crate::harness::Server;
use crate::objects::CONFIG_MAPS;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const DEFAULT: &str = "/api/v1/namespaces/default";

/// How much the memory of a server may grow from all of this: far below what any of the bombs would take.
const GROWTH_KIB: u64 = 192 * 1024;

/// One bad request and what is answered.
struct Bad {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    code: u16,
    reason: &'static str,
}

fn bad(method: &'static str, path: impl Into<String>, code: u16, reason: &'static str) -> Bad {
    Bad { method, path: path.into(), headers: Vec::new(), body: Vec::new(), code, reason }
}

impl Bad {
    fn header(mut self, name: &'static str, value: impl Into<String>) -> Bad {
        self.headers.push((name, value.into()));
        self
    }

    fn body(mut self, media_type: &str, body: impl Into<Vec<u8>>) -> Bad {
        self.body = body.into();
        self.header("content-type", media_type)
    }

    async fn check(&self, client: &Client) {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let method: Method = self.method.parse().expect("a method");
        let reply = client.send(method.clone(), &self.path, &headers, self.body.clone()).await;
        let start = &self.body[..self.body.len().min(60)];
        let shown = format!(
            "{method} {} {headers:?} {}",
            &self.path[..self.path.len().min(200)],
            String::from_utf8_lossy(start)
        );
        assert_eq!(reply.code, self.code, "{shown}: {}", reply.text());
        if method == Method::HEAD {
            assert!(reply.body.is_empty(), "{shown}");
            return;
        }
        if self.reason.is_empty() {
            return;
        }
        let status: Value = reply.json();
        assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Failure".into()), "{shown}: {status}");
        assert_eq!((&status["reason"], &status["code"]), (&self.reason.into(), &self.code.into()), "{shown}: {status}");
        assert!(status["message"].as_str().is_some_and(|text| !text.is_empty()), "{shown}: {status}");
    }
}

async fn check_all(cases: Vec<Bad>) {
    let server = Server::start(&[]).await;
    let clients = [server.client(), server.client().over_http1()];
    // What a server needs for its first requests is not growth.
    server.assert_well().await;
    let before = server.process.resident_kib();
    for case in &cases {
        for client in &clients {
            case.check(client).await;
        }
    }
    let grown = server.process.resident_kib().saturating_sub(before);
    assert!(grown < GROWTH_KIB, "the server grew by {grown} KiB");
    assert_eq!(server.client().get(CONFIG_MAPS).await.names(), Vec::<String>::new(), "nothing of this was stored");
    server.assert_well().await;
}

/// Each list holds nine times the one before: some hundred million texts in some hundred bytes.
fn alias_bomb() -> String {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ('b'..='i').zip('a'..) {
        let aliases = vec![format!("*{before}"); 9].join(",");
        text.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    text
}

fn config_map_with(data: &[u8]) -> Vec<u8> {
    [br#"{"metadata":{"name":"a"},"data":{"k":""#, data, br#""}}"#].concat()
}

#[tokio::test]
async fn bodies() {
    let post = |media_type: &str, body: &[u8]| bad("POST", CONFIG_MAPS, 400, "BadRequest").body(media_type, body);
    let mut cases = Vec::new();
    for text in [
        &b""[..],
        b"{",
        b"{}}",
        b"{\"metadata\":{\"name\":\"a\"}} x",
        b"[]",
        b"\"text\"",
        b"1",
        b"{'a':1}",
        b"{\"metadata\":{\"name\":\"a\"},}",
        b"{\"metadata\":\"a\"}",
        b"{\"metadata\":{\"name\":1}}",
        b"{\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":true}}}",
        b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":1}}",
        b"{\"metadata\":{\"name\":\"a\"},\"data\":[]}",
        b"{\"metadata\":{\"name\":\"a\"},\"binaryData\":{\"k\":\"!\"}}",
        b"{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"yesterday\"}}",
        b"{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}",
        b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\",\"metadata\":{\"name\":\"a\"}}",
        b"\xff\xfe\x00",
    ] {
        cases.push(post(JSON, text));
    }
    for text in [
        &b"a: [\n"[..],
        b"\t- x",
        b"a: *b\n",
        b"? {a: b}\n: c\n",
        b"- a\n- b\n",
        b"a: \"\n",
        b"%YAML 9\n---\n[",
        b"\xc3\x28",
    ] {
        cases.push(post(YAML, text));
    }
    cases.push(post(YAML, alias_bomb().as_bytes()));
    for (media_type, opening) in [(JSON, "["), (JSON, "{\"a\":"), (YAML, "["), (YAML, "{a: "), (YAML, "- ")] {
        cases.push(post(media_type, opening.repeat(100_000).as_bytes()));
    }
    let nested = format!("{{\"metadata\":{{\"name\":\"a\"}},\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    cases.push(post(JSON, nested.as_bytes()));
    for nameless in [&b"null"[..], b"{}", b"{\"metadata\":{\"name\":\"p\\u0000p\"}}"] {
        cases.push(bad("POST", CONFIG_MAPS, 422, "Invalid").body(JSON, nameless));
    }
    let too_long = config_map_with(&vec![b'x'; 2 << 20]);
    cases.push(bad("POST", CONFIG_MAPS, 422, "Invalid").body(JSON, too_long));
    let too_large = config_map_with(&vec![b'x'; 3 << 20]);
    for (method, path) in [("POST", CONFIG_MAPS.to_owned()), ("PUT", format!("{CONFIG_MAPS}/a"))] {
        cases.push(bad(method, path, 413, "RequestEntityTooLarge").body(JSON, too_large.clone()));
    }
    let much_too_large = vec![b' '; 8 << 20];
    cases.push(bad("POST", CONFIG_MAPS, 413, "RequestEntityTooLarge").body(JSON, much_too_large.clone()));
    cases.push(bad("PATCH", DEFAULT, 413, "RequestEntityTooLarge").body(MERGE, much_too_large.clone()));
    cases.push(bad("DELETE", DEFAULT, 413, "RequestEntityTooLarge").body(JSON, much_too_large));
    check_all(cases).await;
}

#[tokio::test]
async fn patches_and_deletions() {
    let patch = |media_type: &str, body: &str| bad("PATCH", DEFAULT, 400, "BadRequest").body(media_type, body);
    let unfit = |media_type: &str, body: &str| bad("PATCH", DEFAULT, 422, "Invalid").body(media_type, body);
    let many = vec![r#"{"op":"test","path":"/kind","value":"Namespace"}"#; 10_001].join(",");
    let double = |turn| format!(r#"{{"op":"copy","from":"/metadata","path":"/metadata/x{turn}"}}"#);
    let doubling = (0..60).map(double).collect::<Vec<_>>().join(",");
    let one = format!("{CONFIG_MAPS}/a");
    check_all(vec![
        patch(MERGE, "{"),
        patch(MERGE, "[]"),
        patch(MERGE, &"{\"a\":".repeat(100_000)),
        patch(MERGE, r#"{"metadata":{"name":"other"}}"#),
        patch(JSON_PATCH, "{}"),
        patch(JSON_PATCH, "[1]"),
        patch(JSON_PATCH, "["),
        unfit(JSON_PATCH, r#"[{"op":"jump","path":"/a"}]"#),
        unfit(JSON_PATCH, r#"[{"op":"remove","path":"/none"}]"#),
        unfit(JSON_PATCH, r#"[{"op":"replace","path":"a","value":1}]"#),
        unfit(JSON_PATCH, &format!("[{doubling}]")),
        unfit(MERGE, r#"{"kind":"ConfigMap"}"#),
        unfit(MERGE, r#"{"metadata":{"labels":{"a":1}}}"#),
        unfit(MERGE, r#"{"metadata":{"labels":{"a b":"c"}}}"#),
        bad("PATCH", DEFAULT, 413, "RequestEntityTooLarge").body(JSON_PATCH, format!("[{many}]")),
        bad("PATCH", one.clone(), 404, "NotFound").body(MERGE, "{"),
        bad("PATCH", DEFAULT, 415, "UnsupportedMediaType").body(JSON, "{}"),
        bad("PATCH", DEFAULT, 415, "UnsupportedMediaType").body("text/plain", "{}"),
        bad("PATCH", DEFAULT, 415, "UnsupportedMediaType"),
        bad("DELETE", one.clone(), 400, "BadRequest").body(JSON, "{"),
        bad("DELETE", one.clone(), 400, "BadRequest").body(JSON, "[]"),
        bad("DELETE", one.clone(), 400, "BadRequest").body(JSON, r#"{"kind":"Pod"}"#),
        bad("DELETE", one.clone(), 400, "BadRequest").body(JSON, r#"{"gracePeriodSeconds":"x"}"#),
        bad("DELETE", one.clone(), 415, "UnsupportedMediaType").body("text/plain", "{}"),
        bad("PUT", one.clone(), 400, "BadRequest").body(JSON, "{}"),
        bad("PUT", one.clone(), 400, "BadRequest").body(JSON, r#"{"metadata":{"name":"other"}}"#),
        bad("PUT", one, 404, "NotFound").body(JSON, r#"{"metadata":{"name":"a"}}"#),
    ])
    .await;
}

#[tokio::test]
async fn paths() {
    let missing = |path: String| bad("GET", path, 404, "NotFound");
    let plain = |path: &str| bad("GET", path, 404, "");
    let mut cases = vec![
        missing(format!("{CONFIG_MAPS}/%00")),
        missing(format!("{CONFIG_MAPS}/a%2Fb")),
        missing(format!("{CONFIG_MAPS}/..%2f..%2fsecrets")),
        missing(format!("{CONFIG_MAPS}/../../../..")),
        missing(format!("{CONFIG_MAPS}/%ff")),
        missing(format!("{CONFIG_MAPS}/{}", "x".repeat(2_000))),
        missing(format!("{CONFIG_MAPS}/{}", "x".repeat(30_000))),
        missing(format!("{CONFIG_MAPS}/a{}", "/a".repeat(5_000))),
        bad("GET", format!("{CONFIG_MAPS}/."), 400, "BadRequest"),
        bad("GET", format!("{CONFIG_MAPS}/.."), 400, "BadRequest"),
        bad("GET", format!("{CONFIG_MAPS}/%25"), 400, "BadRequest"),
        bad("GET", format!("{CONFIG_MAPS}/%zz"), 400, ""),
        bad("DELETE", format!("{CONFIG_MAPS}/%2e%2e"), 400, "BadRequest"),
        bad("PUT", format!("{CONFIG_MAPS}/%00"), 404, "NotFound").body(JSON, r#"{"metadata":{"name":"\u0000"}}"#),
        // The original answers 500.
        bad("POST", "/api/v1/namespaces/%2e%2e/configmaps", 404, "NotFound").body(JSON, r#"{"metadata":{"name":"a"}}"#),
        plain("//"),
        plain("//api/v1/namespaces"),
        plain("/none"),
        plain("/apis/none.io/v1/things"),
        plain("/healthz/none"),
        plain("/api/../api"),
    ];
    for path in [
        "/api/v1/../v1/namespaces",
        "/api/v1//namespaces",
        "/api/v1/%ff",
        "/api/v1/nothings",
        "/api/v2/configmaps",
        "/api/v1/configmaps/a",
        "/api/v1/namespaces/default/namespaces",
        "/apis/coordination.k8s.io/v9/leases",
        "/api/v1/namespaces/default/configmaps/a/status",
    ] {
        cases.push(missing(path.to_owned()));
    }
    check_all(cases).await;
}

#[tokio::test]
async fn queries() {
    let read = |query: &str| bad("GET", format!("{CONFIG_MAPS}?{query}"), 400, "BadRequest");
    let options = |query: &str| bad("GET", format!("{CONFIG_MAPS}?{query}"), 422, "Invalid");
    let write = |query: &str| {
        bad("POST", format!("{CONFIG_MAPS}?{query}"), 422, "Invalid").body(JSON, r#"{"metadata":{"name":"a"}}"#)
    };
    let one = format!("{CONFIG_MAPS}/a");
    let fine = |query: String| bad("GET", format!("{CONFIG_MAPS}?{query}"), 200, "");
    let many_values = vec!["v"; 4_000].join(",");
    check_all(vec![
        read("limit=x"),
        read("limit=99999999999999999999"),
        read("timeoutSeconds=x"),
        read("timeout=soon"),
        read("timeout=5"),
        read("resourceVersion=x"),
        read("resourceVersion=-1"),
        read("resourceVersion=1.5"),
        read("resourceVersion=99999999999999999999"),
        read("continue=x"),
        read(&format!("continue={}", "x".repeat(20_000))),
        read("labelSelector=%3D%3D"),
        read("labelSelector=%ff"),
        read(&format!("labelSelector={}", "a%28".repeat(5_000))),
        read("fieldSelector=a%3Db"),
        read(&format!("fieldSelector={}", "a".repeat(20_000))),
        // The original answers 500.
        read("watch=1&resourceVersion=x"),
        options("resourceVersionMatch=x"),
        options("resourceVersionMatch=Exact"),
        options("resourceVersion=0&resourceVersionMatch=Exact"),
        options("sendInitialEvents=true"),
        options("watch=1&sendInitialEvents=1"),
        options("watch=1&resourceVersionMatch=Exact"),
        write("dryRun=x"),
        write("dryRun=All&dryRun=None"),
        write("fieldValidation=x"),
        write(&format!("fieldManager={}", "x".repeat(129))),
        write("fieldManager=%01"),
        bad("GET", format!("{one}?export=true"), 400, "BadRequest"),
        bad("GET", format!("{one}?export=0"), 404, "NotFound"),
        bad("DELETE", format!("{one}?gracePeriodSeconds=x"), 400, "BadRequest"),
        bad("DELETE", format!("{one}?propagationPolicy=x"), 422, "Invalid"),
        fine("timeout=0s".to_owned()),
        fine("timeout=-5s".to_owned()),
        fine("timeout=1h".to_owned()),
        fine("limit=-1".to_owned()),
        fine("limit=9223372036854775807".to_owned()),
        fine("%".to_owned()),
        fine("&&&=&=x&x".to_owned()),
        fine("watch=false&limit=1".to_owned()),
        fine("a=b&".repeat(5_000)),
        fine(format!("labelSelector=a%20in%20({many_values})")),
    ])
    .await;
}

#[tokio::test]
async fn media_types_and_methods() {
    let object = r#"{"metadata":{"name":"a"}}"#;
    let mut cases = Vec::new();
    for media_type in ["text/html", "application/xml", "application/json-patch+json", ";;;", "nonsense", "application/"]
    {
        cases.push(bad("POST", CONFIG_MAPS, 415, "UnsupportedMediaType").body(media_type, object));
        cases.push(bad("PUT", format!("{CONFIG_MAPS}/a"), 415, "UnsupportedMediaType").body(media_type, object));
    }
    for accept in ["application/xml", "application/*", "text/html", "application/json;as=Nothing;g=meta.k8s.io;v=v1"] {
        cases.push(bad("GET", CONFIG_MAPS, 406, "NotAcceptable").header("accept", accept));
        cases.push(bad("GET", DEFAULT, 406, "NotAcceptable").header("accept", accept));
        cases.push(bad("GET", format!("{CONFIG_MAPS}?watch=1"), 406, "NotAcceptable").header("accept", accept));
        // What cannot be answered is not done.
        cases.push(bad("POST", CONFIG_MAPS, 406, "NotAcceptable").body(JSON, object).header("accept", accept));
    }
    for method in ["HEAD", "OPTIONS", "TRACE", "FOO"] {
        for path in [CONFIG_MAPS, DEFAULT, "/api", "/api/v1", "/apis/apps/v1", "/version"] {
            cases.push(bad(method, path, 405, "MethodNotAllowed"));
        }
        cases.push(bad(method, "/none", 404, ""));
    }
    for method in ["HEAD", "OPTIONS", "GET"] {
        // Proxies pass these on, if there is anybody to pass them on to.
        for proxy in ["services/none/proxy", "services/none/proxy/a", "pods/none/proxy"] {
            cases.push(bad(method, format!("/api/v1/namespaces/default/{proxy}"), 404, "NotFound"));
        }
        cases.push(bad(method, "/api/v1/namespaces/default/services/a:b:c:d/proxy", 400, "BadRequest"));
    }
    for (method, path) in [
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("POST", DEFAULT),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("POST", "/api"),
        ("DELETE", "/version"),
    ] {
        cases.push(bad(method, path, 405, "MethodNotAllowed").body(JSON, "{}"));
    }
    check_all(cases).await;
}
