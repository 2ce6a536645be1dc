//! [`Location`]: a [`Target`] taken apart into what is dialled, what is verified, what is asked for and what is shown.

use std::net::IpAddr;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use rustls_pki_types::ServerName;

use crate::{ClientConfigError, ServiceReference, Target};

/// What a path shows as `%XX`: all but letters, digits and `-_.~$&+,/:;=@`.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'!')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'\'')
    .add(b'(')
    .add(b')')
    .add(b'*')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A webhook's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Whom to dial.
    pub(crate) dial: Dial,
    /// The name that the certificate must be for.
    pub(crate) server_name: ServerName<'static>,
    /// Host and port as they are shown, and as the header `Host` carries them.
    pub(crate) authority: String,
    /// The path, cleaned and escaped.
    pub(crate) path: String,
    /// Whether HTTP/2 is offered. One connection of HTTP/2 carries all requests and so would reach one backend of many;
    /// on the own machine there is but one.
    pub(crate) offers_http2: bool,
}

/// Whom to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dial {
    /// A host and a port.
    Host { host: String, port: u16 },
    /// Wherever the service is at that time.
    Service { namespace: String, name: String, port: u16 },
}

impl Location {
    pub(crate) fn of(target: &Target) -> Result<Location, ClientConfigError> {
        match target {
            Target::Url(url) => Location::of_url(url),
            Target::Service(service) => Location::of_service(service),
        }
    }

    fn of_url(url: &str) -> Result<Location, ClientConfigError> {
        let refuse = |problem: &str| ClientConfigError::Url(format!("{url}: {problem}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse("missing scheme"))?;
        if !scheme.eq_ignore_ascii_case("https") {
            return Err(refuse("the scheme is not https"));
        }
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        let (host, port) = split_authority(authority).ok_or_else(|| refuse("invalid host or port"))?;
        let server_name = ServerName::try_from(host.to_owned()).map_err(|_| refuse("invalid host"))?;
        let local = match host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        Ok(Location {
            dial: Dial::Host { host: host.to_owned(), port },
            server_name,
            authority: authority.to_owned(),
            path: clean(path),
            offers_http2: local,
        })
    }

    fn of_service(service: &ServiceReference) -> Result<Location, ClientConfigError> {
        let ServiceReference { namespace, name, path, port } = service;
        let host = format!("{name}.{namespace}.svc");
        let authority = format!("{host}:{port}");
        let server_name =
            ServerName::try_from(host).map_err(|_| ClientConfigError::Url(format!("https://{authority}")))?;
        Ok(Location {
            dial: Dial::Service { namespace: namespace.clone(), name: name.clone(), port: *port },
            server_name,
            authority,
            path: clean(path),
            offers_http2: false,
        })
    }

    /// Path and query of a call that may take so long. The webhook is told, so that it can give up in time.
    pub(crate) fn path_and_query(&self, timeout: Duration) -> String {
        let nanos = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        format!("{}?timeout={}", self.path, revisor_object::Duration::from_nanos(nanos))
    }

    /// The whole URL of such a call.
    pub(crate) fn url(&self, timeout: Duration) -> String {
        format!("https://{}{}", self.authority, self.path_and_query(timeout))
    }
}

/// Path and query of a URL as it is written.
pub(crate) fn exact_path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// Host, without brackets, and port.
fn split_authority(authority: &str) -> Option<(&str, u16)> {
    const DEFAULT: u16 = 443;
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if port.is_empty() { "" } else { port.strip_prefix(':')? })
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let port = if port.is_empty() { DEFAULT } else { port.parse().ok()? };
    // A name with an `@` would be a user with a host behind it.
    (!host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic() && b != b'@')).then_some((host, port))
}

/// The path from the root without empty, `.` and `..` segments, escaped.
fn clean(path: &str) -> String {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => (),
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", utf8_percent_encode(&segments.join("/"), ESCAPED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<Location, ClientConfigError> {
        Location::of(&Target::Url(text.into()))
    }

    #[test]
    fn a_url_is_shown_with_a_clean_path_and_the_timeout() {
        for (text, want) in [
            ("https://127.0.0.1:19205/ok", "https://127.0.0.1:19205/ok?timeout=30s"),
            ("https://[::1]:1/ok", "https://[::1]:1/ok?timeout=30s"),
            ("https://h", "https://h/?timeout=30s"),
            ("https://h?a=b", "https://h/?timeout=30s"),
            ("HTTPS://h/ok/#f", "https://h/ok?timeout=30s"),
            ("https://LocalHost:1/", "https://LocalHost:1/?timeout=30s"),
            ("https://h/a//b/../c%20d%2Fe", "https://h/a/c%20d/e?timeout=30s"),
            ("https://h/../a!é", "https://h/a%21%C3%A9?timeout=30s"),
        ] {
            assert_eq!(url(text).expect(text).url(Duration::from_secs(30)), want, "{text}");
        }
    }

    #[test]
    fn only_the_own_machine_is_offered_http2() {
        for (text, want) in [
            ("https://127.0.0.7:1/", true),
            ("https://[::1]/", true),
            ("https://LOCALHOST/", true),
            ("https://example.com/", false),
            ("https://10.0.0.1/", false),
        ] {
            assert_eq!(url(text).expect(text).offers_http2, want, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_dialled_is_refused() {
        for text in [
            "",
            "h",
            "http://h/",
            "https://",
            "https:///x",
            "https://h:x/",
            "https://h:70000/",
            "https://u@h/",
            "https://[x]/",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_service_is_verified_by_its_name() {
        let (namespace, name) = ("ns".to_owned(), "hook".to_owned());
        let service =
            ServiceReference { namespace: namespace.clone(), name: name.clone(), path: "p/".into(), port: 443 };
        let location = Location::of(&Target::Service(service)).expect("the service has a name");
        assert_eq!(location.url(Duration::from_millis(1500)), "https://hook.ns.svc:443/p?timeout=1.5s");
        assert_eq!(location.server_name.to_str(), "hook.ns.svc");
        assert_eq!(location.dial, Dial::Service { namespace, name, port: 443 });
    }
}
