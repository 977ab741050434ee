//! What one decision costs, beside governor and tokio's semaphore in the same run: `cargo xtask bench decisions`.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::num::NonZeroU32;
use std::time::Duration;

use divan::{Bencher, black_box};
use tidegate_tower::engine::*;
use tidegate_tower::{Entry, Gate};

fn main() {
    divan::main();
}

const KEYS: u64 = 100_000;

fn quota() -> Quota {
    Quota::new(NonZeroU32::new(1_000_000).unwrap(), Duration::from_secs(1), NonZeroU32::new(1000).unwrap())
        .unwrap()
}

fn policy(limit: u32) -> AdmissionPolicy {
    AdmissionPolicy::new(
        LimitPolicy::Fixed(NonZeroU32::new(limit).unwrap()),
        QueuePolicy::of(Duration::from_millis(500), Capacity::Fixed(64)),
    )
}

/// SplitMix64: keys as a keyed hash would give them.
fn scramble(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

/// A slot taken and given back.
#[divan::bench_group(name = "admit_and_complete")]
mod admit_and_complete {
    use super::*;

    #[divan::bench]
    fn engine(bencher: Bencher<'_, '_>) {
        let mut admission = Admission::new(policy(64));
        let mut nanos = 0;
        bencher.bench_local(|| {
            nanos += 1000;
            let now = Timestamp::from_nanos(nanos);
            if let Decision::Admit(permit) = admission.arrive(now, Arrival::new(RouteId(0))) {
                admission.complete(now, permit, Outcome::Success);
            }
        });
    }

    #[divan::bench]
    fn gate(bencher: Bencher<'_, '_>) {
        let gate = Gate::new(policy(64));
        bencher.bench_local(|| match gate.enter(Arrival::new(RouteId(0))) {
            Entry::Admitted(admitted) => admitted.complete(Outcome::Success),
            _ => unreachable!(),
        });
    }

    /// What tokio offers: no queue bound, no prediction, no learning, no clock.
    #[divan::bench]
    fn tokio_semaphore(bencher: Bencher<'_, '_>) {
        let semaphore = std::sync::Arc::new(tokio::sync::Semaphore::new(64));
        bencher.bench_local(|| drop(black_box(semaphore.clone().try_acquire_owned().unwrap())));
    }
}

/// Everything on: eight classes with floors, a thousand tenants, deadlines, a budget for retries, ten thousand waiting.
#[divan::bench_group(name = "everything_on")]
mod everything_on {
    use super::*;
    use std::collections::VecDeque;

    const WAITING: u32 = 10_000;
    const TENANTS: u64 = 1_000;

    /// An admission that is full, and what is in flight.
    struct Full {
        admission: Admission,
        permits: VecDeque<Permit>,
        tickets: Vec<Option<Ticket>>,
        number: u64,
    }

    impl Full {
        fn new() -> Self {
            let hour = Duration::from_secs(3600);
            let admission = Admission::new(AdmissionPolicy {
                priorities: vec![PriorityPolicy { floor: 0.02 }; PRIORITIES_MAX],
                retries: Some(RetryPolicy { damp: true, percent: 10, burst: 100, per_second: 1 }),
                ..AdmissionPolicy::new(
                    LimitPolicy::Fixed(NonZeroU32::new(64).unwrap()),
                    QueuePolicy::of(hour, Capacity::Fixed(2 * WAITING)),
                )
            });
            let mut full = Self { admission, permits: VecDeque::new(), tickets: Vec::new(), number: 0 };
            for _ in 0..WAITING + 64 {
                full.arrive();
            }
            // Long enough that classes, flows and service times are what they will be.
            for _ in 0..WAITING * 10 {
                full.arrive();
                full.complete();
            }
            full
        }

        fn now(&self) -> Timestamp {
            Timestamp::from_nanos(self.number * 1000)
        }

        fn arrive(&mut self) -> Option<usize> {
            self.number += 1;
            let random = scramble(self.number);
            let arrival = Arrival::new(RouteId(random as u32 % 16))
                .with_priority(Priority((random >> 8) as u8 % PRIORITIES_MAX as u8))
                .with_tenant(Tenant::new(scramble((random >> 16) % TENANTS)))
                .with_deadline(self.now().after(Duration::from_secs(1800)))
                .with_fingerprint(random);
            let decision = self.admission.arrive(self.now(), arrival);
            self.listen();
            match decision {
                Decision::Admit(permit) => self.permits.push_back(permit),
                Decision::Queue(ticket) => {
                    let index = ticket.id().index();
                    if self.tickets.len() <= index {
                        self.tickets.resize_with(index + 1, || None);
                    }
                    self.tickets[index] = Some(ticket);
                    return Some(index);
                }
                Decision::Reject(_) => {}
            }
            None
        }

        fn complete(&mut self) {
            if let Some(permit) = self.permits.pop_front() {
                self.admission.complete(self.now(), permit, Outcome::Success);
                self.listen();
            }
        }

        fn listen(&mut self) {
            while let Some(event) = self.admission.poll_event() {
                if let Event::Granted { ticket, permit } = event {
                    self.tickets[ticket.index()] = None;
                    self.permits.push_back(permit);
                }
            }
            black_box(self.admission.poll_timeout());
        }
    }

    /// From an arrival to a completion that grants a slot to another.
    #[divan::bench]
    fn arrive_and_complete(bencher: Bencher<'_, '_>) {
        let mut full = Full::new();
        bencher.bench_local(|| {
            full.arrive();
            full.complete();
        });
        assert_eq!(full.admission.snapshot().queue_depth, WAITING);
    }

    /// Somebody joins the queue and leaves it again.
    #[divan::bench]
    fn arrive_and_cancel(bencher: Bencher<'_, '_>) {
        let mut full = Full::new();
        bencher.bench_local(|| {
            if let Some(ticket) = full.arrive().and_then(|index| full.tickets[index].take()) {
                let now = full.now();
                full.admission.cancel(now, ticket);
                full.listen();
            }
        });
    }
}

/// A refusal by a full queue.
#[divan::bench_group(name = "reject")]
mod reject {
    use super::*;

    #[divan::bench]
    fn gate(bencher: Bencher<'_, '_>) {
        let mut full = policy(1);
        full.queue.capacity = Capacity::Fixed(0);
        let gate = Gate::new(full);
        let Entry::Admitted(_held) = gate.enter(Arrival::new(RouteId(0))) else { unreachable!() };
        bencher.bench_local(|| match gate.enter(Arrival::new(RouteId(0))) {
            Entry::Rejected(rejection) => black_box(rejection),
            _ => unreachable!(),
        });
    }

    #[divan::bench]
    fn tokio_semaphore(bencher: Bencher<'_, '_>) {
        let semaphore = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        bencher.bench_local(|| black_box(semaphore.clone().try_acquire_owned().is_err()));
    }
}

/// One token-bucket check, for one key and for many.
#[divan::bench_group(name = "rate_limit")]
mod rate_limit {
    use super::*;
    use governor::clock::{Clock as _, MonotonicClock};
    use governor::{Quota as GovernorQuota, RateLimiter as Governor};

    #[divan::bench(args = [1, KEYS])]
    fn tidegate(bencher: Bencher<'_, '_>, keys: u64) {
        let mut limiter = RateLimiter::new(quota(), NonZeroU32::new(KEYS as u32).unwrap());
        // Every key has been seen once, so that no page of the table is new to the kernel.
        for n in 0..keys {
            let _ = limiter.check(Timestamp::ZERO, scramble(n), NonZeroU32::MIN);
        }
        let (mut nanos, mut n) = (0, 0);
        bencher.bench_local(|| {
            nanos += 1000;
            n += 1;
            black_box(
                limiter.check(Timestamp::from_nanos(nanos), scramble(n % keys), NonZeroU32::MIN).is_ok(),
            )
        });
    }

    /// The clock is read outside here too, as far as its interface allows: a fake clock that is moved by hand.
    #[divan::bench(args = [1, KEYS])]
    fn governor(bencher: Bencher<'_, '_>, keys: u64) {
        let quota = GovernorQuota::per_second(NonZeroU32::new(1_000_000).unwrap())
            .allow_burst(NonZeroU32::new(1000).unwrap());
        let clock = governor::clock::FakeRelativeClock::default();
        let limiter = Governor::dashmap_with_clock(quota, clock.clone());
        for n in 0..keys {
            let _ = limiter.check_key(&scramble(n));
        }
        let mut n = 0;
        bencher.bench_local(|| {
            clock.advance(Duration::from_nanos(1000));
            n += 1;
            black_box(limiter.check_key(&scramble(n % keys)).is_ok())
        });
    }

    /// What reading the clock adds to either.
    #[divan::bench]
    fn clock(bencher: Bencher<'_, '_>) {
        let clock = MonotonicClock;
        bencher.bench_local(|| black_box(clock.now()));
    }
}
