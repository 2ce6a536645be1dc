//! The channels of a WebSocket: the first byte of a message says which one it is for (upstream: `wsstream.Conn`).

use bytes::{BufMut, Bytes, BytesMut};

use super::Wanted;
use crate::web_socket::{FrameKind, Part, frame};

/// A message that begins so says that the channel of its second byte is over.
const CLOSE_SIGNAL: u8 = 255;

/// What a channel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Stdin = 0,
    Stdout = 1,
    Stderr = 2,
    Error = 3,
    Resize = 4,
}

impl Channel {
    fn numbered(number: u8) -> Option<Channel> {
        [Channel::Stdin, Channel::Stdout, Channel::Stderr, Channel::Error, Channel::Resize]
            .into_iter()
            .find(|channel| *channel as u8 == number)
    }

    /// The one on which a client is told that it is connected.
    pub(super) fn first_told(wanted: Wanted) -> Channel {
        match wanted {
            Wanted { stdout: true, .. } => Channel::Stdout,
            Wanted { stderr: true, .. } => Channel::Stderr,
            _ => Channel::Error,
        }
    }

    /// A message on this channel.
    pub(super) fn frame(self, payload: &[u8]) -> Bytes {
        let mut message = BytesMut::with_capacity(payload.len() + 1);
        message.put_u8(self as u8);
        message.put_slice(payload);
        frame(FrameKind::Binary, &message)
    }
}

/// What a client says on its channels.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Data(Channel, Bytes),
    /// It has no more to say there.
    Closed(Channel),
}

/// Something that no client may say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Tells the channels of messages apart, which come in parts.
#[derive(Debug, Default)]
pub(super) struct Channels {
    at: At,
}

#[derive(Debug, Default)]
enum At {
    #[default]
    Begin,
    /// In a message for this channel, if there is one.
    On(Option<Channel>),
    /// In one that says that a channel is over, which one as far as it came.
    Closing(Option<u8>),
}

impl Channels {
    /// What a part says, if it says anything.
    pub(super) fn take(&mut self, part: Part) -> Result<Option<Said>, Broken> {
        let mut bytes = part.bytes;
        if part.is_first {
            self.at = At::Begin;
        }
        if matches!(self.at, At::Begin) && !bytes.is_empty() {
            self.at = match bytes.split_to(1)[0] {
                CLOSE_SIGNAL => At::Closing(None),
                number => At::On(Channel::numbered(number)),
            };
        }
        match &mut self.at {
            At::On(Some(channel)) if !bytes.is_empty() => Ok(Some(Said::Data(*channel, bytes))),
            At::Begin | At::On(_) => Ok(None),
            At::Closing(closed) => {
                match (*closed, bytes.as_ref()) {
                    (_, []) => {}
                    (None, [number]) => *closed = Some(*number),
                    _ => return Err(Broken),
                }
                match (part.is_last, *closed) {
                    (false, _) => Ok(None),
                    (true, Some(number)) => Channel::numbered(number).map(Said::Closed).map(Some).ok_or(Broken),
                    (true, None) => Err(Broken),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_for_channels() {
        let data = |channel, text: &'static [u8]| Ok(Some(Said::Data(channel, Bytes::from_static(text))));
        for (name, parts, want) in [
            ("stdin", vec![&b"\x00ab"[..]], vec![data(Channel::Stdin, b"ab")]),
            (
                "in parts",
                vec![b"\x00", b"a", b"b"],
                vec![Ok(None), data(Channel::Stdin, b"a"), data(Channel::Stdin, b"b")],
            ),
            ("a size", vec![b"\x04{}"], vec![data(Channel::Resize, b"{}")]),
            ("nothing", vec![b""], vec![Ok(None)]),
            ("no channel", vec![b"\x07a", b"b"], vec![Ok(None), Ok(None)]),
            ("over", vec![b"\xff\x00"], vec![Ok(Some(Said::Closed(Channel::Stdin)))]),
            ("over in parts", vec![b"\xff", b"\x00"], vec![Ok(None), Ok(Some(Said::Closed(Channel::Stdin)))]),
            ("over, but what?", vec![b"\xff"], vec![Err(Broken)]),
            ("too much is over", vec![b"\xff\x00\x01"], vec![Err(Broken)]),
            ("what is not there is over", vec![b"\xff\x09"], vec![Err(Broken)]),
        ] {
            let mut channels = Channels::default();
            let last = parts.len() - 1;
            let said: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(at, text)| {
                    let bytes = Bytes::copy_from_slice(text);
                    channels.take(Part { bytes, is_text: false, is_first: at == 0, is_last: at == last })
                })
                .collect();
            assert_eq!(said, want, "{name}");
        }
    }
}
