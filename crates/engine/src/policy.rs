//! What an [`Admission`](crate::Admission) has been told to do: validated, plain data.
//!
//! Text never gets this far. The policy crate turns a file into these types and reports what is wrong with it
//! before anything changes.

use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::decision::RouteId;

/// The longest queue anybody may ask for. Each place costs about a hundred bytes here and a connection in the shell.
pub const QUEUE_CAPACITY_MAX: u32 = 100_000;
/// The longest queue that a derived capacity may grow to.
pub const QUEUE_CAPACITY_DERIVED_MAX: u32 = 10_000;
/// The highest concurrency limit anybody may ask for.
pub const LIMIT_MAX: u32 = 1_000_000;

/// The most classes there may be.
pub const PRIORITIES_MAX: usize = 8;

/// The policy of one protected capacity: how much may be in flight, and how the rest waits.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionPolicy {
    /// How much may be in flight.
    pub limit: LimitPolicy,
    /// How the excess waits.
    pub queue: QueuePolicy,
    /// Bulkheads: at most so many of the route's requests may wait or be in flight.
    pub bulkheads: Vec<(RouteId, NonZeroU32)>,
    /// The classes, the most important first. None means one; those beyond [`PRIORITIES_MAX`] count as the last.
    pub priorities: Vec<PriorityPolicy>,
    /// While the limit binds, no tenant may hold more than this share of it, from 0 to 1; but two slots always. `None`
    /// where being served in turn is enough.
    pub tenant_share: Option<f64>,
    /// The budget for retries; `None` where there are none of the driver's own, and nothing is done about those of clients.
    pub retries: Option<RetryPolicy>,
    /// When it is known to be down; `None` for never. It sees no connections, only outcomes.
    pub breaker: Option<BreakerPolicy>,
}

impl AdmissionPolicy {
    /// One class, all tenants alike, nothing done about retries, no breaker.
    pub const fn new(limit: LimitPolicy, queue: QueuePolicy) -> Self {
        Self {
            limit,
            queue,
            bulkheads: Vec::new(),
            priorities: Vec::new(),
            tenant_share: None,
            retries: None,
            breaker: None,
        }
    }
}

/// One class of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PriorityPolicy {
    /// The share of the capacity, from 0 to 1, that the class has even if more important ones could use all of it. What
    /// it does not use, others do.
    pub floor: f64,
}

/// The budget for retries of all sorts, and what is done about those of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Whether clients' retries rank below first tries, and those that say what they are have to be paid for. If not, the
    /// budget is for the driver's own retries.
    pub damp: bool,
    /// So many retries for a hundred first tries are let in.
    pub percent: u32,
    /// So many can be saved up for when they are needed.
    pub burst: u32,
    /// So many a second are let in besides, so that where little is asked for there can be a retry too.
    pub per_second: u32,
}

/// How much may be in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitPolicy {
    /// A number that somebody measured. Clamped to [`LIMIT_MAX`].
    Fixed(NonZeroU32),
    /// A number that finds the upstream's knee by itself.
    Ebb(EbbPolicy),
    /// Additive increase, multiplicative decrease.
    Aimd(AimdPolicy),
    /// Netflix's Vegas.
    Vegas(RangePolicy),
    /// Netflix's Gradient2.
    Gradient2(RangePolicy),
}

impl LimitPolicy {
    /// The most that may ever be in flight.
    pub const fn most(&self) -> NonZeroU32 {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Ebb(policy) => policy.max,
            Self::Aimd(policy) => policy.max,
            Self::Vegas(policy) | Self::Gradient2(policy) => policy.max,
        }
    }

    /// The least that the limit may come down to. (Ebb may be a third below it while it measures.)
    pub const fn least(&self) -> NonZeroU32 {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Ebb(policy) => policy.min,
            Self::Aimd(policy) => policy.min,
            Self::Vegas(policy) | Self::Gradient2(policy) => policy.min,
        }
    }
}

/// The numbers of the limit that finds the knee by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct EbbPolicy {
    /// The estimate is never below this; while it measures, the limit may be a third below.
    pub min: NonZeroU32,
    /// Never above this.
    pub max: NonZeroU32,
    /// Where it starts.
    pub initial: NonZeroU32,
    /// When an answer is too late. Response times of more than a quarter of this count as queueing.
    pub deadline: Duration,
    /// A part to do without, to find out what it is worth. `None` for all who are not doing that.
    pub without: Option<EbbPart>,
}

/// A part of the limit that finds the knee by itself. What each of them is worth is in `docs/ebb.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EbbPart {
    /// As long as nothing has shown that the upstream is full, the limit is doubled.
    Doubling,
    /// Not if that could take most of the deadline.
    Brake,
    /// What was tried, did not queue and was not needed stays.
    Kept,
    /// The upstream is full only if that is clear.
    Clear,
    /// Throughput above that at which it was full is room for more.
    Faster,
    /// Answers for clients who have given up count as throughput.
    Late,
    /// A response time near the deadline is queueing.
    DeadlineShare,
    /// How long clients wait that do not say so is a deadline too.
    Patience,
    /// One pair of phases moves the limit by a bounded step.
    StepMax,
    /// A low phase with far more throughput than the high one says nothing.
    Changed,
    /// The limit falls when many give up.
    GivingUp,
    /// The high phase is long while nothing changes.
    Dwell,
    /// It is the longer the oftener nothing has.
    Calm,
}

