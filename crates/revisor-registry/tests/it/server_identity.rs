//! Servers say that they are there, and that they no longer are.

use revisor_object::{Object, Value};
use revisor_registry::{Decoded, FieldValidation, Format, Place, ServerIdentity, WriteOptions};
use revisor_version::{EffectiveVersion, Release};

use crate::fixture::Fixture;

fn identity(hostname: &str, emulation: &str) -> ServerIdentity {
    let version = EffectiveVersion::parse(Release { major: 1, minor: 36 }, &[emulation], &[]).expect("can be reached");
    ServerIdentity::new(hostname, "1234", version)
}

impl Fixture {
    fn lease(&self, identity: &ServerIdentity) -> Option<Object> {
        self.registry.stored("coordination.k8s.io", "v1", "leases", Some("kube-system"), identity.name())
    }

    async fn lease_of_another(&self, name: &str, members: &str) {
        let resource = self.resource("leases");
        let place = Place { resource: &resource, namespace: Some("kube-system"), name: None };
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"apiserver.kubernetes.io/identity":"kube-apiserver"}}}},
                "spec":{{{members}}}}}"#
        );
        let decoded = Decoded::read(&resource, Format::Json, text.as_bytes(), FieldValidation::Warn).expect("is read");
        self.registry.create(place, decoded, WriteOptions::default()).await.expect("is created");
    }
}

#[tokio::test]
async fn a_server_says_that_it_is_there_until_it_goes() {
    let fixture = Fixture::new().await;
    let own = identity("vm", "1.35");
    fixture.registry.take_identity(&own).await.expect("is said");
    let first = fixture.lease(&own).expect("is there");
    let text = |path: &[&str]| first.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(text(&["metadata", "labels", "apiserver.kubernetes.io/identity"]), "kube-apiserver");
    assert_eq!(text(&["metadata", "labels", "kubernetes.io/hostname"]), "vm");
    assert_eq!(text(&["spec", "holderIdentity"]), "apiserver-wlv32tlttr4jl3gtroqexyxapa_1234");
    assert_eq!(text(&["spec", "renewTime"]), "1970-01-01T00:00:00.000000Z");
    assert_eq!(first.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64), Some(3600));

    fixture.registry.renew_identity(&own).await.expect("is said again");
    let uid = |lease: &Object| lease.at(&["metadata", "uid"]).cloned();
    assert_eq!(fixture.lease(&own).as_ref().and_then(uid), uid(&first));
    // Who starts where another ran before does not go on with what that one said.
    fixture.registry.take_identity(&own).await.expect("is said anew");
    assert_ne!(fixture.lease(&own).as_ref().and_then(uid), uid(&first));
    fixture.registry.give_up_identity(&own).await.expect("is taken back");
    fixture.registry.give_up_identity(&own).await.expect("twice is no mistake");
    assert_eq!(fixture.lease(&own), None);
    fixture.registry.renew_identity(&own).await.expect("what was taken away comes back");
    assert!(fixture.lease(&own).is_some());
}

#[tokio::test]
async fn others_are_known_while_they_are_heard_of() {
    let fixture = Fixture::new().await;
    fixture.registry.take_identity(&identity("b", "1.34")).await.expect("is said");
    fixture.lease_of_another("silent", r#""holderIdentity":"x""#).await;
    let since = r#""renewTime":"1970-01-01T00:00:00.000000Z","leaseDurationSeconds":60"#;
    fixture.lease_of_another("original", since).await;
    let shown = || {
        let servers = fixture.registry.known_servers().into_iter();
        let mut shown: Vec<_> = servers
            .map(|server| (server.hostname, server.version.map(|version| version.release.to_string())))
            .collect();
        shown.sort();
        shown
    };
    assert_eq!(shown(), [(String::new(), None), ("b".to_owned(), Some("1.34".to_owned()))]);
    fixture.registry.remove_lost_identities().await.expect("are removed");
    let names: Vec<_> = fixture.registry.known_servers().into_iter().map(|server| server.name).collect();
    assert_eq!(names.len(), 2);
    let silent = fixture.registry.stored("coordination.k8s.io", "v1", "leases", Some("kube-system"), "silent");
    assert_eq!(silent, None);
}
