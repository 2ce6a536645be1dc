//! Pods in the registry: what is done to them beside writing them.

use std::time::Duration;

use revisor_object::{Object, Value};
use revisor_registry::{
    Decoded, DeleteOptions, Deleted, Eviction, FieldValidation, Format, Place, Preconditions, RegistryError,
    WriteOptions,
};

use crate::fixture::{Fixture, parse};

const POD: &str = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;

async fn with_account() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.create("serviceaccounts", r#"{"metadata":{"name":"default"}}"#).await.expect("is made");
    fixture
}

async fn bind(fixture: &Fixture, body: &str) -> Result<(), RegistryError> {
    let (pods, bindings) = (fixture.resource("pods"), fixture.resource("bindings"));
    let binding = Decoded::read(&bindings, Format::Json, body.as_bytes(), FieldValidation::Warn)?;
    let place = Place { resource: &pods, namespace: Some("default"), name: Some("p") };
    fixture.registry.bind(place, binding, WriteOptions::default()).await
}

async fn evict(fixture: &Fixture, body: &str) -> Result<(), RegistryError> {
    evict_by(fixture, body, FieldValidation::Warn).await
}

async fn evict_by(fixture: &Fixture, body: &str, validation: FieldValidation) -> Result<(), RegistryError> {
    let pods = fixture.resource("pods");
    let eviction = Eviction::read(&fixture.registry, Format::Json, body.as_bytes(), validation)?;
    let place = Place { resource: &pods, namespace: Some("default"), name: Some("p") };
    fixture.registry.evict(place, eviction, WriteOptions::default()).await
}

