//! Fairness between tenants within one class.
//!
//! Each tenant with something inside has a *flow*, and each flow has used so much *virtual time*: the slot-seconds that
//! its requests took, divided by its weight. A slot goes to the flow that has used least. That is start-time fair queueing
//! (P. Goyal, H. Vin and H. Cheng, "Start-Time Fair Queuing", SIGCOMM 1996) with service times that are known only
//! afterwards: a request is charged what its tenant's usually take when it is dispatched, and the difference when it is
//! done, as Kubernetes does (KEP-1040, API Priority and Fairness). Whoever asks for little gets all of it, and the rest is
//! divided evenly among those who ask for more.
//!
//! Nothing is saved up. A flow that begins to wait has used at least as much as the one that was served last, so a tenant
//! that was away for an hour does not come back with an hour's worth of credit. Nor is anybody kept away for long by what
//! its requests have taken: a debt is bounded, since a stall of the upstream is nobody's doing.
//!
//! The number of flows is fixed. A tenant's hash names a hand of six of them; it takes the one that it has already, else one
//! that nobody uses, else it shares the one in which least waits. So tenants share only where there are more of them than
//! the table was made for, and then one that floods it meets another in all six places only by rare chance (shuffle
//! sharding: C. MacCárthaigh, "Workload isolation using shuffle-sharding", Amazon Builders' Library).

use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use super::heap::Heap;
use crate::decision::Tenant;
use crate::linked::List;
use crate::time::nanos;

/// Flows for tenants, beside the one for requests that have none. About a hundred bytes each, made when the first tenant
/// comes.
const TENANT_FLOWS: u16 = 1 << FLOW_BITS;
const FLOW_BITS: u32 = 10;
/// Places in a hand. Six times ten bits are what a hash has.
const HAND: u32 = 6;
/// What a request is taken to need while nothing is known, in nanoseconds. All alike, so any number does.
pub(super) const UNKNOWN: u64 = 1_000_000;
/// What a flow owes to the others is at most what all slots do in so long, as long as an upstream may usually take to answer
/// at all: if a request takes longer than that, the client has gone and the work goes on without it.
const DEBT_MOST: Duration = Duration::from_secs(2);
/// For the forecast a flow is behind only with what is more than so many requests usually take.
const BEHIND: u64 = 4;
/// No request is charged more in advance, in slot-nanoseconds: 36 years.
const CHARGE_MOST: u64 = 1 << 60;
/// When so much virtual time has been used, all of it is counted from a later moment, so that it never ends. What is further
/// behind than a half of this would be forgotten, and nobody is.
const REBASE: u64 = 1 << 62;
/// A flow's usual service time is smoothed over about so many requests.
const SMOOTHING: u64 = 8;

/// Whether a request is a first try. Retries wait behind all first tries of their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    First = 0,
    Retry = 1,
}

impl Rank {
    const ALL: [Self; 2] = [Self::First, Self::Retry];
}

#[derive(Debug)]
struct Flow {
    /// Whose it is. Means nothing while the flow is idle.
    owner: u64,
    /// Slots that its requests take or wait for. Idle at zero.
    holds: u64,
    /// Those who wait, first tries and retries.
    lists: [List; 2],
    /// Slots that they wait for. A hundred thousand requests of any width fit in.
    slots: [u64; 2],
    /// When each of the lists began to have somebody: decides between flows that have used the same.
    since: [u64; 2],
    /// Virtual time used, in slot-nanoseconds.
    used: u64,
    /// How long its requests usually take a slot, in nanoseconds; zero while unknown.
    service: u64,
}

impl Flow {
    const IDLE: Self = Self {
        owner: 0,
        holds: 0,
        lists: [List::EMPTY; 2],
        slots: [0; 2],
        since: [0; 2],
        used: 0,
        service: 0,
    };

    const fn waits(&self) -> bool {
        self.slots[0] + self.slots[1] > 0
    }
}

