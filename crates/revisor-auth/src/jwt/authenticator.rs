//! [`JwtAuthenticator`]: whose the tokens of one issuer are.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use revisor_object::{Object, Value, parse_json};
use revisor_webhook::WebhookClient;

use super::claims::texts;
use super::config::{JwtConfig, Mapping, Rule};
use super::key_set::{KeySet, Signed};
use super::web_key::SigningAlgorithm;
use crate::{Claims, Identity, TokenHolder};

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// How often an issuer that cannot be reached at the start is asked again.
const ASKING: Duration = Duration::from_secs(10);

/// How much clocks may differ where a token says from when on it is good.
const LEEWAY: u64 = 5 * 60;

/// The longest token that is looked at.
const MOST_TOKEN_BYTES: usize = 64 << 10;

/// Knows whose the tokens of an issuer are.
pub struct JwtAuthenticator {
    config: JwtConfig,
    keys: KeySet,
}

impl JwtAuthenticator {
    /// An issuer whose keys are got by `client`. They are asked for on the side, again and again until they are there:
    /// the issuer may be one that this server is needed for. Has to be called within a tokio runtime.
    pub fn start(config: JwtConfig, client: WebhookClient) -> Arc<JwtAuthenticator> {
        let keys = KeySet::new(client, &config.issuer, config.discovery.as_deref(), config.ca_bundle.clone());
        let this = Arc::new(JwtAuthenticator { config, keys });
        tokio::spawn({
            let this = Arc::downgrade(&this);
            async move {
                while let Some(this) = this.upgrade() {
                    match this.keys.initialize().await {
                        Ok(()) => return,
                        Err(problem) => tracing::error!(
                            issuer = this.config.issuer,
                            problem,
                            "the keys of an issuer of tokens cannot be got"
                        ),
                    }
                    drop(this);
                    tokio::time::sleep(ASKING).await;
                }
            }
        });
        this
    }

