//! [`IpRange`]: a range of addresses, as `--service-cluster-ip-range` takes it.

use std::net::IpAddr;
use std::str::FromStr;

use revisor_object::{Cidr, parse_cidr_sloppy};

/// A range of addresses in CIDR notation, with room for the server's own service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpRange {
    range: Cidr,
}

impl IpRange {
    /// The range.
    pub(crate) fn range(self) -> Cidr {
        self.range
    }

    /// The first address that can be given to a service: the server's own.
    pub(crate) fn first_service(self) -> IpAddr {
        match self.range.network() {
            IpAddr::V4(base) => IpAddr::V4((u32::from(base) + 1).into()),
            IpAddr::V6(base) => IpAddr::V6((u128::from(base) + 1).into()),
        }
    }
}

impl FromStr for IpRange {
    type Err = String;

    fn from_str(text: &str) -> Result<IpRange, String> {
        let problem = || format!("expected a range of addresses such as 10.0.0.0/24, not {text:?}");
        let range = parse_cidr_sloppy(text).ok_or_else(problem)?;
        let most = if range.network().is_ipv4() { 30 } else { 126 };
        if range.prefix() > most { Err(problem()) } else { Ok(IpRange { range }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_of_a_range_is_the_servers_own() {
        for (text, want) in [
            ("10.0.0.0/24", Some("10.0.0.1")),
            ("10.96.3.7/12", Some("10.96.0.1")),
            ("fd00::/108", Some("fd00::1")),
            ("10.0.0.0/32", None),
            ("10.0.0.0", None),
            ("x/24", None),
        ] {
            let first = text.parse::<IpRange>().ok().map(|range| range.first_service().to_string());
            assert_eq!(first.as_deref(), want, "{text}");
        }
    }
}
