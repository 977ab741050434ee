//! Everything that is there during one run: clients, gateways, services, and what is under way between them.
//!
//! This file holds what there is and what happens when; `client.rs` and `call.rs` say what each does about it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tidegate_engine::{Reason, Ticket, Timestamp};
use tidegate_workload::{
    CallerId, Change, Course, Crowd, Gauges, Meter, Purpose, Random, Report, Scenario, ServiceTime, Who,
};

use crate::agenda::{Agenda, Rank};
use crate::call::Answer;
use crate::control::{self, Control, Setup};
use crate::gate::{Gate, Slot};
use crate::model::Model;
use crate::passage::Says;
use crate::station::{Look, Place, Station};
use crate::table::{Key, Table};

/// So much may be under way at once: what nobody takes away piles up, and memory is not endless.
const UNDER_WAY_MAX: usize = 4_000_000;
/// How often it is looked how things stand.
const LOOKS: u32 = 480;
/// Each gateway's model draws from a stream of its own; no service has more gateways than this.
const MODELS_OF_SERVICE: usize = 1_000;

/// A run could not go on: more is under way at once than is kept track of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "more than {UNDER_WAY_MAX} requests are under way at once; play it shorter, or with less traffic"
        )
    }
}

impl Error for TooMany {}

/// One run.
pub(crate) struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) agenda: Agenda<Event>,
    pub(crate) meter: Meter,
    pub(crate) crowds: Vec<Crowd<'a>>,
    pub(crate) tasks: Table<Task>,
    pub(crate) calls: Table<Call>,
    /// Before each service as many gateways as there are; none if nothing protects it.
    pub(crate) gates: Vec<Vec<Gate<Key>>>,
    pub(crate) stations: Vec<Station<Key>>,
    pub(crate) working: Vec<Random>,
    /// The share of each service's answers that are failures.
    pub(crate) failing: Vec<f64>,
    pub(crate) balancing: Random,
    /// Where the kinds of each crowd are counted.
    pub(crate) whos: Vec<Vec<Who>>,
    /// How many tasks there have been.
    pub(crate) wanted: u64,
    best: bool,
    every_look: Duration,
    end: Timestamp,
    trace: u64,
    /// Kept for its memory.
    done: Vec<Key>,
}

/// What may happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The next clients of a crowd come, so many.
    Arrive(u16, u32),
    /// A user of a crowd asks, again or for the first time.
    Ask(u16),
    /// A client wants to try again, or has held back for a while.
    Retry(Key),
    /// A client's patience ends.
    Patience(Key),
    /// A gateway has to be woken.
    Wake(u16, u16),
    /// The answer to a call is overdue at its gateway.
    Overdue(Key, Reason),
    /// An orphan has had its time.
    OrphanEnds(Key),
    /// A service has something done.
    Look(u16, Look),
    /// A call reaches its service.
    Reach(Key),
    /// The answer to a call is back.
    Return(Key),
    /// Something changes about a service, by its number in the list.
    Change(u16, u32),
    /// It is looked how things stand.
    Stand,
}

/// What a client wants, over all its attempts.
#[derive(Debug)]
pub(crate) struct Task {
    /// No other has it.
    pub(crate) number: u64,
    pub(crate) crowd: u16,
    pub(crate) kind: u16,
    pub(crate) who: Who,
    pub(crate) first: Timestamp,
    pub(crate) attempts: u32,
    /// Which of the tenants behind the name of its own it is of.
    pub(crate) sender: u64,
    /// Which of the callers of its crowd wants it.
    pub(crate) caller: CallerId,
    /// It was told to come back for this attempt.
    pub(crate) told: bool,
    /// How far it is, for whoever has our own client.
    pub(crate) course: Option<Course>,
    /// The attempt under way.
    pub(crate) call: Option<Key>,
    /// How long the work takes, if that was recorded.
    pub(crate) work: Option<Duration>,
}

/// One visit to one service, through the gateway before it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) service: u16,
    /// Which of the gateways before the service, if there are any.
    pub(crate) gate: Option<u16>,
    pub(crate) crowd: u16,
    pub(crate) kind: u16,
    pub(crate) who: Who,
    pub(crate) says: Says,
    pub(crate) began: Timestamp,
    pub(crate) work: Option<Duration>,
    pub(crate) state: State,
    pub(crate) slot: Option<Slot>,
}

/// Who waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A client.
    Client(Key),
    /// A service that works on another call.
    Service(Key),
    /// Nobody any more.
    Nobody,
}

