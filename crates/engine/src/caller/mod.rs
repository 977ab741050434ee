//! The caller's side: whether to ask, whether to ask again, and when. The same state machine is in the client library and
//! in simulated clients.
//!
//! It knows no HTTP: whoever drives it says what came of a try, and whether the call can be made twice. It does not send,
//! wait, or count who is in line; a bound on what is under way is the driver's.

use core::time::Duration;

use crate::breaker::{Breaker, BreakerState, Verdict};
use crate::retry::{Backoff, RetryBudget};
use crate::time::Timestamp;

mod policy;
pub use policy::{BudgetPolicy, CallerPolicy, HedgePolicy, ThrottlePolicy};

mod words;
use words::Tries;
pub use words::{Advice, CallerCounts, CallerSnapshot, Declined, Ended, Pause, Reply, Sent, Step, Stop};

mod pace;
use pace::Pace;

mod throttle;
use throttle::Throttle;

/// All calls of one process to one upstream, as far as they are decided on together.
///
/// # The life of a call
///
/// ```text
/// arrive ── send ──► Sent ── answered ──► Stop
///    │       │         │         └──────► Again(Pause) ── resume ──► Sent …
///    │       │         └ abandoned              └ decline, give_up
///    └───────┴ Declined
/// ```
///
/// [`arrive`](Self::arrive) asks whether it makes sense to ask at all, and takes nothing, so that the driver may make it
/// wait in line afterwards. [`send`](Self::send) is the moment at which it is sent. What came of it goes into
/// [`answered`](Self::answered), which says whether, and when, it is tried again. A [`Sent`] or a [`Pause`] that is
/// dropped by whoever wanted the answer has to be handed back, to [`abandoned`](Self::abandoned) and
/// [`give_up`](Self::give_up); a retry for which the driver has no place, to [`decline`](Self::decline).
///
/// # What is promised
///
/// - Retries and hedges are at most `percent` of the successes, `burst`, and `per_minute`, counted when they are decided
///   on: those that still wait are counted too (envoy#30205).
/// - A retry is never sent before the time that the answer named, and never decided on if its pause ends at or after the
///   deadline.
/// - Whoever is told the same time as others comes back spread over half of it.
/// - No number from outside overflows.
/// - Nothing is ever shut for good: an open breaker lets probes through, and the throttle a tenth.
/// - Memory does not grow.
///
/// Times should not decrease; an earlier time than the latest one seen counts as the latest. `random` is uniform over
/// all numbers. The same inputs give the same outputs.
///
/// ```
/// use std::time::Duration;
/// use tidegate_engine::*;
///
/// let mut caller = Caller::new(CallerPolicy::careful(Duration::from_secs(1)));
/// let at = Timestamp::from_millis;
/// let deadline = at(5_000);
///
/// caller.arrive(at(0), deadline, 0).unwrap();
/// let sent = caller.send(at(0), deadline).unwrap();
/// // 503, "come back in two seconds".
/// let advice = Advice::After(Duration::from_secs(2));
/// let ended = Ended { reply: Reply::Unavailable, advice, repeatable: true, deadline };
/// let Step::Again(pause) = caller.answered(at(10), sent, ended, u64::MAX / 2) else { panic!() };
/// assert_eq!(pause.until(), at(2_510));
///
/// let sent = caller.resume(at(2_510), pause, deadline, u64::MAX).unwrap();
/// assert_eq!(sent.number(), 2);
/// let ended = Ended { reply: Reply::Success, advice: Advice::Unsaid, repeatable: true, deadline };
/// assert!(matches!(caller.answered(at(2_530), sent, ended, 0), Step::Stop(Stop::Answered)));
/// ```
#[derive(Debug)]
pub struct Caller {
    attempts: u32,
    backoff: Backoff,
    hedge_least: Duration,
    now: Timestamp,
    budget: RetryBudget,
    breaker: Option<Breaker>,
    throttle: Option<Throttle>,
    /// Only who hedges needs to know.
    pace: Option<Pace>,
    counts: CallerCounts,
}

impl Caller {
    /// A caller that has not asked yet.
    pub fn new(policy: CallerPolicy) -> Self {
        Self {
            attempts: policy.attempts.get(),
            backoff: policy.backoff,
            hedge_least: policy.hedge.map_or(Duration::ZERO, |hedge| hedge.least),
            now: Timestamp::ZERO,
            budget: policy.budget.budget(),
            breaker: policy.breaker.map(Breaker::new),
            throttle: policy.throttle.map(Throttle::new),
            pace: policy.hedge.map(|hedge| Pace::new(hedge.percentile)),
            counts: CallerCounts::default(),
        }
    }

