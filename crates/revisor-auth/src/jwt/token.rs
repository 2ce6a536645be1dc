//! Tokens in their compact form, and whether one that somebody else signed is good at all. What it says is not looked at
//! here.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use revisor_object::{Object, Value, parse_json};

use super::key_set::{KeySet, Signed};
use super::web_key::SigningAlgorithm;

/// How much clocks may differ where a token says from when on it is good.
const LEEWAY: u64 = 5 * 60;

/// The longest token that is looked at.
const MOST_TOKEN_BYTES: usize = 64 << 10;

/// What a token must be to be believed, beside being signed.
#[derive(Clone, Copy)]
pub(super) struct Trusted<'a> {
    /// For one of these.
    pub(super) audiences: &'a [String],
    /// Signed in one of these ways.
    pub(super) algorithms: &'a [SigningAlgorithm],
}

/// Whether a token is one for us that is in its time, and that one of these keys signed.
pub(super) async fn verify(
    parts: &Parts<'_>,
    claims: &Object,
    keys: &KeySet,
    trusted: Trusted<'_>,
    now: SystemTime,
) -> Result<(), String> {
    let named = match claims.get("aud") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let wanted = trusted.audiences;
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
    let algorithm = SigningAlgorithm::named(name).filter(|algorithm| trusted.algorithms.contains(algorithm));
    let algorithm = algorithm.ok_or_else(|| format!("id token signed with unsupported algorithm {name:?}"))?;
    if header.contains("crit") {
        return Err("the header asks for what is not understood".to_owned());
    }
    let signature = URL_SAFE_NO_PAD.decode(parts.signature).map_err(|_| "malformed jwt signature")?;
    let key_id = header.str("kid").unwrap_or_default();
    let message = parts.message.as_bytes();
    keys.verify(&Signed { algorithm, key_id, message, signature: &signature }).await
}

/// A time in seconds, which some write with a fraction.
fn seconds(value: &Value) -> Option<u64> {
    match value.as_i64() {
        Some(whole) => u64::try_from(whole).ok(),
        None => value.to_json().parse::<f64>().ok().filter(|time| *time >= 0.0).map(|time| time as u64),
    }
}

/// The parts of a token in its compact form.
pub(super) struct Parts<'a> {
    /// What is signed: the first two.
    message: &'a str,
    signature: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn split(token: &'a str) -> Option<Parts<'a>> {
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

    pub(super) fn header(&self) -> Option<Object> {
        Parts::decoded(self.message.split_once('.')?.0)
    }

    pub(super) fn claims(&self) -> Option<Object> {
        Parts::decoded(self.message.split_once('.')?.1)
    }
}