/// Where a call is.
#[derive(Debug)]
pub(crate) enum State {
    /// On its way in.
    New,
    /// In the queue of the gateway.
    Queued(Ticket),
    /// On its way to the service, for so much work there.
    Going(Duration),
    /// In the service; `next` is which of its calls comes next, `child` the one under way.
    Working { place: Place, next: u16, child: Option<Key> },
    /// Its answer is on the way back.
    Returning(Answer),
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &'a Scenario, control: &Control, seed: u64) -> Self {
        let services = 0..scenario.services.len();
        let meter = Meter::new(scenario, control.name());
        let whos = scenario
            .clients
            .iter()
            .map(|clients| clients.mix.iter().map(|kind| meter.who(&kind.class, &kind.tenant)).collect())
            .collect();
        let gates = services.clone().map(|service| {
            // Only the service that clients ask has several gateways before it.
            let count = if service == 0 { scenario.gateways } else { 1 };
            let setup = control::setup(scenario, control, service);
            let model = |gate: u32| {
                let index = service * MODELS_OF_SERVICE + gate as usize;
                let random = || Random::stream(seed, Purpose::Model, index);
                control.product().map(|product| Model::new(product, random()))
            };
            let gates = |setup: Setup| (0..count).map(|gate| Gate::new(setup.clone(), model(gate))).collect();
            setup.map_or_else(Vec::new, gates)
        });
        let mut world = Self {
            scenario,
            agenda: Agenda::new(),
            meter,
            crowds: scenario
                .clients
                .iter()
                .enumerate()
                .map(|(index, clients)| Crowd::new(clients, seed, index))
                .collect(),
            tasks: Table::new(),
            calls: Table::new(),
            gates: gates.collect(),
            stations: scenario
                .services
                .iter()
                .map(|service| Station::new(service.capacity, service.queue))
                .collect(),
            working: services.map(|service| Random::stream(seed, Purpose::Service, service)).collect(),
            failing: scenario.services.iter().map(|service| service.fails).collect(),
            balancing: Random::stream(seed, Purpose::Balance, 0),
            whos,
            wanted: 0,
            best: control.knows_best(),
            every_look: (scenario.duration / LOOKS).max(Duration::from_nanos(1)),
            end: Timestamp::ZERO.after(scenario.duration),
            trace: 0,
            done: Vec::new(),
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for crowd in 0..self.crowds.len() {
            self.plan_arrivals(crowd as u16);
            for at in self.crowds[crowd].first_asks() {
                self.agenda.plan(Timestamp::ZERO.after(at), Rank::Arrival, Event::Ask(crowd as u16));
            }
        }
        for (service, described) in self.scenario.services.iter().enumerate() {
            for (number, (at, _)) in described.changes.iter().enumerate() {
                self.agenda.plan(
                    Timestamp::ZERO.after(*at),
                    Rank::Work,
                    Event::Change(service as u16, number as u32),
                );
            }
        }
        self.agenda.plan(Timestamp::ZERO, Rank::Work, Event::Stand);
    }

    /// Plays until a moment, at most to the end. Says whether the moment is before that.
    pub(crate) fn play_until(&mut self, moment: Timestamp) -> Result<bool, TooMany> {
        let until = moment.min(self.end);
        while let Some(event) = self.agenda.next_until(until) {
            self.note(&event);
            self.happen(event);
            if self.tasks.len().max(self.calls.len()) > UNDER_WAY_MAX {
                return Err(TooMany);
            }
        }
        self.agenda.advance(until);
        Ok(moment < self.end)
    }

    /// Plays to the end.
    pub(crate) fn play(mut self) -> Result<Report, TooMany> {
        self.play_until(self.end)?;
        Ok(self.meter.finish(self.agenda.happened, self.trace))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.agenda.now()
    }

