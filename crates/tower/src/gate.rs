//! [`Gate`]: an engine behind one lock, with a clock and waiters.
//!
//! # The three states of a request that waits
//!
//! | state | engine | waiters' table | what ends it |
//! |---|---|---|---|
//! | waiting | in the queue | `Waiting` | an event of the engine; the drop of its future |
//! | ended, not seen | not in the queue; if granted, in flight | `Ended` | its future is polled, or dropped |
//! | gone | – | vacant | – |
//!
//! Every move happens under the one lock, in the thread that caused it: whoever completes a permit also hands the
//! slot to the next waiter, and wakes it after the lock is released. A future that is dropped after its slot was
//! granted gives the slot back, so a slot is never kept for nobody. There is no task in the background: each waiter
//! carries its own timer, and whichever fires lets time pass for all.
//!
//! What never happens: a waker is called with the lock held; the lock is held across an await; a waiter is woken
//! without an end to fetch.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tidegate_engine::{
    Admission, AdmissionPolicy, Arrival, Decision, Event, Outcome, Permit, Rejection, Snapshot, Ticket,
    Timestamp,
};

use crate::admitted::Admitted;
use crate::clock::Clock;
use crate::sync::{Arc, Mutex, lock};
use crate::waiters::Waiters;

/// One protected capacity, shared by all who want some of it. Cloning gives another handle to the same.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    admission: Admission,
    waiters: Waiters,
    /// Reused, so that the hot path does not allocate.
    to_wake: Vec<Waker>,
}

impl Gate {
    /// An idle gate under this policy.
    pub fn new(policy: AdmissionPolicy) -> Self {
        Self::with_clock(policy, Clock::start())
    }

    /// The same, on a clock shared with others, so that timestamps can be compared.
    pub fn with_clock(policy: AdmissionPolicy, clock: Clock) -> Self {
        let state =
            State { admission: Admission::new(policy), waiters: Waiters::default(), to_wake: Vec::new() };
        Self { shared: Arc::new(Shared { clock, state: Mutex::new(state) }) }
    }

    /// Asks for a slot. The engine decides now; only [`Entry::Waiting`] takes any time.
    pub fn enter(&self, arrival: Arrival) -> Entry {
        self.enter_at(self.shared.clock.now(), arrival)
    }

    /// The same for who has just read the gate's clock.
    pub fn enter_at(&self, now: Timestamp, arrival: Arrival) -> Entry {
        self.input_at(now, |state, now| {
            let decision = state.admission.arrive(now, arrival);
            // The arrival has let time pass, and whoever it ended a wait for may have had the very index that the new
            // ticket has now: their end comes before the new one's place.
            state.hear_events();
            match decision {
                Decision::Admit(permit) => Entry::Admitted(Admitted::new(self.clone(), permit)),
                Decision::Reject(rejection) => Entry::Rejected(rejection),
                Decision::Queue(ticket) => {
                    let place = state.waiters.open(ticket.id());
                    Entry::Waiting(Waiting { gate: self.clone(), place, ticket: Some(ticket), timer: None })
                }
            }
        })
    }

    /// Asks for a slot, and waits for it if need be. Dropping the future leaves the queue.
    pub async fn admit(&self, arrival: Arrival) -> Result<Admitted, Rejection> {
        match self.enter(arrival) {
            Entry::Admitted(admitted) => Ok(admitted),
            Entry::Rejected(rejection) => Err(rejection),
            Entry::Waiting(waiting) => waiting.await,
        }
    }

    /// Puts a new policy in force; see [`Admission::reconfigure`].
    pub fn reconfigure(&self, policy: AdmissionPolicy) {
        self.input(|state, now| state.admission.reconfigure(now, policy));
    }

    /// Whether there may be one more retry by whoever uses the gate; see [`Admission::spend_retry`].
    pub fn spend_retry(&self) -> bool {
        self.input(|state, now| state.admission.spend_retry(now))
    }

    /// How it stands.
    pub fn snapshot(&self) -> Snapshot {
        lock(&self.shared.state).admission.snapshot()
    }

