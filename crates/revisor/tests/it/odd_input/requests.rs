//! Odd texts and bytes in every place of a request that is not an object.

use bytes::Bytes;
use http::{HeaderValue, Method};
use revisor_fuzz::{Choices, odd_text};

use super::{assert_unhurt, check, seed};
use crate::client::{Client, JSON_PATCH, Reply};
use crate::harness::{Server, within};
use crate::objects::{CONFIG_MAPS, config_map};

/// How many texts are tried in each place.
const EACH: u64 = 20;

/// Parameters of a query with a good value for each.
const PARAMETERS: [(&str, &str); 14] = [
    ("labelSelector", "a in (b,c),!d,e=f"),
    ("fieldSelector", "metadata.name=a\\,b"),
    ("resourceVersion", "1"),
    ("resourceVersionMatch", "Exact"),
    ("continue", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"),
    ("limit", "5"),
    ("timeoutSeconds", "1"),
    ("timeout", "1s"),
    ("fieldManager", "me"),
    ("fieldValidation", "Strict"),
    ("dryRun", "All"),
    ("pretty", "true"),
    ("includeObject", "Metadata"),
    ("propagationPolicy", "Orphan"),
];

/// Headers with a good value for each.
const HEADERS: [(&str, &str); 9] = [
    ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io, */*;q=0.5"),
    ("content-type", "application/json; charset=utf-8"),
    ("user-agent", "kubectl/v1.36.0 (linux/amd64)"),
    ("accept-encoding", "gzip;q=0.5, identity"),
    ("authorization", "Bearer abc"),
    ("impersonate-user", "jane"),
    ("impersonate-group", "system:authenticated"),
    ("impersonate-extra-a%2fb", "c"),
    ("audit-id", "c0ffee"),
];

/// Escapes of what is no text, or that are none.
const ESCAPES: [&str; 9] = ["%ff", "%c3", "%00", "%2F", "%e2%82", "%", "%zz", "+", "%25"];

/// All bytes written so that a path or a query can have them; some as nobody should.
fn escaped(choices: &mut Choices<'_>, text: &str) -> String {
    let mut out: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    if choices.once_in(4) {
        out.push_str(ESCAPES[choices.below(ESCAPES.len())]);
    }
    out
}

/// Sends a request; nothing if HTTP has no way to say it.
async fn send(
    client: &Client,
    method: Method,
    path: &str,
    header: Option<(&str, &[u8])>,
    body: Bytes,
) -> Option<Reply> {
    path.parse::<http::Uri>().ok()?;
    let mut request = client.request(method, path, &[("content-type", "application/json")], body);
    if let Some((name, value)) = header {
        request.headers_mut().insert(name.parse::<http::HeaderName>().ok()?, HeaderValue::from_bytes(value).ok()?);
    }
    Some(within(client.try_request(request)).await.expect("is answered"))
}

#[tokio::test]
async fn requests_are_answered_whatever_stands_in_their_paths_queries_headers_and_patches() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201);
    let map = config_map("b", "1").to_string();
    let try_out = async |method: Method, path: &str, header: Option<(&str, &[u8])>, body: &str| {
        let reply = send(&client, method, path, header, Bytes::from(body.to_owned())).await;
        if let Some(reply) = reply.filter(|reply| reply.code != 504) {
            check(&reply, path);
        }
    };
    for number in seed()..seed() + EACH {
        let mut choices = Choices::seeded(number);
        for segment in ["api", "v1", "namespaces", "default", "configmaps", "a", "status"] {
            let odd = odd_text(&mut choices, segment);
            let odd = escaped(&mut choices, &odd);
            let path = format!("{CONFIG_MAPS}/a").replace(segment, &odd);
            try_out(Method::GET, &path, None, "").await;
            try_out(Method::DELETE, &format!("{path}?dryRun=All"), None, "").await;
        }
        for (name, good) in PARAMETERS {
            let odd = odd_text(&mut choices, good);
            let odd = escaped(&mut choices, &odd);
            try_out(Method::GET, &format!("{CONFIG_MAPS}?{name}={odd}"), None, "").await;
            try_out(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All&{name}={odd}"), None, &map).await;
        }
        for (name, good) in HEADERS {
            let mut odd = odd_text(&mut choices, good).into_bytes();
            if choices.once_in(3) {
                odd.push(0xff);
            }
            try_out(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), Some((name, &odd)), &map).await;
        }
        let pointer = odd_text(&mut choices, "/metadata/labels/a~1b~0c");
        let operation = *choices.of(&["add", "remove", "replace", "test", "copy", "move"]);
        let patch = serde_json::json!([{"op": operation, "path": pointer, "from": "/data", "value": {"a": pointer}}]);
        let header = Some(("content-type", JSON_PATCH.as_bytes()));
        try_out(Method::PATCH, &format!("{CONFIG_MAPS}/a?dryRun=All"), header, &patch.to_string()).await;

        // Bodies that begin as protobuf or YAML do, and go on as they like.
        let mut protobuf = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".to_vec();
        protobuf.extend((0..choices.below(60)).map(|_| choices.below(256) as u8));
        let header: Option<(&str, &[u8])> = Some(("content-type", b"application/vnd.kubernetes.protobuf"));
        let sent = send(&client, Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), header, protobuf.into()).await;
        check(&sent.expect("can be sent"), "protobuf");
        let yaml = odd_text(&mut choices, "{metadata: {name: b, labels: &a {x: y}}, data: *a}");
        let header: Option<(&str, &[u8])> = Some(("content-type", b"application/yaml"));
        try_out(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), header, &yaml).await;
    }
    assert_unhurt(&server).await;
}
