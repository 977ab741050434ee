//! Ebb: a limit that finds out by itself how much an upstream can work on at once.
//!
//! By Little's law the knee of an upstream, where more in flight brings no more throughput, is its throughput when it is
//! busy times its response time when it is not. No single state shows both. So as long as the limit binds, Ebb alternates:
//!
//! - a **high** phase, somewhat above the estimate, in which throughput is measured, and
//! - a **low** phase, somewhat below it, in which the response time is.
//!
//! If nothing queues in the upstream, both response times are the same, and the estimate grows. If the low phase queues
//! too, it falls. It keeps no latency from the past to compare with: a baseline that was measured once is wrong from the
//! day on which the upstream becomes slower without being full.
//!
//! As long as nothing has shown that the upstream is full, it goes the other way: the second phase of the pair is **double**
//! the first. So it is at a hundred after some fifteen response times, and only then looks closely. [`room`] judges that.
//!
//! While the limit does not bind, nothing can be learned, and nothing is forgotten. Late answers, for clients that have
//! given up, count as throughput; errors count as nothing. So neither a stall nor a crash moves the estimate.
//!
//! It counts and averages; it looks at no single request and draws no random number. The estimate itself is in
//! [`estimate`]. How it was found, and what each part is worth, is told in `docs/ebb.md`.

mod estimate;
mod room;
mod sums;

use core::mem;
use core::time::Duration;

use estimate::{DEADLINE_SHARE, Estimate};
use room::{Doubled, Room};
use sums::{Smoothed, Sums};

use crate::decision::Outcome;
use crate::limit::Sample;
use crate::policy::{EbbPart, EbbPolicy, LIMIT_MAX};
use crate::time::Timestamp;

/// The low phase, as a share of the high one. Together with the 1.4 of the estimate it makes 0.91: below the knee, or
/// the estimate could not fall, and not far below it, since it costs throughput.
const LOW: f64 = 0.65;
/// A phase needs so many outcomes: an average of fewer says little.
const OUTCOMES: f64 = 30.0;
/// And so many while there may be room: then the two are far apart, and time matters more than a close look.
const OUTCOMES_OF_ROOM: f64 = 20.0;
/// A phase needs so many response times, or what is in flight is still that of the phase before.
const RESPONSE_TIMES: f64 = 2.0;
/// And so many where answers take more than [`NEAR`] of the deadline: there it matters most what they say.
const RESPONSE_TIMES_NEAR: f64 = 4.0;
const NEAR: f64 = 1.5 * DEADLINE_SHARE;
/// A double phase needs but one: whether it pays is not a question of a tenth.
const RESPONSE_TIMES_DOUBLE: f64 = 1.0;
/// When the last pair has agreed with the estimate, the high phase lasts so many times as long as the low one.
const DWELL: f64 = 10.0;
/// The limit binds if it did so for this share of a phase.
const BOUND: f64 = 0.3;
/// So many high phases are short after the limit has begun to bind: then the estimate is least certain.
const SHORT_AT_FIRST: u32 = 2;
/// The high phase is so many times as long at most, if it has agreed several times, and is looked at after each of them.
const STRETCHES_MAX: u32 = 4;
/// No stretch is longer than so many seconds, however long a pair takes.
const STRETCH_MAX: f64 = 30.0;
/// How long at most a phase that does not bind goes on: so many response times, at least a second.
const IDLE_RESPONSE_TIMES: f64 = 20.0;
/// How long at most the low phase waits for what is in flight to come down: so many response times, at least two seconds.
const SETTLE_RESPONSE_TIMES: f64 = 8.0;

