//! The driver: tells the play the time, sends what is due, and hands on what was heard. One thread, one runtime.
//!
//! What is due and has no connection waits in the one queue there is here. As far as that is for the generator's own bounds,
//! it is lag.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_workload::{Report, Scenario, WireError};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, yield_now};

use crate::clock::Clock;
use crate::pacer::Pacer;
use crate::play::{Do, Heard, Key, Order, Play, Snapshot};
use crate::request::{NoRequest, Requests};
use crate::settings::{Protocol, Settings};
use crate::target::BadTarget;
use crate::wire::{Event, Opened, Places, Shared, http1, http2};

/// How often somebody who watches is told how things stand.
const VIEW_EVERY: Duration = Duration::from_millis(250);
/// How many answers are looked at before what is due is sent.
const HEARD_AT_ONCE: usize = 256;
/// How many ended exchanges may wait to be looked at; more of them wait with their connections.
const EVENTS_MAX: usize = 4_096;
/// Descriptors that are not connections.
const DESCRIPTORS_RESERVED: usize = 64;
/// So many connections are being opened at once: what the shortest usual backlog holds. Of more, the kernel would drop some,
/// and they would come back a second later.
const OPENING_MAX: usize = 128;
/// Whoever is due sooner than this is sent together with who comes then. At thirty thousand a second, a wake-up for each would
/// cost as much as the sending; what this adds to the lag is in the report.
const WAIT_LEAST: Duration = Duration::from_micros(100);
/// What is later than this is sent without any wait.
const BEHIND: Duration = Duration::from_millis(1);
/// So often an attempt is silently sent again. Whoever closes one connection after the other as soon as it is used would be asked
/// without end.
const RESENT_MAX: u32 = 5;
/// How long the first connection of HTTP/2 may take before the play begins without it.
const FIRST_CONNECTION_MAX: Duration = Duration::from_secs(2);

/// Why nothing could be played.
#[derive(Debug)]
pub enum Failure {
    /// There is no such target.
    Target(BadTarget),
    /// The scenario asks for something that cannot be sent.
    Request(String),
    /// The system would not.
    System(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Request(error) => f.write_str(error),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for Failure {}

impl From<BadTarget> for Failure {
    fn from(error: BadTarget) -> Self {
        Self::Target(error)
    }
}

impl From<NoRequest> for Failure {
    fn from(error: NoRequest) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Plays a scenario once, in real time, and blocks until it is over. `name` is what the report is called; `watch` is told
/// how things stand four times a second, on this thread.
pub fn run(
    scenario: &Scenario,
    name: &str,
    settings: &Settings,
    watch: &mut dyn FnMut(&Snapshot),
) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut driver = Driver::new(scenario, name, settings)?;
        driver.open_first().await;
        driver.drive(watch).await
    })
}

/// See the module.
struct Driver<'a> {
    scenario: &'a Scenario,
    settings: &'a Settings,
    connections_max: usize,
    play: Play<'a>,
    shared: Arc<Shared>,
    events: mpsc::Receiver<Event>,
    #[expect(clippy::vec_box, reason = "they move in and out of tasks, and are large")]
    /// Connections of HTTP/1.1 that nobody uses, the one used last at the end.
    idle: Vec<Box<http1::Connection>>,
    /// Connections of HTTP/2.
    open: Vec<http2::Connection>,
    opening: usize,
    /// Due, and without a connection.
    waiting: VecDeque<Waiting>,
    full: Full,
    /// What is under way for each request, at the index of its key.
    flights: Vec<Option<Flight>>,
}

/// An attempt that waits for a connection: for one that is free again, or a new one, whichever comes first.
#[derive(Clone, Copy)]
struct Waiting {
    order: Order,
    /// How late it was already when it began to wait.
    lag: Duration,
    /// How long it was held back already.
    held: Duration,
    /// What [`Full`] said when it began to wait.
    full: Duration,
    /// How many connections were being closed when it came to them.
    resent: u32,
}

/// An attempt under way.
struct Flight {
    order: Order,
    /// When there was a connection for it.
    began: Duration,
    /// How late it was by then, and how much of that it was held back.
    lag: Duration,
    held: Duration,
    resent: u32,
    task: AbortHandle,
}

/// For how long altogether more have waited than connections were being opened for: then the generator's own bounds are what
/// some of them wait for. Whether that is so may change many times while one of them waits.
#[derive(Default)]
struct Full {
    since: Option<Duration>,
    before: Duration,
}

