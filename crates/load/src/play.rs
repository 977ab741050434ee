//! What is sent when, and what came of it: the clients of a scenario, without sockets and without a clock.
//!
//! The driver tells it the time ([`advance`](Play::advance)) and what it heard ([`heard`](Play::heard)), and does what it
//! says ([`poll`](Play::poll)). Whoever is to be sent was due at a moment that was known before; how much later the driver
//! did it is lag, and counts as part of the time that the answer took.

use std::collections::VecDeque;
use std::time::Duration;

use slab::Slab;
use tidegate_engine::{Reason, Reply};
use tidegate_workload::{
    CallerId, Course, Crowd, Failed, Gauges, Hint, Latencies, Meter, Next, Report, Scenario, Try, Who,
    WireError,
};

use crate::agenda::{Agenda, Plan};
use crate::own;

/// How often it is looked how things stand.
const LOOKS: u32 = 480;
/// How many may come at one moment before what is outstanding is looked at anew.
const TOGETHER_MAX: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Play<'a> {
    scenario: &'a Scenario,
    crowds: Vec<Crowd<'a>>,
    /// Where the kinds of each crowd are counted.
    whos: Vec<Vec<Who>>,
    meter: Meter,
    agenda: Agenda<Event>,
    tasks: Slab<Task>,
    /// To be done by the driver.
    orders: VecDeque<Do>,
    wanted: u64,
    outstanding_max: usize,
    every_look: Duration,
    recent: Recent,
}

/// What is planned.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next clients of a crowd come, so many.
    Arrive(u16, u32),
    /// A user of a crowd asks.
    Ask(u16),
    /// It is time for the next attempt, or its clients have held back for a while.
    Attempt(Key),
    /// A client's patience ends.
    Patience(Key),
    /// It is looked how things stand.
    Look,
}

/// An attempt of a request. It goes stale when the attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: usize,
    number: u64,
    attempt: u32,
}

/// What a client wants, over all its attempts.
#[derive(Debug)]
struct Task {
    number: u64,
    crowd: u16,
    kind: u16,
    tenant: usize,
    /// Which of the callers of its crowd wants it.
    caller: CallerId,
    who: Who,
    /// When the first attempt was to be sent.
    first: Duration,
    attempts: u32,
    /// It was told to come back for this attempt.
    told: bool,
    /// How far it is, for whoever has our own client.
    course: Option<Course>,
    /// When the attempt under way was to be sent.
    under_way: Option<Duration>,
    /// When its client's patience with that ends, if it does.
    patience: Option<Plan>,
}

/// What the driver has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    /// Send an attempt.
    Send(Order),
    /// Its client has left: whatever is under way for it ends, with its connection if need be.
    Cancel(Key),
}

/// An attempt that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) key: Key,
    pub(crate) crowd: u16,
    pub(crate) kind: u16,
    /// Which of the tenants behind one name.
    pub(crate) tenant: usize,
    /// No other request has it.
    pub(crate) number: u64,
    /// The first is 1.
    pub(crate) attempt: u32,
    /// When it was to be sent.
    pub(crate) intended: Duration,
    /// Until when its client waits for all its tries, if it is our own.
    pub(crate) deadline: Option<Duration>,
}

/// What an attempt brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// An answer, read to its end.
    Answer(Answer),
    /// None.
    Nothing(WireError),
}

/// An answer, as far as a client looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Why a gateway of ours refused.
    pub(crate) reason: Option<Reason>,
    /// When it said to come back.
    pub(crate) retry_after: Option<Duration>,
    /// The same to the millisecond, which is read by our own client alone.
    pub(crate) retry_after_ms: Option<Duration>,
}

/// How things stand, for whoever watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// How long it has been going on.
    pub elapsed: Duration,
    /// Requests so far.
    pub offered: u64,
    /// Useful answers so far.
    pub goodput: u64,
    /// Attempts refused so far.
    pub refused: u64,
    /// Requests given up so far.
    pub failed: u64,
    /// Requests outstanding.
    pub outstanding: u64,
    /// The same three in the last stretch of time, for each second of it.
    pub rates: [f64; 3],
    /// The median and the 99th percentile of useful answers in that stretch.
    pub served: [Duration; 2],
    /// How late the generator is for 99 in a hundred, so far.
    pub lag_p99: Duration,
}

/// What happened since it was looked last.
#[derive(Debug, Default)]
struct Recent {
    since: Duration,
    counts: [u64; 3],
    served: Latencies,
}