#[derive(Debug)]
pub(crate) struct Flows {
    /// The first is for requests without a tenant.
    flows: Vec<Flow>,
    /// The virtual time that the flow served last had used.
    clock: u64,
    /// Counts up with every flow that begins to wait.
    order: u64,
    /// Flows with somebody waiting, by what they have used: for first tries and for retries.
    next: [Heap; 2],
    /// All flows with somebody waiting, the longest first.
    longest: Heap,
    slots: [u64; 2],
}

impl Flows {
    pub(crate) fn new() -> Self {
        Self {
            flows: alloc::vec![Flow::IDLE],
            clock: 0,
            order: 0,
            next: Default::default(),
            longest: Heap::default(),
            slots: [0; 2],
        }
    }

    /// The flow of a tenant, which is its own until it is idle, unless all of its hand are taken.
    pub(crate) fn of(&mut self, tenant: Option<Tenant>) -> u16 {
        let Some(tenant) = tenant else { return 0 };
        if self.flows.len() == 1 {
            self.flows.resize_with(usize::from(TENANT_FLOWS) + 1, || Flow::IDLE);
        }
        let hand = (0..HAND).map(|card| 1 + (tenant.id >> (card * FLOW_BITS)) as u16 % TENANT_FLOWS);
        let own = |flow: &u16| {
            let flow = &self.flows[usize::from(*flow)];
            flow.holds > 0 && flow.owner == tenant.id
        };
        let best = hand.clone().find(own).or_else(|| {
            // Idle flows have nobody waiting, so they are among the shortest; of those, idle ones come first.
            hand.min_by_key(|flow| {
                let flow = &self.flows[usize::from(*flow)];
                (flow.holds > 0, flow.slots[0] + flow.slots[1])
            })
        });
        let best = best.unwrap_or(0);
        let flow = &mut self.flows[usize::from(best)];
        if flow.holds == 0 && flow.owner != tenant.id {
            *flow = Flow { owner: tenant.id, used: self.clock, ..Flow::IDLE };
        }
        best
    }

    /// Slots that the tenant takes or waits for; zero if the flow is another's as well, who is not to suffer for it.
    pub(crate) fn held_by(&self, flow: u16, tenant: Tenant) -> u64 {
        let flow = &self.flows[usize::from(flow)];
        if flow.owner == tenant.id { flow.holds } else { 0 }
    }

    pub(crate) fn enter(&mut self, flow: u16, slots: u32) {
        let flow = &mut self.flows[usize::from(flow)];
        flow.holds += u64::from(slots);
    }

    pub(crate) fn leave(&mut self, flow: u16, slots: u32) {
        let flow = &mut self.flows[usize::from(flow)];
        flow.holds = flow.holds.saturating_sub(slots.into());
    }

    pub(crate) fn list(&mut self, flow: u16, rank: Rank) -> &mut List {
        &mut self.flows[usize::from(flow)].lists[rank as usize]
    }

    pub(crate) fn get(&self, flow: u16, rank: Rank) -> &List {
        &self.flows[usize::from(flow)].lists[rank as usize]
    }

    /// Somebody was put in a list.
    pub(crate) fn was_put_in(&mut self, id: u16, rank: Rank, slots: u32) {
        let flow = &mut self.flows[usize::from(id)];
        if !flow.waits() {
            flow.used = flow.used.max(self.clock);
        }
        if flow.slots[rank as usize] == 0 {
            self.order += 1;
            flow.since[rank as usize] = self.order;
        }
        flow.slots[rank as usize] += u64::from(slots);
        self.slots[rank as usize] += u64::from(slots);
        self.stand(id);
    }

    /// Somebody was taken out of a list.
    pub(crate) fn was_taken_out(&mut self, id: u16, rank: Rank, slots: u32) {
        self.flows[usize::from(id)].slots[rank as usize] -= u64::from(slots);
        self.slots[rank as usize] -= u64::from(slots);
        self.stand(id);
    }

    /// Whose turn it is: the flow that has used least, first tries before retries.
    pub(crate) fn turn(&self) -> Option<(u16, Rank)> {
        Rank::ALL.into_iter().find_map(|rank| Some((self.next[rank as usize].first()?, rank)))
    }

