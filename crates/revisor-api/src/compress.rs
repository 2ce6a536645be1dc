//! Compresses large answers for clients that ask for it.
//!
//! Small answers cost more to compress than to send, so nothing up to [`GZIP_THRESHOLD`] is touched. A stream does
//! not know its size: its first bytes are gathered until they pass the threshold or it ends. Watches are never
//! compressed, because a compressor holds back what a watcher waits for.
//!
//! An answer is compressed in pieces that know nothing of each other, so that a piece which others were sent already is
//! found and not made again ([`CompressedPieces`]): the pages of a list, and those parts of it that did not change. The
//! pieces of one answer make one stream, whose checksum is put together of theirs.

mod fingerprint;
mod pieces;

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Response};

pub use self::pieces::CompressedPieces;
use self::pieces::Piece;
use crate::access_log::LongRunning;
use crate::body::{Body, ByteSource};

/// Answers of at most this many bytes are sent as they are.
pub const GZIP_THRESHOLD: usize = 128 * 1024;

/// How much is compressed at a time at most: a fraction of a millisecond of work, and a part of a list.
const STEP: usize = 64 * 1024;

/// How much is compressed at a time at least, unless it is the end: less would not shrink well.
const LEAST: usize = 16 * 1024;

/// The start of a stream: deflate, no name, no time, fast, of no system in particular.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff];

/// An empty block that is the last.
const LAST_BLOCK: [u8; 2] = [3, 0];

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
pub async fn maybe_compress(
    accepts_gzip: bool,
    pieces: &Arc<CompressedPieces>,
    response: Response<Body>,
) -> Response<Body> {
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
    let says_so = |vary: &HeaderValue| vary.to_str().is_ok_and(|vary| vary.contains("Accept-Encoding"));
    if !parts.headers.get_all(VARY).iter().any(says_so) {
        parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Response::from_parts(parts, Body::stream(GzipSource::new(head, body, pieces.clone())))
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

/// Compresses what a body brings, a piece at a time.
struct GzipSource {
    /// Chunks that were read before it was known that compression pays; last one first.
    head: Vec<Bytes>,
    body: Body,
    /// What of the current chunk is not compressed yet.
    chunk: Bytes,
    /// What was too little to be compressed.
    gathered: BytesMut,
    pieces: Arc<CompressedPieces>,
    /// Made for the first piece that nobody was sent before.
    compressor: Option<Compress>,
    /// The checksum of what was compressed so far.
    checksum: Hasher,
    length: u32,
    has_begun: bool,
    is_done: bool,
}

impl GzipSource {
    fn new(mut head: Vec<Bytes>, body: Body, pieces: Arc<CompressedPieces>) -> GzipSource {
        head.reverse();
        GzipSource {
            head,
            body,
            chunk: Bytes::new(),
            gathered: BytesMut::new(),
            pieces,
            compressor: None,
            checksum: Hasher::new(),
            length: 0,
            has_begun: false,
            is_done: false,
        }
    }

    /// Appends a piece of the answer to what is sent next.
    fn push(&mut self, plain: &[u8], out: &mut BytesMut) {
        let Piece { blocks, crc } = self.pieces.of(plain, || deflate(&mut self.compressor, plain));
        self.checksum.combine(&Hasher::new_with_initial_len(crc, plain.len() as u64));
        self.length = self.length.wrapping_add(plain.len() as u32);
        out.reserve(HEAD.len() + blocks.len());
        if !std::mem::replace(&mut self.has_begun, true) {
            out.put_slice(&HEAD);
        }
        out.put_slice(&blocks);
    }

    /// The next bytes to be compressed; `None` at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if self.chunk.is_empty() {
                let next = match self.head.pop() {
                    Some(chunk) => Some(chunk),
                    None => std::task::ready!(self.body.poll_next(cx)),
                };
                let Some(chunk) = next else {
                    let rest = std::mem::take(&mut self.gathered).freeze();
                    return Poll::Ready(Some(rest).filter(|rest| !rest.is_empty()));
                };
                self.chunk = chunk;
                continue;
            }
            if self.gathered.is_empty() && self.chunk.len() >= LEAST {
                return Poll::Ready(Some(self.chunk.split_to(self.chunk.len().min(STEP))));
            }
            let wanted = self.chunk.len().min(STEP - self.gathered.len());
            self.gathered.extend_from_slice(&self.chunk.split_to(wanted));
            if self.gathered.len() >= LEAST {
                return Poll::Ready(Some(std::mem::take(&mut self.gathered).freeze()));
            }
        }
    }
}