    /// Now, as a time from the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now().since(Timestamp::ZERO)
    }

    pub(crate) fn who(&self, crowd: u16, kind: u16) -> Who {
        self.whos[usize::from(crowd)][usize::from(kind)]
    }

    /// How long a service works on a request of this kind.
    pub(crate) fn work(&mut self, service: u16, cost: f64, recorded: Option<Duration>) -> Duration {
        let time: &ServiceTime = &self.scenario.services[usize::from(service)].time;
        let drawn = recorded.unwrap_or_else(|| time.draw(&mut self.working[usize::from(service)]));
        if cost == 1.0 { drawn } else { drawn.mul_f64(cost) }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(crowd, count) => {
                for _ in 0..count {
                    self.ask(crowd);
                }
                self.plan_arrivals(crowd);
            }
            Event::Ask(crowd) => self.ask(crowd),
            Event::Retry(task) => self.retry(task),
            Event::Patience(task) => self.patience_ends(task),
            Event::Wake(service, gate) => {
                let now = self.now();
                self.gates[usize::from(service)][usize::from(gate)].wake(now);
                self.settle(service, gate);
            }
            Event::Overdue(call, reason) => self.overdue(call, reason),
            Event::OrphanEnds(call) => self.orphan_ends(call),
            Event::Look(service, look) => self.look(service, look),
            Event::Reach(call) => self.reach(call),
            Event::Return(call) => self.back(call),
            Event::Change(service, number) => self.change(service, number),
            Event::Stand => self.stand(),
        }
    }

    fn plan_arrivals(&mut self, crowd: u16) {
        if let Some((at, count)) = self.crowds[usize::from(crowd)].next_arrivals() {
            self.agenda.plan(Timestamp::ZERO.after(at), Rank::Arrival, Event::Arrive(crowd, count));
        }
    }

    fn look(&mut self, service: u16, look: Look) {
        let now = self.now();
        let mut done = std::mem::take(&mut self.done);
        self.stations[usize::from(service)].look(now, look, &mut done);
        self.plan_looks(service);
        for call in done.drain(..) {
            self.worked(call);
        }
        self.done = done;
    }

    /// Puts on the agenda what a service has planned.
    pub(crate) fn plan_looks(&mut self, service: u16) {
        for (at, look) in self.stations[usize::from(service)].plans.drain(..) {
            self.agenda.plan(at, Rank::Work, Event::Look(service, look));
        }
    }

    fn change(&mut self, service: u16, number: u32) {
        let now = self.now();
        let (_, change) = self.scenario.services[usize::from(service)].changes[number as usize];
        let station = &mut self.stations[usize::from(service)];
        match change {
            Change::Workers(workers) => station.set_workers(now, workers),
            Change::Slowdown(times) => station.set_slowdown(times),
            Change::Fails(share) => self.failing[usize::from(service)] = share,
            Change::Pause(pause) => station.pause(now, pause),
        }
        self.plan_looks(service);
        let gates = self.gates[usize::from(service)].len();
        if let Some(limit) = control::best_limit_after(change, gates.max(1) as u32).filter(|_| self.best) {
            for gate in 0..gates {
                self.gates[usize::from(service)][gate].set_limit(now, limit.clone());
                self.settle(service, gate as u16);
            }
        }
    }

    fn stand(&mut self) {
        let mut gauges = Gauges::default();
        for gate in self.gates.first().into_iter().flatten() {
            let (limit, in_flight, queue) = gate.stand();
            gauges.limit += f64::from(limit);
            gauges.in_flight += f64::from(in_flight);
            gauges.queue += f64::from(queue);
        }
        if self.gates[0].is_empty() {
            gauges.in_flight = self.stations[0].len() as f64;
        }
        gauges.service_queue = f64::from(self.stations[0].waiting());
        self.meter.look(self.elapsed(), gauges);
        let next = self.now().after(self.every_look);
        if next < self.end {
            self.agenda.plan(next, Rank::Work, Event::Stand);
        }
    }

    /// Mixes an event into the trace: another order, another moment or another event gives another trace.
    fn note(&mut self, event: &Event) {
        let what = match *event {
            Event::Arrive(crowd, _) | Event::Ask(crowd) => u64::from(crowd),
            Event::Retry(key)
            | Event::Patience(key)
            | Event::Overdue(key, _)
            | Event::OrphanEnds(key)
            | Event::Reach(key)
            | Event::Return(key) => 1 << 16 | u64::from(key.index) << 20,
            Event::Wake(service, gate) => 2 << 16 | u64::from(service) << 20 | u64::from(gate) << 40,
            Event::Look(service, Look::Job(place)) => {
                3 << 16 | u64::from(service) << 20 | u64::from(place.index) << 32
            }
            Event::Look(service, Look::Shared(_)) => 4 << 16 | u64::from(service) << 20,
            Event::Change(service, number) => 5 << 16 | u64::from(service) << 20 | u64::from(number) << 40,
            Event::Stand => 6 << 16,
        };
        let mixed = (self.trace ^ self.now().as_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what;
        self.trace = mixed.rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
}
