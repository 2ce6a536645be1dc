//! SPDY/3.1, as far as those need it who have commands run by kubelets: streams are opened, data goes both ways, and
//! streams end. Frames only; who says what when is decided elsewhere.
//!
//! Kubelets and the runtimes behind them keep no windows, neither those of streams nor that of the connection: whoever
//! waited for a WINDOW_UPDATE would wait forever. So none is sent and none is waited for, as in the original; what bounds
//! both sides is the connection itself. Headers of answers say nothing that is needed and are passed over, so that nothing
//! that others compressed is ever unpacked.

mod dictionary;

pub use dictionary::dictionary;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, FlushCompress};

/// What the protocol is called where it is asked for.
pub const PROTOCOL: &str = "SPDY/3.1";

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

const FIN: u8 = 1;
const CANCEL: u32 = 5;
const HEAD: usize = 8;

/// How much is kept of a control frame: what stands before its headers.
const KEPT: usize = 8;

/// The number of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId(u32);

/// What another says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A stream is agreed to.
    Reply {
        /// Which one.
        stream: StreamId,
        /// Whether the other has nothing to say on it.
        is_last: bool,
    },
    /// A part of what is said on a stream.
    Data {
        /// Which one.
        stream: StreamId,
        /// What is said.
        bytes: Bytes,
        /// Whether the other has no more to say on it.
        is_last: bool,
    },
    /// A stream is no more.
    Reset {
        /// Which one.
        stream: StreamId,
    },
    /// Whether somebody is there; it is answered with the same.
    Ping(u32),
    /// The other wants to hear no more.
    GoAway,
}

/// Something that is no frame of SPDY/3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a frame of SPDY/3.1")]
pub struct BadFrame;

/// Writes the frames of a client.
#[derive(Debug)]
pub struct FrameWriter {
    headers: Compress,
    streams: u32,
    pings: u32,
}

impl Default for FrameWriter {
    fn default() -> FrameWriter {
        let mut headers = Compress::new(Compression::default(), true);
        // It can only fail behind the first byte.
        let known = headers.set_dictionary(&dictionary());
        debug_assert!(known.is_ok(), "nothing was compressed yet");
        FrameWriter { headers, streams: 0, pings: 0 }
    }
}

impl FrameWriter {
    /// Opens a stream with these headers, whose names are in lower case.
    pub fn open(&mut self, headers: &[(&str, &str)]) -> (StreamId, Bytes) {
        // Those of clients are odd.
        let stream = StreamId(2 * self.streams + 1);
        self.streams += 1;
        let mut block = BytesMut::new();
        block.put_u32(headers.len() as u32);
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.put_u32(text.len() as u32);
            block.put_slice(text.as_bytes());
        }
        let packed = self.pack(&block);
        let mut payload = BytesMut::with_capacity(packed.len() + 10);
        payload.put_u32(stream.0);
        // Neither a parent, nor a priority, nor a credential.
        payload.put_bytes(0, 6);
        payload.put_slice(&packed);
        (stream, control(SYN_STREAM, &payload))
    }

    /// All headers of a connection are one stream to the packer, of which each frame has a whole piece.
    fn pack(&mut self, block: &[u8]) -> Vec<u8> {
        let mut packed = Vec::with_capacity(block.len() + 64);
        let begin = self.headers.total_in();
        loop {
            let done = usize::try_from(self.headers.total_in() - begin).unwrap_or(usize::MAX).min(block.len());
            let room = packed.capacity() - packed.len();
            let before = packed.len();
            let status = self.headers.compress_vec(&block[done..], &mut packed, FlushCompress::Sync);
            debug_assert!(status.is_ok(), "packing does not fail");
            if status.is_err() || packed.len() - before < room {
                return packed;
            }
            packed.reserve(64);
        }
    }

    /// Whether the other is there.
    pub fn ping(&mut self) -> Bytes {
        let id = 2 * self.pings + 1;
        self.pings = (self.pings + 1) % (u32::MAX / 4);
        control(PING, &id.to_be_bytes())
    }
}

/// Says something on a stream.
pub fn data(stream: StreamId, payload: &[u8], is_last: bool) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + payload.len());
    frame.put_u32(stream.0);
    frame.put_u8(if is_last { FIN } else { 0 });
    frame.put_uint(payload.len() as u64, 3);
    frame.put_slice(payload);
    frame.freeze()
}

