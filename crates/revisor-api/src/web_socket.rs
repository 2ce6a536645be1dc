//! WebSockets (RFC 6455): who asks for one, the handshake, and the frames of both sides.
//!
//! The original serves watches so to those who ask for an upgrade, one message for each event, and takes nothing from the
//! client but pings and the wish to close (upstream: `WatchServer.HandleWS`). How such a connection is driven afterwards
//! is in `server/web_socket_connection.rs`. Ways into pods are served so as well, where both sides talk: see [`talk`].

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;

use crate::Body;

pub(crate) mod talk;

/// What the key of a client is answered with, behind it (RFC 6455, 1.3).
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The version of the protocol that is spoken.
const VERSION: &str = "13";

/// What the subprotocol begins with that carries a bearer token, for clients that cannot set headers.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The most that the payload of a control frame may have.
const MAX_CONTROL: usize = 125;

/// Goes on with a connection as a WebSocket once the head of the answer was sent: each chunk of the answer's body is a
/// message. One of the extensions of an answer.
#[derive(Clone)]
pub(crate) struct WebSocketUpgrade {
    pub(crate) upgrade: OnUpgrade,
    /// Whether messages are text, and not bytes.
    pub(crate) is_text: bool,
}

/// Whether a client asks for a WebSocket (upstream: `wsstream.IsWebSocketRequest`).
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let is_upgrade = headers.get_all(CONNECTION).iter().any(contains_upgrade);
    let upgrade = headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    upgrade && is_upgrade
}

fn contains_upgrade(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Takes the bearer token out of the subprotocols, where clients put it that cannot set headers, and puts it where
/// others put theirs (upstream: `websocket.ProtocolAuthenticator`). It counts only beside another subprotocol, which is
/// what the client is answered with.
pub(crate) fn take_bearer(headers: &mut HeaderMap) {
    if !is_asked_for(headers) || headers.contains_key(AUTHORIZATION) {
        return;
    }
    let mut token = None;
    let mut others = Vec::new();
    for protocol in protocols(headers) {
        match protocol.strip_prefix(BEARER_PROTOCOL) {
            Some(_) if token.is_some() => return,
            Some(encoded) => {
                let decoded = URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                let Some(decoded) = decoded.filter(|decoded| !decoded.is_empty()) else { return };
                token = Some(decoded);
            }
            None => others.push(protocol),
        }
    }
    let bearer = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
    let rest = HeaderValue::try_from(others.join(","));
    if let (Some(mut bearer), Ok(rest), false) = (bearer, rest, others.is_empty()) {
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, rest);
    }
}

/// The subprotocols that a client would speak, those first that it likes best.
pub(crate) fn protocols(headers: &HeaderMap) -> Vec<String> {
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let names = lists.flat_map(|list| list.split(',')).map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// The head of the answer that agrees to a WebSocket; or else the answer that refuses it, as the original's library does.
pub(crate) fn handshake(headers: &HeaderMap) -> Response<Body> {
    let key = match challenge(&Method::GET, headers) {
        Ok(key) => key,
        Err(refusal) => return *refusal,
    };
    if !has_origin(headers) {
        return refused(StatusCode::FORBIDDEN, "");
    }
    let protocols = protocols(headers);
    if protocols.len() > 1 {
        return refused(StatusCode::BAD_REQUEST, "");
    }
    agreed(&key, protocols.first().map(String::as_str))
}

/// The key of a client that asks for a WebSocket in the right words.
pub(crate) fn challenge(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, Box<Response<Body>>> {
    if *method != Method::GET {
        return Err(Box::new(refused(StatusCode::METHOD_NOT_ALLOWED, "bad method")));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
    let Some(key) = key else { return Err(Box::new(refused(StatusCode::BAD_REQUEST, "mismatch challenge/response"))) };
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != VERSION) {
        let mut refusal = refused(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        refusal.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        return Err(Box::new(refusal));
    }
    Ok(key.clone())
}

/// The head of the answer that agrees to a WebSocket, on which a subprotocol is spoken.
pub(crate) fn agreed(key: &HeaderValue, protocol: Option<&str>) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let head = response.headers_mut();
    head.insert(UPGRADE, HeaderValue::from_static("websocket"));
    head.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::try_from(accept_key(key.as_bytes())) {
        head.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(Ok(protocol)) = protocol.map(HeaderValue::try_from) {
        head.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    response
}

fn refused(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether the client says where it comes from. That may be anywhere: it shows who it is.
fn has_origin(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()).unwrap_or_default();
    origin.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() || origin.starts_with('/'))
}

fn accept_key(key: &[u8]) -> String {
    let mut sha1 = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    sha1.update(key);
    sha1.update(ACCEPT_SUFFIX.as_bytes());
    STANDARD.encode(sha1.finish())
}

/// What a frame of the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Text,
    Binary,
    Pong,
    /// The end, which is as it should be.
    Close,
}

/// A frame of the server: a whole message, and not masked.
pub(crate) fn frame(kind: FrameKind, payload: &[u8]) -> Bytes {
    let opcode = match kind {
        FrameKind::Text => 1,
        FrameKind::Binary => 2,
        FrameKind::Close => 8,
        FrameKind::Pong => 10,
    };
    let mut frame = BytesMut::with_capacity(payload.len() + 10);
    frame.put_u8(0x80 | opcode);
    match payload.len() {
        short @ 0..=125 => frame.put_u8(short as u8),
        middling @ 126..=0xffff => {
            frame.put_u8(126);
            frame.put_u16(middling as u16);
        }
        long => {
            frame.put_u8(127);
            frame.put_u64(long as u64);
        }
    }
    frame.put_slice(payload);
    frame.freeze()
}

/// The frame that says that all is over: 1000, a normal end.
pub(crate) fn close_frame() -> Bytes {
    frame(FrameKind::Close, &1000_u16.to_be_bytes())
}

/// What a client says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Ping(Vec<u8>),
    /// It closes, or says what no client may say.
    Close,
    /// A part of a message, for those who listen.
    Part(Part),
}

/// A part of a message, as it came: messages may be of any size, and nobody has to have them whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) bytes: Bytes,
    pub(crate) is_text: bool,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// Reads the frames of a client, of which nothing is kept but pings.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    head: Vec<u8>,
    /// How much of the payload of the frame at hand is still to come.
    left: u64,
    /// The ping at hand.
    ping: Option<Vec<u8>>,
    mask: [u8; 4],
    is_in_payload: bool,
    /// Whether messages are listened to.
    listens: bool,
    message: Option<Message>,
}

