//! [`ExternalSigner`]: tokens that are signed by a plugin on the same machine (`--service-account-signing-endpoint`), and
//! the keys that it tells of. The server never sees a private key.
//!
//! The rules are those of the original (`pkg/serviceaccount/externaljwt/plugin`): keys are fetched when the plugin hints
//! that there may be others, and when a token names one that is not known; while it does not answer, those that are known
//! stay good.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use revisor_grpc::{Code, Status, UnixChannel, wire};
use serde::Deserialize;

use super::key_set::KeySet;
use super::metrics::ExternalSignerMetrics;
use crate::VerifyingKey;
use crate::quoted::quoted;

/// How long a call for keys may take, one for what the plugin can do, and one for a signature.
const FETCH_PATIENCE: Duration = Duration::from_secs(60);
const METADATA_PATIENCE: Duration = Duration::from_secs(10);
const SIGN_PATIENCE: Duration = Duration::from_secs(60);
/// How long after a failure keys are fetched again.
const FETCH_AGAIN: Duration = Duration::from_secs(10);
/// The shortest time for which tokens must be good that the plugin signs.
const MIN_EXPIRATION_SECONDS: i64 = 10 * 60;
const MOST_KEY_ID_BYTES: usize = 1024;
/// The times that a protobuf timestamp can hold: from the year 1 to the year 9999.
const TIMESTAMPS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Why the plugin was of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExternalSignerError {
    message: String,
    /// The code of gRPC, as metrics tell it.
    code: &'static str,
}

impl ExternalSignerError {
    fn new(message: impl Into<String>) -> ExternalSignerError {
        // What is wrong with an answer has no code of its own.
        ExternalSignerError { message: message.into(), code: "unknown-non-grpc" }
    }

    fn context(self, what: &str) -> ExternalSignerError {
        ExternalSignerError { message: format!("{what}: {}", self.message), ..self }
    }
}

impl From<Status> for ExternalSignerError {
    fn from(status: Status) -> ExternalSignerError {
        ExternalSignerError { message: status.to_string(), code: status.code.name() }
    }
}

/// A plugin that signs tokens.
#[derive(Debug)]
pub struct ExternalSigner {
    channel: UnixChannel,
    metrics: ExternalSignerMetrics,
    keys: RwLock<Arc<KeySet>>,
    /// Held by whoever fetches keys; those who wait for it share what comes of that.
    fetching: tokio::sync::Mutex<Fetched>,
}

/// How often keys were fetched, and what became of it last.
#[derive(Debug)]
struct Fetched {
    rounds: u64,
    last: Result<(), ExternalSignerError>,
}

/// What the plugin says of its keys.
struct ToldKeys {
    keys: Vec<VerifyingKey>,
    /// Which of them others are not told of.
    unpublished: Vec<bool>,
    /// From when they are, in seconds since 1970.
    timestamp: f64,
    refresh: Duration,
}

impl ExternalSigner {
    /// The plugin behind the socket at `path`. Fetches its keys, and asks how long its tokens may be good.
    pub async fn open(path: &str) -> Result<(Arc<ExternalSigner>, Duration), ExternalSignerError> {
        let signer = Arc::new(ExternalSigner {
            channel: UnixChannel::new(path),
            metrics: ExternalSignerMetrics::default(),
            keys: RwLock::default(),
            fetching: tokio::sync::Mutex::new(Fetched { rounds: 0, last: Ok(()) }),
        });
        let filled = signer.fetch().await;
        filled
            .map_err(|error| error.context("while initially filling key cache: while performing initial cache fill"))?;
        let seconds = signer.max_token_expiration_seconds().await?;
        if seconds < MIN_EXPIRATION_SECONDS {
            return Err(ExternalSignerError::new(format!(
                "max token life supported by external-jwt-signer ({seconds}s) is less than acceptable (min \
                 {MIN_EXPIRATION_SECONDS}s)"
            )));
        }
        Ok((signer, Duration::from_secs(seconds.unsigned_abs())))
    }

    /// Shows what is counted of calls to whoever asks this registry.
    pub fn register(&self, registry: &prometheus::Registry) -> Result<(), prometheus::Error> {
        self.metrics.register(registry)
    }