impl<'a> Play<'a> {
    /// Nobody has come yet.
    pub(crate) fn new(scenario: &'a Scenario, name: &str, outstanding_max: usize) -> Self {
        let meter = Meter::new(scenario, name);
        let clients = scenario.clients.iter();
        let whos = clients
            .clone()
            .map(|clients| clients.mix.iter().map(|kind| meter.who(&kind.class, &kind.tenant)).collect());
        let mut play = Self {
            scenario,
            crowds: clients
                .clone()
                .enumerate()
                .map(|(index, clients)| Crowd::new(clients, scenario.seed, index))
                .collect(),
            whos: whos.collect(),
            meter,
            agenda: Agenda::new(),
            tasks: Slab::new(),
            orders: VecDeque::new(),
            wanted: 0,
            outstanding_max,
            every_look: (scenario.duration / LOOKS).max(Duration::from_millis(1)),
            recent: Recent::default(),
        };
        for crowd in 0..play.crowds.len() {
            play.plan_arrivals(crowd as u16);
            for at in play.crowds[crowd].first_asks() {
                play.agenda.plan(at, Event::Ask(crowd as u16));
            }
        }
        play.agenda.plan(Duration::ZERO, Event::Look);
        play
    }

    /// Lets time pass. Not all that is due may have happened when it comes back: then more is
    /// [due](Self::next_at) at once, so that a burst does not keep the driver from its sockets.
    pub(crate) fn advance(&mut self, now: Duration) {
        for _ in 0..TOGETHER_MAX {
            let Some((at, event)) = self.agenda.due(now) else { return };
            match event {
                Event::Arrive(crowd, count) => {
                    for _ in 0..count {
                        self.want(at, crowd);
                    }
                    self.plan_arrivals(crowd);
                }
                Event::Ask(crowd) => self.want(at, crowd),
                Event::Attempt(key) => self.attempt(at, key),
                Event::Patience(key) => self.patience_ends(at, now, key),
                Event::Look => self.look(at),
            }
        }
    }

