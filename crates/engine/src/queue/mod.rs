//! The queue: who waits, who is next, and until when.
//!
//! More important classes go first, but for what the policy guarantees to the others ([`class`]); within a class tenants
//! take turns ([`flows`]); a tenant's first tries go before its retries; and of those, whoever came first, or last where
//! the policy says so. Each entry has its own end: the wait budget, or the moment after which an answer would come too
//! late. Ends are kept in a heap whose dead entries are skipped. Joining and leaving cost the logarithm of the number of
//! tenants who wait, whatever the length. It does not decide who may wait; that is [`Admission`](crate::Admission).

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::bulkhead::Held;
use crate::decision::{Arrival, Tenant};
use crate::linked::{Key, LinkedSlab};
use crate::patience::Patience;
use crate::policy::{Discipline, PRIORITIES_MAX, PriorityPolicy};
use crate::time::{Timestamp, nanos};

mod class;
use class::Class;

mod flows;
pub(crate) use flows::Rank;

mod heap;

/// The share of the slots that is taken to be left where there is none.
const LEAST_SHARE: f64 = 0.01;

/// Where a request belongs, waiting or in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    class: u8,
    flow: u16,
    rank: Rank,
    weight: NonZeroU32,
    /// How many slots it takes, if there are so many.
    cost: NonZeroU32,
}

impl Place {
    /// How many slots it takes of so many.
    pub(crate) fn slots(self, limit: u32) -> u32 {
        self.cost.get().min(limit.max(1))
    }
}

/// One who waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    /// What refuses it when `until` comes.
    pub(crate) end: WaitEnd,
    /// Its client says how long it waits.
    pub(crate) states_deadline: bool,
    pub(crate) held: Held,
    pub(crate) place: Place,
    /// What it is known by when it comes again.
    pub(crate) fingerprint: Option<u64>,
}

/// Which of the two bounds ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Budget,
    Deadline,
}

#[derive(Debug)]
pub(crate) struct Queue {
    waiting: LinkedSlab<Waiting>,
    ends: BinaryHeap<Reverse<(Timestamp, Key)>>,
    /// The most important first. Never fewer than hold somebody, so a policy with fewer classes loses nobody.
    classes: Vec<Class>,
    /// How many of the classes the policy has.
    in_force: usize,
    longest: u32,
    /// Where a queue stands, whoever came last goes first.
    last_first: bool,
}

impl Queue {
    pub(crate) fn new(priorities: &[PriorityPolicy], discipline: Discipline) -> Self {
        let mut queue = Self {
            waiting: LinkedSlab::new(),
            ends: BinaryHeap::new(),
            classes: Vec::new(),
            in_force: 0,
            longest: 0,
            last_first: false,
        };
        queue.reconfigure(priorities, discipline);
        queue
    }

    /// Puts other classes in force. Who is inside stays in the class that has the number of its old one.
    pub(crate) fn reconfigure(&mut self, priorities: &[PriorityPolicy], discipline: Discipline) {
        self.last_first = discipline == Discipline::AdaptiveLifo;
        self.in_force = priorities.len().clamp(1, PRIORITIES_MAX);
        while self.classes.len() < self.in_force {
            self.classes.push(Class::new());
        }
        for (number, class) in self.classes.iter_mut().enumerate() {
            let floor = priorities.get(number).map_or(0.0, |policy| policy.floor);
            class.floor = if floor.is_finite() { floor.clamp(0.0, 1.0) } else { 0.0 };
        }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.waiting.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.len() == 0
    }

    /// The longest it has ever been.
    pub(crate) const fn longest(&self) -> u32 {
        self.longest
    }

    /// How many of each class wait.
    pub(crate) fn lengths(&self) -> [u32; PRIORITIES_MAX] {
        self.by_class(|class| class.len)
    }

    /// How many slots each class takes.
    pub(crate) fn in_flight(&self) -> [u32; PRIORITIES_MAX] {
        self.by_class(|class| class.in_flight)
    }

