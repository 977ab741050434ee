//! A socket that remembers when something was first written to it, and whether anything has come back.
//!
//! Between the decision to send and the write lies all that this thread has to do besides, which is the generator's own
//! lag and would be hidden if the decision were taken for the sending.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::Clock;

/// See the module.
pub(crate) struct Watched {
    stream: TcpStream,
    clock: Clock,
    seen: Arc<Seen>,
}

/// What was seen since the last request began.
#[derive(Default)]
pub(crate) struct Seen {
    /// Nanoseconds, plus one; 0 for never.
    written: AtomicU64,
    read: AtomicU64,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, clock: Clock) -> (Self, Arc<Seen>) {
        let seen = Arc::<Seen>::default();
        (Self { stream, clock, seen: seen.clone() }, seen)
    }
}

impl Seen {
    /// Another request begins.
    pub(crate) fn forget(&self) {
        self.written.store(0, Relaxed);
        self.read.store(0, Relaxed);
    }

    /// When its first byte was written.
    pub(crate) fn written(&self) -> Option<Duration> {
        self.written.load(Relaxed).checked_sub(1).map(Duration::from_nanos)
    }

    /// Whether anything has come back.
    pub(crate) fn has_read(&self) -> bool {
        self.read.load(Relaxed) > 0
    }

    fn wrote(&self, clock: Clock) {
        if self.written.load(Relaxed) == 0 {
            let nanos = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX - 1);
            self.written.store(nanos.saturating_add(1), Relaxed);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.seen.read.fetch_add((buf.filled().len() - before) as u64, Relaxed);
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(1..)) = written {
            self.seen.wrote(self.clock);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        if let Poll::Ready(Ok(1..)) = written {
            self.seen.wrote(self.clock);
        }
        written
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
