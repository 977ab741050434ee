//! The gateway before a service, as far as it decides: the engine's admission and rate limits, driven in virtual time.
//!
//! What the gateway does with sockets is here a matter of moments; what it does with the engine is done in the same
//! order.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{
    Admission, Decision, Event, LimitPolicy, Outcome, Permit, RateLimiter, Reason, Rejection, Ticket,
    Timestamp,
};

use crate::control::Setup;
use crate::ending::Ending;
use crate::model::{Model, Sample};
use crate::passage::{Passage, Says};

/// One gateway before one service. `C` is what whoever asks calls a request.
#[derive(Debug)]
pub(crate) struct Gate<C> {
    pub(crate) setup: Setup,
    admission: Admission,
    /// Says the limit in the place of the policy, or who is dropped from its queue.
    model: Option<Model>,
    limiters: Vec<RateLimiter>,
    /// For each kind of request, when the one began that came last of those that were let in.
    newest: Vec<Vec<Timestamp>>,
    /// By the index of their tickets, each with the moment of arrival.
    waiting: Vec<Option<(C, Timestamp)>>,
    /// Who was granted or refused after waiting, in order.
    pub(crate) heard: Vec<Heard<C>>,
    /// When it is to be woken, as far as that is planned.
    planned: Timestamp,
}

/// A slot that is taken.
#[derive(Debug)]
pub(crate) struct Slot {
    permit: Permit,
    /// The model has learned from it.
    learned: bool,
}

impl Slot {
    const fn new(permit: Permit) -> Self {
        Self { permit, learned: false }
    }
}

/// What became of somebody who waited.
#[derive(Debug)]
pub(crate) enum Heard<C> {
    Granted(C, Slot),
    Refused(C, Rejection),
}

/// What becomes of somebody who arrives.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Goes on; without a slot on a route that is exempt.
    Passed(Option<Slot>),
    Waiting(Ticket),
    Refused(Rejection),
}

impl<C: Copy> Gate<C> {
    /// A gateway with these settings. If there is a model, it says the limit from the beginning.
    pub(crate) fn new(mut setup: Setup, model: Option<Model>) -> Self {
        if let Some(limit) = model.as_ref().and_then(Model::limit) {
            setup.admission.limit = fixed(limit);
        }
        Self {
            admission: Admission::new(setup.admission.clone()),
            limiters: setup
                .rate_limits
                .iter()
                .map(|limit| RateLimiter::new(limit.quota, limit.max_keys))
                .collect(),
            newest: setup.passages.iter().map(|kinds| vec![Timestamp::ZERO; kinds.len()]).collect(),
            setup,
            model,
            waiting: Vec::new(),
            heard: Vec::new(),
            planned: Timestamp::MAX,
        }
    }

    /// How a kind of request, of this crowd, passes.
    pub(crate) fn passage(&self, crowd: u16, kind: u16) -> &Passage {
        &self.setup.passages[usize::from(crowd)][usize::from(kind)]
    }

    /// A request of this kind, of this crowd, arrives, and says this of itself.
    pub(crate) fn enter(&mut self, now: Timestamp, who: C, (crowd, kind): (u16, u16), says: Says) -> Entry {
        let passage = &self.setup.passages[usize::from(crowd)][usize::from(kind)];
        if passage.exempt {
            return Entry::Passed(None);
        }
        let longest = self.setup.retry_after_max;
        if let Some(rejection) = over_a_rate(&mut self.limiters, now, passage, says, longest) {
            return Entry::Refused(rejection);
        }
        let decision = self.admission.arrive(now, passage.arrival(now, says));
        // First: the ticket of this arrival may have the index of one that has ended just now.
        self.hear();
        match decision {
            Decision::Admit(permit) => {
                // Nobody is dropped who did not wait, but that nobody had to is worth knowing.
                self.drops(now, now);
                self.sent();
                Entry::Passed(Some(Slot::new(permit)))
            }
            Decision::Reject(rejection) => Entry::Refused(rejection),
            Decision::Queue(ticket) => {
                let index = ticket.id().index();
                if self.waiting.len() <= index {
                    self.waiting.resize(index + 1, None);
                }
                self.waiting[index] = Some((who, now));
                Entry::Waiting(ticket)
            }
        }
    }

    /// A request of this kind, which began then, is let in. Says whether one has been that came later.
    pub(crate) fn is_overtaken(&mut self, (crowd, kind): (u16, u16), began: Timestamp) -> bool {
        let newest = &mut self.newest[usize::from(crowd)][usize::from(kind)];
        let before = std::mem::replace(newest, began.max(*newest));
        began < before
    }

    pub(crate) fn complete(&mut self, now: Timestamp, mut slot: Slot, ending: Ending) {
        self.learn(now, &mut slot, ending);
        self.admission.complete(now, slot.permit, ending.outcome());
        self.hear();
    }

