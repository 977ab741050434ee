//! The words of a caller: what it is told, what it answers, and what it counts. Types only.

use core::time::Duration;

use crate::breaker::{BreakerState, Pass, Refused};
use crate::time::Timestamp;

/// What has come of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer that is of use; also one that says that the request was wrong.
    Success,
    /// 429: you send too much. Whoever says so is well.
    Refused,
    /// 503, or one before it did not get through: it cannot answer now.
    Unavailable,
    /// An answer that is an error of its own kind, which another try would meet too.
    Failed,
    /// There was no connection: nothing was sent.
    NoConnection,
    /// The connection ended before the answer.
    Broken,
    /// No answer in time.
    TimedOut,
}

impl Reply {
    /// Whether another try may have another end, as far as one can say.
    pub const fn is_passing(self) -> bool {
        match self {
            Self::Refused | Self::Unavailable | Self::NoConnection | Self::Broken | Self::TimedOut => true,
            Self::Success | Self::Failed => false,
        }
    }

    /// Every reply with its name in metrics. `reply as usize` is its index here.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Success, "success"),
        (Self::Refused, "refused"),
        (Self::Unavailable, "unavailable"),
        (Self::Failed, "failed"),
        (Self::NoConnection, "no_connection"),
        (Self::Broken, "broken"),
        (Self::TimedOut, "timed_out"),
    ];
}

/// What an answer says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    Unsaid,
    /// Not before so long.
    After(Duration),
    /// Not at all.
    Never,
}

/// What is known of a try that has ended, apart from how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What came of it.
    pub reply: Reply,
    /// What the answer said about trying again.
    pub advice: Advice,
    /// Whether the call can be made again at all: doing it twice is as good as once, or nothing of it was sent, and all
    /// of it is at hand. And whether it is for this caller to do so, and not for one before or behind it.
    pub repeatable: bool,
    /// Until when somebody waits for the answer.
    pub deadline: Timestamp,
}

/// The tries of one call so far. Whatever of a call goes on knows of all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    /// How many were sent, hedges among them.
    pub(super) sent: u32,
    /// One of them was a hedge.
    pub(super) hedged: bool,
}

/// A try that is under way. It ends in [`Caller::answered`](super::Caller::answered) or
/// [`Caller::abandoned`](super::Caller::abandoned). There is no way to copy it.
#[derive(Debug)]
#[must_use = "a try that does not end teaches the caller nothing"]
pub struct Sent {
    pub(super) number: u32,
    pub(super) tries: Tries,
    pub(super) at: Timestamp,
    pub(super) pass: Option<Pass>,
}

impl Sent {
    /// Which of the call's tries it is, the first being 1.
    pub const fn number(&self) -> u32 {
        self.number
    }
}

/// A try that is decided on and paid for, and not sent yet. It ends in [`Caller::resume`](super::Caller::resume), or
/// in [`Caller::decline`](super::Caller::decline) or [`Caller::give_up`](super::Caller::give_up), which give back what it cost. There is no way to copy it.
#[derive(Debug)]
#[must_use = "a retry that is neither sent nor given up stays paid for"]
pub struct Pause {
    pub(super) tries: Tries,
    pub(super) until: Timestamp,
}

impl Pause {
    /// When it is to be sent.
    pub const fn until(&self) -> Timestamp {
        self.until
    }

    /// How many tries were sent before it; a hedge is one.
    pub const fn failures(&self) -> u32 {
        self.tries.sent
    }
}

/// What is done about a try that has ended.
#[derive(Debug)]
#[must_use = "a retry that is decided on is paid for"]
pub enum Step {
    /// It is tried again, after the pause.
    Again(Pause),
    /// This is the end of the call, for this reason.
    Stop(Stop),
}

/// Why a call is not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The answer is good, or as good as any other would be.
    Answered,
    /// It cannot be made twice, or it is not for this caller to do so.
    NotRepeatable,
    /// The answer said so.
    Told,
    /// There were as many tries as there may be.
    Attempts,
    /// The next would come too late.
    Deadline,
    /// The budget is spent.
    Budget,
    /// The next was decided on, and when its time had come it could not be sent.
    Declined,
}

impl Stop {
    /// Every reason with its name in metrics. `stop as usize` is its index here.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Answered, "answered"),
        (Self::NotRepeatable, "not_repeatable"),
        (Self::Told, "told"),
        (Self::Attempts, "attempts"),
        (Self::Deadline, "deadline"),
        (Self::Budget, "budget"),
        (Self::Declined, "declined"),
    ];
}

/// Why a try is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// Nobody would wait for the answer.
    Deadline,
    /// Of what was sent lately too much was refused.
    Throttled,
    /// Nobody is there.
    BreakerOpen(Refused),
}

/// What has happened so far. Each call begins once, so `calls` is at least what ended in any way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerCounts {
    /// Calls that were asked for.
    pub calls: u64,
    /// Tries that were sent, hedges among them.
    pub sent: u64,
    /// Retries that were decided on.
    pub retries: u64,
    /// Retries that were decided on and not sent.
    pub given_up: u64,
    /// Second requests that were sent while the first was under way.
    pub hedges: u64,
    /// Tries that were left before their end.
    pub abandoned: u64,
    /// Tries by how they ended, in the order of [`Reply::ALL`].
    pub replies: [u64; Reply::ALL.len()],
    /// Calls by why they were not tried again, in the order of [`Stop::ALL`].
    pub stops: [u64; Stop::ALL.len()],
    /// Not sent: nobody would have waited.
    pub too_late: u64,
    /// Not sent: held back by the throttle.
    pub throttled: u64,
    /// Not sent: the breaker was open.
    pub breaker_open: u64,
}

impl CallerCounts {
    /// Tries that ended so.
    pub const fn replied(&self, reply: Reply) -> u64 {
        self.replies[reply as usize]
    }

    /// Calls that were not tried again for this reason.
    pub const fn stopped(&self, stop: Stop) -> u64 {
        self.stops[stop as usize]
    }
}

/// How a caller stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallerSnapshot {
    /// What has happened.
    pub counts: CallerCounts,
    /// Retries that there may be at this moment.
    pub budget: u32,
    /// How the breaker stands; closed if there is none.
    pub breaker: BreakerState,
    /// The probability that the next call is held back, from 0 to 1.
    pub throttle: f64,
    /// After how long a second request would be sent, if that is known.
    pub hedge_after: Option<Duration>,
}