async fn delete(fixture: &Fixture, seconds: Option<i64>) -> Result<Deleted, RegistryError> {
    let pods = fixture.resource("pods");
    let place = Place { resource: &pods, namespace: Some("default"), name: Some("p") };
    let options = DeleteOptions { grace_period_seconds: seconds, ..DeleteOptions::default() };
    fixture.registry.delete(place, &options).await
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn a_pod_gets_what_its_namespace_gives_it() {
    let fixture = with_account().await;
    let pod = fixture.create("pods", POD).await.expect("is made");
    assert_eq!(text(&pod, &["spec", "serviceAccountName"]), "default");
    assert_eq!(pod.at(&["spec", "priority"]), Some(&Value::Int(0)));
    let spec = pod.get("spec").map(Value::to_json).expect("has a spec");
    for part in ["kube-api-access-", "/var/run/secrets/kubernetes.io/serviceaccount", "node.kubernetes.io/not-ready"] {
        assert!(spec.contains(part), "{part} in {spec}");
    }
    let nobody =
        POD.replace("\"containers\"", "\"serviceAccountName\":\"nobody\",\"containers\"").replace("\"p\"", "\"q\"");
    let refused = fixture.create("pods", &nobody).await;
    assert!(
        matches!(refused, Err(RegistryError::Forbidden { why, .. }) if why.contains("serviceaccount \"nobody\" not found"))
    );
}

#[tokio::test]
async fn a_pod_that_is_faster_than_its_account_waits_for_it() {
    let fixture = Fixture::new().await;
    let account = fixture.create("serviceaccounts", r#"{"metadata":{"name":"default"}}"#);
    let (pod, account) = tokio::join!(fixture.create("pods", POD), account);
    account.expect("is made");
    assert_eq!(text(&pod.expect("has waited"), &["spec", "serviceAccountName"]), "default");
}

#[tokio::test]
async fn a_pod_is_bound_once_and_ends_within_its_grace() {
    let fixture = with_account().await;
    fixture.create("pods", POD).await.expect("is made");
    let binding = r#"{"metadata":{"name":"p","annotations":{"a":"b"}},"target":{"kind":"Node","name":"n"}}"#;
    let other = r#"{"metadata":{"name":"p","uid":"other"},"target":{"name":"n"}}"#;
    assert!(matches!(bind(&fixture, other).await, Err(RegistryError::Conflict { .. })));
    bind(&fixture, binding).await.expect("is bound");
    let again = bind(&fixture, binding).await;
    assert!(matches!(again, Err(RegistryError::SubresourceConflict { why, .. }) if why.contains("already assigned")));
    let pod = fixture.get("pods", "p").await.expect("is there");
    assert_eq!(text(&pod, &["spec", "nodeName"]), "n");
    assert_eq!(text(&pod, &["metadata", "annotations", "a"]), "b");
    assert_eq!(pod.at(&["metadata", "generation"]), Some(&Value::Int(1)), "binding asks for nothing new");

    let Ok(Deleted::Marked(bytes)) = delete(&fixture, None).await else { panic!("should take its time") };
    assert_eq!(parse(&bytes).at(&["metadata", "deletionGracePeriodSeconds"]), Some(&Value::Int(30)));
    // A write to a pod on its way out does not end it.
    fixture.update("pods", "p", &Value::from(parse(&bytes)).to_json()).await.expect("changes nothing");
    fixture.get("pods", "p").await.expect("is still there");
    let Ok(Deleted::Gone { bytes, .. }) = delete(&fixture, Some(0)).await else { panic!("should be gone") };
    assert_eq!(parse(&bytes).at(&["metadata", "deletionGracePeriodSeconds"]), Some(&Value::Int(0)));
    assert!(matches!(fixture.get("pods", "p").await, Err(RegistryError::NotFound { .. })));
}

#[tokio::test]
async fn who_insists_on_a_version_deletes_that_and_no_other() {
    let fixture = with_account().await;
    let pod = fixture.create("pods", POD).await.expect("is made");
    let pods = fixture.resource("pods");
    let place = Place { resource: &pods, namespace: Some("default"), name: Some("p") };
    let at = |version: &str| DeleteOptions {
        preconditions: Preconditions { resource_version: Some(version.to_owned()), uid: None },
        ..DeleteOptions::default()
    };
    assert!(matches!(fixture.registry.delete(place, &at("1")).await, Err(RegistryError::Conflict { .. })));
    // It is marked, which gives it another version, and then removed.
    let version = text(&pod, &["metadata", "resourceVersion"]);
    assert!(matches!(fixture.registry.delete(place, &at(version)).await, Ok(Deleted::Gone { .. })));
}

#[tokio::test]
async fn an_eviction_is_of_the_pod_that_was_meant() {
    let fixture = with_account().await;
    fixture.create("pods", POD).await.expect("is made");
    let other = r#"{"metadata":{"name":"p"},"deleteOptions":{"preconditions":{"uid":"other"}}}"#;
    assert!(matches!(evict(&fixture, other).await, Err(RegistryError::Conflict { .. })));
    assert!(matches!(evict(&fixture, r#"{"metadata":{"name":"q"}}"#).await, Err(RegistryError::BadRequest(_))));
    evict(&fixture, r#"{"metadata":{"name":"p"},"deleteOptions":{"dryRun":["All"]}}"#).await.expect("would be done");
    fixture.get("pods", "p").await.expect("is still there");
    evict(&fixture, r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}"#).await.expect("is done");
    assert!(matches!(fixture.get("pods", "p").await, Err(RegistryError::NotFound { .. })));
}

async fn quota(fixture: &Fixture, hard: &str, used: &str) {
    fixture.create("resourcequotas", r#"{"metadata":{"name":"q"}}"#).await.expect("is made");
    set_status(fixture, "resourcequotas", "q", &format!("{{\"hard\":{hard},\"used\":{used}}}")).await;
}

/// Gives an object a status.
async fn set_status(fixture: &Fixture, plural: &str, name: &str, status: &str) {
    let resource = fixture.resource(plural);
    let mut changed = fixture.get(plural, name).await.expect("is there");
    changed.insert("status", parse(status.as_bytes()));
    let text = Value::from(changed).to_json();
    let decoded = Decoded::read(&resource, Format::Json, text.as_bytes(), FieldValidation::Warn).expect("is an object");
    let place = Place { resource: &resource, namespace: Some("default"), name: Some(name) };
    let options = WriteOptions { subresource: Some("status"), ..WriteOptions::default() };
    fixture.registry.update(place, decoded, options).await.expect("has a status");
}

async fn used(fixture: &Fixture, name: &str) -> String {
    let quota = fixture.get("resourcequotas", "q").await.expect("is there");
    text(&quota, &["status", "used", name]).to_owned()
}

#[tokio::test]
async fn a_quota_counts_what_is_stored_and_nothing_else() {
    let fixture = Fixture::new().await;
    quota(&fixture, r#"{"configmaps":"2"}"#, r#"{"configmaps":"0"}"#).await;
    let dry_run = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let a = r#"{"metadata":{"name":"a"}}"#;
    fixture.create_with("configmaps", a, dry_run).await.expect("would be made");
    assert_eq!(used(&fixture, "configmaps").await, "0", "after a dry run");
    fixture.create("configmaps", a).await.expect("is made");
    assert_eq!(used(&fixture, "configmaps").await, "1");
    assert!(matches!(fixture.create("configmaps", a).await, Err(RegistryError::AlreadyExists { .. })));
    assert_eq!(used(&fixture, "configmaps").await, "1", "what was not made is given back");
    fixture.create("configmaps", r#"{"metadata":{"name":"b"}}"#).await.expect("is made");
    let refused = fixture.create("configmaps", r#"{"metadata":{"name":"c"}}"#).await;
    let want = "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2";
    assert!(matches!(refused, Err(RegistryError::Forbidden { why, .. }) if why == want));
}

#[tokio::test]
async fn of_many_that_want_the_last_place_one_gets_it() {
    let fixture = Fixture::new().await;
    quota(&fixture, r#"{"count/configmaps":"1"}"#, r#"{"count/configmaps":"0"}"#).await;
    let bodies: Vec<String> = (0..8).map(|number| format!("{{\"metadata\":{{\"name\":\"m{number}\"}}}}")).collect();
    let writes = bodies.iter().map(|body| fixture.create("configmaps", body));
    let done = futures_util::future::join_all(writes).await;
    assert_eq!(done.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(used(&fixture, "count/configmaps").await, "1");
}

/// How many objects of a resource there are.
async fn count(fixture: &Fixture, plural: &str) -> usize {
    fixture.registry.cache_of(&fixture.resource(plural)).len()
}

#[tokio::test]
async fn what_a_write_takes_is_given_back_wherever_its_client_leaves_it() {
    let fixture = Fixture::new().await;
    let hard = r#"{"configmaps":"1000","services":"1000"}"#;
    quota(&fixture, hard, r#"{"configmaps":"0","services":"0"}"#).await;
    let own_addresses = count(&fixture, "ipaddresses").await;
    // Each write is given up one step later than the one before it, until one comes to its end by itself.
    for plural in ["configmaps", "services"] {
        for patience in 0.. {
            let text = format!(r#"{{"metadata":{{"name":"m{patience}"}},"spec":{{"ports":[{{"port":80}}]}}}}"#);
            let mut steps = 0;
            let mut write = std::pin::pin!(fixture.create(plural, &text));
            let done = std::future::poll_fn(|cx| match write.as_mut().poll(cx) {
                std::task::Poll::Pending if steps == patience => std::task::Poll::Ready(None),
                std::task::Poll::Pending => {
                    steps += 1;
                    std::task::Poll::Pending
                }
                done => done.map(Some),
            });
            if done.await.is_some_and(|done| done.is_ok()) {
                break;
            }
        }
        let is_settled = async || {
            let addresses = count(&fixture, "ipaddresses").await - own_addresses;
            let services = fixture.registry.cache_of(&fixture.resource("services")).len();
            used(&fixture, plural).await == count(&fixture, plural).await.to_string() && addresses == services
        };
        let settled = async {
            let mut pause = tokio::time::interval(Duration::from_millis(5));
            while !is_settled().await {
                pause.tick().await;
            }
        };
        let settled = tokio::time::timeout(Duration::from_secs(30), settled).await;
        assert!(settled.is_ok(), "{plural}: {} are counted", used(&fixture, plural).await);
    }
}

#[tokio::test]
async fn what_is_no_eviction_is_refused_in_the_words_of_the_decoder() {
    let fixture = with_account().await;
    let unrecognized = |found: &str, bytes: &str| {
        format!(
            "the object provided is unrecognized (must be of type Eviction): couldn't get version/kind; json parse error: \
             json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }} ({bytes})"
        )
    };
    for (body, want) in [
        ("[]", unrecognized("array", "5b5d")),
        ("5", unrecognized("number", "35")),
        (
            r#"{"deleteOptions":[]}"#,
            "Eviction in version \"v1\" cannot be handled as a Eviction: json: cannot unmarshal array into Go struct \
             field Eviction.deleteOptions of type v1.DeleteOptions"
                .to_owned(),
        ),
        // That it is about another pod is said before how that is to be deleted.
        (r#"{"deleteOptions":{"dryRun":["z"]}}"#, "name in URL does not match name in Eviction object".to_owned()),
        (
            r#"{"deleteOptions":{"kind":"X","apiVersion":"y"}}"#,
            "name in URL does not match name in Eviction object".to_owned(),
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            "Pod in version \"v1\" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction): unknown \
             conversion"
                .to_owned(),
        ),
    ] {
        match evict(&fixture, body).await {
            Err(RegistryError::BadRequest(message)) => assert_eq!(message, want, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn odd_fields_of_evictions_are_told_or_refused() {
    let fixture = with_account().await;
    let odd = r#"{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"p","x":1},"deleteOptions":{"dryRun":["All"],"dryRun":["All"],"y":1}}"#;
    let want = [
        "unknown field \"metadata.x\"",
        "duplicate field \"deleteOptions.dryRun\"",
        "unknown field \"deleteOptions.y\"",
    ];
    match evict_by(&fixture, odd, FieldValidation::Strict).await {
        Err(RegistryError::BadRequest(message)) => {
            let start = "Eviction in version \"v1beta1\" cannot be handled as a Eviction: strict decoding error: ";
            assert_eq!(message, format!("{start}{}", want.join(", ")));
        }
        other => panic!("{other:?}"),
    }
    for (validation, want) in [(FieldValidation::Warn, &want[..]), (FieldValidation::Ignore, &[])] {
        let eviction = Eviction::read(&fixture.registry, Format::Json, odd.as_bytes(), validation).expect("is read");
        let told: Vec<String> = eviction.warnings.into_iter().collect();
        assert_eq!(told, want, "{validation:?}");
    }
}

#[tokio::test]
async fn the_server_is_recorded_as_who_charges_a_budget() {
    let fixture = with_account().await;
    let pod = POD.replacen("\"name\":\"p\"", "\"name\":\"p\",\"labels\":{\"app\":\"x\"}", 1);
    fixture.create("pods", &pod).await.expect("is made");
    let budget = r#"{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}"#;
    let options = WriteOptions { field_manager: "m", ..WriteOptions::default() };
    fixture.create_with("poddisruptionbudgets", budget, options).await.expect("is made");
    set_status(&fixture, "pods", "p", r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#).await;
    let status =
        r#"{"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2,"observedGeneration":1}"#;
    set_status(&fixture, "poddisruptionbudgets", "b", status).await;
    evict(&fixture, r#"{"metadata":{"name":"p"}}"#).await.expect("is allowed");
    let budget = fixture.get("poddisruptionbudgets", "b").await.expect("is there");
    let entries = budget.at(&["metadata", "managedFields"]).and_then(Value::as_array).expect("are recorded");
    let entries = entries.iter().filter_map(Value::as_object).map(|it| (it.str("manager"), it.str("subresource")));
    assert!(
        entries.clone().any(|it| it == (Some("kube-apiserver"), Some("status"))),
        "{:?}",
        entries.collect::<Vec<_>>()
    );
}
