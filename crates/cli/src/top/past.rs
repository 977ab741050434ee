//! What an upstream did in the last minutes, for the lines of the view. Bounded in length and in names.

use std::collections::{BTreeMap, VecDeque};

use super::sample::{Sample, Upstream, by_reason};

/// As wide as a line can be drawn.
const SECONDS_MAX: usize = 240;
/// So many upstreams are remembered; a policy has at most as many.
const UPSTREAMS_MAX: usize = 256;

/// One second of an upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct Second {
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) reasons: BTreeMap<String, f64>,
}

#[derive(Debug, Default)]
pub(super) struct Past(BTreeMap<String, VecDeque<Second>>);

impl Past {
    /// Another second. What is no longer there is forgotten.
    pub(super) fn add(&mut self, sample: &Sample) {
        self.0.retain(|name, _| sample.upstreams.iter().any(|one| one.name == *name));
        for upstream in sample.upstreams.iter().take(UPSTREAMS_MAX) {
            let seconds = self.0.entry(upstream.name.clone()).or_default();
            if seconds.len() == SECONDS_MAX {
                seconds.pop_front();
            }
            seconds.push_back(Second::of(upstream));
        }
    }

    /// A number of each of the last seconds, the oldest first.
    pub(super) fn line(&self, upstream: &str, seconds: usize, number: impl Fn(&Second) -> f64) -> Vec<f64> {
        let all = self.0.get(upstream).map(|all| all.iter().skip(all.len().saturating_sub(seconds)));
        all.into_iter().flatten().map(number).collect()
    }

    /// The reasons for which anything was refused in these seconds, the commonest first.
    pub(super) fn reasons(&self, upstream: &str) -> Vec<String> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (reason, count) in self.0.get(upstream).into_iter().flatten().flat_map(|second| &second.reasons) {
            *sums.entry(reason).or_default() += count;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
        sums.into_iter().map(|(reason, _)| reason.to_owned()).collect()
    }
}

impl Second {
    fn of(upstream: &Upstream) -> Self {
        Self {
            arrivals: upstream.arrivals,
            goodput: upstream.goodput,
            refused: upstream.refused,
            reasons: by_reason(upstream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_forgets_who_has_gone() {
        let sample = |name: &str, arrivals: f64| Sample {
            upstreams: vec![Upstream { name: name.into(), arrivals, ..Upstream::default() }],
            ..Sample::default()
        };
        let mut past = Past::default();
        for second in 0..1_000 {
            past.add(&sample("a", f64::from(second)));
        }
        assert_eq!(past.line("a", 3, |second| second.arrivals), [997.0, 998.0, 999.0]);
        assert_eq!(past.line("a", usize::MAX, |second| second.arrivals).len(), SECONDS_MAX);
        past.add(&sample("b", 1.0));
        assert!(past.line("a", 9, |second| second.arrivals).is_empty());
    }
}