/// Compresses bytes so that they can stand before and behind any others.
fn deflate(compressor: &mut Option<Compress>, plain: &[u8]) -> Piece {
    // Level 1 is within a third of the best ratio on JSON, at a fraction of the work.
    let compressor = compressor.get_or_insert_with(|| Compress::new(Compression::new(1), false));
    compressor.reset();
    let mut blocks = Vec::with_capacity(plain.len() / 6 + 256);
    loop {
        let taken = usize::try_from(compressor.total_in()).unwrap_or_default();
        let room = blocks.capacity() - blocks.len();
        compressor
            .compress_vec(&plain[taken..], &mut blocks, FlushCompress::Sync)
            .expect("compressing from memory to memory does not fail");
        // Where there is room left, everything was written.
        if room > 0 && blocks.len() < blocks.capacity() {
            break;
        }
        blocks.reserve(plain.len() / 6 + 256);
    }
    blocks.shrink_to_fit();
    Piece { blocks: blocks.into(), crc: crc32fast::hash(plain) }
}

impl ByteSource for GzipSource {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(self.poll_piece(cx));
        let mut out = BytesMut::new();
        match piece {
            Some(piece) => self.push(&piece, &mut out),
            None => {
                self.is_done = true;
                out.put_slice(&LAST_BLOCK);
                out.put_u32_le(self.checksum.clone().finalize());
                out.put_u32_le(self.length);
            }
        }
        Poll::Ready(Some(out.freeze()))
    }

    fn is_done(&self) -> bool {
        self.is_done
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
        let pieces = Arc::new(CompressedPieces::default());
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
            let response = maybe_compress(accepts, &pieces, Response::new(body)).await;
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
        let pieces = Arc::new(CompressedPieces::default());
        let mut watch = Response::new(streamed(1_000_000));
        watch.extensions_mut().insert(LongRunning);
        let mut encoded = Response::new(Body::Full(text(1_000_000)));
        encoded.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
        for (name, response) in [("watch", watch), ("encoded", encoded)] {
            let response = maybe_compress(true, &pieces, response).await;
            assert_ne!(response.headers().get(CONTENT_ENCODING), Some(&HeaderValue::from_static("gzip")), "{name}");
            assert_eq!(collect(response.into_body()).await, text(1_000_000), "{name}");
        }
    }

    /// The gzip of a body that cannot be made smaller is one stream, whatever pieces it is made of.
    #[tokio::test]
    async fn noise_survives_in_pieces_of_any_size() {
        let pieces = Arc::new(CompressedPieces::default());
        let mut state = 1u64;
        let noise: Vec<u8> = (0..400_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        for size in [1, 999, 20_000, 70_000, 400_000] {
            let chunks = noise.chunks(size).map(Bytes::copy_from_slice).collect();
            let body = Body::stream(Hesitant { chunks, ready: false });
            let sent = collect(maybe_compress(true, &pieces, Response::new(body)).await.into_body()).await;
            let mut whole = Vec::new();
            // One member and nothing behind it.
            let mut decoder = flate2::bufread::GzDecoder::new(&sent[..]);
            decoder.read_to_end(&mut whole).expect("valid gzip");
            assert!(decoder.into_inner().is_empty(), "{size}");
            assert!(whole == noise, "{size}: the bytes survive");
        }
    }

    #[tokio::test]
    async fn the_same_answer_is_compressed_once() {
        let pieces = Arc::new(CompressedPieces::default());
        let mut sent = Vec::new();
        for _ in 0..2 {
            let response = maybe_compress(true, &pieces, Response::new(Body::Full(text(1_000_000)))).await;
            let mut body = response.into_body();
            let mut whole = Vec::new();
            while let Some(chunk) = std::future::poll_fn(|cx| body.poll_next(cx)).await {
                whole.extend_from_slice(&chunk);
            }
            sent.push(whole);
        }
        assert_eq!(sent[0], sent[1]);
        let mut compressor = None;
        for part in text(1_000_000).chunks(STEP) {
            pieces.of(part, || panic!("was compressed before"));
            assert!(!deflate(&mut compressor, part).blocks.is_empty());
        }
    }

    #[tokio::test]
    async fn a_small_stream_gets_a_length() {
        let response = maybe_compress(true, &Arc::default(), Response::new(streamed(25_000))).await;
        assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(25_000));
    }
}
