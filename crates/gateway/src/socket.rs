//! A client's socket, shared by hyper, which reads and writes it, and by whoever must know whether the client is
//! still there.
//!
//! hyper notices that a client has left only while it reads, and it does not read while a request body waits unread
//! or a second request is in the pipe. The kernel knows: it reports the peer's close (EPOLLRDHUP) whether or not
//! there is data before it, and tokio keeps that apart from readability. A client that closes only its sending half
//! counts as gone, as with HAProxy's `abortonclose` and hyper's default.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use socket2::SockRef;
use tidegate_engine::Timestamp;
use tidegate_tower::Clock;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::ahead::{Ahead, Budget, CHUNK};

pub(crate) struct Socket {
    stream: TcpStream,
    ahead: Ahead,
    clock: Clock,
    /// When the connection became idle, or, if a head has begun since, when that began.
    since: AtomicU64,
    /// The first bytes of a request head have come, the rest has not.
    in_head: AtomicBool,
    /// It speaks HTTP/2, where bytes between requests need not be the beginning of one.
    http2: AtomicBool,
    /// Requests being served.
    requests: AtomicU32,
    /// Of those, the ones whose answer has begun.
    answering: AtomicU32,
    /// Request bodies on their way to an upstream. One may outlive its request, whose answer did not wait for it.
    uploads: AtomicU32,
    /// Bytes of a body went either way since the watchdog looked last.
    moved: AtomicBool,
    /// An answer went out before its request was read: the rest must be read, or the answer is lost.
    unread: AtomicBool,
}

