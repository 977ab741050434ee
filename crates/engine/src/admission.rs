//! One protected capacity: a limit, what is in flight, and who waits. The state machine.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::bulkhead::Bulkheads;
use crate::comeback::Comeback;
use crate::decision::{
    Arrival, Decision, Event, Outcome, Permit, Reason, Rejection, RouteId, Ticket, TicketId,
};
use crate::flight::{Flight, Flying};
use crate::forecast::{Forecast, Slots};
use crate::limit::{Limit, Sample};
use crate::policy::{AdmissionPolicy, Capacity, QUEUE_CAPACITY_DERIVED_MAX, QUEUE_CAPACITY_MAX, QueuePolicy};
use crate::queue::{Queue, WaitEnd, Waiting};
use crate::snapshot::{Counts, Snapshot};
use crate::standing::Standing;
use crate::time::Timestamp;

/// Decides who may occupy one protected capacity, who waits for it, and who is refused.
///
/// # How to drive it
///
/// There are three families of methods.
///
/// - **Inputs** tell what happened, with the time first: [`arrive`](Self::arrive), [`sample`](Self::sample),
///   [`abandon`](Self::abandon), [`complete`](Self::complete), [`cancel`](Self::cancel),
///   [`handle_timeout`](Self::handle_timeout), [`reconfigure`](Self::reconfigure). Times should not decrease; an
///   earlier time than the latest one seen counts as the latest. Each input first lets time pass, so nobody is handed
///   a slot after the end of their wait.
/// - **Outputs** tell what follows. After *any* input, call [`poll_event`](Self::poll_event) until it returns `None`:
///   each event names a ticket that was granted or refused. Do so before the ticket of that very input is put to any
///   use: it may have the index of one whose wait the input has ended. Then [`poll_timeout`](Self::poll_timeout) says when to
///   call `handle_timeout`; calling it early, late or twice does no harm beyond a late refusal.
/// - **Getters**: [`snapshot`](Self::snapshot).
///
/// # What is promised
///
/// - Every arrival ends exactly once: rejected, cancelled, or admitted and later completed.
/// - Nothing is admitted while the slots taken, orphans included, reach the limit. A limit that falls below what is
///   in flight drains; nothing is cancelled.
/// - A free slot and somebody waiting never exist together after an input.
/// - Nobody waits longer than the wait budget, provided that `handle_timeout` is called on time.
/// - The queue never holds more than its capacity, and everything else is bounded by the queue and the limit.
///
/// The same inputs give the same outputs, whatever the machine.
#[derive(Debug)]
pub struct Admission {
    now: Timestamp,
    limit: Limit,
    flight: Flight,
    queue: Queue,
    queue_policy: QueuePolicy,
    bulkheads: Bulkheads,
    forecast: Forecast,
    comeback: Comeback,
    standing: Standing,
    events: VecDeque<Event>,
    counts: Counts,
}

impl Admission {
    /// An idle capacity under this policy.
    pub fn new(policy: AdmissionPolicy) -> Self {
        Self {
            now: Timestamp::ZERO,
            limit: Limit::new(&policy.limit),
            flight: Flight::new(),
            queue: Queue::new(),
            queue_policy: policy.queue,
            bulkheads: Bulkheads::new(&policy.bulkheads),
            forecast: Forecast::default(),
            comeback: Comeback::default(),
            standing: Standing::default(),
            events: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// A request has come: admit it, let it wait, or refuse it.
    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival) -> Decision {
        let now = self.advance(now);
        self.counts.arrived += 1;
        let decision = match self.refusal(now, arrival) {
            Some(rejection) => Decision::Reject(self.reject(rejection)),
            None if self.has_free_slot() => Decision::Admit(self.admit(now, arrival.route)),
            None => Decision::Queue(self.enqueue(now, arrival)),
        };
        self.check_invariants();
        decision
    }

    /// The response head has come, or the lack of one says as much: the limit learns from it. The slot stays taken
    /// until [`complete`](Self::complete), when the body has ended. Only the first sample of a permit counts.
    pub fn sample(&mut self, now: Timestamp, permit: &mut Permit, outcome: Outcome) {
        let now = self.advance(now);
        self.learn(now, permit, outcome, false);
        self.dispatch(now);
        self.check_invariants();
    }

    /// The client has had its answer, or has left, but the work may go on: the slot stays taken by an orphan until
    /// [`complete`](Self::complete).
    pub fn abandon(&mut self, now: Timestamp, permit: &mut Permit, outcome: Outcome) {
        let now = self.advance(now);
        self.learn(now, permit, outcome, true);
        if !permit.orphan {
            permit.orphan = true;
            self.flight.orphan();
            self.counts.abandoned += 1;
        }
        self.dispatch(now);
        self.check_invariants();
    }

    /// The work is done, as far as anybody knows: the slot is free, and the next in line gets it.
    pub fn complete(&mut self, now: Timestamp, mut permit: Permit, outcome: Outcome) {
        let now = self.advance(now);
        self.learn(now, &mut permit, outcome, false);
        if permit.orphan && outcome == Outcome::Success {
            self.limit.on_late(now);
        }
        let freed = self.flight.free(permit.key, permit.orphan);
        debug_assert!(freed.is_some(), "the permit of another admission was completed here");
        if let Some(flying) = freed {
            self.counts.completed += 1;
            self.bulkheads.leave(flying.held);
            if !matches!(outcome, Outcome::Failure | Outcome::Ignore) {
                self.forecast.observe(now.since(flying.since));
            }
        }
        self.dispatch(now);
        self.check_invariants();
    }

    /// Whoever waits with this ticket has left. Says whether the ticket was still waiting; if not, an event has told
    /// or will tell what became of it, and a permit granted by it must be completed.
    pub fn cancel(&mut self, now: Timestamp, ticket: Ticket) -> bool {
        let now = self.advance(now);
        let cancelled = self.queue.remove(ticket.key);
        if let Some(waiting) = &cancelled {
            self.counts.cancelled += 1;
            self.bulkheads.leave(waiting.held);
        }
        self.dispatch(now);
        self.check_invariants();
        cancelled.is_some()
    }

    /// Time has passed: refuses those whose wait has ended.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.advance(now);
        self.check_invariants();
    }

