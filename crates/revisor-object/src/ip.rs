//! IP addresses and CIDRs: reading them leniently, and the rules for those that stand in fields.
//!
//! Kubernetes reads addresses as it always has: octets may have leading zeros, and an IPv4 address may be wrapped into
//! an IPv6 one. New values must be written properly; values that are stored already go on to be read. So there are two
//! lenient readers ([`parse_ip_sloppy`], [`parse_cidr_sloppy`]), rules on top of them, and warnings for what is only
//! tolerated.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use crate::bad_value::Quoted;

/// How strictly a field is read that is older than the rules for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// Leading zeros, wrapped addresses and bits beyond a prefix are allowed.
    Lenient,
    /// They are not. Forms that are merely not canonical still are.
    Strict,
}

/// Checks an address in a new field, which must be canonical.
///
/// ```
/// use revisor_object::ip_problems;
/// assert!(ip_problems("2001:db8::1").is_empty());
/// assert_eq!(ip_problems("2001:DB8::1"), [r#"must be in canonical form ("2001:db8::1")"#]);
/// ```
pub fn ip_problems(text: &str) -> Vec<String> {
    let problems = legacy_ip_problems(text, Strictness::Strict);
    match parse_ip_sloppy(text) {
        Some(ip) if problems.is_empty() => uncanonical(text, &ip.to_string()),
        _ => problems,
    }
}

/// Checks an address in a field that is older than the rules.
///
/// ```
/// use revisor_object::{Strictness, legacy_ip_problems};
/// assert!(legacy_ip_problems("010.0.0.1", Strictness::Lenient).is_empty());
/// assert_eq!(legacy_ip_problems("010.0.0.1", Strictness::Strict), ["must not have leading 0s"]);
/// ```
pub fn legacy_ip_problems(text: &str, strictness: Strictness) -> Vec<String> {
    if parse_ip_sloppy(text).is_none() {
        return vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()];
    }
    let fault = match (strictness, text.parse()) {
        (Strictness::Lenient, _) => None,
        (Strictness::Strict, Err(_)) => Some("must not have leading 0s"),
        (Strictness::Strict, Ok(ip)) => is_wrapped(ip).then_some("must not be an IPv4-mapped IPv6 address"),
    };
    fault.map(str::to_owned).into_iter().collect()
}

/// What to warn of about an address that [`legacy_ip_problems`] lets pass.
pub fn ip_warnings(field: impl fmt::Display, text: &str) -> Vec<String> {
    let Some(ip) = parse_ip_sloppy(text) else { return Vec::new() };
    let quoted = Quoted(text);
    match text.parse::<IpAddr>() {
        Ok(strict) if !is_wrapped(strict) => {
            if strict.is_ipv6() && strict.to_string() != text {
                return vec![format!(
                    "{field}: IPv6 address {quoted} should be in RFC 5952 canonical format (\"{strict}\")"
                )];
            }
            Vec::new()
        }
        _ => vec![format!("{field}: non-standard IP address {quoted} is invalid: use \"{ip}\"")],
    }
}

/// Checks a CIDR in a new field, which must be canonical and have no bits set beyond its prefix.
///
/// ```
/// use revisor_object::cidr_problems;
/// assert!(cidr_problems("10.0.0.0/8").is_empty());
/// assert_eq!(cidr_problems("10.0.0.1/8"), ["must not have bits set beyond the prefix length"]);
/// ```
pub fn cidr_problems(text: &str) -> Vec<String> {
    let problems = legacy_cidr_problems(text, Strictness::Strict);
    match parse_cidr_sloppy(text) {
        Some(cidr) if problems.is_empty() => uncanonical(text, &cidr.to_string()),
        _ => problems,
    }
}

