//! [`Probe`]: how a key service is, and the seed that objects are encrypted with while its key stays the same.
//!
//! The rules are those of the original (`kmsv2PluginProbe`): a service that cannot be reached does not keep anybody from
//! reading what was read before, and writes go on for three minutes with the last seed.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use bytes::Bytes;
use revisor_store::TransformError;
use tokio::sync::Notify;

use super::encrypted_object::{DekSourceType, EncryptedObject, validate_key_id};
use super::service::{Service, ServiceStatus};
use crate::aes_gcm::{ExtendedNonceGcm, SEED};
use crate::hash::hash;
use crate::metrics::EncryptionMetrics;

/// How often a service is asked how it is, and how often while it is not well.
const POSITIVE_INTERVAL: Duration = Duration::from_secs(60);
const NEGATIVE_INTERVAL: Duration = Duration::from_secs(10);
/// For how long what it said counts for those who ask for the server's health.
const POSITIVE_TTL: Duration = Duration::from_secs(20);
const NEGATIVE_TTL: Duration = Duration::from_secs(3);
/// For how long objects are encrypted with a seed whose service does not answer.
pub(crate) const WRITE_TTL: Duration = Duration::from_secs(3 * 60);

/// Tells the time. Comes from outside so that a test of what expires owns it.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What objects are encrypted with.
pub(crate) struct State {
    pub(crate) cipher: Arc<ExtendedNonceGcm>,
    /// What is stored beside the data of each.
    pub(crate) envelope: EncryptedObject,
    pub(crate) cache_key: Vec<u8>,
    expires: Instant,
}

pub(crate) struct Probe {
    service: Arc<Service>,
    metrics: Arc<EncryptionMetrics>,
    clock: Clock,
    state: RwLock<Option<Arc<State>>>,
    health: Mutex<Health>,
    wanted: Notify,
}

/// What was said last.
struct Health {
    result: Result<(), String>,
    at: Option<Instant>,
    /// The version of the protocol that the service spoke first.
    version: String,
}

impl Probe {
    pub(crate) fn new(service: Arc<Service>, metrics: Arc<EncryptionMetrics>, clock: Clock) -> Arc<Probe> {
        let health = Health { result: Err("it has not been asked yet".to_owned()), at: None, version: String::new() };
        Arc::new(Probe {
            service,
            metrics,
            clock,
            state: RwLock::new(None),
            health: Mutex::new(health),
            wanted: Notify::new(),
        })
    }

