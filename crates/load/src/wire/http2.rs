//! Attempts over HTTP/2: many at a time on each connection, as many as the peer allows and one more never.
//!
//! The h2 crate would let more wait inside of it, where nobody could see for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::Request;
use tidegate_workload::WireError;
use tokio::task::AbortHandle;

use super::{Event, Opened, Place, Shared, head};
use crate::play::{Heard, Order};

/// So many streams at a time on one connection, unless the peer allows fewer.
pub(crate) const STREAMS_MAX: usize = 100;
/// What a connection and a stream may bring before it was read: an answer is read as it comes.
const WINDOW: u32 = 1 << 20;

/// A connection. Its driver is a task, and ends with it.
pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
    state: Arc<State>,
    driver: AbortHandle,
}

/// What a connection and its streams know of each other.
#[derive(Default)]
struct State {
    streams: AtomicUsize,
    /// It takes no more of them, and ends with the last (GOAWAY; RFC 9113, section 6.8).
    spent: AtomicBool,
}

/// One stream of a connection, until it has ended.
pub(crate) struct Stream {
    sender: SendRequest<Bytes>,
    state: Arc<State>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.state.streams.fetch_sub(1, Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Opens a connection and tells of it.
pub(crate) async fn open(shared: Arc<Shared>, place: Place) {
    let opened = connect(&shared, place).await.map(|(connection, took)| (Opened::Many(connection), took));
    let _ = shared.events.send(Event::Opened(opened)).await;
}

/// Opens a connection, and says how long that took.
pub(crate) async fn connect(shared: &Shared, place: Place) -> Result<(Connection, Duration), WireError> {
    let (stream, took) = shared.connect().await?;
    let mut builder = client::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).enable_push(false);
    let (sender, connection) = builder.handshake(stream).await.map_err(|_| WireError::Connect)?;
    let driver = tokio::spawn(async move {
        let _ = connection.await;
        drop(place);
    });
    let driver = driver.abort_handle();
    Ok((Connection { sender, state: Arc::default(), driver }, took))
}

impl Connection {
    /// Whether it still stands.
    pub(crate) fn is_alive(&self) -> bool {
        !self.driver.is_finished()
    }

    /// Whether it takes new streams, now or when others have ended.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_alive() && !self.state.spent.load(Relaxed)
    }

    /// A stream, if there is room for one.
    pub(crate) fn stream(&self) -> Option<Stream> {
        let most = STREAMS_MAX.min(self.sender.current_max_send_streams());
        if !self.is_usable() || self.state.streams.load(Relaxed) >= most {
            return None;
        }
        self.state.streams.fetch_add(1, Relaxed);
        Some(Stream { sender: self.sender.clone(), state: self.state.clone() })
    }
}

/// Sends a request, reads the answer to its end and tells of it.
pub(crate) async fn exchange(shared: Arc<Shared>, stream: Stream, order: Order) {
    let mut sent = None;
    let state = stream.state.clone();
    let event = match ask(&shared, stream, &order, &mut sent).await {
        Ok(heard) => Event::Ended { order, sent, heard, kept: None },
        // Nothing was sent, since the peer takes no more. What it has taken it still answers.
        Err(_) if sent.is_none() => {
            state.spent.store(true, Relaxed);
            Event::Again { order, sent }
        }
        Err(error) => Event::Ended { order, sent, heard: Heard::Nothing(error), kept: None },
    };
    let _ = shared.events.send(event).await;
}

async fn ask(
    shared: &Shared,
    mut stream: Stream,
    order: &Order,
    sent: &mut Option<Duration>,
) -> Result<Heard, WireError> {
    let (head, body) = shared.requests.make(shared.clock.elapsed(), order).into_parts();
    std::future::poll_fn(|cx| stream.sender.poll_ready(cx)).await.map_err(|error| wire_error(&error))?;
    let request = Request::from_parts(head, ());
    let (response, mut upload) =
        stream.sender.send_request(request, body.is_empty()).map_err(|error| wire_error(&error))?;
    *sent = Some(shared.clock.elapsed());
    if !body.is_empty() {
        // It is there as a whole and shared by all requests: what the peer has no room for yet costs no memory.
        upload.send_data(body, true).map_err(|error| wire_error(&error))?;
    }
    let response = response.await.map_err(|error| wire_error(&error))?;
    let answer = head::read(response.status().as_u16(), response.headers());
    let mut body = response.into_body();
    while let Some(bytes) = body.data().await {
        let length = bytes.map_err(|error| wire_error(&error))?.len();
        body.flow_control().release_capacity(length).map_err(|error| wire_error(&error))?;
    }
    Ok(Heard::Answer(answer))
}

/// What the peer did wrong itself is no answer; that it reset a stream or went away is a connection that ended.
fn wire_error(error: &h2::Error) -> WireError {
    match error.reason() {
        Some(h2::Reason::PROTOCOL_ERROR | h2::Reason::FRAME_SIZE_ERROR) if error.is_library() => {
            WireError::Malformed
        }
        _ => WireError::Closed,
    }
}
