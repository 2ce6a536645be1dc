//! [`JwtAuthenticator`]: whose the tokens of one issuer are.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use revisor_object::{Object, Value};
use revisor_webhook::WebhookClient;

use super::claims::texts;
use super::config::{JwtConfig, Mapping, Rule};
use super::distributed_claims::ClaimResolver;
use super::key_set::KeySet;
use super::token::{Parts, Trusted, verify};
use crate::quoted::quoted;
use crate::{Claims, Identity};

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// How often an issuer that cannot be reached at the start is asked again.
const ASKING: Duration = Duration::from_secs(10);

/// Knows whose the tokens of an issuer are.
pub struct JwtAuthenticator {
    config: JwtConfig,
    keys: KeySet,
    /// Gets the claim with the groups from elsewhere, if groups are a claim.
    resolver: Option<ClaimResolver>,
}

impl JwtAuthenticator {
    /// An issuer whose keys are got by `client`. They are asked for on the side, again and again until they are there:
    /// the issuer may be one that this server is needed for. Has to be called within a tokio runtime.
    pub fn start(config: JwtConfig, client: WebhookClient) -> Arc<JwtAuthenticator> {
        let resolver = match &config.groups {
            Some(Mapping::Claim { name, .. }) if !name.is_empty() => {
                Some(ClaimResolver::new(name, client.clone(), config.ca_bundle.clone()))
            }
            _ => None,
        };
        let keys = KeySet::new(client, &config.issuer, config.discovery.as_deref(), config.ca_bundle.clone());
        let this = Arc::new(JwtAuthenticator { config, keys, resolver });
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
    pub(crate) async fn authenticate(&self, token: &str, now: SystemTime) -> Result<Option<Identity>, String> {
        let Some(parts) = Parts::split(token) else { return Ok(None) };
        let Some(mut claims) = parts.claims() else { return Ok(None) };
        let issuer = match claims.str("iss").unwrap_or_default() {
            "accounts.google.com" => "https://accounts.google.com",
            issuer => issuer,
        };
        if issuer != self.config.issuer {
            return Ok(None);
        }
        let trusted = Trusted { audiences: &self.config.audiences, algorithms: &self.config.algorithms };
        let verified = verify(&parts, &claims, &self.keys, trusted, now).await;
        verified.map_err(|problem| format!("oidc: verify token: {problem}"))?;
        if let Some(resolver) = &self.resolver {
            let expanded = resolver.expand(&mut claims, trusted, now).await;
            expanded.map_err(|problem| format!("oidc: could not expand distributed claims: {problem}"))?;
        }
        let user = self.user(&claims).map_err(|problem| format!("oidc: {problem}"))?;
        Ok(Some(Identity::authenticated(user)))
    }

    /// Who the claims say that somebody is.
    fn user(&self, claims: &Object) -> Result<Claims, String> {
        let config = &self.config;
        let name = self.username(claims)?;
        let groups = match &config.groups {
            Some(Mapping::Claim { name, .. }) if !claims.contains(name) => Vec::new(),
            Some(Mapping::Claim { name, prefix }) => {
                let groups = match claims.get(name) {
                    Some(Value::Null) => Vec::new(),
                    Some(Value::Array(many)) if many.iter().all(|group| group.as_str().is_some()) => {
                        many.iter().filter_map(Value::as_str).collect()
                    }
                    _ => vec![text(claims, name).map_err(|why| format!("parse groups claim {}: {why}", quoted(name)))?],
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
            Some(Mapping::Claim { name, .. }) => {
                let uid = text(claims, name).map_err(|why| format!("parse uid claim {}: {why}", quoted(name)))?;
                Some(uid.to_owned())
            }
            Some(Mapping::Expression(expression)) => {
                let value = expression.evaluate(claims);
                let value = value.map_err(|problem| format!("error evaluating uid claim expression: {problem}"))?;
                let odd = "error evaluating uid claim expression: uid claim expression must return a string";
                Some(value.as_str().ok_or(odd)?.to_owned())
            }
            None => None,
        };
        let mut extra = Vec::new();
        if let Some(id) = claims.str("jti").filter(|id| !id.is_empty()) {
            extra.push((CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]));
        }
        for (key, expression) in &config.extra {
            let failed = |problem| format!("error evaluating extra claim expression: {}: {problem}", expression.text);
            let values = texts(&expression.evaluate(claims)?).map_err(failed)?;
            if !values.is_empty() {
                extra.push((key.clone(), values));
            }
        }
        for (name, wanted) in &config.required_claims {
            if !claims.contains(name) {
                return Err(format!("required claim {name} not present in ID token"));
            }
            let got = text(claims, name).map_err(|why| format!("parse claim {name}: {why}"))?;
            if got != wanted {
                return Err(format!("required claim {name} value does not match. Got = {got}, want = {wanted}"));
            }
        }
        let holds = |rule: &Rule| rule.expression.evaluate(claims).map(|value| value.as_bool() == Some(true));
        let checked = check(&config.claim_rules, holds);
        checked.map_err(|why| format!("error evaluating claim validation expression: {why}"))?;
        let user = Claims { name, uid: uid.filter(|uid| !uid.is_empty()), groups, extra };
        let checked = check(&config.user_rules, |rule| rule.expression.holds_for(&user));
        checked.map_err(|why| format!("error evaluating user info validation rule: {why}"))?;
        Ok(user)
    }

    fn username(&self, claims: &Object) -> Result<String, String> {
        match &self.config.username {
            Mapping::Claim { name, prefix } => {
                let username = text(claims, name);
                let username = username.map_err(|why| format!("parse username claims {}: {why}", quoted(name)))?;
                match claims.get("email_verified").filter(|_| name == "email") {
                    None | Some(Value::Bool(true)) => Ok(format!("{prefix}{username}")),
                    Some(Value::Bool(false) | Value::Null) => Err("email not verified".to_owned()),
                    Some(odd) => Err(format!("parse 'email_verified' claim: {}", mismatch(odd, "bool"))),
                }
            }
            Mapping::Expression(expression) => {
                let value = expression.evaluate(claims);
                let value =
                    value.map_err(|problem| format!("error evaluating username claim expression: {problem}"))?;
                match value.as_str() {
                    None => Err("error evaluating username claim expression: username claim expression must return a \
                                 string"
                        .to_owned()),
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
            Ok(false) => {
                return Err(format!("validation expression '{}' failed: {}", rule.expression.text, rule.message));
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

/// A claim as a text (upstream: `unmarshalClaim`).
fn text<'a>(claims: &'a Object, name: &str) -> Result<&'a str, String> {
    match claims.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Null) => Ok(""),
        Some(odd) => Err(mismatch(odd, "string")),
        None => Err("claim not present".to_owned()),
    }
}

/// That something is of another type than it has to be, in the words of Go's decoder.
fn mismatch(found: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", found.type_name())
}
