//! In which encodings objects travel beside JSON: protobuf, and CBOR where it is switched on.

use http::Method;
use revisor_catalog::Catalog;
use revisor_object::Value as Decoded;
use revisor_schema::{CBOR_TAG, Envelope};
use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::custom::{define, definition, objects, version};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, config_map};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CBOR: &str = "application/cbor";
const METADATA: &str = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

async fn get_as(client: &Client, path: &str, accept: &str) -> Reply {
    client.send(Method::GET, path, &[("accept", accept)], "").await
}

/// The config map in an envelope, as JSON without its kind.
#[track_caller]
fn config_map_in(bytes: &[u8]) -> Value {
    let envelope = Envelope::read(bytes).expect("an envelope");
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("v1", "ConfigMap"));
    let catalog = Catalog::default();
    let config_maps = catalog.resource("", "v1", "configmaps").expect("is served");
    let mut object = config_maps.read_protobuf(envelope.raw).expect("a message");
    config_maps.conform(&mut object).expect("a config map");
    serde_json::from_str(&object.to_json()).expect("JSON")
}

fn without_type(mut object: Value) -> Value {
    let members = object.as_object_mut().expect("an object");
    members.remove("kind");
    members.remove("apiVersion");
    object
}

#[tokio::test]
async fn objects_say_the_same_in_protobuf_and_come_back_as_they_went() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let json = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let path = format!("{CONFIG_MAPS}/a");
    let got = get_as(&client, &path, PROTOBUF).await.expect(200);
    assert_eq!(got.header("content-type"), Some(PROTOBUF));
    assert_eq!(config_map_in(&got.body), without_type(json));
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let put = client.send(Method::PUT, &path, &headers, got.body.clone()).await.expect(200);
    assert_eq!(put.body, got.body, "nothing changed");
    let listed = get_as(&client, CONFIG_MAPS, PROTOBUF).await.expect(200);
    let list = Envelope::read(&listed.body).expect("an envelope");
    assert_eq!(list.kind, "ConfigMapList");
    let message = Envelope::read(&got.body).expect("an envelope").raw.to_vec();
    assert!(list.raw.ends_with(&message), "the item is the message of the object");
    let missing = get_as(&client, &format!("{path}b"), PROTOBUF).await.expect(404);
    assert_eq!(Envelope::read(&missing.body).expect("an envelope").kind, "Status");
}

#[tokio::test]
async fn a_watch_in_protobuf_is_framed_by_lengths() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let json = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da");
    for _ in 0..2 {
        let watched = get_as(&client, &path, PROTOBUF).await.expect(200);
        assert_eq!(watched.header("content-type"), Some("application/vnd.kubernetes.protobuf;stream=watch"));
        let (length, rest) = watched.body.split_first_chunk::<4>().expect("a length");
        assert_eq!(u32::from_be_bytes(*length) as usize, rest.len());
        assert!(rest.starts_with(b"\x0a\x05ADDED\x12"), "{rest:?}");
        let start = rest.windows(4).position(|bytes| bytes == b"k8s\0").expect("an envelope");
        assert_eq!(config_map_in(&rest[start..]), without_type(json.clone()));
    }
}

/// A list is as long as its head says, however many turns it takes to measure it.
#[tokio::test]
async fn long_lists_are_as_long_as_they_say() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let large = "x".repeat(200 * 1024);
    for name in ["a", "b", "c", "d"] {
        client.post(CONFIG_MAPS, &config_map(name, &large)).await.expect(201);
    }
    for _ in 0..2 {
        let listed = get_as(&client, CONFIG_MAPS, PROTOBUF).await.expect(200);
        let list = Envelope::read(&listed.body).expect("as long as it says");
        assert!(list.raw.len() > 4 * large.len() && listed.body.len() < list.raw.len() + 100);
    }
}

