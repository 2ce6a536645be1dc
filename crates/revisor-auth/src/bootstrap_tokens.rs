//! [`BootstrapTokens`]: tokens by which new nodes ask for their first certificate. Each stands in a secret of
//! `kube-system`. The rules are those of the original (`plugin/pkg/auth/authenticator/token/bootstrap`).

use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{Object, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::authenticator::in_common;
use crate::token_authenticator::{BoxFuture, TokenAuthenticator};
use crate::{Claims, Identity, TokenHolder};

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers";

/// Knows the secrets that there are.
pub trait SecretLookup: Send + Sync {
    /// The secret with this name, if there is one.
    fn secret(&self, namespace: &str, name: &str) -> Option<Object>;
}

/// Knows whose bootstrap tokens are.
pub struct BootstrapTokens {
    secrets: Arc<dyn SecretLookup>,
    /// For whom they are good.
    audiences: Vec<String>,
}

impl BootstrapTokens {
    /// Tokens in these secrets, good for this server, which is one of `audiences`.
    pub fn new(secrets: Arc<dyn SecretLookup>, audiences: Vec<String>) -> BootstrapTokens {
        BootstrapTokens { secrets, audiences }
    }

    fn holder(&self, token: &str, now: SystemTime) -> Option<Claims> {
        let (id, secret) = split(token)?;
        let found = self.secrets.secret(NAMESPACE, &format!("bootstrap-token-{id}"))?;
        let is_deleted = found.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        if is_deleted || found.str("type") != Some(TYPE) {
            return None;
        }
        let data = |name: &str| {
            let text = found.at(&["data", name]).and_then(Value::as_str)?;
            String::from_utf8(STANDARD.decode(text).ok()?).ok()
        };
        let is_secret = verify_slices_are_equal(data("token-secret")?.as_bytes(), secret.as_bytes()).is_ok();
        if !is_secret || data("token-id").as_deref() != Some(id) {
            return None;
        }
        if let Some(expiration) = data("expiration").filter(|text| !text.is_empty()) {
            // What is no time is over.
            let expires = OffsetDateTime::parse(&expiration, &Rfc3339).ok()?;
            if OffsetDateTime::from(now) > expires {
                return None;
            }
        }
        if data("usage-bootstrap-authentication").as_deref() != Some("true") {
            return None;
        }
        let mut groups = vec![GROUP.to_owned()];
        for group in data("auth-extra-groups").unwrap_or_default().split(',').filter(|group| !group.is_empty()) {
            if !is_bootstrap_group(group) {
                return None;
            }
            groups.push(group.to_owned());
        }
        groups.sort();
        groups.dedup();
        Some(Claims { name: format!("system:bootstrap:{id}"), groups, ..Claims::default() })
    }
}

impl TokenAuthenticator for BootstrapTokens {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenHolder>, String>> {
        Box::pin(async move {
            let Some(audiences) = in_common(audiences, &self.audiences) else { return Ok(None) };
            let holder = self.holder(token, now);
            Ok(holder.map(|user| TokenHolder { identity: Identity::authenticated(user), audiences }))
        })
    }
}

/// The two parts of a token that can be one: six and sixteen small letters or digits.
fn split(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_part = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (is_part(id, 6) && is_part(secret, 16)).then_some((id, secret))
}

fn is_bootstrap_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else { return false };
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=256).contains(&rest.len())
        && rest.bytes().all(|byte| is_word(byte) || byte == b':' || byte == b'-')
        && rest.bytes().last().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Secrets(Object);

    impl SecretLookup for Secrets {
        fn secret(&self, namespace: &str, name: &str) -> Option<Object> {
            (namespace == "kube-system" && name == "bootstrap-token-abcdef").then(|| self.0.clone())
        }
    }

    fn secret(change: &[(&str, &str)]) -> Object {
        let mut data: Vec<(&str, &str)> = vec![
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("auth-extra-groups", "system:bootstrappers:kubeadm"),
        ];
        for (name, value) in change {
            data.retain(|(known, _)| known != name);
            data.push((name, value));
        }
        let data: Object = data.into_iter().map(|(name, value)| (name, Value::from(STANDARD.encode(value)))).collect();
        [("type", Value::from(TYPE)), ("data", data.into())].into_iter().collect()
    }

    #[test]
    fn a_token_is_good_while_its_secret_says_so() {
        const GOOD: &str = "abcdef.0123456789abcdef";
        for (name, token, change, want) in [
            ("good", GOOD, &[][..], true),
            ("another secret", "abcdef.0123456789abcdeF", &[], false),
            ("a wrong secret", "abcdef.fedcba9876543210", &[], false),
            ("another id", "abcdeg.0123456789abcdef", &[], false),
            ("for signing only", GOOD, &[("usage-bootstrap-authentication", "false")], false),
            ("not expired", GOOD, &[("expiration", "2030-01-01T00:00:00Z")], true),
            ("expired", GOOD, &[("expiration", "1970-01-01T00:00:00Z")], false),
            ("no time", GOOD, &[("expiration", "soon")], false),
            ("a group of others", GOOD, &[("auth-extra-groups", "system:masters")], false),
        ] {
            let tokens = BootstrapTokens::new(Arc::new(Secrets(secret(change))), Vec::new());
            let holder = tokens.holder(token, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
            assert_eq!(holder.is_some(), want, "{name}");
            if let Some(holder) = holder {
                assert_eq!(holder.name, "system:bootstrap:abcdef");
                assert_eq!(holder.groups, ["system:bootstrappers", "system:bootstrappers:kubeadm"]);
            }
        }
    }
}
