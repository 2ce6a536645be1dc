//! The whole load generator against a small server that keeps configmaps and pods in memory and speaks HTTP/1.1 over TLS.
//!
//! The server is not a stand-in for Revisor: it is there to show that every phase does its work, counts it, and notices
//! when an answer is wrong. `cargo xtask bench` measures the real one.

mod memory_server;

use clap::Parser;
use memory_server::{Fault, MemoryServer};
use revisor_bench::{Options, Report, run};

async fn bench(server: &MemoryServer, more: &[&str]) -> anyhow::Result<Report> {
    let url = server.url();
    let pid = std::process::id().to_string();
    let arguments =
        ["bench", "--server", &url, "--token", memory_server::TOKEN, "--pid", &pid, "--seconds", "1", "--rest", "0"];
    let options = Options::try_parse_from(arguments.iter().chain(more)).expect("the flags are right");
    run(&options, &mut |_| ()).await
}

#[tokio::test]
async fn every_phase_does_its_work() {
    let server = MemoryServer::start(Fault::None).await;
    let flags = ["--objects", "1200", "--connections", "7", "--watchers", "3"];
    let report = bench(&server, &flags).await.expect("the server is sound");

    let [measured] = &report.servers[..] else { panic!("one server was measured: {report:?}") };
    let phases: Vec<(&str, u64)> =
        measured.phases.iter().map(|phase| (phase.name.as_str(), phase.operations)).collect();
    let names: Vec<&str> = phases.iter().map(|(name, _)| *name).collect();
    let events = "events to 3 watchers";
    let lists = ["list", "list as a table", "list, pages of 500"];
    let lone = ["a lone event to 3 watchers", "a lone write that nobody watches"];
    let limits = ["one by one", "a round at once", "a lone event"].map(|limit| format!("limit: a bare loop, {limit}"));
    let told: Vec<&str> = [events].into_iter().chain(lone).chain(limits.iter().map(String::as_str)).collect();
    assert_eq!(names, [&["create", "get", "update", "apply"], &lists[..], &told[..], &["delete"]].concat());
    for (name, operations) in &phases {
        match *name {
            "create" | "delete" => assert_eq!(*operations, 1200, "{name}"),
            _ => assert!(*operations > 0, "{name}"),
        }
    }
    for phase in &measured.phases {
        assert_eq!(phase.bytes.is_some(), phase.name.starts_with("list"), "{phase:?}");
        assert!(phase.p50_micros <= phase.p99_micros, "{phase:?}");
        assert!(phase.cpu_seconds.is_some() && phase.resident_bytes.is_some(), "{phase:?}");
    }
    let seen = phases.iter().find_map(|(name, operations)| (*name == events).then_some(*operations));
    assert_eq!(seen.map(|seen| seen % 3), Some(0), "all watchers saw the same events");
    assert!(measured.idle_bytes.is_some() && measured.loaded_bytes.is_some());
    assert_eq!(server.objects(), 0, "nothing is left behind");
}

/// Pods are patched, where configmaps are replaced.
#[tokio::test]
async fn pods_get_the_same_work() {
    let server = MemoryServer::start(Fault::None).await;
    let flags = ["--kind", "pods", "--objects", "50", "--connections", "2", "--watchers", "1"];
    let report = bench(&server, &flags).await.expect("the server is sound");
    let phases = &report.servers[0].phases;
    assert!(phases.iter().any(|phase| phase.name == "update"), "{phases:?}");
    assert!(phases.iter().all(|phase| phase.operations > 0), "{phases:?}");
    assert_eq!(server.objects(), 0, "nothing is left behind");
}

/// Clients share connections, and every phase does the same as without.
#[tokio::test]
async fn http2_carries_every_phase() {
    let server = MemoryServer::start(Fault::None).await;
    let flags = ["--http2", "--streams", "3", "--objects", "50", "--connections", "7", "--watchers", "4"];
    let report = bench(&server, &flags).await.expect("the server is sound");
    let phases = &report.servers[0].phases;
    assert!(phases.len() > 9 && phases.iter().all(|phase| phase.operations > 0), "{phases:?}");
    assert_eq!(server.objects(), 0, "nothing is left behind");
    assert_eq!(server.http2_connections(), 7_usize.div_ceil(3) + 1, "seven workers and four watchers by threes");
}

/// A steady rate is kept whether or not watchers have seen what was written before.
#[tokio::test]
async fn events_are_told_at_a_steady_rate() {
    let server = MemoryServer::start(Fault::None).await;
    let flags = ["--event-rate", "50", "--objects", "20", "--connections", "4", "--watchers", "3"];
    let report = bench(&server, &flags).await.expect("the server is sound");
    let phase = report.servers[0].phases.iter().find(|phase| phase.name == "events to 3 watchers, 50 writes/s");
    let events = phase.expect("it was measured").operations;
    assert!((120..=160).contains(&events), "{events}");
}

#[tokio::test]
async fn costs_are_measured_at_each_size() {
    let server = MemoryServer::start(Fault::None).await;
    // More than two pages, so that walks are cut short by the end of a phase and must begin anew at the next size.
    let report = bench(&server, &["--scale", "--sizes", "1100,1300", "--connections", "7"]).await;
    let report = report.expect("the server is sound");
    let phases = &report.servers[0].phases;
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    let at = |size| ["get", "update", "page", "create", "delete"].map(|name| format!("{name} at {size}"));
    assert_eq!(names, [at(1100), at(1300)].concat());
    assert!(phases.iter().all(|phase| phase.operations > 0), "{phases:?}");
}

#[tokio::test]
async fn a_peer_gets_the_same_work() {
    let server = MemoryServer::start(Fault::None).await;
    let peer = MemoryServer::start(Fault::None).await;
    let url = peer.url();
    let flags = ["--objects", "50", "--connections", "2", "--watchers", "1", "--peer", &url];
    let report = bench(&server, &[&flags[..], &["--peer-token", memory_server::TOKEN]].concat()).await;
    let report = report.expect("both servers are sound");
    assert_eq!(report.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["revisor", "peer"]);
    assert!(report.markdown().contains("| times better | ops/s |"), "{}", report.markdown());
}

#[tokio::test]
async fn wrong_answers_are_noticed() {
    for (fault, want) in [
        (Fault::RefusesWrites, "429"),
        (Fault::ShortLists, "a list of 40 objects has"),
        (Fault::EndsWatches, "the server ended a watch"),
    ] {
        let server = MemoryServer::start(fault).await;
        let error = bench(&server, &["--objects", "40", "--connections", "2", "--watchers", "2"]).await;
        let error = format!("{:#}", error.expect_err("the server is not sound"));
        assert!(error.contains(want), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn other_machines_are_left_alone() {
    let arguments = ["bench", "--server", "https://192.0.2.1:6443", "--token", "t"];
    let options = Options::try_parse_from(arguments).expect("the flags are right");
    let error = run(&options, &mut |_| ()).await.expect_err("it is not loopback");
    assert!(error.to_string().contains("not on this machine"), "{error}");
}