#[tokio::test]
async fn custom_resources_have_only_their_metadata_in_protobuf() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    define(&client, &definition("example.com", "gadgets", json!([version("v1", true, spec)]))).await;
    let path = objects("example.com", "v1", "gadgets");
    let gadget = json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"n": 1}});
    client.post(&path, &gadget).await.expect(201);
    let one = format!("{path}/a");
    let refused = get_as(&client, &one, PROTOBUF).await.expect(406);
    assert_eq!(refused.header("content-type"), Some(PROTOBUF));
    let json = get_as(&client, &one, &format!("{PROTOBUF},application/json")).await.expect(200);
    assert_eq!((json.header("content-type"), &json.json()["spec"]), (Some("application/json"), &json!({"n": 1})));
    let metadata = get_as(&client, &one, &format!("{PROTOBUF}{METADATA}")).await.expect(200);
    assert_eq!(Envelope::read(&metadata.body).expect("an envelope").kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn cbor_is_spoken_where_it_is_switched_on() {
    let server = Server::start(&["--feature-gates=CBORServingAndStorage=true"]).await;
    let client = server.client();
    let catalog = Catalog::default();
    let (types, id) = catalog.resource("", "v1", "configmaps").expect("is served").typed();
    let decoded = |bytes: &[u8]| -> Value {
        assert!(bytes.starts_with(&CBOR_TAG), "describes itself");
        let value = types.read_cbor(Some(id), bytes).expect("CBOR");
        serde_json::from_str(&value.to_json()).expect("JSON")
    };
    let sent = config_map("a", "1").to_string();
    let Ok(Decoded::Object(object)) = revisor_object::parse_json(sent.as_bytes()).map(|parsed| parsed.value) else {
        panic!("a config map is an object")
    };
    let headers = [("content-type", CBOR), ("accept", CBOR)];
    let body = types.write_cbor(Some(id), &object);
    let made = client.send(Method::POST, CONFIG_MAPS, &headers, body).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let json = client.get(&path).await.expect(200).json();
    assert_eq!(decoded(&made.body), json);
    assert_eq!(decoded(&get_as(&client, &path, CBOR).await.expect(200).body), json);
    let watched = get_as(&client, &format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1"), CBOR).await.expect(200);
    assert_eq!(watched.header("content-type"), Some("application/cbor-seq"));
    let (server, _) = server.terminate().await;
    let server = server.with_flags(&["--feature-gates=CBORServingAndStorage=false"]).start().await;
    let client = server.client();
    assert_eq!(client.get(&path).await.expect(200).json(), json);
    get_as(&client, &path, CBOR).await.expect(406);
}

#[tokio::test]
async fn bad_cbor_is_refused_in_the_words_of_the_original() {
    let server = Server::start(&["--feature-gates=CBORServingAndStorage=true"]).await;
    let client = server.client();
    let unread =
        "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: ";
    let unfit = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ";
    for (body, want) in [
        (&b"\xa1\x64"[..], format!("{unread}unexpected EOF (a164)")),
        (b"\x01", format!("{unread}cbor: cannot unmarshal positive integer into Go value of type v1.TypeMeta (01)")),
        (
            b"\xa1\x64data\xa1\x61k\x01",
            format!(
                "{unfit}cbor: cannot unmarshal positive integer into Go struct field v1.ConfigMap.data of type string"
            ),
        ),
        (
            b"\xa1\x64data\xa2\x61k\x61v\x61k\x61w",
            format!("{unfit}cbor: found duplicate map key \"k\" at map element index 1"),
        ),
    ] {
        let headers = [("content-type", CBOR), ("accept", "application/json")];
        let refused = client.send(Method::POST, CONFIG_MAPS, &headers, body.to_vec()).await.expect(400);
        assert_eq!(refused.json()["message"], want.as_str(), "{body:x?}");
    }
    let headers = [("content-type", CBOR), ("accept", CBOR)];
    let refused = client.send(Method::PATCH, &format!("{CONFIG_MAPS}/a"), &headers, "").await.expect(415);
    assert_eq!(refused.header("content-type"), Some("application/json"), "routes know nothing of CBOR");
    let headers = [("content-type", "application/apply-patch+cbor"), ("accept", "application/json")];
    let path = format!("{CONFIG_MAPS}/applied?fieldManager=me");
    let config =
        b"\xa4\x64kind\x69ConfigMap\x6aapiVersion\x62v1\x68metadata\xa1\x64name\x67applied\x64data\xa1\x61k\x61v";
    let made = client.send(Method::PATCH, &path, &headers, config.to_vec()).await.expect(201).json();
    assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Apply");
    for (body, want) in [
        (&b"\x01"[..], "cbor: cannot unmarshal positive integer into Go value of type map[string]interface {}"),
        (b"\xa2\x61a\x01\x61a\x02", "cbor: found duplicate map key \"a\" at map element index 1"),
    ] {
        let refused = client.send(Method::PATCH, &path, &headers, body.to_vec()).await.expect(400);
        assert_eq!(refused.json()["message"], format!("error decoding YAML: {want}"), "{body:x?}");
    }
}

#[tokio::test]
async fn what_is_no_object_has_types_of_its_own() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for (path, accept, code) in [
        ("/.well-known/openid-configuration/", "application/json", 200),
        ("/openid/v1/jwks/", "application/jwk-set+json", 200),
        ("/.well-known/openid-configuration", "application/json", 200),
        ("/.well-known/openid-configuration", "text/plain", 406),
        ("/openid/v1/jwks", "application/jwk-set+json", 200),
        ("/openid/v1/jwks", "application/json", 406),
        ("/api/v1/namespaces/default/pods/a/log", "text/html", 406),
        ("/api/v1/namespaces/default/pods/a/log", "application/json", 404),
        ("/api/v1/namespaces/default/pods/a/log", "*/*", 404),
    ] {
        get_as(&client, path, accept).await.expect(code);
    }
}

#[tokio::test]
async fn that_a_patch_cannot_be_read_is_said_before_that_its_answer_cannot_be_had() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let path = format!("{CONFIG_MAPS}/a");
    for (sent, code) in [("text/plain", 415), ("application/merge-patch+json", 406)] {
        client.send(Method::PATCH, &path, &[("content-type", sent), ("accept", "text/html")], "{}").await.expect(code);
    }
    for (sent, wanted) in [
        ("text/plain", "415: Unsupported Media Type"),
        (
            "application/merge-patch+json,application/json-patch+json",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, \
             application/apply-patch+yaml",
        ),
    ] {
        let refused = client.send(Method::PATCH, &path, &[("content-type", sent)], "{}").await.expect(415);
        assert_eq!(refused.json()["message"], wanted, "{sent}");
    }
}

