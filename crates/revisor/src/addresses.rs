//! Where others reach the server: members of a cluster, and those outside.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use revisor_registry::Advertised;

use crate::flags::{EndpointReconciler, ServeFlags};
use crate::presence::hostname;

/// Where members of a cluster reach the server: never at an address that leads each of them to itself.
pub(crate) fn advertised(flags: &ServeFlags, address: SocketAddr) -> Advertised {
    let chosen = advertise_address(flags, address).filter(leads_here);
    Advertised {
        address: chosen.filter(|_| flags.endpoint_reconciler_type != EndpointReconciler::None),
        port: address.port(),
        node_port: Some(flags.kubernetes_service_node_port).filter(|port| *port != 0),
    }
}

fn advertise_address(flags: &ServeFlags, address: SocketAddr) -> Option<IpAddr> {
    flags.advertise_address.or_else(|| Some(address.ip()).filter(leads_here)).or_else(machine_address)
}

fn leads_here(ip: &IpAddr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified()
}

/// Where those outside reach the server: a host and a port.
pub(crate) fn external_address(flags: &ServeFlags, address: SocketAddr) -> String {
    let host = flags.external_hostname.clone();
    let host = host.or_else(|| advertise_address(flags, address).map(|ip| ip.to_string()));
    with_port(host.unwrap_or_else(hostname), address.port())
}

/// A host and a port, where the host may have one already.
fn with_port(host: String, port: u16) -> String {
    let has_port = match host.rsplit_once(':') {
        Some((host, _)) => !host.contains(':') || (host.starts_with('[') && host.ends_with(']')),
        None => false,
    };
    if has_port {
        host
    } else if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The address that this machine would use to talk to others, if it has a way to them. Nothing is sent: to connect a
/// datagram socket only looks up the route to an address that is reserved for documentation.
fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_the_port_that_it_lacks() {
        for (host, want) in [
            ("api.example", "api.example:6443"),
            ("api.example:443", "api.example:443"),
            ("192.0.2.1", "192.0.2.1:6443"),
            ("::1", "[::1]:6443"),
            ("[::1]", "[::1]:6443"),
            ("[::1]:443", "[::1]:443"),
        ] {
            assert_eq!(with_port(host.to_owned(), 6443), want, "{host}");
        }
    }
}