    /// When something is due next.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.agenda.next_at()
    }

    /// What the driver has to do now; to be asked until there is nothing more.
    #[must_use]
    pub(crate) fn poll(&mut self) -> Option<Do> {
        self.orders.pop_front()
    }

    /// Whether it is over: nobody comes any more, and nobody waits for an answer or has had the time for it.
    pub(crate) fn is_over(&self, now: Duration, drain: Duration) -> bool {
        let end = self.scenario.duration;
        now >= end && (self.tasks.is_empty() || now >= end.saturating_add(drain))
    }

    #[cfg(test)]
    pub(crate) fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    #[cfg(test)]
    pub(crate) fn planned(&self) -> usize {
        self.agenda.len()
    }

    /// Whether anybody still waits for what came of this attempt.
    pub(crate) fn is_current(&self, key: Key) -> bool {
        self.tasks.get(key.index).is_some_and(|task| task.is(key))
    }

    /// An attempt that was to be sent at this moment was sent, or given up unsent, so late; of that it was held back for
    /// want of a connection so long.
    pub(crate) fn sent(&mut self, intended: Duration, lag: Duration, held: Option<Duration>) {
        if intended < self.scenario.warmup {
            return;
        }
        let sending = self.meter.sending();
        sending.lag.record(lag);
        if let Some(held) = held {
            sending.held.record(held);
        }
    }

    /// An attempt that was to be sent at this moment was sent once more, silently.
    pub(crate) fn resent(&mut self, intended: Duration) {
        if intended >= self.scenario.warmup {
            self.meter.sending().resent += 1;
        }
    }

    /// What the driver has to say of its connections.
    pub(crate) fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// An attempt that was sent at this moment has come to an end.
    pub(crate) fn heard(&mut self, now: Duration, key: Key, sent: Option<Duration>, heard: Heard) {
        if !self.is_current(key) {
            return;
        }
        let task = &mut self.tasks[key.index];
        let intended = task.under_way.take().unwrap_or_default();
        // Were it left to come, a quick service and patient clients would fill the memory with it.
        if let Some(patience) = task.patience.take() {
            self.agenda.cancel(patience);
        }
        let (who, crowd, first, one) = (task.who, usize::from(task.crowd), task.first, task.one());
        let counts = Meter::counts(who);
        let good = matches!(heard, Heard::Answer(answer) if answer.status < 400);
        self.crowds[crowd].answered(now, task.caller, good);
        match heard {
            Heard::Nothing(error) => {
                if counts {
                    self.meter.sending().failed(error);
                }
                self.meter.broken(who);
                self.failed(now, key.index, own::reply_to(error), Hint::Unsaid);
            }
            Heard::Answer(answer) => {
                if counts {
                    *self.meter.sending().statuses.entry(answer.status).or_default() += 1;
                }
                let refused = answer.refusal();
                if refused.is_none() {
                    self.meter.let_in(who, one, false);
                }
                if good {
                    if let Some(course) = &mut self.tasks[key.index].course {
                        self.crowds[crowd].ended(own::moment(now), course, own::SUCCESS);
                    }
                    let took = now.saturating_sub(first);
                    self.meter.served(now, who, took);
                    self.recent.served.record(took);
                    self.recent.counts[1] += 1;
                    if counts && let Some(sent) = sent {
                        self.meter.sending().naive.record(now.saturating_sub(sent));
                    }
                    self.end(now, key.index);
                } else {
                    match refused.or_else(|| answer.timed_out()) {
                        Some(reason) => {
                            self.recent.counts[2] += 1;
                            self.meter.rejected(now, who, reason, now.saturating_sub(intended));
                        }
                        None => self.meter.broken(who),
                    }
                    let is_ours = self.tasks[key.index].course.is_some();
                    self.failed(now, key.index, own::reply(answer.status), answer.hint(is_ours));
                }
            }
        }
    }

    /// How things stand. What is said of the last stretch of time begins anew.
    pub(crate) fn snapshot(&mut self, now: Duration) -> Snapshot {
        let seconds = now.saturating_sub(self.recent.since).as_secs_f64().max(1e-3);
        let rates = self.recent.counts.map(|count| count as f64 / seconds);
        let served = [0.5, 0.99].map(|share| self.recent.served.quantile(share));
        self.recent.since = now;
        self.recent.counts = [0; 3];
        self.recent.served.clear();
        let outstanding = self.tasks.len() as u64;
        let lag_p99 = self.meter.sending().lag_p99();
        let all = &self.meter.report().all;
        Snapshot {
            elapsed: now,
            offered: all.offered,
            goodput: all.goodput,
            refused: all.refusals(),
            failed: all.failed,
            outstanding,
            rates,
            served,
            lag_p99,
        }
    }

    /// The report, of as much as was played.
    pub(crate) fn finish(mut self, now: Duration) -> Report {
        self.meter.sending().outstanding_max = self.outstanding_max as u64;
        self.meter.cut_short(now);
        self.meter.finish(0, 0)
    }

    fn plan_arrivals(&mut self, crowd: u16) {
        if let Some((at, count)) = self.crowds[usize::from(crowd)].next_arrivals() {
            self.agenda.plan(at, Event::Arrive(crowd, count));
        }
    }

    /// Somebody of a crowd wants something.
    fn want(&mut self, at: Duration, crowd: u16) {
        let one = &mut self.crowds[usize::from(crowd)];
        // In the simulator's order, or the same numbers would be drawn for something else.
        let kind = one.kind() as u16;
        let caller = one.first_try();
        let tenant = one.tenant();
        let who = self.meter.offered(at, self.whos[usize::from(crowd)][usize::from(kind)]);
        self.wanted += 1;
        self.recent.counts[0] += 1;
        if self.tasks.len() >= self.outstanding_max {
            if Meter::counts(who) {
                self.meter.sending().unsent += 1;
            }
            self.meter.gave_up(who);
            if let Some(again) = self.crowds[usize::from(crowd)].asks_again(at) {
                self.agenda.plan(again, Event::Ask(crowd));
            }
            return;
        }
        let number = self.wanted;
        let course = self.crowds[usize::from(crowd)].begin(own::moment(at));
        let task = Task {
            number,
            crowd,
            kind,
            tenant,
            caller,
            who,
            first: at,
            attempts: 0,
            told: false,
            course,
            under_way: None,
            patience: None,
        };
        let index = self.tasks.insert(task);
        self.attempt(at, Key { index, number, attempt: 0 });
    }

    /// It is time for an attempt, unless its clients hold back.
    fn attempt(&mut self, at: Duration, key: Key) {
        let Some(task) = self.tasks.get_mut(key.index).filter(|task| task.is(key)) else { return };
        let clients = self.crowds[usize::from(task.crowd)].clients;
        if let Some(wait) = self.crowds[usize::from(task.crowd)].holds_back(at) {
            self.agenda.plan(at + wait, Event::Attempt(key));
            return;
        }
        if let Some(course) = &mut task.course
            && !self.crowds[usize::from(task.crowd)].sends(own::moment(at), course)
        {
            self.meter.gave_up(task.who);
            self.end(at, key.index);
            return;
        }
        task.attempts += 1;
        task.under_way = Some(at);
        let key = Key { attempt: task.attempts, ..key };
        self.meter.attempted(task.who, task.one());
        let deadline = clients.timeout.filter(|_| task.course.is_some()).map(|timeout| task.first + timeout);
        if let Some(timeout) = clients.timeout {
            // Whoever has our own client waits so long for the call, and all others for each attempt.
            let until = deadline.unwrap_or(at + timeout);
            task.patience = Some(self.agenda.plan(until, Event::Patience(key)));
        }
        self.orders.push_back(Do::Send(Order {
            key,
            crowd: task.crowd,
            kind: task.kind,
            tenant: task.tenant,
            number: task.number,
            attempt: task.attempts,
            intended: at,
            deadline,
        }));
    }

    fn patience_ends(&mut self, at: Duration, now: Duration, key: Key) {
        let Some(task) = self.tasks.get_mut(key.index).filter(|task| task.is(key)) else { return };
        task.patience = None;
        task.under_way = None;
        let (who, crowd, caller) = (task.who, usize::from(task.crowd), task.caller);
        if Meter::counts(who) {
            self.meter.sending().failed(WireError::Timeout);
        }
        self.meter.left(who);
        self.crowds[crowd].answered(now, caller, false);
        self.orders.push_back(Do::Cancel(key));
        self.failed(at, key.index, Reply::TimedOut, Hint::Unsaid);
    }

    fn failed(&mut self, now: Duration, index: usize, reply: Reply, hint: Hint) {
        let task = &mut self.tasks[index];
        let crowd = &mut self.crowds[usize::from(task.crowd)];
        let next = match &mut task.course {
            Some(course) => crowd.ended(own::moment(now), course, (reply, hint.advice(reply))),
            None => crowd.failed(now, Failed { caller: task.caller, failures: task.attempts, hint }),
        };
        match next {
            Next::Again { after, told } => {
                task.told = told;
                let key = Key { index, number: task.number, attempt: task.attempts };
                self.agenda.plan(now.saturating_add(after), Event::Attempt(key));
            }
            Next::GiveUp => {
                self.meter.gave_up(task.who);
                self.end(now, index);
            }
        }
    }

    fn end(&mut self, now: Duration, index: usize) {
        let task = self.tasks.remove(index);
        if let Some(at) = self.crowds[usize::from(task.crowd)].asks_again(now) {
            self.agenda.plan(at, Event::Ask(task.crowd));
        }
    }

    fn look(&mut self, at: Duration) {
        self.meter.look(at, Gauges { in_flight: self.tasks.len() as f64, ..Gauges::default() });
        let next = at + self.every_look;
        if next < self.scenario.duration {
            self.agenda.plan(next, Event::Look);
        }
    }
}

