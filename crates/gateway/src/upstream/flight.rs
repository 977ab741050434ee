//! One exchange that is under way, with all that it holds: the slot, the endpoint's count, the connection.
//!
//! It has three endings. *Finished*: the answer has ended, the slot is free, the connection is kept. *Broken*: the
//! connection is closed and the slot is free. *Orphaned*: the client has had its answer or has left, but the upstream
//! works on; the exchange stays open in a task of its own, what still comes is thrown away, and the slot is free when
//! it has ended. Dropping a flight, which is what happens when a client leaves, orphans it, or breaks it if the
//! upstream is known to stop its work when the connection closes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tidegate_engine::{Outcome, Reason, Timestamp, Verdict};
use tidegate_tower::{Admitted, Clock, Orphan};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::connection::{Answering, Connection};
use super::endpoint::{Endpoint, Visit};
use super::upload::{RequestBody, Upload};
use super::{ExemptPlace, Upstream};
use crate::orca;
use crate::trace::Exchange;
use crate::worker::Worker;

/// The right to an exchange: a slot of the gate, or a place outside it.
pub(crate) enum Slot {
    Admitted(Admitted),
    Exempt { _place: ExemptPlace },
}

impl Slot {
    /// When it was taken.
    fn since(&self, clock: Clock) -> Timestamp {
        match self {
            Self::Admitted(admitted) => admitted.since(),
            Self::Exempt { .. } => clock.now(),
        }
    }

    fn sample(&mut self, now: Timestamp, outcome: Outcome) {
        if let Self::Admitted(admitted) = self {
            admitted.sample_at(now, outcome);
        }
    }

    fn complete(self, now: Timestamp, outcome: Outcome) {
        if let Self::Admitted(admitted) = self {
            admitted.complete_at(now, outcome);
        }
    }
}

/// It moves from hand to hand, so it is small: what it has is behind a pointer.
pub(crate) struct Flight {
    /// `None` once it has ended.
    inner: Option<Box<Inner>>,
}

struct Inner {
    worker: Arc<Worker>,
    upstream: Arc<Upstream>,
    slot: Slot,
    /// When the slot was taken.
    began: Timestamp,
    /// From then on to the head of the answer.
    took: Duration,
    /// When the answer is of no use to the client any more.
    deadline: Option<Timestamp>,
    /// Where it is noted whom it is sent to, if a collector is to be told.
    noted: Option<Arc<Exchange>>,
    wire: Option<Wire>,
}

/// What a flight has on the wire.
struct Wire {
    connection: Connection,
    visit: Visit,
    upload: Option<Arc<Upload>>,
    /// It is not kept after this exchange.
    closes: bool,
    /// Of an answer that has begun.
    status: Option<StatusCode>,
    rest: Rest,
}

/// The head of an answer, or the request if it never left.
type HeadOrBack = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>;

/// What is still to come.
enum Rest {
    Head(Answering),
    Body(Incoming),
}

/// What a status says about the upstream: 503 and 504 that it has too much to do; other errors that it fails, but nothing
/// about how much it can take, since a fast failure is not a sign of health (Netflix/concurrency-limits#176).
pub(super) const fn outcome(status: StatusCode) -> Outcome {
    match status.as_u16() {
        503 | 504 => Outcome::Overload,
        500..=599 => Outcome::Failure,
        _ => Outcome::Success,
    }
}

impl Flight {
    pub(crate) fn new(
        worker: Arc<Worker>,
        upstream: Arc<Upstream>,
        slot: Slot,
        deadline: Option<Timestamp>,
        noted: Option<Arc<Exchange>>,
    ) -> Self {
        let began = slot.since(worker.shared.clock);
        let took = Duration::ZERO;
        Self {
            inner: Some(Box::new(Inner { worker, upstream, slot, began, took, deadline, noted, wire: None })),
        }
    }

    /// The request is about to be sent there.
    pub(super) fn tries(&self, endpoint: &Arc<Endpoint>) {
        if let Some(noted) = self.inner.as_ref().and_then(|inner| inner.noted.as_ref()) {
            noted.tries(endpoint);
        }
    }

