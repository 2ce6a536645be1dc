//! URLs, as Go reads them.

use core::net::IpAddr;
use std::fmt;
use std::sync::Arc;

use super::format::quoted;
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::map::Map;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Url {
    pub(crate) scheme: String,
    opaque: String,
    user: Option<String>,
    pub(crate) host: String,
    /// As it was written.
    path: String,
    query: String,
    fragment: String,
}

impl Url {
    /// The host without the port.
    pub(crate) fn hostname(&self) -> &str {
        let host = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.host,
        };
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, if one was given.
    pub(crate) fn port(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => "",
        }
    }

    /// The path with everything escaped that must be. What was escaped validly stays as it was written.
    pub(crate) fn escaped_path(&self) -> String {
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

    /// Reads a URL, or a path.
    fn parse(text: &str, request: bool) -> Result<Url, String> {
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
    let bad_port = |port: &str| format!("invalid port {} after host", quoted(port));
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
                Err(_) => Err(format!("invalid host: ParseAddr({}): unable to parse IP", quoted(&address))),
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

fn unescape(text: &str, host: bool) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'%' {
            let hex = bytes.get(at + 1..at + 3).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            let code = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
            let shown = || quoted(&String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]));
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
            let shown = quoted(&char::from(byte).to_string());
            return Err(format!("invalid character {shown} in host name"));
        }
        out.push(byte);
        at += 1;
    }
    Ok(out)
}

/// Whether a text is a URI that could be asked for; what is wrong with it otherwise.
pub(super) fn check_uri(text: &str) -> Result<(), String> {
    Url::parse(text, true).map(drop).map_err(|problem| format!("parse {}: {problem}", quoted(text)))
}

pub(super) fn url<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::String(text)] = args else { return mismatch() };
    let failed =
        |problem: String| EvalError::failed(format!("URL parse error during conversion from string: {problem}"));
    check_uri(text).map_err(failed)?;
    let url = Url::parse(text, false).map_err(|problem| failed(format!("parse {}: {problem}", quoted(text))))?;
    Ok(CelValue::Opaque(Opaque::Url(Arc::new(url))))
}

pub(super) fn is_url<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(check_uri(text).is_ok())),
        _ => mismatch(),
    }
}

pub(super) fn part<'a>(args: &[CelValue<'a>], of: fn(&Url) -> String) -> Result<CelValue<'a>, EvalError> {
    match args {
        [CelValue::Opaque(Opaque::Url(url))] => Ok(CelValue::text(of(url))),
        _ => mismatch(),
    }
}

pub(super) fn query<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::Opaque(Opaque::Url(url))] = args else { return mismatch() };
    let mut values: Vec<(String, Vec<CelValue<'a>>)> = Vec::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            unescape(&text.replace('+', "%20"), false).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let (Ok(key), Ok(value)) = (decode(key), decode(value)) else { continue };
        match values.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(CelValue::text(value)),
            None => values.push((key, vec![CelValue::text(value)])),
        }
    }
    let entries = values.into_iter().map(|(key, values)| (CelValue::text(key), CelValue::list(values)));
    Ok(CelValue::Map(Map::made(entries)?))
}
