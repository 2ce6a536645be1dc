//! IP addresses and ranges of them.

use core::net::{IpAddr, Ipv4Addr};

use revisor_object::Cidr;

use super::format::quoted;
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

fn parse_ip(text: &str) -> Result<IpAddr, EvalError> {
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && matches!(address.parse(), Ok(IpAddr::V6(_)))
    {
        return Err(EvalError::failed(format!("IP address {} with zone value is not allowed", quoted(text))));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Err(EvalError::failed(format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text))))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(EvalError::failed(format!(
            "IP Address {} parse error during conversion from string: {}",
            quoted(text),
            unreadable(text)
        ))),
    }
}

/// What keeps a text from being an address, and where.
fn unreadable(text: &str) -> String {
    let (problem, at) = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        None => ("unable to parse IP", ""),
        Some(b'.') => ipv4_problem(text),
        Some(b':') => ipv6_problem(text),
        Some(_) => ("missing IPv6 address", ""),
    };
    let place = if at.is_empty() { String::new() } else { format!(" (at {})", quoted(at)) };
    format!("ParseAddr({}): {problem}{place}", quoted(text))
}

fn ipv4_problem(text: &str) -> (&'static str, &str) {
    let bytes = text.as_bytes();
    let (mut value, mut digits, mut fields) = (0_u32, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return ("IPv4 field has octet with leading zero", "");
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return ("IPv4 field has value >255", "");
                }
            }
            b'.' => {
                if at == 0 || at + 1 == bytes.len() || bytes[at - 1] == b'.' {
                    return ("IPv4 field must have at least one digit", &text[at..]);
                }
                if fields == 3 {
                    return ("IPv4 address too long", "");
                }
                (value, digits, fields) = (0, 0, fields + 1);
            }
            _ => return ("unexpected character", &text[at..]),
        }
    }
    ("IPv4 address too short", "")
}

fn ipv6_problem(text: &str) -> (&'static str, &str) {
    let mut rest = match text.split_once('%') {
        Some((_, "")) => return ("zone must be a non-empty string", ""),
        Some((address, _)) => address,
        None => text,
    };
    let (mut fields, mut gap) = (0, false);
    if let Some(after) = rest.strip_prefix("::") {
        (rest, gap) = (after, true);
    }
    while fields < 8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return ("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return ("each colon-separated field must have at least one digit", rest);
        }
        if rest[digits..].starts_with('.') {
            return match (gap, fields) {
                (false, fields) if fields != 6 => {
                    ("embedded IPv4 address must replace the final 2 fields of the address", rest)
                }
                (_, 7..) => ("too many hex fields to fit an embedded IPv4 at the end of the address", rest),
                _ => ipv4_problem(rest),
            };
        }
        fields += 1;
        rest = &rest[digits..];
        match rest.as_bytes() {
            [] => break,
            [b':'] => return ("colon must be followed by more characters", rest),
            [b':', ..] => rest = &rest[1..],
            _ => return ("unexpected character, want colon", rest),
        }
        if let Some(after) = rest.strip_prefix(':') {
            if gap {
                return ("multiple :: in address", rest);
            }
            (rest, gap) = (after, true);
            if rest.is_empty() {
                break;
            }
        }
    }
    match (rest.is_empty(), fields) {
        (false, _) => ("trailing garbage after address", rest),
        (true, 8..) => ("the :: must expand to at least one field of zeros", ""),
        (true, _) => ("address string too short", ""),
    }
}

pub(super) fn ip<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Opaque(Opaque::Ip(parse_ip(text)?))),
        [CelValue::Opaque(Opaque::Cidr(cidr))] => Ok(CelValue::Opaque(Opaque::Ip(cidr.addr()))),
        _ => mismatch(),
    }
}

pub(super) fn is_ip<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(parse_ip(text).is_ok())),
        _ => mismatch(),
    }
}

pub(super) fn is_canonical<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(parse_ip(text)?.to_string() == **text)),
        _ => mismatch(),
    }
}

