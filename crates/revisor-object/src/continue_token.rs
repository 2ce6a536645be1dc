//! [`ContinueToken`]: where a paged list goes on, in a form that a client can carry but not change.
//!
//! A token is the server's own note to itself. It holds a key of the store and a revision, so a client that could
//! write its own would read what the list it may see does not contain. Therefore each token is sealed with a secret of
//! the server ([`TokenSealer`]) and bound to the list that it came from ([`ListScope`]).
//!
//! ```text
//! base64url( version 1 │ flags 1 │ scope 16 │ revision 0 or 8 │ remaining 0 or 8 │ key … │ seal 16 )
//! ```
//!
//! Where the secret comes from is not decided here: servers that share a store must share it, so that a list begun
//! with one of them goes on with another. Where the original's servers share it too, tokens are theirs, and open
//! ([`plain`]).

mod plain;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use revisor_version::Revision;
use sha2::{Digest, Sha256};

/// The longest token that is looked at, in characters. No longer one fits into the URL of a request.
pub const MAX_CONTINUE_TOKEN_BYTES: usize = 64 * 1024;

const FORMAT: u8 = 1;
const HAS_REVISION: u8 = 1;
const HAS_REMAINING: u8 = 2;
const SCOPE_BYTES: usize = 16;
const SEAL_BYTES: usize = 16;

/// Where a paged list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The snapshot that all pages come from, or `None` to go on with the newest state: what a client is offered when
    /// its snapshot is gone.
    pub revision: Option<Revision>,
    /// The last key of the page before, relative to the prefix of the list.
    pub start_after: String,
    /// How many objects follow, if the list counts them.
    pub remaining: Option<u64>,
    /// The list that it belongs to.
    pub scope: ListScope,
}

/// Which list a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListScope([u8; SCOPE_BYTES]);

impl ListScope {
    /// The list of a resource, in one namespace or in all.
    ///
    /// `resource` is any text that names it without ambiguity, such as `deployments.apps`.
    pub fn new(resource: &str, namespace: Option<&str>) -> ListScope {
        let mut hash = Sha256::new();
        hash.update((resource.len() as u64).to_be_bytes());
        hash.update(resource);
        hash.update([u8::from(namespace.is_some())]);
        hash.update(namespace.unwrap_or_default());
        let hash = hash.finalize();
        let mut scope = [0; SCOPE_BYTES];
        scope.copy_from_slice(&hash[..SCOPE_BYTES]);
        ListScope(scope)
    }
}

/// Turns tokens into text and back.
///
/// ```
/// use revisor_object::{ContinueToken, ListScope, TokenSealer};
/// use revisor_version::Revision;
///
/// let sealer = TokenSealer::new([7; 32]);
/// let scope = ListScope::new("pods", Some("default"));
/// let token = ContinueToken { revision: Revision::new(9), start_after: "web".into(), remaining: Some(3), scope };
/// let text = sealer.seal(&token);
/// assert_eq!(sealer.open(&text, scope), Ok(token));
/// assert!(sealer.open(&text, ListScope::new("secrets", Some("default"))).is_err());
/// ```
#[derive(Clone)]
pub struct TokenSealer {
    /// `None` for tokens that are not sealed.
    mac: Option<Hmac<Sha256>>,
}

impl fmt::Debug for TokenSealer {
    /// Says nothing of the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSealer").finish_non_exhaustive()
    }
}

impl TokenSealer {
    /// A sealer with this secret.
    pub fn new(key: [u8; 32]) -> TokenSealer {
        TokenSealer { mac: Some(Hmac::new_from_slice(&key).expect("HMAC takes keys of any length")) }
    }

    /// One that seals nothing: tokens are those of the original, which all servers can read and write. Whoever uses it
    /// must look for the key of a token only within the list that is asked for.
    pub fn open_to_all() -> TokenSealer {
        TokenSealer { mac: None }
    }