/// What only its owner understands keeps its text wherever it is not shown as JSON, also when something else is changed.
#[tokio::test]
async fn raw_json_keeps_its_blanks_its_order_and_its_numbers() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let text = "{ \"b\" : 1.0,\n\"a\":[ \"<\", 1e3, 123456789012345678901 ] }";
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},\"revision\":1,\"data\":{text}}}");
    let json = [("content-type", "application/json")];
    client.send(Method::POST, path, &json, body).await.expect(201);
    let one = format!("{path}/a");
    let patch = [("content-type", "application/merge-patch+json")];
    client.send(Method::PATCH, &one, &patch, r#"{"metadata":{"labels":{"x":"y"}}}"#).await.expect(200);
    let holds = |body: &[u8], wanted: &str| body.windows(wanted.len()).any(|part| part == wanted.as_bytes());
    for path in [&one, path] {
        let got = get_as(&client, path, PROTOBUF).await.expect(200);
        assert!(holds(&got.body, text), "{path}: {:?}", String::from_utf8_lossy(&got.body));
        let shown = r#""data":{"b":1.0,"a":["\u003c",1e3,123456789012345678901]}"#;
        let got = get_as(&client, path, "application/json").await.expect(200);
        assert!(holds(&got.body, shown), "{path}: {:?}", String::from_utf8_lossy(&got.body));
    }
    let again = format!("{path}?watch=1&timeoutSeconds=1&resourceVersion=0");
    let watched = get_as(&client, &again, "application/json").await.expect(200);
    assert_eq!(watched.body.iter().filter(|byte| **byte == b'\n').count(), 1, "an event is a line");
}

