//! What every namespace has: its service account and the certificates of the server.

use revisor_controllers::Controller;

use crate::fixture::{Fixture, text_at};

const BOTH: [Controller; 2] = [Controller::ServiceAccount, Controller::RootCaPublisher];
const ROOT_CA: &str = "kube-root-ca.crt";

#[tokio::test]
async fn every_namespace_has_them_new_ones_too() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&BOTH);
    fixture.namespace("new").await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease", "new"] {
        fixture.there("serviceaccounts", Some(namespace), "default").await;
        let published = fixture.there("configmaps", Some(namespace), ROOT_CA).await;
        assert_eq!(text_at(&published, &["data", "ca.crt"]), "CERTIFICATES");
        assert_eq!(
            text_at(&published, &["metadata", "annotations", "kubernetes.io/description"]),
            "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
             the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
             Kubernetes clusters."
        );
    }
}

#[tokio::test]
async fn they_are_made_again_and_mended() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&BOTH);
    let namespace = Some("default");
    for (plural, name) in [("serviceaccounts", "default"), ("configmaps", ROOT_CA)] {
        let first = text_at(&fixture.there(plural, namespace, name).await, &["metadata", "uid"]);
        fixture.delete(plural, namespace, name, "").await;
        let again = || {
            let object = fixture.get(plural, namespace, name)?;
            (text_at(&object, &["metadata", "uid"]) != first).then_some(())
        };
        fixture.until(plural, again).await;
    }
    let broken = r#"{"data":{"ca.crt":"mine","more":"x"},"metadata":{"labels":{"a":"b"},"annotations":null}}"#;
    fixture.patch("configmaps", namespace, ROOT_CA, broken).await;
    let mended = || {
        let object = fixture.get("configmaps", namespace, ROOT_CA)?;
        let is_whole = text_at(&object, &["data", "ca.crt"]) == "CERTIFICATES"
            && object.object("data").is_some_and(|data| data.len() == 1)
            && !text_at(&object, &["metadata", "annotations", "kubernetes.io/description"]).is_empty();
        is_whole.then_some(object)
    };
    let object = fixture.until("configmaps", mended).await;
    assert_eq!(text_at(&object, &["metadata", "labels", "a"]), "b", "what else was changed stays");
}

#[tokio::test]
async fn they_follow_the_certificates_of_the_server() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&BOTH);
    fixture.there("configmaps", Some("default"), ROOT_CA).await;
    fixture.root_ca.send_replace("RENEWED".to_owned());
    for namespace in ["default", "kube-system"] {
        let renewed = || {
            let object = fixture.get("configmaps", Some(namespace), ROOT_CA)?;
            (text_at(&object, &["data", "ca.crt"]) == "RENEWED").then_some(())
        };
        fixture.until("configmaps", renewed).await;
    }
}

#[tokio::test]
async fn a_namespace_that_goes_gets_nothing_back() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&Controller::ALL);
    fixture.namespace("n").await;
    fixture.there("serviceaccounts", Some("n"), "default").await;
    fixture.there("configmaps", Some("n"), ROOT_CA).await;
    fixture.delete("namespaces", None, "n", "").await;
    let step = std::time::Duration::from_millis(500);
    fixture.clock.advance_until(step, || fixture.get("namespaces", None, "n").is_none().then_some(())).await;
    assert!(fixture.get("serviceaccounts", Some("n"), "default").is_none());
    assert!(fixture.get("configmaps", Some("n"), ROOT_CA).is_none());
    // The name may be used again.
    fixture.namespace("n").await;
    fixture.there("configmaps", Some("n"), ROOT_CA).await;
}

#[tokio::test]
async fn nothing_is_missed_when_events_are() {
    let fixture = Fixture::forgetful().await;
    let _controllers = fixture.start(&BOTH);
    for number in 0..5 {
        let name = format!("n{number}");
        fixture.namespace(&name).await;
        for (plural, object) in [("serviceaccounts", "default"), ("configmaps", ROOT_CA)] {
            fixture.there(plural, Some(&name), object).await;
            fixture.delete(plural, Some(&name), object, "").await;
            fixture.there(plural, Some(&name), object).await;
        }
    }
}