impl Flight {
    /// How late it was when its first byte was written.
    fn lag_at(&self, sent: Option<Duration>) -> Duration {
        let to_the_write = sent.map_or(Duration::ZERO, |sent| sent.saturating_sub(self.began));
        self.lag.saturating_add(to_the_write)
    }
}

impl Full {
    fn at(&self, now: Duration) -> Duration {
        let current = self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.before.saturating_add(current)
    }

    fn set(&mut self, now: Duration, is_full: bool) {
        if is_full != self.since.is_some() {
            self.before = self.at(now);
            self.since = is_full.then_some(now);
        }
    }
}

impl<'a> Driver<'a> {
    fn new(scenario: &'a Scenario, name: &str, settings: &'a Settings) -> Result<Self, Failure> {
        let address = settings.target.resolve()?;
        let requests = Requests::new(scenario, settings)?;
        let wanted = settings.connections_max.max(1) + DESCRIPTORS_RESERVED;
        let descriptors = rlimit::increase_nofile_limit(wanted as u64).unwrap_or(1_024) as usize;
        let connections_max =
            settings.connections_max.min(descriptors.saturating_sub(DESCRIPTORS_RESERVED)).max(1);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let shared =
            Shared { address, clock: Clock::start(), events: sender, places: Places::default(), requests };
        let mut play = Play::new(scenario, name, settings.outstanding_max.max(1));
        play.meter().sending().connections_max = connections_max as u64;
        Ok(Self {
            scenario,
            settings,
            connections_max,
            play,
            shared: Arc::new(shared),
            events,
            idle: Vec::new(),
            open: Vec::new(),
            opening: 0,
            waiting: VecDeque::new(),
            full: Full::default(),
            flights: Vec::new(),
        })
    }

