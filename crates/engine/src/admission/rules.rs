//! Who is let in, who may wait, and who is refused on arrival.
//!
//! Nothing changes in here, but for what is looked up; what is decided is done by [`Admission`].

use core::time::Duration;

use super::Admission;
use crate::comeback::Bound;
use crate::damping::Tried;
use crate::decision::{Arrival, Reason};
use crate::forecast::Slots;
use crate::linked::Key;
use crate::policy::{Capacity, Discipline, QUEUE_CAPACITY_DERIVED_MAX, QUEUE_CAPACITY_MAX, QueuePolicy};
use crate::queue::{Place, Waiting};
use crate::time::{Timestamp, nanos};

impl Admission {
    /// Why this arrival must be refused, if it must; else whom it pushes out to have a place. The checks go from the
    /// cheapest to the dearest, and from what the client can do least about to what it can do most about.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        arrival: &Arrival,
        place: Place,
        tried: Tried,
    ) -> Result<Option<Key>, Reason> {
        if arrival.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(Reason::Deadline);
        }
        if !self.bulkheads.has_room(arrival.route) {
            return Err(Reason::RouteLimit);
        }
        if self.damping.as_mut().is_some_and(|damping| !damping.affords(now, tried)) {
            return Err(Reason::RetryBudget);
        }
        if self.breaker.as_mut().is_some_and(|breaker| breaker.check(now).is_err()) {
            return Err(Reason::BreakerOpen);
        }
        if self.has_room(place) {
            return Ok(None);
        }
        if self.tenant_has_its_share(arrival, place) {
            return Err(Reason::TenantLimit);
        }
        let lesser = self.makes_room(place)?;
        let wait = self.wait(now, place);
        if self.queue_policy.discipline == Discipline::Forecast
            && wait > self.budget(now, arrival.deadline, place)
        {
            return Err(Reason::WaitTooLong);
        }
        match self.last_useful_start(arrival) {
            Some(start) if now.after(wait) >= start => Err(Reason::Deadline),
            _ => Ok(lesser),
        }
    }

    /// Who has to go if there is no place left; somebody also if there is one, but so many wait that the last of them would
    /// wait in vain. They are told now and not when their time is up.
    fn makes_room(&self, place: Place) -> Result<Option<Key>, Reason> {
        let (len, places) = (self.queue.len(), self.capacity_shown());
        if len >= self.capacity() {
            return self.queue.lesser(place, places).map(Some).ok_or(Reason::QueueFull);
        }
        Ok(if len >= places { self.queue.less_important(place, places) } else { None })
    }

    /// What holds somebody back who is refused for this reason, if it is not what holds back everybody.
    pub(super) fn bound(&self, reason: Reason, arrival: &Arrival) -> Option<Bound> {
        let limit = self.limit.current();
        match reason {
            Reason::RouteLimit => {
                let slots = self.bulkheads.cap(arrival.route)?.get().min(limit);
                // Tenants' keys are hashes, so none of them is like this.
                Some(Bound { key: u64::from(arrival.route.0), slots })
            }
            Reason::TenantLimit => {
                Some(Bound { key: arrival.tenant?.id, slots: self.tenant_most(self.tenant_share?) as u32 })
            }
            _ => None,
        }
    }

    /// Whether the tenant takes or waits for as much as it may, now that there is too little for all.
    fn tenant_has_its_share(&self, arrival: &Arrival, place: Place) -> bool {
        let (Some(share), Some(tenant)) = (self.tenant_share, arrival.tenant) else { return false };
        let holds = self.queue.held_by(place, tenant).saturating_add(place.slots(u32::MAX).into());
        holds as f64 > self.tenant_most(share)
    }

    /// How many slots a tenant may hold whose share this is.
    fn tenant_most(&self, share: f64) -> f64 {
        (f64::from(self.limit.current()) * share).max(2.0)
    }

    /// Whether there are as many free slots as this one takes.
    pub(super) fn has_slots(&self, place: Place) -> bool {
        let limit = self.limit.current();
        self.flight.taken().saturating_add(place.slots(limit)) <= limit
    }

    /// Whether an arrival gets its slots at once.
    pub(super) fn has_room(&self, place: Place) -> bool {
        self.queue.is_empty() && self.has_slots(place)
    }

    pub(super) fn slots(&self, now: Timestamp) -> Slots {
        Slots {
            limit: self.limit.current(),
            taken: self.flight.taken(),
            oldest: self.flight.oldest().unwrap_or(now),
            youngest: self.flight.youngest().unwrap_or(now),
        }
    }

    /// How long somebody will wait who comes now: until those before him have been served, while more important ones, and
    /// before a retry first tries, go on to come as they did of late. What his class is guaranteed comes whoever is before
    /// it, so it may come sooner.
    fn wait(&self, now: Timestamp, place: Place) -> Duration {
        let slots = self.slots(now);
        let wait = self.forecast.wait(now, self.queue.ahead(place), slots);
        let in_line = longer(wait, self.queue.own_share(now, place, self.limit.current()));
        match self.queue.guaranteed(place) {
            Some((floor, ahead)) => in_line.min(longer(self.forecast.wait(now, ahead, slots), floor)),
            None => in_line,
        }
    }

    /// How long somebody who arrives now may wait. Where there is a queue all the time it is shorter: a tenth of the time
    /// that the client has, or what the policy says if that is less; but four requests may always wait, or slots would
    /// stand empty between one and the next.
    fn budget(&self, now: Timestamp, deadline: Option<Timestamp>, place: Place) -> Duration {
        let capacity = self.queue_policy.capacity;
        let patience = self.queue.patience(place, self.forecast.service());
        let wait = self.longest_wait(patience.filter(|_| deadline.is_none()));
        if capacity != Capacity::Derived || !self.queue.is_standing(place) {
            return wait;
        }
        let has = deadline.map(|deadline| deadline.since(now)).or(patience);
        self.standing_budget(has, self.queue.share(now, place, self.limit.current())).min(wait)
    }

    /// The budget where there is a queue all the time, of those whose clients have so much time and who have this share of
    /// the slots.
    fn standing_budget(&self, has: Option<Duration>, share: f64) -> Duration {
        let standing_wait = self.queue_policy.standing_wait;
        let brief = has.map_or(standing_wait, |has| standing_wait.min(has / 10));
        brief.max(longer(self.four_turns(), share))
    }

    /// After how long the most patient of the clients leave that do not say how long they wait.
    fn longest_patience(&self) -> Option<Duration> {
        self.queue.longest_patience(self.forecast.service())
    }

    /// The wait budget: what the policy says, but no more than half of the time after which clients leave, for those who do not
    /// say what time they have. Where somebody has said how long the queue is to be, it is for them to say how long anybody
    /// waits in it.
    pub(super) fn longest_wait(&self, patience: Option<Duration>) -> Duration {
        let QueuePolicy { wait, capacity, .. } = self.queue_policy;
        match (capacity, patience) {
            (Capacity::Derived, Some(patience)) => wait.min((patience / 2).max(self.four_turns())),
            _ => wait,
        }
    }

    /// In so long four slots come free.
    fn four_turns(&self) -> Duration {
        self.forecast.service().unwrap_or_default() / self.limit.current().max(1) * 4
    }

    /// Whether somebody whose turn has come had better be sent away.
    pub(super) fn waits_in_vain(&mut self, now: Timestamp, waiting: &Waiting) -> bool {
        let waited = now.since(waiting.since);
        if self.queue_policy.discipline == Discipline::Codel
            && self.codel.sends_away(now, waited, self.queue_policy.standing_wait)
        {
            return true;
        }
        if waiting.states_deadline || self.queue_policy.capacity != Capacity::Derived {
            return false;
        }
        // Its client will have left before the answer is there, as others did. Only those wait for so long who came before
        // that was known.
        let service = self.forecast.service();
        let patience = self.queue.patience(waiting.place, service);
        patience.is_some_and(|patience| waited.saturating_add(service.unwrap_or_default()) >= patience)
    }

    /// The last moment at which starting on this request is of use to its client.
    pub(super) fn last_useful_start(&self, arrival: &Arrival) -> Option<Timestamp> {
        let service = self.forecast.service().unwrap_or(Duration::ZERO);
        arrival.deadline.map(|deadline| Timestamp::ZERO.after(deadline.since(Timestamp::ZERO.after(service))))
    }

    /// How many may wait. Where it is forecast who would wait too long, that keeps a derived queue short, more exactly than
    /// a number of places could; the number is then the bound on memory.
    pub(super) fn capacity(&self) -> u32 {
        match self.queue_policy.capacity {
            // Nobody can wait for no time.
            _ if self.queue_policy.wait.is_zero() => 0,
            Capacity::Fixed(capacity) => capacity.min(QUEUE_CAPACITY_MAX),
            Capacity::Derived if self.queue_policy.discipline == Discipline::Forecast => {
                QUEUE_CAPACITY_DERIVED_MAX
            }
            Capacity::Derived => self.places(self.longest_wait(self.longest_patience())),
        }
    }

    pub(super) fn capacity_shown(&self) -> u32 {
        match self.queue_policy.capacity {
            Capacity::Derived if self.capacity() > 0 => {
                let patience = self.longest_patience();
                let wait = self.longest_wait(patience);
                let standing = self.queue.any_is_standing();
                self.places(if standing { self.standing_budget(patience, 1.0).min(wait) } else { wait })
            }
            _ => self.capacity(),
        }
    }

    /// How many can be served within this time, at least one; as far as that is known.
    fn places(&self, wait: Duration) -> u32 {
        let places = self.forecast.capacity(self.limit.current(), wait);
        places.map_or(QUEUE_CAPACITY_DERIVED_MAX, |places| {
            places.clamp(1, QUEUE_CAPACITY_DERIVED_MAX.into()) as u32
        })
    }
}

/// A time in which so much of the capacity is used by others takes so much longer.
fn longer(time: Duration, share: f64) -> Duration {
    if share >= 1.0 { time } else { Duration::from_nanos((nanos(time) as f64 / share) as u64) }
}
