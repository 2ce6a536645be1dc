//! Addresses and ranges as the original reads them.

use super::*;
use proptest::prelude::*;

const NO_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

#[test]
fn addresses_are_read_leniently() {
    for (text, want) in [
        ("10.0.0.1", Some("10.0.0.1")),
        ("010.000.0.01", Some("10.0.0.1")),
        ("0.0.0.0", Some("0.0.0.0")),
        ("::", Some("::")),
        ("::1", Some("::1")),
        ("1::", Some("1::")),
        ("2001:DB8:0:0:0:0:0:1", Some("2001:db8::1")),
        ("2001:0db8::0:1", Some("2001:db8::1")),
        ("00001::", Some("1::")),
        ("1:0:0:2:0:0:0:3", Some("1:0:0:2::3")),
        ("1:2:3:4:5:6:0:8", Some("1:2:3:4:5:6:0:8")),
        ("::ffff:1.2.3.4", Some("1.2.3.4")),
        ("::ffff:102:304", Some("1.2.3.4")),
        ("::1.2.3.4", Some("::102:304")),
        ("1:2:3:4:5:6:1.2.3.4", Some("1:2:3:4:5:6:102:304")),
        ("64:ff9b::192.0.2.033", Some("64:ff9b::c000:221")),
        ("", None),
        ("1", None),
        ("1.2.3", None),
        ("1.2.3.4.5", None),
        ("1.2.3.", None),
        ("1.2.3.256", None),
        ("1.2.3.-4", None),
        ("a.b.c.d", None),
        (" 1.2.3.4", None),
        (":", None),
        (":1", None),
        (":::", None),
        ("1:", None),
        ("1::2::3", None),
        ("1:2:3:4:5:6:7", None),
        ("1:2:3:4:5:6:7:8:9", None),
        ("1:2:3:4:5:6:7::8", None),
        ("1:2:3:4:5:6:7::", Some("1:2:3:4:5:6:7:0")),
        ("12345::", None),
        ("g::", None),
        ("fe80::1%eth0", None),
        ("1.2.3.4::", None),
        ("::1.2.3.4:5", None),
        ("1:2:3:4:5:6:7:1.2.3.4", None),
        ("1.2.3.4/24", None),
    ] {
        assert_eq!(parse_ip_sloppy(text).map(|ip| ip.to_string()).as_deref(), want, "{text:?}");
    }
}