    /// The list of the flow in which most waits, retries before first tries; with how many slots it waits for.
    pub(crate) fn longest(&self) -> Option<(u16, Rank, u64)> {
        let id = self.longest.first()?;
        let slots = self.flows[usize::from(id)].slots;
        Some((id, if slots[1] > 0 { Rank::Retry } else { Rank::First }, slots[0] + slots[1]))
    }

    /// The flow of a retry that waits, if there is one.
    pub(crate) fn any_retry(&self) -> Option<u16> {
        self.next[Rank::Retry as usize].first()
    }

    /// Slots that a flow waits for.
    pub(crate) fn waits_for(&self, flow: u16) -> u64 {
        let slots = self.flows[usize::from(flow)].slots;
        slots[0] + slots[1]
    }

    /// Slots that all wait for.
    pub(crate) const fn slots(&self) -> u64 {
        self.slots[0] + self.slots[1]
    }

    /// How many slots are given to others before somebody who joins this flow now has one, if nobody joins after. Flows
    /// take turns, so each goes at most once for each that this one has in front; nor can there be more than wait. A turn
    /// is so much time, so whoever takes a slot for half as long as is `usual` has two while the others have one. Before it
    /// has one at all, each of the others has as many as it is behind with.
    pub(crate) fn ahead(&self, id: u16, rank: Rank, weight: NonZeroU32, cost: u32, usual: u64) -> u64 {
        let flow = &self.flows[usize::from(id)];
        let of_rank = |rank: Rank| {
            let waits = flow.slots[rank as usize];
            let own = match (flow.service, usual) {
                (0, _) | (_, 0) => waits,
                (service, usual) => {
                    let usual_ones = u128::from(waits) * u128::from(service) / u128::from(usual);
                    u64::try_from(usual_ones).unwrap_or(u64::MAX)
                }
            };
            // A few requests more or less are the ordinary back and forth.
            let behind = self.debt(id).saturating_sub(usual.saturating_mul(BEHIND));
            let owed = behind.checked_div(usual).unwrap_or(0);
            let turns = (own / u64::from(weight.get())).saturating_add(cost.into()).saturating_add(owed);
            let taking_turns =
                self.next[rank as usize].len().saturating_add(u32::from(waits == 0)).saturating_sub(1);
            let others = self.slots[rank as usize] - waits;
            own.saturating_add(others.min(turns.saturating_mul(taking_turns.into())))
        };
        match rank {
            Rank::First => of_rank(Rank::First),
            Rank::Retry => self.slots[Rank::First as usize].saturating_add(of_rank(Rank::Retry)),
        }
    }

    /// How far a flow is behind with what it has used, in virtual time.
    fn debt(&self, id: u16) -> u64 {
        self.flows[usize::from(id)].used.saturating_sub(self.clock)
    }

    /// How long a slot is usually taken by this flow's requests, or by `others`' if that is not known.
    pub(crate) fn expected(&self, flow: u16, others: u64) -> u64 {
        match (self.flows[usize::from(flow)].service, others) {
            (0, 0) => UNKNOWN,
            (0, others) => others,
            (own, _) => own,
        }
    }

    /// A request of the flow is dispatched, which is expected to take so much: gives what was charged for it.
    pub(crate) fn charge(&mut self, id: u16, slot_nanos: u64, weight: NonZeroU32) -> u64 {
        let flow = &mut self.flows[usize::from(id)];
        if !flow.waits() {
            flow.used = flow.used.max(self.clock);
        }
        self.clock = self.clock.max(flow.used);
        let charged = (slot_nanos / u64::from(weight.get())).min(CHARGE_MOST);
        flow.used = flow.used.saturating_add(charged);
        self.stand(id);
        if self.clock >= REBASE {
            self.rebase();
        }
        charged
    }

