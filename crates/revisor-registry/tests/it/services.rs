//! Services get addresses and ports, and give them back.

use std::collections::HashSet;
use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::join_all;
use revisor_object::{Object, Value, parse_cidr_sloppy};
use revisor_registry::{
    Advertised, DeleteOptions, Deleted, ListVersions, Place, RegistryError, Selection, ServiceNetwork, WriteOptions,
};
use revisor_store::{Change, Expect, Key, Write};

use crate::fixture::Fixture;

fn service(name: &str, spec: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"ports":[{{"port":80}}]{spec}}}}}"#)
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

fn cluster_ip(object: &Object) -> String {
    text(object, &["spec", "clusterIP"]).to_owned()
}

fn node_port(object: &Object) -> i64 {
    let ports = object.object("spec").map(|spec| spec.array("ports")).unwrap_or_default();
    ports[0].as_object().and_then(|port| port.get("nodePort")).and_then(Value::as_i64).unwrap_or_default()
}

/// The fields that an error blames.
fn fields(error: RegistryError) -> Vec<String> {
    let RegistryError::Invalid { errors, .. } = error else { panic!("{error:?}") };
    errors.into_iter().map(|error| error.field).collect()
}

impl Fixture {
    async fn delete(&self, plural: &str, name: &str) -> Result<Deleted, RegistryError> {
        let resource = self.resource(plural);
        let namespace = resource.namespaced.then_some("default");
        let place = Place { resource: &resource, namespace, name: Some(name) };
        self.registry.delete(place, &DeleteOptions::default()).await
    }

    fn addresses(&self) -> Vec<String> {
        let resource = self.resource("ipaddresses");
        let snapshot = self.registry.cache_of(&resource).snapshot();
        let prefix = resource.prefix.clone();
        snapshot.range(&prefix, None).map(|item| item.key().as_str()[prefix.len()..].to_owned()).collect()
    }
}