    /// Keeps the keys as the plugin has them.
    pub async fn run(self: Arc<Self>) {
        let mut pause = self.refresh();
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.fetch().await {
                Ok(()) => self.refresh(),
                Err(error) => {
                    tracing::error!(%error, "cannot fetch the keys of the signer of tokens, the old ones stay");
                    FETCH_AGAIN
                }
            };
        }
    }

    fn refresh(&self) -> Duration {
        let until = self.keys().fresh_until;
        until.map_or(FETCH_AGAIN, |until| until.saturating_duration_since(Instant::now()))
    }

    /// The keys that are known.
    pub(super) fn keys(&self) -> Arc<KeySet> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keys among which there is one of this name, if the plugin has one (`GetPublicKeys`).
    pub(super) async fn keys_with(&self, id: &str) -> Arc<KeySet> {
        let known = self.keys();
        if known.knows(id) {
            return known;
        }
        if let Err(error) = self.fetch().await {
            tracing::error!(%error, "cannot fetch the keys of the signer of tokens");
        }
        self.keys()
    }

    /// The token with these claims, which are in base64 already (`signAndAssembleJWT`).
    pub(super) async fn sign(&self, claims: &str) -> Result<String, ExternalSignerError> {
        let signed = self.try_sign(claims).await;
        self.metrics.signed(signed.as_ref().err().map_or("OK", |error| error.code));
        signed
    }

    async fn try_sign(&self, claims: &str) -> Result<String, ExternalSignerError> {
        let request = wire::Writer::new().bytes(1, claims).finish();
        let answer = self.call("Sign", &request, SIGN_PATIENCE).await;
        let answer = answer.map_err(|error| error.context("while signing jwt"))?;
        let (mut header, mut signature) = (String::new(), String::new());
        for field in wire::read(&answer) {
            match field.map_err(odd)? {
                (1, text) => header = text.as_text().map_err(odd)?,
                (2, text) => signature = text.as_text().map_err(odd)?,
                _ => {}
            }
        }
        self.check_header(&header).await.map_err(|error| error.context("while validating header"))?;
        if signature.is_empty() {
            return Err(ExternalSignerError::new("empty signature returned"));
        }
        Ok(format!("{header}.{claims}.{signature}"))
    }

    /// Refuses what the server could not check afterwards (`validateJWTHeader`).
    async fn check_header(&self, header: &str) -> Result<(), ExternalSignerError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Header {
            #[serde(default)]
            alg: String,
            #[serde(default)]
            kid: String,
            #[serde(default)]
            typ: String,
        }
        let error = |message: String| Err(ExternalSignerError::new(message));
        let json = match URL_SAFE_NO_PAD.decode(header) {
            Ok(json) => json,
            Err(problem) => return error(format!("while unwrapping header: {problem}")),
        };
        let header: Header = match serde_json::from_slice(&json) {
            Ok(header) => header,
            Err(problem) => return error(format!("while parsing header JSON: {problem}")),
        };
        match &header {
            Header { typ, .. } if typ != "JWT" => return error("bad type".to_owned()),
            Header { kid, .. } if kid.is_empty() => return error("key id missing".to_owned()),
            Header { kid, .. } if kid.len() > MOST_KEY_ID_BYTES => return error("key id longer than 1 kb".to_owned()),
            Header { alg, .. } if !["RS256", "ES256", "ES384", "ES512"].contains(&&**alg) => {
                return error(format!("bad signing algorithm {}", quoted(alg)));
            }
            _ => {}
        }
        let keys = self.keys_with(&header.kid).await;
        let is_unpublished = |key: &VerifyingKey| key.id() == header.kid && !keys.published.contains(key);
        if keys.keys.iter().any(is_unpublished) {
            return error(format!(
                "key used for signing JWT (kid: {}) is excluded from OIDC discovery docs",
                header.kid
            ));
        }
        Ok(())
    }

    /// Fetches the keys, or waits for somebody who does (`syncKeys`).
    async fn fetch(&self) -> Result<(), ExternalSignerError> {
        let waiting = self.fetching.try_lock();
        let mut fetched = match waiting {
            Ok(fetched) => fetched,
            // Somebody is at it: what they hear is as good.
            Err(_) => return self.fetching.lock().await.last.clone(),
        };
        fetched.rounds += 1;
        let told = self.told_keys().await;
        self.metrics.fetched(told.as_ref().map(|told| told.timestamp).map_err(|error| error.code));
        fetched.last = match told {
            Ok(told) => {
                self.take(told, fetched.rounds);
                Ok(())
            }
            Err(error) => Err(error.context("while fetching token verification keys")),
        };
        fetched.last.clone()
    }

    fn take(&self, told: ToldKeys, round: u64) {
        let ToldKeys { keys, unpublished, refresh, .. } = told;
        let pairs = keys.iter().zip(&unpublished);
        let mut published: Vec<VerifyingKey> =
            pairs.filter(|(_, unpublished)| !**unpublished).map(|(key, _)| key.clone()).collect();
        let old = self.keys();
        if published.is_empty() {
            // As in the original, others are told what they were told before.
            tracing::error!("the signer of tokens has no key that others may be told of");
            published.clone_from(&old.published);
        }
        let is_same = old.keys == keys && old.published == published;
        let generation = if is_same { old.generation } else { round };
        let fresh_until = Some(Instant::now() + refresh);
        let new = Arc::new(KeySet { keys, published, generation, fresh_until });
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// What the plugin tells of its keys (`getTokenVerificationKeys`).
    async fn told_keys(&self) -> Result<ToldKeys, ExternalSignerError> {
        let answer = self.call("FetchKeys", &[], FETCH_PATIENCE).await;
        let answer = answer.map_err(|error| error.context("while getting externally supported jwt signing keys"))?;
        let (mut messages, mut timestamp, mut refresh) = (Vec::new(), None, 0);
        for field in wire::read(&answer) {
            match field.map_err(odd)? {
                (1, key) => messages.push(key.as_bytes()),
                (2, time) => timestamp = Some(time.as_bytes()),
                (3, seconds) => refresh = seconds.as_number() as i64,
                _ => {}
            }
        }
        if refresh <= 0 {
            return Err(ExternalSignerError::new(format!("found invalid refresh hint ({refresh}s)")));
        }
        if messages.is_empty() {
            return Err(ExternalSignerError::new("found no keys"));
        }
        let timestamp = timestamp.ok_or("invalid nil Timestamp").and_then(timestamp_of);
        let timestamp =
            timestamp.map_err(|problem| ExternalSignerError::new(format!("invalid data timestamp: {problem}")))?;
        let (mut keys, mut unpublished) = (Vec::new(), Vec::new());
        for message in messages {
            let (key, is_unpublished) = told_key(message)?;
            keys.push(key);
            unpublished.push(is_unpublished);
        }
        // What is hinted at may be far beyond what a clock can hold.
        let refresh = Duration::from_secs(refresh.unsigned_abs().min(u32::MAX.into()));
        Ok(ToldKeys { keys, unpublished, timestamp, refresh })
    }

    async fn max_token_expiration_seconds(&self) -> Result<i64, ExternalSignerError> {
        let answer = self.call("Metadata", &[], METADATA_PATIENCE).await?;
        let mut seconds = 0;
        for field in wire::read(&answer) {
            if let (1, number) = field.map_err(odd)? {
                seconds = number.as_number() as i64;
            }
        }
        Ok(seconds)
    }

    async fn call(&self, name: &str, request: &[u8], patience: Duration) -> Result<Bytes, ExternalSignerError> {
        let method = format!("/v1.ExternalJWTSigner/{name}");
        let since = Instant::now();
        let answer = self.channel.call(&method, request, patience).await;
        let code = answer.as_ref().err().map_or(Code::OK, |status| status.code);
        self.metrics.called(&method, code.name(), since.elapsed());
        answer.map_err(ExternalSignerError::from)
    }
}

