//! URIs as they stand in requests: absolute, or a path.

/// Whether `text` is an absolute URI or an absolute path. What follows a `#` is taken for a part of the path, as requests
/// have no fragments.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((has_scheme, rest)) = split_scheme(text) else { return false };
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !path.starts_with('/') {
        return has_scheme;
    }
    let path = match path.strip_prefix("//").filter(|_| has_scheme) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority) {
                return false;
            }
            path
        }
        None => path,
    };
    is_escaped(path)
}

/// Whether there is a scheme, and what follows it; `None` if the text begins with a colon.
fn split_scheme(text: &str) -> Option<(bool, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((true, &text[at + 1..])),
            _ => break,
        }
    }
    Some((false, text))
}

fn is_authority(text: &str) -> bool {
    let host = match text.rsplit_once('@') {
        Some((user, host)) => {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(is_allowed) || !is_escaped(user) {
                return false;
            }
            host
        }
        None => text,
    };
    if let Some(host) = host.strip_prefix('[') {
        let Some((address, port)) = host.rsplit_once(']') else { return false };
        let (address, zone) = address.split_once("%25").unwrap_or((address, ""));
        return is_port(port) && is_host(zone) && address.parse::<core::net::Ipv6Addr>().is_ok();
    }
    if host.contains('[') {
        return false;
    }
    let (name, port) = host.split_at(host.rfind(':').unwrap_or(host.len()));
    is_port(port) && !name.contains(':') && is_host(name)
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_host(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                // Only what is not ASCII may be escaped, and the percent sign.
                let Some(code) = escape(&bytes[at + 1..]) else { return false };
                if code < 0x80 && code != b'%' {
                    return false;
                }
                at += 3;
            }
            byte if byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte) => {
                at += 1
            }
            _ => return false,
        }
    }
    true
}

/// Whether two digits follow each percent sign.
fn is_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, byte)| *byte != b'%' || escape(&bytes[at + 1..]).is_some())
}

fn escape(bytes: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(bytes.get(..2)?).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
