//! When requests are sent: a rate that changes over time, and the moments drawn from it.
//!
//! The plan does not know what becomes of a request. That is what makes the load open: whoever comes, comes, however the
//! others fare. It is also drawn from a seed, so that everybody who is compared meets the same traffic.

use std::time::Duration;

/// So many requests a second for so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// Requests a second.
    pub(crate) rate: f64,
    /// How long.
    pub(crate) length: Duration,
}

/// How the moments lie within a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// All the same distance apart.
    Even,
    /// As many independent clients come: a Poisson process.
    Poisson {
        /// The same seed gives the same moments.
        seed: u64,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// One after the other.
    pub(crate) stretches: Vec<Stretch>,
    /// How the moments lie.
    pub(crate) spacing: Spacing,
}

impl Plan {
    /// The moments, from the beginning on, in order.
    pub(crate) fn moments(&self) -> Moments<'_> {
        Moments {
            stretches: &self.stretches,
            begins: Duration::ZERO,
            used: 0.0,
            gaps: Gaps::new(self.spacing),
        }
    }
}

/// Walks through the stretches. A process of rate one is stretched in time, so a change of the rate is exact also in the
/// middle of a gap: what of the gap is left passes at the new rate.
#[derive(Debug)]
pub(crate) struct Moments<'a> {
    stretches: &'a [Stretch],
    /// When the first of `stretches` begins.
    begins: Duration,
    /// How many requests, as a real number, were expected in it up to the last moment.
    used: f64,
    gaps: Gaps,
}

impl Iterator for Moments<'_> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let mut target = self.used + self.gaps.next_gap();
        while let Some(stretch) = self.stretches.first() {
            let expected = stretch.rate * stretch.length.as_secs_f64();
            if target < expected {
                self.used = target;
                return Some(self.begins + Duration::from_secs_f64(target / stretch.rate));
            }
            target -= expected;
            self.begins += stretch.length;
            self.stretches = &self.stretches[1..];
        }
        None
    }
}

/// Gaps of mean one.
#[derive(Debug)]
enum Gaps {
    Even,
    Random(SplitMix),
}

impl Gaps {
    const fn new(spacing: Spacing) -> Self {
        match spacing {
            Spacing::Even => Self::Even,
            Spacing::Poisson { seed } => Self::Random(SplitMix(seed)),
        }
    }

    fn next_gap(&mut self) -> f64 {
        match self {
            Self::Even => 1.0,
            Self::Random(random) => -(1.0 - random.unit()).ln(),
        }
    }
}

/// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014. Enough for gaps.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// From 0 up to, but not including, 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(spacing: Spacing, stretches: &[(f64, u64)]) -> Plan {
        let stretch = |&(rate, millis)| Stretch { rate, length: Duration::from_millis(millis) };
        Plan { stretches: stretches.iter().map(stretch).collect(), spacing }
    }

    #[test]
    fn even_moments_follow_the_rate() {
        let moments: Vec<_> = plan(Spacing::Even, &[(100.0, 40), (0.0, 500), (10.0, 250)])
            .moments()
            .map(|at| at.as_millis())
            .collect();
        // The gap that is open at 30 ms is used up by 40 ms; nothing comes for half a second.
        assert_eq!(moments, [10, 20, 30, 540, 640, 740]);
    }

    #[test]
    fn a_change_of_the_rate_counts_in_the_middle_of_a_gap() {
        // Half of the gap passes in 500 ms at one a second, the other half in 50 ms at ten a second.
        let first = plan(Spacing::Even, &[(1.0, 500), (10.0, 1000)]).moments().next().unwrap();
        assert_eq!(first.as_millis(), 550);
    }

    #[test]
    fn random_moments_have_the_mean_and_the_spread_of_a_poisson_process() {
        let plan = plan(Spacing::Poisson { seed: 7 }, &[(1000.0, 60_000)]);
        let moments: Vec<_> = plan.moments().map(|at| at.as_secs_f64()).collect();
        // 60,000 expected, three standard deviations of 245 either way.
        assert!((59_265..=60_735).contains(&moments.len()), "{}", moments.len());
        let gaps: Vec<_> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The gaps of a Poisson process vary as much as they are long; even ones would give 0.
        assert!((0.97..1.03).contains(&(variance.sqrt() / mean)), "{}", variance.sqrt() / mean);
    }

    #[test]
    fn a_seed_names_the_traffic() {
        let moments = |seed| plan(Spacing::Poisson { seed }, &[(50.0, 1000)]).moments().collect::<Vec<_>>();
        assert_eq!(moments(1), moments(1));
        assert_ne!(moments(1), moments(2));
    }
}
