//! Finds the knee: the highest rate at which a goal is met, in as few steps as that takes.
//!
//! It doubles the rate as long as the goal is met, and halves the gap between what was met and what was not. It sends
//! nothing: whoever asks it for a rate plays that, and says what came of it.

use tidegate_workload::Probe;

/// The rates that it may still be.
#[derive(Clone, Debug)]
pub struct Knee {
    /// The highest at which the goal was met.
    met: Option<f64>,
    /// The lowest at which it was not.
    missed: Option<f64>,
    least: f64,
    most: f64,
    /// It is found when the two are as near to each other as this share of the higher one.
    precision: f64,
    probes_max: usize,
    probes: Vec<Probe>,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The knee is between these two rates.
    Between(f64, f64),
    /// The goal is met at the highest rate that was to be tried.
    Above(f64),
    /// It is not met at the lowest.
    Below(f64),
    /// The generator could not send more than this, and the goal was met up to there; `None` if nowhere.
    Generator(Option<f64>),
}

impl Knee {
    /// Looks between these two rates, with at most so many probes.
    pub fn new(least: f64, most: f64, precision: f64, probes_max: usize) -> Self {
        let least = least.max(1e-3);
        Self {
            met: None,
            missed: None,
            least,
            most: most.max(least),
            precision: precision.clamp(1e-3, 0.5),
            probes_max: probes_max.max(1),
            probes: Vec::new(),
        }
    }

    /// The next rate to try; `None` if it is found, or as near as it gets.
    pub fn next_rate(&self) -> Option<f64> {
        let limited = self.probes.last().is_some_and(|probe| probe.limited);
        if self.probes.len() >= self.probes_max || limited {
            return None;
        }
        match (self.met, self.missed) {
            (None, None) => Some(self.least),
            // Not even the lowest.
            (None, Some(_)) => None,
            (Some(met), None) if met >= self.most => None,
            (Some(met), None) => Some((met * 2.0).min(self.most)),
            (Some(met), Some(missed)) if missed - met <= self.precision * missed => None,
            (Some(met), Some(missed)) => Some(f64::midpoint(met, missed)),
        }
    }

    /// This is what came of it.
    pub fn tried(&mut self, probe: Probe) {
        self.probes.push(probe);
        if probe.limited {
            return;
        }
        let bound = if probe.met { &mut self.met } else { &mut self.missed };
        *bound = Some(probe.rate);
    }

    /// What was tried, in the order of rates.
    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = self.probes.clone();
        probes.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        probes
    }

    /// What was found.
    pub fn verdict(&self) -> Verdict {
        if self.probes.last().is_some_and(|probe| probe.limited) {
            return Verdict::Generator(self.met);
        }
        match (self.met, self.missed) {
            (Some(met), Some(missed)) => Verdict::Between(met, missed),
            (Some(met), None) => Verdict::Above(met),
            (None, _) => Verdict::Below(self.missed.unwrap_or(self.least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn probe(rate: f64, met: bool) -> Probe {
        let zero = Duration::ZERO;
        Probe { rate, goodput: rate, share: 1.0, p50: zero, p99: zero, lag_p99: zero, met, limited: false }
    }

    /// Plays against a service that can do so much.
    fn search(capacity: f64, mut knee: Knee) -> (Knee, Vec<u64>) {
        let mut tried = Vec::new();
        while let Some(rate) = knee.next_rate() {
            tried.push(rate as u64);
            knee.tried(probe(rate, rate <= capacity));
            assert!(tried.len() < 100, "{tried:?}");
        }
        (knee, tried)
    }

    #[test]
    fn it_doubles_and_then_halves_the_gap() {
        let (knee, tried) = search(1_000.0, Knee::new(100.0, 100_000.0, 0.05, 20));
        assert_eq!(tried, [100, 200, 400, 800, 1_600, 1_200, 1_000, 1_100, 1_050]);
        assert_eq!(knee.verdict(), Verdict::Between(1_000.0, 1_050.0));
        let rates: Vec<_> = knee.probes().iter().map(|probe| probe.rate as u64).collect();
        assert!(rates.is_sorted() && rates.len() == 9, "{rates:?}");
    }

    #[test]
    fn where_there_is_no_knee() {
        let (knee, tried) = search(f64::INFINITY, Knee::new(100.0, 300.0, 0.05, 20));
        assert_eq!((tried, knee.verdict()), (vec![100, 200, 300], Verdict::Above(300.0)));
        let (knee, tried) = search(50.0, Knee::new(100.0, 300.0, 0.05, 20));
        assert_eq!((tried, knee.verdict()), (vec![100], Verdict::Below(100.0)));
    }

    #[test]
    fn the_generator_may_be_the_limit_and_probes_are_bounded() {
        let mut knee = Knee::new(100.0, 10_000.0, 0.05, 20);
        knee.tried(probe(100.0, true));
        knee.tried(Probe { limited: true, ..probe(200.0, true) });
        assert_eq!((knee.next_rate(), knee.verdict()), (None, Verdict::Generator(Some(100.0))));
        let (knee, tried) = search(1_000.0, Knee::new(100.0, 100_000.0, 0.001, 6));
        assert_eq!((tried.len(), knee.next_rate()), (6, None));
    }
}
