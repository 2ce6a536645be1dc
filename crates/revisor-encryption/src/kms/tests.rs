//! A key service of our own behind a real socket, and what becomes of objects when its key or its mood changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Response};
use revisor_grpc::wire;
use revisor_store::{Plain, Transformer};
use tempfile::TempDir;

use super::probe::{Clock, WRITE_TTL};
use super::{Envelope, KmsThread, Probe, Service};
use crate::metrics::EncryptionMetrics;

/// What the plugin says of itself.
struct Mood {
    key_id: String,
    healthz: String,
    version: String,
}

/// A key service: a seed is its bytes backwards, which is enough to see who was asked for what.
struct Plugin {
    mood: Mutex<Mood>,
    decrypted: AtomicUsize,
}

impl Plugin {
    fn say(&self, change: impl FnOnce(&mut Mood)) {
        change(&mut self.mood.lock().expect("no holder panics"));
    }

    fn answer(&self, path: &str, request: &[u8]) -> Result<Vec<u8>, (u32, &'static str)> {
        let mood = self.mood.lock().expect("no holder panics");
        let field = |wanted: u32| {
            let fields = wire::read(request).map(|field| field.expect("is a message"));
            let found = fields.filter(|(number, _)| *number == wanted).map(|(_, field)| field.as_bytes().to_vec());
            found.last().unwrap_or_default()
        };
        let reversed = |mut bytes: Vec<u8>| {
            bytes.reverse();
            bytes
        };
        match path {
            "/v2.KeyManagementService/Status" => {
                Ok(wire::Writer::new().bytes(1, &mood.version).bytes(2, &mood.healthz).bytes(3, &mood.key_id).finish())
            }
            "/v2.KeyManagementService/Encrypt" => {
                let annotations = [("who.example.com".to_owned(), b"me".to_vec())].into();
                let ciphertext = reversed(field(1));
                Ok(wire::Writer::new().bytes(1, ciphertext).bytes(2, &mood.key_id).map(3, &annotations).finish())
            }
            "/v2.KeyManagementService/Decrypt" => {
                self.decrypted.fetch_add(1, Ordering::SeqCst);
                if field(3) == b"lost" {
                    return Err((5, "there is no such%20key"));
                }
                Ok(wire::Writer::new().bytes(1, reversed(field(1))).finish())
            }
            _ => Err((12, "unknown method")),
        }
    }

    async fn serve(self: Arc<Self>, listener: tokio::net::UnixListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let plugin = self.clone();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.expect("speaks HTTP/2");
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let plugin = plugin.clone();
                    tokio::spawn(async move {
                        let path = request.uri().path().to_owned();
                        let mut body = request.into_body();
                        let mut received = BytesMut::new();
                        while let Some(Ok(data)) = body.data().await {
                            received.extend_from_slice(&data);
                        }
                        let mut trailers = HeaderMap::new();
                        let head =
                            Response::builder().header("content-type", "application/grpc").body(()).expect("is one");
                        let mut stream = respond.send_response(head, false).expect("is sent");
                        match plugin.answer(&path, &received[5..]) {
                            Ok(message) => {
                                let mut framed = BytesMut::new();
                                framed.put_u8(0);
                                framed.put_u32(message.len() as u32);
                                framed.put_slice(&message);
                                stream.send_data(framed.freeze(), false).expect("is sent");
                                trailers.insert("grpc-status", "0".parse().expect("is one"));
                            }
                            Err((code, message)) => {
                                trailers.insert("grpc-status", code.to_string().parse().expect("is one"));
                                trailers.insert("grpc-message", message.parse().expect("is one"));
                            }
                        }
                        stream.send_trailers(trailers).expect("are sent");
                    });
                }
            });
        }
    }
}

/// A plugin and a provider that uses it, with a clock that the test owns.
struct Fixture {
    plugin: Arc<Plugin>,
    thread: KmsThread,
    probe: Arc<Probe>,
    service: Arc<Service>,
    metrics: Arc<EncryptionMetrics>,
    passed: Arc<Mutex<Duration>>,
    _folder: TempDir,
}

impl Fixture {
    fn start() -> Fixture {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("kms.sock").display().to_string();
        let mood = Mood { key_id: "1".to_owned(), healthz: "ok".to_owned(), version: "v2".to_owned() };
        let plugin = Arc::new(Plugin { mood: Mutex::new(mood), decrypted: AtomicUsize::new(0) });
        let thread = KmsThread::start().expect("starts");
        let (serving, at) = (plugin.clone(), path.clone());
        let listening = thread.wait_for(async move { tokio::net::UnixListener::bind(at) });
        let listener = listening.expect("runs").expect("listens");
        thread.spawn(serving.serve(listener));
        let metrics = EncryptionMetrics::new("here");
        let service = Arc::new(Service::new("mine", &path, Duration::from_secs(3), metrics.clone()));
        let (begun, passed) = (Instant::now(), Arc::new(Mutex::new(Duration::ZERO)));
        let clock: Clock = Arc::new({
            let passed = passed.clone();
            move || begun + *passed.lock().expect("no holder panics")
        });
        let probe = Probe::new(service.clone(), metrics.clone(), clock);
        Fixture { plugin, thread, probe, service, metrics, passed, _folder: folder }
    }

