//! A breaker: whether it makes sense to ask at all.
//!
//! It answers another question than a [`RateLimiter`](crate::RateLimiter) or an [`Admission`](crate::Admission): not how
//! much, but whether there is anybody. So what is too much for the other end is no failure here; to that the limit
//! answers, and a breaker that opened on it would take away the capacity that there still is. What a breaker sees is
//! connections that cannot be made, and answers that are errors nearly all the time.
//!
//! It knows no upstream and no request, and it asks nobody: real requests are the probes.

use core::time::Duration;

use crate::policy::{BreakerPolicy, PROBES_MAX};
use crate::retry::Backoff;
use crate::time::{Timestamp, nanos};

mod words;
pub use words::{BreakerState, Pass, Refused, Verdict};

mod probes;
use probes::Probes;

mod window;
pub use window::Tally;
use window::Window;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { since: Timestamp },
    Open { until: Timestamp },
    HalfOpen,
}

/// Decides whether it makes sense to ask, from what came of asking before.
///
/// Closed, it counts. It opens when so many connections in a row could not be made, when too large a share of the
/// requests in the window has failed, or when [`trip`](Self::trip) says so. Open, it refuses for a time that doubles from
/// opening to opening, up to a bound. Then it is half open: a few requests are let through as probes, and others are
/// refused. When as many have succeeded as may be under way at once, it closes; when one fails, it opens again.
///
/// # What is promised
///
/// - It is never stuck: whatever happens, a probe is let through after at most `open_max` and `probe_timeout` together.
///   A probe that is cancelled, ignored or never heard of again gives its place back.
/// - No more than `probes` are let through in `probe_timeout`, unless their verdicts came.
/// - A verdict of a pass that was given before the breaker last changed its mind changes nothing.
/// - Memory does not grow.
///
/// Times should not decrease; an earlier time than the latest one seen counts as the latest. The same inputs give the
/// same outputs.
///
/// ```
/// use std::time::Duration;
/// use tidegate_engine::*;
///
/// let mut breaker = Breaker::new(BreakerPolicy::careful(Duration::from_secs(2)));
/// let at = Timestamp::from_millis;
/// for _ in 0..5 {
///     let pass = breaker.try_pass(at(0)).unwrap();
///     breaker.complete(at(0), pass, Verdict::NoConnection);
/// }
/// assert!(breaker.try_pass(at(249)).is_err());
/// // A quarter of a second later it lets through probes, of which three have to succeed.
/// for _ in 0..3 {
///     let probe = breaker.try_pass(at(250)).unwrap();
///     breaker.complete(at(270), probe, Verdict::Success);
/// }
/// assert_eq!(breaker.state(at(270)), BreakerState::Closed);
/// ```
#[derive(Debug)]
pub struct Breaker {
    policy: BreakerPolicy,
    now: Timestamp,
    state: State,
    /// Goes up whenever the state changes, so that what was let through before is not mistaken for what is now.
    generation: u64,
    window: Window,
    /// Connections in a row that could not be made.
    unconnected: u32,
    /// It was tripped from outside, and then overload counts for its probes too.
    is_outlier: bool,
    /// How often it has opened without having been well in between.
    streak: u32,
    /// How long it was opened for last.
    opened_for: Duration,
    /// How often it has opened.
    openings: u64,
    probes: Probes,
    /// How many it has refused, to tell each of them another time.
    refused: u64,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            now: Timestamp::ZERO,
            state: State::Closed { since: Timestamp::ZERO },
            generation: 0,
            window: Window::new(policy.window),
            unconnected: 0,
            is_outlier: false,
            streak: 0,
            opened_for: Duration::ZERO,
            openings: 0,
            probes: Probes::default(),
            refused: 0,
        }
    }

    /// Asks to pass. Whoever may must say what came of it.
    pub fn try_pass(&mut self, now: Timestamp) -> Result<Pass, Refused> {
        let now = self.advance(now);
        let probe = match self.state {
            State::Closed { .. } => None,
            State::HalfOpen => {
                let until = now.after(self.probe_timeout());
                match self.probes.lease(now, self.policy.probes.get(), until) {
                    Some(lease) => Some(lease),
                    None => return Err(self.refuse(now)),
                }
            }
            State::Open { .. } => return Err(self.refuse(now)),
        };
        Ok(Pass { generation: self.generation, probe })
    }

    /// Whether somebody who comes now could pass, without passing. For whoever has to wait for something else first.
    pub fn check(&mut self, now: Timestamp) -> Result<(), Refused> {
        let now = self.advance(now);
        if self.may_pass(now) { Ok(()) } else { Err(self.refuse(now)) }
    }

    /// What came of a pass. Only verdicts of the present state count.
    pub fn complete(&mut self, now: Timestamp, pass: Pass, verdict: Verdict) {
        let now = self.advance(now);
        if pass.generation != self.generation {
            return;
        }
        match self.state {
            State::Closed { .. } => self.count(now, verdict),
            State::HalfOpen => {
                if let Some(lease) = pass.probe {
                    self.probes.give_back(lease);
                }
                // A verdict that comes after the end of its lease is as true as any other.
                self.judge(now, verdict);
            }
            State::Open { .. } => {}
        }
    }

    /// It does much worse than its like: opens it, if it is closed. Since nobody can say why, its probes have to be in
    /// time as well.
    pub fn trip(&mut self, now: Timestamp) {
        let now = self.advance(now);
        if let State::Closed { .. } = self.state {
            self.is_outlier = true;
            self.open(now);
        }
    }

    /// Somebody has seen that it is well again: if it is open, a probe may pass at once.
    pub fn hasten(&mut self, now: Timestamp) {
        self.advance(now);
        if let State::Open { .. } = self.state {
            self.half_open();
        }
    }

    /// Puts another policy in force. What it has seen and how it stands goes on, within the new bounds.
    pub fn reconfigure(&mut self, now: Timestamp, policy: BreakerPolicy) {
        let now = self.advance(now);
        self.policy = policy;
        if !self.window.is_of(policy.window) {
            self.window = Window::new(policy.window);
        }
        if let State::Open { until } = &mut self.state {
            *until = (*until).min(now.after(policy.open_max));
        }
        self.probes.shorten(now.after(self.probe_timeout()));
        self.advance(now);
    }

    /// How it stands. Open, with its time over, is half open.
    pub const fn state(&self, now: Timestamp) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { until } if until.as_nanos() > now.as_nanos() => BreakerState::Open,
            State::Open { .. } | State::HalfOpen => BreakerState::HalfOpen,
        }
    }

    /// Whether it is not closed because of [`trip`](Self::trip), so that what it stands before answers at least in part.
    pub const fn is_outlier(&self) -> bool {
        self.is_outlier
    }

    /// What came of the requests in the window. Only while it is closed is there anything to count.
    pub fn tally(&mut self, now: Timestamp) -> Tally {
        let now = self.advance(now);
        self.window.sum(now)
    }

    /// How often it has opened so far.
    pub const fn openings(&self) -> u64 {
        self.openings
    }

    /// Moves time, never back, and lets the time of an open breaker end.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        if let State::Open { until } = self.state
            && until <= self.now
        {
            self.half_open();
        }
        self.now
    }

    fn may_pass(&self, now: Timestamp) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { .. } => false,
            State::HalfOpen => self.probes.has_place(now, self.policy.probes.get()),
        }
    }

    fn count(&mut self, now: Timestamp, verdict: Verdict) {
        let none = Tally { requests: 1, ..Tally::default() };
        let what = match verdict {
            Verdict::Nothing => return,
            Verdict::Success => none,
            Verdict::Overload => Tally { overloads: 1, ..none },
            Verdict::Failure | Verdict::NoConnection => Tally { failures: 1, ..none },
        };
        self.window.count(now, what);
        self.unconnected = match verdict {
            Verdict::NoConnection => self.unconnected.saturating_add(1),
            _ => 0,
        };
        if what.failures > 0 && self.has_failed(now) {
            self.open(now);
        }
    }

    fn has_failed(&mut self, now: Timestamp) -> bool {
        if self.unconnected >= self.policy.connect_failures.get() {
            return true;
        }
        let Tally { requests, failures, .. } = self.window.sum(now);
        let enough = requests >= self.policy.min_requests.get();
        enough && f64::from(failures) >= self.policy.failure_ratio * f64::from(requests)
    }

    fn judge(&mut self, now: Timestamp, verdict: Verdict) {
        let is_well = match verdict {
            Verdict::Nothing => return,
            Verdict::Success => true,
            Verdict::Overload => !self.is_outlier,
            Verdict::Failure | Verdict::NoConnection => false,
        };
        if verdict == Verdict::NoConnection {
            // Then it is not that it does worse: nobody is there.
            self.is_outlier = false;
        }
        if !is_well {
            self.open(now);
        } else if self.probes.succeeded() >= self.policy.probes.get().min(PROBES_MAX) {
            self.close(now);
        }
    }

    fn open(&mut self, now: Timestamp) {
        // Whoever was well for as long as it had been shut begins anew.
        let was_well = match self.state {
            State::Closed { since } => now.since(since) >= self.opened_for,
            State::Open { .. } | State::HalfOpen => false,
        };
        self.streak = if was_well { 1 } else { self.streak.saturating_add(1) };
        let growing = Backoff::Exponential { base: self.policy.open, cap: self.policy.open_max };
        self.opened_for = growing.wait(self.streak, 0);
        self.openings = self.openings.saturating_add(1);
        self.enter(State::Open { until: now.after(self.opened_for) });
    }

    fn half_open(&mut self) {
        self.probes.clear();
        self.enter(State::HalfOpen);
    }

    fn close(&mut self, now: Timestamp) {
        self.is_outlier = false;
        self.enter(State::Closed { since: now });
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation = self.generation.wrapping_add(1);
        self.unconnected = 0;
        self.window.clear();
    }

    /// Callers are told times spread over half of the time that it was opened for, so that those refused together do not
    /// come back together. Multiples of the golden ratio fall evenly into any interval (Knuth, TAOCP 6.4).
    fn refuse(&mut self, now: Timestamp) -> Refused {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let left = match self.state {
            State::Closed { .. } => Duration::ZERO,
            State::Open { until } => until.since(now),
            State::HalfOpen => self.probes.wait(now, self.policy.probes.get()),
        };
        let spread = u128::from(nanos(self.opened_for) / 2);
        let part = (spread * u128::from(self.refused.wrapping_mul(GOLDEN))) >> 64;
        self.refused = self.refused.wrapping_add(1);
        Refused { retry_after: left.saturating_add(Duration::from_nanos(part as u64)) }
    }

    /// With none at all there would be no bound on the probes.
    fn probe_timeout(&self) -> Duration {
        self.policy.probe_timeout.max(Duration::from_millis(1))
    }
}