    fn by_class(&self, number: impl Fn(&Class) -> u32) -> [u32; PRIORITIES_MAX] {
        let mut numbers = [0; PRIORITIES_MAX];
        for (slot, class) in numbers.iter_mut().zip(&self.classes) {
            *slot = number(class);
        }
        numbers
    }

    /// Since this was called last, nobody has joined or left.
    pub(crate) fn observe(&mut self, now: Timestamp) {
        let mut somebody = false;
        for class in &mut self.classes {
            somebody |= !class.is_empty();
            class.standing.observe(now, somebody);
        }
    }

    /// Where an arrival belongs.
    pub(crate) fn place(&mut self, arrival: &Arrival, rank: Rank) -> Place {
        let class = usize::from(arrival.priority.0).min(self.in_force - 1);
        let flow = self.classes[class].flows.of(arrival.tenant);
        let weight = arrival.tenant.map_or(NonZeroU32::MIN, |tenant| tenant.weight);
        Place { class: class as u8, flow, rank, weight, cost: arrival.cost }
    }

    /// Slots that the tenant takes or waits for in its class.
    pub(crate) fn held_by(&self, place: Place, tenant: Tenant) -> u64 {
        self.class(place).flows.held_by(place.flow, tenant)
    }

    /// Somebody is inside from now on, waiting or in flight, until [`leave`](Self::leave).
    pub(crate) fn enter(&mut self, place: Place) {
        self.class_mut(place).flows.enter(place.flow, place.cost.get());
    }

    pub(crate) fn leave(&mut self, place: Place) {
        self.class_mut(place).flows.leave(place.flow, place.cost.get());
    }

    pub(crate) fn push(&mut self, waiting: Waiting) -> Key {
        let (until, place) = (waiting.until, waiting.place);
        let class = &mut self.classes[usize::from(place.class)];
        let key = self.waiting.push_back(class.flows.list(place.flow, place.rank), waiting);
        class.len += 1;
        class.flows.was_put_in(place.flow, place.rank, place.cost.get());
        // Budgets end in the order of arrival, so a push rarely has to sift up.
        self.ends.push(Reverse((until, key)));
        self.longest = self.longest.max(self.len());
        key
    }

    /// Who is next.
    pub(crate) fn next(&self) -> Option<(Key, Place)> {
        // Every input asks, and most find nobody.
        if self.is_empty() {
            return None;
        }
        let class = self.classes.iter().rev().find(|class| class.is_owed());
        let class = class.or_else(|| self.classes.iter().find(|class| !class.is_empty()))?;
        let (flow, rank) = class.flows.turn()?;
        let list = class.flows.get(flow, rank);
        let backwards = self.goes_backwards(class);
        let (key, waiting) = if backwards { self.waiting.back(list)? } else { self.waiting.front(list)? };
        Some((key, waiting.place))
    }

    /// Somebody is given slots: from the queue, or on arrival. Gives what its tenant was charged.
    pub(crate) fn dispatched(&mut self, now: Timestamp, place: Place, slots: u32) -> u64 {
        let class = &mut self.classes[usize::from(place.class)];
        let expected = class.flows.expected(place.flow, class.service);
        let slot_nanos = expected.saturating_mul(slots.into());
        let charged = class.flows.charge(place.flow, slot_nanos, place.weight);
        class.in_flight = class.in_flight.saturating_add(slots);
        class.usage.add(now, slot_nanos);
        if place.rank == Rank::First {
            class.first_tries.add(now, slot_nanos);
        }
        for class in &mut self.classes {
            class.earn(slot_nanos);
        }
        self.class_mut(place).pay(slot_nanos);
        charged
    }

    /// What somebody was given is free again, after it was taken for so long. There are `limit` slots.
    pub(crate) fn freed(&mut self, place: Place, slots: u32, charged: u64, took: Duration, limit: u32) {
        let class = self.class_mut(place);
        class.in_flight -= slots;
        class.observe(nanos(took));
        class.flows.settle(place.flow, charged, took, slots, place.weight, limit);
        for class in &mut self.classes {
            class.guess(nanos(took));
        }
        self.leave(place);
    }

