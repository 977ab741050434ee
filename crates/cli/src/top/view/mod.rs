//! What is shown, and what keys change about that. A frame is a function of it and of the size of the screen.

mod detail;
mod help;
mod list;

use std::net::SocketAddr;

use super::follow::News;
use super::frame::{Frame, Line, Tone};
use super::past::Past;
use super::sample::{RefusedKey, Sample, Upstream};
use super::terminal::Key;
use super::verdict::verdict;
use super::words::{count, cut, name, time_of_day};

/// The smallest screen that anything is drawn on.
const SMALLEST: (u16, u16) = (60, 10);
/// The most upstreams that are listed at once; the list follows the one that is chosen.
const LISTED_MAX: usize = 6;

pub(super) struct View {
    admin: SocketAddr,
    newest: Option<Sample>,
    past: Past,
    refused: Vec<RefusedKey>,
    /// Why there is nothing new.
    lost: Option<String>,
    /// The name of the upstream that is looked at; the first, if it is not there.
    chosen: String,
    paused: bool,
    helps: bool,
}

impl View {
    pub(super) fn new(admin: SocketAddr) -> Self {
        Self {
            admin,
            newest: None,
            past: Past::default(),
            refused: Vec::new(),
            lost: None,
            chosen: String::new(),
            paused: false,
            helps: false,
        }
    }

    /// While it is paused, what is shown stays, and what comes is passed over.
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Sample(sample, _) => {
                self.lost = None;
                if !self.paused {
                    self.past.add(&sample);
                    self.newest = Some(*sample);
                }
            }
            News::Refused(keys) if !self.paused => self.refused = keys,
            News::Refused(_) => {}
            News::Lost(why) => self.lost = Some(why),
        }
    }

    pub(super) fn press(&mut self, key: Key) {
        if self.helps {
            self.helps = false;
            return;
        }
        match key {
            Key::Next => self.choose(1),
            Key::Previous => self.choose(-1),
            Key::Pause => self.paused = !self.paused,
            Key::Help => self.helps = true,
            Key::Quit | Key::Other => {}
        }
    }

    fn choose(&mut self, step: isize) {
        let Some(sample) = &self.newest else { return };
        let all = sample.upstreams.len() as isize;
        if all > 0 {
            let next = (self.place(sample) as isize + step).rem_euclid(all);
            self.chosen.clone_from(&sample.upstreams[next as usize].name);
        }
    }

    /// Which upstream is looked at.
    fn place(&self, sample: &Sample) -> usize {
        sample.upstreams.iter().position(|one| one.name == self.chosen).unwrap_or(0)
    }

    pub(super) fn frame(&self, width: u16, height: u16) -> Frame {
        let mut frame = Frame::new(width, height);
        if width < SMALLEST.0 || height < SMALLEST.1 {
            frame.add(Line::of(Tone::Plain, format!("{} by {} is too small", SMALLEST.0, SMALLEST.1)));
            return frame;
        }
        self.body(&mut frame);
        frame.foot(self.foot());
        frame
    }

    /// As plain text, without the line about keys.
    pub(super) fn page(&self, width: u16, height: u16) -> String {
        let mut frame = Frame::new(width, height);
        self.body(&mut frame);
        frame.plain()
    }

    fn body(&self, frame: &mut Frame) {
        frame.add(self.head());
        if self.helps {
            return help::draw(frame);
        }
        let Some(sample) = &self.newest else {
            let why = self.lost.as_deref().unwrap_or("waiting for the first sample");
            return frame.add(Line::of(Tone::Warn, name(why)));
        };
        let Some(upstream) = sample.upstreams.get(self.place(sample)) else {
            return frame.add(Line::of(Tone::Warn, "there is no upstream"));
        };
        frame.add(self.verdict(sample, upstream, frame.width()));
        list::draw(frame, sample, &upstream.name, LISTED_MAX);
        detail::draw(frame, upstream, &self.past, &self.refused);
    }

    fn head(&self) -> Line {
        let line = Line::of(Tone::Bold, "tidegate top  ").then(Tone::Plain, self.admin.to_string());
        let Some(sample) = &self.newest else { return line };
        let (clients, upstreams) = (count(sample.client_connections), count(sample.upstream_connections));
        let connections = format!("  connections {clients} in, {upstreams} out");
        let line = line.then(Tone::Dim, format!("  {}{connections}", time_of_day(sample.at)));
        if sample.unrouted > 0.0 {
            return line.then(Tone::Warn, format!("  {}/s without a route", count(sample.unrouted)));
        }
        line
    }

    /// That the instance is gone goes before how it was.
    fn verdict(&self, sample: &Sample, upstream: &Upstream, width: usize) -> Line {
        if let Some(why) = &self.lost {
            return Line::of(Tone::Bad, cut(&format!("GONE, trying again: {}", name(why)), width));
        }
        let (tone, what) = verdict(sample, upstream);
        Line::of(tone, cut(&format!("{}: {what}", name(&upstream.name)), width))
    }

    fn foot(&self) -> Line {
        let line = if self.paused { Line::of(Tone::Warn, "PAUSED  ") } else { Line::default() };
        line.then(Tone::Dim, "q quit  u next upstream  p pause  ? help")
    }
}

#[cfg(test)]
mod tests;
