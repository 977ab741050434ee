//! What must hold whatever comes. The engine checks its own invariants after every input in debug builds; these tests
//! supply the inputs, and hold the promises made to clients.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_engine::*;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Arrive { who: Who, deadline: Option<u16> },
    Sample(prop::sample::Index, Outcome),
    Load(f64),
    Abandon(prop::sample::Index, Outcome),
    Complete(prop::sample::Index, Outcome),
    Cancel(prop::sample::Index),
    Tick,
    Reconfigure { limit: u8, capacity: u8, bulkhead: u8 },
}

/// What an arrival says of itself.
#[derive(Clone, Copy, Debug)]
struct Who {
    route: u8,
    priority: u8,
    tenant: Option<u8>,
    cost: u8,
    attempt: Attempt,
    fingerprint: Option<u8>,
}

fn who() -> impl Strategy<Value = Who> {
    let attempt = prop_oneof![3 => Just(Attempt::Unsaid), 1 => Just(Attempt::Retry)];
    let cost = prop_oneof![4 => Just(1), 1 => 1..12u8];
    let number = prop::option::of(0..6u8);
    (0..3u8, 0..5u8, number.clone(), cost, attempt, number).prop_map(
        |(route, priority, tenant, cost, attempt, fingerprint)| Who {
            route,
            priority,
            tenant,
            cost,
            attempt,
            fingerprint,
        },
    )
}

fn operations() -> impl Strategy<Value = Vec<(i16, Operation)>> {
    let outcome = prop_oneof![
        Just(Outcome::Success),
        Just(Outcome::Overload),
        Just(Outcome::Failure),
        Just(Outcome::Ignore)
    ];
    let index = any::<prop::sample::Index>;
    let operation = prop_oneof![
        8 => (who(), prop::option::of(0..500u16)).prop_map(|(who, deadline)| Operation::Arrive { who, deadline }),
        2 => (index(), outcome.clone()).prop_map(|(i, o)| Operation::Sample(i, o)),
        1 => prop_oneof![0.0..3.0, any::<f64>()].prop_map(Operation::Load),
        1 => (index(), outcome.clone()).prop_map(|(i, o)| Operation::Abandon(i, o)),
        6 => (index(), outcome).prop_map(|(i, o)| Operation::Complete(i, o)),
        2 => index().prop_map(Operation::Cancel),
        1 => Just(Operation::Tick),
        1 => (1..9u8, 0..9u8, 1..9u8)
            .prop_map(|(limit, capacity, bulkhead)| Operation::Reconfigure { limit, capacity, bulkhead }),
    ];
    // Steps in time go back now and then.
    prop::collection::vec((-20..100i16, operation), 0..200)
}

const DISCIPLINES: [Discipline; 4] =
    [Discipline::Forecast, Discipline::Fifo, Discipline::AdaptiveLifo, Discipline::Codel];

fn policy(limit: u8, capacity: u8, bulkhead: u8, algorithm: u8) -> AdmissionPolicy {
    let number = |n: u8| NonZeroU32::new(n.into()).unwrap();
    let range = RangePolicy { min: NonZeroU32::MIN, max: number(limit), initial: number(limit) };
    let aimd = AimdPolicy {
        min: NonZeroU32::MIN,
        max: number(limit),
        initial: number(limit),
        slow: Duration::from_millis(50),
        window: number(3),
        cooldown: Duration::from_millis(100),
    };
    AdmissionPolicy {
        limit: match algorithm / 4 {
            0 => LimitPolicy::Fixed(number(limit)),
            1 => LimitPolicy::Aimd(aimd),
            2 => LimitPolicy::Ebb(EbbPolicy {
                min: NonZeroU32::MIN,
                max: number(limit),
                initial: number(limit),
                deadline: Duration::from_millis(300),
                without: None,
            }),
            3 => LimitPolicy::Vegas(range),
            _ => LimitPolicy::Gradient2(range),
        },
        queue: QueuePolicy {
            standing_wait: Duration::from_millis(40),
            discipline: DISCIPLINES[usize::from(algorithm) % 4],
            // An odd one is not known beforehand.
            ..QueuePolicy::of(
                Duration::from_millis(200),
                if capacity % 2 == 1 { Capacity::Derived } else { Capacity::Fixed(capacity.into()) },
            )
        },
        bulkheads: vec![(RouteId(1), number(bulkhead))],
        priorities: (0..bulkhead % 5).map(|n| PriorityPolicy { floor: f64::from(n) / 10.0 }).collect(),
        tenant_share: bulkhead.is_multiple_of(3).then_some(0.5),
        breaker: (bulkhead % 4 == 1).then_some(BreakerPolicy {
            connect_failures: number(3),
            failure_ratio: 0.5,
            min_requests: number(4),
            window: Duration::from_secs(1),
            open: Duration::from_millis(100),
            open_max: Duration::from_secs(1),
            probes: number(2),
            probe_timeout: Duration::from_millis(200),
        }),
        retries: bulkhead.is_multiple_of(2).then_some(RetryPolicy {
            damp: true,
            percent: 20,
            burst: 2,
            per_second: 1,
        }),
    }
}

