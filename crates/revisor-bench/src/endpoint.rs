//! The address of a server under load. Loopback only: this program could take a server down that others use.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Why an address is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointError {
    /// It is not `https://host:port`.
    Malformed(String),
    /// It is not on this machine.
    NotLoopback(String),
}

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(text) => write!(f, "{text} is not of the form https://127.0.0.1:6443"),
            Self::NotLoopback(text) => {
                write!(f, "{text} is not on this machine; only loopback addresses are put under load")
            }
        }
    }
}

impl std::error::Error for EndpointError {}

/// Where a server listens, and the token that it knows us by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Endpoint {
    /// Reads `https://host:port`, where the host is a loopback address or `localhost`.
    pub fn new(url: &str, token: &str) -> Result<Self, EndpointError> {
        let malformed = || EndpointError::Malformed(url.to_owned());
        let authority = url.strip_prefix("https://").ok_or_else(malformed)?.trim_end_matches('/');
        let address = match authority.strip_prefix("localhost:") {
            Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().map_err(|_| malformed())?),
            None => match authority.parse::<SocketAddr>() {
                Ok(address) => address,
                // A host that is neither an address nor `localhost` would have to be resolved, and could be anywhere.
                Err(_) if authority.contains(':') => return Err(EndpointError::NotLoopback(url.to_owned())),
                Err(_) => return Err(malformed()),
            },
        };
        if !address.ip().is_loopback() {
            return Err(EndpointError::NotLoopback(url.to_owned()));
        }
        Ok(Self { address, token: token.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_taken() {
        let malformed = |url: &str| Err(EndpointError::Malformed(url.to_owned()));
        let remote = |url: &str| Err(EndpointError::NotLoopback(url.to_owned()));
        for (url, want) in [
            ("https://127.0.0.1:6443", Ok("127.0.0.1:6443")),
            ("https://127.0.0.1:6443/", Ok("127.0.0.1:6443")),
            ("https://[::1]:6443", Ok("[::1]:6443")),
            ("https://localhost:6443", Ok("127.0.0.1:6443")),
            ("https://10.0.0.1:6443", remote("https://10.0.0.1:6443")),
            ("https://0.0.0.0:6443", remote("https://0.0.0.0:6443")),
            ("https://example.com:6443", remote("https://example.com:6443")),
            ("http://127.0.0.1:8080", malformed("http://127.0.0.1:8080")),
            ("https://127.0.0.1", malformed("https://127.0.0.1")),
            ("https://localhost:x", malformed("https://localhost:x")),
        ] {
            let found = Endpoint::new(url, "t").map(|endpoint| endpoint.address.to_string());
            assert_eq!(found, want.map(String::from), "{url}");
        }
    }
}
