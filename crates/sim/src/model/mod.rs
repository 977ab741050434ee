//! Models of the limiters of other products, to compare with. They are in the simulator alone.
//!
//! A model says a number, as the engine's own limits do, and the gate puts it in force as a fixed limit. So queue, slots
//! and orphans are the engine's under every limit, and what a table compares is the limiters and nothing else. Each has
//! the defaults that its product publishes, but for the maximum: one that is right for a small service says nothing about
//! how the limiter finds its way.
//!
//! CoDel is no limiter, and says who of those that come to the head of the queue is dropped: it is told of everybody who
//! gets a slot, and whoever it drops gives it back at once.

mod arc;
mod codel;
mod envoy;

use std::time::Duration;

use tidegate_engine::Timestamp;
use tidegate_workload::{Product, Random};

use crate::ending::Ending;
use arc::VectorArc;
use codel::Codel;
use envoy::EnvoyGradient;

/// No model goes higher.
const LIMIT_MAX: u32 = 4_000;

/// A limiter of another product, or a discipline of the queue.
#[derive(Debug)]
pub(crate) enum Model {
    Arc(VectorArc),
    Codel(Codel),
    Envoy(EnvoyGradient),
}

/// An exchange that has ended for whoever waited for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When it was sent to the service.
    pub(crate) sent: Timestamp,
    pub(crate) ending: Ending,
}

impl Sample {
    fn latency(self, now: Timestamp) -> Duration {
        now.since(self.sent)
    }
}

impl Model {
    /// As it is at the beginning. `random` is for those that jitter.
    pub(crate) fn new(product: Product, random: Random) -> Self {
        match product {
            Product::Arc => Self::Arc(VectorArc::new()),
            Product::Codel => Self::Codel(Codel::default()),
            Product::Envoy => Self::Envoy(EnvoyGradient::new(random)),
        }
    }

    /// The limit to be in force, at least 1; `None` for the policy's own.
    pub(crate) const fn limit(&self) -> Option<u32> {
        match self {
            Self::Arc(arc) => Some(arc.limit()),
            Self::Codel(_) => None,
            Self::Envoy(envoy) => Some(envoy.limit()),
        }
    }

    /// Somebody would get a slot after waiting for so long, while so many others wait. Says whether that one is dropped
    /// instead.
    pub(crate) fn drops(&mut self, now: Timestamp, waited: Duration, waiting: u32) -> bool {
        match self {
            Self::Codel(codel) => codel.drops(now, waited, waiting > 0),
            Self::Arc(_) | Self::Envoy(_) => false,
        }
    }

    /// One more has been sent: so many are in flight now.
    pub(crate) fn sent(&mut self, in_flight: u32) {
        match self {
            Self::Arc(arc) => arc.sent(in_flight),
            Self::Codel(_) | Self::Envoy(_) => {}
        }
    }

    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Sample) {
        match self {
            Self::Arc(arc) => arc.on_sample(now, sample),
            Self::Codel(_) => {}
            Self::Envoy(envoy) => envoy.on_sample(now, sample),
        }
    }

    /// When it has to be woken, if it ever has to.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        match self {
            Self::Arc(_) | Self::Codel(_) => None,
            Self::Envoy(envoy) => Some(envoy.next_wake()),
        }
    }

    /// Time has passed. Being woken early does no harm.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        match self {
            Self::Arc(_) | Self::Codel(_) => {}
            Self::Envoy(envoy) => envoy.wake(now),
        }
    }
}
