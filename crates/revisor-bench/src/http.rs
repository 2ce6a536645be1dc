//! Just enough HTTP/1.1 to read what API servers answer: a head, then a body by length or in chunks.
//!
//! Pure: bytes in, bytes out. `connection` owns the socket.

use anyhow::{Result, bail};

/// The longest head that is read.
const MAX_HEAD: usize = 32 * 1024;

/// The longest line that may announce a chunk.
const MAX_CHUNK_LINE: usize = 256;

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Bytes of the head, the empty line included.
    pub(crate) length: usize,
    pub(crate) body: Body,
}

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// That many bytes.
    Length(u64),
    /// The line with the size of the next chunk.
    ChunkSize,
    /// That many bytes of a chunk.
    ChunkData(u64),
    /// The end of the line behind a chunk's bytes.
    ChunkEnd,
    /// Lines behind the last chunk.
    Trailer,
    /// Nothing.
    Done,
}

impl Head {
    /// Reads the head at the start of `bytes`; `None` if it is not complete yet.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(end) = find(bytes, b"\r\n\r\n") else {
            if bytes.len() > MAX_HEAD {
                bail!("the head of an answer is longer than {MAX_HEAD} bytes");
            }
            return Ok(None);
        };
        let mut lines = bytes[..end].split(|&byte| byte == b'\n').map(|line| line.trim_ascii_end());
        let status_line = lines.next().unwrap_or_default();
        let status = status_line
            .strip_prefix(b"HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| code.parse().ok());
        let Some(status) = status else {
            bail!("an answer begins with {:?}", String::from_utf8_lossy(status_line));
        };
        let mut body = Body::Done;
        for line in lines {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                match std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()) {
                    Some(0) => body = Body::Done,
                    Some(length) => body = Body::Length(length),
                    None => bail!("a content-length is {:?}", String::from_utf8_lossy(value)),
                }
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
                body = Body::ChunkSize;
            }
        }
        Ok(Some(Self { status, length: end + 4, body }))
    }

    /// All headers of a complete head, by names in small letters.
    pub(crate) fn headers(head: &[u8]) -> Vec<(String, String)> {
        let text = String::from_utf8_lossy(head);
        let lines = text.split("\r\n").skip(1);
        lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect()
    }
}

impl Body {
    /// Takes what it can from `bytes`, gives the content to `sink`, and says how many bytes it took. What it leaves is
    /// the beginning of a line, or belongs to the next answer.
    pub(crate) fn decode(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> Result<usize> {
        let mut taken = 0;
        // Every turn takes at least one byte, or leaves the loop.
        loop {
            let rest = &bytes[taken..];
            if rest.is_empty() {
                return Ok(taken);
            }
            match *self {
                Self::Done => return Ok(taken),
                Self::Length(left) => {
                    let piece = content(rest, left, sink);
                    taken += piece;
                    *self = match left - piece as u64 {
                        0 => Self::Done,
                        left => Self::Length(left),
                    };
                }
                Self::ChunkData(left) => {
                    let piece = content(rest, left, sink);
                    taken += piece;
                    *self = match left - piece as u64 {
                        0 => Self::ChunkEnd,
                        left => Self::ChunkData(left),
                    };
                }
                Self::ChunkSize | Self::ChunkEnd | Self::Trailer => {
                    let Some(end) = rest.iter().take(MAX_CHUNK_LINE).position(|&byte| byte == b'\n') else {
                        if rest.len() >= MAX_CHUNK_LINE {
                            bail!("a line between chunks is longer than {MAX_CHUNK_LINE} bytes");
                        }
                        return Ok(taken);
                    };
                    *self = self.after_line(rest[..end].trim_ascii())?;
                    taken += end + 1;
                }
            }
        }
    }

    /// The state behind a line between chunks.
    fn after_line(self, line: &[u8]) -> Result<Self> {
        match self {
            Self::ChunkEnd if line.is_empty() => Ok(Self::ChunkSize),
            Self::Trailer if line.is_empty() => Ok(Self::Done),
            Self::Trailer => Ok(Self::Trailer),
            Self::ChunkSize => {
                let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
                match size {
                    Some(0) => Ok(Self::Trailer),
                    Some(size) => Ok(Self::ChunkData(size)),
                    None => bail!("the size of a chunk is {:?}", String::from_utf8_lossy(line)),
                }
            }
            _ => bail!("there is no line end behind a chunk"),
        }
    }
}

/// Passes on up to `left` bytes.
fn content(bytes: &[u8], left: u64, sink: &mut impl FnMut(&[u8])) -> usize {
    let piece = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    sink(&bytes[..piece]);
    piece
}

/// Where `needle` begins in `bytes`.
pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_when_complete() {
        let head = |status, length, body| Some(Head { status, length, body });
        for (text, want) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", head(200, 38, Body::Length(5))),
            ("HTTP/1.1 201 Created\r\ncontent-length:0\r\n\r\n", head(201, 42, Body::Done)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head(200, 47, Body::ChunkSize)),
            ("HTTP/1.1 204 No Content\r\n\r\n", head(204, 27, Body::Done)),
            ("HTTP/1.1 200 OK\r\nContent-Le", None),
            ("", None),
        ] {
            assert_eq!(Head::parse(text.as_bytes()).expect("it is well formed"), want, "{text}");
        }
        for text in ["HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"] {
            assert!(Head::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Head::parse(&vec![b'x'; MAX_HEAD + 1]).is_err(), "a head is bounded");
    }

    /// Feeds the text in pieces of every size, keeping what is left over, as a connection does.
    #[track_caller]
    fn check(start: Body, text: &str, want: &str, left_over: &str) {
        for size in 1..=text.len() {
            let mut body = start;
            let mut content = Vec::new();
            let mut buffer = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                buffer.extend_from_slice(piece);
                let taken = body.decode(&buffer, &mut |bytes| content.extend_from_slice(bytes)).expect("well formed");
                buffer.drain(..taken);
            }
            assert_eq!(body, Body::Done, "pieces of {size}");
            assert_eq!(String::from_utf8_lossy(&content), want, "pieces of {size}");
            assert_eq!(String::from_utf8_lossy(&buffer), left_over, "pieces of {size}");
        }
    }

    #[test]
    fn bodies_are_decoded_however_they_arrive() {
        check(Body::Length(5), "helloHTTP/1.1", "hello", "HTTP/1.1");
        check(Body::ChunkSize, "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\nHTTP", "hello world", "HTTP");
        check(Body::ChunkSize, "A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", "0123456789", "");
    }

    #[test]
    fn broken_chunks_are_refused() {
        for text in ["x\r\n", "5\r\nhellooo\r\n", "-1\r\n", &"1".repeat(MAX_CHUNK_LINE)] {
            let mut body = Body::ChunkSize;
            assert!(body.decode(text.as_bytes(), &mut |_| ()).is_err(), "{text}");
        }
    }
}
