//! A bar that says how far the log is read, for a person who waits longer than a moment.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::source::Source;
use crate::clock;

/// The clock is looked at once in so many requests.
const EVERY: u32 = 1_024;
/// What takes less than this needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far it is. The log is read twice.
pub(crate) struct Progress<'a> {
    source: &'a Source,
    bar: ProgressBar,
    began: Instant,
    count: u32,
    is_shown: bool,
}

impl<'a> Progress<'a> {
    /// Nothing is read yet, and nothing is shown.
    pub(crate) fn new(source: &'a Source) -> Self {
        let bar = ProgressBar::with_draw_target(Some(source.length * 2), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent} % of both readings, {eta} left") {
            bar.set_style(style);
        }
        // Without a terminal it is never shown.
        let is_shown = !io::stderr().is_terminal();
        Self { source, bar, began: clock::now(), count: 0, is_shown }
    }

    /// A request is done with.
    pub(crate) fn step(&mut self) {
        self.count = self.count.wrapping_add(1);
        if !self.count.is_multiple_of(EVERY) {
            return;
        }
        if !self.is_shown && self.began.elapsed() > PATIENCE {
            self.is_shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(self.source.read());
    }

    /// It is over, and the line is free for other words.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
