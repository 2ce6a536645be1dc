//! Compresses large answers for clients that ask for it.
//!
//! Small answers cost more to compress than to send, so nothing up to [`GZIP_THRESHOLD`] is touched. A stream does
//! not know its size: its first bytes are gathered until they pass the threshold or it ends. Watches are never
//! compressed, because a compressor holds back what a watcher waits for.

use std::io::Write;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Response};

use crate::access_log::LongRunning;
use crate::body::{Body, ByteSource};

/// Answers of at most this many bytes are sent as they are.
pub const GZIP_THRESHOLD: usize = 128 * 1024;

/// How much is compressed at a time: about a tenth of a millisecond of work.
const STEP: usize = 32 * 1024;

/// The output is handed on when it has grown to this size.
const FLUSH_AT: usize = 16 * 1024;

/// Whether `Accept-Encoding` asks for gzip. As in the original: by that name alone and without a weight, in the first of
/// such headers.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let value = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(',').any(|coding| coding.trim() == "gzip")
}

/// The same answer, compressed if the client takes that and the body is worth it.
///
/// Waits until a streamed body has shown whether it passes the threshold. Answers marked [`LongRunning`] and
/// answers that are encoded already are passed through.
pub async fn maybe_compress(accepts_gzip: bool, response: Response<Body>) -> Response<Body> {
    let untouchable =
        response.headers().contains_key(CONTENT_ENCODING) || response.extensions().get::<LongRunning>().is_some();
    if !accepts_gzip || untouchable {
        return response;
    }
    let (mut parts, mut body) = response.into_parts();
    let known = http_body::Body::size_hint(&body).exact();
    if known.is_some_and(|size| size <= GZIP_THRESHOLD as u64) {
        return Response::from_parts(parts, body);
    }
    let head = if known.is_some() { Vec::new() } else { gather(&mut body).await };
    let gathered: usize = head.iter().map(Bytes::len).sum();
    if known.is_none() && gathered <= GZIP_THRESHOLD {
        return Response::from_parts(parts, small(head, gathered, body));
    }
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, Body::stream(GzipSource::new(head, body)))
}

/// The first chunks of `body`: all of them, or as many as pass the threshold.
async fn gather(body: &mut Body) -> Vec<Bytes> {
    let mut head = Vec::new();
    let mut size = 0;
    while size <= GZIP_THRESHOLD {
        let Some(chunk) = std::future::poll_fn(|cx| body.poll_next(cx)).await else { break };
        size += chunk.len();
        head.push(chunk);
    }
    head
}

/// A stream that turned out to be small and is complete: its bytes in one piece, so that they carry a length. The
/// emptied body stays alive behind them, because dropping it tells its observers that the answer is over.
fn small(head: Vec<Bytes>, size: usize, ended: Body) -> Body {
    let mut whole = Vec::with_capacity(size);
    for chunk in head {
        whole.extend_from_slice(&chunk);
    }
    Body::from(whole).on_end(move |_| drop(ended))
}

/// Compresses what a body brings, a step at a time.
struct GzipSource {
    /// Chunks that were read before it was known that compression pays; last one first.
    head: Vec<Bytes>,
    body: Body,
    /// What of the current chunk is not compressed yet.
    chunk: Bytes,
    /// Gone when the last bytes were written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipSource {
    fn new(mut head: Vec<Bytes>, body: Body) -> GzipSource {
        head.reverse();
        // Level 1 is within a third of the best ratio on JSON, at a fraction of the work.
        let encoder = GzEncoder::new(Vec::with_capacity(FLUSH_AT + STEP / 4), Compression::new(1));
        GzipSource { head, body, chunk: Bytes::new(), encoder: Some(encoder) }
    }
}

