//! Names of traces and spans: numbers that nobody else is likely to have, and that nobody can foresee.

use std::hash::{BuildHasher as _, RandomState};
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::TraceId;
use super::context::SpanId;

/// Numbers in order, each put through a keyed hash (SipHash) whose key comes from the system's own randomness. Nothing here
/// decides anything about a request but whether it is traced.
#[derive(Debug, Default)]
pub(super) struct Ids {
    keys: RandomState,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn trace(&self) -> TraceId {
        let (high, low) = (self.number(), self.number());
        // The low half is never zero, so that the whole is not.
        TraceId(NonZeroU128::from(low) | (u128::from(high.get()) << 64))
    }

    pub(super) fn span(&self) -> SpanId {
        SpanId(self.number())
    }

    fn number(&self) -> NonZeroU64 {
        let hash = self.keys.hash_one(self.next.fetch_add(1, Relaxed));
        NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN)
    }
}

/// Whether a trace of this name belongs to a share of all traces. Its low bits decide, which level 2 of the specification
/// wants to be random; so gateways with the same share take the same ones.
pub(super) fn is_within(trace: TraceId, share: f64) -> bool {
    // 53 bits fit into the number exactly.
    let part = (trace.0.get() as u64 >> 11) as f64 / (1_u64 << 53) as f64;
    part < share
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_the_same_and_a_share_is_a_share() {
        let ids = Ids::default();
        let traces: Vec<TraceId> = (0..10_000).map(|_| ids.trace()).collect();
        assert_eq!(traces.iter().map(|trace| trace.0).collect::<HashSet<_>>().len(), 10_000);
        let within = |share| traces.iter().filter(|trace| is_within(**trace, share)).count();
        assert_eq!((within(0.0), within(1.0)), (0, 10_000));
        // Five standard deviations.
        assert!((785..=1_215).contains(&within(0.1)), "{}", within(0.1));
    }
}