struct Driver {
    admission: Admission,
    now: i64,
    algorithm: u8,
    permits: Vec<Permit>,
    tickets: BTreeMap<usize, Ticket>,
    /// The latest time told, to see that no slot is granted after the end of a wait.
    last_time: Timestamp,
    /// A ticket whose wait ended just when it was cancelled.
    ended: Option<TicketId>,
}

impl Driver {
    fn apply(&mut self, step: i16, operation: Operation) {
        self.now = (self.now + i64::from(step)).max(0);
        let now = Timestamp::from_millis(self.now as u64);
        self.last_time = self.last_time.max(now);
        match operation {
            Operation::Arrive { who, deadline } => self.arrive(now, who, deadline),
            Operation::Sample(at, outcome) if !self.permits.is_empty() => {
                let permit = at.index(self.permits.len());
                self.admission.sample(now, &mut self.permits[permit], outcome);
            }
            Operation::Load(load) => self.admission.on_load(now, load),
            Operation::Abandon(at, outcome) if !self.permits.is_empty() => {
                let permit = at.index(self.permits.len());
                self.admission.abandon(now, &mut self.permits[permit], outcome);
            }
            Operation::Complete(at, outcome) if !self.permits.is_empty() => {
                let permit = self.permits.swap_remove(at.index(self.permits.len()));
                self.admission.complete(now, permit, outcome);
            }
            Operation::Cancel(at) if !self.tickets.is_empty() => {
                let key = *self.tickets.keys().nth(at.index(self.tickets.len())).unwrap();
                let ticket = self.tickets.remove(&key).unwrap();
                let (id, until) = (ticket.id(), ticket.until());
                let waited = self.admission.cancel(now, ticket);
                assert!(!waited || until > self.last_time, "a wait went on past its end");
                // If the time that has passed has ended it, or brought its turn, an event says so.
                self.ended = (!waited).then_some(id);
            }
            Operation::Reconfigure { limit, capacity, bulkhead } => {
                self.admission.reconfigure(now, policy(limit, capacity, bulkhead, self.algorithm));
            }
            _ => self.admission.handle_timeout(now),
        }
        self.listen();
    }

