//! The driver: tells the play the time, sends what is due, and hands on what was heard. One thread, one runtime.
//!
//! What is due and has no connection waits in the one queue there is here, and that wait is lag.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_workload::{Report, Scenario};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, yield_now};

use crate::clock::Clock;
use crate::pacer::Pacer;
use crate::play::{Do, Heard, Key, Order, Play, Snapshot};
use crate::request::{NoRequest, Requests};
use crate::settings::{Protocol, Settings};
use crate::target::BadTarget;
use crate::wire::{Event, Places, Shared, http1, http2};

/// How often somebody who watches is told how things stand.
const VIEW_EVERY: Duration = Duration::from_millis(250);
/// How many answers are looked at before what is due is sent.
const HEARD_AT_ONCE: usize = 256;
/// How many ended exchanges may wait to be looked at; more of them wait with their connections.
const EVENTS_MAX: usize = 4_096;
/// Descriptors that are not connections.
const DESCRIPTORS_RESERVED: usize = 64;
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
    opening: bool,
    /// Due, and without a connection; each with the moment when there was none.
    waiting: VecDeque<(Order, Duration)>,
    /// What is under way for each request, at the index of its key.
    flights: Vec<Option<Flight>>,
    connections: u64,
}

/// An attempt under way.
struct Flight {
    key: Key,
    intended: Duration,
    /// When there was a connection for it, or a place for one.
    began: Duration,
    held: Option<Duration>,
    task: AbortHandle,
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
            opening: false,
            waiting: VecDeque::new(),
            flights: Vec::new(),
            connections: 0,
        })
    }

    /// Over HTTP/2 all share one connection at first: without it, all would wait for it.
    async fn open_first(&mut self) {
        if self.settings.protocol == Protocol::Http2
            && let Some(place) = self.shared.places.take(self.connections_max)
        {
            let opening = http2::connect(&self.shared, place);
            if let Ok(opened) = tokio::time::timeout(FIRST_CONNECTION_MAX, opening).await {
                self.opened(opened, Duration::ZERO);
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
            if next <= now {
                // Those who send and those who read have their turn.
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
                    waited = pacer.wait(next - now) => waited?,
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
        if self.waiting.is_empty() && self.begin(order, now, None) {
            return;
        }
        // Those who gave up behind one who is patient are only counted out here.
        if self.waiting.len() > 2 * self.settings.outstanding_max {
            self.waiting.retain(|(order, _)| self.play.is_current(order.key));
        }
        self.waiting.push_back((order, now));
    }

    fn send_those_who_wait(&mut self, now: Duration) {
        while let Some(&(order, since)) = self.waiting.front() {
            if self.play.is_current(order.key) {
                // Whoever waits while a connection is being opened waits for that, and not for the cap.
                let held = (!self.opening).then(|| now.saturating_sub(since));
                if !self.begin(order, now, held) {
                    return;
                }
            } else {
                // Its client left while it waited.
                let lag = now.saturating_sub(order.intended);
                self.play.sent(order.intended, lag, Some(now.saturating_sub(since)));
            }
            self.waiting.pop_front();
        }
    }

    /// Sends an attempt if there is a connection for it, or a place for one.
    fn begin(&mut self, order: Order, now: Duration, held: Option<Duration>) -> bool {
        let shared = self.shared.clone();
        let task = match self.settings.protocol {
            Protocol::Http1 => {
                let Some(from) = self.connection() else { return false };
                tokio::spawn(http1::exchange(shared, from, order))
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
        let intended = order.intended;
        let flight = Flight { key: order.key, intended, began: now, held, task: task.abort_handle() };
        self.flights[index] = Some(flight);
        true
    }

    fn connection(&mut self) -> Option<http1::From> {
        while let Some(mut connection) = self.idle.pop() {
            if connection.is_alive() {
                return Some(http1::From::Kept(connection));
            }
        }
        let place = self.shared.places.take(self.connections_max)?;
        self.connections += 1;
        self.count_connections();
        Some(http1::From::New(place))
    }

    fn stream(&mut self) -> Option<http2::Stream> {
        self.open.retain(http2::Connection::is_alive);
        let stream = self.open.iter().find_map(http2::Connection::stream);
        if stream.is_none() && !self.opening {
            self.open_another();
        }
        stream
    }

    fn open_another(&mut self) {
        if let Some(place) = self.shared.places.take(self.connections_max) {
            self.opening = true;
            tokio::spawn(http2::open(self.shared.clone(), place));
        }
    }

    fn count_connections(&mut self) {
        let (opened, taken) = (self.connections, self.shared.places.taken());
        let sending = self.play.meter().sending();
        sending.connections = opened;
        sending.connections_most = sending.connections_most.max(taken);
    }

    fn cancel(&mut self, key: Key) {
        // What waits is counted out when it is its turn.
        if let Some(flight) = self.flights.get_mut(key.index)
            && flight.as_ref().is_some_and(|flight| flight.key == key)
            && let Some(flight) = flight.take()
        {
            flight.task.abort();
            self.play.sent(flight.intended, flight.began.saturating_sub(flight.intended), flight.held);
        }
    }

    fn note(&mut self, event: Event, now: Duration) {
        match event {
            Event::Ended { order, times, heard, kept } => {
                self.idle.extend(kept);
                let flight = self.flights.get_mut(order.key.index);
                let Some(flight) = flight.filter(|it| it.as_ref().is_some_and(|it| it.key == order.key))
                else {
                    return;
                };
                let Some(flight) = flight.take() else { return };
                let connecting = times.connecting.unwrap_or_default();
                // What opening a connection took is not the generator's doing.
                let sent = times.sent.map(|sent| sent.saturating_sub(connecting));
                let lag = sent.unwrap_or(flight.began).saturating_sub(order.intended);
                self.play.sent(order.intended, lag, flight.held);
                if times.connecting.is_some() {
                    self.play.meter().sending().connecting.record(connecting);
                }
                self.play.heard(now, order.key, times.sent, heard);
            }
            Event::Opened(opened) => self.opened(opened, now),
        }
    }

    fn opened(
        &mut self,
        opened: Result<(http2::Connection, Duration), tidegate_workload::WireError>,
        now: Duration,
    ) {
        self.opening = false;
        match opened {
            Ok((connection, took)) => {
                self.open.push(connection);
                self.connections += 1;
                self.play.meter().sending().connecting.record(took);
                self.count_connections();
            }
            // Nobody has a connection to wait for.
            Err(error) if self.open.is_empty() => {
                for (order, _) in std::mem::take(&mut self.waiting) {
                    self.play.heard(now, order.key, None, Heard::Nothing(error));
                }
            }
            Err(_) => {}
        }
    }

    /// It is over: what is under way ends, and what there is to say of its lag is said.
    fn close(&mut self, now: Duration) {
        for flight in self.flights.iter_mut().filter_map(Option::take) {
            flight.task.abort();
            self.play.sent(flight.intended, flight.began.saturating_sub(flight.intended), flight.held);
        }
        for (order, since) in std::mem::take(&mut self.waiting) {
            let lag = now.saturating_sub(order.intended);
            self.play.sent(order.intended, lag, Some(now.saturating_sub(since)));
        }
    }
}
