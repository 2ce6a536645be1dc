//! [`TokenWebhook`]: somebody else who knows whose tokens are, asked by TokenReviews. Answers are remembered for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use revisor_object::{Object, Value};
use revisor_webhook::{ClientConfig, Credentials, ReviewKind, ReviewPatience, WebhookClient};
use sha2::{Digest as _, Sha256};

use crate::token_authenticator::{BoxFuture, TokenAuthenticator};
use crate::{Claims, Identity, TokenHolder};

/// How long an answer may take, and how long the first pause is before it is asked for again.
const TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);
/// How many answers are remembered.
const MOST_REMEMBERED: usize = 10_000;

/// How the webhook is asked.
#[derive(Debug, Clone)]
pub struct TokenWebhookOptions {
    /// Where it is.
    pub config: ClientConfig,
    /// Who the server is to it.
    pub credentials: Arc<Credentials>,
    /// The version of the reviews: `v1` or `v1beta1`.
    pub version: String,
    /// For how long answers are remembered.
    pub cache_ttl: Duration,
    /// For whom tokens must be meant to be good here.
    pub audiences: Vec<String>,
}

/// Asks a webhook whose tokens are.
pub struct TokenWebhook {
    options: TokenWebhookOptions,
    client: WebhookClient,
    remembered: Mutex<HashMap<[u8; 32], Remembered>>,
}

struct Remembered {
    holder: Option<TokenHolder>,
    until: Instant,
}

impl TokenWebhook {
    /// A webhook that is called by `client`.
    pub fn new(options: TokenWebhookOptions, client: WebhookClient) -> TokenWebhook {
        TokenWebhook { options, client, remembered: Mutex::default() }
    }

    async fn ask(&self, token: &str, audiences: &[String]) -> Result<Option<TokenHolder>, String> {
        let TokenWebhookOptions { version, .. } = &self.options;
        let wanted = if audiences.is_empty() { &self.options.audiences } else { audiences };
        let list = wanted.iter().map(|audience| Value::from(audience.as_str())).collect::<Vec<_>>();
        let mut spec: Object = [("token", Value::from(token))].into_iter().collect();
        if !list.is_empty() {
            spec.insert("audiences", list);
        }
        let review: Object = [
            ("kind", Value::from("TokenReview")),
            ("apiVersion", Value::from(format!("authentication.k8s.io/{version}"))),
            ("metadata", Object::from_iter([("creationTimestamp", Value::Null)]).into()),
            ("spec", spec.into()),
            ("status", Object::from_iter([("user", Value::from(Object::new()))]).into()),
        ]
        .into_iter()
        .collect();
        let body = Value::Object(review).to_json().into();
        let TokenWebhookOptions { config, credentials, .. } = &self.options;
        let kind = ReviewKind { group: "authentication.k8s.io", version, kind: "TokenReview" };
        let patience = ReviewPatience { timeout: TIMEOUT, pause: PAUSE };
        let answer = self.client.ask_for_review(config, credentials, body, kind, patience).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let Some(status) = answer.object("status") else { return Ok(None) };
        let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
        let named = Some(texts(status.array("audiences"))).filter(|named| !named.is_empty());
        let named = named.unwrap_or_else(|| self.options.audiences.clone());
        let meant: Vec<String> = wanted.iter().filter(|audience| named.contains(audience)).cloned().collect();
        // As in the original, for whom it is good is looked at first.
        if !wanted.is_empty() && meant.is_empty() {
            return Ok(None);
        }
        if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
            return match status.str("error").filter(|error| !error.is_empty()) {
                Some(error) => Err(error.to_owned()),
                None => Ok(None),
            };
        }
        let empty = Object::new();
        let user = status.object("user").unwrap_or(&empty);
        let extra = user.object("extra").into_iter().flat_map(Object::iter);
        let claims = Claims {
            name: user.str("username").unwrap_or_default().to_owned(),
            uid: user.str("uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
            groups: texts(user.array("groups")),
            extra: extra.map(|(key, values)| (key.to_owned(), texts(values.as_array().unwrap_or_default()))).collect(),
        };
        Ok(Some(TokenHolder { identity: Identity::authenticated(claims), audiences: meant }))
    }

    fn recall(&self, key: &[u8; 32]) -> Option<Option<TokenHolder>> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(key).filter(|known| known.until > Instant::now()).map(|known| known.holder.clone())
    }

    fn remember(&self, key: [u8; 32], holder: Option<TokenHolder>) {
        if self.options.cache_ttl.is_zero() {
            return;
        }
        let now = Instant::now();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.retain(|_, known| known.until > now);
        }
        if remembered.len() < MOST_REMEMBERED {
            remembered.insert(key, Remembered { holder, until: now + self.options.cache_ttl });
        }
    }
}

impl TokenAuthenticator for TokenWebhook {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenHolder>, String>> {
        Box::pin(async move {
            // By its hash, so that no token stays in memory for longer than its request.
            let mut hasher = Sha256::new();
            for part in std::iter::once(token).chain(audiences.iter().map(String::as_str)) {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
            let key: [u8; 32] = hasher.finalize().into();
            if let Some(known) = self.recall(&key) {
                return Ok(known);
            }
            let holder = self.ask(token, audiences).await?;
            self.remember(key, holder.clone());
            Ok(holder)
        })
    }
}