pub(super) fn family<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Opaque(Opaque::Ip(ip))] => Ok(CelValue::Int(if ip.is_ipv4() { 4 } else { 6 })),
        _ => mismatch(),
    }
}

pub(super) fn ip_is<'a>(args: &[CelValue<'a>], holds: fn(IpAddr) -> bool) -> Outcome<'a> {
    match args {
        [CelValue::Opaque(Opaque::Ip(ip))] => Ok(CelValue::Bool(holds(*ip))),
        _ => mismatch(),
    }
}

pub(super) fn is_unspecified(ip: IpAddr) -> bool {
    ip.is_unspecified()
}

pub(super) fn is_loopback(ip: IpAddr) -> bool {
    ip.is_loopback()
}

pub(super) fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

pub(super) fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

pub(super) fn is_global_unicast(ip: IpAddr) -> bool {
    let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip);
    !special && ip != IpAddr::V4(Ipv4Addr::BROADCAST)
}

fn parse_cidr(text: &str) -> Result<Cidr, EvalError> {
    let failed = |why: String| {
        let message = "network address parse error during conversion from string";
        EvalError::failed(format!("{message}: {message}: netip.ParsePrefix({}): {why}", quoted(text)))
    };
    let Some((address, bits)) = text.rsplit_once('/') else { return Err(failed("no '/'".to_owned())) };
    if address.contains('%') {
        return Err(failed("IPv6 zones cannot be present in a prefix".to_owned()));
    }
    let Ok(parsed) = address.parse::<IpAddr>() else {
        return Err(failed(unreadable(address)));
    };
    let digits = bits.len() <= 3 && !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (bits.len() > 1 && bits.starts_with('0')) {
        return Err(failed(format!("bad bits after slash: {}", quoted(bits))));
    }
    if let IpAddr::V6(parsed) = parsed
        && parsed.to_ipv4_mapped().is_some()
    {
        let why = format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text));
        return Err(EvalError::failed(format!("network address parse error during conversion from string: {why}")));
    }
    let prefix = bits.parse::<u8>().ok().and_then(|bits| Cidr::new(parsed, bits));
    prefix.ok_or_else(|| failed("prefix length out of range".to_owned()))
}

pub(super) fn cidr<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Opaque(Opaque::Cidr(parse_cidr(text)?))),
        _ => mismatch(),
    }
}

pub(super) fn is_cidr<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(text)] => Ok(CelValue::Bool(parse_cidr(text).is_ok())),
        _ => mismatch(),
    }
}

pub(super) fn contains_ip<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let (cidr, ip) = match args {
        [CelValue::Opaque(Opaque::Cidr(cidr)), CelValue::Opaque(Opaque::Ip(ip))] => (cidr, *ip),
        // Whatever is wrong with the text, only that it does not fit is said.
        [CelValue::Opaque(Opaque::Cidr(cidr)), CelValue::String(text)] => match parse_ip(text) {
            Ok(ip) => (cidr, ip),
            Err(_) => return Err(EvalError::failed("no such overload")),
        },
        _ => return mismatch(),
    };
    Ok(CelValue::Bool(cidr.contains(ip)))
}

pub(super) fn contains_cidr<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let (cidr, other) = match args {
        [CelValue::Opaque(Opaque::Cidr(cidr)), CelValue::Opaque(Opaque::Cidr(other))] => (cidr, *other),
        [CelValue::Opaque(Opaque::Cidr(cidr)), CelValue::String(text)] => (cidr, parse_cidr(text)?),
        _ => return mismatch(),
    };
    Ok(CelValue::Bool(cidr.contains_range(&other)))
}

pub(super) fn masked<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let [CelValue::Opaque(Opaque::Cidr(cidr))] = args else { return mismatch() };
    Cidr::new(cidr.network(), cidr.prefix())
        .map(|masked| CelValue::Opaque(Opaque::Cidr(masked)))
        .ok_or_else(EvalError::no_such_overload)
}

pub(super) fn prefix_length<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Opaque(Opaque::Cidr(cidr))] => Ok(CelValue::Int(i64::from(cidr.prefix()))),
        _ => mismatch(),
    }
}