/// What a connection is waiting for, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For a request.
    Idle(Timestamp),
    /// For the rest of a request head.
    Head(Timestamp),
    /// For us: the queue and the upstream have their own timers.
    Us,
    /// For a body to go on; `moved` says whether it has since the last look.
    Body { moved: bool },
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, clock: Clock, budget: Arc<Budget>) -> Self {
        Self {
            stream,
            ahead: Ahead::new(budget),
            clock,
            since: AtomicU64::new(clock.now().as_nanos()),
            // A fresh connection has to say something within the time for a head: it was opened to be used.
            in_head: AtomicBool::new(true),
            http2: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            answering: AtomicU32::new(0),
            uploads: AtomicU32::new(0),
            moved: AtomicBool::new(false),
            unread: AtomicBool::new(false),
        }
    }

    /// Waits until the client has closed its side, with or without unread data before it.
    pub(crate) async fn left(&self) {
        // PRIORITY is satisfied by the peer's close but not by ordinary data; urgent data, which nobody sends, makes
        // it look again a little later.
        while let Ok(ready) = self.stream.ready(Interest::PRIORITY).await
            && !ready.is_read_closed()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether it is known to have left by now.
    pub(crate) fn has_left(&self) -> bool {
        let mut left = std::pin::pin!(self.left());
        left.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Reads ahead of hyper for as long as this is polled and the budget lasts, so that a client that leaves is seen to leave. Never ends.
    /// (HTTP/2 reads all the time and needs none of this.)
    pub(crate) fn read_ahead(&self) -> impl Future<Output = Infallible> {
        // By the one waker that hyper reads with, which only the connection's own task may do: over HTTP/1 it is that which
        // polls a request, over HTTP/2 it is not, and nobody reads ahead. A future of tokio's, with a waker of its own, would
        // be a hundred and fifty bytes for each request that waits.
        poll_fn(|cx| {
            while let Poll::Ready(Ok(())) = self.stream.poll_read_ready(cx)
                && self.ahead.reserve()
            {
                let mut chunk = Vec::with_capacity(CHUNK);
                let read = self.stream.try_read_buf(&mut chunk);
                self.ahead.keep(chunk);
                match read {
                    Ok(1..) => self.body_moved(),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The end, which `left` sees too.
                    Ok(0) | Err(_) => break,
                }
            }
            Poll::Pending
        })
    }

    /// Whether the client begins with the preface of HTTP/2 (RFC 9113 section 3.4), as one with prior knowledge does.
    /// What it has sent stays where it is.
    pub(crate) async fn speaks_http2(&self) -> bool {
        const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let mut begin = [0; PREFACE.len()];
        let mut pause = Duration::from_millis(1);
        loop {
            let seen = match self.stream.peek(&mut begin).await {
                Ok(0) | Err(_) => return false,
                Ok(seen) => seen,
            };
            if begin[..seen] != PREFACE[..seen] {
                return false;
            }
            if seen == PREFACE.len() {
                self.http2.store(true, Relaxed);
                self.in_head.store(false, Relaxed);
                return true;
            }
            // Only the first bytes of it have come, and nobody tells when there are more than those. Whoever keeps it
            // so on purpose must not keep us busy.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// A request has been read as far as its head. Says when that began to come, if it is known: of requests that share a
    /// connection, and of one that was there before it was waited for, it is not.
    pub(crate) fn request_began(&self) -> Option<Timestamp> {
        let in_head = self.in_head.swap(false, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        in_head.then(|| Timestamp::from_nanos(self.since.load(Relaxed)))
    }

    pub(crate) fn answer_began(&self) {
        self.body_moved();
        self.answering.fetch_add(1, Relaxed);
    }

    /// A request body is to be sent on.
    pub(crate) fn upload_began(&self) {
        self.uploads.fetch_add(1, Relaxed);
    }

    /// No more of it is read, be it that there is no more.
    pub(crate) fn upload_ended(&self) {
        self.since.store(self.clock.now().as_nanos(), Relaxed);
        self.uploads.fetch_sub(1, Relaxed);
    }

    /// Something of a request was left unread.
    pub(crate) fn left_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    pub(crate) fn request_ended(&self, now: Timestamp, answered: bool) {
        if answered {
            self.answering.fetch_sub(1, Relaxed);
        }
        self.since.store(now.as_nanos(), Relaxed);
        self.requests.fetch_sub(1, Relaxed);
    }

    pub(crate) fn waiting(&self) -> Waiting {
        let since = Timestamp::from_nanos(self.since.load(Relaxed));
        let body = || Waiting::Body { moved: self.moved.swap(false, Relaxed) };
        match self.requests.load(Relaxed) {
            0 if self.uploads.load(Relaxed) > 0 => body(),
            0 if self.in_head.load(Relaxed) => Waiting::Head(since),
            0 => Waiting::Idle(since),
            _ if self.answering.load(Relaxed) == 0 => Waiting::Us,
            // One that moves must not hide another that stands still, so each stream has its own patience.
            _ if self.http2.load(Relaxed) => Waiting::Us,
            _ => body(),
        }
    }

    /// Reads and throws away what the client still sends, so that the kernel does not answer it with a reset that
    /// would overtake our last answer (RFC 9112 section 9.6). Bounded by bytes here and by time in the caller.
    pub(crate) async fn linger(&self, mut bytes: usize) {
        // On the heap, because whatever is held across an await is part of every connection's future.
        let mut scratch = vec![0; 16 * 1024];
        while bytes > 0 && self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut scratch) {
                Ok(0) => return,
                Ok(read) => bytes = bytes.saturating_sub(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// A part of a body went either way.
    pub(crate) fn body_moved(&self) {
        self.moved.store(true, Relaxed);
    }

    /// Over HTTP/2 bytes may be a ping, which is no progress of anything.
    fn note_bytes(&self) {
        if !self.http2.load(Relaxed) {
            self.body_moved();
        }
    }

    fn note_read(&self) {
        self.note_bytes();
        let is_between = self.requests.load(Relaxed) == 0 && self.uploads.load(Relaxed) == 0;
        let begins_head = is_between && !self.http2.load(Relaxed);
        if begins_head && !self.in_head.swap(true, Relaxed) {
            self.since.store(self.clock.now().as_nanos(), Relaxed);
        }
    }
}

/// hyper's handle to the socket.
pub(crate) struct SocketIo(pub(crate) Arc<Socket>);

impl AsyncRead for SocketIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = &*self.0;
        if socket.ahead.read(buf) {
            socket.note_read();
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(socket.stream.poll_read_ready(cx))?;
            match socket.stream.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(_) => {
                    socket.note_read();
                    if buf.remaining() > 0 {
                        // The kernel's buffer is empty now. Saying so spares a system call that could only tell us
                        // the same; it is what tokio's own `poll_read` does.
                        let _ = socket.stream.try_io(Interest::READABLE, || {
                            Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock))
                        });
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl SocketIo {
    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.stream.poll_write_ready(cx))?;
            match write(&self.0.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => {
                    self.0.note_bytes();
                    return Poll::Ready(done);
                }
            }
        }
    }
}

impl AsyncWrite for SocketIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match SockRef::from(&self.0.stream).shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
            _ => Ok(()),
        })
    }
}
