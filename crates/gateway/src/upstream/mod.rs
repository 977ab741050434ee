//! The services protected: one gate each, a few endpoints, and connections that never wait.
//!
//! There is no queue in here. Whoever has a slot of the gate may open a connection, so the number of connections is
//! bounded by the limit and the idle ones kept, and every wait is in the gate's queue, where it is bounded, ordered
//! and measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tidegate_engine::{AdmissionPolicy, BreakerPolicy, Priority, Reason};
use tidegate_policy::{self as policy, PriorityClass};
use tidegate_tower::{Clock, Gate};

use crate::metrics::{Counter, UpstreamStats};

mod endpoint;
pub(crate) use endpoint::Endpoint;

mod choice;

mod health;
pub(crate) use health::watch;

mod retries;
pub(crate) use retries::{Decision, Retries};

mod connection;
mod hearing;
mod pool;
pub(crate) use pool::Pool;

mod upload;
pub(crate) use upload::RequestBody;

mod flight;
pub(crate) use flight::{AnswerBody, Flight, Slot};

mod exchange;
pub(crate) use exchange::send;

/// Requests that bypass the gate may have so many exchanges open at once, for each upstream. They are health checks;
/// a flood of them is not let through.
const EXEMPT_MAX: u32 = 256;

/// One service protected.
pub(crate) struct Upstream {
    pub(crate) policy: policy::Upstream,
    pub(crate) gate: Gate,
    pub(crate) stats: Arc<UpstreamStats>,
    pub(crate) retries: Arc<Retries>,
    /// For each class, how many were refused; the counters are those of `stats`.
    refused: Vec<Arc<Counter>>,
    /// In the order of the policy.
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    exempt: Arc<AtomicU32>,
    turn: AtomicU32,
}

impl Upstream {
    /// Makes an upstream of this policy. What the one of the same name before it has learned, holds and counts goes
    /// on.
    pub(crate) fn new(
        policy: policy::Upstream,
        admission: AdmissionPolicy,
        classes: &[PriorityClass],
        before: Option<&Self>,
        clock: Clock,
    ) -> Self {
        let gate = match before {
            Some(before) => {
                before.gate.reconfigure(admission);
                before.gate.clone()
            }
            None => Gate::with_clock(admission, clock),
        };
        let known = |address: &policy::Endpoint| {
            before.and_then(|before| before.endpoints.iter().find(|e| e.address == *address))
        };
        // Where there is none, nobody asks it.
        let breaker = policy.breaker.as_ref().map(|breaker| breaker.policy);
        let breaker = breaker.unwrap_or_else(|| BreakerPolicy::careful(policy.timeout));
        let endpoint = |address: &policy::Endpoint| match known(address) {
            Some(known) => {
                known.reconfigure(clock.now(), breaker);
                known.clone()
            }
            None => Arc::new(Endpoint::new(address.clone(), breaker)),
        };
        let stats = before.map(|before| before.stats.clone()).unwrap_or_default();
        Self {
            gate,
            endpoints: policy.endpoints.iter().map(endpoint).collect(),
            retries: before.map(|before| before.retries.clone()).unwrap_or_default(),
            refused: classes.iter().map(|class| stats.refused_by_class.counter(&class.name)).collect(),
            stats,
            exempt: before.map(|before| before.exempt.clone()).unwrap_or_default(),
            turn: AtomicU32::new(0),
            policy,
        }
    }

    /// A request of this class did not get an answer from upstream.
    pub(crate) fn count_refusal(&self, reason: Reason, class: Priority) {
        self.stats.rejected[reason as usize].add(1);
        if reason != Reason::ClientLeft
            && let Some(counter) = self.refused.get(usize::from(class.0))
        {
            counter.add(1);
        }
    }

    /// A place for a request that bypasses the gate.
    pub(crate) fn exempt(&self) -> Option<ExemptPlace> {
        let place = ExemptPlace(self.exempt.clone());
        // The place gives back what is added here, also if there were too many.
        (self.exempt.fetch_add(1, Relaxed) < EXEMPT_MAX).then_some(place)
    }
}

/// One exchange that bypasses the gate.
pub(crate) struct ExemptPlace(Arc<AtomicU32>);

impl Drop for ExemptPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