    fn arrive(&mut self, now: Timestamp, who: Who, deadline: Option<u16>) {
        let mut arrival = Arrival::new(RouteId(who.route.into()))
            .with_priority(Priority(who.priority))
            .with_cost(NonZeroU32::new(who.cost.into()).unwrap())
            .with_attempt(who.attempt);
        if let Some(tenant) = who.tenant {
            // Few hashes, so that some share all of their flows.
            arrival = arrival.with_tenant(Tenant::new(u64::from(tenant / 2) + 1));
        }
        if let Some(fingerprint) = who.fingerprint {
            arrival = arrival.with_fingerprint(fingerprint.into());
        }
        if let Some(ms) = deadline {
            arrival = arrival.with_deadline(now.after(Duration::from_millis(ms.into())));
        }
        let decision = self.admission.arrive(now, arrival);
        self.listen();
        match decision {
            Decision::Admit(permit) => self.permits.push(permit),
            Decision::Queue(ticket) => {
                let taken = self.tickets.insert(ticket.id().index(), ticket);
                assert!(taken.is_none(), "two waiting tickets share an index");
            }
            Decision::Reject(_) => {}
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.admission.poll_event() {
            let (id, permit) = match event {
                Event::Granted { ticket, permit } => (ticket, Some(permit)),
                Event::Refused { ticket, .. } => (ticket, None),
            };
            if self.ended == Some(id) {
                self.permits.extend(permit);
                self.ended = None;
                continue;
            }
            let ticket = self.tickets.remove(&id.index()).expect("an event names a waiting ticket");
            assert_eq!(ticket.id(), id, "an event names a ticket that is not waiting");
            if let Some(permit) = permit {
                assert!(ticket.until() > self.last_time, "granted after its end");
                self.permits.push(permit);
            }
        }
        assert_eq!(self.ended, None, "a ticket ended without an event");
    }
}

fn driver(algorithm: u8) -> Driver {
    Driver {
        admission: Admission::new(policy(4, 5, 2, algorithm)),
        now: 0,
        algorithm,
        permits: vec![],
        tickets: BTreeMap::new(),
        last_time: Timestamp::ZERO,
        ended: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Anything at any time, whatever sets the limit: conservation, bounds and order are asserted inside.
    /// Afterwards everything is given back, and the admission is as empty as at first.
    #[test]
    fn nothing_is_lost_and_nothing_ends_twice(script in operations(), algorithm in 0..20_u8) {
        let mut driver = driver(algorithm);
        for (step, operation) in script {
            driver.apply(step, operation);
            let snapshot = driver.admission.snapshot();
            prop_assert!(snapshot.in_flight as usize >= driver.permits.len());
            prop_assert_eq!(snapshot.in_flight == 0, driver.permits.is_empty());
            prop_assert_eq!(snapshot.queue_depth as usize, driver.tickets.len());
        }
        while let Some(permit) = driver.permits.pop() {
            driver.admission.complete(driver.last_time, permit, Outcome::Success);
            driver.listen();
        }
        let end = driver.admission.snapshot();
        prop_assert_eq!((end.in_flight, end.orphans, end.queue_depth), (0, 0, 0));
    }

    /// The same inputs give the same outputs, to the last digit.
    #[test]
    fn the_same_story_gives_the_same_trace(script in operations(), algorithm in 0..20_u8) {
        let tell = || {
            let mut driver = driver(algorithm);
            let mut trace = Vec::new();
            for (step, operation) in &script {
                driver.apply(*step, *operation);
                trace.push(format!("{:?}", driver.admission.snapshot()));
            }
            trace
        };
        prop_assert_eq!(tell(), tell());
    }
}

fn quota(count: u32, period: Duration, burst: u32) -> Quota {
    Quota::new(NonZeroU32::new(count).unwrap(), period, NonZeroU32::new(burst).unwrap()).unwrap()
}

const ONE: NonZeroU32 = NonZeroU32::MIN;
const SECOND: Duration = Duration::from_secs(1);

proptest! {
    /// B1. In any window of length t at most `burst + rate · t + 1` are admitted, whatever the pattern.
    #[test]
    fn no_window_exceeds_burst_and_rate(
        count in 1..2000u32, burst in 1..50u32,
        gaps in prop::collection::vec(prop_oneof![0..2_000u64, 0..5_000_000u64, 0..3_000_000_000u64], 1..300),
    ) {
        let mut limiter = RateLimiter::new(quota(count, SECOND, burst), ONE);
        let mut now = 0;
        let mut admitted: Vec<u64> = Vec::new();
        for gap in gaps {
            now += gap;
            if limiter.check(Timestamp::from_nanos(now), 1, ONE).is_ok() {
                admitted.push(now);
            }
        }
        for (first, &from) in admitted.iter().enumerate() {
            for (last, &to) in admitted.iter().enumerate().skip(first) {
                let allowed = f64::from(burst) + f64::from(count) * (to - from) as f64 / 1e9 + 1.0;
                prop_assert!((last - first + 1) as f64 <= allowed);
            }
        }
    }

    /// B6. Waiting exactly as long as told succeeds, and a nanosecond less does not.
    #[test]
    fn the_wait_that_is_told_is_exact(
        count in 1..1_000_000_000u32, burst in 1..100u32, cost in 1..5u32, start in 0..u64::MAX / 4, used in 1..200u32,
    ) {
        prop_assume!(cost <= burst);
        let cost = NonZeroU32::new(cost).unwrap();
        let mut limiter = RateLimiter::new(quota(count, SECOND, burst), ONE);
        let now = Timestamp::from_nanos(start);
        for _ in 0..used {
            let _ = limiter.check(now, 1, ONE);
        }
        if let Err(RateRefusal::NotYet(wait)) = limiter.peek(now, 1, cost).map(drop) {
            let earlier = now.after(wait - Duration::from_nanos(1));
            prop_assert!(limiter.peek(earlier, 1, cost).is_err());
            prop_assert!(limiter.check(now.after(wait), 1, cost).is_ok());
        }
    }

    /// C3. When the table is full, keys share a sketch. It may restrict too much, never too little: no key gets more
    /// than a limiter of its own would give it.
    #[test]
    fn a_full_table_only_restricts(keys in prop::collection::vec(0..400u64, 1..2000)) {
        let quota = quota(1, SECOND, 3);
        let mut shared = RateLimiter::new(quota, ONE);
        let mut own: BTreeMap<u64, RateLimiter> = BTreeMap::new();
        for (step, key) in keys.into_iter().enumerate() {
            let now = Timestamp::from_millis(step as u64);
            let alone = own.entry(key).or_insert_with(|| RateLimiter::new(quota, ONE)).check(now, 1, ONE);
            // Every tenth key goes where few buckets are.
            let in_table = shared.check(now, key.wrapping_mul(0x9e37_79b9_7f4a_7c15), ONE);
            if alone.is_err() {
                prop_assert!(in_table.is_err(), "key {} got more than its quota", key);
            } else if in_table.is_err() {
                // What the shared limiter refused, the key has not used; keep the two in step.
                own.remove(&key);
            }
        }
    }

    /// B3. Any order of times, however wild: nothing panics and nothing refills from a step back.
    #[test]
    fn wild_clocks_do_no_harm(times in prop::collection::vec(any::<u64>(), 1..100), count in 1..1_000_000_000u32) {
        let mut limiter = RateLimiter::new(quota(count, SECOND, 1), ONE);
        for time in times {
            let _ = limiter.check(Timestamp::from_nanos(time), 1, ONE);
            let _ = limiter.keys_in_use(Timestamp::from_nanos(time));
        }
    }
}

/// C1, C3. One client name after another, each used once, against a full table: all of them together get no more than the
/// sketch's places are worth.
#[test]
fn changing_names_gains_nothing() {
    let mut limiter =
        RateLimiter::new(quota(1, Duration::from_secs(3600), 1), NonZeroU32::new(1000).unwrap());
    let admitted = (1..=200_000u64)
        .filter(|&n| limiter.check(Timestamp::ZERO, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), ONE).is_ok())
        .count();
    // 1000 keys asked for are 200 buckets of 8 places, and the sketch is worth at most 4 · 256 callers.
    assert!(admitted <= 1600 + 1024, "{admitted} were admitted");
    // And whoever was known before the flood still has exactly what was left to him.
    let mut limiter =
        RateLimiter::new(quota(1, Duration::from_secs(3600), 2), NonZeroU32::new(1000).unwrap());
    assert!(limiter.check(Timestamp::ZERO, 42, ONE).is_ok());
    for n in 1..=200_000u64 {
        let _ = limiter.check(Timestamp::ZERO, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), ONE);
    }
    assert!(limiter.check(Timestamp::ZERO, 42, ONE).is_ok());
    assert!(limiter.check(Timestamp::ZERO, 42, ONE).is_err());
}