/// Texts of protobuf may be any bytes. Who reads JSON sees replacement characters in the place of those that are no text.
#[tokio::test]
async fn bytes_that_are_no_text_come_back_to_those_who_read_protobuf() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let odd = b"a\xff\xfeb";
    let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x1b\x0a\x0e\x0a\x01a\x62\x09\x0a\x01n\x12\x04a\xff\xfeb\x12\x09\x0a\x01k\x12\x04a\xff\xfeb";
    let sent = [("content-type", PROTOBUF), ("accept", "application/json")];
    let made = client.send(Method::POST, CONFIG_MAPS, &sent, body.to_vec()).await.expect(201);
    let one = format!("{CONFIG_MAPS}/a");
    let named = format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da");
    let watch = format!("{named}&watch=1&timeoutSeconds=1");
    let count = |body: &[u8], wanted: &[u8]| body.windows(wanted.len()).filter(|part| *part == wanted).count();
    for (path, form, times) in
        [(&one, "", 2), (&one, METADATA, 1), (&named, "", 2), (&watch, "", 2), (&watch, METADATA, 1)]
    {
        let got = get_as(&client, path, &format!("{PROTOBUF}{form}")).await.expect(200);
        assert_eq!(count(&got.body, odd), times, "{path}{form}: {:?}", String::from_utf8_lossy(&got.body));
        let got = get_as(&client, path, &format!("application/json{form}")).await.expect(200);
        assert_eq!(count(&got.body, br#""a\ufffd\ufffdb""#), times, "{path}{form}: {}", got.text());
    }
    let table = get_as(&client, &one, "application/json;as=Table;g=meta.k8s.io;v=v1").await.expect(200);
    assert_eq!(count(&table.body, br#""a\ufffd\ufffdb""#), 1, "{}", table.text());
    let yaml = get_as(&client, &one, "application/yaml").await.expect(200);
    assert!(yaml.text().contains("k: a\u{fffd}\u{fffd}b\n"), "{}", yaml.text());
    let again = client.send(Method::PUT, &one, &sent, body.to_vec()).await.expect(200);
    assert_eq!(again.json(), made.json(), "nothing changed");
    let config = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"y"}}"#;
    for (patch, body, kept) in [
        ("application/strategic-merge-patch+json", r#"{"data":{"w":"1"}}"#, 2),
        ("application/apply-patch+yaml", config, 2),
        ("application/merge-patch+json", r#"{"data":{"z":"1"}}"#, 0),
    ] {
        let headers = [("content-type", patch), ("accept", PROTOBUF)];
        let got = client.send(Method::PATCH, &format!("{one}?fieldManager=me"), &headers, body).await.expect(200);
        assert_eq!(count(&got.body, odd), kept, "{patch}: {:?}", String::from_utf8_lossy(&got.body));
    }
    let odd_name = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x06\x0a\x04\x0a\x02a\xff";
    let refused = client.send(Method::POST, CONFIG_MAPS, &sent, odd_name.to_vec()).await.expect(422);
    let message = r#"ConfigMap "a\xff" is invalid: metadata.name: Invalid value: "a\xff": "#;
    assert!(refused.json()["message"].as_str().is_some_and(|text| text.starts_with(message)), "{}", refused.text());
    let pair = "\u{fdd8}\u{fde0}";
    let json = client.post(CONFIG_MAPS, &config_map("pair", pair)).await.expect(201).json();
    assert_eq!(json["data"]["k"], pair, "what looks like a kept byte is none");
    let got = get_as(&client, &format!("{CONFIG_MAPS}/pair"), PROTOBUF).await.expect(200);
    assert_eq!(count(&got.body, pair.as_bytes()), 1);
}

/// As Go's decoder does: strings are mended, and nothing else is.
#[tokio::test]
async fn bytes_of_json_that_are_no_text_are_replaced() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let json = [("content-type", "application/json")];
    let body = b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"a\xff\xe2\x82b\"}}";
    let made = client.send(Method::POST, CONFIG_MAPS, &json, body.to_vec()).await.expect(201).json();
    assert_eq!(made["data"]["k"], "a\u{fffd}\u{fffd}\u{fffd}b");
    let patch = [("content-type", "application/merge-patch+json")];
    let path = format!("{CONFIG_MAPS}/a");
    let patched = client.send(Method::PATCH, &path, &patch, b"{\"data\":{\"k\":\"\xff\"}}".to_vec()).await.expect(200);
    assert_eq!(patched.json()["data"]["k"], "\u{fffd}");
}

/// Bytes that were found to differ when the same was asked of the original.
#[tokio::test]
async fn answers_are_spelled_as_the_original_spells_them() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define(&client, &definition("example.com", "gadgets", json!([version("v1", true, spec)]))).await;
    let gadgets = objects("example.com", "v1", "gadgets");
    client.post(CONFIG_MAPS, &config_map("a", "<&>\u{2028}\u{7f}")).await.expect(201);
    let one = format!("{CONFIG_MAPS}/a");
    for (path, accept, code, wanted) in [
        ("/api", "application/json", 200, r#"{"kind":"APIVersions","versions":["v1"],"serverAddress"#),
        ("/api/v1", "application/json", 200, r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"#),
        ("/apis/apps", "application/json", 200, r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":["#),
        ("/apis/example.com/v1", "application/*", 200, r#""verbs":["delete","deletecollection","get","list","patch""#),
        ("/apis/example.com/v1", "text/html", 406, "only the following media types are accepted"),
        (
            &*gadgets,
            "application/json",
            200,
            r#"{"apiVersion":"example.com/v1","items":[],"kind":"GadgetList","metadata":{"continue":"","#,
        ),
        (&*one, "application/json", 200, "\\u003c\\u0026\\u003e\\u2028\u{7f}"),
        ("/api/v1/namespaces/default/configmaps/%3C", "application/json", 404, r#"configmaps \"\u003c\" not found"#),
        (&*one, "application/yaml", 500, "yaml: control characters are not allowed"),
        (CONFIG_MAPS, "application/yaml", 500, "yaml: control characters are not allowed"),
    ] {
        let got = get_as(&client, path, accept).await.expect(code);
        let text = String::from_utf8_lossy(&got.body).into_owned();
        assert!(text.contains(wanted), "{path} as {accept}: {text}");
    }
}

/// What is told of bodies that cannot be read, in the words of the original.
#[tokio::test]
async fn bad_bodies_are_told_in_the_words_of_the_original() {
    let server = Server::start(&[]).await;
    let client = server.client();
    const UNRECOGNIZED: &str = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ";
    const UNFIT: &str = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ";
    for (kind, body, wanted) in [
        ("application/json", &b""[..], format!("{UNRECOGNIZED}unexpected end of JSON input (<empty>)")),
        ("application/json", b"{", format!("{UNRECOGNIZED}unexpected end of JSON input ({{)")),
        ("application/json", b"a: b", format!("{UNRECOGNIZED}invalid character 'a' looking for beginning of value (613a2062)")),
        ("application/json", b"{} x", format!("{UNRECOGNIZED}invalid character 'x' after top-level value ({{}} x)")),
        ("application/json", b"{}\xff", format!("{UNRECOGNIZED}invalid character 'ÿ' after top-level value ({{}}\u{fffd})")),
        ("application/yaml", b"a: \xff", "the object provided is unrecognized (must be of type ConfigMap): yaml: invalid leading UTF-8 octet (613a20ff)".to_owned()),
        ("application/yaml", b"a: \x7f", "the object provided is unrecognized (must be of type ConfigMap): yaml: control characters are not allowed (613a207f)".to_owned()),
        ("application/yaml", b"a: b: c", "the object provided is unrecognized (must be of type ConfigMap): yaml: mapping values are not allowed in this context (613a20623a2063)".to_owned()),
        ("application/yaml", b"a:\n\tb: c", "the object provided is unrecognized (must be of type ConfigMap): yaml: line 2: found character that cannot start any token (613a0a09623a2063)".to_owned()),
        ("application/yaml", b"a: {~: b}", "the object provided is unrecognized (must be of type ConfigMap): unsupported map key of type: %!s(<nil>), key: <nil>, value: \"b\" (613a207b7e3a20627d)".to_owned()),
        ("application/json", b"{\"kind\":1}", format!("{UNRECOGNIZED}json: cannot unmarshal number into Go struct field .kind of type string ({{\"kind\":1}})")),
        ("application/json", b"{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\"}", "Deployment in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Deployment) to (core.ConfigMap): unknown conversion".to_owned()),
        ("application/json", b"{\"kind\":\"Status\",\"apiVersion\":\"v1\"}", "Status in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Status) to (core.ConfigMap): unknown conversion".to_owned()),
        ("application/json", b"{\"kind\":\"PodList\",\"apiVersion\":\"v1\"}", "PodList in version \"v1\" cannot be handled as a ConfigMap: converting (v1.PodList) to (core.ConfigMap): unknown conversion".to_owned()),
        ("application/json", b"{\"kind\":\"PodTemplateSpec\",\"apiVersion\":\"v1\"}", "PodTemplateSpec in version \"v1\" cannot be handled as a ConfigMap: no kind \"PodTemplateSpec\" is registered for version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"".to_owned()),
        ("application/json", b"{\"apiVersion\":\"a/b/c\"}", "the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({\"apiVersion\":\"a/b/c\"})".to_owned()),
        ("application/json", b"{\"metadata\":{\"name\":1}}", format!("{UNFIT}json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string")),
        (PROTOBUF, b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x08\x01", format!("{UNFIT}proto: wrong wireType = 0 for field ObjectMeta")),
        (PROTOBUF, b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x07\x12\x05\x08\x01\x12\x01v", format!("{UNFIT}unexpected EOF")),
        (PROTOBUF, b"k8s\0\x0a\x0a\x0a\x02v1\x12\x04Nope\x12\x00", "Nope in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nope\" is registered for version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"".to_owned()),
    ] {
        let headers = [("content-type", kind)];
        let got = client.send(Method::POST, CONFIG_MAPS, &headers, body.to_vec()).await.expect(400);
        assert_eq!(got.json()["message"], json!(wanted));
    }
}
