//! [`WebSocketConnection`]: a connection that is a WebSocket since its last request was answered. It sends the messages of
//! that answer, answers pings, and ends when either side has enough.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Limits;
use super::delivery::Delivery;
use super::rooms::Guest;
use crate::body::{Body, ByteSource};
use crate::drain::{Drain, Phase};
use crate::web_socket::{FrameKind, FrameReader, Received, WebSocketUpgrade, close_frame, frame};

/// How much is read at once of what a client says, which is little.
const READ_BUFFER: usize = 1024;

/// An answer that goes on as a WebSocket.
pub(super) struct WebSocketConnection {
    pub(super) upgrade: WebSocketUpgrade,
    /// Each of its chunks is a message.
    pub(super) body: Body,
    /// Ends with the last message.
    pub(super) delivery: Arc<Delivery>,
}

/// The client did not take a message in time, or is gone.
struct Unsent;

impl WebSocketConnection {
    /// Serves it to its end; whether it was cut off because nobody read it.
    pub(super) async fn serve(self, guest: &Guest, drain: &Drain, limits: &Limits) -> bool {
        let WebSocketConnection { upgrade: WebSocketUpgrade { upgrade, is_text }, mut body, delivery } = self;
        // Without an upgrade the client has gone before it began.
        let Ok(upgraded) = upgrade.await else { return false };
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
        let kind = if is_text { FrameKind::Text } else { FrameKind::Binary };
        let mut aborting = drain.wait(Phase::Aborting);
        let mut frames = FrameReader::default();
        let mut buffer = [0; READ_BUFFER];
        let patience = limits.unread_timeout;
        loop {
            tokio::select! {
                () = &mut aborting => return false,
                () = guest.told_to_leave() => return false,
                () = std::future::poll_fn(|cx| delivery.poll_cut_off(cx)) => return true,
                read = reader.read(&mut buffer) => {
                    let count = match read {
                        Ok(0) | Err(_) => return false,
                        Ok(count) => count,
                    };
                    for received in frames.take(&buffer[..count]) {
                        let (answer, is_end) = match received {
                            Received::Ping(payload) => (frame(FrameKind::Pong, &payload), false),
                            Received::Close => (close_frame(), true),
                            // Nobody listens.
                            Received::Part(_) => continue,
                        };
                        if send(&mut writer, answer, patience).await.is_err() {
                            return true;
                        }
                        if is_end {
                            return false;
                        }
                    }
                }
                chunk = std::future::poll_fn(|cx| body.poll_next(cx)) => {
                    let Some(message) = chunk else {
                        let _ = send(&mut writer, close_frame(), patience).await;
                        let _ = tokio::time::timeout(patience, writer.shutdown()).await;
                        return false;
                    };
                    let message = frame(kind, &message);
                    delivery.count(message.len());
                    if send(&mut writer, message, patience).await.is_err() {
                        return true;
                    }
                }
            }
        }
    }
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), frame: Bytes, patience: Duration) -> Result<(), Unsent> {
    let sending = async {
        writer.write_all(&frame).await?;
        writer.flush().await
    };
    match tokio::time::timeout(patience, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Unsent),
    }
}
