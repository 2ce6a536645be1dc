//! Tokens as the original writes them: `{"v":"meta.k8s.io/v1","rv":N,"start":"KEY\u0000"}` in base64, sealed by nobody
//! (upstream: `EncodeContinue` and `DecodeContinue`).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use revisor_version::Revision;

use super::{ContinueToken, ContinueTokenError, ListScope};
use crate::{Object, Value, json_problem, parse_json};

/// As Go decodes it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

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

/// The bytes of a text, or where Go's decoder finds that there are none: it minds neither line ends nor bits that are left
/// over.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, ContinueTokenError> {
    let illegal = |at: usize| ContinueTokenError::Malformed(format!("illegal base64 data at input byte {at}"));
    let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    if let Some(at) = text.bytes().position(|byte| !is_of_base64(byte) && !matches!(byte, b'\n' | b'\r')) {
        return Err(illegal(at));
    }
    LENIENT.decode(&compact).map_err(|_| illegal(text.len() / 4 * 4))
}

/// The token of a text. Which list it was made for is not in it, so it is for the one that is asked for.
pub(super) fn read(text: &str, scope: ListScope) -> Result<ContinueToken, ContinueTokenError> {
    let bytes = decode(text)?;
    let malformed = ContinueTokenError::Malformed;
    let parsed = parse_json(&bytes);
    let parsed = parsed.map_err(|error| malformed(json_problem(&bytes).unwrap_or_else(|| error.to_string())))?.value;
    let token: &Object = parsed.as_object().ok_or_else(|| {
        let found = parsed.type_name();
        malformed(format!("json: cannot unmarshal {found} into Go value of type storage.continueToken"))
    })?;
    let version = token.str("v").unwrap_or_default();
    if version != VERSION {
        return Err(ContinueTokenError::Format(version.to_owned()));
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
        _ => Err(malformed(start.to_owned())),
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
        let malformed = |why: &str| ContinueTokenError::Malformed(why.to_owned());
        let open =
            |text: &str| TokenSealer::open_to_all().open(&URL_SAFE_NO_PAD.encode(text), ListScope::new("pods", None));
        for (text, want) in [
            ("", malformed("unexpected end of JSON input")),
            ("x", malformed("invalid character 'x' looking for beginning of value")),
            ("[]", malformed("json: cannot unmarshal array into Go value of type storage.continueToken")),
            (r#"{"v":"v2","rv":1,"start":"a\u0000"}"#, ContinueTokenError::Format("v2".to_owned())),
            (r#"{"v":"meta.k8s.io/v1","start":"a\u0000"}"#, ContinueTokenError::Revision),
            (r#"{"v":"meta.k8s.io/v1","rv":1}"#, ContinueTokenError::NoKey),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets\u0000"}"#, malformed("../secrets\0")),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a"}"#, malformed("a")),
        ] {
            assert_eq!(open(text), Err(want), "{text}");
        }
    }
}