    /// The text of a token.
    pub fn seal(&self, token: &ContinueToken) -> String {
        let Some(mac) = &self.mac else { return plain::write(token) };
        let mut bytes = Vec::with_capacity(2 + SCOPE_BYTES + 16 + token.start_after.len() + SEAL_BYTES);
        let flags = if token.revision.is_some() { HAS_REVISION } else { 0 }
            | if token.remaining.is_some() { HAS_REMAINING } else { 0 };
        bytes.extend([FORMAT, flags]);
        bytes.extend(token.scope.0);
        bytes.extend(token.revision.iter().flat_map(|revision| revision.get().to_be_bytes()));
        bytes.extend(token.remaining.iter().flat_map(|remaining| remaining.to_be_bytes()));
        bytes.extend(token.start_after.as_bytes());
        let mut mac = mac.clone();
        mac.update(&bytes);
        bytes.extend(&mac.finalize().into_bytes()[..SEAL_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The token of a text that this sealer made for this list.
    ///
    /// # Errors
    ///
    /// Anything else. Every message says that the continue key is not valid.
    pub fn open(&self, text: &str, scope: ListScope) -> Result<ContinueToken, ContinueTokenError> {
        if text.len() > MAX_CONTINUE_TOKEN_BYTES {
            return Err(ContinueTokenError::TooLong);
        }
        let Some(mac) = &self.mac else { return plain::read(text, scope) };
        let bytes = plain::decode(text)?;
        if bytes.first() != Some(&FORMAT) {
            // None of this server, so it is told what the original says of it.
            return Err(plain::read(text, scope).err().unwrap_or(ContinueTokenError::Seal));
        }
        let (sealed, seal) = bytes.split_last_chunk::<SEAL_BYTES>().ok_or(ContinueTokenError::Seal)?;
        let mut mac = mac.clone();
        mac.update(sealed);
        // Compares in constant time, so that a forger learns nothing from how long a refusal takes.
        mac.verify_truncated_left(seal).map_err(|_| ContinueTokenError::Seal)?;

        let token = read(sealed).ok_or(ContinueTokenError::Seal)?;
        if token.scope == scope { Ok(token) } else { Err(ContinueTokenError::Scope) }
    }
}

fn read(bytes: &[u8]) -> Option<ContinueToken> {
    let (&[_, flags], rest) = bytes.split_first_chunk()?;
    let (scope, mut rest) = rest.split_first_chunk()?;
    let mut number = |flag| {
        if flags & flag == 0 {
            return Some(None);
        }
        let (number, after) = rest.split_first_chunk()?;
        rest = after;
        Some(Some(u64::from_be_bytes(*number)))
    };
    let revision = match number(HAS_REVISION)? {
        Some(number) => Some(Revision::new(number)?),
        None => None,
    };
    let remaining = number(HAS_REMAINING)?;
    let start_after = std::str::from_utf8(rest).ok()?.to_owned();
    Some(ContinueToken { revision, start_after, remaining, scope: ListScope(*scope) })
}

/// Why a text is not a token for a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContinueTokenError {
    /// More than [`MAX_CONTINUE_TOKEN_BYTES`].
    #[error("continue key is not valid: it is too long")]
    TooLong,
    /// Not a token of any server like this, with the reason in the words of Go's decoders.
    #[error("continue key is not valid: {0}")]
    Malformed(String),
    /// A token of another version, which it names.
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    Format(String),
    /// It names no state of the past, and is not for the newest either.
    #[error("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    Revision,
    /// It names no key.
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    NoKey,
    /// Made by another server, or changed.
    #[error("continue key is not valid: it was not issued by this server")]
    Seal,
    /// Made for another list.
    #[error("continue key is not valid: it belongs to another list")]
    Scope,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token() -> ContinueToken {
        ContinueToken {
            revision: Revision::new(10245),
            start_after: "default/web".to_owned(),
            remaining: Some(500),
            scope: ListScope::new("pods", None),
        }
    }

    #[test]
    fn the_format_stays() {
        // Servers of different versions may share a store: a change of this text needs a new format number.
        let text = TokenSealer::new([7; 32]).seal(&token());
        assert_eq!(text, "AQPwOGUWh1vwsyi108Uee2VUAAAAAAAAKAUAAAAAAAAB9GRlZmF1bHQvd2Vipu4-s3_lQ_qrLZVo-AqrXA");
    }

    #[test]
    fn scopes_differ() {
        let scopes = [
            ListScope::new("pods", None),
            ListScope::new("pods", Some("")),
            ListScope::new("pods", Some("default")),
            ListScope::new("podsdefault", None),
            ListScope::new("podsdef", Some("ault")),
            ListScope::new("secrets", Some("default")),
        ];
        for (index, scope) in scopes.iter().enumerate() {
            assert!(!scopes[index + 1..].contains(scope), "scope {index} is unique");
        }
    }

    #[test]
    fn refuses_what_it_did_not_make_for_this_list() {
        let sealer = TokenSealer::new([7; 32]);
        let scope = token().scope;
        let good = sealer.seal(&token());
        let unknown = URL_SAFE_NO_PAD.encode([2; 60]);
        let original = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":2,"start":"default/web\u0000"}"#);
        let newer = URL_SAFE_NO_PAD.encode(r#"{"v":"v2"}"#);
        let long = "A".repeat(MAX_CONTINUE_TOKEN_BYTES + 1);
        let malformed = |why: &str| ContinueTokenError::Malformed(why.to_owned());
        for (name, text, want) in [
            ("empty", "", malformed("unexpected end of JSON input")),
            ("one character", "x", malformed("illegal base64 data at input byte 0")),
            ("not base64", "no token!", malformed("illegal base64 data at input byte 2")),
            ("padded", "AAA=", malformed("illegal base64 data at input byte 3")),
            ("cut", &good[..good.len() - 4], ContinueTokenError::Seal),
            ("too short for a seal", "AQID", ContinueTokenError::Seal),
            ("no JSON", &unknown, malformed("invalid character '\\x02' looking for beginning of value")),
            ("of another version", &newer, ContinueTokenError::Format("v2".to_owned())),
            ("the original's", &original, ContinueTokenError::Seal),
            ("too long", &long, ContinueTokenError::TooLong),
        ] {
            let error = sealer.open(text, scope).expect_err(name);
            assert_eq!(error, want, "{name}");
            assert!(error.to_string().starts_with("continue key is not valid"), "{name}");
        }
        assert_eq!(TokenSealer::new([8; 32]).open(&good, scope), Err(ContinueTokenError::Seal));
        assert_eq!(sealer.open(&good, ListScope::new("pods", Some("a"))), Err(ContinueTokenError::Scope));
        assert!(!format!("{sealer:?}").contains('7'));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let sealer = TokenSealer::new([7; 32]);
        let bytes = URL_SAFE_NO_PAD.decode(sealer.seal(&token())).expect("base64");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(sealer.open(&URL_SAFE_NO_PAD.encode(changed), token().scope).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn tokens_survive(
            revision in any::<u64>(), start_after in any::<String>(), remaining in any::<Option<u64>>(),
            namespace in any::<Option<String>>(), key in any::<[u8; 32]>(),
        ) {
            let scope = ListScope::new("pods", namespace.as_deref());
            let token = ContinueToken { revision: Revision::new(revision), start_after, remaining, scope };
            let sealer = TokenSealer::new(key);
            prop_assert_eq!(sealer.open(&sealer.seal(&token), scope), Ok(token));
        }

        #[test]
        fn nothing_else_opens(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let sealer = TokenSealer::new([7; 32]);
            prop_assert!(sealer.open(&text, token().scope).is_err());
            prop_assert!(sealer.open(&URL_SAFE_NO_PAD.encode(&bytes), token().scope).is_err());
            // What is inside of a seal is read without trust as well.
            read(&bytes);
        }
    }
}
