//! One connection to an endpoint.
//!
//! It has no task of its own. Whoever uses it drives it, in the task of the request itself, so an exchange costs no
//! switch between tasks; a kept connection is driven by nobody, and looked at when it is taken out again. Since the
//! one who uses it also owns it, dropping it closes it at once, whatever is under way.
//!
//! The exception is an answer that begins before its request has ended. Its client may not read until it has sent all,
//! and the request must go on although nobody asks for more of the answer, so then there is a task that drives.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::hearing::{Heard, Hearing};
use super::upload::RequestBody;
use crate::metrics::{Open, OpenConnections};

/// The answer to come.
pub(super) type Answering =
    Pin<Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>> + Send>>;

/// What makes a connection go on.
enum Driver {
    /// Whoever uses it.
    User(Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>),
    /// A task.
    Task(JoinHandle<()>),
    /// Nothing: it has ended.
    Ended,
}

/// The largest response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Connection {
    sender: SendRequest<RequestBody>,
    driver: Driver,
    /// It has carried an exchange before, so it may have died meanwhile.
    pub(super) reused: bool,
    /// Whether the answer has begun.
    pub(super) heard: Heard,
    _open: Open,
}

/// Why there is no connection.
pub(super) enum ConnectError {
    /// The endpoint refused, did not answer in time, or has no such name.
    Unreachable,
    /// The answer would be late even if there were one now.
    Overdue,
    /// We have no descriptors left.
    Descriptors,
}

impl Connection {
    pub(super) async fn open(
        endpoint: &Endpoint,
        within: Duration,
        connections: &OpenConnections,
    ) -> Result<Self, ConnectError> {
        let open = connections.open();
        let stream = match timeout(within, endpoint.connect()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if is_out_of_descriptors(&error) => return Err(ConnectError::Descriptors),
            Ok(Err(_)) | Err(_) => return Err(ConnectError::Unreachable),
        };
        let (stream, heard) = Hearing::new(stream);
        let handshake =
            http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|_| ConnectError::Unreachable)?;
        let driver = Driver::User(Box::pin(connection.with_upgrades()));
        Ok(Self { sender, driver, reused: false, heard, _open: open })
    }

    pub(super) fn send(&mut self, request: Request<RequestBody>) -> Answering {
        self.heard.forget();
        Box::pin(self.sender.try_send_request(request))
    }

    /// Drives the exchange until the head of the answer is there.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        answering: &mut Answering,
    ) -> Poll<Result<Response<Incoming>, TrySendError<Request<RequestBody>>>> {
        self.drive(cx);
        // Only driving makes the answer come, so there is nobody else to be woken by.
        answering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Drives the exchange until there is more of the body.
    pub(super) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Driver::Task(_) = self.driver {
            return Pin::new(body).poll_frame(cx);
        }
        // A short answer has often come whole with its head, and then nothing needs to be driven at all.
        let mut next = || Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop()));
        let mut frame = next();
        // Asking for more is what makes hyper read on, so otherwise it is driven, asked, and driven once more.
        for _ in 0..2 {
            if frame.is_ready() {
                break;
            }
            self.drive(cx);
            frame = next();
        }
        frame
    }

    /// Whether it can carry an exchange now. A connection that was given back an instant ago, or whose other end has
    /// closed it since, shows so here.
    pub(super) fn is_ready(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !matches!(self.driver, Driver::Ended) && self.sender.is_ready()
    }

    /// Goes on by itself from now on, whether or not anybody asks for more of the answer.
    pub(super) fn detach(&mut self) {
        match std::mem::replace(&mut self.driver, Driver::Ended) {
            Driver::User(driver) => {
                // How it ended is told by the exchange on it.
                self.driver = Driver::Task(tokio::spawn(async move { drop(driver.await) }));
            }
            other => self.driver = other,
        }
    }

    /// Leaves the connection to whoever has taken it over by an upgrade, once hyper has let go of it.
    pub(super) fn release(mut self) {
        tokio::spawn(async move {
            poll_fn(|cx| {
                self.drive(cx);
                if let Driver::Ended = self.driver { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        });
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        let ended = match &mut self.driver {
            // How it ended is told by the exchange on it.
            Driver::User(driver) => driver.as_mut().poll(cx).is_ready(),
            Driver::Task(task) => Pin::new(task).poll(cx).is_ready(),
            Driver::Ended => false,
        };
        if ended {
            self.driver = Driver::Ended;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Driver::Task(task) = &self.driver {
            task.abort();
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE have no kind of their own.
    matches!(error.raw_os_error(), Some(23 | 24))
}