    /// The request is on its way.
    pub(super) fn sent(
        &mut self,
        connection: Connection,
        visit: Visit,
        upload: Option<Arc<Upload>>,
        answering: Answering,
    ) {
        if let Some(inner) = &mut self.inner {
            inner.wire = Some(Wire {
                connection,
                visit,
                upload,
                closes: false,
                status: None,
                rest: Rest::Head(answering),
            });
        }
    }

    /// The connection is lost. The slot is kept, be it for another try or for [`broken`](Self::broken).
    pub(super) fn lost(&mut self) -> Option<Visit> {
        self.inner.as_mut()?.wire.take().map(|wire| wire.visit)
    }

    /// Whether any of the answer has come.
    pub(super) fn has_heard(&self) -> bool {
        self.wire().is_some_and(|wire| wire.connection.heard.anything())
    }

    /// Drives the exchange until the head of the answer is there. Nothing on the wire is never ready.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<HeadOrBack> {
        match self.wire_mut() {
            Some(Wire { connection, rest: Rest::Head(answering), .. }) => connection.poll_head(cx, answering),
            _ => Poll::Pending,
        }
    }

    /// The exchange failed because of what the client sent.
    pub(super) fn upload_is_broken(&self) -> bool {
        self.upload().is_some_and(|upload| upload.is_broken())
    }

    /// When the answer is overdue, and why: the client's deadline, or the upstream's timeout.
    pub(super) fn overdue(&self) -> (Timestamp, Reason) {
        let timeout = self.times_out();
        match self.inner.as_ref().and_then(|inner| inner.deadline) {
            Some(deadline) if deadline < timeout => (deadline, Reason::Deadline),
            _ => (timeout, Reason::UpstreamTimeout),
        }
    }

    /// The upstream's timeout after it had the whole request. A client that is slow to send it may put that off, but not
    /// for longer than a body may stand still altogether.
    fn times_out(&self) -> Timestamp {
        let Some(inner) = &self.inner else { return Timestamp::MAX };
        let timeout = inner.upstream.policy.timeout;
        let Some(upload) = self.upload() else { return inner.began.after(timeout) };
        let body_timeout = inner.worker.shared.live().policy.server.body_timeout;
        let latest = inner.began.after(body_timeout).after(timeout);
        upload.last_frame().max(inner.began).after(timeout).min(latest)
    }

    /// The upstream took too long, for this reason: its work may go on without us.
    pub(super) fn timed_out(mut self, reason: Reason) {
        // How little time a client has says nothing about the upstream.
        let outcome = if reason == Reason::Deadline { Outcome::Ignore } else { Outcome::Overload };
        if let Some(inner) = self.inner.take() {
            inner.leave(outcome);
        }
    }

    /// The connection broke, or there is none: nothing goes on.
    pub(super) fn broken(mut self, outcome: Outcome) {
        if let Some(mut inner) = self.inner.take() {
            let now = inner.now();
            inner.report(now, outcome.into());
            inner.slot.complete(now, outcome);
        }
    }

    /// The head of the answer may say how busy the upstream is.
    pub(super) fn hear_of_load(&self, headers: &mut HeaderMap) {
        let Some(inner) = &self.inner else { return };
        let Some(most) = inner.upstream.policy.orca_utilization else { return };
        if let (Some(in_use), Slot::Admitted(admitted)) = (orca::take(headers), &inner.slot) {
            admitted.report_load(in_use / most);
        }
    }

    /// The answer has begun: the rest is its body, and after it the upstream may close the connection.
    pub(super) fn answered(&mut self, body: Incoming, status: StatusCode, closes: bool) {
        let Some(inner) = &mut self.inner else { return };
        let outcome = outcome(status);
        let now = inner.now();
        inner.took = now.since(inner.began);
        if outcome != Outcome::Success {
            // What began well may still break off, so its verdict is said when it has ended.
            inner.report(now, outcome.into());
        }
        inner.slot.sample(now, outcome);
        if let Some(wire) = &mut inner.wire {
            wire.rest = Rest::Body(body);
            wire.status = Some(status);
            wire.closes = closes;
            if wire.upload.as_ref().is_some_and(|upload| !upload.is_complete()) {
                wire.connection.detach();
            }
        }
    }

    /// There is more of the answer. One that has gone on for as long as an answer may take to begin counts as a good one: a
    /// stream may go on for days, and a breaker is not to wait for its end.
    fn goes_on(&mut self) {
        let Some(inner) = &mut self.inner else { return };
        if inner.wire.as_ref().is_none_or(|wire| wire.visit.has_said()) {
            return;
        }
        let now = inner.now();
        if now.since(inner.began) >= inner.upstream.policy.timeout {
            inner.report(now, Verdict::Success);
        }
    }

    /// The connection speaks another protocol now: it is no longer an exchange, and holds no slot.
    fn upgraded(&mut self) {
        let Some(mut inner) = self.inner.take() else { return };
        let now = inner.now();
        inner.report(now, Verdict::Success);
        if let Inner { slot, wire: Some(wire), .. } = *inner {
            wire.connection.release();
            slot.complete(now, Outcome::Ignore);
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inner.as_ref().map_or(Timestamp::ZERO, |inner| inner.now())
    }

    /// How long its client still waits, if it has said so.
    pub(super) fn left(&self) -> Option<Duration> {
        let deadline = self.inner.as_ref()?.deadline?;
        Some(deadline.since(self.now()))
    }

    pub(crate) fn began(&self) -> Timestamp {
        self.inner.as_ref().map_or(Timestamp::ZERO, |inner| inner.began)
    }

    /// Whether all of the answer has been read.
    fn has_ended(&self) -> bool {
        match self.wire() {
            Some(Wire { rest: Rest::Body(body), .. }) => body.is_end_stream(),
            _ => true,
        }
    }

    fn wire(&self) -> Option<&Wire> {
        self.inner.as_ref()?.wire.as_ref()
    }

    fn wire_mut(&mut self) -> Option<&mut Wire> {
        self.inner.as_mut()?.wire.as_mut()
    }

    fn upload(&self) -> Option<&Upload> {
        self.wire()?.upload.as_deref()
    }

    fn finish(&mut self) {
        if let Some(inner) = self.inner.take() {
            inner.finish();
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        match &inner.wire {
            None => {
                let now = inner.now();
                inner.slot.complete(now, Outcome::Ignore);
            }
            // hyper does not read past a body of known length, so its end shows only here.
            Some(Wire { rest: Rest::Body(body), .. }) if body.is_end_stream() => inner.finish(),
            Some(_) => inner.leave(Outcome::Ignore),
        }
    }
}

impl Inner {
    fn now(&self) -> Timestamp {
        self.worker.shared.clock.now()
    }

    /// What the exchange has shown of the endpoint.
    fn report(&mut self, now: Timestamp, verdict: Verdict) {
        if let Some(wire) = &mut self.wire {
            self.upstream.report(now, &mut wire.visit, verdict);
        }
    }

    /// The answer has ended: the slot goes to the next, and the connection is kept.
    fn finish(mut self) {
        let now = self.now();
        self.report(now, Verdict::Success);
        self.slot.complete(now, Outcome::Success);
        if let Some(wire) = self.wire {
            keep(now, wire, &self.worker, &self.upstream);
        }
    }

    /// The client has been answered or has left; the work goes on, unless closing the connection stops it.
    fn leave(mut self, outcome: Outcome) {
        if outcome != Outcome::Ignore {
            self.report(self.now(), outcome.into());
        } else if matches!(self.wire, Some(Wire { rest: Rest::Body(_), .. })) {
            // It was well as long as anybody looked.
            self.report(self.now(), Verdict::Success);
        }
        let Self { worker, upstream, slot, began, wire: Some(mut wire), .. } = self else { return };
        wire.visit.is_left();
        let admitted = match slot {
            Slot::Admitted(admitted) => admitted,
            Slot::Exempt { .. } => return,
        };
        // The limit hears in either case that somebody did not wait for the answer.
        let orphan = admitted.abandon(outcome);
        if upstream.policy.cancels_work {
            // Closing the connection, which dropping it does, stops the work, and the slot is free.
            return;
        }
        // There is no runtime only when the worker is shutting down, and then everything ends anyway.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(see_out(worker, upstream, orphan, began, wire));
        }
    }
}

