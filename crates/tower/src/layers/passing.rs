//! The way of one request through a layer: into the gate, to the service once there is a slot, and to the answer.
//!
//! ```text
//! call → first poll: Gate::enter → wait → the service is ready → its future → answer, with the slot
//!                        refused   refused                        cut off
//! ```
//!
//! Nothing is held before the first poll, and the service is asked whether it is ready only with the slot in hand: so
//! neither this layer nor what is behind it holds capacity for a connection that has no request (vector#26457). What
//! is dropped on the way gives up what it has: a place in the queue, or the work and then the slot.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tidegate_engine::{Arrival, Outcome, Reason, Rejection, Timestamp};
use tokio::time::{Sleep, sleep_until};
use tower_service::Service;

use crate::admitted::Admitted;
use crate::gate::{Entry, Waiting};
use crate::layers::class::Class;
use crate::layers::deadline::Deadline;
use crate::layers::event::GateEvent;
use crate::layers::slot::{About, Setup, Slot};

/// Why a call has no answer.
///
/// A rejection is the gate's and says when to come back; everything else is the service's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// The gate said no, or the service did not answer in time.
    Rejected(Rejection),
    /// The service failed.
    Service(E),
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => write!(f, "rejected: {}", rejection.reason),
            Self::Service(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for CallError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rejected(_) => None,
            Self::Service(error) => error.source(),
        }
    }
}

pin_project! {
    /// A request on its way. The order of the fields is the order in which they are dropped: the work stops, and then its
    /// slot is free.
    pub(crate) struct Passing<S, R>
    where
        S: Service<R>,
    {
        // `None` once it is through, and for whoever is exempt.
        passage: Option<Passage>,
        #[pin]
        calling: Calling<S, R>,
        slot: Option<Slot>,
        timer: Option<Timer>,
        deadline: Option<Deadline>,
    }
}

/// An answer, and the slot that it still holds; none if its request was exempt.
type Passed<S, R> = Result<(<S as Service<R>>::Response, Option<Slot>), CallError<<S as Service<R>>::Error>>;

impl<S: Service<R>, R> Passing<S, R> {
    pub(crate) fn new(
        setup: &Arc<Setup>,
        class: &Class,
        deadline: Option<Deadline>,
        service: S,
        request: R,
    ) -> Self {
        let passage = (!class.exempt).then(|| Passage::new(setup.clone(), class, deadline.as_ref()));
        let calling = Calling::new(service, request);
        Self { passage, calling, slot: None, timer: None, deadline }
    }

    pub(crate) const fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// The work is dropped before its slot is free, also where it is cut off.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Passed<S, R>> {
        let mut this = self.project();
        if let Some(passage) = this.passage {
            let slot = ready!(passage.poll(cx)).map_err(CallError::Rejected)?;
            *this.timer = Timer::start(&passage.setup, slot.since(), this.deadline.as_ref());
            *this.slot = Some(slot);
            *this.passage = None;
        }
        let calling = this.calling.as_mut();
        match Slot::during(this.slot, this.deadline.as_ref(), || calling.poll(cx)) {
            Poll::Ready(Ok(answer)) => Poll::Ready(Ok((answer, this.slot.take()))),
            Poll::Ready(Err(error)) => {
                if let Some(slot) = this.slot.take() {
                    slot.end(Outcome::Failure);
                }
                Poll::Ready(Err(CallError::Service(error)))
            }
            Poll::Pending => {
                let Some(timer) = this.timer else { return Poll::Pending };
                ready!(timer.sleep.as_mut().poll(cx));
                let reason = timer.reason;
                this.calling.set(Calling::Over);
                if let Some(slot) = this.slot.take() {
                    slot.cut_off();
                }
                Poll::Ready(Err(CallError::Rejected(Rejection { reason, retry_after: Duration::ZERO })))
            }
        }
    }
}