    fn check(&self) -> Result<(), String> {
        let probe = self.probe.clone();
        self.thread.wait_for(async move { probe.check().await }).expect("runs")
    }

    /// A provider as after a start: nothing is remembered.
    fn envelope(&self) -> Envelope {
        Envelope::new(self.service.clone(), self.probe.clone(), self.thread.clone(), self.metrics.clone())
    }
}

const KEY: &[u8] = b"/registry/secrets/a/b";

#[test]
fn an_object_is_read_by_whoever_has_the_service_and_the_service_is_asked_once() {
    let fixture = Fixture::start();
    let plain = Bytes::from_static(b"a secret");
    assert!(fixture.envelope().transform_to_storage(plain.clone(), KEY).is_err(), "no key was given yet");
    fixture.check().expect("is well");
    let envelope = fixture.envelope();
    let stored = envelope.transform_to_storage(plain.clone(), KEY).expect("is encrypted");
    assert!(!stored.windows(8).any(|window| window == b"a secret"));
    let fresh = Plain { bytes: plain, is_stale: false };
    assert_eq!(envelope.transform_from_storage(stored.clone(), KEY), Ok(fresh.clone()));
    assert_eq!(fixture.plugin.decrypted.load(Ordering::SeqCst), 0, "who wrote it knows the seed");
    let restarted = fixture.envelope();
    for _ in 0..2 {
        assert_eq!(restarted.transform_from_storage(stored.clone(), KEY), Ok(fresh.clone()));
    }
    assert_eq!(fixture.plugin.decrypted.load(Ordering::SeqCst), 1);
    assert!(restarted.transform_from_storage(stored, b"/registry/secrets/a/other").is_err());
}

#[test]
fn a_new_key_of_the_service_makes_what_was_written_before_stale() {
    let fixture = Fixture::start();
    fixture.check().expect("is well");
    let envelope = fixture.envelope();
    let plain = Bytes::from_static(b"a secret");
    let old = envelope.transform_to_storage(plain.clone(), KEY).expect("is encrypted");
    fixture.plugin.say(|mood| mood.key_id = "2".to_owned());
    fixture.check().expect("is well");
    let read = envelope.transform_from_storage(old, KEY).expect("is read");
    assert_eq!((read.bytes, read.is_stale), (plain.clone(), true));
    let new = envelope.transform_to_storage(plain, KEY).expect("is encrypted");
    assert_eq!(envelope.transform_from_storage(new, KEY).map(|read| read.is_stale), Ok(false));
}

#[test]
fn a_service_that_is_not_well_stops_writes_after_a_while_and_reads_never() {
    let fixture = Fixture::start();
    fixture.check().expect("is well");
    let envelope = fixture.envelope();
    let plain = Bytes::from_static(b"a secret");
    let stored = envelope.transform_to_storage(plain.clone(), KEY).expect("is encrypted");
    for (change, want) in [
        ((|mood: &mut Mood| mood.healthz = "sick".to_owned()) as fn(&mut Mood), "got unexpected healthz status: sick"),
        (|mood| mood.version = "v1".to_owned(), "expected KMSv2 API version v2, got v1"),
        (|mood| mood.version = "v2beta1".to_owned(), "KMSv2 API version should not change"),
        (|mood| mood.key_id = String::new(), "keyID is empty"),
    ] {
        fixture.plugin.say(change);
        let problem = fixture.check().expect_err(want);
        assert!(problem.starts_with("kmsv2 Provider mine is not healthy, error: "), "{problem}");
        assert!(problem.contains(want), "{problem}");
        assert!(fixture.probe.check_health().is_err());
    }
    assert!(envelope.transform_to_storage(plain.clone(), KEY).is_ok(), "for a while it goes on");
    *fixture.passed.lock().expect("no holder panics") = WRITE_TTL + Duration::from_secs(1);
    let expired = envelope.transform_to_storage(plain, KEY).expect_err("it is over").to_string();
    assert!(expired.ends_with("expired") && !expired.contains("keyID hash \"1\""), "{expired}");
    assert!(envelope.transform_from_storage(stored, KEY).is_ok());
}

#[test]
fn what_the_service_says_about_a_failure_is_passed_on_with_its_code() {
    let fixture = Fixture::start();
    fixture.plugin.say(|mood| mood.key_id = "lost".to_owned());
    fixture.check().expect("is well");
    let stored = fixture.envelope().transform_to_storage(Bytes::from_static(b"x"), KEY).expect("is encrypted");
    let error = fixture.envelope().transform_from_storage(stored, KEY).expect_err("the key is lost");
    assert_eq!(
        error.to_string(),
        "failed to decrypt DEK, error: rpc error: code = NotFound desc = there is no such key"
    );
    assert_eq!(error.code(), "NotFound");
}
