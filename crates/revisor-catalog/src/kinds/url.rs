//! [`Url`]: the parts of an address as the original reads them. Not a resolver: what an address leads to is for those
//! who call it.

/// The parts of an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    /// In lower case; empty where the text has none.
    pub(crate) scheme: String,
    /// User and password, if given.
    pub(crate) user: Option<&'a str>,
    /// The host with its port.
    pub(crate) host: &'a str,
    /// What is behind the question mark.
    pub(crate) query: &'a str,
    /// What is behind the hash.
    pub(crate) fragment: &'a str,
}

impl<'a> Url<'a> {
    /// Reads an address. The error is what is wrong with it.
    pub(crate) fn parse(text: &'a str) -> Result<Url<'a>, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Url { scheme: scheme.to_ascii_lowercase(), user: None, host: "", query, fragment };
        check_escapes(fragment)?;
        if !rest.starts_with('/') && !scheme.is_empty() {
            return Ok(url);
        }
        if !rest.starts_with('/') && rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
        let is_authority = !scheme.is_empty() || !rest.starts_with("///");
        let mut path = rest;
        if let Some(behind) = rest.strip_prefix("//").filter(|_| is_authority) {
            let end = behind.find('/').unwrap_or(behind.len());
            let authority = &behind[..end];
            path = &behind[end..];
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            if !user.unwrap_or_default().bytes().all(is_user_byte) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            check_host(host)?;
            (url.user, url.host) = (user, host);
        }
        check_escapes(path)?;
        Ok(url)
    }
}

/// The scheme, and what is behind its colon.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn is_user_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
}

fn check_host(host: &str) -> Result<(), String> {
    let port_at = match host.strip_prefix('[') {
        Some(inner) => match inner.rfind(']') {
            Some(end) => end + 2,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host.rfind(':').unwrap_or(host.len()),
    };
    let port = &host[port_at..];
    let is_port =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {port:?} after host"));
    }
    let allowed = |byte: u8| byte >= 0x80 || byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte);
    match host.bytes().find(|byte| !allowed(*byte)) {
        Some(b'%') => Err(format!("invalid URL escape {:?}", &host[host.find('%').unwrap_or_default()..])),
        Some(byte) => Err(format!("invalid character {:?} in host name", char::from(byte).to_string())),
        None => Ok(()),
    }
}

/// A percent sign stands before two hexadecimal digits.
fn check_escapes(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('%') {
        let digits = bytes.get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let end = (at + 3).min(bytes.len());
            return Err(format!("invalid URL escape {:?}", String::from_utf8_lossy(&bytes[at..end])));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let none = Url { scheme: String::new(), user: None, host: "", query: "", fragment: "" };
        let https = || Url { scheme: "https".to_owned(), user: None, host: "a", query: "", fragment: "" };
        for (text, want) in [
            ("", Ok(none)),
            ("https://a", Ok(https())),
            ("HTTPS://a/b%20c", Ok(https())),
            ("https://a:443/b?c=d#e", Ok(Url { host: "a:443", query: "c=d", fragment: "e", ..https() })),
            ("https://u:p@[::1]:1", Ok(Url { user: Some("u:p"), host: "[::1]:1", ..https() })),
            ("https:a", Ok(Url { host: "", ..https() })),
            ("//a", Ok(Url { scheme: String::new(), ..https() })),
            (":a", Err("missing protocol scheme")),
            ("1a:b", Err("first path segment in URL cannot contain colon")),
            ("https://a b", Err("invalid character \" \" in host name")),
            ("https://a:b", Err("invalid port \":b\" after host")),
            ("https://[a", Err("missing ']' in host")),
            ("https://a/%zz", Err("invalid URL escape \"%zz\"")),
            ("https://a\n", Err("net/url: invalid control character in URL")),
        ] {
            assert_eq!(Url::parse(text), want.map_err(str::to_owned), "{text:?}");
        }
    }
}
