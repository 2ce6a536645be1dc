//! Tokens in their compact form, and whether one that somebody else signed is good at all. What it says is not looked at
//! here.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use revisor_object::{Object, Value, parse_json};
use time::OffsetDateTime;

use super::key_set::{KeySet, Signed};
use super::web_key::SigningAlgorithm;
use crate::quoted::quoted;

/// How much clocks may differ where a token says from when on it is good.
const LEEWAY: Duration = Duration::from_secs(60);

/// When a token expires that does not say: Go's zero time, in seconds since 1970.
const ZERO_TIME: i64 = -62_135_596_800;

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
    let header = parts.header().ok_or("oidc: malformed jwt")?;
    let name = header.str("alg").unwrap_or_default();
    let algorithm = SigningAlgorithm::named(name).filter(|algorithm| trusted.algorithms.contains(algorithm));
    let algorithm = algorithm.ok_or_else(|| {
        let known = listed(trusted.algorithms.iter().map(|known| known.name()));
        format!("oidc: id token signed with unsupported algorithm, expected {known} got {}", quoted(name))
    })?;
    if header.contains("crit") {
        return Err("failed to verify signature: failed to verify id token signature".to_owned());
    }
    let signature = URL_SAFE_NO_PAD.decode(parts.signature).map_err(|_| "oidc: malformed jwt")?;
    let key_id = header.str("kid").unwrap_or_default();
    let message = parts.message.as_bytes();
    let verified = keys.verify(&Signed { algorithm, key_id, message, signature: &signature }).await;
    verified.map_err(|problem| format!("failed to verify signature: {problem}"))?;
    check_claims(claims, trusted, now)
}

/// Whether a token is in its time, and for us.
fn check_claims(claims: &Object, trusted: Trusted<'_>, now: SystemTime) -> Result<(), String> {
    let now = OffsetDateTime::from(now);
    let time = |name: &str| claims.get(name).and_then(time_of);
    let never = || OffsetDateTime::from_unix_timestamp(ZERO_TIME).ok();
    if let Some(expiry) = time("exp").or_else(never).filter(|expiry| *expiry < now) {
        return Err(format!("oidc: token is expired (Token Expiry: {})", in_go(expiry)));
    }
    if let Some(begin) = time("nbf").filter(|begin| now + LEEWAY < *begin) {
        let (now, begin) = (in_go(now), in_go(begin));
        return Err(format!("oidc: current time {now} before the nbf (not before) time: {begin}"));
    }
    let named = match claims.get("aud") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if trusted.audiences.iter().any(|audience| named.contains(&audience.as_str())) {
        return Ok(());
    }
    let mut wanted: Vec<&str> = trusted.audiences.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    Err(format!("oidc: expected audience in {} got {}", listed(wanted), listed(named)))
}

/// Texts as Go quotes a list of them.
fn listed<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", texts.join(" "))
}

/// A time in seconds, which some write with a fraction.
fn time_of(value: &Value) -> Option<OffsetDateTime> {
    let seconds = match value.as_i64() {
        Some(whole) => whole,
        None => value.to_json().parse::<f64>().ok()? as i64,
    };
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

/// A time as Go prints it.
fn in_go(time: OffsetDateTime) -> String {
    let (date, clock) = (time.date(), time.time());
    let (hour, minute, second) = clock.as_hms();
    let fraction = match clock.nanosecond() {
        0 => String::new(),
        nanos => format!(".{}", format!("{nanos:09}").trim_end_matches('0')),
    };
    format!("{date} {hour:02}:{minute:02}:{second:02}{fraction} +0000 UTC")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_out_of_its_time_or_for_others_is_told_so_as_in_the_original() {
        let seconds = 1_767_323_045;
        let now = OffsetDateTime::from_unix_timestamp(seconds).expect("is a time");
        let audiences = ["b".to_owned(), "a".to_owned()];
        let trusted = Trusted { audiences: &audiences, algorithms: &SigningAlgorithm::ALL };
        for (claims, want) in [
            (format!(r#"{{"aud":"a","exp":{seconds}}}"#), Ok(())),
            (format!(r#"{{"aud":["x","b"],"exp":{seconds}.5,"nbf":{}}}"#, seconds + 60), Ok(())),
            (r#"{"aud":"a"}"#.to_owned(), Err("oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)")),
            (
                format!(r#"{{"aud":"a","exp":{}}}"#, seconds - 1),
                Err("oidc: token is expired (Token Expiry: 2026-01-02 03:04:04 +0000 UTC)"),
            ),
            (
                format!(r#"{{"aud":"a","exp":{seconds},"nbf":{}}}"#, seconds + 61),
                Err(
                    "oidc: current time 2026-01-02 03:04:05 +0000 UTC before the nbf (not before) time: 2026-01-02 03:05:06 \
                     +0000 UTC",
                ),
            ),
            (
                format!(r#"{{"aud":["x","y"],"exp":{seconds}}}"#),
                Err(r#"oidc: expected audience in ["a" "b"] got ["x" "y"]"#),
            ),
            (format!(r#"{{"exp":{seconds}}}"#), Err(r#"oidc: expected audience in ["a" "b"] got []"#)),
        ] {
            let Value::Object(object) = parse_json(claims.as_bytes()).expect("is JSON").value else {
                panic!("{claims}")
            };
            let got = check_claims(&object, trusted, now.into());
            assert_eq!(got.as_ref().map_err(String::as_str), want.as_ref().map_err(|why| *why), "{claims}");
        }
        assert_eq!(in_go(now + Duration::from_millis(12)), "2026-01-02 03:04:05.012 +0000 UTC");
    }
}
