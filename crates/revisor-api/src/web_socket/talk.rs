//! Both sides of a WebSocket on which the client is listened to: what it says comes out of one queue, what it is told goes
//! into another. Both are short, so that whoever does not listen is told no more than they can take.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::{FrameKind, FrameReader, Part, Received, close_frame, frame};

/// How much is read at once.
pub(crate) const CHUNK: usize = 16 * 1024;

/// How many frames wait in a queue.
pub(crate) const QUEUE: usize = 8;

/// Hands on what a client says, until it closes or goes. Pings are answered unless the client does not listen.
pub(crate) async fn listen(mut from: impl AsyncRead + Unpin, parts: mpsc::Sender<Part>, answers: mpsc::Sender<Bytes>) {
    let mut frames = FrameReader::listening();
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        for received in frames.take(&buffer[..count]) {
            match received {
                Received::Ping(payload) => drop(answers.try_send(frame(FrameKind::Pong, &payload))),
                Received::Close => {
                    let _ = answers.try_send(close_frame());
                    return;
                }
                Received::Part(part) => {
                    if parts.send(part).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// Tells a client what stands in a queue, until that ends or the client does not take it. `sent` is told how much.
pub(crate) async fn speak(to: &mut (impl AsyncWrite + Unpin), mut frames: mpsc::Receiver<Bytes>, sent: impl Fn(usize)) {
    while let Some(frame) = frames.recv().await {
        let writing = async {
            to.write_all(&frame).await?;
            to.flush().await
        };
        if writing.await.is_err() {
            return;
        }
        sent(frame.len());
    }
}

/// Carries bytes between a client, to whom they are messages, and somebody to whom they are not, until one side has no
/// more to say (upstream: `portforward.TunnelingConnection`).
pub(crate) async fn carry(
    client: (impl AsyncRead + Unpin, &mut (impl AsyncWrite + Unpin)),
    other: (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    sent: impl Fn(usize),
) {
    let ((from_client, to_client), (from_other, to_other)) = (client, other);
    let (out, frames) = mpsc::channel(QUEUE);
    let (said, mut parts) = mpsc::channel::<Part>(QUEUE);
    let outward = async {
        while let Some(part) = parts.recv().await {
            // Only bytes are understood.
            if part.is_text || to_other.write_all(&part.bytes).await.is_err() || to_other.flush().await.is_err() {
                return;
            }
        }
    };
    let inward = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(CHUNK);
            match from_other.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if out.send(frame(FrameKind::Binary, &buffer.split())).await.is_err() {
                return;
            }
        }
        let _ = out.send(close_frame()).await;
    };
    let listening = async {
        listen(from_client, said, out.clone()).await;
        // What it said is still carried.
        std::future::pending::<()>().await;
    };
    let talking = async {
        tokio::select! {
            () = outward => {}
            () = inward => {}
            () = listening => {}
        }
    };
    let mut speaking = std::pin::pin!(speak(to_client, frames, sent));
    tokio::select! {
        () = &mut speaking => return,
        () = talking => {}
    }
    drop(out);
    let _ = tokio::time::timeout(LAST_WORDS, speaking).await;
}

/// How long a client may take to hear the end (upstream: `writeErrorDeadline`).
pub(crate) const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(10);
