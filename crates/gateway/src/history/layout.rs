//! The names of the numbers of a sample, and the tape on which a sample is written: whoever writes says name and number
//! together, and names are taken down once for each policy.

use std::sync::Arc;

/// The names of the numbers of a sample, as a tree: what belongs together has the same beginning and stands together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    leaves: Vec<Leaf>,
}

#[derive(Debug, PartialEq, Eq)]
struct Leaf {
    path: Box<[Arc<str>]>,
    /// Of what is a word and no number, the closed list in which the number is its place.
    words: &'static [&'static str],
}

impl Layout {
    pub(crate) fn len(&self) -> usize {
        self.leaves.len()
    }

    /// The path of each number, from the outermost name to its own.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[Arc<str>]> {
        self.leaves.iter().map(|leaf| &*leaf.path)
    }

    /// The word that this number stands for, if it stands for one.
    pub(crate) fn word(&self, leaf: usize, value: f32) -> Option<&'static str> {
        // What is no number is the first of the list to a cast.
        if value.is_nan() { None } else { self.leaves.get(leaf)?.words.get(value as usize).copied() }
    }
}

/// Names that are being taken down.
#[derive(Debug, Default)]
struct Names {
    /// The groups that are open.
    path: Vec<Arc<str>>,
    leaves: Vec<Leaf>,
}

/// A sample that is being written.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    /// `None` if they are known already.
    names: Option<Names>,
    values: Vec<f32>,
    /// What the counters said last time, in the order in which they are asked for.
    before: Vec<u64>,
    asked: usize,
    /// Counters are only taken down, since nobody knows what they were.
    first: bool,
    seconds: f64,
}

impl Tape {
    /// One that takes down names, and what counters begin with.
    pub(crate) fn naming() -> Self {
        Self { names: Some(Default::default()), first: true, ..Self::default() }
    }

    /// The names that have been taken down.
    pub(crate) fn layout(&mut self) -> Layout {
        Layout { leaves: self.names.take().map(|names| names.leaves).unwrap_or_default() }
    }

    /// From the start of the gateway all counters are at zero, and what they count in the first second is not lost.
    pub(crate) fn begin_at_zero(&mut self) {
        self.before.fill(0);
    }

    /// Begins a sample of so many seconds.
    pub(crate) fn begin(&mut self, seconds: f64) {
        self.values.clear();
        self.asked = 0;
        self.first = false;
        self.seconds = seconds.max(1e-3);
    }

    /// The numbers since [`begin`](Self::begin).
    pub(crate) fn values(&self) -> Box<[f32]> {
        self.values.as_slice().into()
    }

    /// What is written meanwhile is under this name.
    pub(crate) fn group(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        if let Some(names) = &mut self.names {
            names.path.push(name.into());
        }
        write(self);
        if let Some(names) = &mut self.names {
            names.path.pop();
        }
    }

    /// A number as it is now. What is no number is not known.
    pub(crate) fn gauge(&mut self, name: &str, value: impl Into<f64>) {
        self.leaf(name, &[], value.into());
    }

    /// A word of a closed list, by its place in it; none if that is not known.
    pub(crate) fn word(&mut self, name: &str, words: &'static [&'static str], place: Option<usize>) {
        self.leaf(name, words, place.map_or(f64::NAN, |place| place as f64));
    }

    fn leaf(&mut self, name: &str, words: &'static [&'static str], value: f64) {
        if let Some(names) = &mut self.names {
            let path = names.path.iter().cloned().chain([Arc::from(name)]).collect();
            names.leaves.push(Leaf { path, words });
        }
        self.values.push(value as f32);
    }

    /// The same, of what may not be known.
    pub(crate) fn perhaps(&mut self, name: &str, value: Option<f64>) {
        self.gauge(name, value.unwrap_or(f64::NAN));
    }

    /// How fast a counter has grown since the sample before, for each second; gives that.
    pub(crate) fn rate(&mut self, name: &str, total: u64) -> f64 {
        let grown = self.grown(total);
        let rate = self.per_second(grown);
        self.gauge(name, rate);
        rate
    }

    /// Only names are taken down, and nothing is counted yet.
    pub(crate) const fn is_naming(&self) -> bool {
        self.first
    }

    /// By how much a counter has grown since the sample before, without a name of its own.
    pub(crate) fn grown(&mut self, total: u64) -> u64 {
        if self.first {
            self.before.push(total);
            return 0;
        }
        // A counter that was forgotten and begins anew has not grown.
        let grown = self.before.get_mut(self.asked).map_or(0, |before| {
            let grown = total.saturating_sub(*before);
            *before = total;
            grown
        });
        self.asked += 1;
        grown
    }

    /// What was counted in so many seconds, for each of them.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_down_once_and_rates_are_of_the_time_between() {
        let write = |tape: &mut Tape, total: u64| {
            tape.group("a", |tape| {
                tape.rate("served", total);
                tape.group("queue", |tape| tape.gauge("now", 3_u32));
            });
            tape.perhaps("unknown", None);
        };
        let mut tape = Tape::naming();
        write(&mut tape, 5);
        let layout = tape.layout();
        let paths: Vec<String> = layout.paths().map(|path| path.join(".")).collect();
        assert_eq!(paths, ["a.served", "a.queue.now", "unknown"]);
        tape.begin(2.0);
        write(&mut tape, 11);
        assert_eq!(tape.values()[..2], [3.0, 3.0]);
        assert!(tape.values()[2].is_nan());
        tape.begin(1.0);
        write(&mut tape, 4);
        assert_eq!(tape.values()[0], 0.0, "it began anew");
        assert_eq!(tape.values().len(), layout.len());
    }
}
