//! [`CrossOrigin`]: pages of which other sites may ask this server (`--cors-allowed-origins`), as `WithCORS` of the original
//! answers them.

use std::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, ORIGIN,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use regex::Regex;

use crate::Body;

/// A pattern that origins match.
#[derive(Debug, Clone)]
pub struct AllowedOrigin(Regex);

/// Why a text is no such pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnOrigin {
    /// It is empty.
    #[error("empty value in --cors-allowed-origins")]
    Empty,
    /// It is no regular expression.
    #[error("--cors-allowed-origins has an invalid regular expression: {0}")]
    Syntax(String),
    /// It would match origins that only contain the name of the host.
    #[error(
        "--cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of host \
         in the origin header"
    )]
    Unpinned,
}

impl FromStr for AllowedOrigin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<AllowedOrigin, NotAnOrigin> {
        if text.is_empty() {
            return Err(NotAnOrigin::Empty);
        }
        let pattern = Regex::new(text).map_err(|error| NotAnOrigin::Syntax(error.to_string()))?;
        let has_one_of = |marks: [&str; 2]| marks.iter().any(|mark| text.contains(mark));
        if !has_one_of(["^", "//"]) || !has_one_of(["$", ":"]) {
            return Err(NotAnOrigin::Unpinned);
        }
        Ok(AllowedOrigin(pattern))
    }
}

impl PartialEq for AllowedOrigin {
    fn eq(&self, other: &AllowedOrigin) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// The other sites whose pages may ask.
#[derive(Debug, Clone)]
pub struct CrossOrigin(Vec<AllowedOrigin>);

impl CrossOrigin {
    /// Those that match one of these; `None` if there are none.
    pub fn new(allowed: &[AllowedOrigin]) -> Option<CrossOrigin> {
        (!allowed.is_empty()).then(|| CrossOrigin(allowed.to_vec()))
    }

    /// The origin of a request, if it comes from a page that may ask.
    pub(crate) fn origin_of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
        self.0.iter().any(|allowed| allowed.0.is_match(text)).then(|| origin.clone())
    }
}

/// The answer to a browser that asks whether it may ask.
pub(crate) fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Tells the browser that a page of `origin` may have an answer.
pub(crate) fn let_in(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
             If-Modified-Since",
        ),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
        (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_must_pin_the_host() {
        for (text, want) in [
            (r"//example\.com(:|$)", true),
            (r"^https://example\.com(:|$)", true),
            ("^https://example.com$", true),
            ("//example.com:", true),
            ("example.com", false),
            ("^https://example.com", true),
            ("^example.com", false),
            ("//example.com", false),
            ("^(", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<AllowedOrigin>().is_ok(), want, "{text:?}");
        }
    }

    #[test]
    fn origins_are_matched_and_others_are_not_told_anything() {
        let allowed: AllowedOrigin = r"//example\.com(:|$)".parse().expect("a pattern");
        let known = CrossOrigin::new(&[allowed]).expect("there is one");
        for (origin, want) in [
            ("https://example.com", true),
            ("http://example.com:8080", true),
            ("https://example.com.evil.org", false),
            ("https://evil-example.com", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_str(origin).expect("a value"))]);
            assert_eq!(known.origin_of(&headers).is_some(), want, "{origin:?}");
        }
        assert!(known.origin_of(&HeaderMap::new()).is_none());
        assert!(CrossOrigin::new(&[]).is_none());
    }
}