impl ByteSource for GzipSource {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let Some(encoder) = &mut self.encoder else { return Poll::Ready(None) };
            if self.chunk.is_empty() {
                let next = match self.head.pop() {
                    Some(chunk) => Some(chunk),
                    None => std::task::ready!(self.body.poll_next(cx)),
                };
                let Some(chunk) = next else {
                    let encoder = self.encoder.take().expect("looked at above");
                    let rest = encoder.finish().expect("writing to memory does not fail");
                    return Poll::Ready(Some(rest.into()));
                };
                self.chunk = chunk;
                continue;
            }
            let step = self.chunk.len().min(STEP);
            encoder.write_all(&self.chunk[..step]).expect("writing to memory does not fail");
            self.chunk.advance(step);
            if encoder.get_ref().len() >= FLUSH_AT {
                let full = std::mem::replace(encoder.get_mut(), Vec::with_capacity(FLUSH_AT + STEP / 4));
                return Poll::Ready(Some(full.into()));
            }
        }
    }

    fn is_done(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn accept_encoding() {
        for (header, want) in [
            ("", false),
            ("gzip", true),
            ("GZIP", false),
            ("gzip, deflate", true),
            ("deflate, gzip", true),
            ("gzip;q=1", false),
            ("gzip;q=0", false),
            ("*", false),
            ("identity", false),
            ("gzippy", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(header));
            assert_eq!(accepts_gzip(&headers), want, "{header:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    /// Yields `Pending` before every chunk, as a source that waits for its data does.
    struct Hesitant {
        chunks: Vec<Bytes>,
        ready: bool,
    }

    impl ByteSource for Hesitant {
        fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
            self.ready = !self.ready;
            if self.ready {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready((!self.chunks.is_empty()).then(|| self.chunks.remove(0)))
        }
    }

    fn text(size: usize) -> Bytes {
        (0..size).map(|at| b'a' + (at / 7 % 23) as u8).collect::<Vec<u8>>().into()
    }

    fn streamed(size: usize) -> Body {
        let whole = text(size);
        let chunks = (0..size).step_by(10_000).map(|at| whole.slice(at..size.min(at + 10_000))).collect();
        Body::stream(Hesitant { chunks, ready: false })
    }

    async fn collect(mut body: Body) -> Vec<u8> {
        let mut whole = Vec::new();
        while let Some(chunk) = std::future::poll_fn(|cx| body.poll_next(cx)).await {
            assert!(chunk.len() <= GZIP_THRESHOLD * 8 || whole.is_empty(), "chunks stay bounded");
            whole.extend_from_slice(&chunk);
        }
        whole
    }

    #[tokio::test]
    async fn threshold() {
        for (name, accepts, body, size, compressed) in [
            ("full at the threshold", true, Body::Full(text(GZIP_THRESHOLD)), GZIP_THRESHOLD, false),
            ("full above", true, Body::Full(text(GZIP_THRESHOLD + 1)), GZIP_THRESHOLD + 1, true),
            ("full, many steps", true, Body::Full(text(3_000_001)), 3_000_001, true),
            ("full above, not asked for", false, Body::Full(text(GZIP_THRESHOLD + 1)), GZIP_THRESHOLD + 1, false),
            ("stream below", true, streamed(100_000), 100_000, false),
            ("stream at the threshold", true, streamed(GZIP_THRESHOLD), GZIP_THRESHOLD, false),
            ("stream above", true, streamed(GZIP_THRESHOLD + 1), GZIP_THRESHOLD + 1, true),
            ("stream far above", true, streamed(3_000_001), 3_000_001, true),
            ("observed stream above", true, streamed(1_000_000).on_end(|_| ()), 1_000_000, true),
            ("empty", true, Body::Empty, 0, false),
        ] {
            let response = maybe_compress(accepts, Response::new(body)).await;
            let encoding = response.headers().get(CONTENT_ENCODING).cloned();
            assert_eq!(encoding.is_some(), compressed, "{name}");
            assert_eq!(response.headers().contains_key(VARY), compressed, "{name}");
            let sent = collect(response.into_body()).await;
            let mut whole = Vec::new();
            if compressed {
                assert!(sent.len() < size / 4, "{name}: {} bytes", sent.len());
                flate2::read::GzDecoder::new(&sent[..]).read_to_end(&mut whole).expect("valid gzip");
            } else {
                whole = sent;
            }
            assert!(whole == text(size), "{name}: the bytes survive");
        }
    }

    #[tokio::test]
    async fn watches_and_encoded_answers_pass_through() {
        let mut watch = Response::new(streamed(1_000_000));
        watch.extensions_mut().insert(LongRunning);
        let mut encoded = Response::new(Body::Full(text(1_000_000)));
        encoded.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
        for (name, response) in [("watch", watch), ("encoded", encoded)] {
            let response = maybe_compress(true, response).await;
            assert_ne!(response.headers().get(CONTENT_ENCODING), Some(&HeaderValue::from_static("gzip")), "{name}");
            assert_eq!(collect(response.into_body()).await, text(1_000_000), "{name}");
        }
    }

    #[tokio::test]
    async fn a_small_stream_gets_a_length() {
        let response = maybe_compress(true, Response::new(streamed(25_000))).await;
        assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(25_000));
    }
}