    /// The seed to read by; any, also an old one.
    pub(crate) fn state(&self) -> Result<Arc<State>, TransformError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner).clone();
        state.ok_or_else(|| {
            let why = self.health().result.clone().err().unwrap_or_default();
            TransformError::new(format!("the KMS provider {} has given no key yet: {why}", self.service.name))
        })
    }

    /// The seed to write with (`ValidateEncryptCapability`).
    pub(crate) fn writing_state(&self) -> Result<Arc<State>, TransformError> {
        let state = self.state()?;
        if (self.clock)() > state.expires {
            let id = hash(state.envelope.key_id.as_bytes());
            return Err(TransformError::new(format!("encryptedDEKSource with keyID hash {id:?} expired")));
        }
        Ok(state)
    }

    /// How the service is, as far as it is known. Does not wait: what is old is asked for anew, for the next who ask.
    pub(crate) fn check_health(&self) -> Result<(), String> {
        let health = self.health();
        let ttl = if health.result.is_ok() { POSITIVE_TTL } else { NEGATIVE_TTL };
        if health.at.is_none_or(|at| (self.clock)().duration_since(at) >= ttl) {
            self.wanted.notify_one();
        }
        health.result.clone()
    }

    /// Asks the service from time to time, until nobody needs it any more.
    pub(crate) fn run(probe: &Arc<Probe>) -> impl Future<Output = ()> + Send + use<> {
        let probe = Arc::downgrade(probe);
        async move {
            loop {
                let Some(strong) = probe.upgrade() else { return };
                let is_well = strong.health().result.is_ok();
                let pause = if is_well { POSITIVE_INTERVAL } else { NEGATIVE_INTERVAL };
                // Whoever waits here keeps it alive no longer than a pause.
                let _ = tokio::time::timeout(pause, strong.wanted.notified()).await;
                if let Err(error) = strong.check().await {
                    tracing::warn!(name = strong.service.name, error, "kms plugin failed health check probe");
                }
            }
        }
    }

    /// Asks the service how it is, and makes a new seed if it has a new key.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let name = &self.service.name;
        let result = match self.service.status().await {
            Err(error) => Err(format!(
                "failed to perform status section of the healthz check for KMS Provider {name}, error: {error}"
            )),
            Ok(status) => self.take(&status).await,
        };
        let mut health = self.health();
        health.result.clone_from(&result);
        health.at = Some((self.clock)());
        result
    }

    async fn take(&self, status: &ServiceStatus) -> Result<(), String> {
        let mut errors = Vec::new();
        if status.healthz != "ok" {
            errors.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        if !matches!(&*status.version, "v2" | "v2beta1") {
            errors.push(format!("expected KMSv2 API version v2, got {}", status.version));
        } else {
            let mut health = self.health();
            if health.version.is_empty() {
                health.version.clone_from(&status.version);
            }
            if health.version != status.version {
                errors.push(format!(
                    "KMSv2 API version should not change after the initial status response version {}, got {}",
                    health.version, status.version
                ));
            }
        }
        let (name, id) = (&self.service.name, &status.key_id);
        match validate_key_id(id) {
            Err((code, error)) => {
                self.metrics.invalid_key_told(name, code);
                errors.push(format!("got invalid KMSv2 KeyID hash {:?}: {error}", hash(id.as_bytes())));
            }
            Ok(()) => {
                self.metrics.key_told(name, id);
                errors.extend(self.rotate(id).await.err());
            }
        }
        match errors.as_slice() {
            [] => Ok(()),
            [only] => Err(format!("kmsv2 Provider {name} is not healthy, error: {only}")),
            several => Err(format!("kmsv2 Provider {name} is not healthy, error: [{}]", several.join(", "))),
        }
    }

    /// Makes a new seed if the service has a new key; else the old one is good for longer (`rotateDEKOnKeyIDChange`).
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        // Before the service is asked: it is the upper bound.
        let expires = (self.clock)() + WRITE_TTL;
        let current = self.state().ok();
        if let Some(current) = current.as_ref().filter(|current| current.envelope.key_id == key_id) {
            let State { cipher, envelope, cache_key, .. } = &**current;
            self.set(State {
                cipher: cipher.clone(),
                envelope: envelope.clone(),
                cache_key: cache_key.clone(),
                expires,
            });
            return Ok(());
        }
        let uid = uuid::Uuid::new_v4().to_string();
        let (generated, told) = match self.generate(&uid, expires).await {
            Ok(state) if state.envelope.key_id == key_id => {
                self.set(state);
                tracing::info!(name = self.service.name, uid, "the key service has a new key");
                return Ok(());
            }
            Ok(state) => ("<nil>".to_owned(), state.envelope.key_id),
            Err(error) => (error.to_string(), String::new()),
        };
        let old = current.map(|state| state.envelope.key_id.clone()).unwrap_or_default();
        let [status, encrypt, old] = [key_id, &told, &old].map(|id| hash(id.as_bytes()));
        Err(format!(
            "failed to rotate DEK uid={uid:?}, useSeed=true, errGen={generated}, statusKeyIDHash={status:?}, \
             encryptKeyIDHash={encrypt:?}, stateKeyIDHash={old:?}"
        ))
    }

    /// A new seed, encrypted by the service (`GenerateTransformer`).
    async fn generate(&self, uid: &str, expires: Instant) -> Result<State, TransformError> {
        let since = Instant::now();
        let mut seed = [0; SEED];
        let filled = rand::fill(&mut seed);
        self.metrics.key_generated(filled.map(|()| since.elapsed()).map_err(drop));
        filled.map_err(|_| TransformError::new("unable to read sufficient random bytes"))?;
        let cipher = Arc::new(ExtendedNonceGcm::new(&seed)?);
        let encrypted = self.service.encrypt(uid, &seed).await;
        let encrypted = encrypted.map_err(|error| error.context("failed to encrypt DEK, error"))?;
        let envelope = EncryptedObject {
            data: Bytes::new(),
            key_id: encrypted.key_id,
            dek_source: encrypted.ciphertext,
            annotations: encrypted.annotations,
            dek_source_type: DekSourceType::Seed,
        };
        envelope.validate()?;
        let cache_key = envelope.cache_key();
        Ok(State { cipher, envelope, cache_key, expires })
    }

    fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(state));
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