    /// How many slots are given to others before somebody has one who comes now.
    pub(crate) fn ahead(&self, place: Place) -> u32 {
        let before =
            self.classes[..usize::from(place.class)].iter().map(|class| class.flows.slots()).sum::<u64>();
        u32::try_from(before.saturating_add(self.class(place).ahead(place))).unwrap_or(u32::MAX)
    }

    /// What its class has whatever the others want: its share of the slots, and how many of those are given to others of
    /// the class before somebody has one who comes now. `None` if nothing is guaranteed to it.
    pub(crate) fn guaranteed(&self, place: Place) -> Option<(f64, u32)> {
        let class = self.class(place);
        // What is left of it for retries is another question.
        let guaranteed = class.floor > 0.0 && place.rank == Rank::First;
        guaranteed.then(|| (class.floor, u32::try_from(class.ahead(place)).unwrap_or(u32::MAX)))
    }

    /// The share of so many slots that is left to a class by those that are more important, as it was lately; at least its
    /// floor, and a hundredth.
    pub(crate) fn share(&self, now: Timestamp, place: Place, limit: u32) -> f64 {
        self.left(now, place, limit).max(self.class(place).floor).max(LEAST_SHARE)
    }

    /// The share that is left to somebody: for a retry, by the first tries of its class too.
    pub(crate) fn own_share(&self, now: Timestamp, place: Place, limit: u32) -> f64 {
        match place.rank {
            Rank::First => self.share(now, place, limit),
            Rank::Retry => {
                let first_tries = self.class(place).first_tries.slots(now) / f64::from(limit.max(1));
                (self.left(now, place, limit) - first_tries).max(LEAST_SHARE)
            }
        }
    }

    fn left(&self, now: Timestamp, place: Place, limit: u32) -> f64 {
        let before = &self.classes[..usize::from(place.class)];
        let used: f64 = before.iter().map(|class| class.usage.slots(now)).sum();
        1.0 - used / f64::from(limit.max(1))
    }

    /// A client of this class has left, so long after it came; see [`Patience`].
    pub(crate) fn has_left(&mut self, place: Place, after: Duration, service: Option<Duration>) {
        self.class_mut(place).patience.left(after, service);
    }

    /// A client of this class has its answer, so long after it came.
    pub(crate) fn was_served(&mut self, place: Place, after: Duration) {
        self.class_mut(place).patience.served(after);
    }

    /// How long clients of this class wait, if that is known.
    pub(crate) fn patience(&self, place: Place, service: Option<Duration>) -> Option<Duration> {
        self.class(place).patience.known(service)
    }

    /// How long the most patient of those classes wait that have somebody inside; `None` if that is not known of one of them.
    pub(crate) fn longest_patience(&self, service: Option<Duration>) -> Option<Duration> {
        self.longest_of(|patience| patience.known(service))
    }

