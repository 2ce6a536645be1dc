//! A kubelet that speaks SPDY/3.1 and nothing else: commands that do what a test asks for, and a port that says again what
//! it is told. It reads headers with the dictionary that every SPDY has, and keeps no windows, as no kubelet does.

use std::collections::HashMap;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::behind::{Asked, header};

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const FIN: u8 = 1;

const SUCCESS: &str = r#"{"metadata":{},"status":"Success"}"#;
const EXIT_3: &str = r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;

/// A connection on which streams have been opened.
struct Session {
    stream: Asked,
    headers: Decompress,
    replies: Compress,
    /// What each stream is for.
    kinds: HashMap<u32, String>,
}

/// What the other side says.
enum Said {
    Opened,
    Data { stream: u32, bytes: Vec<u8>, is_last: bool },
    End,
}

/// Runs the command of a request: `cat` says again what it reads, `fail` ends with 3, `size` tells how large its terminal
/// is, `greet` says hello.
pub(super) async fn run_command(stream: Asked, head: &str, query: &str) {
    let mut session = Session::accept(stream, head, "v4.channel.k8s.io").await;
    let is_asked = |what: &str| query.split('&').any(|pair| pair == what);
    let wanted = 1 + ["input=1", "output=1", "error=1", "tty=1"].iter().filter(|it| is_asked(it)).count();
    while session.kinds.len() < wanted {
        assert!(matches!(session.hear().await, Said::Opened), "nothing is said before all streams are there");
    }
    let status = if is_asked("command=fail") {
        session.say("stdout", b"out\n", false).await;
        session.say("stderr", b"err\n", false).await;
        EXIT_3
    } else if is_asked("command=cat") || is_asked("command=size") {
        let listened = if is_asked("command=cat") { "stdin" } else { "resize" };
        loop {
            match session.hear().await {
                Said::Data { stream, bytes, is_last } if session.kinds[&stream] == listened => {
                    session.say("stdout", &bytes, false).await;
                    if is_last || listened == "resize" {
                        break;
                    }
                }
                Said::End => return,
                _ => {}
            }
        }
        SUCCESS
    } else {
        session.say("stdout", b"hello\n", false).await;
        SUCCESS
    };
    for output in ["stdout", "stderr"] {
        session.say(output, b"", true).await;
    }
    session.say("error", status.as_bytes(), false).await;
    session.say("error", b"", true).await;
    while !matches!(session.hear().await, Said::End) {}
}

/// Forwards ports to somebody who says again what they are told.
pub(super) async fn echo_ports(stream: Asked, head: &str) {
    let mut session = Session::accept(stream, head, "portforward.k8s.io").await;
    loop {
        match session.hear().await {
            Said::Data { stream, bytes, is_last } if session.kinds[&stream] == "data" => {
                session.frame(stream, if is_last { FIN } else { 0 }, &bytes).await;
            }
            Said::End => return,
            _ => {}
        }
    }
}

impl Session {
    async fn accept(mut stream: Asked, head: &str, protocol: &str) -> Session {
        assert_eq!(header(head, "upgrade"), Some("SPDY/3.1"), "{head}");
        assert!(head.starts_with("POST "), "{head}");
        let is_offered =
            head.lines().any(|line| line.to_lowercase() == format!("x-stream-protocol-version: {protocol}"));
        assert!(is_offered, "{head}");
        let agreed = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
             X-Stream-Protocol-Version: {protocol}\r\n\r\n"
        );
        let _ = stream.write_all(agreed.as_bytes()).await;
        let mut replies = Compress::new(Compression::default(), true);
        replies.set_dictionary(&revisor_proxy::spdy::dictionary()).expect("nothing was packed yet");
        Session { stream, headers: Decompress::new(true), replies, kinds: HashMap::new() }
    }

    /// The next thing that matters.
    async fn hear(&mut self) -> Said {
        loop {
            let mut head = [0; 8];
            if self.stream.read_exact(&mut head).await.is_err() {
                return Said::End;
            }
            let length = usize::from(head[5]) << 16 | usize::from(head[6]) << 8 | usize::from(head[7]);
            let mut payload = vec![0; length];
            if self.stream.read_exact(&mut payload).await.is_err() {
                return Said::End;
            }
            let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            if first & 0x8000_0000 == 0 {
                return Said::Data { stream: first, bytes: payload, is_last: head[4] & FIN != 0 };
            }
            let number = || u32::from_be_bytes(payload[..4].try_into().expect("four bytes"));
            match u16::from_be_bytes([head[2], head[3]]) {
                SYN_STREAM => {
                    let stream = number();
                    let headers = self.unpack(&payload[10..]);
                    let kind =
                        headers.into_iter().find(|(name, _)| name == "streamtype").expect("streams say what for");
                    self.kinds.insert(stream, kind.1);
                    let mut reply = Vec::with_capacity(256);
                    reply.extend_from_slice(&stream.to_be_bytes());
                    // No headers.
                    let packed = self.replies.compress_vec(&[0; 4], &mut reply, FlushCompress::Sync);
                    packed.expect("packing does not fail");
                    self.control(SYN_REPLY, &reply).await;
                    return Said::Opened;
                }
                PING => self.control(PING, &payload).await,
                GOAWAY => return Said::End,
                _ => {}
            }
        }
    }

    /// The headers of a stream.
    fn unpack(&mut self, mut packed: &[u8]) -> Vec<(String, String)> {
        let mut plain = Vec::with_capacity(4096);
        while !packed.is_empty() {
            let before = self.headers.total_in();
            if let Err(error) = self.headers.decompress_vec(packed, &mut plain, FlushDecompress::Sync) {
                error.needs_dictionary().expect("headers are packed");
                self.headers.set_dictionary(&revisor_proxy::spdy::dictionary()).expect("the dictionary of SPDY/3.1");
            }
            packed = &packed[usize::try_from(self.headers.total_in() - before).expect("is short")..];
        }
        let mut rest = plain.as_slice();
        let number = |rest: &mut &[u8]| {
            let (number, more) = rest.split_first_chunk::<4>().expect("a number");
            *rest = more;
            u32::from_be_bytes(*number) as usize
        };
        let count = number(&mut rest);
        let mut text = || {
            let length = number(&mut rest);
            let (text, more) = rest.split_at(length);
            let text = String::from_utf8(text.to_vec()).expect("a text");
            rest = more;
            text
        };
        (0..count).map(|_| (text(), text())).collect()
    }

    /// Says something on the stream for this, if there is one.
    async fn say(&mut self, kind: &str, bytes: &[u8], is_last: bool) {
        let stream = self.kinds.iter().find(|(_, known)| *known == kind).map(|(stream, _)| *stream);
        if let Some(stream) = stream {
            self.frame(stream, if is_last { FIN } else { 0 }, bytes).await;
        }
    }

    async fn control(&mut self, kind: u16, payload: &[u8]) {
        self.frame(0x8003_0000 | u32::from(kind), 0, payload).await;
    }

    async fn frame(&mut self, first: u32, flags: u8, payload: &[u8]) {
        let mut frame = first.to_be_bytes().to_vec();
        frame.push(flags);
        frame.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        frame.extend_from_slice(payload);
        let _ = self.stream.write_all(&frame).await;
    }
}
