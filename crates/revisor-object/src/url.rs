//! [`Url`]: the parts of an address as Go reads them. Not a resolver: what an address leads to is for those who call it.

use core::net::IpAddr;
use std::fmt;

use crate::bad_value::Quoted;

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Url {
    /// In lower case; empty where the text has none.
    pub scheme: String,
    /// What is behind the scheme where that is no path.
    pub opaque: String,
    /// User and password, if given.
    pub user: Option<String>,
    /// The host with its port.
    pub host: String,
    /// As it was written.
    pub path: String,
    /// What is behind the question mark.
    pub query: String,
    /// What is behind the hash.
    pub fragment: String,
}

impl Url {
    /// The host without the port.
    pub fn hostname(&self) -> &str {
        let host = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.host,
        };
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, if one was given.
    pub fn port(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => "",
        }
    }

    /// The path with everything escaped that must be. What was escaped validly stays as it was written.
    pub fn escaped_path(&self) -> String {
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:@[]-_.~/%".contains(&byte);
        if self.path.bytes().all(valid) {
            return self.path.clone();
        }
        let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"$&+,/:;=@-_.~".contains(&byte);
        let mut escaped = String::new();
        for byte in unescape(&self.path, false).unwrap_or_default() {
            if keep(byte) {
                escaped.push(char::from(byte));
            } else {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        }
        escaped
    }

    /// Reads a URL, or a path. The error is what is wrong with it.
    ///
    /// ```
    /// use revisor_object::Url;
    /// let url = Url::parse("HTTPS://u@a:443/b%20c?d=e#f").unwrap();
    /// assert_eq!((url.scheme.as_str(), url.hostname(), url.port(), url.path.as_str()), ("https", "a", "443", "/b%20c"));
    /// assert_eq!(Url::parse("https://a b").unwrap_err(), "invalid character \" \" in host name");
    /// ```
    pub fn parse(text: &str) -> Result<Url, String> {
        Url::read(text, false)
    }

    /// Reads what stands in a request: a URL with a scheme, or an absolute path; neither has a fragment.
    pub fn parse_request(text: &str) -> Result<Url, String> {
        Url::read(text, true)
    }

    fn read(text: &str, request: bool) -> Result<Url, String> {
        let (text, fragment) = match text.split_once('#') {
            Some((text, fragment)) if !request => (text, fragment),
            _ => (text, ""),
        };
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut url = Url { fragment: fragment.to_owned(), ..Url::default() };
        if text == "*" {
            url.path = "*".to_owned();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if (!url.scheme.is_empty() || (!request && !rest.starts_with("///")))
            && let Some(after) = rest.strip_prefix("//")
        {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            let (user, host) = split_authority(&url.scheme, authority)?;
            (url.user, url.host) = (user, host);
            rest = path;
        }
        unescape(rest, false)?;
        url.path = rest.to_owned();
        Ok(url)
    }
}

/// Fully, with what needs it escaped.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                f.write_str("//")?;
                if let Some(user) = &self.user {
                    write!(f, "{user}@")?;
                }
                f.write_str(&self.host)?;
            }
            f.write_str(&self.escaped_path())?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.fragment)?;
        }
        Ok(())
    }
}

/// A part of a query in clear: escapes and plus signs are resolved.
pub fn unescape_query(text: &str) -> Result<String, String> {
    unescape(&text.replace('+', "%20"), false).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn split_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else { return Ok((None, read_host(scheme, authority)?)) };
    let host = read_host(scheme, host)?;
    let valid = |char: char| char.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(char);
    if !user.chars().all(valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user, false)?;
    Ok((Some(user.to_owned()), host))
}

fn is_optional_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read_host(scheme: &str, host: &str) -> Result<String, String> {
    let bad_port = |port: &str| format!("invalid port {} after host", Quoted(port));
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
            let port = &host[end + 1..];
            if !is_optional_port(port) {
                return Err(bad_port(port));
            }
            let inside = &host[1..end];
            let address = match inside.find("%25") {
                Some(zone) => {
                    let name = String::from_utf8_lossy(&unescape(&inside[zone..], false)?).into_owned();
                    format!("{}{name}", &inside[..zone])
                }
                None => unescape_host(inside)?,
            };
            let without_zone = address.split('%').next().unwrap_or_default();
            match without_zone.parse::<IpAddr>() {
                Ok(IpAddr::V6(_)) => Ok(format!("[{address}]{port}")),
                Ok(IpAddr::V4(_)) => Err("invalid IP-literal".to_owned()),
                Err(_) => Err(format!("invalid host: ParseAddr({}): unable to parse IP", Quoted(&address))),
            }
        }
        Some(_) => Err("invalid IP-literal".to_owned()),
        None => {
            if let Some(first) = host.find(':') {
                let strict = matches!(scheme, "http" | "https");
                let at = if strict { first } else { host.rfind(':').unwrap_or(first) };
                if !is_optional_port(&host[at..]) {
                    return Err(bad_port(&host[at..]));
                }
            }
            unescape_host(host)
        }
    }
}

fn unescape_host(host: &str) -> Result<String, String> {
    unescape(host, true).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes that a text with escapes stands for. In a host other characters may stand, and fewer be escaped.
fn unescape(text: &str, host: bool) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'%' {
            let hex = bytes.get(at + 1..at + 3).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            let code = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
            let shown = || Quoted(&String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)])).to_string();
            match code {
                Some(code) if host && code < 0x80 && code != b'%' => {
                    return Err(format!("invalid URL escape {}", shown()));
                }
                Some(code) => out.push(code),
                None => return Err(format!("invalid URL escape {}", shown())),
            }
            at += 3;
            continue;
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte);
        if host && byte < 0x80 && !allowed(byte) {
            let shown = char::from(byte).to_string();
            return Err(format!("invalid character {} in host name", Quoted(&shown)));
        }
        out.push(byte);
        at += 1;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let https = || Url { scheme: "https".to_owned(), host: "a".to_owned(), ..Url::default() };
        let text = str::to_owned;
        for (address, want) in [
            ("", Ok(Url::default())),
            ("https://a", Ok(https())),
            ("HTTPS://a/b%20c", Ok(Url { path: text("/b%20c"), ..https() })),
            (
                "https://a:443/b?c=d#e",
                Ok(Url { host: text("a:443"), path: text("/b"), query: text("c=d"), fragment: text("e"), ..https() }),
            ),
            ("https://u:p@[::1]:1", Ok(Url { user: Some(text("u:p")), host: text("[::1]:1"), ..https() })),
            ("https:a", Ok(Url { host: String::new(), opaque: text("a"), ..https() })),
            ("//a", Ok(Url { scheme: String::new(), ..https() })),
            (":a", Err("missing protocol scheme")),
            ("1a:b", Err("first path segment in URL cannot contain colon")),
            ("https://a b", Err("invalid character \" \" in host name")),
            ("https://a:b", Err("invalid port \":b\" after host")),
            ("https://[a", Err("missing ']' in host")),
            ("https://a/%zz", Err("invalid URL escape \"%zz\"")),
            ("https://a\n", Err("net/url: invalid control character in URL")),
        ] {
            assert_eq!(Url::parse(address), want.map_err(str::to_owned), "{address:?}");
        }
        for (address, is_good) in [("/a", true), ("a", false), ("", false), ("*", true), ("x:a", true), ("//a b", true)]
        {
            assert_eq!(Url::parse_request(address).is_ok(), is_good, "{address:?}");
        }
    }
}