/// Keeps the exchange of an orphan open until it has ended, at most for `orphan_max`.
async fn see_out(
    worker: Arc<Worker>,
    upstream: Arc<Upstream>,
    orphan: Orphan,
    began: Timestamp,
    mut wire: Wire,
) {
    let ended = timeout(upstream.policy.orphan_max, poll_fn(|cx| wire.poll_to_the_end(cx))).await;
    let now = worker.shared.clock.now();
    let verdict = match (wire.status, &ended) {
        (Some(_), Ok(Err(()))) => Verdict::Failure,
        (Some(status), _) => outcome(status).into(),
        (None, Ok(_)) => Verdict::Failure,
        (None, Err(_)) => Verdict::Overload,
    };
    upstream.report(now, &mut wire.visit, verdict);
    let wasted = now.since(began);
    upstream.stats.wasted.add_duration(wasted);
    worker.shared.metrics.wasted.add_duration(wasted);
    if matches!(ended, Ok(Ok(()))) {
        orphan.ended();
        keep(now, wire, &worker, &upstream);
    }
}

impl Wire {
    /// Reads what still comes and throws it away.
    fn poll_to_the_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        loop {
            match &mut self.rest {
                Rest::Head(answering) => match ready!(self.connection.poll_head(cx, answering)) {
                    Ok(response) => {
                        self.status = Some(response.status());
                        self.rest = Rest::Body(response.into_body());
                    }
                    Err(_) => return Poll::Ready(Err(())),
                },
                Rest::Body(body) => match ready!(self.connection.poll_body(cx, body)) {
                    None => return Poll::Ready(Ok(())),
                    Some(Ok(_)) => {}
                    Some(Err(_)) => return Poll::Ready(Err(())),
                },
            }
        }
    }
}