    /// Whose token this is, if it is one of this issuer.
    pub(crate) async fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now: SystemTime,
    ) -> Result<Option<TokenHolder>, String> {
        let Some(parts) = Parts::split(token) else { return Ok(None) };
        let Some(claims) = parts.claims() else { return Ok(None) };
        let issuer = match claims.str("iss").unwrap_or_default() {
            "accounts.google.com" => "https://accounts.google.com",
            issuer => issuer,
        };
        if issuer != self.config.issuer {
            return Ok(None);
        }
        self.verify(&parts, &claims, now).await.map_err(|problem| format!("oidc: verify token: {problem}"))?;
        let user = self.user(&claims).map_err(|problem| format!("oidc: {problem}"))?;
        // Tokens of issuers say nothing about whom they are for beside those of the configuration.
        if !audiences.is_empty() {
            let meant: Vec<String> =
                audiences.iter().filter(|audience| self.config.audiences.contains(audience)).cloned().collect();
            if meant.is_empty() {
                return Ok(None);
            }
            return Ok(Some(TokenHolder { identity: Identity::authenticated(user), audiences: meant }));
        }
        Ok(Some(TokenHolder { identity: Identity::authenticated(user), audiences: Vec::new() }))
    }

    async fn verify(&self, parts: &Parts<'_>, claims: &Object, now: SystemTime) -> Result<(), String> {
        let named = match claims.get("aud") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let wanted = &self.config.audiences;
        if !wanted.iter().any(|audience| named.contains(&audience.as_str())) {
            return Err(format!("expected audience in {wanted:?} got {named:?}"));
        }
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let time = |name: &str| claims.get(name).and_then(seconds);
        match time("exp") {
            Some(expiry) if expiry >= now => {}
            Some(_) => return Err("token is expired".to_owned()),
            None => return Err("token has no expiry".to_owned()),
        }
        if time("nbf").is_some_and(|begin| begin > now.saturating_add(LEEWAY)) {
            return Err("current time is before the nbf (not before) time".to_owned());
        }
        let header = parts.header().ok_or("malformed jwt")?;
        let name = header.str("alg").unwrap_or_default();
        let algorithm = SigningAlgorithm::named(name).filter(|algorithm| self.config.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or_else(|| format!("id token signed with unsupported algorithm {name:?}"))?;
        if header.contains("crit") {
            return Err("the header asks for what is not understood".to_owned());
        }
        let signature = URL_SAFE_NO_PAD.decode(parts.signature).map_err(|_| "malformed jwt signature")?;
        let key_id = header.str("kid").unwrap_or_default();
        let message = parts.message.as_bytes();
        self.keys.verify(&Signed { algorithm, key_id, message, signature: &signature }).await
    }

    /// Who the claims say that somebody is.
    fn user(&self, claims: &Object) -> Result<Claims, String> {
        let config = &self.config;
        let name = self.username(claims)?;
        let groups = match &config.groups {
            Some(Mapping::Claim { name, .. }) if !claims.contains(name) => {
                if claims.object("_claim_names").is_some_and(|names| names.contains(name)) {
                    return Err(format!("the claim {name} is distributed, which this server does not resolve"));
                }
                Vec::new()
            }
            Some(Mapping::Claim { name, prefix }) => {
                let groups = match claims.get(name) {
                    Some(Value::String(one)) => vec![one.as_str()],
                    Some(Value::Array(many)) if many.iter().all(|group| group.as_str().is_some()) => {
                        many.iter().filter_map(Value::as_str).collect()
                    }
                    _ => return Err(format!("parse groups claim {name:?}: neither a text nor a list of texts")),
                };
                groups.into_iter().map(|group| format!("{prefix}{group}")).collect()
            }
            Some(Mapping::Expression(expression)) => {
                let failed = |problem| format!("error evaluating group claim expression: {problem}");
                texts(&expression.evaluate(claims).map_err(failed)?).map_err(failed)?
            }
            None => Vec::new(),
        };
        let uid = match &config.uid {
            Some(Mapping::Claim { name, .. }) => Some(text(claims, name)?.to_owned()),
            Some(Mapping::Expression(expression)) => {
                let value = expression.evaluate(claims);
                let value = value.map_err(|problem| format!("error evaluating uid claim expression: {problem}"))?;
                Some(value.as_str().ok_or("uid claim expression must return a string")?.to_owned())
            }
            None => None,
        };
        let mut extra = Vec::new();
        if let Some(id) = claims.str("jti").filter(|id| !id.is_empty()) {
            extra.push((CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]));
        }
        for (key, expression) in &config.extra {
            let failed = |problem| format!("error evaluating extra claim expression: {problem}");
            let values = texts(&expression.evaluate(claims).map_err(failed)?).map_err(failed)?;
            if !values.is_empty() {
                extra.push((key.clone(), values));
            }
        }
        for (name, wanted) in &config.required_claims {
            if text(claims, name)? != wanted {
                return Err(format!("required claim {name} value does not match"));
            }
        }
        check(&config.claim_rules, |rule| rule.expression.evaluate(claims).map(|value| value.as_bool() == Some(true)))?;
        let user = Claims { name, uid: uid.filter(|uid| !uid.is_empty()), groups, extra };
        check(&config.user_rules, |rule| rule.expression.holds_for(&user))?;
        Ok(user)
    }

    fn username(&self, claims: &Object) -> Result<String, String> {
        match &self.config.username {
            Mapping::Claim { name, prefix } => {
                let username = text(claims, name)?;
                if name == "email"
                    && let Some(verified) = claims.get("email_verified")
                    && *verified != Value::Bool(true)
                {
                    return Err("email not verified".to_owned());
                }
                Ok(format!("{prefix}{username}"))
            }
            Mapping::Expression(expression) => {
                let value = expression.evaluate(claims);
                let value =
                    value.map_err(|problem| format!("error evaluating username claim expression: {problem}"))?;
                match value.as_str() {
                    None => Err("username claim expression must return a string".to_owned()),
                    Some("") => Err("empty username via CEL expression is not allowed".to_owned()),
                    Some(username) => Ok(username.to_owned()),
                }
            }
        }
    }
}

fn check(rules: &[Rule], holds: impl Fn(&Rule) -> Result<bool, String>) -> Result<(), String> {
    for rule in rules {
        match holds(rule) {
            Ok(true) => {}
            Ok(false) if rule.message.is_empty() => {
                return Err(format!("validation expression '{}' failed", rule.expression.text));
            }
            Ok(false) => {
                return Err(format!("validation expression '{}' failed: {}", rule.expression.text, rule.message));
            }
            Err(problem) => return Err(format!("error evaluating validation expression: {problem}")),
        }
    }
    Ok(())
}

fn text<'a>(claims: &'a Object, name: &str) -> Result<&'a str, String> {
    match claims.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("parse claim {name}: it is no text")),
        None => Err(format!("claim {name} not present in ID token")),
    }
}

/// A time in seconds, which some write with a fraction.
fn seconds(value: &Value) -> Option<u64> {
    match value.as_i64() {
        Some(whole) => u64::try_from(whole).ok(),
        None => value.to_json().parse::<f64>().ok().filter(|time| *time >= 0.0).map(|time| time as u64),
    }
}

/// The parts of a token in its compact form.
struct Parts<'a> {
    /// What is signed: the first two.
    message: &'a str,
    signature: &'a str,
}

impl<'a> Parts<'a> {
    fn split(token: &'a str) -> Option<Parts<'a>> {
        if token.len() > MOST_TOKEN_BYTES || token.matches('.').count() != 2 {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        Some(Parts { message, signature })
    }

    fn decoded(part: &str) -> Option<Object> {
        let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
        match parse_json(&bytes).ok()?.value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    fn header(&self) -> Option<Object> {
        Parts::decoded(self.message.split_once('.')?.0)
    }

    fn claims(&self) -> Option<Object> {
        Parts::decoded(self.message.split_once('.')?.1)
    }
}
