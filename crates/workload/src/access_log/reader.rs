//! The loop over a log: lines in, entries out, everything else counted.
//!
//! It does not know any format; that was settled by the first lines.

use std::collections::VecDeque;
use std::io::Read;

use super::detect::{self, OpenError, Recognised, SAMPLE_MAX};
use super::entry::Entry;
use super::fault::{Fault, Unreadable, What};
use super::filter::Filtered;
use super::layout::{self, Layout};
use super::lines::{Line, Lines, ReadError};
use super::options::Options;
use super::order::Order;

/// An access log that is being read: an iterator over its entries, in the order of arrival.
///
/// Look at [`failure`](Self::failure) when it has ended: a file may break off.
#[derive(Debug)]
pub struct AccessLog {
    lines: Lines,
    /// The first lines, which were read to find out the format and are not entries yet.
    sample: VecDeque<(u64, Line)>,
    layout: Layout,
    recognised: Recognised,
    options: Options,
    /// Whether the line that names the columns is still to come.
    header_ahead: bool,
    order: Order,
    tally: Tally,
    failure: Option<ReadError>,
    is_over: bool,
}

/// What became of the lines. When the log has been read to its end, `lines` is the sum of `entries`, `skipped`,
/// `unreadable` and all that was filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines that were read.
    pub lines: u64,
    /// Entries that were given out.
    pub entries: u64,
    /// Blank lines, comments and names of columns.
    pub skipped: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// The first of them, with their reasons.
    pub unreadable_first: Vec<Unreadable>,
    /// Entries that were not wanted.
    pub filtered: Filtered,
    /// Entries that came too late for the window. They were given the time of the one before them.
    pub late: u64,
}

impl AccessLog {
    /// Begins to read a log, compressed or not: looks at its first 200 lines and finds out what they are.
    ///
    /// # Errors
    ///
    /// If there is no line, if no known format fits half of them, or if the format that was said fits none.
    pub fn open(reader: impl Read + Send + 'static, options: Options) -> Result<Self, OpenError> {
        let options = Options {
            line_max: options.line_max.clamp(256, 16 * 1_024 * 1_024),
            unreadable_kept: options.unreadable_kept.min(1_000),
            ..options
        };
        let mut lines = Lines::new(reader, options.line_max).map_err(OpenError::Io)?;
        let mut sample = VecDeque::new();
        let mut failure = None;
        while sample.len() < SAMPLE_MAX {
            match lines.next_line() {
                Ok(Some(line)) => sample.push_back(line),
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let (layout, mut recognised) = match (detect::recognise(sample.make_contiguous(), &options), failure)
        {
            (Ok(known), error) => {
                failure = error;
                known
            }
            // That it broke off before its first entry explains more than that it is empty or strange.
            (Err(_), Some(error)) => return Err(OpenError::Read(error)),
            (Err(error), None) => return Err(error),
        };
        recognised.compressed = lines.is_compressed;
        let order = Order::new(options.spread, options.window);
        let header_ahead = layout.has_header();
        let tally = Tally::default();
        let is_over = false;
        Ok(Self { lines, sample, layout, recognised, options, header_ahead, order, tally, failure, is_over })
    }

    /// What the log was taken for.
    #[must_use]
    pub fn recognised(&self) -> &Recognised {
        &self.recognised
    }

    /// What became of the lines so far. The window holds entries back, so lines are ahead of entries until the end.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Why reading ended before the end of the file, if it did. All entries before that place are given out.
    #[must_use]
    pub fn failure(&self) -> Option<&ReadError> {
        self.failure.as_ref().filter(|_| self.sample.is_empty())
    }

    fn next_line(&mut self) -> Option<(u64, Line)> {
        if let Some(line) = self.sample.pop_front() {
            return Some(line);
        }
        if self.failure.is_some() {
            return None;
        }
        self.lines.next_line().unwrap_or_else(|error| {
            self.failure = Some(error);
            None
        })
    }

    fn read(&mut self, number: u64, line: &Line) {
        self.tally.lines += 1;
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong(bytes) => {
                let what = What::TooLong { bytes: *bytes, most: self.options.line_max };
                return self.give_up(number, "", &Fault::somewhere(what));
            }
        };
        if layout::is_empty(text) || std::mem::take(&mut self.header_ahead) {
            self.tally.skipped += 1;
            return;
        }
        match self.layout.read(number, text, &self.options.zone) {
            Ok(reading) => self.order.push(reading),
            Err(fault) => self.give_up(number, text, &fault),
        }
    }

    fn give_up(&mut self, number: u64, text: &str, fault: &Fault) {
        self.tally.unreadable += 1;
        if self.tally.unreadable_first.len() < self.options.unreadable_kept {
            self.tally.unreadable_first.push(Unreadable::new(number, text, fault));
        }
    }
}

impl Iterator for AccessLog {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            while let Some(entry) = self.order.pop() {
                self.tally.late = self.order.late;
                if self.options.filter.wants(&entry, &mut self.tally.filtered) {
                    self.tally.entries += 1;
                    return Some(entry);
                }
            }
            if self.is_over {
                return None;
            }
            match self.next_line() {
                Some((number, line)) => self.read(number, &line),
                None => {
                    self.is_over = true;
                    self.order.finish();
                }
            }
        }
    }
}