/// B2 (bucket4j#51): after any idle time a bucket holds its burst, no more and not a negative number.
#[test]
fn idle_time_fills_up_to_the_burst() {
    let hour = 3_600_000_000_000u64;
    for idle in [12 * hour, 87_600 * hour, u64::MAX / 2, u64::MAX - 1] {
        for count in [1, 50, 999_999_937, 1_000_000_000] {
            let mut limiter = RateLimiter::new(quota(count, SECOND, 100), ONE);
            while limiter.check(Timestamp::ZERO, 1, ONE).is_ok() {}
            let later = Timestamp::from_nanos(idle);
            let admitted = (0..1000).take_while(|_| limiter.check(later, 1, ONE).is_ok()).count();
            assert_eq!(admitted, 100, "{count}/s after {idle} ns");
        }
    }
}

/// B3. A step back of the clock, or a process that was stopped for a while, gives nobody more than a burst.
#[test]
fn time_that_goes_back_refills_nothing() {
    let mut limiter = RateLimiter::new(quota(1, SECOND, 1), ONE);
    let now = Timestamp::from_millis(100_000);
    assert!(limiter.check(now, 1, ONE).is_ok());
    for earlier in [99_999, 50_000, 0] {
        assert!(limiter.check(Timestamp::from_millis(earlier), 1, ONE).is_err());
    }
    assert!(limiter.check(Timestamp::from_millis(101_000), 1, ONE).is_ok());
}

