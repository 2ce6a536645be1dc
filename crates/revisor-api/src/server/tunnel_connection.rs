//! [`TunnelConnection`]: a connection that is a tunnel since its last request was answered. What either side says goes to
//! the other: as it is, or in the words that the other understands.

use std::sync::Arc;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use revisor_proxy::Tunnel;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::delivery::Delivery;
use super::rooms::Guest;
use crate::body::{Body, ByteSource};
use crate::drain::{Drain, Phase};
use crate::passed_on::Way;
use crate::web_socket::talk::carry;

/// An answer that goes on as a tunnel.
pub(super) struct TunnelConnection {
    pub(super) upgrade: OnUpgrade,
    pub(super) way: Way,
    /// The tunnel lasts for as long as this does.
    pub(super) body: Body,
    /// Ends with the tunnel.
    pub(super) delivery: Arc<Delivery>,
}

impl TunnelConnection {
    /// Carries what is said until one side has no more to say, as in the original.
    pub(super) async fn serve(self, guest: &Guest, drain: &Drain) {
        let TunnelConnection { upgrade, way, mut body, delivery } = self;
        // Without an upgrade the client has gone before it began.
        let Ok(upgraded) = upgrade.await else { return };
        let (from_client, mut to_client) = tokio::io::split(TokioIo::new(upgraded));
        let body_ends = async { while std::future::poll_fn(|cx| body.poll_next(cx)).await.is_some() {} };
        let sent = |bytes: usize| delivery.count(bytes);
        let talk = async {
            match way {
                Way::Tunnel(tunnel) => pass(from_client, &mut to_client, tunnel, sent).await,
                Way::MessageTunnel(mut tunnel) => {
                    let (mut from_other, mut to_other) = tokio::io::split(TokioIo::new(&mut tunnel.stream));
                    carry((from_client, &mut to_client), (&mut from_other, &mut to_other), sent).await;
                    let _ = tokio::time::timeout(super::FAREWELL, to_other.shutdown()).await;
                }
                Way::Command(command) => command.run(from_client, &mut to_client, sent).await,
            }
        };
        tokio::select! {
            () = drain.wait(Phase::Aborting) => {}
            () = guest.told_to_leave() => {}
            () = body_ends => {}
            () = talk => {}
        }
        // Whoever is still there learns that it is over; who does not take that in time does without.
        let _ = tokio::time::timeout(super::FAREWELL, to_client.shutdown()).await;
    }
}

/// Passes bytes on as they are.
async fn pass(
    mut from_client: impl AsyncRead + Unpin,
    to_client: &mut (impl AsyncWrite + Unpin),
    mut tunnel: Tunnel,
    sent: impl Fn(usize),
) {
    let (mut from_other, mut to_other) = tokio::io::split(TokioIo::new(&mut tunnel.stream));
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_other) => {}
        copied = tokio::io::copy(&mut from_other, to_client) => {
            sent(copied.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)));
        }
    }
    let _ = tokio::time::timeout(super::FAREWELL, to_other.shutdown()).await;
}