#[tokio::test]
async fn an_address_is_taken_kept_and_given_back() {
    let fixture = Fixture::new().await;
    let made = fixture.create("services", &service("a", "")).await.expect("is created");
    let ip = cluster_ip(&made);
    assert_eq!(fixture.addresses(), std::slice::from_ref(&ip));
    let address = fixture.get("ipaddresses", &ip).await.expect("is noted");
    assert_eq!(text(&address, &["spec", "parentRef", "name"]), "a");
    assert_eq!(text(&address, &["metadata", "labels", "ipaddress.kubernetes.io/managed-by"]), "ipallocator.k8s.io");

    let same = service("b", &format!(r#","clusterIP":"{ip}""#));
    assert_eq!(fields(fixture.create("services", &same).await.expect_err("is taken")), ["spec.clusterIPs"]);
    let outside = service("b", r#","clusterIP":"10.9.0.1""#);
    assert_eq!(fields(fixture.create("services", &outside).await.expect_err("is outside")), ["spec.clusterIPs"]);
    let updated = fixture.update("services", "a", &service("a", r#","selector":{"x":"y"}"#)).await.expect("is updated");
    assert_eq!(cluster_ip(&updated), ip);

    fixture.delete("services", "a").await.expect("is deleted");
    assert!(fixture.addresses().is_empty());
    fixture.create("services", &same).await.expect("is free again");
}

#[tokio::test]
async fn what_is_refused_keeps_nothing() {
    let fixture = Fixture::new().await;
    for bad in
        [r#","sessionAffinity":"X""#, r#","type":"NodePort","ports":[{"port":80,"nodePort":30007,"protocol":"X"}]"#]
    {
        let refused = fixture.create("services", &service("a", bad)).await.expect_err("is invalid");
        assert!(matches!(refused, RegistryError::Invalid { .. }), "{refused:?}");
    }
    assert!(fixture.addresses().is_empty());
    fixture.create("services", &service("a", "")).await.expect("is created");
    fixture.create("services", &service("a", "")).await.expect_err("is there");
    assert_eq!(fixture.addresses().len(), 1);
    let port = r#","type":"NodePort","ports":[{"port":80,"nodePort":30007}]"#;
    fixture.create("services", &service("b", port)).await.expect("the port was given back");

    let options = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let shown =
        fixture.create_with("services", &service("c", r#","type":"NodePort""#), options).await.expect("would do");
    assert_eq!((cluster_ip(&shown).as_str(), node_port(&shown)), ("10.0.0.0", 32769));
    assert_eq!(fixture.addresses().len(), 2, "a dry run takes nothing");
}

#[tokio::test]
async fn nothing_is_given_out_twice_to_many_at_once() {
    let fixture = Fixture::new().await;
    let texts: Vec<String> = (0..60).map(|at| service(&format!("s{at}"), r#","type":"NodePort""#)).collect();
    let made = join_all(texts.iter().map(|text| fixture.create("services", text))).await;
    let made: Vec<Object> = made.into_iter().map(|made| made.expect("is created")).collect();
    assert_eq!(made.iter().map(cluster_ip).collect::<HashSet<_>>().len(), 60);
    assert_eq!(made.iter().map(node_port).collect::<HashSet<_>>().len(), 60);
    assert!(made.iter().all(|service| (30000..=32767).contains(&node_port(service))));
}

#[tokio::test]
async fn a_range_can_be_used_up() {
    let range = parse_cidr_sloppy("10.1.0.0/29").expect("is a range");
    let fixture =
        Fixture::with_services(ServiceNetwork { ranges: vec![range], node_ports: 30000..=30001, is_shared: false })
            .await;
    for at in 0..6 {
        fixture.create("services", &service(&format!("s{at}"), "")).await.expect("six hosts");
    }
    let error = fixture.create("services", &service("more", "")).await.expect_err("no seventh");
    let RegistryError::Internal(message) = error else { panic!("{error:?}") };
    assert_eq!(message, r#"failed to allocate a serviceIP for Service "more": range is full"#);
    for at in 0..2 {
        let text = service(&format!("s{at}"), r#","type":"NodePort""#);
        fixture.update("services", &format!("s{at}"), &text).await.expect("two ports");
    }
    let error = fixture.update("services", "s2", &service("s2", r#","type":"NodePort""#)).await.expect_err("no third");
    let RegistryError::Internal(message) = error else { panic!("{error:?}") };
    assert_eq!(message, "failed to allocate a nodePort: range is full");
}

#[tokio::test]
async fn another_type_gives_back_what_it_does_not_need() {
    let fixture = Fixture::new().await;
    let local = r#","type":"LoadBalancer","externalTrafficPolicy":"Local""#;
    let made = fixture.create("services", &service("a", local)).await.expect("is created");
    let health = made.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_i64).expect("has a port for health");
    let port = node_port(&made);
    assert_ne!(health, port);
    let named = r#"{"metadata":{"name":"a"},"spec":{"type":"ExternalName","externalName":"b.c"}}"#;
    fixture.update("services", "a", named).await.expect("is updated");
    assert!(fixture.addresses().is_empty());
    for (name, number) in [("b", health), ("c", port)] {
        let text = service(name, &format!(r#","type":"NodePort","ports":[{{"port":80,"nodePort":{number}}}]"#));
        fixture.create("services", &text).await.expect("the port is free");
    }
    let back = fixture.update("services", "a", &service("a", r#","externalName":null"#)).await.expect("is updated");
    assert!(fixture.addresses().contains(&cluster_ip(&back)));
}

#[tokio::test]
async fn a_finalizer_keeps_the_address_until_the_end() {
    let fixture = Fixture::new().await;
    let held = r#"{"metadata":{"name":"a","finalizers":["x.y/z"]},"spec":{"ports":[{"port":80}]}}"#;
    fixture.create("services", held).await.expect("is created");
    fixture.delete("services", "a").await.expect("is marked");
    assert_eq!(fixture.addresses().len(), 1);
    fixture.update("services", "a", &service("a", "")).await.expect("is let go");
    assert!(fixture.addresses().is_empty());
}

#[tokio::test]
async fn endpoints_go_with_their_service() {
    let fixture = Fixture::new().await;
    fixture.create("services", &service("a", "")).await.expect("is created");
    fixture.create("endpoints", r#"{"metadata":{"name":"a"}}"#).await.expect("is created");
    fixture.delete("services", "a").await.expect("is deleted");
    assert!(matches!(fixture.get("endpoints", "a").await, Err(RegistryError::NotFound { .. })));
}

/// A crash may leave an address without a service, or, by the hand of another, a service without an address.
#[tokio::test]
async fn a_start_brings_services_and_addresses_together() {
    let fixture = Fixture::new().await;
    let kept = fixture.create("services", &service("kept", r#","type":"NodePort""#)).await.expect("is created");
    let lost = fixture.create("services", &service("lost", "")).await.expect("is created");
    let orphan = r#"{"metadata":{"name":"10.0.0.99","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},
        "spec":{"parentRef":{"resource":"services","namespace":"default","name":"gone"}}}"#;
    fixture.create("ipaddresses", orphan).await.expect("is created");
    let foreign = r#"{"metadata":{"name":"10.0.0.98"},"spec":{"parentRef":{"resource":"things","name":"mine"}}}"#;
    fixture.create("ipaddresses", foreign).await.expect("is created");
    let key = fixture.resource("ipaddresses").key(None, &cluster_ip(&lost));
    let write = Write { key: Key::new(key), expect: Expect::Anything, change: Change::Delete };
    fixture.registry.cache().write(write).await.expect("is removed behind the back");

    let fixture = fixture.reopened().await;
    let mut want = vec!["10.0.0.98".to_owned(), cluster_ip(&kept), cluster_ip(&lost)];
    want.sort_unstable();
    assert_eq!(fixture.addresses(), want);
    let text = service("b", &format!(r#","type":"NodePort","ports":[{{"port":80,"nodePort":{}}}]"#, node_port(&kept)));
    let refused = fixture.create("services", &text).await.expect_err("the port is still taken");
    assert_eq!(fields(refused), ["spec.ports[0].nodePort"]);
}

/// A request that is given up while it is being done leaves nothing behind for ever.
#[tokio::test]
async fn a_write_that_is_given_up_gives_back_what_it_took() {
    let fixture = Fixture::new().await;
    let text = service("a", r#","type":"NodePort","clusterIP":"10.0.0.50","ports":[{"port":80,"nodePort":30050}]"#);
    for polls in 1..40 {
        let mut create = Box::pin(fixture.create("services", &text));
        let mut done = false;
        for _ in 0..polls {
            done = poll_fn(|context| Poll::Ready(create.as_mut().poll(context).is_ready())).await;
            if done {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(create);
        // Another can have it all, unless the write happened after all, which can be seen by now.
        let other = text.replacen("\"a\"", "\"b\"", 1);
        if fixture.create("services", &other).await.is_err() {
            fixture.delete("services", "a").await.expect("it happened");
            fixture.create("services", &other).await.expect("all is free");
        } else {
            assert!(!done, "was created");
        }
        fixture.delete("services", "b").await.expect("is deleted");
        assert!(fixture.addresses().is_empty(), "after {polls} polls");
    }
}

#[tokio::test]
async fn the_server_is_a_service_of_its_own() {
    let fixture = Fixture::new().await;
    let range = fixture.get("servicecidrs", "kubernetes").await.expect("is there");
    let condition = range.at(&["status", "conditions"]).and_then(Value::as_array).and_then(<[Value]>::first);
    let condition = condition.and_then(Value::as_object).expect("is judged");
    assert_eq!((condition.str("type"), condition.str("status")), (Some("Ready"), Some("True")));

    for (port, want) in [(6443, "192.0.2.7"), (6443, "192.0.2.8"), (7443, "2001:db8::1")] {
        let address = want.parse().expect("is an address");
        let advertised = Advertised { address: Some(address), port, node_port: None };
        fixture.registry.advertise(advertised).await.expect("is advertised");
        let service = fixture.get("services", "kubernetes").await.expect("is there");
        assert_eq!(cluster_ip(&service), "10.0.0.1");
        let endpoints = fixture.get("endpoints", "kubernetes").await.expect("is there");
        let subsets = endpoints.get("subsets").expect("has subsets").to_json();
        assert!(subsets.contains(&format!(r#"[{{"ip":"{want}"}}]"#)), "{subsets}");
        let slice = fixture.get("endpointslices", "kubernetes").await.expect("is there");
        assert!(slice.get("endpoints").expect("has endpoints").to_json().contains(want));
        let reached = fixture.revision();
        fixture.registry.advertise(advertised).await.expect("is advertised");
        assert_eq!(fixture.revision(), reached, "nothing is written again");
    }
    fixture.delete("services", "kubernetes").await.expect("is deleted");
    let advertised = Advertised { address: None, port: 6443, node_port: None };
    fixture.registry.advertise(advertised).await.expect("is advertised");
    let first = r#","clusterIP":"10.0.0.1""#;
    fixture.create("services", &service("a", first)).await.expect_err("it is the server's");
}

#[tokio::test]
async fn two_families_are_given_where_there_are_two() {
    let ranges = ["10.0.0.0/24", "fd00::/112"].map(|text| parse_cidr_sloppy(text).expect("is a range"));
    let fixture = Fixture::with_services(ServiceNetwork { ranges: ranges.to_vec(), ..ServiceNetwork::default() }).await;
    let made = fixture.create("services", &service("a", r#","ipFamilyPolicy":"PreferDualStack""#)).await.expect("made");
    let ips = made.at(&["spec", "clusterIPs"]).and_then(Value::as_array).expect("has addresses");
    assert_eq!(ips.len(), 2);
    assert!(ips[1].as_str().expect("is a text").starts_with("fd00::"));
    assert_eq!(fixture.addresses().len(), 2);
    let narrowed = fixture.update("services", "a", &service("a", r#","ipFamilyPolicy":"SingleStack""#)).await;
    assert_eq!(cluster_ip(&narrowed.expect("is updated")), ips[0].as_str().expect("is a text"));
    assert_eq!(fixture.addresses().len(), 1);
    let wide = service("a", r#","ipFamilyPolicy":"RequireDualStack""#);
    fixture.update("services", "a", &wide).await.expect("is updated");
    assert_eq!(fixture.addresses().len(), 2);
}

#[tokio::test]
async fn an_ingress_without_a_class_gets_the_newest_default() {
    let fixture = Fixture::new().await;
    let ingress = |name: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"defaultBackend":{{"service":{{"name":"s","port":{{"number":80}}}}}}}}}}"#
        )
    };
    let class = ["spec", "ingressClassName"];
    let plain = fixture.create("ingresses", &ingress("a")).await.expect("is created");
    assert_eq!(text(&plain, &class), "");
    for name in ["z", "y"] {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","annotations":{{"ingressclass.kubernetes.io/is-default-class":"true"}}}},
                "spec":{{"controller":"a.b/c"}}}}"#
        );
        fixture.create("ingressclasses", &text).await.expect("is created");
    }
    // Both are as old as each other, so that the name decides.
    let classy = fixture.create("ingresses", &ingress("b")).await.expect("is created");
    assert_eq!(text(&classy, &class), "y");
}

#[tokio::test]
async fn services_are_selected_by_type_and_address() {
    let fixture = Fixture::new().await;
    fixture.create("services", &service("a", r#","clusterIP":"None""#)).await.expect("is created");
    fixture.create("services", &service("b", r#","type":"NodePort""#)).await.expect("is created");
    let resource = fixture.resource("services");
    for (selector, want) in [("spec.clusterIP=None", "a"), ("spec.type=NodePort", "b")] {
        let selection = Selection::parse(&resource, "", selector).expect("can be selected by");
        let request = revisor_registry::ListRequest {
            resource: &resource,
            namespace: Some("default"),
            selection: &selection,
            versions: ListVersions::default(),
            limit: 9,
        };
        let listed = fixture.registry.list(request).await.expect("is listed");
        assert_eq!(crate::fixture::names(&listed), [want], "{selector}");
    }
}

#[tokio::test]
async fn what_the_server_gives_a_service_is_nobodys_to_manage() {
    let fixture = Fixture::new().await;
    fixture.create("services", &service("a", "")).await.expect("is created");
    let managed = |object: &Object| object.at(&["metadata", "managedFields"]).map(Value::to_json).unwrap_or_default();
    let changed = fixture.update("services", "a", &service("a", r#","type":"NodePort""#)).await.expect("is valid");
    assert_ne!(node_port(&changed), 0);
    assert!(managed(&changed).contains("f:type"), "{}", managed(&changed));
    for given in ["f:nodePort", "f:clusterIP"] {
        assert!(!managed(&changed).contains(given), "{}", managed(&changed));
    }
}

#[tokio::test]
async fn a_server_that_is_started_again_writes_nothing() {
    let fixture = Fixture::new().await;
    let advertised = Advertised { address: Some([10, 1, 2, 3].into()), port: 6443, node_port: None };
    fixture.registry.advertise(advertised).await.expect("is advertised");
    let before = fixture.revision();
    assert!(before.is_some());
    let fixture = fixture.reopened().await;
    fixture.registry.advertise(advertised).await.expect("is advertised");
    assert_eq!(fixture.revision(), before);
}
