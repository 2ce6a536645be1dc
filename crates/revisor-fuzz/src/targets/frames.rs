//! Frames of those behind the server.

use bytes::Bytes;
use revisor_proxy::spdy::{BadFrame, Frame, FrameReader};

/// SPDY says the same however it comes: all at once, or byte by byte.
pub(super) fn spdy(data: &[u8]) {
    let whole = FrameReader::default().take(Bytes::copy_from_slice(data));
    let mut reader = FrameReader::default();
    let pieces = data.iter().map(|byte| reader.take(Bytes::copy_from_slice(&[*byte])));
    let pieces: Result<Vec<Vec<Frame>>, BadFrame> = pieces.collect();
    assert_eq!(whole.map(joined), pieces.map(|pieces| joined(pieces.concat())));
}

/// The same frames, in which data that came in parts is one.
fn joined(frames: Vec<Frame>) -> Vec<Frame> {
    let mut joined: Vec<Frame> = Vec::new();
    for frame in frames {
        match (joined.last_mut(), frame) {
            (
                Some(Frame::Data { stream, bytes, is_last: is_over @ false }),
                Frame::Data { stream: next, bytes: more, is_last },
            ) if *stream == next => {
                *bytes = [&bytes[..], &more[..]].concat().into();
                *is_over = is_last;
            }
            (_, frame) => joined.push(frame),
        }
    }
    joined
}
