//! A conversation with a kubelet over SPDY: a stream for each that is wanted, what is said on them, and how it ends
//! (upstream: `streamProtocolV4`).

use std::convert::Infallible;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use revisor_proxy::spdy::{self, Frame, FrameReader, FrameWriter, StreamId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Wanted;
use super::channels::{Channel, Said};
use super::protocol::{Outcome, Protocol};
use crate::web_socket::talk::{CHUNK, QUEUE};

/// How long a kubelet may take to agree to streams (upstream: `createStreamResponseTimeout`).
const OPENING: Duration = Duration::from_secs(30);

/// How often it is asked whether it is there.
const PING_PERIOD: Duration = Duration::from_secs(5);

/// How long a command may go on whose client has gone. Its input has ended by then.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// How long a kubelet may take to hear the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// The most that is taken of what a kubelet says of an error.
const MAX_ERROR: usize = 1024 * 1024;

/// Which stream is for what.
#[derive(Debug, Clone, Copy)]
struct Streams {
    error: StreamId,
    stdin: Option<StreamId>,
    stdout: Option<StreamId>,
    stderr: Option<StreamId>,
    resize: Option<StreamId>,
}

impl Streams {
    /// Opens what is wanted, in the order of the original: what has to be said for it.
    fn open(writer: &mut FrameWriter, protocol: Protocol, wanted: Wanted) -> (Streams, Bytes) {
        let mut opening = BytesMut::new();
        let mut open = |kind: &str| {
            let (stream, frame) = writer.open(&[("streamtype", kind)]);
            opening.extend_from_slice(&frame);
            stream
        };
        let streams = Streams {
            error: open("error"),
            stdin: wanted.stdin.then(|| open("stdin")),
            stdout: wanted.stdout.then(|| open("stdout")),
            // A terminal has one output.
            stderr: (wanted.stderr && !wanted.tty).then(|| open("stderr")),
            resize: (wanted.tty && protocol >= Protocol::V3).then(|| open("resize")),
        };
        (streams, opening.freeze())
    }

    fn all(self) -> impl Iterator<Item = StreamId> {
        [Some(self.error), self.stdin, self.stdout, self.stderr, self.resize].into_iter().flatten()
    }
}

/// Lets a client talk with a kubelet that has just agreed to; how the command ended.
pub(super) async fn converse(
    kubelet: impl AsyncRead + AsyncWrite + Unpin,
    protocol: Protocol,
    wanted: Wanted,
    heard: &mut mpsc::Receiver<Said>,
    out: &mpsc::Sender<Bytes>,
) -> Outcome {
    let (from_kubelet, to_kubelet) = tokio::io::split(kubelet);
    let mut writer = FrameWriter::default();
    let (streams, opening) = Streams::open(&mut writer, protocol, wanted);
    let mut sink = Sink { to_kubelet, is_whole: true };
    let (frames, queue) = mpsc::channel(QUEUE);
    let (ready, is_ready) = oneshot::channel();
    let (input_over, is_input_over) = oneshot::channel();
    let mut hearing = Hearing {
        protocol,
        streams,
        unanswered: streams.all().collect(),
        open: streams.all().collect(),
        error: Vec::new(),
        ready: Some(ready),
        input_over: Some(input_over),
    };
    let outcome = tokio::select! {
        outcome = hearing.run(from_kubelet, out, &frames) => outcome,
        () = say(streams, is_ready, is_input_over, heard, &frames) => Outcome::Failed("the client has gone".to_owned()),
        never = sink.run(opening, queue, &mut writer) => match never {},
    };
    let _ = tokio::time::timeout(FAREWELL, sink.end(&hearing.open)).await;
    outcome
}

/// What a kubelet is told.
struct Sink<W> {
    to_kubelet: W,
    /// Whether the last frame was written to its end.
    is_whole: bool,
}

impl<W: AsyncWrite + Unpin> Sink<W> {
    /// Says what stands in a queue, and pings now and then. A kubelet that listens no more may still have something to
    /// say, so this does not end.
    async fn run(&mut self, opening: Bytes, mut queue: mpsc::Receiver<Bytes>, writer: &mut FrameWriter) -> Infallible {
        let mut pings = tokio::time::interval_at(Instant::now() + PING_PERIOD, PING_PERIOD);
        let mut frame = opening;
        while self.write(&frame).await.is_ok() {
            frame = tokio::select! {
                Some(next) = queue.recv() => next,
                _ = pings.tick() => writer.ping(),
            };
        }
        std::future::pending().await
    }

    async fn write(&mut self, frame: &[u8]) -> std::io::Result<()> {
        self.is_whole = false;
        self.to_kubelet.write_all(frame).await?;
        self.to_kubelet.flush().await?;
        self.is_whole = true;
        Ok(())
    }

    /// Takes leave, in good order if the kubelet would understand it.
    async fn end(&mut self, open: &[StreamId]) {
        if self.is_whole {
            let mut farewell: Vec<u8> = open.iter().flat_map(|stream| spdy::reset(*stream)).collect();
            farewell.extend_from_slice(&spdy::go_away());
            let _ = self.write(&farewell).await;
        }
        let _ = self.to_kubelet.shutdown().await;
    }
}

/// Hands on what a client says once the kubelet is ready for it; to its end, and for a while beyond.
async fn say(
    streams: Streams,
    is_ready: oneshot::Receiver<()>,
    mut is_input_over: oneshot::Receiver<()>,
    heard: &mut mpsc::Receiver<Said>,
    frames: &mpsc::Sender<Bytes>,
) {
    if is_ready.await.is_err() {
        return std::future::pending().await;
    }
    let mut stdin = streams.stdin;
    loop {
        let said = tokio::select! {
            said = heard.recv() => said,
            // What nobody takes is not offered any more.
            _ = &mut is_input_over, if stdin.is_some() => Some(Said::Closed(Channel::Stdin)),
        };
        let has_gone = said.is_none();
        let frame = match said {
            Some(Said::Data(Channel::Stdin, bytes)) => stdin.map(|stream| spdy::data(stream, &bytes, false)),
            Some(Said::Data(Channel::Resize, bytes)) => streams.resize.map(|stream| spdy::data(stream, &bytes, false)),
            None | Some(Said::Closed(Channel::Stdin)) => stdin.take().map(|stream| spdy::data(stream, &[], true)),
            Some(_) => None,
        };
        if let Some(frame) = frame {
            let _ = frames.send(frame).await;
        }
        if has_gone {
            return tokio::time::sleep(LEFT_ALONE).await;
        }
    }
}

/// What a kubelet says, until it has said all.
struct Hearing {
    protocol: Protocol,
    streams: Streams,
    /// Streams that the kubelet has not agreed to yet.
    unanswered: Vec<StreamId>,
    /// Streams on which it may still say something.
    open: Vec<StreamId>,
    error: Vec<u8>,
    /// Told when the kubelet has agreed to all streams.
    ready: Option<oneshot::Sender<()>>,
    /// Told when it takes no more input.
    input_over: Option<oneshot::Sender<()>>,
}

impl Hearing {
    async fn run(
        &mut self,
        mut from_kubelet: impl AsyncRead + Unpin,
        out: &mpsc::Sender<Bytes>,
        frames: &mpsc::Sender<Bytes>,
    ) -> Outcome {
        let deadline = Instant::now() + OPENING;
        let mut reader = FrameReader::default();
        let mut buffer = BytesMut::new();
        while !self.is_over() {
            buffer.reserve(CHUNK);
            let reading = from_kubelet.read_buf(&mut buffer);
            let read = if self.unanswered.is_empty() {
                reading.await
            } else {
                match tokio::time::timeout_at(deadline, reading).await {
                    Ok(read) => read,
                    Err(_) => return Outcome::Failed("Timeout occurred".to_owned()),
                }
            };
            if !read.is_ok_and(|count| count > 0) {
                break;
            }
            let said = match reader.take(buffer.split().freeze()) {
                Ok(said) => said,
                Err(error) => return Outcome::Failed(error.to_string()),
            };
            for frame in said {
                match self.take(frame, out, frames).await {
                    Ok(true) => {}
                    Ok(false) => self.open.clear(),
                    Err(why) => return Outcome::Failed(why),
                }
            }
        }
        if !self.unanswered.is_empty() {
            return Outcome::Failed("unexpected EOF".to_owned());
        }
        // A connection that ends is the end of all streams: what was said by then is what there was to say.
        self.protocol.outcome(&self.error)
    }

    /// Takes one thing that the kubelet said; whether it says more.
    async fn take(
        &mut self,
        frame: Frame,
        out: &mpsc::Sender<Bytes>,
        frames: &mpsc::Sender<Bytes>,
    ) -> Result<bool, String> {
        match frame {
            Frame::Reply { stream, is_last } => {
                self.unanswered.retain(|waiting| *waiting != stream);
                if self.unanswered.is_empty() {
                    self.ready.take().map(|ready| ready.send(()));
                }
                if is_last {
                    self.end(stream);
                }
            }
            Frame::Data { stream, bytes, is_last } => {
                if !bytes.is_empty() && self.open.contains(&stream) {
                    self.hear(stream, &bytes, out).await;
                }
                if is_last {
                    self.end(stream);
                }
            }
            Frame::Reset { stream } if self.unanswered.contains(&stream) => return Err("Stream reset".to_owned()),
            Frame::Reset { stream } => self.end(stream),
            Frame::Ping(id) => {
                // Whoever cannot be told anything is not told this either: what they say is more important.
                if let Some(pong) = spdy::pong(id) {
                    let _ = frames.try_send(pong);
                }
            }
            Frame::GoAway => return Ok(false),
        }
        Ok(true)
    }

    async fn hear(&mut self, stream: StreamId, bytes: &[u8], out: &mpsc::Sender<Bytes>) {
        let channel = match Some(stream) {
            it if it == self.streams.stdout => Channel::Stdout,
            it if it == self.streams.stderr => Channel::Stderr,
            _ => {
                if stream == self.streams.error {
                    let room = MAX_ERROR - self.error.len();
                    self.error.extend_from_slice(&bytes[..room.min(bytes.len())]);
                }
                return;
            }
        };
        // A client that has gone misses it, and the command goes on.
        let _ = out.send(channel.frame(bytes)).await;
    }

    fn end(&mut self, stream: StreamId) {
        self.open.retain(|open| *open != stream);
        if Some(stream) == self.streams.stdin {
            self.input_over.take().map(|over| over.send(()));
        }
    }

    fn is_over(&self) -> bool {
        let Streams { error, stdout, stderr, .. } = self.streams;
        let mut said = [Some(error), stdout, stderr].into_iter().flatten();
        self.open.is_empty() || (self.unanswered.is_empty() && !said.any(|stream| self.open.contains(&stream)))
    }
}
