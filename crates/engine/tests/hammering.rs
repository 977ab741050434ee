//! When those who are refused are told to come back, beside somebody who does not listen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::*;

const POLITE: u64 = 1_000;
/// The polite are known by their numbers.
const HAMMERER: u64 = 1 << 40;

/// Ten slots of 20 ms, for which fifty may wait.
fn policy() -> AdmissionPolicy {
    let limit = LimitPolicy::Fixed(NonZeroU32::new(10).unwrap());
    let retries = Some(RetryPolicy { damp: true, percent: 0, burst: 0, per_second: 0 });
    let queue = QueuePolicy::of(Duration::from_millis(100), Capacity::Fixed(50));
    AdmissionPolicy { retries, ..AdmissionPolicy::new(limit, queue) }
}

/// A hash as a driver makes it (SplitMix64).
fn hash(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The polite: each comes a second after it was served, and when it was told to if it was not.
struct Crowd {
    admission: Admission,
    running: VecDeque<(u64, Option<u64>, Permit)>,
    waiting: BTreeMap<usize, Option<u64>>,
    coming: BTreeMap<u64, Vec<u64>>,
    /// What each refusal has told the polite.
    told: Vec<Duration>,
    /// Why those were refused who are not polite.
    in_vain: BTreeMap<Reason, u32>,
}

impl Crowd {
    fn arrive(&mut self, millis: u64, caller: Option<u64>, arrival: Arrival) {
        let decision = self.admission.arrive(Timestamp::from_millis(millis), arrival);
        self.hear(millis);
        match decision {
            Decision::Admit(permit) => self.running.push_back((millis, caller, permit)),
            Decision::Queue(ticket) => drop(self.waiting.insert(ticket.id().index(), caller)),
            Decision::Reject(rejection) => self.refused(millis, caller, rejection),
        }
    }

    fn hear(&mut self, millis: u64) {
        while let Some(event) = self.admission.poll_event() {
            match event {
                Event::Granted { ticket, permit } => {
                    let caller = self.waiting.remove(&ticket.index()).unwrap();
                    self.running.push_back((millis, caller, permit));
                }
                Event::Refused { ticket, rejection } => {
                    let caller = self.waiting.remove(&ticket.index()).unwrap();
                    self.refused(millis, caller, rejection);
                }
            }
        }
    }

    fn refused(&mut self, millis: u64, caller: Option<u64>, rejection: Rejection) {
        let Some(caller) = caller else {
            return *self.in_vain.entry(rejection.reason).or_default() += 1;
        };
        self.told.push(rejection.retry_after);
        let back = millis + rejection.retry_after.as_nanos().div_ceil(1_000_000) as u64;
        self.coming.entry(back.max(millis + 1)).or_default().push(caller);
    }

    fn serve(&mut self, millis: u64, stuck: bool) {
        let now = Timestamp::from_millis(millis);
        for (since, caller, permit) in std::mem::take(&mut self.running) {
            if since + 20 > millis || (stuck && caller.is_none()) {
                self.running.push_back((since, caller, permit));
                continue;
            }
            self.admission.complete(now, permit, Outcome::Success);
            if let Some(caller) = caller {
                self.coming.entry(millis + 1_000).or_default().push(caller);
            }
            self.hear(millis);
        }
        self.admission.handle_timeout(now);
        self.hear(millis);
    }
}

/// What the polite are told on average, in milliseconds, while somebody comes so many times in a millisecond besides, as
/// `arrival` has it. What is let in of that never ends, if it is stuck. Ten seconds, of which the first is for finding its way.
fn told(policy: AdmissionPolicy, hammered: u32, arrival: Arrival, stuck: bool, refused_for: Reason) -> f64 {
    let mut crowd = Crowd {
        admission: Admission::new(policy),
        running: VecDeque::new(),
        waiting: BTreeMap::new(),
        coming: (0..POLITE).map(|caller| (caller, vec![caller])).collect(),
        told: Vec::new(),
        in_vain: BTreeMap::new(),
    };
    for millis in 0..10_000_u64 {
        crowd.serve(millis, stuck);
        // In the first moments it has all that it will ever be let in for.
        let times = if millis < 5 { 1 } else { hammered };
        (0..times).for_each(|_| crowd.arrive(millis, None, arrival));
        for caller in crowd.coming.remove(&millis).unwrap_or_default() {
            crowd.arrive(millis, Some(caller), Arrival::new(RouteId(0)).with_fingerprint(hash(caller)));
        }
    }
    let in_vain = crowd.in_vain.get(&refused_for).copied().unwrap_or_default();
    assert!(crowd.told.len() > 1_000 && in_vain >= hammered * 5_000, "{} told, {in_vain}", crowd.told.len());
    crowd.told.iter().sum::<Duration>().as_secs_f64() * 1_000.0 / crowd.told.len() as f64
}

fn is_what_it_was(policy: AdmissionPolicy, arrival: Arrival, stuck: bool, refused_for: Reason) {
    let alone = told(policy.clone(), 0, arrival, stuck, refused_for);
    let beside = told(policy, 10, arrival, stuck, refused_for);
    assert!((beside / alone - 1.0).abs() <= 0.1, "{alone} ms alone, {beside} ms beside {refused_for}");
}

/// H10. Somebody asks 10,000 times a second and does not listen. It has had its turn, and uses up nobody else's.
#[test]
fn one_who_hammers_does_not_keep_others_away() {
    let arrival = Arrival::new(RouteId(0)).with_fingerprint(hash(HAMMERER));
    is_what_it_was(policy(), arrival, false, Reason::QueueFull);
}

/// What is refused for a bound of its own says nothing about when there is room for others.
#[test]
fn a_bound_of_ones_own_keeps_nobody_else_away() {
    let route = RouteId(1);
    let bulkheads = vec![(route, NonZeroU32::MIN)];
    is_what_it_was(AdmissionPolicy { bulkheads, ..policy() }, Arrival::new(route), true, Reason::RouteLimit);
    let tenant = Arrival::new(RouteId(0)).with_tenant(Tenant::new(hash(HAMMERER)));
    let shared = AdmissionPolicy { tenant_share: Some(0.1), ..policy() };
    is_what_it_was(shared, tenant, true, Reason::TenantLimit);
    let retry = Arrival::new(RouteId(0)).with_attempt(Attempt::Retry);
    is_what_it_was(policy(), retry, true, Reason::RetryBudget);
}

/// Those who are refused for one bound are told times of their own too, as far apart as it lets them in.
#[test]
fn a_bound_has_turns_of_its_own() {
    let bulkheads = [1, 2].map(|route| (RouteId(route), NonZeroU32::new(2).unwrap())).into();
    let mut admission = Admission::new(AdmissionPolicy { bulkheads, ..policy() });
    let mut come = |route| admission.arrive(Timestamp::from_millis(40), Arrival::new(RouteId(route)));
    let Decision::Admit(first) = come(0) else { panic!("there is room") };
    let _inside = [1, 1, 2, 2].map(&mut come);
    let mut told = |route| match come(route) {
        Decision::Reject(Rejection { reason: Reason::RouteLimit, retry_after }) => retry_after.as_millis(),
        other => panic!("{other:?}"),
    };
    assert_eq!([told(1), told(1)], [0, 0], "nothing is known");
    admission.complete(Timestamp::from_millis(60), first, Outcome::Success);
    let mut told = |route| match admission.arrive(Timestamp::from_millis(60), Arrival::new(RouteId(route))) {
        Decision::Reject(rejection) => rejection.retry_after.as_millis(),
        other => panic!("{other:?}"),
    };
    assert_eq!([told(1), told(1), told(2), told(1)], [10, 30, 10, 50]);
}