/// Checks a CIDR in a field that is older than the rules.
pub fn legacy_cidr_problems(text: &str, strictness: Strictness) -> Vec<String> {
    let Some(cidr) = parse_cidr_sloppy(text) else {
        return vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()];
    };
    let fault = match (strictness, parse_cidr_strict(text)) {
        (Strictness::Lenient, _) => None,
        (Strictness::Strict, None) => Some("must not have leading 0s in IP or prefix length"),
        (Strictness::Strict, Some(ip)) if is_wrapped(ip) => Some("must not have an IPv4-mapped IPv6 address"),
        (Strictness::Strict, Some(_)) => {
            (cidr.addr != cidr.network).then_some("must not have bits set beyond the prefix length")
        }
    };
    fault.map(str::to_owned).into_iter().collect()
}

/// What to warn of about a CIDR that [`legacy_cidr_problems`] lets pass.
pub fn cidr_warnings(field: impl fmt::Display, text: &str) -> Vec<String> {
    let Some(cidr) = parse_cidr_sloppy(text) else { return Vec::new() };
    let quoted = Quoted(text);
    let mut warnings = Vec::new();
    if cidr.addr != cidr.network {
        let (addr, bits) = (cidr.addr, cidr.written_bits);
        warnings.push(format!(
            "{field}: CIDR value {quoted} is ambiguous in this context (should be \"{cidr}\" or \"{addr}/{bits}\"?)"
        ));
    }
    match parse_cidr_strict(text) {
        Some(strict) if !is_wrapped(strict) => {
            let canonical = format!("{strict}/{}", cidr.prefix);
            if warnings.is_empty() && strict.is_ipv6() && canonical != text {
                warnings.push(format!(
                    "{field}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format (\"{canonical}\")"
                ));
            }
        }
        _ => warnings.push(format!("{field}: non-standard CIDR value {quoted} is invalid: use \"{cidr}\"")),
    }
    warnings
}

/// Checks the address of an interface: a whole address and the length of its network's prefix.
///
/// ```
/// use revisor_object::interface_address_problems;
/// assert!(interface_address_problems("192.168.1.5/24").is_empty());
/// ```
pub fn interface_address_problems(text: &str) -> Vec<String> {
    let Some(cidr) = parse_cidr_sloppy(text) else {
        return vec!["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned()];
    };
    // Of a wrapped address with a short prefix the result is negative. It only has to differ from what was written.
    let written = i32::from(cidr.written_prefix);
    let prefix = if cidr.addr.is_ipv4() && written > 32 { written - i32::from(WRAPPING_BITS) } else { written };
    uncanonical(text, &format!("{}/{prefix}", cidr.addr))
}

fn uncanonical(text: &str, canonical: &str) -> Vec<String> {
    if text == canonical { Vec::new() } else { vec![format!("must be in canonical form ({})", Quoted(canonical))] }
}

/// Reads an address, leading zeros and all. An IPv4 address that is wrapped into an IPv6 one comes out unwrapped.
///
/// ```
/// use revisor_object::parse_ip_sloppy;
/// assert_eq!(parse_ip_sloppy("010.0.0.001").unwrap().to_string(), "10.0.0.1");
/// assert_eq!(parse_ip_sloppy("::ffff:1.2.3.4").unwrap().to_string(), "1.2.3.4");
/// ```
pub fn parse_ip_sloppy(text: &str) -> Option<IpAddr> {
    match text.find(['.', ':']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => parse_v4(text).map(IpAddr::V4),
        Some(_) => parse_v6(text).map(|ip| IpAddr::V6(ip).to_canonical()),
        None => None,
    }
}

/// Reads an address and the length of a prefix, leading zeros and all.
pub fn parse_cidr_sloppy(text: &str) -> Option<Cidr> {
    let (addr, prefix) = text.split_once('/')?;
    let addr = match parse_v4(addr) {
        Some(ip) => IpAddr::V4(ip),
        None => IpAddr::V6(parse_v6(addr)?),
    };
    Cidr::new(addr, u8::try_from(decimal(prefix)?).ok()?)
}

/// A range of addresses: those that share their first bits.
///
/// Shown as the first address of the range and the number of bits.
///
/// ```
/// use revisor_object::parse_cidr_sloppy;
/// let range = parse_cidr_sloppy("10.1.2.3/8").unwrap();
/// assert_eq!(range.to_string(), "10.0.0.0/8");
/// assert!(range.contains("10.200.0.1".parse().unwrap()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    addr: IpAddr,
    network: IpAddr,
    prefix: u8,
    // As they were written, which is different for an IPv4 address that is wrapped into an IPv6 one.
    written_prefix: u8,
    written_bits: u8,
}

