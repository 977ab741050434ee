//! One connection to an endpoint. Dropping it closes it at once, whatever is under way on it.

use std::future::Future;
use std::io;
use std::pin::Pin;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::upload::RequestBody;
use crate::metrics::{Open, OpenConnections};

/// The answer to come. Boxed, because it must be able to outlive the request that waits for it.
pub(super) type Answering =
    Pin<Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>> + Send>>;

/// The largest response head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Connection {
    sender: http1::SendRequest<RequestBody>,
    /// `None` once the connection belongs to somebody else.
    task: Option<AbortHandle>,
    /// It has carried an exchange before, so it may die just as we send.
    pub(super) reused: bool,
    _open: Open,
}

/// Why there is no connection.
pub(super) enum ConnectError {
    /// The endpoint refused, did not answer in time, or has no such name.
    Unreachable,
    /// We have no descriptors left.
    Descriptors,
}

impl Connection {
    pub(super) async fn open(
        endpoint: &Endpoint,
        within: std::time::Duration,
        connections: &OpenConnections,
    ) -> Result<Self, ConnectError> {
        let open = connections.open();
        let stream = match timeout(within, endpoint.connect()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if is_out_of_descriptors(&error) => return Err(ConnectError::Descriptors),
            Ok(Err(_)) | Err(_) => return Err(ConnectError::Unreachable),
        };
        let handshake =
            http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|_| ConnectError::Unreachable)?;
        let task = tokio::spawn(async move {
            // An error ends the exchange on it, which is where it is told.
            let _ = connection.with_upgrades().await;
        });
        Ok(Self { sender, task: Some(task.abort_handle()), reused: false, _open: open })
    }

    pub(super) fn send(&mut self, request: Request<RequestBody>) -> Answering {
        Box::pin(self.sender.try_send_request(request))
    }

    /// Whether it is still open, as far as anybody knows.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Waits until it can carry the next exchange; it can, unless it has just been given back or has died.
    pub(super) async fn ready(&mut self) -> bool {
        self.sender.is_ready() || self.sender.ready().await.is_ok()
    }

    /// Leaves the connection to whoever took it over by an upgrade.
    pub(super) fn release(mut self) {
        self.task = None;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE have no kind of their own.
    matches!(error.raw_os_error(), Some(23 | 24))
}
