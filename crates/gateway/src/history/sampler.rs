//! Reads the counters, and writes what has become of them in a second. The order in which it reads is that of a
//! [`Layout`], and everything that a sample has is named here.
//!
//! Whoever serves requests knows nothing of it, and pays for it with some seven additions more for each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::{BreakerState, PRIORITIES_MAX, Reason, Snapshot, Timestamp};

use super::verdict::{Kind, Lately, Level, Second};
use super::window::Window;
use super::{Layout, Sample, Tape};
use crate::clock;
use crate::gateway::Shared;
use crate::live::Live;
use crate::metrics::RouteStats;
use crate::upstream::{Decision, Upstream};

/// How often in a second it is looked how many are in flight and waiting, so that a second has a mean and a most.
pub(crate) const LOOKS: u32 = 10;

pub(crate) struct Sampler {
    live: Arc<Live>,
    layout: Arc<Layout>,
    tape: Tape,
    /// In the order of the policy.
    upstreams: Vec<Watched>,
    last: Timestamp,
    id: u64,
}

/// What is remembered of an upstream from one look to the next.
struct Watched {
    whole: Window,
    head: Window,
    looks: Looks,
    lately: Lately,
}

/// What was seen since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    count: u32,
    in_flight: u64,
    waiting: u64,
    most_waiting: u32,
}

impl Watched {
    fn new(upstream: &Upstream) -> Self {
        let stats = &upstream.stats;
        Self {
            whole: Window::new(&stats.whole),
            head: Window::new(&stats.head),
            looks: Looks::default(),
            lately: Lately::default(),
        }
    }
}

impl Sampler {
    /// To be made when the gateway starts.
    pub(crate) fn new(shared: &Shared) -> Self {
        let live = shared.live();
        let mut sampler = Self {
            upstreams: live.upstreams.iter().map(|upstream| Watched::new(upstream)).collect(),
            live,
            layout: Arc::default(),
            tape: Tape::default(),
            last: shared.clock.now(),
            id: 0,
        };
        sampler.take_down_names(shared);
        sampler.tape.begin_at_zero();
        sampler
    }

    /// To be called [`LOOKS`] times a second.
    pub(crate) fn look(&mut self) {
        for (upstream, watched) in self.live.upstreams.iter().zip(&mut self.upstreams) {
            let snapshot = upstream.gate.snapshot();
            let looks = &mut watched.looks;
            looks.count += 1;
            looks.in_flight += u64::from(snapshot.in_flight);
            looks.waiting += u64::from(snapshot.queue_depth);
            looks.most_waiting = looks.most_waiting.max(snapshot.queue_depth);
        }
    }

    /// To be called once a second.
    pub(crate) fn sample(&mut self, shared: &Shared) -> Sample {
        let live = shared.live();
        if !Arc::ptr_eq(&live, &self.live) {
            self.reloaded(shared, live);
        }
        let now = shared.clock.now();
        let seconds = now.since(self.last).as_secs_f64();
        self.last = now;
        self.id += 1;
        for (upstream, watched) in self.live.upstreams.iter().zip(&mut self.upstreams) {
            watched.whole.look(&upstream.stats.whole);
            watched.head.look(&upstream.stats.head);
        }
        let mut tape = std::mem::take(&mut self.tape);
        tape.begin(seconds);
        self.write(&mut tape, shared);
        self.tape = tape;
        debug_assert_eq!(self.tape.values().len(), self.layout.len(), "every number has a name");
        for watched in &mut self.upstreams {
            watched.looks = Looks::default();
        }
        Sample {
            id: self.id,
            at_millis: clock::wall().as_millisecond(),
            seconds: seconds as f32,
            layout: self.layout.clone(),
            values: self.tape.values(),
        }
    }

    /// Another policy is in force. If it has other names, what was counted since the last sample is in none.
    fn reloaded(&mut self, shared: &Shared, live: Arc<Live>) {
        let before = self.live.upstreams.iter().map(|upstream| upstream.policy.name.clone());
        let mut before: HashMap<String, Watched> = before.zip(self.upstreams.drain(..)).collect();
        self.upstreams = live
            .upstreams
            .iter()
            .map(|upstream| before.remove(&upstream.policy.name).unwrap_or_else(|| Watched::new(upstream)))
            .collect();
        self.live = live;
        self.take_down_names(shared);
    }

    fn take_down_names(&mut self, shared: &Shared) {
        let mut tape = Tape::naming();
        self.write(&mut tape, shared);
        let layout = tape.layout();
        // A reload that changes no name goes on with the names that there are, and with what was counted under them.
        if layout != *self.layout {
            self.layout = Arc::new(layout);
            self.tape = tape;
        }
    }

