//! Handshakes and frames.

use super::*;

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::try_from(*value).expect("a value"));
    }
    headers
}

const UPGRADE_LINES: [(&str, &str); 2] = [("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade")];

#[test]
fn handshakes_are_agreed_to_or_refused_as_the_original_does() {
    let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let version = ("sec-websocket-version", "13");
    let origin = ("origin", "https://127.0.0.1:6443");
    for (name, lines, want) in [
        ("all is there", vec![key, version, origin], 101),
        ("no key", vec![version, origin], 400),
        ("another version", vec![key, ("sec-websocket-version", "8"), origin], 400),
        ("no origin", vec![key, version], 403),
        ("an origin that is none", vec![key, version, ("origin", "null")], 403),
        ("one protocol", vec![key, version, origin, ("sec-websocket-protocol", "v1")], 101),
        ("two protocols", vec![key, version, origin, ("sec-websocket-protocol", "v1, v2")], 400),
    ] {
        let answered = handshake(&headers(&lines));
        assert_eq!(answered.status().as_u16(), want, "{name}");
        if want == 101 {
            assert_eq!(answered.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "{name}");
        }
    }
    assert!(is_asked_for(&headers(&UPGRADE_LINES)));
    assert!(!is_asked_for(&headers(&[("upgrade", "websocket"), ("connection", "close")])));
    assert!(!is_asked_for(&headers(&[("upgrade", "h2c"), ("connection", "upgrade")])));
}

#[test]
fn tokens_come_in_subprotocols_too() {
    let token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    for (name, protocols, want, left) in [
        ("beside another", format!("{token}, v1"), Some("Bearer secret"), "v1"),
        ("alone", token.to_owned(), None, token),
        ("none", "v1".to_owned(), None, "v1"),
    ] {
        let mut headers = headers(&[UPGRADE_LINES[0], UPGRADE_LINES[1], ("sec-websocket-protocol", &protocols)]);
        take_bearer(&mut headers);
        assert_eq!(headers.get(AUTHORIZATION).map(|value| value.to_str().expect("a text")), want, "{name}");
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], left, "{name}");
    }
}

#[test]
fn frames_tell_their_length() {
    for (length, head) in [
        (3, vec![0x81, 3]),
        (125, vec![0x81, 125]),
        (126, vec![0x81, 126, 0, 126]),
        (65_536, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let sent = frame(FrameKind::Text, &vec![b'x'; length]);
        assert_eq!(sent[..head.len()], head, "{length}");
        assert_eq!(sent.len(), head.len() + length, "{length}");
    }
    assert_eq!(&close_frame()[..], [0x88, 2, 0x03, 0xe8]);
}

#[test]
fn of_a_client_only_pings_and_the_end_are_heard() {
    let ping = [0x89, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2];
    let text = [0x81, 0x83, 1, 1, 1, 1, 9, 9, 9];
    let close = [0x88, 0x80, 0, 0, 0, 0];
    for (name, sent, want) in [
        ("a ping", ping.to_vec(), vec![Received::Ping(b"hi".to_vec())]),
        ("a text, a ping", [&text[..], &ping].concat(), vec![Received::Ping(b"hi".to_vec())]),
        ("the end", [&text[..], &close].concat(), vec![Received::Close]),
        ("not masked", vec![0x81, 0x03, 9, 9, 9], vec![Received::Close]),
        ("a long ping", vec![0x89, 0xfe, 0, 126, 0, 0, 0, 0], vec![Received::Close]),
    ] {
        let whole = FrameReader::default().take(&sent);
        assert_eq!(whole, want, "{name}");
        // The same if it comes byte by byte.
        let mut reader = FrameReader::default();
        let mut pieces = Vec::new();
        for byte in &sent {
            pieces.extend(reader.take(&[*byte]));
            if pieces.last() == Some(&Received::Close) {
                break;
            }
        }
        assert_eq!(pieces, want, "{name} in pieces");
    }
}

#[test]
fn who_listens_hears_messages_in_parts() {
    let frame = |first: u8, payload: &[u8]| {
        let mask = [1, 2, 3, 4];
        let masked = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        [first, 0x80 | payload.len() as u8].into_iter().chain(mask).chain(masked).collect::<Vec<u8>>()
    };
    let sent = [
        frame(0x82, b"whole"),
        // One in two frames, with a ping in between.
        frame(0x01, b"first"),
        frame(0x89, b"hi"),
        frame(0x80, b" second"),
        frame(0x82, b""),
    ]
    .concat();
    for size in 1..=sent.len() {
        let mut reader = FrameReader::listening();
        let (mut messages, mut pings) = (Vec::new(), 0);
        for received in sent.chunks(size).flat_map(|piece| reader.take(piece)) {
            match received {
                Received::Part(part) => {
                    if part.is_first {
                        messages.push((Vec::new(), part.is_text, false));
                    }
                    let (bytes, _, is_over) = messages.last_mut().expect("has begun");
                    assert!(!*is_over, "{size}");
                    bytes.extend_from_slice(&part.bytes);
                    *is_over = part.is_last;
                }
                Received::Ping(payload) => {
                    assert_eq!(payload, b"hi", "{size}");
                    pings += 1;
                }
                Received::Close => panic!("nobody closed: {size}"),
            }
        }
        let want =
            [(b"whole".to_vec(), false, true), (b"first second".to_vec(), true, true), (Vec::new(), false, true)];
        assert_eq!((messages.as_slice(), pings), (want.as_slice(), 1), "{size}");
    }
    for (name, sent) in [
        ("a continuation of nothing", frame(0x80, b"x")),
        ("a message within a message", [frame(0x02, b"x"), frame(0x82, b"y")].concat()),
    ] {
        assert_eq!(FrameReader::listening().take(&sent).last(), Some(&Received::Close), "{name}");
    }
}
