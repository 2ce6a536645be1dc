//! The garbage collector: what becomes of objects whose owners are deleted, in each of the three ways.

use std::sync::Arc;

use revisor_cache::{CacheOptions, Scope, WatchItem, WatchRequest, WatchStart};
use revisor_catalog::Resource;
use revisor_controllers::{Controller, Controllers};
use revisor_object::Object;
use revisor_store::embedded::HistoryLimits;

use crate::fixture::{Fixture, owned_by, text_at, within};

const DEFAULT: Option<&str> = Some("default");

async fn started() -> (Fixture, Controllers) {
    let fixture = Fixture::new().await;
    let controllers = fixture.start(&[Controller::GarbageCollector]);
    (fixture, controllers)
}

/// Waits until the collector has seen everything there is: it has done away with an object that it makes garbage.
async fn settle(fixture: &Fixture) {
    fixture.config_map("garbage", &owned_by(&[("nobody", "no-such-uid")], false)).await;
    fixture.gone("configmaps", DEFAULT, "garbage").await;
}

fn owners(object: &Object) -> Vec<String> {
    let references = object.object("metadata").map(|metadata| metadata.array("ownerReferences")).unwrap_or_default();
    references.iter().filter_map(|reference| reference.as_object()).map(|owner| text_at(owner, &["name"])).collect()
}

#[tokio::test]
async fn dependents_go_after_their_owner_in_the_background() {
    let (fixture, _controllers) = started().await;
    let top = fixture.config_map("top", "").await;
    let middle = fixture.config_map("middle", &owned_by(&[("top", &top)], true)).await;
    fixture.config_map("leaf", &owned_by(&[("middle", &middle)], true)).await;
    fixture.config_map("other", "").await;
    fixture.delete("configmaps", DEFAULT, "top", "Background").await;
    fixture.gone("configmaps", DEFAULT, "leaf").await;
    assert_eq!(fixture.config_maps(), ["other"]);
}