/// The message at hand, of somebody who is listened to.
#[derive(Debug)]
struct Message {
    is_text: bool,
    is_begun: bool,
    /// Whether the frame at hand is its last one.
    ends: bool,
    /// Whether the frame at hand is one of its own, and not one in between.
    is_at_hand: bool,
}

impl FrameReader {
    /// One that hands on messages, too.
    pub(crate) fn listening() -> FrameReader {
        FrameReader { listens: true, ..FrameReader::default() }
    }

    /// Takes what came; answers what has to be answered of it.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Vec<Received> {
        let mut received = Vec::new();
        while !bytes.is_empty() {
            if !self.is_in_payload {
                self.head.push(bytes[0]);
                bytes = &bytes[1..];
                match self.begin() {
                    Ok(()) => {}
                    Err(()) => {
                        received.push(Received::Close);
                        return received;
                    }
                }
            } else {
                let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                let (payload, rest) = bytes.split_at(size);
                self.left -= size as u64;
                bytes = rest;
                if self.ping.is_some() || self.listens {
                    let plain: Vec<u8> =
                        payload.iter().zip(self.mask.iter().cycle()).map(|(it, mask)| it ^ mask).collect();
                    self.mask.rotate_left(size % 4);
                    match &mut self.ping {
                        Some(ping) => ping.extend_from_slice(&plain),
                        None => received.extend(self.part(plain)),
                    }
                }
            }
            if self.is_in_payload && self.left == 0 {
                self.is_in_payload = false;
                match self.ping.take() {
                    Some(ping) => received.push(Received::Ping(ping)),
                    // Frames may be empty, and still end a message.
                    None => received.extend(self.part(Vec::new())),
                }
            }
        }
        received
    }

    /// What is known of the message at hand that was not told yet.
    fn part(&mut self, plain: Vec<u8>) -> Option<Received> {
        let message = self.message.as_mut().filter(|message| message.is_at_hand)?;
        let is_last = message.ends && self.left == 0;
        if plain.is_empty() && !is_last {
            return None;
        }
        let is_first = !std::mem::replace(&mut message.is_begun, true);
        let part = Part { bytes: plain.into(), is_text: message.is_text, is_first, is_last };
        if is_last {
            self.message = None;
        }
        Some(Received::Part(part))
    }

    /// Reads the head of a frame once it is complete; fails if the client closes, or breaks the rules: its frames are
    /// masked, and control frames are short and whole.
    fn begin(&mut self) -> Result<(), ()> {
        let [first, second, more @ ..] = self.head.as_slice() else { return Ok(()) };
        let (opcode, is_whole) = (first & 0x0f, first & 0x80 != 0);
        let (is_masked, short) = (second & 0x80 != 0, usize::from(second & 0x7f));
        if !is_masked || first & 0x70 != 0 {
            return Err(());
        }
        let length_bytes = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if more.len() < length_bytes + 4 {
            return Ok(());
        }
        let (length, mask) = more.split_at(length_bytes);
        let length = match length_bytes {
            0 => short as u64,
            _ => length.iter().fold(0, |length, byte| (length << 8) | u64::from(*byte)),
        };
        if opcode >= 8 && (!is_whole || length > MAX_CONTROL as u64) {
            return Err(());
        }
        self.ping = None;
        if let Some(message) = &mut self.message {
            message.is_at_hand = opcode == 0;
        }
        match (opcode, &mut self.message) {
            (9, _) => self.ping = Some(Vec::with_capacity(MAX_CONTROL)),
            (10, _) => {}
            // Text, bytes and their continuations are not always listened to.
            (0..=2, _) if !self.listens => {}
            (0, Some(message)) => message.ends = is_whole,
            (1 | 2, None) => {
                let is_text = opcode == 1;
                self.message = Some(Message { is_text, is_begun: false, ends: is_whole, is_at_hand: true });
            }
            _ => return Err(()),
        }
        self.mask.copy_from_slice(mask);
        self.left = length;
        self.is_in_payload = true;
        self.head.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