    /// A request of the flow is done: what it took is charged in the place of what was expected. There are `limit` slots.
    pub(crate) fn settle(
        &mut self,
        id: u16,
        charged: u64,
        took: Duration,
        slots: u32,
        weight: NonZeroU32,
        limit: u32,
    ) {
        let took = nanos(took);
        let weight = u64::from(weight.get());
        let most = nanos(DEBT_MOST).saturating_mul(limit.into()) / weight;
        let flow = &mut self.flows[usize::from(id)];
        let owed = took.saturating_mul(u64::from(slots)) / weight;
        let used = flow.used.saturating_sub(charged).saturating_add(owed);
        // What others have charged in advance may put it further ahead than that, but no more than it was.
        flow.used = used.min(self.clock.saturating_add(most).max(flow.used));
        flow.service = smoothed(flow.service, took);
        self.stand(id);
    }

    /// Counts virtual time from a later moment.
    fn rebase(&mut self) {
        let later = self.clock - REBASE / 2;
        self.clock -= later;
        for id in 0..self.flows.len() as u16 {
            let flow = &mut self.flows[usize::from(id)];
            flow.used = flow.used.saturating_sub(later);
            self.stand(id);
        }
    }

    /// Puts a flow where it belongs in all heaps.
    fn stand(&mut self, id: u16) {
        let flow = &self.flows[usize::from(id)];
        for rank in Rank::ALL {
            let index = rank as usize;
            match flow.slots[index] {
                0 => self.next[index].remove(id),
                _ => self.next[index].set(id, (flow.used, flow.since[index])),
            }
        }
        match flow.slots[0] + flow.slots[1] {
            0 => self.longest.remove(id),
            slots => self.longest.set(id, (u64::MAX - slots, 0)),
        }
    }
}

