//! [`Converter`]: a conversion webhook over real TLS, which can be told to do its work badly or not at all.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a webhook does with those who ask it.
#[derive(Clone, Copy)]
pub(super) enum Mood {
    Works,
    /// Hangs up.
    Away,
    /// Never answers.
    Hangs,
    /// Answers something else.
    Lies(fn(&mut Value)),
}

/// A webhook that runs until it is dropped.
pub(super) struct Converter {
    pub(super) address: SocketAddr,
    authority: String,
    mood: Arc<Mutex<Mood>>,
    asked: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Converter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Converter {
    /// A webhook that changes objects by a function of the wanted API version. Its certificate is for loopback and for
    /// this host.
    pub(super) async fn start(host: &str, convert: fn(&str, &mut Value)) -> Converter {
        let (acceptor, authority) = certified(host);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let address = listener.local_addr().expect("it has an address");
        let (mood, asked) = (Arc::new(Mutex::new(Mood::Works)), Arc::new(AtomicUsize::new(0)));
        let (moods, count) = (mood.clone(), asked.clone());
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, moods, count) = (acceptor.clone(), moods.clone(), count.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| {
                        count.fetch_add(1, Ordering::SeqCst);
                        let mood = *moods.lock().expect("nobody panics with it");
                        answer(request, mood, convert)
                    });
                    // It ends when either side hangs up.
                    drop(
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await,
                    );
                });
            }
        });
        Converter { address, authority, mood, asked, task }
    }

    pub(super) fn set(&self, mood: Mood) {
        *self.mood.lock().expect("nobody panics with it") = mood;
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The conversion of a definition that uses it at its address.
    pub(super) fn by_url(&self) -> Value {
        self.conversion(json!({"url": format!("https://{}/convert", self.address)}))
    }

    /// The conversion of a definition that finds it, or does not, by these fields.
    pub(super) fn conversion(&self, mut config: Value) -> Value {
        use base64::Engine;
        config["caBundle"] = base64::engine::general_purpose::STANDARD.encode(&self.authority).into();
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}})
    }
}

/// A TLS acceptor with a certificate for loopback and for a host, and its authority in PEM.
pub(crate) fn certified(host: &str) -> (TlsAcceptor, String) {
    let key = KeyPair::generate().expect("keys can be made");
    let mut params = CertificateParams::new(Vec::new()).expect("no names are needed");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("it can be signed").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("keys can be made");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), host.to_owned()]).expect("names and addresses");
    let certificate = params.signed_by(&key, &issuer).expect("it can be signed").der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key fits");
    (TlsAcceptor::from(Arc::new(config)), authority)
}

async fn answer(
    request: Request<Incoming>,
    mood: Mood,
    convert: fn(&str, &mut Value),
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let lie = match mood {
        Mood::Works => None,
        Mood::Away => return Err(std::io::Error::other("away")),
        Mood::Hangs => return std::future::pending().await,
        Mood::Lies(lie) => Some(lie),
    };
    let mut review: Value = serde_json::from_slice(&body)?;
    let request = review["request"].take();
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        convert(wanted, object);
        object["apiVersion"] = wanted.into();
    }
    let mut response = json!({
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects},
    });
    if let Some(lie) = lie {
        lie(&mut response);
    }
    let answer = Response::builder().header("content-type", "application/json");
    answer.body(Full::new(response.to_string().into())).map_err(std::io::Error::other)
}