    /// Somebody wants to call. Whether that makes sense now.
    pub fn arrive(&mut self, now: Timestamp, deadline: Timestamp, random: u64) -> Result<(), Declined> {
        let now = self.advance(now);
        self.counts.calls = self.counts.calls.saturating_add(1);
        let asked = self.in_time(now, deadline).and_then(|()| self.may_pass(now));
        let asked = asked.and_then(|()| self.is_not_held_back(now, random));
        asked.inspect_err(|declined| self.declined(*declined))
    }

    /// The first try of a call is sent now.
    pub fn send(&mut self, now: Timestamp, deadline: Timestamp) -> Result<Sent, Declined> {
        let now = self.advance(now);
        let sent =
            self.in_time(now, deadline).and_then(|()| self.pass(now, Tries { sent: 1, hedged: false }));
        sent.inspect_err(|declined| self.declined(*declined))
    }

    /// A try has ended. What is done about it.
    pub fn answered(&mut self, now: Timestamp, sent: Sent, ended: Ended, random: u64) -> Step {
        let now = self.advance(now);
        let tries = sent.tries;
        self.learn(now, sent, ended.reply);
        let stop = match self.may_repeat(now, tries.sent, ended, random) {
            Ok(until) if self.budget.try_spend() => {
                self.counts.retries = self.counts.retries.saturating_add(1);
                return Step::Again(Pause { tries, until });
            }
            Ok(_) => Stop::Budget,
            Err(stop) => stop,
        };
        bump(&mut self.counts.stops[stop as usize]);
        Step::Stop(stop)
    }

    /// A try has ended while another of the same call is under way, which goes on.
    pub fn noted(&mut self, now: Timestamp, sent: Sent, reply: Reply) {
        let now = self.advance(now);
        self.learn(now, sent, reply);
    }

    /// A try is left before its end: whoever wanted it has gone, or another of the same call has won. A probe gives its
    /// place back.
    pub fn abandoned(&mut self, now: Timestamp, sent: Sent) {
        let now = self.advance(now);
        bump(&mut self.counts.abandoned);
        self.report(now, sent, Verdict::Nothing);
    }

    /// The pause is over, and the retry is sent now. If it is not, what it cost is given back, and the last answer holds.
    pub fn resume(
        &mut self,
        now: Timestamp,
        pause: Pause,
        deadline: Timestamp,
        random: u64,
    ) -> Result<Sent, Declined> {
        let now = self.advance(now);
        let asked = self.in_time(now, deadline).and_then(|()| self.may_pass(now));
        let asked = asked.and_then(|()| self.is_not_held_back(now, random));
        let tries = Tries { sent: pause.tries.sent.saturating_add(1), ..pause.tries };
        match asked.and_then(|()| self.pass(now, tries)) {
            Ok(sent) => Ok(sent),
            Err(declined) => {
                self.declined(declined);
                self.decline(now, pause);
                Err(declined)
            }
        }
    }

    /// Somebody waits for the retry, and its driver cannot send it: there is no place for it. What it cost is given back, and
    /// the last answer holds.
    pub fn decline(&mut self, now: Timestamp, pause: Pause) {
        bump(&mut self.counts.stops[Stop::Declined as usize]);
        self.give_up(now, pause);
    }

    /// The retry is not made after all, and nobody waits for it. What it cost is given back.
    pub fn give_up(&mut self, now: Timestamp, _: Pause) {
        self.advance(now);
        bump(&mut self.counts.given_up);
        self.budget.give_back();
    }

    /// After how long without an answer it makes sense to ask a second time; `None` if never, or if too little is known.
    pub fn hedge_after(&self) -> Option<Duration> {
        self.pace.as_ref()?.known().map(|known| known.max(self.hedge_least))
    }

    /// Asks a second time while the first is under way, if the budget allows it and the upstream is well. What is asked
    /// has to be such that doing it twice is as good as once. It is one of the tries of its call, and there is one at most.
    pub fn hedge(&mut self, now: Timestamp, first: &mut Sent) -> Option<Sent> {
        let now = self.advance(now);
        let is_well = self.state(now) == BreakerState::Closed;
        let Tries { sent, hedged } = first.tries;
        let may_hedge = self.pace.is_some() && is_well && !hedged && sent < self.attempts;
        if !may_hedge || !self.budget.try_spend() {
            return None;
        }
        match self.pass(now, Tries { sent: sent.saturating_add(1), hedged: true }) {
            Ok(sent) => {
                // Whichever of the two goes on knows of both.
                first.tries = sent.tries;
                bump(&mut self.counts.hedges);
                Some(sent)
            }
            Err(_) => {
                self.budget.give_back();
                None
            }
        }
    }