/// Ends a stream in both directions.
pub fn reset(stream: StreamId) -> Bytes {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&stream.0.to_be_bytes());
    payload[4..].copy_from_slice(&CANCEL.to_be_bytes());
    control(RST_STREAM, &payload)
}

/// Answers a ping of the other; nothing if it is an answer itself.
pub fn pong(id: u32) -> Option<Bytes> {
    id.is_multiple_of(2).then(|| control(PING, &id.to_be_bytes()))
}

/// Ends a connection on which the other opened no streams.
pub fn go_away() -> Bytes {
    control(GOAWAY, &[0; 8])
}

fn control(kind: u16, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + payload.len());
    frame.put_u16(0x8000 | VERSION);
    frame.put_u16(kind);
    frame.put_u8(0);
    frame.put_uint(payload.len() as u64, 3);
    frame.put_slice(payload);
    frame.freeze()
}

/// Reads the frames of a server, as they come. It keeps no more than the head of one.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The head of a frame, and of control frames the first of what follows.
    head: Vec<u8>,
    /// How much of the frame at hand is still to come behind what is kept.
    left: usize,
    is_in_payload: bool,
}

impl FrameReader {
    /// Takes what came, and tells what was said. Data is told as it comes, in as many parts.
    pub fn take(&mut self, mut bytes: Bytes) -> Result<Vec<Frame>, BadFrame> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            if self.is_in_payload {
                self.take_payload(&mut bytes, &mut frames);
            } else {
                let size = (HEAD - self.head.len()).min(bytes.len());
                self.head.extend_from_slice(&bytes.split_to(size));
                if self.head.len() == HEAD {
                    self.begin()?;
                }
            }
            if self.is_in_payload && self.left == 0 {
                frames.extend(self.end()?);
            }
        }
        Ok(frames)
    }

    fn begin(&mut self) -> Result<(), BadFrame> {
        if self.is_control() && self.kind().0 != VERSION {
            return Err(BadFrame);
        }
        self.left = (&self.head[5..HEAD]).get_uint(3) as usize;
        self.is_in_payload = true;
        Ok(())
    }

    fn take_payload(&mut self, bytes: &mut Bytes, frames: &mut Vec<Frame>) {
        let part = bytes.split_to(self.left.min(bytes.len()));
        self.left -= part.len();
        if self.is_control() {
            let room = (HEAD + KEPT).saturating_sub(self.head.len()).min(part.len());
            self.head.extend_from_slice(&part[..room]);
        } else if self.left > 0 {
            frames.push(Frame::Data { stream: self.data_stream(), bytes: part, is_last: false });
        } else {
            frames.push(Frame::Data { stream: self.data_stream(), bytes: part, is_last: self.is_last() });
        }
    }

    /// What a frame says whose last byte has come, unless that was told already.
    fn end(&mut self) -> Result<Option<Frame>, BadFrame> {
        self.is_in_payload = false;
        let said = if self.is_control() {
            let mut payload = &self.head[HEAD..];
            let mut number = || payload.try_get_u32().map_err(|_| BadFrame);
            let stream = |number: u32| StreamId(number & 0x7fff_ffff);
            match self.kind().1 {
                SYN_REPLY => Some(Frame::Reply { stream: stream(number()?), is_last: self.is_last() }),
                RST_STREAM => Some(Frame::Reset { stream: stream(number()?) }),
                PING => Some(Frame::Ping(number()?)),
                GOAWAY => Some(Frame::GoAway),
                HEADERS if self.is_last() => {
                    Some(Frame::Data { stream: stream(number()?), bytes: Bytes::new(), is_last: true })
                }
                // Streams of the other, settings and windows are of no concern.
                _ => None,
            }
        } else {
            let is_empty = self.head[5..HEAD] == [0, 0, 0];
            let (stream, is_last) = (self.data_stream(), self.is_last());
            is_empty.then(|| Frame::Data { stream, bytes: Bytes::new(), is_last })
        };
        self.head.clear();
        Ok(said)
    }

    fn is_control(&self) -> bool {
        self.head[0] & 0x80 != 0
    }

    /// The version and the type of a control frame.
    fn kind(&self) -> (u16, u16) {
        let mut head = &self.head[..4];
        (head.get_u16() & 0x7fff, head.get_u16())
    }

    fn is_last(&self) -> bool {
        self.head[4] & FIN != 0
    }

    fn data_stream(&self) -> StreamId {
        StreamId((&self.head[..4]).get_u32() & 0x7fff_ffff)
    }
}

#[cfg(test)]
mod tests;
