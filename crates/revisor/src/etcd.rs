//! The program called as `etcd`: the marker of a folder. It stores nothing itself; the program called as `kube-apiserver`
//! asks it where to (`etcd_marker.rs`).
//!
//! It does what those ask of an etcd who start one for tests: it takes its flags, answers whether it is well, keeps the
//! folder, and ends when it is told to. Nobody else finds a database here, and is told so.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use revisor_api::Body;
use serde_json::json;
use tokio::net::TcpListener;

use crate::etcd_marker::{MARKER_PATH, Marker};
use crate::serve::stop_signal;
use crate::{complain, print, private_folder};

/// The etcd whose answers these are.
const ETCD_VERSION: &str = "3.6.0";

/// What one listens on that is not told.
const DEFAULT_CLIENT_URL: &str = "http://localhost:2379";

/// How many connections may wait to be accepted and be served at once: those who start it, and the server beside it.
const MAX_CONNECTIONS: usize = 64;

/// etcd's flags that may stand without a value.
const TRUTHS: [&str; 29] = [
    "auto-tls",
    "client-cert-auth",
    "discovery-insecure-skip-tls-verify",
    "discovery-insecure-transport",
    "enable-distributed-tracing",
    "enable-grpc-gateway",
    "enable-log-rotation",
    "enable-pprof",
    "experimental-compact-hash-check-enabled",
    "experimental-enable-distributed-tracing",
    "experimental-enable-lease-checkpoint",
    "experimental-enable-lease-checkpoint-persist",
    "experimental-initial-corrupt-check",
    "experimental-memory-mlock",
    "experimental-peer-skip-client-san-verification",
    "experimental-stop-grpc-service-on-defrag",
    "experimental-txn-mode-write-with-shared-buffer",
    "force-new-cluster",
    "initial-election-tick-advance",
    "memory-mlock",
    "peer-auto-tls",
    "peer-client-cert-auth",
    "peer-skip-client-san-verification",
    "pre-vote",
    "socket-reuse-address",
    "socket-reuse-port",
    "strict-reconfig-check",
    "unsafe-no-fsync",
    "version",
];

/// etcd's flags that have a value.
const VALUES: &str = "advertise-client-urls auth-token auth-token-ttl auto-compaction-mode auto-compaction-retention \
    backend-batch-interval backend-batch-limit backend-bbolt-freelist-type bcrypt-cost \
    bootstrap-defrag-threshold-megabytes cert-file cipher-suites client-cert-allowed-hostname client-cert-file \
    client-crl-file client-key-file compact-hash-check-time compaction-batch-limit compaction-sleep-interval config-file \
    corrupt-check-time cors data-dir discovery discovery-cacert discovery-cert discovery-dial-timeout \
    discovery-fallback discovery-endpoints discovery-key discovery-keepalive-time discovery-keepalive-timeout \
    discovery-password discovery-proxy discovery-request-timeout discovery-srv discovery-srv-name discovery-token \
    discovery-user distributed-tracing-address distributed-tracing-instance-id distributed-tracing-sampling-rate \
    distributed-tracing-service-name downgrade-check-time election-timeout experimental-bootstrap-defrag-threshold-megabytes \
    experimental-compact-hash-check-time experimental-compaction-batch-limit experimental-compaction-sleep-interval \
    experimental-corrupt-check-time experimental-distributed-tracing-address \
    experimental-distributed-tracing-instance-id experimental-distributed-tracing-sampling-rate \
    experimental-distributed-tracing-service-name experimental-downgrade-check-time \
    experimental-snapshot-catchup-entries experimental-warning-apply-duration \
    experimental-warning-unary-request-duration experimental-watch-progress-notify-interval feature-gates \
    grpc-keepalive-interval grpc-keepalive-min-time grpc-keepalive-timeout heartbeat-interval host-whitelist \
    initial-advertise-peer-urls initial-cluster initial-cluster-state initial-cluster-token key-file \
    listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level log-outputs \
    log-rotation-config-json logger max-concurrent-streams max-learners max-request-bytes max-snapshots max-txn-ops \
    max-wals metrics name peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file peer-client-cert-file \
    peer-client-key-file peer-crl-file peer-key-file peer-trusted-ca-file quota-backend-bytes raft-read-timeout \
    raft-write-timeout self-signed-cert-validity snapshot-catchup-entries snapshot-count tls-max-version \
    tls-min-version trusted-ca-file v2-deprecation wal-dir warning-apply-duration warning-unary-request-duration \
    watch-progress-notify-interval";

/// What is wrong with a command line ends etcd with this.
const MISUSED: u8 = 2;

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Help,
    Version,
    Mark(Options),
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    folder: PathBuf,
    client_urls: Vec<String>,
}

