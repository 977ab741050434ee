//! Why there is no answer.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// Any error, as tower has it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// There is no answer. Whether anything was sent is what matters most to whoever handles it: see
/// [`was_sent`](Self::was_sent).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was sent, because it would not have made sense.
    Refused(Refusal),
    /// It was sent, and there was no answer in time.
    TimedOut,
    /// The service that was called has failed, or the connection to it.
    Service(BoxError),
    /// The answer is longer than whoever collects it is willing to hold, in bytes.
    TooLong(usize),
}

impl Error {
    /// Whether something may have been done: `false` if it is certain that nothing was sent by the last try.
    pub const fn was_sent(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    /// When it makes sense to ask again, if something is known about that.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(Refusal::BreakerOpen { retry_after }) => Some(*retry_after),
            _ => None,
        }
    }
}

/// Why a call is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Nobody would have waited for the answer.
    Deadline,
    /// Of what was sent lately, too much was refused.
    Throttled,
    /// Nobody answers there.
    BreakerOpen {
        /// When the next probe may pass, spread over those who ask.
        retry_after: Duration,
    },
    /// As many are under way as may be, and as many wait.
    NoRoom,
    /// The wait for a place was as long as it may be.
    WaitTooLong,
}

impl Refusal {
    /// Its name in metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Throttled => "throttled",
            Self::BreakerOpen { .. } => "breaker_open",
            Self::NoRoom => "no_room",
            Self::WaitTooLong => "wait_too_long",
        }
    }
}

impl From<tidegate_engine::Declined> for Refusal {
    fn from(declined: tidegate_engine::Declined) -> Self {
        use tidegate_engine::Declined;
        match declined {
            Declined::Deadline => Self::Deadline,
            Declined::Throttled => Self::Throttled,
            Declined::BreakerOpen(refused) => Self::BreakerOpen { retry_after: refused.retry_after },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "not sent: {refusal}"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Service(error) => write!(f, "{error}"),
            Self::TooLong(most) => write!(f, "the answer is longer than {most} bytes"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Service(error) => Some(&**error),
            Self::Refused(_) | Self::TimedOut | Self::TooLong(_) => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadline => "its deadline has passed",
            Self::Throttled => "too much of what was sent lately was refused",
            Self::BreakerOpen { .. } => "nobody answers there",
            Self::NoRoom => "as many are under way, and as many wait, as may",
            Self::WaitTooLong => "the wait for a place was too long",
        })
    }
}
