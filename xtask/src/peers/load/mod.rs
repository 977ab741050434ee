//! The load generator: clients that come when they come, give up when they give up, and perhaps try again.
//!
//! Open loop: the plan says when a request is sent, whatever became of those before it, and latency counts from that
//! moment. One thread, one wait for all sockets, because it shares a core with the service that it is to overload. It
//! writes down how late it was itself, since a late generator measures itself and not the gateway.

mod answer;
mod connection;
mod poll;
mod sample;

use std::collections::VecDeque;
use std::iter::Peekable;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use slab::Slab;

use self::connection::{Connection, Progress};
use self::poll::{Interest, Poll, Seen};
pub(crate) use self::sample::{Ending, Sample};
use super::plan::{Moments, Plan};
use crate::clock;

/// How many connections there are at most. What would need another is not sent, and the report says so.
pub(crate) const CONNECTIONS_MAX: usize = 4_000;
/// How long a client waits before it tries again: next to nothing, which is the worst that clients do.
const PAUSE: Duration = Duration::from_micros(200);
/// The longest wait when there is nothing to wait for but sockets.
const WAIT_MAX: Duration = Duration::from_millis(100);
const BUFFER: usize = 16 * 1024;

/// Clients of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// What they ask for.
    pub(crate) path: &'static str,
    /// A header line without its end, such as `x-tenant: a`.
    pub(crate) header: Option<String>,
    /// When they come.
    pub(crate) plan: Plan,
}

/// How patient clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// How long they wait for an answer.
    pub(crate) timeout: Duration,
    /// How often they try again after a try that was not good.
    pub(crate) repetitions: u32,
}

/// Send what `streams` plan to `target`, counted from `began`, and wait until the last has ended. The samples are in the
/// order of the streams.
pub(crate) fn run(
    target: SocketAddr,
    streams: &[Stream],
    patience: Patience,
    began: Instant,
) -> Result<Vec<Vec<Sample>>> {
    let plans = streams.iter().map(|stream| stream.plan.moments().peekable()).collect();
    Generator::new(target, streams, patience, began)?.drive(plans)
}

/// One try that is to be sent or under way.
#[derive(Clone, Copy, Debug)]
struct Try {
    stream: usize,
    planned: Duration,
    lag: Duration,
    repetition: u32,
    /// Tells it from an earlier one on the same connection.
    serial: u64,
}

struct Slot {
    connection: Connection,
    under_way: Option<Try>,
}

struct Generator {
    target: SocketAddr,
    patience: Patience,
    began: Instant,
    poll: Poll,
    slots: Slab<Slot>,
    /// Keys of connections that nobody uses, the one used last at the end.
    idle: Vec<usize>,
    /// When clients give up, with the key and the serial number of what they wait for. All wait equally long and are
    /// sent in order, so the first to be put in is the first to be due, but for the generator's own lag.
    deadlines: VecDeque<(Duration, usize, u64)>,
    /// Tries that are to be repeated, in the order of their moments, since all wait equally long.
    repetitions: VecDeque<Try>,
    /// Ready to be sent, one a stream.
    requests: Vec<Arc<[u8]>>,
    samples: Vec<Vec<Sample>>,
    serial: u64,
    connections_max: usize,
    buffer: Box<[u8]>,
}

impl Generator {
    fn new(target: SocketAddr, streams: &[Stream], patience: Patience, began: Instant) -> Result<Self> {
        let request = |stream: &Stream| {
            let header = stream.header.iter().map(|line| format!("{line}\r\n")).collect::<String>();
            format!("GET {} HTTP/1.1\r\nhost: {target}\r\n{header}\r\n", stream.path).into_bytes().into()
        };
        Ok(Self {
            target,
            patience,
            began,
            poll: Poll::new()?,
            slots: Slab::new(),
            idle: Vec::new(),
            deadlines: VecDeque::new(),
            repetitions: VecDeque::new(),
            requests: streams.iter().map(request).collect(),
            samples: streams.iter().map(|_| Vec::new()).collect(),
            serial: 0,
            connections_max: CONNECTIONS_MAX,
            buffer: vec![0; BUFFER].into(),
        })
    }

    /// Until the plans are at their end and nothing is under way.
    fn drive(mut self, mut plans: Vec<Peekable<Moments<'_>>>) -> Result<Vec<Vec<Sample>>> {
        let mut seen = Vec::new();
        loop {
            let next = self.send_what_is_due(&mut plans)?;
            self.give_up_what_is_late()?;
            if next.is_none() && self.is_idle() {
                return Ok(self.samples);
            }
            let wake = [next, self.next_deadline()].into_iter().flatten().min();
            let longest = wake.map_or(WAIT_MAX, |at| at.saturating_sub(self.now()));
            self.poll.wait(longest, &mut seen)?;
            for seen in &seen {
                self.look_at(*seen)?;
            }
        }
    }

    fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.began)
    }

    fn is_idle(&self) -> bool {
        self.repetitions.is_empty() && self.idle.len() == self.slots.len()
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.front().map(|(at, ..)| *at)
    }

    /// Send all that is due by now, and say when the next is.
    fn send_what_is_due(&mut self, plans: &mut [Peekable<Moments<'_>>]) -> Result<Option<Duration>> {
        loop {
            let firsts = plans.iter_mut().enumerate();
            let first = firsts.filter_map(|(stream, plan)| Some((*plan.peek()?, stream))).min();
            let again = self.repetitions.front().map(|again| again.planned);
            let Some(due) = first.map(|(at, _)| at).into_iter().chain(again).min() else { return Ok(None) };
            if due > self.now() {
                return Ok(Some(due));
            }
            if again == Some(due) {
                if let Some(again) = self.repetitions.pop_front() {
                    self.send(again)?;
                }
            } else if let Some((planned, stream)) = first {
                plans[stream].next();
                self.send(Try { stream, planned, lag: Duration::ZERO, repetition: 0, serial: 0 })?;
            }
        }
    }

    fn send(&mut self, mut this: Try) -> Result<()> {
        self.serial += 1;
        this.serial = self.serial;
        this.lag = self.now().saturating_sub(this.planned);
        let request = self.requests[this.stream].clone();
        // A kept connection may have died unnoticed; then the next one is tried.
        while let Some(key) = self.idle.pop() {
            if self.slots[key].connection.send(&request).is_ok() {
                self.under_way(key, this);
                return Ok(());
            }
            self.slots.remove(key);
        }
        if self.slots.len() >= self.connections_max {
            self.write_down(this, Ending::Unsent);
            return Ok(());
        }
        let Ok(mut connection) = Connection::open(self.target) else {
            self.end(this, Ending::Failed);
            return Ok(());
        };
        match connection.send(&request) {
            Ok(waits) => {
                let interest = if waits { Interest::Connect } else { Interest::Answer };
                let entry = self.slots.vacant_entry();
                let key = entry.key();
                self.poll.add(connection.socket(), key, interest)?;
                entry.insert(Slot { connection, under_way: None });
                self.under_way(key, this);
            }
            Err(_) => self.end(this, Ending::Failed),
        }
        Ok(())
    }

    fn under_way(&mut self, key: usize, this: Try) {
        self.slots[key].under_way = Some(this);
        self.deadlines.push_back((this.planned + self.patience.timeout, key, this.serial));
    }

    fn give_up_what_is_late(&mut self) -> Result<()> {
        while let Some(&(at, key, serial)) = self.deadlines.front()
            && at <= self.now()
        {
            self.deadlines.pop_front();
            let late = self.slots.get(key).and_then(|slot| slot.under_way);
            if let Some(late) = late.filter(|late| late.serial == serial) {
                // Closes the connection, as a client does that gives up.
                self.slots.remove(key);
                self.end(late, Ending::GaveUp);
            }
        }
        Ok(())
    }

    fn look_at(&mut self, seen: Seen) -> Result<()> {
        // What was closed while this batch was looked at may still be in it.
        let Some(slot) = self.slots.get_mut(seen.key) else { return Ok(()) };
        if seen.writable {
            match slot.connection.writable() {
                Ok(true) => self.poll.change(slot.connection.socket(), seen.key, Interest::Answer)?,
                Ok(false) => {}
                Err(_) => return self.lost(seen.key, false),
            }
        }
        if !seen.readable {
            return Ok(());
        }
        match slot.connection.readable(&mut self.buffer) {
            Progress::Waits => Ok(()),
            Progress::Ended { silent } => {
                // A kept connection that its peer closed in the moment of its use: every client sends that again.
                let stale = silent && slot.connection.used_before;
                self.lost(seen.key, stale)
            }
            Progress::Answered(answer) => {
                let Some(this) = slot.under_way.take() else { return self.lost(seen.key, false) };
                if answer.keep {
                    slot.connection.used_before = true;
                    self.idle.push(seen.key);
                } else {
                    self.slots.remove(seen.key);
                }
                let ending = match answer.status {
                    200 => Ending::Good,
                    429 | 503 => Ending::Refused,
                    _ => Ending::Failed,
                };
                self.end(this, ending);
                Ok(())
            }
        }
    }

    /// The connection is of no use any more; whoever used it failed, or is sent again.
    fn lost(&mut self, key: usize, send_again: bool) -> Result<()> {
        let slot = self.slots.remove(key);
        match slot.under_way {
            Some(this) if send_again => self.send(this)?,
            Some(this) => self.end(this, Ending::Failed),
            None => self.idle.retain(|idle| *idle != key),
        }
        Ok(())
    }

    fn end(&mut self, this: Try, ending: Ending) {
        self.write_down(this, ending);
        if ending != Ending::Good && this.repetition < self.patience.repetitions {
            let planned = self.now() + PAUSE;
            self.repetitions.push_back(Try { planned, repetition: this.repetition + 1, ..this });
        }
    }

    fn write_down(&mut self, this: Try, ending: Ending) {
        let took = self.now().saturating_sub(this.planned);
        let Try { planned, lag, repetition, .. } = this;
        self.samples[this.stream].push(Sample { planned, lag, took, ending, repetition });
    }
}

#[cfg(test)]
mod tests;