/// Runs until it is told to stop.
pub(crate) fn run(arguments: Vec<String>) -> ExitCode {
    let asked = match read(&arguments) {
        Ok(asked) => asked,
        Err(problem) => {
            complain(&format!("{problem}\nSee 'etcd --help'."));
            return ExitCode::from(MISUSED);
        }
    };
    let done = match asked {
        Asked::Help => print(&help()),
        Asked::Version => print(&format!("etcd Version: {ETCD_VERSION}\nA marker of Revisor, without a database.\n")),
        Asked::Mark(options) => mark(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("etcd: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Reads flags as Go's own library does: with one dash or two.
fn read(arguments: &[String]) -> Result<Asked, String> {
    let mut given: Vec<(&str, String)> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            return Err(format!("'{argument}' is not a valid flag"));
        };
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
        match name {
            "h" | "help" => return Ok(Asked::Help),
            name if TRUTHS.contains(&name) => given.push((name, value.unwrap_or_else(|| "true".to_owned()))),
            name if VALUES.split_whitespace().any(|known| known == name) => {
                let value = value.or_else(|| rest.next().cloned());
                given.push((name, value.ok_or_else(|| format!("flag needs an argument: -{name}"))?));
            }
            name => return Err(format!("flag provided but not defined: -{name}")),
        }
    }
    let last = |name: &str| given.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    if last("version").is_some_and(|version| version != "false") {
        return Ok(Asked::Version);
    }
    let name = last("name").unwrap_or_else(|| "default".to_owned());
    let folder = last("data-dir").filter(|folder| !folder.is_empty()).unwrap_or_else(|| format!("{name}.etcd"));
    let urls = last("listen-client-urls").unwrap_or_else(|| DEFAULT_CLIENT_URL.to_owned());
    let client_urls = urls.split(',').map(|url| url.trim().to_owned()).filter(|url| !url.is_empty()).collect();
    Ok(Asked::Mark(Options { folder: folder.into(), client_urls }))
}

fn help() -> String {
    let mut names: Vec<String> = VALUES.split_whitespace().map(|name| format!("  --{name} ''\n")).collect();
    names.extend(TRUTHS.iter().map(|name| format!("  --{name} 'false'\n")));
    names.sort_unstable();
    format!(
        "Usage:\n\n  etcd [flags]\n\nMarks a folder in which the kube-apiserver beside it keeps its state. There is no \
         database here.\n--data-dir and --listen-client-urls have an effect; the others are taken and do nothing.\n\n{}",
        names.concat()
    )
}

fn mark(options: &Options) -> anyhow::Result<()> {
    private_folder::secure(&options.folder)?;
    let folder = std::fs::canonicalize(&options.folder)
        .with_context(|| format!("cannot use the folder {}", options.folder.display()))?;
    let data_dir = folder.join("revisor");
    let data_dir = data_dir.to_str().context("the path of the folder is no text")?.to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(serve(options, &folder, Marker { data_dir }))
}

async fn serve(options: &Options, folder: &Path, marker: Marker) -> anyhow::Result<()> {
    let marker: Arc<str> = serde_json::to_string(&marker)?.into();
    let room = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    for url in &options.client_urls {
        let address = url.strip_prefix("http://").map(|address| address.trim_end_matches('/')).with_context(|| {
            format!("{url}: a marker is asked over http, on its own machine; it has no database to protect")
        })?;
        let found = tokio::net::lookup_host(address).await.with_context(|| format!("cannot listen on {url}"))?;
        let addresses: Vec<SocketAddr> = found.collect();
        let listener =
            TcpListener::bind(addresses.as_slice()).await.with_context(|| format!("cannot listen on {url}"))?;
        tokio::spawn(listen(listener, marker.clone(), room.clone()));
        // In etcd's words: there are those who wait for them.
        complain(&format!("ready to serve client requests: serving insecure client requests on {address}"));
    }
    complain(&format!("marking the folder {}", folder.display()));
    stop_signal()?.await;
    Ok(())
}

async fn listen(listener: TcpListener, marker: Arc<str>, room: Arc<tokio::sync::Semaphore>) {
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        // What cannot be accepted is the client's trouble; the next one may have more luck.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let marker = marker.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &marker);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new());
            // A client that breaks off has its reasons.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, marker: &str) -> Response<Body> {
    let (code, body) = match request.uri().path() {
        "/health" => (StatusCode::OK, json!({"health": "true", "reason": ""}).to_string()),
        "/livez" | "/readyz" => (StatusCode::OK, "ok\n".to_owned()),
        "/version" => (StatusCode::OK, json!({"etcdserver": ETCD_VERSION, "etcdcluster": ETCD_VERSION}).to_string()),
        MARKER_PATH => (StatusCode::OK, marker.to_owned()),
        _ => (StatusCode::NOT_FOUND, "404 page not found: there is no database here\n".to_owned()),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    let is_json = matches!(request.uri().path(), "/health" | "/version" | MARKER_PATH);
    let kind = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flags_are_read_as_etcd_reads_them() {
        let marks = |folder: &str, urls: &[&str]| {
            let client_urls = urls.iter().map(|url| (*url).to_owned()).collect();
            Ok(Asked::Mark(Options { folder: folder.into(), client_urls }))
        };
        for (line, want) in [
            ("", marks("default.etcd", &[DEFAULT_CLIENT_URL])),
            (
                "--data-dir=/d --listen-client-urls=http://127.0.0.1:1 --listen-peer-urls http://localhost:0 \
                 --unsafe-no-fsync=true --advertise-client-urls=http://127.0.0.1:1",
                marks("/d", &["http://127.0.0.1:1"]),
            ),
            ("-name x -unsafe-no-fsync", marks("x.etcd", &[DEFAULT_CLIENT_URL])),
            ("--listen-client-urls=http://a:1,http://b:2", marks("default.etcd", &["http://a:1", "http://b:2"])),
            ("--help", Ok(Asked::Help)),
            ("--version", Ok(Asked::Version)),
            ("--foo=1", Err("flag provided but not defined: -foo".to_owned())),
            ("--data-dir", Err("flag needs an argument: -data-dir".to_owned())),
            ("x", Err("'x' is not a valid flag".to_owned())),
        ] {
            assert_eq!(read(&words(line)), want, "{line}");
        }
        assert!(help().lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")));
    }
}