/// B5 (bucket4j#220, redis#15113): what costs more than the whole burst is refused for good, without a time to come back.
#[test]
fn cost_above_burst_is_refused_for_good() {
    let mut limiter = RateLimiter::new(quota(10, SECOND, 3), ONE);
    assert_eq!(limiter.check(Timestamp::ZERO, 1, NonZeroU32::new(4).unwrap()), Err(RateRefusal::Never));
    assert!(limiter.check(Timestamp::ZERO, 1, NonZeroU32::new(3).unwrap()).is_ok(), "and it cost nothing");
}

/// The article's unit test: a bucket of 100 with 50/s, asked as fast as possible for two seconds.
#[test]
fn a_tight_loop_gets_burst_and_rate() {
    let mut limiter = RateLimiter::new(quota(50, SECOND, 100), ONE);
    let admitted = (0..2_000_000u64)
        .filter(|&micro| limiter.check(Timestamp::from_nanos(micro * 1000), 1, ONE).is_ok())
        .count();
    assert_eq!(admitted, 199);
}

/// B10 (hookaido#239): a reload that changes nothing refills nothing. scality#6046: one that changes something counts at
/// once, and what was used stays used.
#[test]
fn reconfiguring_keeps_what_was_used() {
    let second = Timestamp::from_millis(1000);
    let mut limiter = RateLimiter::new(quota(10, SECOND, 20), ONE);
    while limiter.check(second, 1, ONE).is_ok() {}
    for _ in 0..1000 {
        limiter.reconfigure(second, quota(10, SECOND, 20));
        assert!(limiter.check(second, 1, ONE).is_err());
    }
    // Twenty were used of thirty.
    limiter.reconfigure(second, quota(10, SECOND, 30));
    assert_eq!((0..100).take_while(|_| limiter.check(second, 1, ONE).is_ok()).count(), 10);
    // Thirty were used; a smaller bucket is empty, not deep in debt.
    limiter.reconfigure(second, quota(1_000_000_000, SECOND, 5));
    assert_eq!(limiter.check(second, 1, ONE), Err(RateRefusal::NotYet(Duration::from_nanos(1))));
}

/// B8 (Kong#5790): many at once on one key admit exactly what one would.
#[test]
fn a_shared_bucket_admits_exactly_its_burst() {
    let limiter = std::sync::Mutex::new(RateLimiter::new(quota(1, Duration::from_secs(3600), 1000), ONE));
    let admitted: usize = std::thread::scope(|scope| {
        let ask =
            || (0..1000).filter(|_| limiter.lock().unwrap().check(Timestamp::ZERO, 1, ONE).is_ok()).count();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 1000);
}

/// C2, C4 (traefik#13704, haproxy#2024): keys that are no longer used take no place, although nobody sweeps: ten
/// minutes of new names, never more at once than the table can hold, and not one of them is ever short of a place.
#[test]
fn keys_that_are_idle_take_no_place() {
    let mut limiter = RateLimiter::new(quota(10, SECOND, 1), NonZeroU32::new(1000).unwrap());
    for millis in 0..600_000u64 {
        // A key is in use for 100 ms after its one request, so a hundred names in a hundred milliseconds are 1000.
        for n in 0..10 {
            let key = (millis * 10 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert!(limiter.check(Timestamp::from_millis(millis), key, ONE).is_ok());
        }
    }
    assert_eq!(limiter.overflowed(), 0);
    assert!(limiter.keys_in_use(Timestamp::from_millis(600_000)) <= 1000);
    assert_eq!(limiter.keys_in_use(Timestamp::from_millis(600_100)), 0);
}
