//! Quotas that count by themselves.

use std::sync::Arc;
use std::time::Duration;

use revisor_controllers::Controller;
use revisor_object::{Object, Value};
use revisor_registry::{Decoded, FieldValidation, Format, Place, RegistryError, WriteOptions};

use crate::fixture::{Fixture, text_at};

fn used(quota: &Object) -> Vec<(String, String)> {
    amounts(quota, "used")
}

fn amounts(quota: &Object, part: &str) -> Vec<(String, String)> {
    let list = quota.at(&["status", part]).and_then(Value::as_object).into_iter().flat_map(Object::iter);
    list.map(|(name, amount)| (name.to_owned(), amount.as_str().unwrap_or_default().to_owned())).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
}

/// Moves the clock until a quota counts this.
async fn counts(fixture: &Fixture, name: &str, want: &[(&str, &str)]) {
    let want = pairs(want);
    let is_so = || {
        let quota = fixture.get("resourcequotas", Some("default"), name)?;
        (used(&quota) == want).then_some(())
    };
    fixture.clock.advance_until(Duration::from_millis(60), is_so).await;
}

async fn quota(fixture: &Fixture, name: &str, spec: &str) {
    let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
    fixture.create("resourcequotas", Some("default"), &text).await;
}

async fn attempt(fixture: &Fixture, plural: &str, text: &str) -> Result<(), RegistryError> {
    let resource = fixture.resource(plural);
    let decoded = Decoded::read(&resource, Format::Json, text.as_bytes(), FieldValidation::Strict).expect("fits");
    let place = Place { resource: &resource, namespace: Some("default"), name: None };
    fixture.registry.create(place, decoded, WriteOptions::default()).await.map(drop)
}

async fn set_status(fixture: &Fixture, plural: &str, name: &str, status: &str) {
    let resource = fixture.resource(plural);
    let place = Place { resource: &resource, namespace: Some("default"), name: Some(name) };
    let options = WriteOptions { subresource: Some("status"), ..WriteOptions::default() };
    let patch = format!(r#"{{"status":{status}}}"#);
    let kind = revisor_registry::PatchKind::Merge;
    fixture.registry.patch(place, kind, patch.as_bytes(), options).await.expect("is patched");
}

fn pod(name: &str, more: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}},"limits":{{"cpu":"200m","memory":"64Mi"}}}}}}]{more}}}}}"#
    )
}