    pub(crate) fn abandon(&mut self, now: Timestamp, slot: &mut Slot, ending: Ending) {
        self.learn(now, slot, ending);
        self.admission.abandon(now, &mut slot.permit, ending.outcome());
        self.hear();
    }

    /// Says whether it was still waiting.
    pub(crate) fn cancel(&mut self, now: Timestamp, ticket: Ticket) -> bool {
        let index = ticket.id().index();
        let was_waiting = self.admission.cancel(now, ticket);
        if was_waiting {
            self.waiting[index] = None;
        }
        self.hear();
        was_waiting
    }

    /// It is woken.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        self.planned = Timestamp::MAX;
        if let Some(model) = &mut self.model {
            model.wake(now);
        }
        self.follow(now);
        self.admission.handle_timeout(now);
        self.hear();
    }

    /// When it has to be woken, if that is not planned yet.
    pub(crate) fn plan(&mut self) -> Option<Timestamp> {
        let model = self.model.as_ref().and_then(Model::next_wake).filter(|next| *next < Timestamp::MAX);
        let next = self.admission.poll_timeout().into_iter().chain(model).min();
        let next = next.filter(|next| *next < self.planned)?;
        self.planned = next;
        Some(next)
    }

    pub(crate) fn set_limit(&mut self, now: Timestamp, limit: LimitPolicy) {
        self.put_in_force(now, limit);
        self.hear();
    }

    fn put_in_force(&mut self, now: Timestamp, limit: LimitPolicy) {
        self.setup.admission.limit = limit;
        self.admission.reconfigure(now, self.setup.admission.clone());
    }

    /// Limit, in flight, waiting.
    pub(crate) fn stand(&self) -> (u32, u32, u32) {
        let snapshot = self.admission.snapshot();
        (snapshot.limit, snapshot.in_flight, snapshot.queue_depth)
    }

    /// The model learns from an exchange once, when it ends for whoever waits.
    fn learn(&mut self, now: Timestamp, slot: &mut Slot, ending: Ending) {
        if !std::mem::replace(&mut slot.learned, true)
            && let Some(model) = &mut self.model
        {
            model.on_sample(now, Sample { sent: slot.permit.since(), ending });
            self.follow(now);
        }
    }

    /// Puts in force what the model says.
    fn follow(&mut self, now: Timestamp) {
        let limit = self.model.as_ref().and_then(Model::limit).map(fixed);
        if let Some(limit) = limit.filter(|limit| *limit != self.setup.admission.limit) {
            self.put_in_force(now, limit);
        }
    }

    /// Whether the model drops somebody who arrived then and would get a slot now.
    fn drops(&mut self, now: Timestamp, arrived: Timestamp) -> bool {
        let Some(model) = &mut self.model else { return false };
        model.drops(now, now.since(arrived), self.admission.snapshot().queue_depth)
    }

    /// Somebody has got a slot.
    fn sent(&mut self) {
        if let Some(model) = &mut self.model {
            model.sent(self.admission.snapshot().in_flight);
        }
    }

    fn hear(&mut self) {
        while let Some(event) = self.admission.poll_event() {
            let (Event::Granted { ticket, .. } | Event::Refused { ticket, .. }) = &event;
            let Some((who, arrived)) = self.waiting[ticket.index()].take() else {
                debug_assert!(false, "an event names somebody who does not wait");
                continue;
            };
            match event {
                Event::Granted { permit, .. } if self.drops(permit.since(), arrived) => {
                    // The slot goes to the next in line, of whom the next event tells.
                    self.admission.complete(permit.since(), permit, Outcome::Ignore);
                    let rejection = Rejection { reason: Reason::QueueTimeout, retry_after: Duration::ZERO };
                    self.heard.push(Heard::Refused(who, rejection));
                }
                Event::Granted { permit, .. } => {
                    self.sent();
                    self.heard.push(Heard::Granted(who, Slot::new(permit)));
                }
                Event::Refused { rejection, .. } => self.heard.push(Heard::Refused(who, rejection)),
            }
        }
    }
}

fn fixed(limit: u32) -> LimitPolicy {
    LimitPolicy::Fixed(NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN))
}

/// Counts it against every rate limit that applies, or against none and says when the last that refuses it would not.
fn over_a_rate(
    limiters: &mut [RateLimiter],
    now: Timestamp,
    passage: &Passage,
    says: Says,
    longest: Duration,
) -> Option<Rejection> {
    let mut reservations = Vec::new();
    let mut over: Option<Rejection> = None;
    for (index, key) in passage.limits(says) {
        match limiters[index].peek(now, key, NonZeroU32::MIN) {
            Ok(reservation) => reservations.push(reservation),
            Err(refusal) => {
                let rejection = limiters[index].rejection(now, key, NonZeroU32::MIN, refusal, longest);
                over = over.into_iter().chain([rejection]).max_by_key(|over| over.retry_after);
            }
        }
    }
    if over.is_some() {
        return over;
    }
    for ((index, _), reservation) in passage.limits(says).zip(reservations) {
        limiters[index].commit(reservation);
    }
    None
}
