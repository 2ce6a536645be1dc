//! [`Envelope`]: objects encrypted with the seed of a key service (`NewEnvelopeTransformer`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use revisor_store::{Plain, TransformError, Transformer};

use super::encrypted_object::{DekSourceType, EncryptedObject};
use super::probe::Probe;
use super::service::Service;
use super::thread::KmsThread;
use crate::aes_gcm::{AesGcm, ExtendedNonceGcm};
use crate::cipher::Cipher;
use crate::metrics::{Direction, EncryptionMetrics};

/// For how long a key that the service decrypted is remembered after it was last used.
const CACHE_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How many are at most. There is one for each start of a server and each key of the service.
const MOST_CACHED: usize = 10_000;

/// Encrypts with the seed of a key service.
pub(crate) struct Envelope {
    service: Arc<Service>,
    probe: Arc<Probe>,
    thread: KmsThread,
    metrics: Arc<EncryptionMetrics>,
    cache: Mutex<HashMap<Vec<u8>, Cached>>,
}

struct Cached {
    cipher: Arc<dyn Cipher>,
    used: Instant,
}

impl Envelope {
    pub(crate) fn new(
        service: Arc<Service>,
        probe: Arc<Probe>,
        thread: KmsThread,
        metrics: Arc<EncryptionMetrics>,
    ) -> Envelope {
        Envelope { service, probe, thread, metrics, cache: Mutex::default() }
    }

    fn cached(&self, key: &[u8]) -> Option<Arc<dyn Cipher>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache.get_mut(key)?;
        cached.used = Instant::now();
        Some(cached.cipher.clone())
    }

    fn remember(&self, key: &[u8], cipher: Arc<dyn Cipher>) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let used = Instant::now();
        if let Some(cached) = cache.get_mut(key) {
            cached.used = used;
            return;
        }
        cache.retain(|_, cached| used.duration_since(cached.used) < CACHE_TTL);
        if cache.len() >= MOST_CACHED
            && let Some(oldest) = cache.iter().min_by_key(|(_, cached)| cached.used).map(|(key, _)| key.clone())
        {
            cache.remove(&oldest);
        }
        cache.insert(key.to_vec(), Cached { cipher, used });
        self.metrics.keys_cached(&self.service.name, cache.len());
    }

    /// What reads `object`, which may have to be asked for.
    fn cipher_of(&self, object: &EncryptedObject) -> Result<Arc<dyn Cipher>, TransformError> {
        let key = object.cache_key();
        if let Some(known) = self.cached(&key) {
            return Ok(known);
        }
        self.metrics.cache_missed();
        let (service, asked) = (self.service.clone(), EncryptedObject { data: Bytes::new(), ..object.clone() });
        let uid = uuid::Uuid::new_v4().to_string();
        let decrypted = self.thread.wait_for(async move { service.decrypt(&uid, &asked).await });
        let decrypted = decrypted.unwrap_or_else(|| Err(TransformError::new("the server is going away")));
        let decrypted = decrypted.map_err(|error| error.context("failed to decrypt DEK, error"))?;
        let cipher: Arc<dyn Cipher> = match object.dek_source_type {
            DekSourceType::Seed => Arc::new(ExtendedNonceGcm::new(&decrypted)?),
            DekSourceType::AesGcmKey => Arc::new(AesGcm::new(&decrypted)?),
        };
        self.remember(&key, cipher.clone());
        Ok(cipher)
    }
}

impl Transformer for Envelope {
    fn transform_from_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Plain, TransformError> {
        let object = EncryptedObject::decode(&data)?;
        let state = self.probe.state()?;
        let cipher = self.cipher_of(&object)?;
        self.metrics.key_used(Direction::FromStorage, &self.service.name, &object.key_id);
        let plain = cipher.open(&object.data, authenticated)?;
        let is_current =
            object.key_id == state.envelope.key_id && object.dek_source_type == state.envelope.dek_source_type;
        Ok(Plain { bytes: plain.into(), is_stale: !is_current })
    }

    fn transform_to_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Bytes, TransformError> {
        let state = self.probe.writing_state()?;
        // So that nobody is asked for the seed when this is read again.
        self.remember(&state.cache_key, state.cipher.clone());
        let sealed = state.cipher.seal_behind(&[], &data, authenticated)?;
        self.metrics.key_used(Direction::ToStorage, &self.service.name, &state.envelope.key_id);
        Ok(EncryptedObject { data: sealed, ..state.envelope.clone() }.encode())
    }
}