#[derive(Debug)]
pub(crate) struct Ebb {
    policy: EbbPolicy,
    estimate: Estimate,
    /// The limit in force.
    current: u32,
    phase: Phase,
    entered: Timestamp,
    /// What is in flight belongs to this phase.
    settled: bool,
    sums: Sums,
    /// The high phase before the low or double one that is under way.
    high: Sums,
    room: Room,
    /// How long the last low phase took, in seconds.
    low_took: f64,
    /// So many high phases are to be short.
    short: u32,
    /// So many pairs have agreed, one after the other.
    agreed: u32,
    /// The stretches of the high phase that are over, and how many they were.
    dwelt: Sums,
    stretches: u32,
    response: Smoothed,
    /// How long answers take that somebody has waited for, and how far they usually are from that.
    answered: Smoothed,
    deviation: Smoothed,
    /// After how long an answer is too late for clients that do not say so.
    patience: Option<Duration>,
    seen: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The limit does not bind.
    Free,
    High,
    Low,
    Double,
}

impl Ebb {
    pub(crate) fn new(policy: EbbPolicy) -> Self {
        let mut ebb = Self {
            estimate: Estimate::new(&policy),
            current: 0,
            phase: Phase::Free,
            entered: Timestamp::ZERO,
            settled: true,
            sums: Sums::default(),
            high: Sums::default(),
            room: Room::new(policy.without),
            low_took: 0.0,
            short: SHORT_AT_FIRST,
            agreed: 0,
            dwelt: Sums::default(),
            stretches: 0,
            response: Smoothed::default(),
            answered: Smoothed::default(),
            deviation: Smoothed::default(),
            patience: None,
            seen: Timestamp::ZERO,
            policy,
        };
        ebb.current = ebb.highest();
        ebb
    }

    pub(crate) const fn current(&self) -> u32 {
        self.current
    }

    pub(crate) fn reconfigure(&mut self, policy: EbbPolicy) {
        self.estimate.reconfigure(&policy);
        self.policy = policy;
        self.current = self.current.min(self.most());
    }

