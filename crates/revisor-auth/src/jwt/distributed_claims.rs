//! [`ClaimResolver`]: claims that a token does not hold but says where to get (OpenID Connect Core 1.0, section 5.6.2). As
//! in the original (`claimResolver`), only the claim with the groups is got, and only if the token lacks it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use revisor_object::{Object, Value};
use revisor_webhook::{ClientConfig, Credentials, Target, WebhookClient};

use super::key_set::KeySet;
use super::token::{Parts, Trusted, verify};
use crate::quoted::quoted;

const NAMES: &str = "_claim_names";
const SOURCES: &str = "_claim_sources";
/// How long whoever has a claim may take, and how large its answer may be.
const TIMEOUT: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 1 << 20;
/// How many issuers of claims are remembered. When there are more, all are forgotten.
const MOST_ISSUERS: usize = 64;

/// Gets one claim from wherever tokens say that it is.
pub(super) struct ClaimResolver {
    claim: String,
    client: WebhookClient,
    ca_bundle: Vec<u8>,
    /// The keys of those who issued claims so far.
    issuers: Mutex<HashMap<String, Arc<KeySet>>>,
}

impl ClaimResolver {
    pub(super) fn new(claim: &str, client: WebhookClient, ca_bundle: Vec<u8>) -> ClaimResolver {
        ClaimResolver { claim: claim.to_owned(), client, ca_bundle, issuers: Mutex::default() }
    }

    /// Puts the claim among `claims`, if it is elsewhere (`expand`).
    pub(super) async fn expand(
        &self,
        claims: &mut Object,
        trusted: Trusted<'_>,
        now: SystemTime,
    ) -> Result<(), String> {
        let Some((url, access_token)) = self.source(claims)? else { return Ok(()) };
        let value = self.resolve(&url, &access_token, trusted, now).await?;
        claims.insert(&self.claim, value);
        Ok(())
    }

    /// Where the claim is, and the token that it is got with; `None` if it is nowhere else.
    fn source(&self, claims: &Object) -> Result<Option<(String, String)>, String> {
        if claims.contains(&self.claim) {
            return Ok(None);
        }
        let Some(names) = claims.get(NAMES) else { return Ok(None) };
        let names = names.as_object().filter(|names| names.iter().all(|(_, name)| name.as_str().is_some()));
        let names = names.ok_or("oidc: error parsing distributed claim names: they are no map of texts")?;
        let sources = claims.get(SOURCES).ok_or("oidc: no claim sources")?;
        let sources = sources.as_object().filter(|sources| sources.iter().all(|(_, source)| is_endpoint(source)));
        let sources = sources.ok_or("oidc: could not parse claim sources: they are no map of endpoints")?;
        let Some(name) = names.str(&self.claim) else { return Ok(None) };
        let endpoint = sources
            .object(name)
            .ok_or_else(|| format!("id token _claim_names contained a source {name} missing in _claims_sources"))?;
        let text = |name| endpoint.str(name).unwrap_or_default().to_owned();
        // One without an endpoint holds the claim itself, which nobody looks at.
        Ok(Some((text("endpoint"), text("access_token"))).filter(|(url, _)| !url.is_empty()))
    }

    async fn resolve(
        &self,
        url: &str,
        access_token: &str,
        trusted: Trusted<'_>,
        now: SystemTime,
    ) -> Result<Value, String> {
        let claim = &self.claim;
        let token = self.get(url, access_token).await;
        let token = token.map_err(|problem| format!("while getting distributed claim {}: {problem}", quoted(claim)))?;
        let parts = Parts::split(token.trim());
        let issued = parts.as_ref().and_then(|parts| {
            let claims = parts.claims()?;
            let issuer = claims.str("iss")?.to_owned();
            Some((issuer, claims))
        });
        let (Some(parts), Some((issuer, mut claims))) = (parts, issued) else {
            return Err(format!(
                "getting untrusted issuer from endpoint {url} failed for claim {}: malformed jwt",
                quoted(claim)
            ));
        };
        let keys = self.keys(&issuer);
        let verified = verify(&parts, &claims, &keys, trusted, now).await;
        verified.map_err(|problem| format!("verify distributed claim token: {problem}"))?;
        claims.remove(claim).ok_or_else(|| {
            format!("jwt returned by distributed claim endpoint {} did not contain claim: {claim}", quoted(url))
        })
    }

    async fn get(&self, url: &str, access_token: &str) -> Result<String, String> {
        let config = ClientConfig { target: Target::Url(url.to_owned()), ca_bundle: self.ca_bundle.clone() };
        let credentials = (!access_token.is_empty())
            .then(|| Arc::new(Credentials { token: Some(access_token.to_owned()), ..Credentials::default() }));
        let answer = self.client.get_as(&config, credentials.as_ref(), TIMEOUT, MOST_BYTES).await;
        let answer = answer.map_err(|error| error.to_string())?;
        String::from_utf8(answer.body.to_vec()).map_err(|_| "could not decode distributed claim response".to_owned())
    }

    /// The keys of an issuer, which are got when they are first needed.
    fn keys(&self, issuer: &str) -> Arc<KeySet> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issuers.get(issuer) {
            return known.clone();
        }
        if issuers.len() >= MOST_ISSUERS {
            issuers.clear();
        }
        let keys = Arc::new(KeySet::new(self.client.clone(), issuer, None, self.ca_bundle.clone()));
        issuers.insert(issuer.to_owned(), keys.clone());
        keys
    }
}

fn is_endpoint(source: &Value) -> bool {
    let Some(source) = source.as_object() else { return false };
    let is_text = |name: &str| source.get(name).is_none_or(|value| value.is_null() || value.as_str().is_some());
    is_text("endpoint") && is_text("access_token") && is_text("JWT")
}
