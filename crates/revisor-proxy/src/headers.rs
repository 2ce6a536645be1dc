//! Headers of requests and answers that are passed on.

use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const REMOTE_EXTRA: &str = "x-remote-extra-";

/// What is about one connection and not about the matter (upstream: `hopHeaders` of Go's reverse proxy).
const HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What the names of headers may have beside letters and digits.
const IN_NAMES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// A user, as those are told who believe this server.
#[derive(Debug, Clone, Copy)]
pub struct RemoteUser<'a> {
    /// The name.
    pub name: &'a str,
    /// The uid, if it is known.
    pub uid: Option<&'a str>,
    /// The groups.
    pub groups: &'a [String],
    /// Further facts.
    pub extra: &'a [(String, Vec<String>)],
}

/// Whether a client asks for another protocol (upstream: `httpstream.IsUpgradeRequest`).
pub fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    headers.get_all(CONNECTION).iter().any(|value| value.to_str().is_ok_and(|it| it.to_lowercase().contains("upgrade")))
}

/// Takes away what was for this server alone: who the client is, and whom it acts as. None of that is the business of
/// those to whom the request is passed on, and headers by which this server names users must not be a client's.
pub fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    let own: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-remote-") || name.as_str().starts_with("impersonate-"))
        .cloned()
        .collect();
    for name in own {
        headers.remove(name);
    }
}

/// Names a user (upstream: `transport.SetAuthProxyHeaders`).
pub fn name_user(headers: &mut HeaderMap, user: RemoteUser<'_>) {
    let text = |text: &str| HeaderValue::from_bytes(text.as_bytes()).ok();
    if let Some(name) = text(user.name) {
        headers.insert(REMOTE_USER, name);
    }
    if let Some(uid) = user.uid.filter(|uid| !uid.is_empty()).and_then(text) {
        headers.insert(REMOTE_UID, uid);
    }
    for group in user.groups.iter().filter_map(|group| text(group)) {
        headers.append(REMOTE_GROUP, group);
    }
    for (key, values) in user.extra {
        // Names are one case only, so that one in another is escaped by nobody; the original's are the same there.
        let name = format!("{REMOTE_EXTRA}{}", utf8_percent_encode(&key.to_lowercase(), IN_NAMES));
        let Ok(name) = HeaderName::try_from(name) else { continue };
        for value in values.iter().filter_map(|value| text(value)) {
            headers.append(name.clone(), value);
        }
    }
}

/// Leaves what is about the matter, and notes whom it comes from. A request for an upgrade keeps what it asks for.
pub fn prepare_request(headers: &mut HeaderMap, client: IpAddr, is_upgrade: bool) {
    let takes_trailers = headers
        .get_all(TE)
        .iter()
        .any(|value| value.to_str().is_ok_and(|it| it.split(',').any(|it| it.trim().eq_ignore_ascii_case("trailers"))));
    if !is_upgrade {
        remove_hops(headers);
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
    // Otherwise those who send it would name themselves.
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(""));
    let known: Vec<String> = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .filter_map(|value| value.to_str().ok().map(str::to_owned))
        .chain([client.to_string()])
        .collect();
    if let Ok(chain) = HeaderValue::try_from(known.join(", ")) {
        headers.insert(FORWARDED_FOR, chain);
    }
}

/// Leaves of an answer what is about the matter. Who may read it in a browser is for this server to say.
pub fn prepare_answer(headers: &mut HeaderMap) {
    remove_hops(headers);
    for name in ["credentials", "headers", "methods", "origin"] {
        headers.remove(format!("access-control-allow-{name}"));
    }
}

fn remove_hops(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    for name in named {
        headers.remove(name.as_str());
    }
    for name in HOP {
        headers.remove(name);
    }
}

/// Whether a path without anything behind a proxy is sent to the one with a slash (upstream: `proxyRedirectsforRootPath`).
pub fn redirects_root(method: &Method, path: &str) -> bool {
    path.is_empty() && matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::try_from(*name).expect("a name");
            headers.append(name, HeaderValue::try_from(*value).expect("a value"));
        }
        headers
    }

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("a text"))).collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_is_about_the_connection_stays_here() {
        let mut headers = map(&[
            ("connection", "keep-alive, X-Mine"),
            ("x-mine", "1"),
            ("te", "gzip, trailers"),
            ("keep-alive", "5"),
            ("accept", "a"),
            ("x-forwarded-for", "192.0.2.9"),
        ]);
        prepare_request(&mut headers, [127, 0, 0, 1].into(), false);
        assert_eq!(
            shown(&headers),
            ["accept: a", "te: trailers", "user-agent: ", "x-forwarded-for: 192.0.2.9, 127.0.0.1"]
        );
        let mut upgrade = map(&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1"), ("user-agent", "x")]);
        assert!(asks_for_upgrade(&upgrade));
        prepare_request(&mut upgrade, [127, 0, 0, 1].into(), true);
        assert_eq!(
            shown(&upgrade),
            ["connection: Upgrade", "upgrade: SPDY/3.1", "user-agent: x", "x-forwarded-for: 127.0.0.1"]
        );
        let mut answer = map(&[("transfer-encoding", "chunked"), ("access-control-allow-origin", "*"), ("etag", "e")]);
        prepare_answer(&mut answer);
        assert_eq!(shown(&answer), ["etag: e"]);
    }

    #[test]
    fn users_are_named_by_this_server_alone() {
        let mut headers = map(&[
            ("authorization", "Bearer t"),
            ("x-remote-user", "root"),
            ("x-remote-extra-scopes", "all"),
            ("impersonate-user", "jane"),
        ]);
        remove_credentials(&mut headers);
        assert!(headers.is_empty(), "{headers:?}");
        let groups = ["a".to_owned(), "b".to_owned()];
        let extra = [("example.org/Some %".to_owned(), vec!["v".to_owned()])];
        name_user(&mut headers, RemoteUser { name: "jane", uid: Some("7"), groups: &groups, extra: &extra });
        assert_eq!(
            shown(&headers),
            [
                "x-remote-extra-example.org%2fsome%20%25: v",
                "x-remote-group: a",
                "x-remote-group: b",
                "x-remote-uid: 7",
                "x-remote-user: jane"
            ]
        );
    }
}
