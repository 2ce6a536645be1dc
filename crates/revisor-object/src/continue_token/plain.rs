//! Tokens as the original writes them: `{"v":"meta.k8s.io/v1","rv":N,"start":"KEY\u0000"}` in base64, sealed by nobody
//! (upstream: `EncodeContinue` and `DecodeContinue`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use revisor_version::Revision;

use super::{ContinueToken, ContinueTokenError, ListScope};
use crate::{Object, Value, parse_json};

const VERSION: &str = "meta.k8s.io/v1";

/// Stands for the newest state, whichever that is.
const NEWEST: i64 = -1;

/// What follows a key in the order of keys.
const NEXT: char = '\0';

pub(super) fn write(token: &ContinueToken) -> String {
    let revision = token.revision.map_or(NEWEST, |revision| i64::try_from(revision.get()).unwrap_or(i64::MAX));
    let start = Value::from(format!("{}{NEXT}", token.start_after)).to_json();
    URL_SAFE_NO_PAD.encode(format!(r#"{{"v":"{VERSION}","rv":{revision},"start":{start}}}"#))
}

/// The token of a text. Which list it was made for is not in it, so it is for the one that is asked for.
pub(super) fn read(text: &str, scope: ListScope) -> Result<ContinueToken, ContinueTokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ContinueTokenError::Malformed)?;
    let parsed = parse_json(&bytes).map_err(|_| ContinueTokenError::Malformed)?.value;
    let token: &Object = parsed.as_object().ok_or(ContinueTokenError::Malformed)?;
    if token.str("v") != Some(VERSION) {
        return Err(ContinueTokenError::Format);
    }
    let revision = match token.get("rv").and_then(Value::as_i64).unwrap_or_default() {
        0 => return Err(ContinueTokenError::Revision),
        newest if newest < 0 => None,
        number => u64::try_from(number).ok().and_then(Revision::new),
    };
    let start = token.str("start").filter(|start| !start.is_empty()).ok_or(ContinueTokenError::NoKey)?;
    // The original writes one before it, or none.
    let start = start.strip_prefix('/').unwrap_or(start);
    let is_clean = start.split('/').all(|part| !matches!(part.trim_end_matches(NEXT), "" | "." | ".."));
    match start.strip_suffix(NEXT) {
        Some(start_after) if is_clean => {
            Ok(ContinueToken { revision, start_after: start_after.to_owned(), remaining: None, scope })
        }
        _ => Err(ContinueTokenError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenSealer;

    #[test]
    fn tokens_are_those_of_the_original() {
        let scope = ListScope::new("pods", None);
        let token = |revision| ContinueToken {
            revision: Revision::new(revision),
            start_after: "default/web".to_owned(),
            remaining: None,
            scope,
        };
        let sealer = TokenSealer::open_to_all();
        for (token, text) in [
            (token(7), r#"{"v":"meta.k8s.io/v1","rv":7,"start":"default/web\u0000"}"#),
            (token(0), r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"default/web\u0000"}"#),
        ] {
            assert_eq!(sealer.seal(&token), URL_SAFE_NO_PAD.encode(text));
            assert_eq!(sealer.open(&URL_SAFE_NO_PAD.encode(text), scope), Ok(token));
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let open =
            |text: &str| TokenSealer::open_to_all().open(&URL_SAFE_NO_PAD.encode(text), ListScope::new("pods", None));
        for (text, want) in [
            ("", ContinueTokenError::Malformed),
            ("[]", ContinueTokenError::Malformed),
            (r#"{"v":"v2","rv":1,"start":"a\u0000"}"#, ContinueTokenError::Format),
            (r#"{"v":"meta.k8s.io/v1","start":"a\u0000"}"#, ContinueTokenError::Revision),
            (r#"{"v":"meta.k8s.io/v1","rv":1}"#, ContinueTokenError::NoKey),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets\u0000"}"#, ContinueTokenError::Malformed),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a"}"#, ContinueTokenError::Malformed),
        ] {
            assert_eq!(open(text), Err(want), "{text}");
        }
    }
}
