//! What the layers share: the gate with all that is said about its use, and the guard of a slot that tells how it ended.

use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::{Outcome, Priority, RouteId, Timestamp};

use crate::admitted::Admitted;
use crate::gate::Gate;
use crate::layers::deadline::Deadline;
use crate::layers::event::GateEvent;

type Observer = Arc<dyn Fn(&GateEvent) + Send + Sync>;

/// A gate, and what a layer was told about its use.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) gate: Gate,
    pub(crate) route: RouteId,
    /// From the slot taken to the answer begun.
    pub(crate) timeout: Option<Duration>,
    pub(crate) observer: Option<Observer>,
}

impl Setup {
    pub(crate) const fn new(gate: Gate) -> Self {
        Self { gate, route: RouteId(0), timeout: None, observer: None }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.gate.clock().now()
    }

    pub(crate) fn tell(&self, event: impl FnOnce() -> GateEvent) {
        tell(self.observer.as_ref(), event);
    }
}

fn tell(observer: Option<&Observer>, event: impl FnOnce() -> GateEvent) {
    if let Some(observer) = observer {
        observer(&event());
    }
}

/// What events say of every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) route: RouteId,
    pub(crate) priority: Priority,
}

/// The slot of a request, from its admission to the end of its answer's body.
///
/// It ends by [`end`](Self::end), or by being dropped: that means a panic while the service's code was running, and
/// otherwise that the client has left.
pub(crate) struct Slot {
    observer: Option<Observer>,
    about: About,
    /// `None` only once it has ended.
    admitted: Option<Admitted>,
    /// The limit has learned from it.
    sampled: bool,
    /// The service's own code is running.
    running: bool,
}

impl Slot {
    pub(crate) fn new(setup: &Setup, about: About, admitted: Admitted) -> Self {
        Self {
            observer: setup.observer.clone(),
            about,
            admitted: Some(admitted),
            sampled: false,
            running: false,
        }
    }

    /// When it was taken.
    pub(crate) fn since(&self) -> Timestamp {
        self.admitted.as_ref().map_or(Timestamp::ZERO, Admitted::since)
    }

    /// Runs the service's own code, which may panic, under its deadline.
    pub(crate) fn during<T>(
        slot: &mut Option<Self>,
        deadline: Option<&Deadline>,
        act: impl FnOnce() -> T,
    ) -> T {
        if let Some(slot) = slot {
            slot.running = true;
        }
        let value = Deadline::during(deadline, act);
        if let Some(slot) = slot {
            slot.running = false;
        }
        value
    }

    /// How it went, as far as its beginning shows: the limit learns that now. Only the first time counts.
    pub(crate) fn sample(&mut self, outcome: Outcome) {
        self.sampled = true;
        if let Some(admitted) = &mut self.admitted {
            admitted.sample(outcome);
        }
    }

    /// It is free again.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.complete(outcome);
    }

    fn complete(&mut self, outcome: Outcome) {
        if let Some(admitted) = self.admitted.take() {
            let (since, now) = (admitted.since(), admitted.now());
            admitted.complete_at(now, outcome);
            self.tell(outcome, now.since(since));
        }
    }

    /// Nobody waits for the answer any more, and the work has been stopped.
    fn give_up(&mut self, outcome: Outcome) {
        if let Some(admitted) = self.admitted.take() {
            let took = admitted.now().since(admitted.since());
            // The limit hears that somebody did not wait; then the slot is free, since a future that is dropped works no
            // more.
            drop(admitted.abandon(outcome));
            self.tell(outcome, took);
        }
    }

    /// The work took too long, and has been stopped.
    pub(crate) fn cut_off(mut self) {
        self.give_up(Outcome::Overload);
    }

    fn tell(&self, outcome: Outcome, took: Duration) {
        let About { route, priority } = self.about;
        tell(self.observer.as_ref(), || GateEvent::Ended { route, priority, outcome, took });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        match (self.running, self.sampled) {
            (true, _) => self.complete(Outcome::Failure),
            (false, true) => self.complete(Outcome::Ignore),
            (false, false) => self.give_up(Outcome::Ignore),
        }
    }
}