impl Task {
    fn is(&self, key: Key) -> bool {
        (self.number, self.attempts) == (key.number, key.attempt)
    }

    /// What there is to say of the attempt under way.
    const fn one(&self) -> Try {
        Try { told: self.told, retry: self.attempts > 1 }
    }
}

impl Answer {
    /// Why a gateway did not let it through.
    fn refusal(&self) -> Option<Reason> {
        self.reason.filter(|reason| {
            !matches!(
                reason,
                // These have been through: it was the service that did not answer.
                Reason::UpstreamTimeout | Reason::UpstreamConnect | Reason::UpstreamReset
            )
        })
    }

    fn timed_out(&self) -> Option<Reason> {
        self.reason.filter(|reason| *reason == Reason::UpstreamTimeout)
    }

    /// What it says about trying again, to our own client or to another.
    fn hint(&self, is_ours: bool) -> Hint {
        let exactly = self.retry_after_ms.filter(|_| is_ours);
        let told = exactly.or(self.retry_after);
        match (self.reason, self.status) {
            (Some(reason), _) => Hint::of(reason, told),
            (None, _) if told.is_some() => told.map_or(Hint::Unsaid, Hint::After),
            // What was wrong with the request will be wrong with it again, but for these two.
            (None, 400..=499) if !matches!(self.status, 408 | 429) => Hint::Never,
            (None, _) => Hint::Unsaid,
        }
    }
}

#[cfg(test)]
mod tests;
