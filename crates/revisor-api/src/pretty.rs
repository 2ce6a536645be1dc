//! JSON laid out for people: two spaces a level, made while the compact text passes by.

use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::{Body, ByteSource};

/// Lays out compact JSON. Keeps only where it stands in the text, so it works on chunks of any size.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The last byte opened an object or array, of which it is not known yet whether it is empty.
    just_opened: bool,
}

impl Layout {
    /// Lays out the next part of the text.
    pub(crate) fn push(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            if self.in_string {
                out.push(byte);
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                continue;
            }
            let is_closing = matches!(byte, b'}' | b']');
            let is_first = std::mem::take(&mut self.just_opened);
            if is_first && !is_closing {
                self.depth += 1;
                self.new_line(out);
            } else if is_closing && !is_first {
                self.depth = self.depth.saturating_sub(1);
                self.new_line(out);
            }
            out.push(byte);
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.just_opened = true,
                b',' => self.new_line(out),
                b':' => out.push(b' '),
                _ => {}
            }
        }
    }

    fn new_line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

/// Lays out a whole body.
pub(crate) fn prettify(body: Body) -> Body {
    match body {
        Body::Full(text) => {
            let mut out = Vec::with_capacity(text.len() * 2);
            Layout::default().push(&text, &mut out);
            Body::from(out)
        }
        Body::Empty => Body::Empty,
        Body::Stream(source) => Body::stream(PrettySource { source, layout: Layout::default() }),
        observed @ Body::Observed(_) => observed,
    }
}

struct PrettySource {
    source: Box<dyn ByteSource>,
    layout: Layout,
}

impl ByteSource for PrettySource {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(chunk) = ready!(self.source.poll_next(cx)) else { return Poll::Ready(None) };
        let mut out = Vec::with_capacity(chunk.len() * 2);
        self.layout.push(&chunk, &mut out);
        Poll::Ready(Some(out.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_laid_out_however_it_is_cut() {
        let text = br#"{"a":[1,{"b":"x,{\"}"}],"c":{},"d":[],"e":null}"#;
        let want = "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,{\\\"}\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": null\n}";
        for size in 1..=text.len() {
            let mut layout = Layout::default();
            let mut out = Vec::new();
            text.chunks(size).for_each(|chunk| layout.push(chunk, &mut out));
            assert_eq!(String::from_utf8_lossy(&out), want, "in chunks of {size}");
        }
    }
}
