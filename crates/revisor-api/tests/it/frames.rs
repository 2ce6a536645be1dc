//! HTTP/2 frame by frame, for what no decent client would send.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::harness::{TestServer, within};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

const INITIAL_WINDOW_SIZE: u8 = 4;

/// A frame as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The reason of a frame that ends a stream or the connection.
    pub(crate) fn reason(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

/// The bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The fields of a GET, compressed as little as possible.
pub(crate) fn get_fields(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    for (name, value) in [(0x04, path), (0x01, "localhost")] {
        block.push(name);
        block.push(u8::try_from(value.len()).expect("short").min(126));
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// A whole GET on a stream.
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &get_fields(path))
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

pub(crate) fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// A connection on which frames are sent and received.
pub(crate) struct Frames {
    pub(crate) reading: ReadHalf<TlsStream<TcpStream>>,
    pub(crate) writing: WriteHalf<TlsStream<TcpStream>>,
}

impl Frames {
    /// Connects as a client that lets the server send `window` bytes on each stream.
    pub(crate) async fn connect(server: &TestServer, window: u32) -> Frames {
        let (reading, writing) = tokio::io::split(server.tls(&["h2"], false).await);
        let mut frames = Frames { reading, writing };
        let mut setting = vec![0, INITIAL_WINDOW_SIZE];
        setting.extend_from_slice(&window.to_be_bytes());
        let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &setting)].concat();
        frames.send(&preface).await.expect("the server listens");
        frames
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        within(self.writing.write_all(bytes)).await?;
        within(self.writing.flush()).await
    }

    /// The next frame; nothing at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        within(self.reading.read_exact(&mut head)).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        within(self.reading.read_exact(&mut payload)).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame of this kind; nothing if the connection ends before.
    pub(crate) async fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.kind == kind && (kind != SETTINGS || frame.flags & ACK == 0) {
                return Some(frame);
            }
        }
    }
}
