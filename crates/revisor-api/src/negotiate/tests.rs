//! What clients accept, and what they get.

use http::header::ACCEPT;

use super::*;

fn with(accept: &str) -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, accept.parse().expect("a header"))])
}

/// What is had of what is accepted.
type Had = Option<(Encoding, Form)>;

#[test]
fn the_first_clause_that_makes_sense_is_served() {
    use Encoding::{Json, Protobuf, Yaml};
    use MetaVersion::{V1, V1Beta1};
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                   application/json";
    let many = format!("{}*/*", "text/html,".repeat(20));
    let protobuf = "application/vnd.kubernetes.protobuf";
    let table = "as=Table;v=v1;g=meta.k8s.io";
    let partial = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    // What is accepted, and what is had of a built-in kind, of a custom one, and of what has one form only.
    let rows: Vec<(String, [Had; 3])> = vec![
        (String::new(), [Some((Json, Form::Whole)); 3]),
        ("application/json".into(), [Some((Json, Form::Whole)); 3]),
        ("*/*".into(), [Some((Json, Form::Whole)); 3]),
        (kubectl.into(), [Some((Json, Form::Table(V1))), Some((Json, Form::Table(V1))), Some((Json, Form::Whole))]),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io".into(),
            [Some((Json, Form::Table(V1Beta1))), Some((Json, Form::Table(V1Beta1))), None],
        ),
        (format!("application/yaml;{table}"), [Some((Yaml, Form::Table(V1))), Some((Yaml, Form::Table(V1))), None]),
        (
            "application/json; as=PartialObjectMetadata; v=v1; g=meta.k8s.io".into(),
            [Some((Json, Form::Metadata(V1))), Some((Json, Form::Metadata(V1))), None],
        ),
        (
            "*/*;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io".into(),
            [Some((Json, Form::MetadataList(V1))), Some((Json, Form::MetadataList(V1))), None],
        ),
        (protobuf.into(), [Some((Protobuf, Form::Whole)), None, Some((Protobuf, Form::Whole))]),
        (
            format!("{protobuf},application/json"),
            [Some((Protobuf, Form::Whole)), Some((Json, Form::Whole)), Some((Protobuf, Form::Whole))],
        ),
        (
            format!("{protobuf}, */*;q=0.8"),
            [Some((Protobuf, Form::Whole)), Some((Json, Form::Whole)), Some((Protobuf, Form::Whole))],
        ),
        (format!("{protobuf};stream=watch"), [Some((Protobuf, Form::Whole)), None, Some((Protobuf, Form::Whole))]),
        (format!("{protobuf};{table}"), [None; 3]),
        (
            format!("{protobuf};{table},{protobuf}"),
            [Some((Protobuf, Form::Whole)), None, Some((Protobuf, Form::Whole))],
        ),
        (
            format!("{protobuf};{partial}"),
            [Some((Protobuf, Form::Metadata(V1))), Some((Protobuf, Form::Metadata(V1))), None],
        ),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json".into(), [Some((Json, Form::Whole)); 3]),
        ("application/json;as=Table,application/yaml".into(), [Some((Yaml, Form::Whole)); 3]),
        ("application/json;q=0".into(), [Some((Json, Form::Whole)); 3]),
        ("application/json;q=0.1,application/yaml;q=0.9".into(), [Some((Yaml, Form::Whole)); 3]),
        ("*/*,application/yaml;q=0.1".into(), [Some((Yaml, Form::Whole)); 3]),
        ("*/*;q=0.9,application/yaml;q=0.1".into(), [Some((Yaml, Form::Whole)); 3]),
        ("application/yaml;q=0.1,*/*;q=0.9".into(), [Some((Json, Form::Whole)); 3]),
        ("application/*".into(), [Some((Json, Form::Whole)); 3]),
        ("application/yaml;stream=watch,application/json;stream=watch".into(), [Some((Json, Form::Whole)); 3]),
        ("application/json;stream=other".into(), [None; 3]),
        ("application/json;sv=v2".into(), [None; 3]),
        ("application/json;sv=v1".into(), [Some((Json, Form::Whole)), Some((Json, Form::Whole)), None]),
        ("application/json;as=Nonsense;v=v1;g=meta.k8s.io".into(), [None; 3]),
        ("application/json;as=Table;v=v1".into(), [None; 3]),
        ("text/html".into(), [None; 3]),
        ("text/html,*/*".into(), [Some((Json, Form::Whole)); 3]),
        (many, [Some((Json, Form::Whole)); 3]),
        ("nonsense,/,a/b/c,application/yaml".into(), [Some((Yaml, Form::Whole)); 3]),
    ];
    for (accept, want) in rows {
        let got = [Offer::BuiltIn, Offer::Custom, Offer::Plain].map(|offer| {
            let chosen = choose(&with(&accept), offer, Encoding::ALL);
            chosen.objects.map(|accepted| (accepted.encoding, accepted.form))
        });
        assert_eq!(got, want, "{accept}");
    }
    let silent = choose(&HeaderMap::new(), Offer::BuiltIn, Encoding::ALL);
    assert_eq!(silent, Chosen { objects: Some(DEFAULT), plain: Some(DEFAULT) });
}

