//! An etcd that is slow, full, or shows itself and asks for the wrong certificates.

use std::time::Duration;

use revisor_etcd::messages::RangeRequest;
use revisor_etcd::{Client, TlsFiles};

use super::etcd::Etcd;
use super::faulty_proxy::{Fault, FaultyProxy};
use crate::behind::Authority;
use crate::harness::eventually;
use crate::objects::{CONFIG_MAPS, config_map};

#[tokio::test]
async fn while_etcd_does_not_answer_requests_end_in_time_and_readiness_tells() {
    let etcd = Etcd::start().await;
    let proxy = FaultyProxy::before(&etcd.url).await;
    let quickly = ["--controllers=none", "--etcd-readycheck-timeout=200ms", "--etcd-healthcheck-timeout=200ms"];
    let server = etcd.serve_at(&proxy.url(), &quickly).await;
    let client = server.client();
    client.post(CONFIG_MAPS, &config_map("before", "1")).await.expect(201);
    proxy.set(Fault::Delay(Duration::from_secs(3600)));
    for check in ["/readyz/etcd", "/readyz/etcd-readiness"] {
        eventually(|| async { (client.get(check).await.code == 500).then_some(()) }).await;
    }
    client.get("/readyz").await.expect(500);
    let refused = client.post(&format!("{CONFIG_MAPS}?timeout=1s"), &config_map("during", "1")).await;
    assert!(refused.code >= 500 && refused.json()["kind"] == "Status", "{}: {}", refused.code, refused.text());
    // What need not be new is still told.
    client.get(&format!("{CONFIG_MAPS}/before?resourceVersion=0")).await.expect(200);
    proxy.set(Fault::Nothing);
    eventually(|| async { (client.get("/readyz").await.code == 200).then_some(()) }).await;
    client.post(CONFIG_MAPS, &config_map("after", "1")).await.expect(201);
}

#[tokio::test]
async fn when_etcd_is_full_writes_are_refused_and_everything_else_goes_on() {
    let etcd = Etcd::start_at("http", &["--quota-backend-bytes=4194304".to_owned()]).await;
    let server = etcd.serve(&[]).await;
    let client = server.client();
    let large = "x".repeat(256 << 10);
    let mut made = 0;
    let refused = loop {
        let reply = client.post(CONFIG_MAPS, &config_map(&format!("n-{made}"), &large)).await;
        if reply.code != 201 {
            break reply;
        }
        made += 1;
        assert!(made < 64, "it never is");
    };
    assert_eq!(refused.fails(507, "InsufficientStorage")["status"], "Failure");
    // The controllers put one of their own beside them. The write that fills it, etcd may keep although it says that there
    // is no room (`quotaApplierV3.Put`).
    let mut names = client.get(CONFIG_MAPS).await.expect(200).names();
    names.retain(|name| name.starts_with("n-"));
    assert!((made..=made + 1).contains(&names.len()), "{made} were made: {names:?}");
    for name in &names {
        client.delete(&format!("{CONFIG_MAPS}/{name}")).await.expect(200);
    }
    // What its keeper does: history is forgotten, its room given back, and the alarm ended.
    let newest = client.get(CONFIG_MAPS).await.expect(200).json()["metadata"]["resourceVersion"].clone();
    etcd.gateway("/v3/kv/compaction", &format!(r#"{{"revision":{newest},"physical":true}}"#)).await;
    etcd.gateway("/v3/maintenance/defragment", "{}").await;
    let alarms = etcd.gateway("/v3/maintenance/alarm", r#"{"action":"GET"}"#).await;
    let member = alarms["alarms"][0]["memberID"].as_str().expect("it is on");
    let end = format!(r#"{{"action":"DEACTIVATE","alarm":"NOSPACE","memberID":"{member}"}}"#);
    etcd.gateway("/v3/maintenance/alarm", &end).await;
    client.post(CONFIG_MAPS, &config_map("again", &large)).await.expect(201);
}

#[tokio::test]
async fn only_who_shows_and_trusts_the_right_certificates_gets_to_etcd() {
    let (authority, stranger) = (Authority::new("etcd"), Authority::new("stranger"));
    let (certificate, key) = authority.certificate("member", &["127.0.0.1"]);
    let flag = |name: &str, path: &std::path::Path| format!("--{name}={}", path.display());
    let flags = [
        flag("cert-file", &certificate),
        flag("key-file", &key),
        flag("trusted-ca-file", &authority.file()),
        "--client-cert-auth".to_owned(),
    ];
    let etcd = Etcd::start_at("https", &flags).await;
    let (shown, its_key) = authority.certificate("server", &[]);
    let right = [flag("etcd-cafile", &authority.file()), flag("etcd-certfile", &shown), flag("etcd-keyfile", &its_key)];
    let server = etcd.serve(&right.each_ref().map(String::as_str)).await;
    server.client().post(CONFIG_MAPS, &config_map("x", "1")).await.expect(201);

    let (foreign, foreign_key) = stranger.certificate("server", &[]);
    let files =
        |authority: &Authority, certificate, key| TlsFiles { authorities: Some(authority.file()), certificate, key };
    for (what, files, want) in [
        ("one whom nobody vouches for", files(&stranger, Some(shown), Some(its_key)), "UnknownIssuer"),
        // Whether the reason arrives before the connection ends is a matter of chance.
        ("no certificate", files(&authority, None, None), &etcd.url),
        ("one of another authority", files(&authority, Some(foreign), Some(foreign_key)), &etcd.url),
    ] {
        let client = Client::new(std::slice::from_ref(&etcd.url), &files).expect("the files are good");
        let request = RangeRequest { key: "/registry".into(), ..RangeRequest::default() };
        let refused = client.range_within(&request, Duration::from_secs(2)).await.map(drop);
        let told = refused.expect_err(what).to_string();
        assert!(told.contains(want), "{what}: {told}");
    }
}