    /// Puts a new policy in force. Nobody who waits is sent away, and nothing in flight is cancelled; an adaptive
    /// limit keeps what it has learned.
    pub fn reconfigure(&mut self, now: Timestamp, policy: AdmissionPolicy) {
        let now = self.advance(now);
        self.limit.reconfigure(&policy.limit);
        self.queue_policy = policy.queue;
        self.bulkheads.reconfigure(&policy.bulkheads);
        self.dispatch(now);
        self.check_invariants();
    }

    /// What became of a ticket. Call until `None` after every input.
    #[must_use = "an event that is dropped loses a slot or leaves somebody waiting for ever"]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest. May change with every input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.queue.next_end()
    }

    /// How it stands.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            limit: self.limit.current(),
            in_flight: self.flight.len(),
            max_in_flight: self.flight.most(),
            orphans: self.flight.orphans(),
            queue_depth: self.queue.len(),
            max_queue_depth: self.queue.longest(),
            queue_capacity: self.capacity_shown(),
            service_time: self.forecast.service(),
            counts: self.counts.clone(),
        }
    }

    /// Moves time, never back, and lets happen what that alone brings about: waits end, and the limit may move.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.limit.observe(self.now, self.flight.len(), !self.queue.is_empty());
        self.standing.observe(self.now, !self.queue.is_empty());
        while let Some((key, waiting)) = self.queue.pop_ended(self.now) {
            self.bulkheads.leave(waiting.held);
            let reason = match waiting.end {
                WaitEnd::Budget => Reason::QueueTimeout,
                WaitEnd::Deadline => Reason::Deadline,
            };
            let rejection = self.rejection(self.now, reason);
            let rejection = self.reject(rejection);
            self.events.push_back(Event::Refused { ticket: TicketId(key), rejection });
        }
        self.dispatch(self.now);
        self.now
    }

    /// Why this arrival must be refused, if it must. The checks go from the cheapest to the dearest, and from what
    /// the client can do least about to what it can do most about.
    fn refusal(&mut self, now: Timestamp, arrival: Arrival) -> Option<Rejection> {
        if arrival.deadline.is_some_and(|deadline| deadline <= now) {
            return Some(Rejection { reason: Reason::Deadline, retry_after: Duration::ZERO });
        }
        if !self.bulkheads.has_room(arrival.route) {
            return Some(self.rejection(now, Reason::RouteLimit));
        }
        if self.has_free_slot() {
            return None;
        }
        if self.queue.len() >= self.capacity() {
            return Some(self.rejection(now, Reason::QueueFull));
        }
        let wait = self.forecast_wait(now);
        if wait > self.budget(now, arrival.deadline) {
            return Some(self.rejection(now, Reason::WaitTooLong));
        }
        if self.last_useful_start(arrival).is_some_and(|start| now.after(wait) >= start) {
            return Some(self.rejection(now, Reason::Deadline));
        }
        None
    }

    fn admit(&mut self, now: Timestamp, route: RouteId) -> Permit {
        let held = self.bulkheads.enter(route);
        self.take_slot(Flying { since: now, held })
    }

    fn take_slot(&mut self, flying: Flying) -> Permit {
        self.counts.admitted += 1;
        let since = flying.since;
        Permit { key: self.flight.take(flying), since, sampled: false, orphan: false }
    }

    fn enqueue(&mut self, now: Timestamp, arrival: Arrival) -> Ticket {
        let budget = now.after(self.queue_policy.wait);
        let (until, end) = match self.last_useful_start(arrival) {
            Some(start) if start < budget => (start, WaitEnd::Deadline),
            _ => (budget, WaitEnd::Budget),
        };
        let held = self.bulkheads.enter(arrival.route);
        Ticket { key: self.queue.push(Waiting { until, end, held }), until }
    }

    /// Gives free slots to those who wait.
    fn dispatch(&mut self, now: Timestamp) {
        while self.flight.len() < self.limit.current()
            && let Some((key, waiting)) = self.queue.pop()
        {
            let permit = self.take_slot(Flying { since: now, held: waiting.held });
            self.events.push_back(Event::Granted { ticket: TicketId(key), permit });
        }
    }

    fn learn(&mut self, now: Timestamp, permit: &mut Permit, outcome: Outcome, gave_up: bool) {
        if permit.sampled {
            return;
        }
        permit.sampled = true;
        let in_use = self.flight.len().saturating_mul(2) >= self.limit.current();
        self.limit.on_sample(now, Sample { latency: now.since(permit.since), outcome, gave_up, in_use });
    }

    fn reject(&mut self, rejection: Rejection) -> Rejection {
        self.counts.rejected[rejection.reason as usize] += 1;
        rejection
    }

    /// A refusal now: coming back makes sense when those who wait have been served, and not all at once.
    fn rejection(&mut self, now: Timestamp, reason: Reason) -> Rejection {
        let (wait, service) = (self.forecast_wait(now), self.forecast.service());
        Rejection { reason, retry_after: self.comeback.next(now, wait, service, self.limit.current()) }
    }

    fn has_free_slot(&self) -> bool {
        self.queue.is_empty() && self.flight.len() < self.limit.current()
    }

    fn forecast_wait(&self, now: Timestamp) -> Duration {
        let slots = Slots {
            limit: self.limit.current(),
            taken: self.flight.len(),
            oldest: self.flight.oldest().unwrap_or(now),
            youngest: self.flight.youngest().unwrap_or(now),
        };
        self.forecast.wait(now, self.queue.len(), slots)
    }

    /// How long somebody who arrives now may wait. Where there is a queue all the time it is shorter: a tenth of the time
    /// that the client has, or what the policy says if that is less; but four requests may always wait, or slots would
    /// stand empty between one and the next.
    fn budget(&self, now: Timestamp, deadline: Option<Timestamp>) -> Duration {
        let QueuePolicy { wait, capacity, standing_wait, .. } = self.queue_policy;
        if capacity != Capacity::Derived || !self.standing.is_standing() {
            return wait;
        }
        let share = deadline.map_or(standing_wait, |deadline| standing_wait.min(deadline.since(now) / 10));
        let gap = self.forecast.service().unwrap_or_default() / self.limit.current().max(1);
        share.max(gap * 4).min(wait)
    }

    /// The last moment at which starting on this request is of use to its client.
    fn last_useful_start(&self, arrival: Arrival) -> Option<Timestamp> {
        let service = self.forecast.service().unwrap_or(Duration::ZERO);
        arrival.deadline.map(|deadline| Timestamp::ZERO.after(deadline.since(Timestamp::ZERO.after(service))))
    }

    /// How many may wait. Under a derived capacity it is the forecast that keeps the queue short, more exactly than a
    /// number of places could; this is then the bound on memory.
    fn capacity(&self) -> u32 {
        match self.queue_policy.capacity {
            // Nobody can wait for no time.
            _ if self.queue_policy.wait.is_zero() => 0,
            Capacity::Fixed(capacity) => capacity.min(QUEUE_CAPACITY_MAX),
            Capacity::Derived => QUEUE_CAPACITY_DERIVED_MAX,
        }
    }

    fn capacity_shown(&self) -> u32 {
        let budget = self.budget(self.now, None);
        match (self.queue_policy.capacity, self.forecast.capacity(self.limit.current(), budget)) {
            (Capacity::Derived, Some(places)) => places.min(QUEUE_CAPACITY_DERIVED_MAX.into()) as u32,
            _ => self.capacity(),
        }
    }

    /// Everything that must hold after every input, whatever came.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (counts, waiting, flying) =
            (&self.counts, u64::from(self.queue.len()), u64::from(self.flight.len()));
        let ended = counts.completed + counts.cancelled + counts.rejected_total();
        debug_assert_eq!(counts.arrived, waiting + flying + ended, "a request was lost or ended twice");
        debug_assert_eq!(counts.admitted, flying + counts.completed, "a slot was lost or given twice");
        debug_assert!(self.flight.orphans() <= self.flight.len());
        debug_assert!(
            self.queue.is_empty() || self.flight.len() >= self.limit.current(),
            "somebody waits beside a free slot"
        );
        debug_assert!(self.queue.len() <= QUEUE_CAPACITY_MAX);
        debug_assert!(self.queue.ends_kept() <= 2 * self.queue.len() as usize + 65, "dead timers pile up");
        debug_assert!(self.queue.next_end().is_none_or(|end| end > self.now), "a wait went on past its end");
        debug_assert!(u64::from(self.bulkheads.held()) <= waiting + flying);
    }
}