    fn write(&mut self, tape: &mut Tape, shared: &Shared) {
        let live = self.live.clone();
        tape.group("gateway", |tape| {
            let metrics = &shared.metrics;
            tape.rate("goodput", metrics.goodput.get());
            tape.rate("unrouted", metrics.unrouted.ended_total());
            tape.gauge("client_connections", metrics.client_connections.now_open() as f64);
            tape.gauge("upstream_connections", metrics.upstream_connections.now_open() as f64);
            tape.gauge("draining", u8::from(!shared.is_serving()));
        });
        tape.group("upstreams", |tape| {
            for (index, (upstream, watched)) in live.upstreams.iter().zip(&mut self.upstreams).enumerate() {
                tape.group(&upstream.policy.name, |tape| {
                    one(tape, shared, &live, index, upstream, watched);
                });
            }
        });
        tape.group("rate_limits", |tape| {
            for rule in &live.rules {
                tape.group(&rule.name, |tape| {
                    tape.rate("refused", rule.refused());
                    tape.rate("overflowed", rule.overflowed());
                });
            }
        });
    }
}

/// The reasons that are the gateway's own no. After the others the upstream has had the request, or its client has left.
fn is_refusal(reason: Reason) -> bool {
    !is_failure(reason) && reason != Reason::ClientLeft
}

fn is_failure(reason: Reason) -> bool {
    matches!(reason, Reason::UpstreamTimeout | Reason::UpstreamConnect | Reason::UpstreamReset)
}

fn one(
    tape: &mut Tape,
    shared: &Shared,
    live: &Live,
    index: usize,
    upstream: &Upstream,
    watched: &mut Watched,
) {
    let (stats, snapshot, looks) = (&upstream.stats, upstream.gate.snapshot(), watched.looks);
    let rejected = |reason: Reason| stats.rejected[reason as usize].get();
    let total = |of: fn(Reason) -> bool| Reason::ALL.into_iter().filter(|it| of(*it)).map(rejected).sum();
    let mut second = Second {
        arrivals: tape.rate("arrivals", stats.received.get()),
        goodput: tape.rate("goodput", stats.goodput.get()),
        ..Second::default()
    };
    tape.rate("completed", stats.completed.get());
    second.refused = tape.rate("refused", total(is_refusal));
    second.failed = tape.rate("failed", total(is_failure));
    second.client_left = tape.rate("client_left", rejected(Reason::ClientLeft));
    // Seconds of the upstream in a second of time.
    tape.rate("wasted_ms", stats.wasted.get() / 1_000_000);
    tape.group("rejected", |tape| {
        for reason in Reason::ALL {
            second.rejected[reason as usize] = tape.rate(reason.name(), rejected(reason));
        }
    });
    let mean = |sum: u64| (looks.count > 0).then(|| sum as f64 / f64::from(looks.count));
    let in_flight = mean(looks.in_flight).unwrap_or_else(|| snapshot.in_flight.into());
    let waiting = mean(looks.waiting).unwrap_or_else(|| snapshot.queue_depth.into());
    tape.gauge("limit", snapshot.limit);
    tape.gauge("in_flight", snapshot.in_flight);
    tape.gauge("in_flight_mean", in_flight);
    tape.gauge("max_in_flight", snapshot.max_in_flight);
    tape.gauge("orphans", snapshot.orphans);
    tape.group("queue", |tape| {
        tape.gauge("now", snapshot.queue_depth);
        tape.gauge("mean", waiting);
        tape.gauge("most", looks.most_waiting.max(snapshot.queue_depth));
        tape.gauge("max", snapshot.max_queue_depth);
        tape.gauge("capacity", snapshot.queue_capacity);
        tape.gauge("wait_budget_ms", millis(upstream.policy.queue.wait));
    });
    tape.group("priorities", |tape| classes(tape, live, index, upstream, &snapshot));
    for (name, window) in [("latency_ms", &watched.whole), ("upstream_ms", &watched.head)] {
        tape.group(name, |tape| {
            tape.group("second", |tape| window.second().for_each(|(name, value)| tape.perhaps(name, value)));
            tape.group("minute", |tape| window.minute().for_each(|(name, value)| tape.perhaps(name, value)));
        });
    }
    let all_open = protection(tape, shared, upstream, &snapshot);
    second = Second { taken: in_flight, limit: snapshot.limit.into(), waiting, ..second };
    if !tape.is_naming() {
        watched.lately.push(second);
    }
    tape.group("verdict", |tape| judged(tape, &watched.lately.mean(), all_open));
    little(tape, upstream, &snapshot, in_flight);
    tape.group("routes", |tape| routes(tape, live, index));
}

fn classes(tape: &mut Tape, live: &Live, index: usize, upstream: &Upstream, snapshot: &Snapshot) {
    for (class, policy) in live.policy.priorities.iter().enumerate().take(PRIORITIES_MAX) {
        let sum = |count: fn(&RouteStats) -> u64| {
            let routes = live.policy.routes.iter().zip(&live.routes);
            let of_upstream = routes.filter(|(route, _)| route.upstream == index);
            of_upstream.filter_map(|(_, route)| route.stats.get(class)).map(|stats| count(stats)).sum()
        };
        let waits = &upstream.stats.waits[class];
        tape.group(&policy.name, |tape| {
            tape.rate("arrivals", sum(|stats| stats.arrived.get()));
            tape.rate("goodput", sum(|stats| stats.goodput.get()));
            tape.rate("refused", sum(refused));
            tape.gauge("in_flight", snapshot.in_flight_by_priority[class]);
            tape.gauge("waiting", snapshot.waiting_by_priority[class]);
            let (count, nanos) = (tape.grown(waits.count.get()), tape.grown(waits.nanos.get()));
            tape.perhaps("wait_ms", (count > 0).then(|| nanos as f64 / count as f64 / 1e6));
            let longest = waits.take_longest();
            tape.perhaps("wait_max_ms", (count > 0).then(|| millis(longest)));
        });
    }
}

