//! An attempt over HTTP/1.1: alone on its connection, which can carry the next when the answer has been read.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tidegate_workload::WireError;

use super::watched::{Seen, Watched};
use super::{Event, Opened, Place, Shared, head};
use crate::play::{Heard, Order};

/// A connection that ends so soon after the first byte was written, and twice what opening it took, was being closed already;
/// what ends later may have been at work.
const CLOSING: Duration = Duration::from_millis(10);

/// A connection, which nobody drives but the exchange that uses it.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<Watched>, Full<Bytes>>,
    seen: Arc<Seen>,
    used_before: bool,
    /// How long it took to open it, which is one way there and back.
    took: Duration,
    _place: Place,
}

/// Opens a connection and tells of it.
pub(crate) async fn open(shared: Arc<Shared>, place: Place) {
    let opened = Connection::open(&shared, place).await;
    let opened = opened.map(|(connection, took)| (Opened::One(Box::new(connection)), took));
    // Nobody listens any more when the run is over.
    let _ = shared.events.send(Event::Opened(opened)).await;
}

/// Sends a request, reads the answer to its end and tells of it.
pub(crate) async fn exchange(shared: Arc<Shared>, mut connection: Box<Connection>, order: Order) {
    let request = shared.requests.make(shared.clock.elapsed(), &order);
    let may_come_twice = request.method().is_idempotent();
    let answered = connection.ask(request).await;
    let sent = connection.seen.written();
    let event = match answered {
        Ok(heard) => {
            connection.used_before = true;
            // The driver has to look once more to see that the answer was the last.
            let kept = connection.is_alive().then_some(connection);
            Event::Ended { order, sent, heard, kept }
        }
        // A kept connection that its peer closed in the moment of its use: every client sends that again (RFC 9112,
        // section 9.3.1), if it is one of the requests that may come twice.
        Err(WireError::Closed)
            if connection.used_before
                && !connection.seen.has_read()
                && sent.is_none_or(|sent| may_come_twice && connection.was_closing(&shared, sent)) =>
        {
            // Its place is free before somebody looks for one.
            drop(connection);
            Event::Again { order, sent }
        }
        Err(error) => Event::Ended { order, sent, heard: Heard::Nothing(error), kept: None },
    };
    let _ = shared.events.send(event).await;
}

impl Connection {
    async fn open(shared: &Shared, place: Place) -> Result<(Self, Duration), WireError> {
        let (stream, took) = shared.connect().await?;
        let (watched, seen) = Watched::new(stream, shared.clock);
        let (sender, driver) =
            http1::handshake(TokioIo::new(watched)).await.map_err(|_| WireError::Connect)?;
        Ok((Self { sender, driver, seen, used_before: false, took, _place: place }, took))
    }

    /// Whether it can carry another request, as far as one can see. Its peer may have closed it while nobody looked.
    pub(crate) fn is_alive(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        Pin::new(&mut self.driver).poll(&mut nobody).is_pending() && self.sender.is_ready()
    }

    /// Whether it was being closed already when the first byte was written, going by when it ended, which is now.
    fn was_closing(&self, shared: &Shared, sent: Duration) -> bool {
        shared.clock.elapsed().saturating_sub(sent) <= CLOSING.saturating_add(self.took.saturating_mul(2))
    }

    /// The answer, read to its end.
    async fn ask(&mut self, request: Request<Bytes>) -> Result<Heard, WireError> {
        self.seen.forget();
        let (sender, driver) = (&mut self.sender, &mut self.driver);
        let ready = with(driver, sender.ready()).await;
        ready.ok_or(WireError::Closed)?.map_err(|_| WireError::Closed)?;
        let response = with(driver, sender.send_request(request.map(Full::new))).await;
        let response = response.ok_or(WireError::Closed)?.map_err(|error| wire_error(&error))?;
        let answer = head::read(response.status().as_u16(), response.headers());
        with(driver, read_to_end(response)).await.ok_or(WireError::Closed)??;
        Ok(Heard::Answer(answer))
    }
}

/// Lets the connection do its work while something that it brings is waited for. `None`: it ended, and did not bring it.
async fn with<T>(
    driver: &mut http1::Connection<TokioIo<Watched>, Full<Bytes>>,
    awaited: impl Future<Output = T>,
) -> Option<T> {
    let mut awaited = pin!(awaited);
    poll_fn(|cx| {
        if let Poll::Ready(value) = awaited.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        let ended = Pin::new(&mut *driver).poll(cx).is_ready();
        // What it has just brought is there now, also if it was the last that it did.
        match awaited.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if ended => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Nothing of it is kept, however long it is.
async fn read_to_end(response: Response<Incoming>) -> Result<(), WireError> {
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame.map_err(|error| wire_error(&error))?;
    }
    Ok(())
}

fn wire_error(error: &hyper::Error) -> WireError {
    if error.is_parse() { WireError::Malformed } else { WireError::Closed }
}
