//! The first reading of a log: what is in it, and what was logged of how it went.
//!
//! Everything kept has a fixed size, however long the log is.

use std::time::Duration;

use tidegate_engine::Timestamp;
use tidegate_workload::access_log::{AccessLog, Entry};
use tidegate_workload::{Latencies, Purpose, Random};

use super::busy::Busy;
use super::kinds::Kinds;
use crate::exit::Failure;

/// So many times are kept to draw from.
const TIMES_MAX: usize = 65_536;
/// The index of the stream of random numbers that says which are kept; services have the low ones.
const STREAM: usize = 1_000_000;

/// What was logged.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    /// The first and the last arrival.
    pub(crate) first: Timestamp,
    /// See `first`.
    pub(crate) last: Timestamp,
    /// Requests.
    pub(crate) requests: u64,
    /// Those that the proxy refused before an upstream had them.
    pub(crate) refused: u64,
    /// Those whose client had left.
    pub(crate) left: u64,
    /// Those answered with 5xx, and not refused.
    pub(crate) failed: u64,
    /// Those that the proxy answered by itself.
    pub(crate) unserved: u64,
    /// Those that came in before the log says how long they took, or were refused: their time is drawn.
    pub(crate) drawn: u64,
    /// The waits in the proxy's queue, of those who were not refused.
    pub(crate) queued: Latencies,
    /// How long the service worked on a request.
    pub(crate) worked: Latencies,
    /// How long answers took, of those who were not refused.
    pub(crate) total: Latencies,
    /// Some of the times that the service worked, in nanoseconds.
    pub(crate) times: Vec<u64>,
    /// How many times there were to choose from.
    seen: u64,
    /// How many were at work at once.
    busy: Busy,
}

impl Survey {
    /// Reads a log to its end and lets `kinds` take in every request.
    pub(crate) fn take(
        log: &mut AccessLog,
        kinds: &mut Kinds<'_>,
        seed: u64,
        mut progress: impl FnMut(),
    ) -> Result<Self, Failure> {
        let mut survey = Self {
            first: Timestamp::MAX,
            last: Timestamp::ZERO,
            requests: 0,
            refused: 0,
            left: 0,
            failed: 0,
            unserved: 0,
            drawn: 0,
            queued: Latencies::default(),
            worked: Latencies::default(),
            total: Latencies::default(),
            times: Vec::new(),
            seen: 0,
            busy: Busy::default(),
        };
        let mut random = Random::stream(seed, Purpose::Service, STREAM);
        for entry in log {
            kinds.take(&entry)?;
            survey.see(&entry, &mut random);
            progress();
        }
        Ok(survey)
    }

    fn see(&mut self, entry: &Entry, random: &mut Random) {
        self.first = self.first.min(entry.arrived);
        self.last = self.last.max(entry.arrived);
        self.requests += 1;
        self.refused += u64::from(entry.refused);
        self.left += u64::from(entry.left);
        self.failed += u64::from(!entry.refused && entry.status.is_some_and(|status| status >= 500));
        self.unserved += u64::from(!entry.refused && entry.attempts == 0);
        if !entry.refused {
            if let Some(queued) = entry.queued {
                self.queued.record(queued);
            }
            if let Some(total) = entry.total {
                self.total.record(total);
            }
        }
        match work(entry) {
            Some(work) => {
                self.worked.record(work);
                self.busy.take(entry.arrived, entry.queued.unwrap_or_default(), work);
                self.keep(work, random);
            }
            None => self.drawn += 1,
        }
    }

    /// Every time has the same chance to be among those that are kept (Vitter's algorithm R, 1985).
    fn keep(&mut self, work: Duration, random: &mut Random) {
        let nanos = u64::try_from(work.as_nanos()).unwrap_or(u64::MAX);
        self.seen += 1;
        if self.times.len() < TIMES_MAX {
            self.times.push(nanos);
        } else if let Some(place) = self.times.get_mut(random.below(self.seen as usize)) {
            *place = nanos;
        }
    }

    /// How many the old system had at work while anybody waited, and for which share of that time; `None` if nobody
    /// waited or the log does not say it.
    pub(crate) fn limit(&self) -> Option<(usize, f64)> {
        self.busy.clone().limit()
    }

    /// How many were at work at once at most.
    pub(crate) const fn most_at_work(&self) -> usize {
        self.busy.most()
    }

    /// From the first arrival to the last.
    pub(crate) fn span(&self) -> Duration {
        self.last.since(self.first)
    }
}

/// How long a request kept a place in the service busy, if the log says that.
///
/// A proxy that queues holds a place until the answer has ended, as tidegate does: that is all of the time but the wait.
/// Where nothing is said of a queue, the time at the upstream is closer, since the rest may be a slow client's.
pub(crate) fn work(entry: &Entry) -> Option<Duration> {
    if entry.refused {
        return None;
    }
    match (entry.total, entry.queued, entry.service) {
        (Some(total), Some(queued), _) => Some(total.saturating_sub(queued)),
        (total, _, service) => service.or(total),
    }
}
