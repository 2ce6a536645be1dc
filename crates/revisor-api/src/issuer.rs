//! What whoever wants to check tokens of service accounts by themselves has to know: who issues them, and the keys.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use revisor_auth::ServiceAccounts;
use revisor_object::Status;

use crate::representation::Representation;
use crate::{Body, answer, negotiate};

/// Where both are found.
pub(crate) const PATHS: [&str; 2] = [CONFIGURATION, KEYS];

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

/// The answer, if this is what the path asks for.
pub(crate) fn answer<B>(
    accounts: &ServiceAccounts,
    request: &Request<B>,
    representation: &Representation,
) -> Option<Response<Body>> {
    // As in the original, with a slash at its end or without.
    let path = request.uri().path();
    let (content_type, document) = match path.strip_suffix('/').unwrap_or(path) {
        CONFIGURATION => ("application/json", accounts.discovery()?),
        KEYS if accounts.is_published() => ("application/jwk-set+json", accounts.json_web_keys()),
        _ => return None,
    };
    if request.method() != Method::GET {
        return Some(representation.status(&Status::method_not_allowed()));
    }
    if !negotiate::passes_route(request.headers(), &[content_type]) {
        return Some(representation.status(&negotiate::route_refusal(&[content_type])));
    }
    let mut response = answer::json(StatusCode::OK, document.to_string());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(age) = HeaderValue::try_from(format!("public, max-age={}", accounts.keys_max_age())) {
        headers.insert(CACHE_CONTROL, age);
    }
    Some(response)
}