    /// How things stood since this was called last. Has to be called before they change.
    pub(crate) fn observe(&mut self, now: Timestamp, in_flight: u32, waiting: bool) {
        let took = seconds(now.since(self.seen));
        if took > 0.0 {
            self.sums.stood(took, in_flight, waiting || in_flight >= self.current);
            self.seen = now;
        }
        if self.phase == Phase::Low && !self.settled && in_flight <= self.current {
            self.settle();
        }
        self.step(now);
    }

    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        let latency = seconds(sample.latency);
        self.patience = sample.patience;
        // Where closing the connection stops the work, a timeout is an end like any other, but for the time it took.
        let overdue = sample.outcome == Outcome::Overload && sample.latency >= self.policy.deadline;
        if (sample.gave_up || overdue) && !self.is_hasty(latency) {
            self.response.take(latency);
            self.sums.gave_up += 1.0;
        } else if sample.outcome == Outcome::Success && !sample.gave_up {
            self.response.take(latency);
            self.answered.take(latency);
            self.deviation.take((latency - self.answered.value()).abs());
            self.sums.responses += 1.0;
        }
        // An error may come from anywhere, and says nothing about how much fits in.
        self.step(now);
    }

    /// Whether somebody who has left after so long, in seconds, says nothing about the upstream. Otherwise anybody could lower
    /// the limit by hanging up at once, or by stating a deadline that nothing can meet. Where times vary, answers that take
    /// somewhat longer than the mean are as usual as those that take less; how much longer, the mean deviation says, as it
    /// does for TCP's retransmission timer (RFC 6298). It is no multiple of the mean: where all that come in
    /// time take nearly as long as clients wait, whoever leaves then has been kept waiting.
    fn is_hasty(&self, latency: f64) -> bool {
        let (mean, usual) = (self.response.value(), self.answered.value() + self.deviation.value());
        // From a part of the deadline on, answers do not take as long as usual any more.
        let most = mean.max(DEADLINE_SHARE * seconds(self.policy.deadline));
        latency < if usual > 0.0 { usual.min(most) } else { mean }
    }

    /// An answer has come whose client had given up: the upstream has worked for it all the same.
    pub(crate) fn on_late(&mut self, now: Timestamp) {
        if self.has(EbbPart::Late) {
            self.sums.responses += 1.0;
            self.sums.late += 1.0;
        }
        self.step(now);
    }

    fn step(&mut self, now: Timestamp) {
        let age = seconds(now.since(self.entered));
        if !self.settled {
            let wait = match self.phase {
                Phase::Low => (SETTLE_RESPONSE_TIMES * self.response.value()).max(2.0),
                _ => self.pace(),
            };
            if age >= wait {
                self.settle();
            }
            return;
        }
        match self.phase {
            Phase::Free if age >= (RESPONSE_TIMES * self.response.value()).max(0.02) => {
                if self.sums.bound_share() > BOUND {
                    // What was found before nobody was held back is of another time.
                    self.short = SHORT_AT_FIRST;
                    self.agreed = 0;
                    self.estimate.begin();
                    self.room.begin();
                    self.enter(now, Phase::High);
                } else {
                    self.enter(now, Phase::Free);
                }
            }
            Phase::Free => {}
            Phase::High | Phase::Low | Phase::Double => self.step_pair(now, age),
        }
    }

    fn step_pair(&mut self, now: Timestamp, age: f64) {
        let (sums, pace, double) = (self.sums, self.pace(), self.phase == Phase::Double);
        let outcomes = if double || self.room.is_open() { OUTCOMES_OF_ROOM } else { OUTCOMES };
        let enough = sums.outcomes() >= outcomes && sums.seconds >= self.response_times(pace) * pace;
        let binds = sums.bound_share() > BOUND;
        if !binds && (enough || sums.seconds > (IDLE_RESPONSE_TIMES * pace).max(1.0)) {
            if double && self.has(EbbPart::Kept) {
                // Nobody needed all of it. If what was needed has not queued, all of it is there at once the next time.
                self.learn_doubled();
            }
            return self.enter(now, Phase::Free);
        }
        if enough {
            match self.phase {
                Phase::Low => self.after_low(now, age),
                Phase::Double => self.after_double(now),
                Phase::High | Phase::Free => self.after_high(now),
            }
        }
    }

    fn after_high(&mut self, now: Timestamp) {
        if self.may_double() {
            self.high = self.sums;
            self.enter(now, Phase::Double);
        } else if self.short > 0 || !self.has(EbbPart::Dwell) {
            self.high = self.sums;
            self.enter(now, Phase::Low);
        } else if self.sums.seconds >= (DWELL * self.low_took).min(STRETCH_MAX) {
            self.after_stretch(now);
        }
    }

    /// A high phase that is not short has been as long as one stretch of it is. The low phase costs throughput, so the
    /// oftener it has said that nothing changes, the more stretches come before the next one; but only as long as they do
    /// not differ among themselves.
    fn after_stretch(&mut self, now: Timestamp) {
        let stretch = mem::take(&mut self.sums);
        let same = self.stretches == 0 || Room::is_same(&self.dwelt, &stretch);
        if !same {
            self.dwelt = Sums::default();
        }
        self.dwelt.add(&stretch);
        self.stretches += 1;
        let calm = if self.has(EbbPart::Calm) { self.agreed.saturating_sub(1) } else { 0 };
        let stretches = STRETCHES_MAX.min(1 << calm.min(u32::BITS - 1));
        if !same || self.stretches >= stretches {
            self.high = self.dwelt;
            self.enter(now, Phase::Low);
        }
    }

    fn after_low(&mut self, now: Timestamp, age: f64) {
        let (low, deadline) = (self.sums, self.deadline());
        self.low_took = age;
        self.room.learn_low(&self.high, &low, deadline);
        if self.estimate.learn(&self.high, &low, deadline) {
            self.agreed = self.agreed.saturating_add(1);
            self.short = self.short.saturating_sub(1);
        } else {
            self.agreed = 0;
            self.short = self.short.max(1);
        }
        self.enter(now, Phase::High);
    }

    fn after_double(&mut self, now: Timestamp) {
        if self.learn_doubled() && self.may_double() {
            self.high = self.sums;
            return self.enter(now, Phase::Double);
        }
        self.short = self.short.max(1);
        self.agreed = 0;
        self.enter(now, Phase::High);
    }

    /// Learns from up to twice as much. Says whether it pays.
    fn learn_doubled(&mut self) -> bool {
        match self.room.learn_doubled(&self.high, &self.sums) {
            Doubled::Pays => {
                self.estimate.rise(f64::from(self.current), 1.0);
                return true;
            }
            Doubled::Perhaps(ratio) => self.estimate.rise(self.sums.in_flight(), ratio),
            Doubled::Unclear | Doubled::Full => {}
        }
        false
    }

    fn may_double(&self) -> bool {
        self.highest() < self.most() && self.room.is_worth_a_try(&self.sums, self.deadline())
    }

    fn enter(&mut self, now: Timestamp, phase: Phase) {
        let high = self.highest();
        self.current = match phase {
            Phase::Low => (libm::round(f64::from(high) * LOW) as u32).max(1),
            Phase::Double => high.saturating_mul(2).min(self.most()),
            Phase::Free | Phase::High => high,
        };
        self.phase = phase;
        self.entered = now;
        self.settled = phase == Phase::Free;
        self.sums = Sums::default();
        self.dwelt = Sums::default();
        self.stretches = 0;
    }

    fn settle(&mut self) {
        self.settled = true;
        self.sums = Sums::default();
    }

    /// The limit of the high phase: at least two, since with one nothing can be compared.
    fn highest(&self) -> u32 {
        (libm::ceil(self.estimate.value()) as u32).max(2).min(self.most())
    }

    fn most(&self) -> u32 {
        self.policy.max.get().min(LIMIT_MAX)
    }

    /// When an answer is too late, in seconds: by the policy, or when clients have left, unless that says nothing.
    fn deadline(&self) -> f64 {
        let patience = self.patience.map(seconds).filter(|_| self.has(EbbPart::Patience));
        let told = patience.filter(|patience| *patience > self.answered.value());
        seconds(self.policy.deadline).min(told.unwrap_or(f64::INFINITY))
    }

    /// What counts as a response time in this phase, in seconds. The smoothed one follows slowly, and a double phase is
    /// often there because it has become longer.
    fn pace(&self) -> f64 {
        match self.phase {
            Phase::Double => self.response.value().max(self.high.response_time()),
            Phase::Free | Phase::High | Phase::Low => self.response.value(),
        }
    }

    /// How many response times this phase needs, of which one takes so long.
    fn response_times(&self, pace: f64) -> f64 {
        match self.phase {
            Phase::Double => RESPONSE_TIMES_DOUBLE,
            _ if pace > NEAR * self.deadline() => RESPONSE_TIMES_NEAR,
            _ => RESPONSE_TIMES,
        }
    }

    fn has(&self, part: EbbPart) -> bool {
        self.policy.without != Some(part)
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::sample;
    use core::num::NonZeroU32;
    use core::ops::Range;

    fn ebb() -> Ebb {
        starting_at(24, None)
    }

    fn starting_at(initial: u32, without: Option<EbbPart>) -> Ebb {
        let number = |n| NonZeroU32::new(n).unwrap();
        let deadline = Duration::from_millis(400);
        Ebb::new(EbbPolicy { min: number(2), max: number(1000), initial: number(initial), deadline, without })
    }

    #[derive(Clone, Copy)]
    enum Clients {
        Patient,
        /// A thousand a second hang up at once.
        Hasty,
        /// It is known when they leave.
        Leaving(Duration),
    }

    /// An upstream with so many workers of 20 ms each, and always somebody waiting, for these seconds: what the limit is then,
    /// and the most it was.
    fn driven(ebb: &mut Ebb, workers: u32, seconds: Range<u64>, clients: Clients) -> (u32, u32) {
        let mut most = 0;
        let patience = if let Clients::Leaving(after) = clients { Some(after) } else { None };
        for millis in seconds.start * 1000 + 1..=seconds.end * 1000 {
            let now = Timestamp::from_millis(millis);
            let in_flight = ebb.current();
            most = most.max(in_flight);
            ebb.observe(now, in_flight, true);
            // What is more than the workers waits for them.
            let latency = 20 * u64::from(in_flight.div_ceil(workers));
            let served = u64::from(in_flight.min(workers));
            for _ in 0..(millis * served / 20 - (millis - 1) * served / 20) {
                ebb.on_sample(now, Sample { patience, ..sample(latency, Outcome::Success) });
            }
            if matches!(clients, Clients::Hasty) {
                ebb.on_sample(now, Sample { gave_up: true, ..sample(1, Outcome::Ignore) });
            }
        }
        (ebb.current(), most)
    }

    #[test]
    fn finds_the_knee_from_either_side() {
        for workers in [8, 50, 200] {
            let (limit, _) = driven(&mut ebb(), workers, 0..120, Clients::Patient);
            assert!((workers * 8 / 10..=workers * 2).contains(&limit), "{workers} workers, limit {limit}");
        }
    }

    /// From 6 to 200 takes five doublings and no more. Without them it takes seconds.
    #[test]
    fn doubles_as_long_as_there_is_room() {
        let (fast, _) = driven(&mut starting_at(6, None), 200, 0..1, Clients::Patient);
        assert!((160..=400).contains(&fast), "{fast}");
        let without = Some(EbbPart::Doubling);
        let (slow, _) = driven(&mut starting_at(6, without), 200, 0..1, Clients::Patient);
        assert!(slow < 80, "{slow}");
    }

    /// One worker of 20 ms, and clients who wait 400 ms: not even for a moment may there be more than that at once.
    #[test]
    fn does_not_double_what_is_full() {
        let (_, most) = driven(&mut starting_at(6, None), 1, 0..100, Clients::Patient);
        assert!(most <= 12, "{most}");
    }

    /// Clients leave after 150 ms, whatever the policy says: twice six on one worker would take longer.
    #[test]
    fn how_long_clients_wait_is_a_deadline_too() {
        let clients = Clients::Leaving(Duration::from_millis(150));
        assert_eq!(driven(&mut starting_at(6, None), 1, 0..100, clients).1, 6);
        let told = driven(&mut starting_at(6, Some(EbbPart::Patience)), 1, 0..100, clients);
        assert_eq!(told, driven(&mut starting_at(6, None), 1, 0..100, Clients::Patient));
        assert_eq!(told.1, 12);
    }

    /// The low phase costs throughput. Where nothing changes it is rare.
    #[test]
    fn looks_less_often_where_nothing_changes() {
        let looks_in_low_phases = |without| {
            let mut ebb = starting_at(10, without);
            let mut look = |second| {
                driven(&mut ebb, 10, second..second + 1, Clients::Patient);
                ebb.phase == Phase::Low
            };
            (0..300).filter(|second| look(*second)).count()
        };
        let (often, seldom) = (looks_in_low_phases(Some(EbbPart::Calm)), looks_in_low_phases(None));
        assert!(0 < seldom && seldom * 2 < often, "{seldom} and {often}");
    }

    /// Not needed is not learned, and not forgotten.
    #[test]
    fn an_idle_limit_stays_where_it_is() {
        let mut ebb = ebb();
        for millis in 1..=100_000 {
            let now = Timestamp::from_millis(millis);
            ebb.observe(now, 3, false);
            ebb.on_sample(now, sample(20, Outcome::Success));
        }
        assert_eq!(ebb.current(), 24);
    }

    #[test]
    fn hasty_clients_cannot_lower_it() {
        let hasty = driven(&mut ebb(), 10, 0..60, Clients::Hasty);
        assert_eq!(hasty, driven(&mut ebb(), 10, 0..60, Clients::Patient));
    }
}