#[tokio::test]
async fn a_quota_counts_what_is_there_and_what_comes_and_goes() {
    let fixture = Fixture::new().await;
    fixture.create("serviceaccounts", Some("default"), r#"{"metadata":{"name":"default"}}"#).await;
    let _controllers = fixture.start(&[Controller::ResourceQuota]);
    fixture.create("pods", Some("default"), &pod("early", "")).await;
    quota(&fixture, "q", r#"{"hard":{"pods":"2","requests.cpu":"1","limits.memory":"1Gi","count/configmaps":"1"}}"#)
        .await;
    counts(
        &fixture,
        "q",
        &[("count/configmaps", "0"), ("limits.memory", "64Mi"), ("pods", "1"), ("requests.cpu", "100m")],
    )
    .await;
    let hard = fixture.get("resourcequotas", Some("default"), "q").expect("is there");
    assert_eq!(amounts(&hard, "hard").len(), 4, "the limits are in force");

    fixture.create("pods", Some("default"), &pod("second", "")).await;
    let refused = attempt(&fixture, "pods", &pod("third", "")).await.expect_err("is too much");
    assert!(refused.to_string().contains("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"));

    // One that has ended holds nothing but its name, and one that is gone not even that.
    set_status(&fixture, "pods", "early", r#"{"phase":"Succeeded"}"#).await;
    let one = [("count/configmaps", "0"), ("limits.memory", "64Mi"), ("pods", "1"), ("requests.cpu", "100m")];
    counts(&fixture, "q", &one).await;
    fixture.create("pods", Some("default"), &pod("third", "")).await;
    fixture.config_map("a", "").await;
    fixture.delete("configmaps", Some("default"), "a", "").await;
    let two = [("count/configmaps", "0"), ("limits.memory", "128Mi"), ("pods", "2"), ("requests.cpu", "200m")];
    counts(&fixture, "q", &two).await;

    // Who changes the limits has them in force.
    fixture
        .patch("resourcequotas", Some("default"), "q", r#"{"spec":{"hard":{"pods":"9","requests.cpu":null}}}"#)
        .await;
    counts(&fixture, "q", &[("count/configmaps", "0"), ("limits.memory", "128Mi"), ("pods", "2")]).await;
    let quota = fixture.get("resourcequotas", Some("default"), "q").expect("is there");
    assert_eq!(text_at(&quota, &["status", "hard", "pods"]), "9");
    let managers = quota.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default();
    let writes_status = |entry: &&Object| entry.str("subresource") == Some("status");
    let of_status = managers.iter().filter_map(Value::as_object).filter(writes_status);
    let mut names: Vec<&str> = of_status.filter_map(|entry| entry.str("manager")).collect();
    names.sort_unstable();
    assert_eq!(names, ["kube-apiserver", "kube-controller-manager"], "who charges it, and who counts");
}

#[tokio::test]
async fn scopes_say_which_pods_are_counted() {
    let fixture = Fixture::new().await;
    fixture.create("serviceaccounts", Some("default"), r#"{"metadata":{"name":"default"}}"#).await;
    let priority = r#"{"metadata":{"name":"high"},"value":1000}"#;
    fixture.create("priorityclasses", None, priority).await;
    let _controllers = fixture.start(&[Controller::ResourceQuota]);
    fixture.create("pods", Some("default"), &pod("plain", "")).await;
    fixture.create("pods", Some("default"), &pod("late", r#","activeDeadlineSeconds":60"#)).await;
    fixture.create("pods", Some("default"), &pod("high", r#","priorityClassName":"high""#)).await;
    let best = r#"{"metadata":{"name":"best"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    fixture.create("pods", Some("default"), best).await;
    let affinity = r#","affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{},"namespaces":["elsewhere"]}]}}"#;
    fixture.create("pods", Some("default"), &pod("far", affinity)).await;
    for (name, scope, want) in [
        ("all", "", "5"),
        ("terminating", r#","scopes":["Terminating"]"#, "1"),
        ("not-terminating", r#","scopes":["NotTerminating"]"#, "4"),
        ("best-effort", r#","scopes":["BestEffort"]"#, "1"),
        ("not-best-effort", r#","scopes":["NotBestEffort"]"#, "4"),
        (
            "priority",
            r#","scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}"#,
            "1",
        ),
        (
            "other-priority",
            r#","scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"NotIn","values":["high"]}]}"#,
            "4",
        ),
        (
            "affinity",
            r#","scopeSelector":{"matchExpressions":[{"scopeName":"CrossNamespacePodAffinity","operator":"Exists"}]}"#,
            "1",
        ),
    ] {
        quota(&fixture, name, &format!(r#"{{"hard":{{"pods":"100"}}{scope}}}"#)).await;
        counts(&fixture, name, &[("pods", want)]).await;
    }
    // A deadline that comes later moves a pod from one scope to the other.
    fixture.patch("pods", Some("default"), "plain", r#"{"spec":{"activeDeadlineSeconds":5}}"#).await;
    counts(&fixture, "terminating", &[("pods", "2")]).await;
    counts(&fixture, "not-terminating", &[("pods", "3")]).await;
}

#[tokio::test]
async fn services_and_claims_are_counted_by_what_they_hold() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::ResourceQuota]);
    let service = r#"{"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","ports":[{"name":"a","port":80},{"name":"b","port":81}]}}"#;
    fixture.create("services", Some("default"), service).await;
    quota(&fixture, "services", r#"{"hard":{"services":"5","services.nodeports":"5","services.loadbalancers":"1"}}"#)
        .await;
    counts(&fixture, "services", &[("services", "1"), ("services.loadbalancers", "1"), ("services.nodeports", "2")])
        .await;
    fixture.patch("services", Some("default"), "s", r#"{"spec":{"type":"ClusterIP"}}"#).await;
    counts(&fixture, "services", &[("services", "1"), ("services.loadbalancers", "0"), ("services.nodeports", "0")])
        .await;

    let claim = |name: &str, more: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"1Gi"}}}}{more}}}}}"#
        )
    };
    fixture.create("persistentvolumeclaims", Some("default"), &claim("a", r#","storageClassName":"gold""#)).await;
    fixture
        .create("persistentvolumeclaims", Some("default"), &claim("b", r#","volumeAttributesClassName":"fast""#))
        .await;
    quota(
        &fixture,
        "claims",
        r#"{"hard":{"persistentvolumeclaims":"5","requests.storage":"5Gi","gold.storageclass.storage.k8s.io/requests.storage":"2Gi","gold.storageclass.storage.k8s.io/persistentvolumeclaims":"2"}}"#,
    )
    .await;
    counts(
        &fixture,
        "claims",
        &[
            ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1"),
            ("gold.storageclass.storage.k8s.io/requests.storage", "1Gi"),
            ("persistentvolumeclaims", "2"),
            ("requests.storage", "2Gi"),
        ],
    )
    .await;
    let scoped = r#"{"hard":{"persistentvolumeclaims":"5"},"scopeSelector":{"matchExpressions":[{"scopeName":"VolumeAttributesClass","operator":"In","values":["fast"]}]}}"#;
    quota(&fixture, "fast", scoped).await;
    counts(&fixture, "fast", &[("persistentvolumeclaims", "1")]).await;
    // The class that a claim is coming from counts until it has left it.
    set_status(&fixture, "persistentvolumeclaims", "a", r#"{"currentVolumeAttributesClassName":"fast"}"#).await;
    counts(&fixture, "fast", &[("persistentvolumeclaims", "2")]).await;
}

#[tokio::test]
async fn devices_are_counted_by_their_class() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::ResourceQuota]);
    quota(&fixture, "q", r#"{"hard":{"gpu.deviceclass.resource.k8s.io/devices":"3"}}"#).await;
    counts(&fixture, "q", &[("gpu.deviceclass.resource.k8s.io/devices", "0")]).await;
    let claim = |name: &str, count: u32| {
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu","count":{count}}}}}]}}}}}}"#
        )
    };
    fixture.create("resourceclaims", Some("default"), &claim("a", 2)).await;
    let refused = attempt(&fixture, "resourceclaims", &claim("b", 2)).await.expect_err("is too much");
    let why = "exceeded quota: q, requested: gpu.deviceclass.resource.k8s.io/devices=2, used: \
               gpu.deviceclass.resource.k8s.io/devices=2, limited: gpu.deviceclass.resource.k8s.io/devices=3";
    assert!(refused.to_string().contains(why), "{refused}");
    fixture.delete("resourceclaims", Some("default"), "a", "").await;
    counts(&fixture, "q", &[("gpu.deviceclass.resource.k8s.io/devices", "0")]).await;
    // One of two alternatives is taken; each class is counted with the worse one.
    let either = r#"{"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","firstAvailable":[{"name":"x","deviceClassName":"gpu","count":1},{"name":"y","deviceClassName":"gpu","count":3}]}]}}}"#;
    fixture.create("resourceclaims", Some("default"), either).await;
    counts(&fixture, "q", &[("gpu.deviceclass.resource.k8s.io/devices", "3")]).await;
}

#[tokio::test]
async fn what_no_event_tells_is_counted_in_time() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::ResourceQuota]);
    quota(&fixture, "q", r#"{"hard":{"configmaps":"5"}}"#).await;
    counts(&fixture, "q", &[("configmaps", "0")]).await;
    set_status(&fixture, "resourcequotas", "q", r#"{"used":{"configmaps":"4"}}"#).await;
    let is_mended = || {
        let quota = fixture.get("resourcequotas", Some("default"), "q")?;
        (used(&quota) == pairs(&[("configmaps", "0")])).then_some(())
    };
    fixture.clock.advance_until(Duration::from_secs(60), is_mended).await;
}

#[tokio::test]
async fn writers_and_counts_at_the_same_time_lose_nothing() {
    let fixture = Arc::new(Fixture::new().await);
    let _controllers = fixture.start(&[Controller::ResourceQuota]);
    // Room for all that is made, however late what goes is counted.
    quota(&fixture, "q", r#"{"hard":{"configmaps":"80"}}"#).await;
    counts(&fixture, "q", &[("configmaps", "0")]).await;
    let writers = (0..4).map(|writer| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            for number in 0..20 {
                let name = format!("c{writer}-{number}");
                fixture.config_map(&name, "").await;
                if number % 2 == 1 {
                    fixture.delete("configmaps", Some("default"), &name, "").await;
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut pause = tokio::time::interval(Duration::from_millis(1));
    while writers.iter().any(|writer| !writer.is_finished()) {
        fixture.clock.advance(Duration::from_millis(60));
        pause.tick().await;
    }
    for writer in writers {
        writer.await.expect("every write is done");
    }
    counts(&fixture, "q", &[("configmaps", "40")]).await;
}