/// A key, and whether others are not told of it.
fn told_key(message: &[u8]) -> Result<(VerifyingKey, bool), ExternalSignerError> {
    let (mut id, mut key, mut is_unpublished) = (String::new(), &[][..], false);
    for field in wire::read(message) {
        match field.map_err(odd)? {
            (1, text) => id = text.as_text().map_err(odd)?,
            (2, bytes) => key = bytes.as_bytes(),
            (3, truth) => is_unpublished = truth.as_number() != 0,
            _ => {}
        }
    }
    if id.is_empty() || id.len() > MOST_KEY_ID_BYTES {
        return Err(ExternalSignerError::new(format!("found invalid public key id {}", quoted(&id))));
    }
    if key.is_empty() {
        return Err(ExternalSignerError::new("found empty public key"));
    }
    let problem = "while parsing external public keys: not an RSA or ECDSA key that tokens could be checked with";
    let key = VerifyingKey::named(id, key).ok_or_else(|| ExternalSignerError::new(problem))?;
    Ok((key, is_unpublished))
}

/// The seconds since 1970 of a protobuf timestamp.
fn timestamp_of(message: &[u8]) -> Result<f64, &'static str> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in wire::read(message) {
        match field? {
            (1, number) => seconds = number.as_number() as i64,
            (2, number) => nanos = number.as_number() as i64,
            _ => {}
        }
    }
    match (TIMESTAMPS.contains(&seconds), (0..1_000_000_000).contains(&nanos)) {
        (true, true) => Ok(seconds as f64 + nanos as f64 / 1e9),
        (false, _) => Err("timestamp is not between the years 1 and 9999"),
        (true, false) => Err("timestamp has out-of-range nanos"),
    }
}

fn odd(problem: &'static str) -> ExternalSignerError {
    ExternalSignerError { message: format!("the answer is no message: {problem}"), code: Code::INTERNAL.name() }
}
