//! The last fifteen minutes, one sample a second, in bounded memory: for the dashboard, for `tidegate top`, and for whoever
//! wants to know what has just happened without having set up anything to record it.
//!
//! It is no time-series database: it forgets, it does not survive a restart, and it has one resolution.
//! A sample is a row of numbers whose names are in a [`Layout`] that all samples of a policy share, so that a number takes
//! four bytes and its name nothing.

mod layout;
pub(crate) use layout::{Layout, Tape};

mod json;
pub(crate) use json::{columns, row};

mod arrivals;
pub(crate) use arrivals::{Arrivals, Came, Worked};

mod window;

mod verdict;

mod sampler;
pub(crate) use sampler::{LOOKS, Sampler};

use std::collections::VecDeque;
use std::sync::Arc;

/// So many seconds are kept.
pub(crate) const SECONDS_MAX: usize = 900;
/// All numbers together take at most so many bytes: with so many upstreams and routes that fifteen minutes of them would
/// take more, fewer minutes are kept.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Samples of at most so many layouts are kept. Each reload that changes names makes another.
const LAYOUTS_MAX: usize = 4;

/// How things stood in one second.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Counts from the start of the gateway; no number is left out.
    pub(crate) id: u64,
    /// When it was taken, in milliseconds since 1970.
    pub(crate) at_millis: i64,
    /// How long after the one before. Rates are of this time.
    pub(crate) seconds: f32,
    pub(crate) layout: Arc<Layout>,
    /// In the order of the layout; what is not known is not a number.
    pub(crate) values: Box<[f32]>,
}

impl Sample {
    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.values)
    }
}

/// The samples, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    bytes: usize,
}

impl History {
    pub(crate) fn push(&mut self, sample: Sample) {
        self.bytes += sample.bytes();
        self.samples.push_back(sample);
        while self.samples.len() > SECONDS_MAX || self.bytes > BYTES_MAX || self.layouts() > LAYOUTS_MAX {
            let Some(oldest) = self.samples.pop_front() else { return };
            self.bytes -= oldest.bytes();
        }
    }

    /// The last so many samples, the oldest first.
    pub(crate) fn last(&self, seconds: usize) -> impl ExactSizeIterator<Item = &Sample> + Clone {
        self.samples.range(self.samples.len().saturating_sub(seconds)..)
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    fn layouts(&self) -> usize {
        let mut samples = self.samples.iter();
        let Some(first) = samples.next() else { return 0 };
        let changes = samples.scan(&first.layout, |before, sample| {
            let changed = !Arc::ptr_eq(before, &sample.layout);
            *before = &sample.layout;
            Some(usize::from(changed))
        });
        1 + changes.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(leaves: usize) -> Arc<Layout> {
        let mut tape = Tape::naming();
        for leaf in 0..leaves {
            tape.gauge(&format!("leaf{leaf}"), 0.0);
        }
        Arc::new(tape.layout())
    }

    fn sample(id: u64, layout: &Arc<Layout>) -> Sample {
        let values = vec![id as f32; layout.len()].into();
        Sample { id, at_millis: 0, seconds: 1.0, layout: layout.clone(), values }
    }

    #[test]
    fn fifteen_minutes_are_kept_and_no_second_more() {
        let (mut history, layout) = (History::default(), layout(100));
        for id in 0..2_000 {
            history.push(sample(id, &layout));
        }
        assert_eq!(history.len(), SECONDS_MAX);
        assert_eq!(history.last(usize::MAX).next().unwrap().id, 2_000 - SECONDS_MAX as u64);
        assert_eq!(history.last(10).len(), 10);
    }

    /// As many upstreams and routes as a policy can have: the bound is on bytes, and time gives way.
    #[test]
    fn a_huge_policy_has_a_shorter_history_and_no_larger_one() {
        let (mut history, layout) = (History::default(), layout(40_000));
        for id in 0..500 {
            history.push(sample(id, &layout));
        }
        let bytes: usize = history.samples.iter().map(Sample::bytes).sum();
        assert_eq!(bytes, history.bytes);
        assert!(bytes <= BYTES_MAX && bytes > BYTES_MAX / 2, "{bytes}");
        assert!((60..SECONDS_MAX).contains(&history.len()), "{}", history.len());
    }

    /// C6: a policy can be reloaded for ever, each time with other names.
    #[test]
    fn names_of_a_few_policies_are_kept() {
        let mut history = History::default();
        for id in 0..100 {
            history.push(sample(id, &layout(10)));
        }
        assert_eq!(history.len(), LAYOUTS_MAX);
    }
}
