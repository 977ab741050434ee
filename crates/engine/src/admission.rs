//! One protected capacity: a limit, what is in flight, and who waits. The state machine.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::breaker::{Breaker, Pass, Refused, Verdict};
use crate::bulkhead::{Bulkheads, Held};
use crate::codel::Codel;
use crate::comeback::{Bound, Comeback, Line, Room};
use crate::damping::{Damping, Tried};
use crate::decision::{Arrival, Decision, Event, Outcome, Permit, Reason, Rejection, Ticket, TicketId};
use crate::flight::{Flight, Flying};
use crate::forecast::Forecast;
use crate::limit::{Limit, Sample};
use crate::linked::Key;
use crate::policy::{AdmissionPolicy, QUEUE_CAPACITY_MAX, QueuePolicy};
use crate::queue::{Place, Queue, WaitEnd, Waiting};
use crate::snapshot::{Counts, Snapshot};
use crate::time::Timestamp;

mod rules;

/// Decides who may occupy one protected capacity, who waits for it, and who is refused.
///
/// # How to drive it
///
/// There are three families of methods.
///
/// - **Inputs** tell what happened, with the time first: [`arrive`](Self::arrive), [`sample`](Self::sample),
///   [`on_load`](Self::on_load), [`abandon`](Self::abandon), [`complete`](Self::complete), [`cancel`](Self::cancel),
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
    tenant_share: Option<f64>,
    bulkheads: Bulkheads,
    damping: Option<Damping>,
    breaker: Option<Breaker>,
    forecast: Forecast,
    codel: Codel,
    comeback: Comeback,
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
            queue: Queue::new(&policy.priorities, policy.queue.discipline),
            queue_policy: policy.queue,
            tenant_share: policy.tenant_share,
            bulkheads: Bulkheads::new(&policy.bulkheads),
            damping: policy.retries.map(Damping::new),
            breaker: policy.breaker.map(Breaker::new),
            forecast: Forecast::default(),
            codel: Codel::default(),
            comeback: Comeback::default(),
            events: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// A request has come: admit it, let it wait, or refuse it.
    pub fn arrive(&mut self, now: Timestamp, arrival: Arrival) -> Decision {
        let now = self.advance(now);
        self.counts.arrived += 1;
        let tried = self.damping.as_mut().map_or(Tried::First, |damping| damping.judge(now, &arrival));
        let place = self.queue.place(&arrival, tried.rank());
        let decision = match self.judge(now, &arrival, place, tried) {
            Err(reason) => {
                let bound = self.bound(reason, &arrival);
                Decision::Reject(self.reject(now, reason, arrival.fingerprint, bound))
            }
            Ok(lesser) => {
                if let Some(damping) = &mut self.damping {
                    damping.let_in(tried);
                }
                self.queue.enter(place);
                let held = self.bulkheads.enter(arrival.route);
                if self.has_room(place) {
                    // The breaker was asked a moment ago, and time stands still.
                    let pass = self.pass(now).unwrap_or_default();
                    Decision::Admit(self.take_slots(
                        now,
                        arrival.deadline.is_none().then_some(now),
                        place,
                        held,
                        pass,
                    ))
                } else {
                    self.queue_up(now, &arrival, place, held, lesser)
                }
            }
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

    /// The upstream says how busy it is: `load` is a part of what it should be at most. From 1 on, the limit has a
    /// ceiling of what is in flight divided by it, until reports say otherwise or stop. What is no number counts as
    /// nothing said.
    pub fn on_load(&mut self, now: Timestamp, load: f64) {
        let now = self.advance(now);
        self.limit.on_load(now, load, self.flight.taken());
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
            self.flight.orphan(permit.key);
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
            let took = now.since(flying.since);
            let limit = self.limit.current();
            self.queue.freed(flying.place, flying.slots, flying.charged, took, limit);
            if !matches!(outcome, Outcome::Failure | Outcome::Ignore) {
                self.forecast.observe(took);
            }
        }
        self.dispatch(now);
        self.check_invariants();
    }

    /// Whether the driver may send a request again by itself. If so, that is paid for, whatever becomes of it: a retry
    /// counts from the decision on (envoy#30205).
    pub fn spend_retry(&mut self, now: Timestamp) -> bool {
        let now = self.advance(now);
        self.check_invariants();
        self.damping.as_mut().is_some_and(|damping| damping.spend(now))
    }

    /// Whoever waits with this ticket has left. Says whether the ticket was still waiting; if not, an event has told
    /// or will tell what became of it, and a permit granted by it must be completed.
    pub fn cancel(&mut self, now: Timestamp, ticket: Ticket) -> bool {
        let now = self.advance(now);
        let cancelled = self.queue.remove(ticket.key);
        if let Some(waiting) = &cancelled {
            self.counts.cancelled += 1;
            if !waiting.states_deadline {
                self.queue.has_left(waiting.place, now.since(waiting.since), self.forecast.service());
            }
            self.bulkheads.leave(waiting.held);
            self.queue.leave(waiting.place);
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
        self.queue.reconfigure(&policy.priorities, policy.queue.discipline);
        self.queue_policy = policy.queue;
        self.tenant_share = policy.tenant_share;
        self.bulkheads.reconfigure(&policy.bulkheads);
        match (&mut self.damping, policy.retries) {
            (Some(damping), Some(retries)) => damping.reconfigure(retries),
            (damping, retries) => *damping = retries.map(Damping::new),
        }
        match (&mut self.breaker, policy.breaker) {
            (Some(breaker), Some(policy)) => breaker.reconfigure(now, policy),
            (breaker, policy) => *breaker = policy.map(Breaker::new),
        }
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
            in_flight: self.flight.taken(),
            max_in_flight: self.flight.most(),
            orphans: self.flight.orphans(),
            queue_depth: self.queue.len(),
            max_queue_depth: self.queue.longest(),
            queue_capacity: self.capacity_shown(),
            waiting_by_priority: self.queue.lengths(),
            in_flight_by_priority: self.queue.in_flight(),
            retries_left: self.damping.as_ref().map(Damping::left),
            breaker: self.breaker.as_ref().map(|breaker| breaker.state(self.now)),
            service_time: self.forecast.service(),
            counts: self.counts.clone(),
        }
    }

    /// Moves time, never back, and lets happen what that alone brings about: waits end, and the limit may move.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.limit.observe(self.now, self.flight.taken(), !self.queue.is_empty());
        self.queue.observe(self.now);
        while let Some((key, waiting)) = self.queue.pop_ended(self.now) {
            let reason = match waiting.end {
                WaitEnd::Budget => Reason::QueueTimeout,
                WaitEnd::Deadline => Reason::Deadline,
            };
            self.send_away(self.now, key, &waiting, reason);
        }
        self.dispatch(self.now);
        self.now
    }

    /// Asks the breaker, if there is one.
    fn pass(&mut self, now: Timestamp) -> Result<Option<Pass>, Refused> {
        self.breaker.as_mut().map(|breaker| breaker.try_pass(now)).transpose()
    }

    fn take_slots(
        &mut self,
        now: Timestamp,
        arrived: Option<Timestamp>,
        place: Place,
        held: Held,
        pass: Option<Pass>,
    ) -> Permit {
        self.counts.admitted += 1;
        let slots = place.slots(self.limit.current());
        let charged = self.queue.dispatched(now, place, slots);
        let flying = Flying { since: now, held, place, slots, charged };
        Permit { key: self.flight.take(flying), since: now, arrived, sampled: false, orphan: false, pass }
    }

    /// Lets somebody wait, in the place of `lesser` if there is one who has to go.
    fn queue_up(
        &mut self,
        now: Timestamp,
        arrival: &Arrival,
        place: Place,
        held: Held,
        lesser: Option<Key>,
    ) -> Decision {
        if let Some(key) = lesser
            && let Some(waiting) = self.queue.remove(key)
        {
            self.send_away(now, key, &waiting, Reason::PushedOut);
        }
        let ticket = self.enqueue(now, arrival, place, held);
        // Those who wait may all wait for more slots than there are, and this one, if it goes before them, for fewer.
        let events = self.events.len();
        self.dispatch(now);
        for index in events..self.events.len() {
            let (Event::Granted { ticket: ended, .. } | Event::Refused { ticket: ended, .. }) =
                &self.events[index];
            if *ended == ticket.id() {
                // Nobody knows the ticket yet, so this is the answer to the arrival, and no event.
                return match self.events.remove(index) {
                    Some(Event::Granted { permit, .. }) => Decision::Admit(permit),
                    Some(Event::Refused { rejection, .. }) => Decision::Reject(rejection),
                    None => Decision::Queue(ticket),
                };
            }
        }
        Decision::Queue(ticket)
    }

    fn enqueue(&mut self, now: Timestamp, arrival: &Arrival, place: Place, held: Held) -> Ticket {
        let states_deadline = arrival.deadline.is_some();
        let patience = self.queue.patience(place, self.forecast.service());
        let budget = now.after(self.longest_wait(patience.filter(|_| !states_deadline)));
        let (until, end) = match self.last_useful_start(arrival) {
            Some(start) if start < budget => (start, WaitEnd::Deadline),
            _ => (budget, WaitEnd::Budget),
        };
        let fingerprint = arrival.fingerprint;
        let waiting = Waiting { since: now, until, end, states_deadline, held, place, fingerprint };
        Ticket { key: self.queue.push(waiting), until }
    }

    /// Tells somebody who waited, and is out of the queue already, that it was in vain.
    fn send_away(&mut self, now: Timestamp, key: Key, waiting: &Waiting, reason: Reason) {
        self.bulkheads.leave(waiting.held);
        self.queue.leave(waiting.place);
        let rejection = self.reject(now, reason, waiting.fingerprint, None);
        self.events.push_back(Event::Refused { ticket: TicketId(key), rejection });
    }

    /// Gives free slots to those who wait.
    fn dispatch(&mut self, now: Timestamp) {
        while let Some((key, place)) = self.queue.next()
            && self.has_slots(place)
            && let Some(waiting) = self.queue.remove(key)
        {
            if self.waits_in_vain(now, &waiting) {
                self.send_away(now, key, &waiting, Reason::QueueTimeout);
                continue;
            }
            // It may have opened since this one came.
            let Ok(pass) = self.pass(now) else {
                self.send_away(now, key, &waiting, Reason::BreakerOpen);
                continue;
            };
            let arrived = (!waiting.states_deadline).then_some(waiting.since);
            let permit = self.take_slots(now, arrived, place, waiting.held, pass);
            self.events.push_back(Event::Granted { ticket: TicketId(key), permit });
        }
    }

    fn learn(&mut self, now: Timestamp, permit: &mut Permit, outcome: Outcome, gave_up: bool) {
        if permit.sampled {
            return;
        }
        permit.sampled = true;
        if let (Some(breaker), Some(pass)) = (&mut self.breaker, permit.pass.take()) {
            breaker.complete(now, pass, Verdict::from(outcome));
        }
        if let (Some(arrived), Some(place)) = (permit.arrived, self.flight.place(permit.key)) {
            match outcome {
                Outcome::Ignore if gave_up => {
                    self.queue.has_left(place, now.since(arrived), self.forecast.service());
                }
                Outcome::Success if !gave_up => self.queue.was_served(place, now.since(arrived)),
                _ => {}
            }
        }
        let in_use = self.flight.taken().saturating_mul(2) >= self.limit.current();
        // As they really wait: what is known of it for the queue is never less than an answer takes, and that is longest when
        // far too much is in flight.
        let patience = self.queue.deadline();
        let latency = now.since(permit.since);
        self.limit.on_sample(now, Sample { latency, outcome, gave_up, in_use, patience });
    }

    /// A refusal now: coming back makes sense when those who wait have been served, or where it is a bound that only some
    /// have, when there is room within that; and not all at once.
    fn reject(
        &mut self,
        now: Timestamp,
        reason: Reason,
        fingerprint: Option<u64>,
        bound: Option<Bound>,
    ) -> Rejection {
        self.counts.rejected[reason as usize] += 1;
        match (reason, &mut self.breaker) {
            // Nobody is told to come back, so nobody's turn is used up.
            (Reason::Deadline | Reason::RetryBudget, _) => {
                return Rejection { reason, retry_after: Duration::ZERO };
            }
            // It knows better than anybody when.
            (Reason::BreakerOpen, Some(breaker)) => {
                let refused = breaker.check(now).err();
                return Rejection {
                    reason,
                    retry_after: refused.map_or(Duration::ZERO, |it| it.retry_after),
                };
            }
            _ => {}
        }
        let line = self.damping.as_mut().map_or(Line::New, |damping| damping.line(now, fingerprint));
        let retry_after = self.turn(now, bound, line);
        if let Some(damping) = &mut self.damping {
            damping.refused(now, fingerprint, now.after(retry_after), line);
        }
        Rejection { reason, retry_after }
    }

    /// The next turn of those who are refused, for this bound or because there is no room for anybody.
    fn turn(&mut self, now: Timestamp, bound: Option<Bound>, line: Line) -> Duration {
        let service = self.forecast.service();
        if let Some(bound) = bound {
            return self.comeback.next_within(now, bound, service, line);
        }
        let wait = self.forecast.wait(now, self.queue.len(), self.slots(now));
        let room = Room { service, slots: self.limit.current(), places: self.capacity_shown() };
        self.comeback.next(now, wait, room, line)
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
        debug_assert!(self.flight.orphans() <= self.flight.taken());
        let next = self.queue.next();
        debug_assert_eq!(next.is_some(), waiting > 0, "somebody waits and is never next");
        debug_assert!(
            !next.is_some_and(|(_, place)| self.has_slots(place)),
            "somebody waits beside free slots"
        );
        debug_assert!(self.queue.len() <= QUEUE_CAPACITY_MAX);
        debug_assert!(self.queue.ends_kept() <= 2 * self.queue.len() as usize + 65, "dead timers pile up");
        debug_assert!(self.queue.next_end().is_none_or(|end| end > self.now), "a wait went on past its end");
        debug_assert!(u64::from(self.bulkheads.held()) <= waiting + flying);
        self.queue.check_invariants(self.flight.taken());
    }
}
