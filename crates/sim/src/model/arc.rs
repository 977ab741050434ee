//! Adaptive Request Concurrency of Vector: one more when an answer takes no longer than it used to, a tenth less when it
//! takes much longer or the service pushes back, each at most once in a response time.
//!
//! After src/sinks/util/adaptive_concurrency/controller.rs of <https://github.com/vectordotdev/vector>, with its
//! defaults. There the client is Vector itself, so it is its own timeout that counts as pushing back; here that of
//! whoever asks does.

use tidegate_engine::Timestamp;

use super::{LIMIT_MAX, Sample};
use crate::ending::Ending;

/// The weight of the newest response time.
const ALPHA: f64 = 0.4;
/// So many standard deviations above the mean are much longer.
const DEVIATIONS: f64 = 2.5;
const DECREASE: f64 = 0.9;
const INITIAL: u32 = 1;

#[derive(Debug)]
pub(crate) struct VectorArc {
    limit: u32,
    past: Option<Past>,
    /// The response times since the last update: their sum in seconds, and how many.
    sum: f64,
    count: u32,
    reached_limit: bool,
    pushed_back: bool,
    next_update: Timestamp,
}

/// Response times of the past, in seconds: moving averages of the mean and of the variance.
#[derive(Clone, Copy, Debug)]
struct Past {
    mean: f64,
    variance: f64,
}

impl VectorArc {
    pub(super) const fn new() -> Self {
        Self {
            limit: INITIAL,
            past: None,
            sum: 0.0,
            count: 0,
            reached_limit: false,
            pushed_back: false,
            next_update: Timestamp::ZERO,
        }
    }

    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) const fn sent(&mut self, in_flight: u32) {
        if in_flight >= self.limit {
            self.reached_limit = true;
        }
    }

    pub(super) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        match sample.ending {
            Ending::Answered => {
                self.sum += sample.latency(now).as_secs_f64();
                self.count += 1;
            }
            // An error of a server is one that it would try again, and so it pushes back.
            Ending::Broken | Ending::Failed | Ending::Overdue | Ending::Left => self.pushed_back = true,
        }
        let current = (self.count > 0).then(|| self.sum / f64::from(self.count));
        let Some(past) = self.past else {
            if let Some(current) = current {
                let past = Past { mean: current, variance: 0.0 };
                self.past = Some(past);
                self.next_update = now.after(past.interval());
            }
            return;
        };
        if now >= self.next_update {
            self.manage(past, current);
            let past = current.map_or(past, |current| past.updated(current));
            self.past = Some(past);
            self.next_update = now.after(past.interval());
            (self.sum, self.count) = (0.0, 0);
            (self.reached_limit, self.pushed_back) = (false, false);
        }
    }

    fn manage(&mut self, past: Past, current: Option<f64>) {
        let much_longer = past.mean + DEVIATIONS * libm::sqrt(past.variance);
        let as_quick = current.is_some_and(|current| current <= past.mean);
        if self.limit < LIMIT_MAX && self.reached_limit && !self.pushed_back && as_quick {
            self.limit += 1;
        } else if self.limit > 1 && (self.pushed_back || current.unwrap_or(0.0) >= much_longer) {
            self.limit = ((f64::from(self.limit) * DECREASE) as u32).max(1);
        }
    }
}

impl Past {
    fn updated(self, current: f64) -> Self {
        let difference = current - self.mean;
        let increment = ALPHA * difference;
        Self {
            mean: self.mean + increment,
            variance: (1.0 - ALPHA) * (self.variance + difference * increment),
        }
    }

    fn interval(self) -> std::time::Duration {
        std::time::Duration::try_from_secs_f64(self.mean).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exchanges of `latency_ms` each, all in flight at the limit, one after the other.
    fn feed(arc: &mut VectorArc, now_ms: &mut u64, latency_ms: u64, ending: Ending, times: u32) -> u32 {
        for _ in 0..times {
            arc.sent(arc.limit());
            let sent = Timestamp::from_millis(*now_ms);
            *now_ms += latency_ms;
            arc.on_sample(Timestamp::from_millis(*now_ms), Sample { sent, ending });
        }
        arc.limit()
    }

    #[test]
    fn one_more_for_each_response_time_that_is_no_longer_than_before() {
        let (mut arc, mut now) = (VectorArc::new(), 0);
        assert_eq!(feed(&mut arc, &mut now, 64, Ending::Answered, 1), 1, "the first is only remembered");
        assert_eq!(feed(&mut arc, &mut now, 64, Ending::Answered, 1), 2);
        assert_eq!(feed(&mut arc, &mut now, 64, Ending::Answered, 10), 12);
    }

    #[test]
    fn a_tenth_less_when_it_is_pushed_back_or_much_slower() {
        let (mut arc, mut now) = (VectorArc::new(), 0);
        assert_eq!(feed(&mut arc, &mut now, 64, Ending::Answered, 20), 20);
        assert_eq!(feed(&mut arc, &mut now, 100, Ending::Answered, 1), 18, "no deviation is known yet");
        // The mean is 64 + 0.4 * 36 = 78.4 now, the deviation sqrt(0.6 * 36 * 14.4) = 17.6.
        assert_eq!(feed(&mut arc, &mut now, 120, Ending::Answered, 1), 18, "within 2.5 deviations");
        assert_eq!(feed(&mut arc, &mut now, 300, Ending::Left, 1), 16);
        assert_eq!(feed(&mut arc, &mut now, 300, Ending::Failed, 1), 14);
        assert_eq!(feed(&mut arc, &mut now, 300, Ending::Overdue, 100), 1, "and never below one");
    }

    #[test]
    fn what_comes_within_one_response_time_counts_once() {
        let (mut arc, mut now) = (VectorArc::new(), 0);
        feed(&mut arc, &mut now, 64, Ending::Answered, 10);
        for _ in 0..50 {
            let at = Timestamp::from_millis(now + 10);
            arc.on_sample(at, Sample { sent: at, ending: Ending::Broken });
        }
        assert_eq!(arc.limit(), 10);
        assert_eq!(feed(&mut arc, &mut now, 64, Ending::Answered, 1), 9);
    }

    #[test]
    fn what_nobody_needs_does_not_grow() {
        let mut arc = VectorArc::new();
        for second in 0..100 {
            let (sent, now) =
                (Timestamp::from_millis(second * 1000), Timestamp::from_millis(second * 1000 + 64));
            arc.sent(0);
            arc.on_sample(now, Sample { sent, ending: Ending::Answered });
        }
        assert_eq!(arc.limit(), 1);
    }
}
