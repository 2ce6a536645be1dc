//! Checks of addresses and ranges, as several groups need them. How they are read is `revisor_object`'s.

use std::net::IpAddr;

use revisor_object::{
    FieldError, FieldErrors, FieldPath, Strictness, legacy_cidr_problems, legacy_ip_problems, parse_ip_sloppy,
};

use crate::checks::problems;
use crate::{Feature, Features};

/// How addresses may be written in fields that are older than the rules for addresses.
pub(crate) fn strictness(features: Features) -> Strictness {
    if features.has(Feature::StrictIPCIDRValidation) { Strictness::Strict } else { Strictness::Lenient }
}

/// An address in a field that is older than the rules for addresses. What the object had before is let pass.
pub(crate) fn legacy_ip(
    path: FieldPath<'_>,
    text: &str,
    features: Features,
    is_known: impl FnOnce(&str) -> bool,
) -> FieldErrors {
    if is_known(text) {
        FieldErrors::new()
    } else {
        problems(path, text, legacy_ip_problems(text, strictness(features)))
    }
}

/// A range in a field that is older than the rules for ranges. What the object had before is let pass.
pub(crate) fn legacy_cidr(
    path: FieldPath<'_>,
    text: &str,
    features: Features,
    is_known: impl FnOnce(&str) -> bool,
) -> FieldErrors {
    if is_known(text) {
        FieldErrors::new()
    } else {
        problems(path, text, legacy_cidr_problems(text, strictness(features)))
    }
}

/// An address that traffic can be sent to. Multicast addresses beyond the link are let pass, as the original does.
pub(crate) fn endpoint_ip(path: FieldPath<'_>, text: &str) -> FieldErrors {
    let Some(ip) = parse_ip_sloppy(text) else {
        return FieldErrors::from([FieldError::invalid(path, text, "must be a valid IP address")]);
    };
    let detail = if ip.is_unspecified() {
        format!("may not be unspecified ({text})")
    } else if ip.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if is_link_local(ip) {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else if is_link_local_multicast(ip) {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
    } else {
        return FieldErrors::new();
    };
    FieldErrors::from([FieldError::invalid(path, text, detail)])
}

/// A host that must be a name: an address is none.
pub(crate) fn not_an_address(path: FieldPath<'_>, host: &str) -> Option<FieldError> {
    parse_ip_sloppy(host).map(|_| FieldError::invalid(path, host, "must be a DNS name, not an IP address"))
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.octets()[0] == 0xff && ip.octets()[1] & 0x0f == 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_where_traffic_can_go() {
        for (text, is_good) in [
            ("10.0.0.1", true),
            ("2001:db8::1", true),
            ("224.0.1.1", true),
            ("010.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("127.0.0.9", false),
            ("::1", false),
            ("169.254.3.4", false),
            ("fe80::1", false),
            ("224.0.0.5", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("text", false),
        ] {
            assert_eq!(endpoint_ip(FieldPath::root("ip"), text).is_empty(), is_good, "{text}");
        }
    }
}