fn refused(stats: &RouteStats) -> u64 {
    Reason::ALL.into_iter().filter(|reason| is_refusal(*reason)).map(|reason| stats.rejected(reason)).sum()
}

/// The names of all reasons, in their order.
const REASONS: &[&str] = &{
    let mut names = [""; Reason::ALL.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = Reason::ALL[place].name();
        place += 1;
    }
    names
};

/// The verdict, and the means that it is made of.
fn judged(tape: &mut Tape, lately: &Second, all_open: bool) {
    let kind = lately.judge(all_open);
    let reason = lately.reason();
    tape.word("kind", Kind::NAMES, Some(kind as usize));
    tape.word("level", Level::NAMES, Some(kind.level() as usize));
    // What is most in need of a look has the most.
    let tie = match kind {
        Kind::ClientsLeave => lately.client_left / lately.arrivals.max(lately.client_left),
        _ => 0.0,
    };
    tape.gauge("weight", f64::from(kind as u8) + tie.min(0.9));
    tape.gauge("arrivals", lately.arrivals);
    tape.gauge("goodput", lately.goodput);
    tape.gauge("refused", lately.refused);
    tape.gauge("failed", lately.failed);
    tape.gauge("client_left", lately.client_left);
    tape.gauge("taken", lately.taken);
    tape.gauge("limit", lately.limit);
    tape.gauge("waiting", lately.waiting);
    tape.word("reason", REASONS, reason.map(|(reason, _)| reason as usize));
    tape.perhaps("for_reason", reason.map(|(_, count)| count));
}

/// Gives whether no endpoint can be used.
fn protection(tape: &mut Tape, shared: &Shared, upstream: &Upstream, snapshot: &Snapshot) -> bool {
    let now = shared.clock.now();
    let mut all_open = false;
    tape.group("breakers", |tape| {
        let has_breaker = upstream.policy.breaker.is_some();
        let states: Vec<BreakerState> = upstream.endpoints.iter().map(|one| one.state(now)).collect();
        for state in [BreakerState::Closed, BreakerState::HalfOpen, BreakerState::Open] {
            let count = if has_breaker {
                states.iter().filter(|it| **it == state).count()
            } else if state == BreakerState::Closed {
                states.len()
            } else {
                0
            };
            tape.gauge(state.name(), count as f64);
            all_open = state == BreakerState::Open && count > 0 && count == states.len();
        }
    });
    tape.group("retries", |tape| {
        tape.rate("sent", upstream.retries.decided(Decision::Retried));
        tape.rate("refused", upstream.stats.rejected[Reason::RetryBudget as usize].get());
        tape.perhaps("budget", snapshot.retries_left.map(f64::from));
        tape.gauge("budget_max", f64::from(upstream.policy.retries.burst));
    });
    all_open
}

/// Little's law (J. D. C. Little, "A proof for the queuing formula L = λW", 1961), of the slots: how many leave in a second
/// and how many are taken are seen, and so it is known for how long each is taken.
fn little(tape: &mut Tape, upstream: &Upstream, snapshot: &Snapshot, in_flight: f64) {
    tape.group("little", |tape| {
        let left = tape.grown(snapshot.counts.completed);
        let lambda = tape.per_second(left);
        let service = snapshot.service_time.map(|time| time.as_secs_f64()).filter(|time| *time > 0.0);
        tape.gauge("lambda", lambda);
        tape.perhaps("w_ms", (left > 0).then(|| in_flight / lambda * 1e3));
        tape.gauge("l", in_flight);
        tape.perhaps("service_ms", service.map(|time| time * 1e3));
        // As many as can be served within the budget by all slots (docs/sizing.md).
        let wait = upstream.policy.queue.wait.as_secs_f64();
        tape.perhaps("queue_bound", service.map(|time| (wait * f64::from(snapshot.limit) / time).floor()));
    });
}

fn routes(tape: &mut Tape, live: &Live, index: usize) {
    let mut seen = HashSet::new();
    for (policy, route) in live.policy.routes.iter().zip(&live.routes) {
        // Of two with one label the second is never reached.
        if policy.upstream != index || !seen.insert(&policy.label) {
            continue;
        }
        let sum = |count: fn(&RouteStats) -> u64| route.stats.iter().map(|stats| count(stats)).sum();
        tape.group(&policy.label, |tape| {
            tape.rate("arrivals", sum(|stats| stats.arrived.get()));
            tape.rate("goodput", sum(|stats| stats.goodput.get()));
            tape.rate("refused", sum(refused));
            tape.gauge("now", route.open.now() as f64);
            tape.gauge("max", route.open.most() as f64);
            tape.perhaps("limit", policy.bulkhead.map(|bulkhead| bulkhead.max.get().into()));
        });
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