    /// The clock of this gate.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    pub(crate) fn sample(&self, now: Timestamp, permit: &mut Permit, outcome: Outcome) {
        self.input_at(now, |state, now| state.admission.sample(now, permit, outcome));
    }

    pub(crate) fn on_load(&self, load: f64) {
        self.input(|state, now| state.admission.on_load(now, load));
    }

    pub(crate) fn abandon(&self, permit: &mut Permit, outcome: Outcome) {
        self.input(|state, now| state.admission.abandon(now, permit, outcome));
    }

    pub(crate) fn complete(&self, now: Timestamp, permit: Permit, outcome: Outcome) {
        self.input_at(now, |state, now| state.admission.complete(now, permit, outcome));
    }

    /// One input to the engine, now.
    fn input<T>(&self, act: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        self.input_at(self.shared.clock.now(), act)
    }

    /// One input to the engine: then its events are heard, and then, without the lock, wakers are called. The clock was
    /// read outside the lock, so another thread's reading may come before an earlier one: the engine's time then stands
    /// still for as long as the lock was waited for.
    fn input_at<T>(&self, now: Timestamp, act: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        // Declared outside the lock, because a guard or a waiter that is dropped while the lock is held, be it by a
        // panic, would wait for it for ever.
        let value;
        let mut to_wake;
        {
            let mut state = lock(&self.shared.state);
            value = act(&mut state, now);
            state.hear_events();
            if state.to_wake.is_empty() {
                return value;
            }
            to_wake = std::mem::take(&mut state.to_wake);
        }
        wake(&mut to_wake);
        let mut state = lock(&self.shared.state);
        if state.to_wake.capacity() < to_wake.capacity() && state.to_wake.is_empty() {
            state.to_wake = to_wake;
        }
        value
    }
}

/// Wakes all. A waker that panics does not keep the others asleep, who have ends to fetch; its panic goes on when all have
/// been woken.
fn wake(wakers: &mut Vec<Waker>) {
    let mut panicked = None;
    for waker in wakers.drain(..) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            panicked.get_or_insert(payload);
        }
    }
    if let Some(payload) = panicked {
        resume_unwind(payload);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.snapshot()).finish()
    }
}

impl State {
    fn hear_events(&mut self) {
        while let Some(event) = self.admission.poll_event() {
            let waker = match event {
                Event::Granted { ticket, permit } => self.waiters.end(ticket, Ok(permit)),
                Event::Refused { ticket, rejection } => self.waiters.end(ticket, Err(rejection)),
            };
            self.to_wake.extend(waker);
        }
    }
}

/// The answer to [`Gate::enter`].
#[derive(Debug)]
#[must_use = "an admission that is dropped gives its slot back at once"]
pub enum Entry {
    /// Go ahead.
    Admitted(Admitted),
    /// No.
    Rejected(Rejection),
    /// Wait for it.
    Waiting(Waiting),
}

/// A place in the queue: a future that ends with a slot or a refusal, at the latest when the wait budget is used up.
/// Dropping it leaves the queue.
#[must_use = "the request leaves the queue when this is dropped"]
pub struct Waiting {
    gate: Gate,
    place: usize,
    /// `None` once the end has been fetched.
    ticket: Option<Ticket>,
    timer: Option<Timer>,
}

type Timer = Pin<Box<tokio::time::Sleep>>;

impl Waiting {
    #[cfg(not(tidegate_loom))]
    fn time_is_up(&mut self, until: Timestamp, cx: &mut Context<'_>) -> bool {
        let clock = self.gate.clock();
        let timer =
            self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(clock.instant(until))));
        timer.as_mut().poll(cx).is_ready()
    }

    /// Under loom there is no time.
    #[cfg(tidegate_loom)]
    fn time_is_up(&mut self, _: Timestamp, _: &mut Context<'_>) -> bool {
        false
    }
}

impl Future for Waiting {
    type Output = Result<Admitted, Rejection>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let until = this.ticket.as_ref().expect("a future is not polled after it is ready").until();
        loop {
            let end = lock(&this.gate.shared.state).waiters.poll(this.place, cx.waker());
            if let Some(end) = end {
                this.ticket = None;
                return Poll::Ready(end.map(|permit| Admitted::new(this.gate.clone(), permit)));
            }
            if !this.time_is_up(until, cx) {
                return Poll::Pending;
            }
            // By the timer; the engine, whose clock counts, refuses whoever has to go.
            this.timer = None;
            this.gate.input(|state, now| state.admission.handle_timeout(now));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let end = self.gate.input(|state, now| {
            state.admission.cancel(now, ticket);
            // Cancelling lets time pass, which may have ended this very wait: its end must find its place first.
            state.hear_events();
            state.waiters.close(self.place)
        });
        if let Some(Ok(permit)) = end {
            // Granted, but nobody is there to use it.
            self.gate.complete(self.gate.clock().now(), permit, Outcome::Ignore);
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