/// Gives the connection back to the pool, unless the request was not read to its end, in which case what is left of it
/// would be taken for the next request.
fn keep(now: Timestamp, wire: Wire, worker: &Worker, upstream: &Upstream) {
    if !wire.closes && wire.upload.is_none_or(|upload| upload.is_complete()) {
        let until = now.after(upstream.policy.idle_timeout);
        worker.pool.put(
            wire.visit.endpoint().id,
            wire.connection,
            until,
            upstream.policy.max_idle_connections,
        );
    }
}

/// The body of an answer. The slot stays taken until it has ended, failed, or been dropped.
pub(crate) struct AnswerBody {
    pub(super) flight: Flight,
}

impl AnswerBody {
    /// There is no body: the connection speaks another protocol from here on.
    pub(crate) fn upgraded(&mut self) {
        self.flight.upgraded();
    }

    /// From the moment that the slot was taken to the head of the answer.
    pub(crate) fn took(&self) -> Duration {
        self.flight.inner.as_ref().map_or(Duration::ZERO, |inner| inner.took)
    }

    /// Whether the answer has come to its proper end.
    pub(crate) fn has_ended(&self) -> bool {
        self.flight.has_ended()
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let flight = &mut self.get_mut().flight;
        let frame = match flight.wire_mut() {
            Some(Wire { connection, rest: Rest::Body(body), .. }) => ready!(connection.poll_body(cx, body)),
            _ => return Poll::Ready(None),
        };
        match &frame {
            None => flight.finish(),
            // hyper does not ask for what follows trailers or the last byte of a body of known length, and may hold on
            // to that for as long as the client does not take it. The upstream is done, and so is its slot.
            Some(Ok(frame)) if frame.is_trailers() || flight.has_ended() => flight.finish(),
            Some(Ok(_)) => flight.goes_on(),
            Some(Err(_)) => {
                // It may have broken off for what the client sent.
                let verdict = if flight.upload_is_broken() { Verdict::Nothing } else { Verdict::Failure };
                if let Some(mut inner) = flight.inner.take() {
                    let now = inner.now();
                    inner.report(now, verdict);
                    inner.slot.complete(now, Outcome::Failure);
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        match self.flight.wire() {
            Some(Wire { rest: Rest::Body(body), .. }) => body.size_hint(),
            _ => SizeHint::with_exact(0),
        }
    }
}