#[test]
fn rules_for_addresses() {
    for (text, new, strict, lenient) in [
        ("10.0.0.1", None, None, None),
        ("2001:db8::1", None, None, None),
        ("x", Some(NO_IP), Some(NO_IP), Some(NO_IP)),
        ("010.0.0.1", Some("must not have leading 0s"), Some("must not have leading 0s"), None),
        (
            "::ffff:1.2.3.4",
            Some("must not be an IPv4-mapped IPv6 address"),
            Some("must not be an IPv4-mapped IPv6 address"),
            None,
        ),
        ("2001:DB8::1", Some(r#"must be in canonical form ("2001:db8::1")"#), None, None),
        ("1:0:0:0:0:0:0:1", Some(r#"must be in canonical form ("1::1")"#), None, None),
    ] {
        assert_eq!(ip_problems(text), Vec::from_iter(new), "{text}");
        assert_eq!(legacy_ip_problems(text, Strictness::Strict), Vec::from_iter(strict), "{text}");
        assert_eq!(legacy_ip_problems(text, Strictness::Lenient), Vec::from_iter(lenient), "{text}");
    }
}

#[test]
fn rules_for_ranges() {
    const ZEROS: &str = "must not have leading 0s in IP or prefix length";
    const BITS: &str = "must not have bits set beyond the prefix length";
    const MAPPED: &str = "must not have an IPv4-mapped IPv6 address";
    for (text, new, strict, lenient) in [
        ("10.0.0.0/8", None, None, None),
        ("0.0.0.0/0", None, None, None),
        ("::/0", None, None, None),
        ("2001:db8::/32", None, None, None),
        ("1.2.3.4/32", None, None, None),
        ("10.0.0.0", Some(NO_CIDR), Some(NO_CIDR), Some(NO_CIDR)),
        ("10.0.0.0/", Some(NO_CIDR), Some(NO_CIDR), Some(NO_CIDR)),
        ("10.0.0.0/33", Some(NO_CIDR), Some(NO_CIDR), Some(NO_CIDR)),
        ("10.0.0.0/+8", Some(NO_CIDR), Some(NO_CIDR), Some(NO_CIDR)),
        ("10.0.0.0/8/8", Some(NO_CIDR), Some(NO_CIDR), Some(NO_CIDR)),
        ("::/129", Some(NO_CIDR), Some(NO_CIDR), Some(NO_CIDR)),
        ("010.0.0.0/8", Some(ZEROS), Some(ZEROS), None),
        ("10.0.0.0/08", Some(ZEROS), Some(ZEROS), None),
        ("10.0.0.1/8", Some(BITS), Some(BITS), None),
        ("::ffff:1.2.3.0/120", Some(MAPPED), Some(MAPPED), None),
        ("2001:DB8::/32", Some(r#"must be in canonical form ("2001:db8::/32")"#), None, None),
    ] {
        assert_eq!(cidr_problems(text), Vec::from_iter(new), "{text}");
        assert_eq!(legacy_cidr_problems(text, Strictness::Strict), Vec::from_iter(strict), "{text}");
        assert_eq!(legacy_cidr_problems(text, Strictness::Lenient), Vec::from_iter(lenient), "{text}");
    }
}

#[test]
fn addresses_of_interfaces() {
    for (text, want) in [
        ("192.168.1.5/24", None),
        ("2001:db8::1/64", None),
        ("192.168.1.05/24", Some(r#"must be in canonical form ("192.168.1.5/24")"#)),
        ("::ffff:192.168.0.1/120", Some(r#"must be in canonical form ("192.168.0.1/24")"#)),
        ("::ffff:192.168.0.1/64", Some(r#"must be in canonical form ("192.168.0.1/-32")"#)),
        ("x/1", Some("must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")),
    ] {
        assert_eq!(interface_address_problems(text), Vec::from_iter(want), "{text}");
    }
}

#[test]
fn warnings() {
    for (text, want) in [
        ("1.2.3.4", None),
        ("::1", None),
        ("01.2.3.4", Some(r#"f: non-standard IP address "01.2.3.4" is invalid: use "1.2.3.4""#)),
        ("::ffff:1.2.3.4", Some(r#"f: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4""#)),
        ("0::1", Some(r#"f: IPv6 address "0::1" should be in RFC 5952 canonical format ("::1")"#)),
        ("nonsense", None),
    ] {
        assert_eq!(ip_warnings("f", text), Vec::from_iter(want), "{text}");
    }
    for (text, want) in [
        ("10.0.0.0/8", &[][..]),
        (
            "10.0.0.1/8",
            &[r#"f: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)"#],
        ),
        ("10.0.0.0/08", &[r#"f: non-standard CIDR value "10.0.0.0/08" is invalid: use "10.0.0.0/8""#]),
        ("0::/8", &[r#"f: IPv6 CIDR value "0::/8" should be in RFC 5952 canonical format ("::/8")"#]),
        ("nonsense", &[]),
    ] {
        assert_eq!(cidr_warnings("f", text), want, "{text}");
    }
}

#[test]
fn ranges_contain_addresses_and_ranges() {
    let range = |text| parse_cidr_sloppy(text).expect(text);
    for (outer, address, want) in [
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.1", false),
        ("0.0.0.0/0", "255.255.255.255", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "1.2.3.4", false),
        ("::/0", "::1", true),
        ("1.2.3.4/32", "1.2.3.4", true),
        ("1.2.3.4/32", "::ffff:1.2.3.4", true),
        ("::ffff:1.2.3.0/120", "1.2.3.99", true),
    ] {
        assert_eq!(range(outer).contains(address.parse().expect(address)), want, "{outer} {address}");
    }
    for (outer, inner, want) in [
        ("10.0.0.0/8", "10.1.0.0/16", true),
        ("10.1.0.0/16", "10.0.0.0/8", false),
        ("10.0.0.0/8", "10.0.0.0/8", true),
        ("0.0.0.0/0", "::/0", false),
    ] {
        assert_eq!(range(outer).contains_range(&range(inner)), want, "{outer} {inner}");
    }
    let cidr = range("::ffff:1.2.3.4/120");
    assert_eq!(
        (cidr.addr().to_string(), cidr.network().to_string(), cidr.prefix()),
        ("1.2.3.4".into(), "1.2.3.0".into(), 24)
    );
}

proptest! {
    #[test]
    fn what_is_read_strictly_is_read_leniently(bits in any::<u128>(), shift in 0_u32..128) {
        let ip = IpAddr::V6(Ipv6Addr::from_bits(bits >> shift));
        prop_assert_eq!(parse_ip_sloppy(&ip.to_string()), Some(ip.to_canonical()));
    }

    #[test]
    fn no_text_is_too_strange(text in "[0-9a-f:./]{0,40}") {
        if let Ok(ip) = text.parse::<IpAddr>() {
            prop_assert_eq!(parse_ip_sloppy(&text), Some(ip.to_canonical()));
        }
        let _ = (cidr_problems(&text), cidr_warnings("f", &text), ip_warnings("f", &text));
        let _ = (ip_problems(&text), interface_address_problems(&text));
    }

    #[test]
    fn no_prefix_is_too_strange(bits in any::<u32>(), prefix in 0_u8..=130) {
        let text = format!("::ffff:{}/{prefix}", Ipv4Addr::from_bits(bits));
        prop_assert_eq!(parse_cidr_sloppy(&text).is_some(), prefix <= 128);
        let _ = (cidr_problems(&text), cidr_warnings("f", &text), interface_address_problems(&text));
    }
}