    /// Over HTTP/2 all share one connection at first: without it, all would wait for it.
    async fn open_first(&mut self) {
        if self.settings.protocol == Protocol::Http2
            && let Some(place) = self.shared.places.take(self.connections_max)
        {
            let opening = http2::connect(&self.shared, place);
            if let Ok(Ok((connection, took))) = tokio::time::timeout(FIRST_CONNECTION_MAX, opening).await {
                self.opened(Opened::Many(connection), took);
            }
        }
        // The play begins now; the one connection that there may be knows no clock.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.clock = Clock::start();
        }
    }

    async fn drive(mut self, watch: &mut dyn FnMut(&Snapshot)) -> Result<Report, Failure> {
        let pacer = Pacer::new()?;
        let mut heard = Vec::with_capacity(HEARD_AT_ONCE);
        let mut view = VIEW_EVERY;
        loop {
            let now = self.shared.clock.elapsed();
            self.act(now);
            if now >= view {
                watch(&self.play.snapshot(now));
                view = now + VIEW_EVERY;
            }
            if self.play.is_over(now, self.settings.drain) || self.settings.stop.is_set() {
                self.close(now);
                return Ok(self.play.finish(now));
            }
            let next = self.play.next_at().into_iter().chain([view, self.end(now)]).min().unwrap_or(view);
            if next + BEHIND <= now {
                // Far behind. Those who send and those who read have their turn.
                yield_now().await;
                while heard.len() < HEARD_AT_ONCE
                    && let Ok(event) = self.events.try_recv()
                {
                    heard.push(event);
                }
            } else {
                let held = !self.waiting.is_empty();
                tokio::select! {
                    biased;
                    _ = self.events.recv_many(&mut heard, HEARD_AT_ONCE) => {}
                    () = self.shared.places.given_back(), if held => {}
                    waited = pacer.wait(next.saturating_sub(now).max(WAIT_LEAST)) => waited?,
                }
            }
            let now = self.shared.clock.elapsed();
            for event in heard.drain(..) {
                self.note(event, now);
            }
        }
    }

    /// When it is over at the latest.
    fn end(&self, now: Duration) -> Duration {
        let end = self.scenario.duration;
        if now < end { end } else { end.saturating_add(self.settings.drain) }
    }

    /// Lets time pass, and does what is due.
    fn act(&mut self, now: Duration) {
        self.play.advance(now);
        while let Some(what) = self.play.poll() {
            match what {
                Do::Send(order) => self.send(order, now),
                Do::Cancel(key) => self.cancel(key),
            }
        }
        self.send_those_who_wait(now);
    }

    /// Whoever came before goes first.
    fn send(&mut self, order: Order, now: Duration) {
        let lag = now.saturating_sub(order.intended);
        let waiting = Waiting { order, lag, held: Duration::ZERO, full: self.full.at(now), resent: 0 };
        if self.waiting.is_empty() && self.begin(waiting, now) {
            return;
        }
        // Those who gave up behind one who is patient are only counted out here.
        if self.waiting.len() > 2 * self.settings.outstanding_max {
            for waiting in std::mem::take(&mut self.waiting) {
                if self.play.is_current(waiting.order.key) {
                    self.waiting.push_back(waiting);
                } else {
                    self.never_sent(waiting, now);
                }
            }
        }
        self.waiting.push_back(waiting);
    }

    fn send_those_who_wait(&mut self, now: Duration) {
        while let Some(&first) = self.waiting.front() {
            if !self.play.is_current(first.order.key) {
                // Its client left while it waited.
                self.never_sent(first, now);
                self.waiting.pop_front();
                continue;
            }
            let last = self.waiting.back().copied().filter(|_| self.is_impatient(first.order, now));
            if let Some(last) = last
                && !self.play.is_current(last.order.key)
            {
                // It is counted as what came before it is.
                self.never_sent(last, now);
                self.waiting.pop_back();
                continue;
            }
            if !self.begin(last.unwrap_or(first), now) {
                break;
            }
            if last.is_some() {
                self.waiting.pop_back()
            } else {
                self.waiting.pop_front()
            };
        }
        self.open_more();
        let each = match self.settings.protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 => http2::STREAMS_MAX,
        };
        self.full.set(now, self.waiting.len() > self.opening * each);
    }

    /// Whether more than half of a client's patience is over. Were it sent all the same, and the next one when half of its own
    /// is over, all would be sent so late that hardly any could be answered, and a generator that was late once would
    /// measure nothing but that from then on. So those who came last go first then, and who waits in vain counts as late.
    fn is_impatient(&self, order: Order, now: Duration) -> bool {
        let clients = self.scenario.clients.get(usize::from(order.crowd));
        let timeout = clients.and_then(|clients| clients.timeout);
        timeout.is_some_and(|timeout| now.saturating_sub(order.intended) > timeout / 2)
    }

    /// Sends an attempt if there is a connection for it.
    fn begin(&mut self, waiting: Waiting, now: Duration) -> bool {
        let order = waiting.order;
        let shared = self.shared.clone();
        let task = match self.settings.protocol {
            Protocol::Http1 => {
                let Some(connection) = self.connection() else { return false };
                tokio::spawn(http1::exchange(shared, connection, order))
            }
            Protocol::Http2 => {
                let Some(stream) = self.stream() else { return false };
                tokio::spawn(http2::exchange(shared, stream, order))
            }
        };
        let index = order.key.index;
        if self.flights.len() <= index {
            self.flights.resize_with(index + 1, || None);
        }
        let (lag, held) = self.lag(waiting, now);
        let (resent, task) = (waiting.resent, task.abort_handle());
        self.flights[index] = Some(Flight { order, began: now, lag, held, resent, task });
        true
    }

    fn connection(&mut self) -> Option<Box<http1::Connection>> {
        while let Some(mut connection) = self.idle.pop() {
            if connection.is_alive() {
                return Some(connection);
            }
        }
        None
    }

    fn stream(&mut self) -> Option<http2::Stream> {
        self.open.retain(http2::Connection::is_alive);
        self.open.iter().find_map(http2::Connection::stream)
    }

    /// Opens connections for those who wait, within the bounds.
    fn open_more(&mut self) {
        let most = match self.settings.protocol {
            Protocol::Http1 => OPENING_MAX.min(self.waiting.len()),
            // One carries many.
            Protocol::Http2 => 1.min(self.waiting.len()),
        };
        while self.opening < most
            && let Some(place) = self.shared.places.take(self.connections_max)
        {
            self.opening += 1;
            let shared = self.shared.clone();
            match self.settings.protocol {
                Protocol::Http1 => drop(tokio::spawn(http1::open(shared, place))),
                Protocol::Http2 => drop(tokio::spawn(http2::open(shared, place))),
            }
        }
    }

    fn cancel(&mut self, key: Key) {
        // What waits is counted out when it is its turn.
        if let Some(flight) = self.take_flight(key) {
            flight.task.abort();
            self.count_lag(flight.order, flight.lag, flight.held);
        }
    }

    fn take_flight(&mut self, key: Key) -> Option<Flight> {
        self.flights.get_mut(key.index)?.take_if(|flight| flight.order.key == key)
    }

    /// How late one is that waits until now, and how much of that it was held back. What opening a connection takes is not the
    /// generator's doing, and so is no lag; that it may open no more of them is.
    fn lag(&self, Waiting { lag, held, full, .. }: Waiting, now: Duration) -> (Duration, Duration) {
        let more = self.full.at(now).saturating_sub(full);
        (lag.saturating_add(more), held.saturating_add(more))
    }

    /// An attempt waits no longer, and has not been sent.
    fn never_sent(&mut self, waiting: Waiting, now: Duration) {
        let (lag, held) = self.lag(waiting, now);
        self.count_lag(waiting.order, lag, held);
    }

    fn count_lag(&mut self, order: Order, lag: Duration, held: Duration) {
        self.play.sent(order.intended, lag, (!held.is_zero()).then_some(held));
    }

    fn note(&mut self, event: Event, now: Duration) {
        match event {
            Event::Ended { order, sent, heard, kept } => {
                self.idle.extend(kept);
                let Some(flight) = self.take_flight(order.key) else { return };
                self.count_lag(order, flight.lag_at(sent), flight.held);
                self.play.heard(now, order.key, sent, heard);
            }
            Event::Again { order, sent } => {
                let Some(flight) = self.take_flight(order.key) else { return };
                let lag = flight.lag_at(sent);
                if flight.resent == RESENT_MAX {
                    self.count_lag(order, lag, flight.held);
                    self.play.heard(now, order.key, sent, Heard::Nothing(WireError::Closed));
                    return;
                }
                // The try that was for nothing is no lag: it was sent, and by then it was so late.
                let (held, full, resent) = (flight.held, self.full.at(now), flight.resent + 1);
                self.play.resent(order.intended);
                self.waiting.push_front(Waiting { order, lag, held, full, resent });
            }
            Event::Opened(opened) => {
                self.opening = self.opening.saturating_sub(1);
                match opened {
                    Ok((connection, took)) => self.opened(connection, took),
                    Err(error) => self.not_opened(error, now),
                }
            }
        }
    }

    fn opened(&mut self, connection: Opened, took: Duration) {
        match connection {
            Opened::One(connection) => self.idle.push(connection),
            Opened::Many(connection) => self.open.push(connection),
        }
        let taken = self.shared.places.taken();
        let sending = self.play.meter().sending();
        sending.connecting.record(took);
        sending.connections += 1;
        sending.connections_most = sending.connections_most.max(taken);
    }

    /// Whoever has waited longest learns that there is no connection; over HTTP/2 all do, who wait for the same one.
    fn not_opened(&mut self, error: WireError, now: Duration) {
        if self.open.iter().any(http2::Connection::is_usable) {
            return;
        }
        while let Some(waiting) = self.waiting.pop_front() {
            let order = waiting.order;
            let current = self.play.is_current(order.key);
            self.never_sent(waiting, now);
            self.play.heard(now, order.key, None, Heard::Nothing(error));
            if current && self.settings.protocol == Protocol::Http1 {
                return;
            }
        }
    }

    /// It is over: what is under way ends, and what there is to say of its lag is said.
    fn close(&mut self, now: Duration) {
        for flight in std::mem::take(&mut self.flights).into_iter().flatten() {
            flight.task.abort();
            self.count_lag(flight.order, flight.lag, flight.held);
        }
        for waiting in std::mem::take(&mut self.waiting) {
            self.never_sent(waiting, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only while it is full does it go on, however often that changes.
    #[test]
    fn what_it_was_full_for_adds_up() {
        let ms = Duration::from_millis;
        let mut full = Full::default();
        for (now, is_full, so_far) in
            [(5, false, 0), (10, true, 0), (15, true, 5), (20, false, 10), (50, false, 10), (60, true, 10)]
        {
            full.set(ms(now), is_full);
            assert_eq!(full.at(ms(now)), ms(so_far), "{now}");
        }
        assert_eq!(full.at(ms(63)), ms(13));
    }
}
