//! [`RequestHeader`]: users that a proxy in front of the server names in headers. It is believed because of its
//! certificate, which another authority vouches for than those of clients.

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::{Claims, Identity, Peer, PeerIdentity, PeerVerifier};

/// Which proxies are believed, and in which headers they name users.
#[derive(Debug, Clone)]
pub struct RequestHeader {
    verifier: PeerVerifier,
    headers: RequestHeaderNames,
}

/// The headers in which users are named, and who may name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHeaderNames {
    /// The common names of the proxies that are believed; empty for all whom the authority vouches for.
    pub allowed: Vec<String>,
    /// The name of the user: the first of these that is there.
    pub username: Vec<String>,
    /// What tells the user from others that had the name, in the same way.
    pub uid: Vec<String>,
    /// The groups, one in each header.
    pub groups: Vec<String>,
    /// How headers begin that hold further facts; the rest of their names are the keys.
    pub extra_prefixes: Vec<String>,
}

impl RequestHeaderNames {
    /// The same without blanks around the names; an empty name is an error, in the original's words.
    pub fn trimmed(self) -> Result<RequestHeaderNames, String> {
        let trim = |names: Vec<String>| -> Result<Vec<String>, String> {
            let trimmed = names.into_iter().map(|name| match name.trim() {
                "" => Err(format!("empty header {name:?}")),
                trimmed => Ok(trimmed.to_owned()),
            });
            trimmed.collect()
        };
        Ok(RequestHeaderNames {
            allowed: self.allowed,
            username: trim(self.username)?,
            uid: trim(self.uid)?,
            groups: trim(self.groups)?,
            extra_prefixes: trim(self.extra_prefixes)?,
        })
    }
}

impl RequestHeader {
    /// Believes proxies whose certificates `verifier` takes.
    pub fn new(verifier: PeerVerifier, headers: RequestHeaderNames) -> RequestHeader {
        RequestHeader { verifier, headers }
    }

    /// The client of a connection as a proxy would be seen.
    pub fn peer(&self, chain: &[rustls_pki_types::CertificateDer<'static>]) -> Peer {
        self.verifier.peer(chain)
    }

    /// Takes the headers away by which proxies name users, once it is known who asks: what is passed on to others must not
    /// name somebody in the words of a client (upstream: `ClearAuthenticationHeaders`).
    pub fn clear(&self, headers: &mut HeaderMap) {
        let RequestHeaderNames { username, uid, groups, extra_prefixes, .. } = &self.headers;
        for name in [username, uid, groups].into_iter().flatten() {
            headers.remove(name.as_str());
        }
        let begins = |name: &http::HeaderName| {
            extra_prefixes
                .iter()
                .any(|prefix| name.as_str().get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)))
        };
        let extra: Vec<http::HeaderName> = headers.keys().filter(|name| begins(name)).cloned().collect();
        for name in extra {
            headers.remove(name);
        }
    }

    /// Whom the headers name, if the client may name somebody and does.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, proxy: &PeerIdentity) -> Option<Identity> {
        let PeerIdentity::Verified(proxy) = proxy else { return None };
        let names = &self.headers;
        if !names.allowed.is_empty() && !names.allowed.iter().any(|name| name == proxy.name()) {
            return None;
        }
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| headers.get(name.as_str()));
            values.find(|value| !value.is_empty()).map(text)
        };
        let groups = names.groups.iter().flat_map(|name| headers.get_all(name.as_str()));
        let mut extra: Vec<(String, Vec<String>)> = Vec::new();
        for prefix in &names.extra_prefixes {
            for (name, value) in headers {
                let Some((head, key)) = name.as_str().split_at_checked(prefix.len()) else { continue };
                if !head.eq_ignore_ascii_case(prefix) {
                    continue;
                }
                let key = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), |key| key.into_owned());
                match extra.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, values)) => values.push(text(value)),
                    None => extra.push((key, vec![text(value)])),
                }
            }
        }
        Some(Identity::authenticated(Claims {
            name: first(&names.username)?,
            uid: first(&names.uid),
            groups: groups.filter(|group| !group.is_empty()).map(text).collect(),
            extra,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientTrust;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_names_users_can_be_taken_away() {
        let names = RequestHeaderNames {
            username: names(&["X-My-User"]),
            extra_prefixes: names(&["X-My-Extra-"]),
            ..RequestHeaderNames::default()
        };
        let request_header = RequestHeader::new(PeerVerifier::new(ClientTrust::default()), names);
        let mut headers = HeaderMap::new();
        for name in ["x-my-user", "x-my-extra-scopes", "accept"] {
            headers.insert(name, http::HeaderValue::from_static("v"));
        }
        request_header.clear(&mut headers);
        assert_eq!(headers.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn only_allowed_proxies_name_users() {
        let headers = RequestHeaderNames {
            allowed: names(&["front"]),
            username: names(&["X-Remote-User", "X-Other-User"]),
            uid: names(&["X-Remote-Uid"]),
            groups: names(&["X-Remote-Group"]),
            extra_prefixes: names(&["X-Remote-Extra-"]),
        };
        let verifier = PeerVerifier::new(ClientTrust::default());
        let request_header = RequestHeader::new(verifier, headers);
        let proxy = |name: &str| {
            PeerIdentity::Verified(Identity::exactly(Claims { name: name.to_owned(), ..Claims::default() }))
        };
        let mut sent = HeaderMap::new();
        for (name, value) in [
            ("x-other-user", "bob"),
            ("x-remote-uid", "7"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-extra-acme.com%2fproject", "x"),
            ("x-remote-extra-acme.com%2fproject", "y"),
        ] {
            sent.append(name, value.parse().expect("is a value"));
        }
        let user = request_header.authenticate(&sent, &proxy("front")).expect("is named");
        assert_eq!((user.name(), user.uid()), ("bob", Some("7")));
        assert_eq!(user.groups(), ["a", "b", "system:authenticated"]);
        assert_eq!(user.extra(), [("acme.com/project".to_owned(), names(&["x", "y"]))]);
        assert!(request_header.authenticate(&sent, &proxy("somebody")).is_none());
        assert!(request_header.authenticate(&sent, &PeerIdentity::Unknown).is_none());
        assert!(request_header.authenticate(&HeaderMap::new(), &proxy("front")).is_none());
        let blank = RequestHeaderNames { username: names(&["A", " "]), ..RequestHeaderNames::default() };
        assert_eq!(blank.trimmed(), Err("empty header \" \"".to_owned()));
    }
}
