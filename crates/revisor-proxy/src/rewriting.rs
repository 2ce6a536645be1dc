//! [`Rewriting`]: names of places behind a proxy, made to lead through it (upstream: `proxy.Transport`).

use http::header::{HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Uri};

const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What is before a proxy and what is behind it.
#[derive(Debug, Clone)]
pub struct Rewriting {
    /// What paths behind the proxy have before them on this side.
    prefix: String,
    /// The scheme and the host that clients use; empty where that is their business.
    scheme: String,
    host: String,
    /// The host behind the proxy.
    behind: String,
    /// The host that the client named.
    named: String,
}

impl Rewriting {
    /// Of a request for `path`, which is for `behind_path` at the host `behind`; `named` is the host that its client named.
    pub fn new(path: &str, behind_path: &str, behind: &str, named: &str) -> Rewriting {
        let suffix = match path.ends_with('/') && !behind_path.ends_with('/') {
            true => format!("{behind_path}/"),
            false => behind_path.to_owned(),
        };
        let prefix = path.strip_suffix(suffix.as_str()).unwrap_or(path).to_owned();
        Rewriting {
            prefix,
            scheme: String::new(),
            host: String::new(),
            behind: behind.to_owned(),
            named: named.to_owned(),
        }
    }

    /// The same, where clients are told this scheme and host.
    #[must_use]
    pub fn told_as(self, scheme: &str, host: &str) -> Rewriting {
        Rewriting { scheme: scheme.to_owned(), host: host.to_owned(), ..self }
    }

    /// Tells those behind the proxy what was asked for before it.
    pub fn tell(&self, headers: &mut HeaderMap, behind_path: &str) {
        for (name, text) in [
            (FORWARDED_URI, join(&self.prefix, behind_path)),
            (FORWARDED_HOST, self.host.clone()),
            (FORWARDED_PROTO, self.scheme.clone()),
        ] {
            if let Ok(value) = HeaderValue::try_from(text)
                && !value.is_empty()
            {
                headers.insert(name, value);
            }
        }
    }

    /// Lets the `Location` of an answer lead through the proxy. Answers why if it is none.
    pub fn rewrite_location(&self, headers: &mut HeaderMap) -> Result<(), String> {
        let Some(location) = headers.get(LOCATION) else { return Ok(()) };
        let text = location.to_str().map_err(|error| error.to_string())?;
        let rewritten = self.rewritten(text)?;
        let value = HeaderValue::try_from(rewritten).map_err(|error| error.to_string())?;
        headers.insert(LOCATION, value);
        Ok(())
    }

    /// A URL that leads through the proxy, if it is one behind it.
    fn rewritten(&self, text: &str) -> Result<String, String> {
        let is_relative = !text.starts_with('/') && !text.contains("://");
        if text.is_empty() || is_relative {
            return Ok(text.to_owned());
        }
        // `//host/path` has a host and no scheme.
        let (scheme, rest) = match text.strip_prefix("//") {
            Some(_) => ("", text),
            None => text.split_once(':').filter(|(_, rest)| rest.starts_with("//")).unwrap_or(("", text)),
        };
        let (host, rest) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
            None => ("", rest),
        };
        text.parse::<Uri>().map_err(|error| format!("parse {text:?}: {error}"))?;
        let (path, more) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let is_elsewhere = !host.is_empty() && host != self.behind && host != self.named;
        if is_elsewhere || !path.starts_with('/') {
            return Ok(text.to_owned());
        }
        let keeps_host = host == self.named && self.scheme.is_empty() && self.host.is_empty();
        let (scheme, host) = if keeps_host { (scheme, host) } else { (self.scheme.as_str(), self.host.as_str()) };
        let path = if path.starts_with(&self.prefix) { path.to_owned() } else { join(&self.prefix, path) };
        let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}:") };
        let host = if host.is_empty() { String::new() } else { format!("//{host}") };
        Ok(format!("{scheme}{host}{path}{more}"))
    }
}

/// Two paths as one, with one slash between them, and the last one that there was.
fn join(first: &str, second: &str) -> String {
    match (first.trim_end_matches('/'), second.trim_start_matches('/')) {
        ("", "") => "/".to_owned(),
        ("", second) => format!("/{second}"),
        (first, "") if second.is_empty() => first.to_owned(),
        (first, second) => format!("{first}/{second}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_behind_a_proxy_lead_through_it() {
        let path = "/api/v1/namespaces/d/services/s/proxy/a/";
        let rewriting = Rewriting::new(path, "/a/", "10.0.0.1:80", "api.example:6443");
        for (location, want) in [
            ("/b", "/api/v1/namespaces/d/services/s/proxy/b"),
            ("/b/?x=/y", "/api/v1/namespaces/d/services/s/proxy/b/?x=/y"),
            ("b", "b"),
            ("", ""),
            ("http://10.0.0.1:80/b", "/api/v1/namespaces/d/services/s/proxy/b"),
            ("//10.0.0.1:80/b", "/api/v1/namespaces/d/services/s/proxy/b"),
            ("https://api.example:6443/b", "https://api.example:6443/api/v1/namespaces/d/services/s/proxy/b"),
            ("https://elsewhere.example/b", "https://elsewhere.example/b"),
            ("/api/v1/namespaces/d/services/s/proxy/c", "/api/v1/namespaces/d/services/s/proxy/c"),
        ] {
            assert_eq!(rewriting.rewritten(location), Ok(want.to_owned()), "{location}");
        }
        assert!(rewriting.rewritten("http://a b/").is_err());
        let mut headers = HeaderMap::new();
        rewriting.tell(&mut headers, "/a/");
        assert_eq!(headers.get("x-forwarded-uri").and_then(|value| value.to_str().ok()), Some(path));
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn what_is_served_at_the_same_path_is_told_so() {
        let rewriting =
            Rewriting::new("/apis/g/v1", "/apis/g/v1", "10.0.0.1:443", "api").told_as("https", "10.0.0.1:443");
        let mut headers = HeaderMap::new();
        rewriting.tell(&mut headers, "/apis/g/v1");
        let shown = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        assert_eq!(shown("x-forwarded-uri").as_deref(), Some("/apis/g/v1"));
        assert_eq!(shown("x-forwarded-host").as_deref(), Some("10.0.0.1:443"));
        assert_eq!(shown("x-forwarded-proto").as_deref(), Some("https"));
        assert_eq!(rewriting.rewritten("/x"), Ok("https://10.0.0.1:443/x".to_owned()));
    }
}