impl EbbPart {
    /// Every part, in the order of the type.
    pub const ALL: [Self; 13] = [
        Self::Doubling,
        Self::Brake,
        Self::Kept,
        Self::Clear,
        Self::Faster,
        Self::Late,
        Self::DeadlineShare,
        Self::Patience,
        Self::StepMax,
        Self::Changed,
        Self::GivingUp,
        Self::Dwell,
        Self::Calm,
    ];
}

/// Between which numbers a limit moves, and where it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct RangePolicy {
    /// Never below this.
    pub min: NonZeroU32,
    /// Never above this.
    pub max: NonZeroU32,
    /// Where it starts.
    pub initial: NonZeroU32,
}

/// The numbers of an additive-increase, multiplicative-decrease limit.
#[derive(Clone, Debug, PartialEq)]
pub struct AimdPolicy {
    /// Never below this.
    pub min: NonZeroU32,
    /// Never above this.
    pub max: NonZeroU32,
    /// Where it starts.
    pub initial: NonZeroU32,
    /// A response slower than this says that the upstream is overloaded.
    pub slow: Duration,
    /// So many healthy responses in a row raise the limit by one.
    pub window: NonZeroU32,
    /// The limit is halved at most once in this time, so that one burst of slow replies counts once.
    pub cooldown: Duration,
}

/// How the excess waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePolicy {
    /// The wait budget: nobody waits longer than this, and whoever would is refused on arrival.
    pub wait: Duration,
    /// How many may wait.
    pub capacity: Capacity,
    /// The budget while there is a queue all the time: whoever would wait longer than this is refused on arrival, though
    /// nobody who waits already is sent away. At least four requests may wait. `wait` to make no difference; a fixed
    /// capacity makes none either, since then somebody has said how long the queue is to be.
    pub standing_wait: Duration,
    /// Who goes first, and who is sent away.
    pub discipline: Discipline,
}

/// Who of a tenant's requests in a class goes first, and who is sent away before the wait budget is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// In the order of arrival; whoever would wait too long is refused on arrival, by a forecast.
    #[default]
    Forecast,
    /// In the order of arrival; refused only when the queue is full or the budget is used up.
    Fifo,
    /// In the order of arrival while the queue comes and goes; while it stands, whoever came last goes first, and the
    /// oldest wait until their budget is used up (B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015).
    AdaptiveLifo,
    /// In the order of arrival; while nobody has got through quickly for a while, whoever has waited for longer than a
    /// short time is sent away (the rule of the same article, after CoDel).
    Codel,
}

impl QueuePolicy {
    /// A queue whose budget is the same whether or not it is there all the time.
    pub const fn of(wait: Duration, capacity: Capacity) -> Self {
        Self { wait, capacity, standing_wait: wait, discipline: Discipline::Forecast }
    }
}

/// How many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Exactly so many, at most [`QUEUE_CAPACITY_MAX`]. Zero means: hand over or refuse.
    Fixed(u32),
    /// As many as can be served within the wait budget, by the measured service time (Q ≤ W·B/S); at most
    /// [`QUEUE_CAPACITY_DERIVED_MAX`], which also holds until a service time is known.
    Derived,
}

/// The most probes that a half-open breaker may let through at once.
pub const PROBES_MAX: u32 = 16;

/// When a breaker opens, and how it closes again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerPolicy {
    /// So many connections in a row could not be made.
    pub connect_failures: NonZeroU32,
    /// This share of the requests in the window has failed, from 0 to 1.
    pub failure_ratio: f64,
    /// With fewer requests in the window, a share of them says nothing.
    pub min_requests: NonZeroU32,
    /// How far back requests are counted, to a tenth of it.
    pub window: Duration,
    /// How long it stays open at first; twice as long each time that the probes fail.
    pub open: Duration,
    /// The longest that it stays open.
    pub open_max: Duration,
    /// So many probes are under way at once while it is half open, and so many have to succeed; at most [`PROBES_MAX`].
    pub probes: NonZeroU32,
    /// A probe of which nothing was heard for so long gives its place to another.
    pub probe_timeout: Duration,
}

impl BreakerPolicy {
    /// Careful: what still answers one time in five is left alone. `timeout` is the longest time that an answer takes.
    pub const fn careful(timeout: Duration) -> Self {
        const fn number(number: u32) -> NonZeroU32 {
            match NonZeroU32::new(number) {
                Some(number) => number,
                None => NonZeroU32::MIN,
            }
        }
        Self {
            connect_failures: number(5),
            failure_ratio: 0.8,
            min_requests: number(20),
            window: Duration::from_secs(3),
            open: Duration::from_millis(250),
            open_max: Duration::from_secs(1),
            probes: number(3),
            probe_timeout: timeout,
        }
    }
}
