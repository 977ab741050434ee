//! From the log's requests to those that are offered: faster, or more or fewer of them.

use std::time::Duration;

use tidegate_sim::Recorded;
use tidegate_workload::{Purpose, Random};

/// The index of the stream of random numbers; those of the scenario's clients are the low ones.
const STREAM: usize = 1_000_000;

/// Makes several of one request, or none. The last one is held back, since copies are spread up to the next.
#[derive(Clone, Debug)]
pub(crate) struct Offers {
    scale: f64,
    random: Random,
    held: Option<Recorded>,
}

impl Offers {
    /// So many for each.
    pub(crate) fn new(scale: f64, seed: u64) -> Self {
        Self { scale, random: Random::stream(seed, Purpose::Arrivals, STREAM), held: None }
    }

    /// Takes the next request and appends what the one before it has become, in order.
    pub(crate) fn push(&mut self, request: Recorded, out: &mut Vec<Recorded>) {
        let until = request.at;
        if let Some(held) = self.held.replace(request) {
            self.multiply(held, until, out);
        }
    }

    /// Appends what the last one has become.
    pub(crate) fn finish(&mut self, out: &mut Vec<Recorded>) {
        if let Some(held) = self.held.take() {
            self.multiply(held, held.at, out);
        }
    }

    fn multiply(&mut self, request: Recorded, until: Duration, out: &mut Vec<Recorded>) {
        let whole = self.scale.floor();
        let rest = self.scale - whole;
        let copies = whole as usize + usize::from(rest > 0.0 && self.random.uniform() < rest);
        if copies == 0 {
            return;
        }
        // The request itself comes when it came; its copies come before whoever came next.
        out.push(request);
        let first_copy = out.len();
        let gap = until.saturating_sub(request.at);
        for _ in 1..copies {
            out.push(Recorded { at: request.at + gap.mul_f64(self.random.uniform()), ..request });
        }
        out[first_copy..].sort_by_key(|copy| copy.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(scale: f64, seed: u64) -> Vec<Duration> {
        let mut offers = Offers::new(scale, seed);
        let mut out = Vec::new();
        for second in 0..1_000 {
            let at = Duration::from_secs(second);
            offers.push(Recorded { at, kind: 0, work: None }, &mut out);
        }
        offers.finish(&mut out);
        out.iter().map(|request| request.at).collect()
    }

    #[test]
    fn copies_come_in_order_and_in_their_gaps() {
        assert_eq!(offered(1.0, 1), (0..1_000).map(Duration::from_secs).collect::<Vec<_>>());
        let twice = offered(2.0, 1);
        assert_eq!(twice.len(), 2_000);
        assert!(twice.is_sorted());
        assert!(
            twice.chunks(2).all(|pair| pair[0].subsec_nanos() == 0 && pair[0].as_secs() == pair[1].as_secs())
        );
        assert_ne!(twice, offered(2.0, 2), "another seed");
        assert_eq!(twice, offered(2.0, 1), "the same seed");
    }

    #[test]
    fn a_part_is_drawn() {
        for (scale, least, most) in [(0.3, 250, 350), (1.5, 1_450, 1_550)] {
            let count = offered(scale, 1).len();
            assert!((least..=most).contains(&count), "{scale}: {count}");
        }
    }
}
