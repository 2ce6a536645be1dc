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
            "IP Address {} parse error during conversion from string: ParseAddr({}): {}",
            quoted(text),
            quoted(text),
            unreadable(text)
        ))),
    }
}

/// What keeps a text from being an address.
fn unreadable(text: &str) -> &'static str {
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        None => "unable to parse IP",
        Some(b'.') => ipv4_problem(text),
        Some(b':') => "unexpected character, want colon",
        Some(_) => "missing IPv6 address",
    }
}

fn ipv4_problem(text: &str) -> &'static str {
    let mut fields = 0;
    let mut field = "";
    let mut at = 0;
    let parts: Vec<&str> = text.split('.').collect();
    for part in &parts {
        field = part;
        if part.bytes().any(|byte| !byte.is_ascii_digit()) {
            return "unexpected character";
        }
        if part.is_empty() {
            return if at + 1 == text.len() || fields + 1 == parts.len() {
                "IPv4 field must have at least one digit"
            } else {
                "IPv4 field must have at least one digit"
            };
        }
        if part.len() > 1 && part.starts_with('0') {
            return "IPv4 field has octet with leading zero";
        }
        if part.parse::<u16>().map_or(true, |number| number > 255) {
            return "IPv4 field has value >255";
        }
        fields += 1;
        at += part.len() + 1;
    }
    match (fields, field) {
        (5.., _) => "IPv4 address too long",
        _ => "IPv4 address too short",
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
        return Err(failed(format!("ParseAddr({}): {}", quoted(address), unreadable(address))));
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