pin_project! {
    /// A call of a service: first it has to be ready, on the very clone that is called.
    #[project = CallingProjection]
    pub(crate) enum Calling<S, R>
    where
        S: Service<R>,
    {
        Ready { service: S, request: Option<R> },
        Working { #[pin] future: S::Future },
        Over,
    }
}

impl<S: Service<R>, R> Calling<S, R> {
    pub(crate) const fn new(service: S, request: R) -> Self {
        Self::Ready { service, request: Some(request) }
    }

    pub(crate) fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, S::Error>> {
        loop {
            let future = match self.as_mut().project() {
                CallingProjection::Ready { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    service
                        .call(request.take().expect("a request is sent once, and then it is another state"))
                }
                CallingProjection::Working { future } => return future.poll(cx),
                CallingProjection::Over => return Poll::Pending,
            };
            self.set(Self::Working { future });
        }
    }
}

/// How a request gets its slot.
struct Passage {
    setup: Arc<Setup>,
    about: About,
    state: Entering,
}

enum Entering {
    Fresh(Arrival),
    Waiting { waiting: Waiting, since: Timestamp },
    Over,
}

impl Passage {
    fn new(setup: Arc<Setup>, class: &Class, deadline: Option<&Deadline>) -> Self {
        let route = class.route.unwrap_or(setup.route);
        let arrival = class.arrival(route, deadline.map(Deadline::at));
        Self { about: About { route, priority: class.priority }, setup, state: Entering::Fresh(arrival) }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Slot, Rejection>> {
        loop {
            match mem::replace(&mut self.state, Entering::Over) {
                Entering::Fresh(arrival) => {
                    let now = self.setup.now();
                    match self.setup.gate.enter_at(now, arrival) {
                        Entry::Admitted(admitted) => return Poll::Ready(Ok(self.admitted(admitted, now))),
                        Entry::Rejected(rejection) => return Poll::Ready(Err(self.refused(rejection, now))),
                        Entry::Waiting(waiting) => self.state = Entering::Waiting { waiting, since: now },
                    }
                }
                Entering::Waiting { mut waiting, since } => {
                    let Poll::Ready(end) = Pin::new(&mut waiting).poll(cx) else {
                        self.state = Entering::Waiting { waiting, since };
                        return Poll::Pending;
                    };
                    return Poll::Ready(match end {
                        Ok(admitted) => Ok(self.admitted(admitted, since)),
                        Err(rejection) => Err(self.refused(rejection, since)),
                    });
                }
                Entering::Over => return Poll::Pending,
            }
        }
    }

    fn admitted(&self, admitted: Admitted, since: Timestamp) -> Slot {
        let About { route, priority } = self.about;
        let waited = admitted.since().since(since);
        let slot = Slot::new(&self.setup, self.about, admitted);
        self.setup.tell(|| GateEvent::Admitted { route, priority, waited });
        slot
    }

    fn refused(&self, rejection: Rejection, since: Timestamp) -> Rejection {
        let (About { route, priority }, Rejection { reason, .. }) = (self.about, rejection);
        self.setup.tell(|| GateEvent::Refused {
            route,
            priority,
            reason,
            waited: self.setup.now().since(since),
        });
        rejection
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        if let Entering::Waiting { since, .. } = self.state {
            let left = Rejection { reason: Reason::ClientLeft, retry_after: Duration::ZERO };
            self.refused(left, since);
        }
    }
}

/// When the service's time is up, and what that is called then.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    reason: Reason,
}

impl Timer {
    fn start(setup: &Setup, since: Timestamp, deadline: Option<&Deadline>) -> Option<Self> {
        let until = since.after(setup.timeout?);
        let (until, reason) = match deadline.map(Deadline::at) {
            Some(deadline) if deadline < until => (deadline, Reason::Deadline),
            _ => (until, Reason::UpstreamTimeout),
        };
        Some(Self { sleep: Box::pin(sleep_until(setup.gate.clock().instant(until))), reason })
    }
}
