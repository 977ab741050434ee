//! What the two sides tell each other besides items: why something was refused, and how a subscription ended.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a subscription ended before its publisher was done. Told once, as the last signal.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The publisher has failed, and said why. Comes after everything that was submitted before.
    Failed(Arc<dyn Error + Send + Sync>),
    /// Every handle of the publisher was dropped, and none had said that it was done: a producer that vanishes has not
    /// finished. Comes after everything that was submitted before.
    Abandoned,
    /// The subscriber asked for nothing at all: `request(0)` is a mistake in its arithmetic (rule 3.9). Comes at once.
    AskedForNothing,
    /// It kept a producer waiting for longer than the policy allows, and was cut off. Comes at once.
    TooSlow {
        /// How many items it had in its buffer and does not get.
        missed: u64,
    },
    /// The publisher has as many subscribers as it may have, so there was no place for this one.
    NoPlace,
}

impl Failure {
    pub(crate) fn of(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::Failed(Arc::from(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the publisher failed: {error}"),
            Self::Abandoned => f.write_str("the publisher was dropped before it was done"),
            Self::AskedForNothing => f.write_str("request(0): a subscriber has to ask for at least one item"),
            Self::TooSlow { missed } => write!(f, "too slow: cut off with {missed} items in the buffer"),
            Self::NoPlace => f.write_str("the publisher has as many subscribers as it may have"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}

/// Why an item was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No room now, or others wait for it already.
    Full,
    /// Alone it is heavier than a buffer may be: it will never be taken.
    TooLarge,
    /// Nobody is subscribed, or everybody who was has left meanwhile.
    NoSubscriber,
    /// The publisher is done or has failed.
    Closed,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "no room",
            Self::TooLarge => "heavier than the buffer may be",
            Self::NoSubscriber => "nobody is subscribed",
            Self::Closed => "the publisher is closed",
        })
    }
}

/// An item that was not taken, given back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<T> {
    /// Why.
    pub why: Why,
    /// The item.
    pub item: T,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not taken: {}", self.why)
    }
}

impl<T> Error for Refused<T> {}
