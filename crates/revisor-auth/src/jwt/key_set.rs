//! [`KeySet`]: the keys of an issuer, found by its discovery document and got again when a token names one that is not
//! known: that is how issuers replace their keys.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use revisor_object::{Object, Value, parse_json};
use revisor_webhook::{ClientConfig, Target, WebhookClient};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::web_key::{SigningAlgorithm, WebKey};

const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// How long a document may take to come, and how large it may be.
const TIMEOUT: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 1 << 20;
/// How many keys an issuer may have.
const MOST_KEYS: usize = 1_000;
/// How often an issuer is asked at most: tokens that anybody can make must not make the server ask all the time.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The keys of an issuer.
pub(crate) struct KeySet {
    client: WebhookClient,
    issuer: String,
    /// Where its discovery document is, if not where all have it.
    discovery: Option<String>,
    ca_bundle: Vec<u8>,
    keys: RwLock<Option<Arc<[WebKey]>>>,
    fetching: Mutex<Fetching>,
}

#[derive(Default)]
struct Fetching {
    keys_uri: Option<String>,
    last: Option<Instant>,
}

/// What a token says of its signature.
pub(crate) struct Signed<'a> {
    pub(crate) algorithm: SigningAlgorithm,
    /// The name of the key; empty if it does not say.
    pub(crate) key_id: &'a str,
    pub(crate) message: &'a [u8],
    pub(crate) signature: &'a [u8],
}

impl KeySet {
    pub(crate) fn new(client: WebhookClient, issuer: &str, discovery: Option<&str>, ca_bundle: Vec<u8>) -> KeySet {
        KeySet {
            client,
            issuer: issuer.to_owned(),
            discovery: discovery.map(str::to_owned),
            ca_bundle,
            keys: RwLock::new(None),
            fetching: Mutex::default(),
        }
    }

    /// Whether the issuer signed this. Keys that are known are tried first; if none did, they are got anew.
    pub(crate) async fn verify(&self, signed: &Signed<'_>) -> Result<(), String> {
        let known = self.known();
        if known.as_deref().is_some_and(|keys| is_signed(keys, signed)) {
            return Ok(());
        }
        let keys = self.fetch(known.as_ref()).await?;
        if is_signed(&keys, signed) { Ok(()) } else { Err("failed to verify id token signature".to_owned()) }
    }

    /// Gets the keys for the first time.
    pub(crate) async fn initialize(&self) -> Result<(), String> {
        self.fetch(None).await.map(drop)
    }

    fn known(&self) -> Option<Arc<[WebKey]>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The keys as they are now, if those that the caller knows are still the ones that are known here.
    async fn fetch(&self, tried: Option<&Arc<[WebKey]>>) -> Result<Arc<[WebKey]>, String> {
        let mut fetching = self.fetching.lock().await;
        // Somebody else may have got them meanwhile.
        if let Some(known) = self.known()
            && tried.is_none_or(|tried| !Arc::ptr_eq(tried, &known))
        {
            return Ok(known);
        }
        if fetching.last.is_some_and(|last| last.elapsed() < LEAST_PAUSE) {
            return self.known().ok_or_else(|| "authenticator not initialized".to_owned());
        }
        fetching.last = Some(Instant::now());
        let uri = match &fetching.keys_uri {
            Some(uri) => uri.clone(),
            None => {
                let uri = self.discover().await?;
                fetching.keys_uri.insert(uri).clone()
            }
        };
        let document = self.get(&uri).await?;
        let found = document.array("keys").iter().filter_map(Value::as_object).filter_map(WebKey::read);
        let keys: Arc<[WebKey]> = found.take(MOST_KEYS).collect();
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
        Ok(keys)
    }

    /// Where the keys are.
    async fn discover(&self) -> Result<String, String> {
        let usual = || format!("{}{WELL_KNOWN}", self.issuer.trim_end_matches('/'));
        let document = self.get(&self.discovery.clone().unwrap_or_else(usual)).await?;
        let told = document.str("issuer").unwrap_or_default();
        if told != self.issuer {
            let wanted = &self.issuer;
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {wanted:?} got {told:?}"
            ));
        }
        match document.str("jwks_uri") {
            Some(uri) if uri.starts_with("https://") => Ok(uri.to_owned()),
            Some(_) => Err("provider returned a JWKS URL that is not https".to_owned()),
            None => Err("provider did not return JWKS URL".to_owned()),
        }
    }

    async fn get(&self, url: &str) -> Result<Object, String> {
        let config = ClientConfig { target: Target::Url(url.to_owned()), ca_bundle: self.ca_bundle.clone() };
        let answer = self.client.get(&config, TIMEOUT, MOST_BYTES).await.map_err(|error| error.to_string())?;
        match parse_json(&answer.body).map(|parsed| parsed.value) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(format!("what is at {url} is no JSON object")),
        }
    }
}

fn is_signed(keys: &[WebKey], signed: &Signed<'_>) -> bool {
    let is_meant = |key: &&WebKey| signed.key_id.is_empty() || key.id == signed.key_id;
    keys.iter().filter(is_meant).any(|key| key.has_signed(signed.algorithm, signed.message, signed.signature))
}