#[test]
fn routes_look_at_the_type_alone() {
    for (accept, want) in [
        ("", true),
        ("*/*", true),
        ("application/yaml;as=Nonsense", true),
        ("text/html, application/vnd.kubernetes.protobuf;q=0.1", true),
        ("application/*", false),
        ("APPLICATION/JSON", false),
        (",", false),
    ] {
        assert_eq!(RouteTypes::of(&with(accept), Encoding::ALL).object, want, "{accept}");
    }
}

#[test]
fn discovery_is_aggregated_for_whoever_accepts_that() {
    use Encoding::{Json, Protobuf, Yaml};
    let form = FORM_OF_AGGREGATED;
    let beta = form.replace("v2", "v2beta1");
    for (accept, want) in [
        (String::new(), None),
        ("*/*".to_owned(), None),
        ("application/yaml".to_owned(), None),
        (format!("application/json;{form}"), Some(Json)),
        (format!("application/json;{form};profile=nopeer"), Some(Json)),
        (format!("application/yaml;{form}"), Some(Yaml)),
        (format!("*/*;{form}"), Some(Json)),
        (format!("application/json;q=0.9,application/json;{form};q=0.1"), Some(Json)),
        (format!("application/json;{beta},application/json;{form}"), Some(Json)),
        (format!("application/json;{beta},application/json"), None),
        (format!("application/json;{form};stream=watch"), Some(Json)),
        (format!("application/vnd.kubernetes.protobuf;{form},application/json"), Some(Protobuf)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json".to_owned(), None),
        (format!("application/json;{form};sv=v1"), None),
    ] {
        assert_eq!(aggregated_discovery(&with(&accept), Encoding::ALL), want, "{accept}");
    }
}

#[test]
fn pages_are_texts_unless_their_kind_is_asked_for() {
    use PageForm::{Object, Text};
    use PageVersion::{V1Alpha1, V1Beta1};
    let beta = Object { encoding: Encoding::Json, version: V1Beta1, is_pretty: false };
    for (accept, want) in [
        ("", Some(Text)),
        (" ", Some(Text)),
        ("*/*", Some(Text)),
        ("text/plain", Some(Text)),
        ("text/*", Some(Text)),
        ("application/json,text/plain", Some(Text)),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", Some(beta)),
        ("*/*;v=v1beta1;g=config.k8s.io;as=Statusz", Some(beta)),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz,text/plain;q=0.5", Some(beta)),
        (
            "application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz;pretty=1",
            Some(Object { encoding: Encoding::Yaml, version: V1Alpha1, is_pretty: true }),
        ),
        ("application/json", None),
        ("application/yaml", None),
        ("application/*", None),
        ("application/cbor", None),
        ("application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz", None),
        ("application/vnd.kubernetes.protobuf;v=v1beta1;g=config.k8s.io;as=Statusz", None),
        ("text/html", None),
        ("text/plain;v=v1beta1;g=config.k8s.io;as=Statusz", None),
        ("application/json;v=v1;g=config.k8s.io;as=Statusz", None),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
        ("application/json;v=v1beta1;as=Statusz", None),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz;stream=watch", None),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz;sv=v1", None),
    ] {
        assert_eq!(negotiate_page(&with(accept), "Statusz", Encoding::ALL).ok(), want, "{accept}");
    }
    let cbor = with("application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz");
    assert_eq!(
        negotiate_page(&cbor, "Statusz", Encoding::ALL_WITH_CBOR).ok(),
        Some(Object { encoding: Encoding::Cbor, version: V1Beta1, is_pretty: false })
    );
    for (offer, types) in [
        (Encoding::ALL, "application/json, application/yaml, text/plain"),
        (Encoding::ALL_WITH_CBOR, "application/json, application/yaml, text/plain, application/cbor"),
    ] {
        let refusal = negotiate_page(&with("application/json"), "Statusz", offer).expect_err("is refused");
        assert_eq!(refusal.message, format!("only the following media types are accepted: {types}"));
    }
}