    /// After how long an answer is too late for all those classes; `None` if that is not known of one of them.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.longest_of(Patience::deadline)
    }

    fn longest_of(&self, of: impl Fn(&Patience) -> Option<Duration>) -> Option<Duration> {
        let inside = self.classes.iter().filter(|class| !class.is_empty() || class.in_flight > 0);
        inside.map(|class| of(&class.patience)).reduce(|one, other| Some(one?.max(other?))).flatten()
    }

    /// Whether somebody waits all the time.
    pub(crate) fn any_is_standing(&self) -> bool {
        self.classes.last().is_some_and(|class| class.standing.is_standing())
    }

    /// Whether somebody of this class, or more important, waits all the time.
    pub(crate) fn is_standing(&self, place: Place) -> bool {
        self.class(place).standing.is_standing()
    }

    /// Whom somebody may push out who finds the queue full: somebody less important; within the own class, for a first try,
    /// a retry, or else the last of a tenant that has at least two more in line.
    pub(crate) fn lesser(&self, place: Place, places: u32) -> Option<Key> {
        self.less_important(place, places).or_else(|| {
            let class = self.class(place);
            let (flow, rank, slots) = class.flows.longest()?;
            let most_retries = if rank == Rank::Retry { Some(flow) } else { class.flows.any_retry() };
            if place.rank == Rank::First
                && let Some(flow) = most_retries
            {
                return self.last(class, flow, Rank::Retry);
            }
            let own = class.flows.waits_for(place.flow).saturating_add(place.cost.get().into());
            if slots > own && rank == place.rank { self.last(class, flow, rank) } else { None }
        })
    }

    /// The last of the least important class that has more than its floor's part of so many places.
    pub(crate) fn less_important(&self, place: Place, places: u32) -> Option<Key> {
        let classes = self.classes[usize::from(place.class) + 1..].iter().rev();
        let mut above_floor =
            classes.filter(|class| f64::from(class.len) > libm::ceil(class.floor * f64::from(places)));
        let class = above_floor.next()?;
        let (flow, rank, _) = class.flows.longest()?;
        self.last(class, flow, rank)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Waiting> {
        let place = self.waiting.get(key)?.place;
        let class = &mut self.classes[usize::from(place.class)];
        let removed = self.waiting.remove(class.flows.list(place.flow, place.rank), key);
        class.len -= 1;
        class.flows.was_taken_out(place.flow, place.rank, place.cost.get());
        self.forget_dead_ends();
        removed
    }

    /// When the next wait ends. Dead ends were dropped when they came to the top, so the top is alive.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.ends.peek().map(|Reverse((until, _))| *until)
    }

    /// Takes out one whose wait has ended.
    pub(crate) fn pop_ended(&mut self, now: Timestamp) -> Option<(Key, Waiting)> {
        let &Reverse((until, key)) = self.ends.peek()?;
        if until > now {
            return None;
        }
        self.remove(key).map(|waiting| (key, waiting))
    }

    /// How many ends are kept, dead ones included.
    pub(crate) fn ends_kept(&self) -> usize {
        self.ends.len()
    }

    /// What must hold of the classes, when so many slots are taken.
    pub(crate) fn check_invariants(&self, taken: u32) {
        let sum = |number: fn(&Class) -> u32| self.classes.iter().map(number).sum::<u32>();
        debug_assert_eq!(sum(|class| class.len), self.len(), "the classes and the queue disagree");
        debug_assert_eq!(sum(|class| class.in_flight), taken, "the classes and the flight disagree");
        debug_assert_eq!(self.is_empty(), self.classes.iter().all(|class| class.flows.slots() == 0));
    }

    fn class(&self, place: Place) -> &Class {
        &self.classes[usize::from(place.class)]
    }

    fn class_mut(&mut self, place: Place) -> &mut Class {
        &mut self.classes[usize::from(place.class)]
    }

    /// Who of these is served last.
    fn last(&self, class: &Class, flow: u16, rank: Rank) -> Option<Key> {
        let list = class.flows.get(flow, rank);
        let last =
            if self.goes_backwards(class) { self.waiting.front(list) } else { self.waiting.back(list) };
        last.map(|(key, _)| key)
    }

    /// Whether those of a class who came last go first.
    fn goes_backwards(&self, class: &Class) -> bool {
        self.last_first && class.standing.is_standing()
    }

    fn forget_dead_ends(&mut self) {
        while let Some(&Reverse((_, key))) = self.ends.peek()
            && self.waiting.get(key).is_none()
        {
            self.ends.pop();
        }
        // Dead ends below the top are swept when they are the majority: each sweep of n is paid for by n/2 removals.
        if self.ends.len() > 2 * self.waiting.len() as usize + 64 {
            self.ends.retain(|Reverse((_, key))| self.waiting.get(*key).is_some());
        }
    }
}