/// The mean of the last few; the first is taken as it is.
pub(super) const fn smoothed(mean: u64, sample: u64) -> u64 {
    match mean {
        0 => sample,
        _ if sample >= mean => mean + (sample - mean) / SMOOTHING,
        _ => mean - (mean - sample) / SMOOTHING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64: names as a keyed hash would give them.
    fn tenant(number: u64) -> Tenant {
        let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Tenant::new(z ^ (z >> 27))
    }

    fn enter(flows: &mut Flows, number: u64) -> u16 {
        let flow = flows.of(Some(tenant(number)));
        flows.enter(flow, 1);
        flow
    }

    #[test]
    fn a_tenant_has_one_flow_and_no_other_has_it() {
        let mut flows = Flows::new();
        let first: Vec<u16> = (0..200).map(|number| enter(&mut flows, number)).collect();
        let again: Vec<u16> = (0..200).map(|number| enter(&mut flows, number)).collect();
        assert_eq!(first, again);
        let mut different = first.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 200, "two of two hundred share a flow");
        assert_eq!(flows.of(None), 0);
        assert!(!first.contains(&0), "who has no tenant shares with nobody");
        assert_eq!(flows.held_by(first[7], tenant(7)), 2);
    }

    /// H11, C6: a flood of made-up names takes no more memory, and does not take a known tenant's flow away.
    #[test]
    fn a_flood_of_names_is_bounded() {
        let mut flows = Flows::new();
        let known = enter(&mut flows, 0);
        for number in 1..100_000 {
            enter(&mut flows, number);
        }
        assert_eq!(flows.flows.len(), usize::from(TENANT_FLOWS) + 1);
        assert_eq!(flows.of(Some(tenant(0))), known);
        let stranger = tenant(1_000_000);
        let shared = flows.of(Some(stranger));
        assert_eq!(flows.held_by(shared, stranger), 0, "what others hold is not held against it");
        let taken = flows.flows.iter().filter(|flow| flow.holds > 0).count();
        assert!(taken > 1000, "{taken} flows for a hundred thousand tenants");
    }

    /// Retries that wait are waiting too: where all of a hand are taken, one first try is less than five hundred retries.
    #[test]
    fn who_shares_does_so_where_least_waits() {
        let mut flows = Flows::new();
        // Its hand is the flows 1 to 6, all of which are others'.
        let newcomer =
            Tenant::new((0..u64::from(HAND)).map(|card| card << (card * u64::from(FLOW_BITS))).sum());
        let waiting = [(500, 500), (0, 500), (500, 0), (1, 0), (1, 1), (0, 2)];
        flows.of(Some(newcomer));
        for (flow, (first, retries)) in (1..).zip(waiting) {
            flows.flows[usize::from(flow)] = Flow { owner: 1, holds: 1, ..Flow::IDLE };
            flows.was_put_in(flow, Rank::First, first);
            flows.was_put_in(flow, Rank::Retry, retries);
        }
        assert_eq!(flows.of(Some(newcomer)), 4);
    }

    /// Forty of a tenant whose requests take a tenth of the time are not forty turns of the others.
    #[test]
    fn a_turn_is_so_much_time() {
        let mut flows = Flows::new();
        let [quick, slow] = [(1, 10, 4), (2, 90, 20)].map(|(number, millis, waiting)| {
            let flow = enter(&mut flows, number);
            flows.settle(flow, 0, Duration::from_millis(millis), 1, NonZeroU32::MIN, 100);
            (0..waiting).for_each(|_| flows.was_put_in(flow, Rank::First, 1));
            flow
        });
        let ahead = |flow, usual| flows.ahead(flow, Rank::First, NonZeroU32::MIN, 1, usual);
        assert_eq!(ahead(quick, 0), 4 + 5, "nothing is known: one turn each");
        assert_eq!(ahead(quick, 20_000_000), 2 + 3, "four of its own are as good as two");
        assert_eq!(ahead(slow, 20_000_000), 90 + 4, "and no more of others than there are");
    }

    /// Two stalls, one of which lasted for ever: what is owed for them is paid within a bounded time.
    #[test]
    fn a_debt_is_bounded_and_the_forecast_knows_of_it() {
        let mut flows = Flows::new();
        let [stalled, other] = [1, 2].map(|number| enter(&mut flows, number));
        let settle = |flows: &mut Flows, took| flows.settle(stalled, 0, took, 1, NonZeroU32::MIN, 10);
        settle(&mut flows, Duration::from_secs(5));
        assert_eq!(flows.debt(stalled), 5_000_000_000);
        (0..100).for_each(|_| flows.was_put_in(other, Rank::First, 1));
        let ahead = |flows: &Flows| flows.ahead(stalled, Rank::First, NonZeroU32::MIN, 1, 100_000_000);
        assert_eq!(
            ahead(&flows),
            46 + 1,
            "five seconds are fifty of the other's requests, four of them as usual"
        );
        settle(&mut flows, Duration::from_secs(60));
        assert_eq!(flows.debt(stalled), 20_000_000_000, "two seconds of ten slots");
        settle(&mut flows, Duration::MAX);
        assert_eq!(flows.debt(stalled), 20_000_000_000);
        assert_eq!(ahead(&flows), 100, "no more than there are");
    }

    /// Virtual time goes on for as long as it likes, and the order stays what it was.
    #[test]
    fn virtual_time_never_ends() {
        let mut flows = Flows::new();
        let [one, two, three] = [1, 2, 3].map(|number| enter(&mut flows, number));
        for flow in [one, two, three] {
            (0..2).for_each(|_| flows.was_put_in(flow, Rank::First, 1));
        }
        for round in 0..10_000 {
            let (turn, rank) = flows.turn().unwrap();
            assert_eq!(turn, [one, two, three][round % 3], "round {round}");
            flows.was_taken_out(turn, rank, 1);
            flows.charge(turn, u64::MAX, NonZeroU32::MIN);
            flows.was_put_in(turn, rank, 1);
        }
    }

    #[test]
    fn an_idle_flow_is_free_and_brings_nothing_along() {
        let mut flows = Flows::new();
        let flow = enter(&mut flows, 0);
        flows.charge(flow, 5_000, NonZeroU32::MIN);
        flows.leave(flow, 1);
        flows.flows[usize::from(flow)].owner = 1;
        assert_eq!(flows.of(Some(tenant(0))), flow);
        assert_eq!(flows.flows[usize::from(flow)].used, flows.clock, "another's time was left in it");
    }
}