#[tokio::test]
async fn dependents_go_before_their_owner_in_the_foreground() {
    let (fixture, _controllers) = started().await;
    let top = fixture.config_map("top", "").await;
    let middle = fixture.config_map("middle", &owned_by(&[("top", &top)], true)).await;
    fixture.config_map("leaf", &owned_by(&[("middle", &middle)], true)).await;
    let cache = fixture.registry.cache_of(&fixture.resource("configmaps")).clone();
    let start = WatchStart::After(cache.reached().expect("there were writes"));
    let mut watcher = cache.watch(WatchRequest { scope: Scope::All, filter: None, start }).expect("is kept");
    fixture.delete("configmaps", DEFAULT, "top", "Foreground").await;
    let mut order = Vec::new();
    while order.len() < 3 {
        match within(watcher.next()).await.expect("it goes on") {
            WatchItem::Event(revisor_cache::EventKind::Deleted, delivery) => {
                let key = delivery.old().expect("was there").key().to_string();
                order.push(key.rsplit('/').next().unwrap_or_default().to_owned());
            }
            WatchItem::Event(..) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(order, ["leaf", "middle", "top"]);
}

#[tokio::test]
async fn an_owner_does_not_wait_for_dependents_that_do_not_block() {
    let (fixture, _controllers) = started().await;
    let owner = fixture.config_map("owner", "").await;
    let held = format!(r#"{},"finalizers":["e.com/held"]"#, owned_by(&[("owner", &owner)], false));
    fixture.config_map("loose", &held).await;
    let held = format!(r#"{},"finalizers":["e.com/held"]"#, owned_by(&[("owner", &owner)], true));
    fixture.config_map("tight", &held).await;
    fixture.delete("configmaps", DEFAULT, "owner", "Foreground").await;
    for name in ["loose", "tight"] {
        let is_marked = || {
            let object = fixture.get("configmaps", DEFAULT, name).expect("is held");
            (!text_at(&object, &["metadata", "deletionTimestamp"]).is_empty()).then_some(())
        };
        fixture.until("configmaps", is_marked).await;
    }
    settle(&fixture).await;
    assert!(fixture.get("configmaps", DEFAULT, "owner").is_some(), "it waits for the one that blocks");
    fixture.patch("configmaps", DEFAULT, "tight", r#"{"metadata":{"finalizers":null}}"#).await;
    fixture.gone("configmaps", DEFAULT, "owner").await;
    assert_eq!(fixture.config_maps(), ["loose"]);
}

#[tokio::test]
async fn orphans_stay_without_their_owner() {
    let (fixture, _controllers) = started().await;
    let owner = fixture.config_map("owner", "").await;
    let other = fixture.config_map("other", "").await;
    // Many, so that some are still on their way to the collector when the owner is deleted.
    for number in 0..50 {
        let both = owned_by(&[("owner", &owner), ("other", &other)], true);
        fixture.config_map(&format!("d{number}"), &both).await;
    }
    fixture.delete("configmaps", DEFAULT, "owner", "Orphan").await;
    fixture.gone("configmaps", DEFAULT, "owner").await;
    settle(&fixture).await;
    assert_eq!(fixture.config_maps().len(), 51);
    for number in 0..50 {
        let object = fixture.get("configmaps", DEFAULT, &format!("d{number}")).expect("stays");
        assert_eq!(owners(&object), ["other"]);
    }
}

#[tokio::test]
async fn one_owner_is_enough_to_stay_and_those_that_are_gone_are_forgotten() {
    let (fixture, _controllers) = started().await;
    let first = fixture.config_map("first", "").await;
    let second = fixture.config_map("second", "").await;
    fixture.config_map("child", &owned_by(&[("first", &first), ("second", &second)], true)).await;
    fixture.delete("configmaps", DEFAULT, "first", "Background").await;
    let released =
        || (owners(&fixture.get("configmaps", DEFAULT, "child").expect("stays")) == ["second"]).then_some(());
    fixture.until("configmaps", released).await;
    // An owner that waits in the foreground does not take along what another owner keeps.
    let third = fixture.config_map("third", "").await;
    fixture.config_map("nephew", &owned_by(&[("third", &third), ("second", &second)], true)).await;
    fixture.delete("configmaps", DEFAULT, "third", "Foreground").await;
    fixture.gone("configmaps", DEFAULT, "third").await;
    assert_eq!(owners(&fixture.get("configmaps", DEFAULT, "nephew").expect("stays")), ["second"]);
    fixture.delete("configmaps", DEFAULT, "second", "Background").await;
    fixture.gone("configmaps", DEFAULT, "child").await;
    fixture.gone("configmaps", DEFAULT, "nephew").await;
}

#[tokio::test]
async fn circles_are_broken_in_the_background_and_in_the_foreground() {
    for policy in ["Background", "Foreground"] {
        let (fixture, _controllers) = started().await;
        let a = fixture.config_map("a", "").await;
        let b = fixture.config_map("b", &owned_by(&[("a", &a)], true)).await;
        let c = fixture.config_map("c", &owned_by(&[("b", &b)], true)).await;
        let closing = format!("{{\"metadata\":{{{}}}}}", owned_by(&[("c", &c)], true).trim_start_matches(','));
        fixture.patch("configmaps", DEFAULT, "a", &closing).await;
        settle(&fixture).await;
        assert_eq!(fixture.config_maps(), ["a", "b", "c"], "a circle keeps itself");
        fixture.delete("configmaps", DEFAULT, "a", policy).await;
        fixture.until("configmaps", || fixture.config_maps().is_empty().then_some(())).await;
    }
}

#[tokio::test]
async fn an_owner_is_found_by_group_kind_name_and_identity() {
    let (fixture, _controllers) = started().await;
    fixture.namespace("elsewhere").await;
    let here = fixture.config_map("owner", "").await;
    let there = fixture.config_map_in("elsewhere", "owner", "").await;
    let namespace = text_at(&fixture.get("namespaces", None, "default").expect("is there"), &["metadata", "uid"]);
    for (name, api_version, kind, owner, uid, stays) in [
        ("right", "v1", "ConfigMap", "owner", here.as_str(), true),
        ("other-version", "v1beta7", "ConfigMap", "owner", &here, true),
        ("cluster-scoped", "v1", "Namespace", "default", &namespace, true),
        ("unknown-kind", "e.com/v1", "Gadget", "owner", &here, true),
        ("other-name", "v1", "ConfigMap", "other", &here, false),
        ("other-kind", "v1", "Secret", "owner", &here, false),
        ("other-identity", "v1", "ConfigMap", "owner", "u", false),
        ("other-namespace", "v1", "ConfigMap", "owner", &there, false),
    ] {
        let reference = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","name":"{owner}","uid":"{uid}"}}"#);
        fixture.config_map(name, &format!(r#","ownerReferences":[{reference}]"#)).await;
        settle(&fixture).await;
        if stays {
            assert!(fixture.get("configmaps", DEFAULT, name).is_some(), "{name}");
        } else {
            fixture.gone("configmaps", DEFAULT, name).await;
        }
    }
}

#[tokio::test]
async fn an_object_outside_of_namespaces_cannot_be_owned_from_inside() {
    let (fixture, _controllers) = started().await;
    let reference = r#"{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"u"}"#;
    let text = format!(r#"{{"metadata":{{"name":"n","ownerReferences":[{reference}]}}}}"#);
    fixture.create("namespaces", None, &text).await;
    settle(&fixture).await;
    let namespace = fixture.get("namespaces", None, "n").expect("stays");
    assert_eq!(text_at(&namespace, &["metadata", "deletionTimestamp"]), "");
}

#[tokio::test]
async fn what_was_left_undone_is_done_after_a_start() {
    let fixture = Fixture::new().await;
    let gone = fixture.config_map("gone", "").await;
    fixture.config_map("orphan", &owned_by(&[("gone", &gone)], true)).await;
    fixture.delete("configmaps", DEFAULT, "gone", "Background").await;
    let kept = fixture.config_map("kept", "").await;
    fixture.config_map("free", &owned_by(&[("kept", &kept)], true)).await;
    fixture.delete("configmaps", DEFAULT, "kept", "Orphan").await;
    let last = fixture.config_map("last", "").await;
    fixture.config_map("first", &owned_by(&[("last", &last)], true)).await;
    fixture.delete("configmaps", DEFAULT, "last", "Foreground").await;
    assert_eq!(fixture.config_maps(), ["first", "free", "kept", "last", "orphan"]);
    let controllers = fixture.start(&[Controller::GarbageCollector]);
    fixture.until("configmaps", || (fixture.config_maps() == ["free"]).then_some(())).await;
    controllers.stop().await;
    fixture.config_map("garbage", &owned_by(&[("nobody", "u")], true)).await;
    assert_eq!(fixture.config_maps(), ["free", "garbage"], "nobody collects any more");
}

#[tokio::test]
async fn owners_of_a_kind_that_becomes_known_are_looked_for_then() {
    let fixture = Fixture::new().await;
    let all = fixture.resources.borrow().clone();
    let without_secrets: Arc<[Arc<Resource>]> =
        all.iter().filter(|resource| resource.plural != "secrets").cloned().collect();
    fixture.resources.send_replace(without_secrets);
    let _controllers = fixture.start(&[Controller::GarbageCollector]);
    let owner = fixture.create("secrets", DEFAULT, r#"{"metadata":{"name":"owner"}}"#).await;
    let by_secret = |name: &str, uid: &str| {
        format!(r#","ownerReferences":[{{"apiVersion":"v1","kind":"Secret","name":"{name}","uid":"{uid}"}}]"#)
    };
    fixture.config_map("child", &by_secret("owner", &owner)).await;
    fixture.config_map("stray", &by_secret("nobody", "u")).await;
    settle(&fixture).await;
    assert_eq!(fixture.config_maps(), ["child", "stray"]);
    fixture.resources.send_replace(all);
    fixture.gone("configmaps", DEFAULT, "stray").await;
    fixture.delete("secrets", DEFAULT, "owner", "Foreground").await;
    fixture.gone("configmaps", DEFAULT, "child").await;
    fixture.gone("secrets", DEFAULT, "owner").await;
}

#[tokio::test]
async fn many_dependents_go_although_the_feed_falls_behind() {
    let options = CacheOptions { watcher_queue: 4, ..CacheOptions::default() };
    let fixture = Fixture::with(options, HistoryLimits::default()).await;
    let _controllers = fixture.start(&[Controller::GarbageCollector]);
    let owner = fixture.config_map("owner", "").await;
    for number in 0..500 {
        fixture.config_map(&format!("d{number}"), &owned_by(&[("owner", &owner)], number % 2 == 0)).await;
    }
    fixture.delete("configmaps", DEFAULT, "owner", "Foreground").await;
    fixture.until("configmaps", || fixture.config_maps().is_empty().then_some(())).await;
}

#[tokio::test]
async fn nothing_is_missed_when_events_are() {
    for (policy, left) in [("Background", 0), ("Foreground", 0), ("Orphan", 20)] {
        let fixture = Fixture::forgetful().await;
        let _controllers = fixture.start(&[Controller::GarbageCollector]);
        let owner = fixture.config_map("owner", "").await;
        for number in 0..20 {
            fixture.config_map(&format!("d{number}"), &owned_by(&[("owner", &owner)], true)).await;
        }
        fixture.delete("configmaps", DEFAULT, "owner", policy).await;
        fixture.gone("configmaps", DEFAULT, "owner").await;
        settle(&fixture).await;
        fixture.until("configmaps", || (fixture.config_maps().len() == left).then_some(())).await;
    }
}