/// How many bits an IPv6 address puts before the IPv4 address that it wraps.
const WRAPPING_BITS: u8 = 96;

impl Cidr {
    /// The range of the addresses that have the first `prefix` bits in common with this one; `None` if it has not so
    /// many.
    pub fn new(addr: IpAddr, prefix: u8) -> Option<Cidr> {
        let bits = if addr.is_ipv4() { 32 } else { 128 };
        if prefix > bits {
            return None;
        }
        let network = match addr {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        };
        let unwrapped = if is_wrapped(network) { prefix.saturating_sub(WRAPPING_BITS) } else { prefix };
        Some(Cidr {
            addr: addr.to_canonical(),
            network: network.to_canonical(),
            prefix: unwrapped,
            written_prefix: prefix,
            written_bits: bits,
        })
    }

    /// The address from which it was made.
    pub fn addr(&self) -> IpAddr {
        self.addr
    }

    /// The first address.
    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// How many bits its addresses have in common.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether this address is one of the range.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_ipv4() == self.network.is_ipv4()
            && Cidr::new(ip, self.prefix).is_some_and(|one| one.network == self.network)
    }

    /// Whether all addresses of the other range are in this one.
    pub fn contains_range(&self, other: &Cidr) -> bool {
        self.prefix <= other.prefix && self.contains(other.network)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

fn is_wrapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// The address of a CIDR that is written without needless zeros.
fn parse_cidr_strict(text: &str) -> Option<IpAddr> {
    let (addr, prefix) = text.split_once('/')?;
    let zeros = prefix.len() > 1 && prefix.starts_with('0');
    if zeros { None } else { addr.parse().ok() }
}

/// Numbers from here on are not read at all, however many zeros are before them.
const TOO_LARGE: u32 = 0x00ff_ffff;

/// A number that is the whole text.
fn decimal(text: &str) -> Option<u32> {
    number(text, 10).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// The number at the beginning of the text, and what follows.
fn number(text: &str, radix: u32) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len()));
    if digits.is_empty() {
        return None;
    }
    let number = digits.chars().try_fold(0_u32, |number, digit| {
        let number = number * radix + digit.to_digit(radix)?;
        (number < TOO_LARGE).then_some(number)
    })?;
    Some((number, rest))
}

fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = u8::try_from(decimal(parts.next()?)?).ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Groups before and after the `::`, if there is one. The last 32 bits may be written as an IPv4 address.
fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    let Some((before, after)) = text.split_once("::") else {
        let groups = parse_groups(text, true)?;
        return <[u16; 8]>::try_from(groups).ok().map(Ipv6Addr::from);
    };
    // An address in dots can only be the end, so before the gap it is none.
    let before = if before.is_empty() { Vec::new() } else { parse_groups(before, false)? };
    let after = if after.is_empty() { Vec::new() } else { parse_groups(after, true)? };
    // The gap stands for at least one group.
    if before.len() + after.len() > 7 {
        return None;
    }
    let mut groups = [0; 8];
    groups[..before.len()].copy_from_slice(&before);
    groups[8 - after.len()..].copy_from_slice(&after);
    Some(Ipv6Addr::from(groups))
}

/// At most eight groups.
fn parse_groups(text: &str, may_end_in_v4: bool) -> Option<Vec<u16>> {
    let mut groups = Vec::with_capacity(8);
    let mut parts = text.split(':').peekable();
    while let Some(part) = parts.next() {
        if may_end_in_v4 && parts.peek().is_none() && part.contains('.') {
            let [a, b, c, d] = parse_v4(part)?.octets();
            groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
        } else {
            let (group, rest) = number(part, 16)?;
            if !rest.is_empty() {
                return None;
            }
            groups.push(u16::try_from(group).ok()?);
        }
        if groups.len() > 8 {
            return None;
        }
    }
    Some(groups)
}

#[cfg(test)]
mod tests;