    /// How it stands.
    pub fn snapshot(&mut self, now: Timestamp) -> CallerSnapshot {
        let now = self.advance(now);
        CallerSnapshot {
            counts: self.counts,
            budget: self.budget.left(),
            breaker: self.state(now),
            throttle: self.throttle.as_mut().map_or(0.0, |throttle| throttle.share(now)),
            hedge_after: self.hedge_after(),
        }
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.budget.refill(self.now);
        self.now
    }

    fn in_time(&self, now: Timestamp, deadline: Timestamp) -> Result<(), Declined> {
        if now < deadline { Ok(()) } else { Err(Declined::Deadline) }
    }

    fn may_pass(&mut self, now: Timestamp) -> Result<(), Declined> {
        self.breaker.as_mut().map_or(Ok(()), |breaker| breaker.check(now).map_err(Declined::BreakerOpen))
    }

    fn is_not_held_back(&mut self, now: Timestamp, random: u64) -> Result<(), Declined> {
        // Probes are few as they are, and nobody else gets here while the breaker is not closed.
        if self.state(now) != BreakerState::Closed {
            return Ok(());
        }
        let held_back = self.throttle.as_mut().is_some_and(|throttle| throttle.holds_back(now, random));
        if held_back { Err(Declined::Throttled) } else { Ok(()) }
    }

    /// The latest of these tries is sent.
    fn pass(&mut self, now: Timestamp, tries: Tries) -> Result<Sent, Declined> {
        let pass = match &mut self.breaker {
            Some(breaker) => Some(breaker.try_pass(now).map_err(Declined::BreakerOpen)?),
            None => None,
        };
        bump(&mut self.counts.sent);
        Ok(Sent { number: tries.sent, tries, at: now, pass })
    }

    fn state(&self, now: Timestamp) -> BreakerState {
        self.breaker.as_ref().map_or(BreakerState::Closed, |breaker| breaker.state(now))
    }

    /// When the next try is sent, or why it is not.
    fn may_repeat(
        &self,
        now: Timestamp,
        failures: u32,
        ended: Ended,
        random: u64,
    ) -> Result<Timestamp, Stop> {
        if !ended.reply.is_passing() {
            return Err(Stop::Answered);
        }
        if !ended.repeatable {
            return Err(Stop::NotRepeatable);
        }
        if failures >= self.attempts {
            return Err(Stop::Attempts);
        }
        let until = match ended.advice {
            Advice::Never => return Err(Stop::Told),
            Advice::Unsaid => now.after(self.backoff.wait(failures, random)),
            Advice::After(told) => now.after(told).after(self.spread(failures, told, random)),
        };
        if until < ended.deadline { Ok(until) } else { Err(Stop::Deadline) }
    }

    /// What is added to a time that was told to others too. Half of that time, as whole seconds are told by rounding, and
    /// at least what the back-off would be spread over.
    fn spread(&self, failures: u32, told: Duration, random: u64) -> Duration {
        let most = self.backoff.wait(failures, u64::MAX).max(told / 2);
        Backoff::FullJitter { base: most, cap: most }.wait(1, random)
    }

    fn learn(&mut self, now: Timestamp, sent: Sent, reply: Reply) {
        bump(&mut self.counts.replies[reply as usize]);
        if reply == Reply::Success {
            self.budget.deposit();
            if let Some(pace) = &mut self.pace {
                pace.took(now.since(sent.at));
            }
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.ended(now, matches!(reply, Reply::Success | Reply::Failed));
        }
        self.report(now, sent, verdict(reply));
    }

    fn report(&mut self, now: Timestamp, sent: Sent, verdict: Verdict) {
        if let (Some(breaker), Some(pass)) = (&mut self.breaker, sent.pass) {
            breaker.complete(now, pass, verdict);
        }
    }

    fn declined(&mut self, declined: Declined) {
        bump(match declined {
            Declined::Deadline => &mut self.counts.too_late,
            Declined::Throttled => &mut self.counts.throttled,
            Declined::BreakerOpen(_) => &mut self.counts.breaker_open,
        });
    }
}

/// What a reply says to the breaker. Unlike a gateway's, which has a limit for that, a caller's breaker takes 503 for a
/// failure: if that is all there is to be had, it asks nobody but probes. As long as anything is served the throttle
/// answers, which takes nothing away from it. 429 is about this caller and says that the other end is well, and so does
/// an error that is an answer.
const fn verdict(reply: Reply) -> Verdict {
    match reply {
        Reply::Success | Reply::Refused | Reply::Failed => Verdict::Success,
        Reply::Unavailable | Reply::Broken | Reply::TimedOut => Verdict::Failure,
        Reply::NoConnection => Verdict::NoConnection,
    }
}

const fn bump(count: &mut u64) {
    *count = count.saturating_add(1);
}
