//! The streams between a connection's layers: one below TLS that listens in, one above that is lenient about endings.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// How many bytes of a stream are remembered.
const REMEMBERED: usize = 5;

/// A stream that remembers how the other side began, to tell afterwards what it spoke if it was not TLS.
#[derive(Debug)]
pub(crate) struct Overheard {
    stream: TcpStream,
    beginning: [u8; REMEMBERED],
    known: usize,
}

impl Overheard {
    pub(crate) fn new(stream: TcpStream) -> Overheard {
        Overheard { stream, beginning: [0; REMEMBERED], known: 0 }
    }

    /// The first bytes that were read, as far as there are any.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.beginning[..self.known]
    }
}

impl AsyncRead for Overheard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let known = self.known;
        if known < REMEMBERED {
            let read = &buf.filled()[before..];
            let taken = read.len().min(REMEMBERED - known);
            self.beginning[known..known + taken].copy_from_slice(&read[..taken]);
            self.known += taken;
        }
        polled
    }
}

impl AsyncWrite for Overheard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A TLS stream that takes the end of the connection for the end of the data.
///
/// Many servers hang up without the message that says so. Whether an answer is whole is decided by its length or, where
/// it has none, by its JSON; nothing is gained by refusing it here.
pub(crate) struct Unceremonious(pub(crate) TlsStream<Overheard>);

impl AsyncRead for Unceremonious {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.0).poll_read(cx, buf) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            other => other,
        }
    }
}

impl AsyncWrite for Unceremonious {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
