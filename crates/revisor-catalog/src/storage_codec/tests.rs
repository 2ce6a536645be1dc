//! What is kept of objects, and that it comes back.

use super::*;

fn codec(media: StorageMediaType) -> StorageCodec {
    StorageCodec::new(&Catalog::default(), media)
}

fn canonical(catalog: &Catalog, group: &str, plural: &str, json: &str) -> Vec<u8> {
    let resource = catalog.stored_kind(group, plural).expect("is built in");
    let mut value = parse_json(json.as_bytes()).expect("is JSON").value;
    resource.conform(&mut value).expect("fits");
    let object = value.as_object_mut().expect("is an object");
    object.remove("kind");
    object.remove("apiVersion");
    resource.default(object);
    resource.encode(object).bytes
}

const METADATA: &str =
    r#""metadata":{"name":"x","namespace":"a","uid":"u","creationTimestamp":"2020-01-01T00:00:00Z"}"#;

#[test]
fn built_in_kinds_are_kept_as_protobuf_json_or_yaml_and_come_back() {
    let catalog = Catalog::default();
    for (group, plural, folder, start, rest) in [
        ("", "configmaps", "configmaps", "ConfigMap", r#""data":{"a":"1"}"#),
        ("", "services", "services/specs", "Service", r#""spec":{"ports":[{"port":80}]}"#),
        ("", "nodes", "minions", "Node", r#""spec":{}"#),
        ("apps", "deployments", "deployments", "Deployment", r#""spec":{"replicas":2}"#),
    ] {
        let bytes = canonical(&catalog, group, plural, &format!("{{{METADATA},{rest}}}"));
        let key = format!("/registry/{folder}/a/x");
        let all = [StorageMediaType::Protobuf, StorageMediaType::Json, StorageMediaType::Yaml];
        for media in all {
            let codec = codec(media);
            let kept = codec.encode(&key, &bytes, true).expect("can be kept");
            let found = match &kept[..] {
                [b'k', b'8', b's', 0, ..] => StorageMediaType::Protobuf,
                [b'{', .., b'}', b'\n'] => StorageMediaType::Json,
                _ => StorageMediaType::Yaml,
            };
            assert_eq!(found, media, "{plural}");
            let text = String::from_utf8_lossy(&kept).into_owned();
            assert!(text.contains(start), "{plural}: {text}");
            let read = codec.decode(&key, &kept).expect("can be read");
            assert_eq!(String::from_utf8_lossy(&read.bytes), String::from_utf8_lossy(&bytes));
            assert!(!read.is_outdated && read.revision_at.is_some());
        }
        // What the other forms left is read, and would be written anew.
        for (theirs, ours) in all.iter().flat_map(|theirs| all.iter().map(move |ours| (*theirs, *ours))) {
            let other = codec(theirs).encode(&key, &bytes, true).expect("can be kept");
            let read = codec(ours).decode(&key, &other).expect("can be read");
            assert_eq!((&read.bytes, read.is_outdated), (&bytes, theirs != ours), "{plural}: {theirs:?}, {ours:?}");
        }
    }
}

#[test]
fn custom_objects_and_notes_are_kept_as_json() {
    let codec = codec(StorageMediaType::Protobuf);
    let object = br#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","uid":"u"},"spec":{"a":1}}"#;
    let key = "/registry/example.com/widgets/a/x";
    let kept = codec.encode(key, object, true).expect("can be kept");
    assert_eq!(kept, [&object[..], b"\n"].concat());
    let read = codec.decode(key, &kept).expect("can be read");
    assert_eq!((read.bytes, read.is_outdated), (object.to_vec(), false));
    // As others may write it.
    let loose = br#"{"kind":"Widget","apiVersion":"example.com/v1","spec":{"a":1},
        "metadata":{"uid":"u","name":"x","resourceVersion":"7","selfLink":"/x"}}"#;
    let read = codec.decode(key, loose).expect("can be read");
    assert_eq!((read.bytes, read.is_outdated), (object.to_vec(), true));
    let note = br#"{"definition":"u","since":"2020-01-01T00:00:00Z"}"#;
    let key = "/registry/versionusage/example.com/widgets/one";
    assert_eq!(codec.encode(key, note, false).expect("can be kept"), note);
    let read = codec.decode(key, note).expect("can be read");
    assert_eq!((read.bytes, read.revision_at), (note.to_vec(), None));
}

/// Who sends the same again must not have changed anything, so the original keeps what was sent.
#[test]
fn json_within_an_object_comes_back_as_it_was_sent() {
    let catalog = Catalog::default();
    let resource = catalog.stored_kind("apps", "controllerrevisions").expect("is built in");
    let key = "/registry/controllerrevisions/a/x";
    for (data, shown) in [(r#"{"b": 1.0, "a":[ ]}"#, r#"{"b":1.0,"a":[]}"#), (r#"{"a":1}"#, r#"{"a":1}"#)] {
        let json = format!(r#"{{{METADATA},"data":{data},"revision":1}}"#);
        let mut value = parse_json(json.as_bytes()).expect("is JSON").value;
        resource.keep_raw(&mut value, json.as_bytes());
        resource.conform(&mut value).expect("fits");
        let bytes = resource.encode(value.as_object().expect("is an object")).bytes;
        let kept = codec(StorageMediaType::Protobuf).encode(key, &bytes, true).expect("can be kept");
        let read = codec(StorageMediaType::Protobuf).decode(key, &kept).expect("can be read");
        assert_eq!(String::from_utf8_lossy(&read.bytes), String::from_utf8_lossy(&bytes));
        assert!(!read.is_outdated);
        // Go writes it without blanks.
        let kept = codec(StorageMediaType::Json).encode(key, &bytes, true).expect("can be kept");
        assert!(kept.starts_with(b"{") && String::from_utf8_lossy(&kept).contains(shown), "{kept:?}");
        let read = codec(StorageMediaType::Json).decode(key, &kept).expect("can be read");
        assert!(String::from_utf8_lossy(&read.bytes).contains(shown), "{:?}", String::from_utf8_lossy(&read.bytes));
    }
}

/// As a kube-apiserver 1.36 leaves it there, all features on.
#[test]
fn what_servers_tell_each_other_is_read() {
    let codec = codec(StorageMediaType::Protobuf);
    let master = b"k8s\0\n\x0f\n\x02v1\x12\tEndpoints\x12#\n\x10\n\0\x12\0\x1a\0\"\0*\x002\x008\x04B\0\
        \x12\x0f\n\r\n\t192.0.2.2\x1a\0\x1a\0\"\0";
    let peer = b"k8s\0\n\x0f\n\x02v1\x12\tEndpoints\x12=\n\x18\n\0\x12\0\x1a\0\"\0*\x002\x008\x08B\0\
        Z\x06\n\x01i\x12\x01a\
        \x12!\n\r\n\t192.0.2.2\x1a\0\x1a\x10\n\x05https\x10\xc3\xa7\x01\x1a\x03TCP\x1a\0\"\0";
    for (key, value, ports) in [
        ("/registry/masterleases/192.0.2.2", &master[..], ""),
        (
            "/registry/peerserverleases/apiserver-a",
            peer,
            r#","ports":[{"name":"https","port":21443,"protocol":"TCP"}]"#,
        ),
    ] {
        let read = codec.decode(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
        let text = String::from_utf8(read.bytes).expect("is text");
        let subsets = format!(r#""subsets":[{{"addresses":[{{"ip":"192.0.2.2"}}]{ports}}}]"#);
        assert!(text.contains(&subsets), "{text}");
        assert_eq!((read.revision_at, read.is_outdated), (None, false), "{key}");
    }
}

#[test]
fn json_is_kept_as_go_writes_it() {
    assert_eq!(
        line("{\"a\":\"<&> ü € \u{2028}\"}".as_bytes()),
        "{\"a\":\"\\u003c\\u0026\\u003e ü € \\u2028\"}\n".as_bytes()
    );
}

#[test]
fn definitions_are_kept_in_their_beta_form() {
    let catalog = Catalog::default();
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
    let column = r#""additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a"}]"#;
    let schema = r#""schema":{"openAPIV3Schema":{"type":"object"}}"#;
    let webhook = r#""conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://x"},"conversionReviewVersions":["v1"]}}"#;
    for (name, first, second, conversion, contains, lacks) in [
        (
            "all is the same",
            format!("{schema},{column}"),
            format!("{schema},{column}"),
            "",
            vec![r#""validation":{"#, r#""JSONPath":".spec.a""#],
            vec![r#""schema""#, "jsonPath"],
        ),
        (
            "columns differ",
            format!("{schema},{column}"),
            schema.to_owned(),
            "",
            vec![r#""validation":{"#, r#""JSONPath":".spec.a""#],
            vec!["jsonPath"],
        ),
        (
            "schemas differ",
            schema.to_owned(),
            r#""schema":{"openAPIV3Schema":{"type":"object","description":"d"}}"#.to_owned(),
            "",
            vec![r#""schema":{"#],
            vec!["validation"],
        ),
        (
            "a webhook",
            schema.to_owned(),
            schema.to_owned(),
            webhook,
            vec![r#""webhookClientConfig":{"url":"https://x"}"#, r#""conversionReviewVersions":["v1"]"#],
            vec![r#""webhook":"#],
        ),
    ] {
        let comma = if conversion.is_empty() { "" } else { "," };
        let json = format!(
            r#"{{"metadata":{{"name":"widgets.example.com","uid":"u","creationTimestamp":"2020-01-01T00:00:00Z"}},"spec":{{
            "group":"example.com","scope":"Namespaced","names":{{"plural":"widgets","kind":"Widget","singular":"widget","listKind":"WidgetList"}},
            "versions":[{{"name":"v1","served":true,"storage":true,{first}}},{{"name":"v2","served":true,"storage":false,{second}}}]{comma}{conversion}}}}}"#
        );
        let bytes = canonical(&catalog, "apiextensions.k8s.io", "customresourcedefinitions", &json);
        let codec = codec(StorageMediaType::Protobuf);
        let kept = codec.encode(key, &bytes, true).expect("can be kept");
        let text = String::from_utf8(kept.clone()).expect("is JSON");
        assert!(text.contains(r#""apiVersion":"apiextensions.k8s.io/v1beta1""#), "{name}: {text}");
        assert!(
            text.contains(r#""version":"v1""#) && text.contains(r#""preserveUnknownFields":false"#),
            "{name}: {text}"
        );
        assert!(contains.iter().all(|part| text.contains(part)), "{name}: {text}");
        assert!(!lacks.iter().any(|part| text.contains(part)), "{name}: {text}");
        let read = codec.decode(key, &kept).expect("can be read");
        assert_eq!(String::from_utf8_lossy(&read.bytes), String::from_utf8_lossy(&bytes), "{name}");
        assert!(!read.is_outdated, "{name}");
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let codec = codec(StorageMediaType::Protobuf);
    for (key, value, want) in [
        ("/registry/pods/a/x", &b""[..], "the value is empty"),
        ("/registry/pods/a/x", b"k8s:enc:aescbc:v1:one:...", "the value is encrypted, and there is no key for it"),
        ("/registry/pods/a/x", b"nonsense", "the value is neither protobuf nor JSON nor YAML nor CBOR"),
        ("/registry/pods/a/x", b"{\"a\":", "the value cannot be decoded: "),
        (
            "/registry/pods/a/x",
            b"k8s\0\x0a\x0b\x0a\x02v1\x12\x05Other",
            "the value cannot be decoded: it is a Other, where a Pod is kept",
        ),
        (
            "/registry/example.com/widgets/a/x",
            b"k8s\0\x0a\x00",
            "the value cannot be decoded: no message is known for it",
        ),
    ] {
        let error = codec.decode(key, value).expect_err("cannot be read").to_string();
        assert!(error.starts_with(want), "{}: {error}", String::from_utf8_lossy(value));
    }
}

#[test]
fn another_version_of_a_kind_is_read_and_outdated() {
    let catalog = Catalog::default();
    let codec = codec(StorageMediaType::Protobuf);
    let old = br#"{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"x","namespace":"a","uid":"u",
        "creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,
        "scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}"#;
    let read = codec.decode("/registry/horizontalpodautoscalers/a/x", old).expect("can be read");
    let text = String::from_utf8(read.bytes).expect("is JSON");
    assert!(text.contains(r#""apiVersion":"autoscaling/v2""#) && text.contains("averageUtilization"), "{text}");
    assert!(read.is_outdated);
    drop(catalog);
}
