//! The numbers of a caller. Plain data; every bound that it needs is kept where the numbers are used.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::policy::BreakerPolicy;
use crate::retry::{Backoff, RetryBudget};

/// How a caller treats what it calls.
#[derive(Clone, Debug, PartialEq)]
pub struct CallerPolicy {
    /// Tries in all for one call, the first and a hedge among them.
    pub attempts: NonZeroU32,
    /// How long it waits before the next, if the answer does not say.
    pub backoff: Backoff,
    /// How many retries and hedges there may be.
    pub budget: BudgetPolicy,
    /// When it stops asking, because nobody is there. `None`: never.
    pub breaker: Option<BreakerPolicy>,
    /// When it asks less, because most of what it asks is refused. `None`: never.
    pub throttle: Option<ThrottlePolicy>,
    /// When it asks a second time before the first has answered. `None`: never.
    pub hedge: Option<HedgePolicy>,
}

impl CallerPolicy {
    /// What does no harm to anybody: three tries, full jitter from 100 ms to 8 s, retries for a tenth of the successes, a
    /// breaker that opens when nothing gets through at all, a throttle for when little does, and no hedges. `timeout` is
    /// the longest that an answer takes.
    pub const fn careful(timeout: Duration) -> Self {
        Self {
            attempts: NonZeroU32::MIN.saturating_add(2),
            backoff: Backoff::FullJitter { base: Duration::from_millis(100), cap: Duration::from_secs(8) },
            budget: BudgetPolicy::TENTH,
            breaker: Some(BreakerPolicy { failure_ratio: 1.0, ..BreakerPolicy::careful(timeout) }),
            throttle: Some(ThrottlePolicy::CAREFUL),
            hedge: None,
        }
    }

    /// One try, come what may.
    pub const fn once() -> Self {
        Self {
            attempts: NonZeroU32::MIN,
            backoff: Backoff::None,
            budget: BudgetPolicy { percent: 0, burst: 0, per_minute: 0 },
            breaker: None,
            throttle: None,
            hedge: None,
        }
    }
}

/// How many retries there may be, hedges among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetPolicy {
    /// So many for a hundred *successes*. While nothing succeeds, nothing is earned.
    pub percent: u32,
    /// So many can be saved up; as many are there at first.
    pub burst: u32,
    /// So many a minute besides, so that whoever asks little can try again too. It is for each caller, and many callers
    /// that ask little are many: keep it small beside what one of them asks.
    pub per_minute: u32,
}

impl BudgetPolicy {
    /// A tenth of the successes, ten saved up, six a minute.
    pub const TENTH: Self = Self { percent: 10, burst: 10, per_minute: 6 };

    pub(super) fn budget(self) -> RetryBudget {
        // What cannot be saved up can never be spent, so there is room for one if there is to be any.
        let any = u32::from(self.percent > 0 || self.per_minute > 0);
        RetryBudget::new(self.percent, self.burst.max(any)).with_per_minute(self.per_minute)
    }
}

/// When a caller asks less than it would like to (Google, "Site Reliability Engineering", chapter 21, "Client-Side
/// Throttling").
///
/// With `r` requests wanted in the window and `a` of them accepted, the next one is not sent with the probability
/// `(r - K·a) / (r + 1)`. Wanted is what was held back, and what was sent and has ended: what is still under way has not
/// been refused. So a K of 2 sends twice what is accepted: for each request that is served one is refused, which is what it
/// costs to learn at once that there is more room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottlePolicy {
    /// K. At least 1.
    pub tolerance: f64,
    /// How far back requests are counted, to a tenth of it.
    pub window: Duration,
    /// With fewer requests in the window nothing is held back: of two that fail one cannot learn anything.
    pub min_requests: u32,
    /// No more than this share is held back, from 0 to 1. The formula's own would come so close to 1 in a long outage
    /// that hardly anybody is left to notice its end.
    pub most: f64,
}

impl ThrottlePolicy {
    /// K = 2 over ten seconds, from twenty requests on; one in ten is always sent.
    pub const CAREFUL: Self =
        Self { tolerance: 2.0, window: Duration::from_secs(10), min_requests: 20, most: 0.9 };
}

/// When a caller asks a second time before the first has answered (Dean and Barroso, "The Tail at Scale", CACM 2013).
///
/// A hedge is paid for out of the same budget as a retry, is at most one for each call, and is only sent while the breaker
/// is closed, to what may be asked twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgePolicy {
    /// It is sent when so many of a hundred answers would have come; 95, say.
    pub percentile: u8,
    /// But not earlier than this.
    pub least: Duration,
}
