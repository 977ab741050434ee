//! An attempt over HTTP/1.1: on a kept connection, or on a new one.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tidegate_workload::WireError;

use super::watched::{Seen, Watched};
use super::{Event, Place, Shared, Times, head};
use crate::play::{Heard, Order};

/// A connection, which nobody drives but the exchange that uses it.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<Watched>, Full<Bytes>>,
    seen: Arc<Seen>,
    used_before: bool,
    _place: Place,
}

/// Where an attempt gets its connection.
pub(crate) enum From {
    /// One that is kept.
    Kept(Box<Connection>),
    /// A new one, for which there is a place.
    New(Place),
}

/// Sends a request, reads the answer to its end and tells of it.
pub(crate) async fn exchange(shared: Arc<Shared>, from: From, order: Order) {
    let mut times = Times::default();
    let outcome = attempt(&shared, from, &order, &mut times).await;
    let (heard, kept) = match outcome {
        Ok((heard, kept)) => (heard, kept),
        Err(error) => (Heard::Nothing(error), None),
    };
    // Nobody listens any more when the run is over.
    let _ = shared.events.send(Event::Ended { order, times, heard, kept }).await;
}

async fn attempt(
    shared: &Shared,
    from: From,
    order: &Order,
    times: &mut Times,
) -> Result<(Heard, Option<Box<Connection>>), WireError> {
    let mut connection = match from {
        From::Kept(connection) => connection,
        From::New(place) => Connection::open(shared, place, times).await?,
    };
    let request = shared.requests.make(order);
    let may_come_twice = request.method().is_idempotent();
    match connection.ask(request).await {
        // A kept connection that its peer closed in the moment of its use: every client sends that again (RFC 9112,
        // section 9.3.1), if it is one of the requests that may come twice.
        Err(WireError::Closed)
            if connection.used_before
                && !connection.seen.has_read()
                && (may_come_twice || connection.seen.written().is_none()) =>
        {
            let place = connection.give_up_for_its_place();
            connection = Connection::open(shared, place, times).await?;
        }
        answered => return connection.after(answered, times),
    }
    let answered = connection.ask(shared.requests.make(order)).await;
    connection.after(answered, times)
}

impl Connection {
    async fn open(shared: &Shared, place: Place, times: &mut Times) -> Result<Box<Self>, WireError> {
        let (stream, took) = shared.connect().await?;
        times.connecting = Some(times.connecting.unwrap_or_default() + took);
        let (watched, seen) = Watched::new(stream, shared.clock);
        let (sender, driver) =
            http1::handshake(TokioIo::new(watched)).await.map_err(|_| WireError::Connect)?;
        Ok(Box::new(Self { sender, driver, seen, used_before: false, _place: place }))
    }

    /// Whether it can carry another request, as far as one can see. Its peer may have closed it while nobody looked.
    pub(crate) fn is_alive(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        Pin::new(&mut self.driver).poll(&mut nobody).is_pending() && self.sender.is_ready()
    }

    /// The place of a connection that is of no use any more.
    fn give_up_for_its_place(self: Box<Self>) -> Place {
        self._place
    }

    /// The answer, read to its end.
    async fn ask(&mut self, request: Request<Bytes>) -> Result<Heard, WireError> {
        self.seen.forget();
        let (sender, driver) = (&mut self.sender, &mut self.driver);
        let ready = with(driver, sender.ready()).await;
        ready.ok_or(WireError::Closed)?.map_err(|_| WireError::Closed)?;
        let response =
            with(driver, sender.send_request(request.map(Full::new))).await.ok_or(WireError::Closed)?;
        let response = response.map_err(|error| wire_error(&error))?;
        let answer = head::read(response.status().as_u16(), response.headers());
        with(driver, read_to_end(response)).await.ok_or(WireError::Closed)??;
        Ok(Heard::Answer(answer))
    }

    /// What came of a request, and the connection if it can carry another.
    fn after(
        mut self: Box<Self>,
        answered: Result<Heard, WireError>,
        times: &mut Times,
    ) -> Result<(Heard, Option<Box<Self>>), WireError> {
        times.sent = self.seen.written();
        let heard = answered?;
        self.used_before = true;
        // The driver has to look once more to see that the answer was the last.
        let alive = self.is_alive();
        Ok((heard, alive.then_some(self)))
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
