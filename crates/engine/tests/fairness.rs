//! Fairness between tenants, beside an oracle that knows nothing of queues: it divides the slots by max-min fairness.
//!
//! The scenarios and margins are those by which Kubernetes holds its own API Priority and Fairness to account
//! (kubernetes/apiserver, `queueset_test.go`): so many slots, and clients that each ask with so many threads, work for a
//! while and think for a while. A margin is how far a client's average number of slots may be from its fair share, as a
//! part of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::*;

/// One tenant.
#[derive(Clone, Copy)]
struct Client {
    id: u64,
    threads: u32,
    /// How long a request takes its slots.
    works_ms: u64,
    thinks_ms: u64,
    /// How many slots it takes.
    slots: u32,
    from_ms: u64,
    weight: u32,
}

const fn client(id: u64, threads: u32, works_ms: u64, thinks_ms: u64) -> Client {
    // Any hash that is another for another tenant.
    let id = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Client { id, threads, works_ms, thinks_ms, slots: 1, from_ms: 0, weight: 1 }
}

/// What happens next, and to which thread of which client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Asks,
    IsDone,
}

struct Play<'a> {
    clients: &'a [Client],
    admission: Admission,
    agenda: BTreeSet<(u64, Next, usize, u32)>,
    waiting: BTreeMap<usize, (usize, u32)>,
    /// By client, thread, and when it began.
    permits: BTreeMap<(usize, u32, u64), Permit>,
    /// Slot-milliseconds of each client since the watch began.
    used: Vec<u64>,
    watched_from: u64,
}

/// Average slots of each client between the two moments.
fn play(slots: u32, clients: &[Client], from_ms: u64, until_ms: u64) -> Vec<f64> {
    let hour = Duration::from_secs(3600);
    let policy = AdmissionPolicy::new(
        LimitPolicy::Fixed(NonZeroU32::new(slots).unwrap()),
        QueuePolicy { discipline: Discipline::Fifo, ..QueuePolicy::of(hour, Capacity::Fixed(1000)) },
    );
    let mut play = Play {
        clients,
        admission: Admission::new(policy),
        agenda: BTreeSet::new(),
        waiting: BTreeMap::new(),
        permits: BTreeMap::new(),
        used: vec![0; clients.len()],
        watched_from: from_ms,
    };
    for (index, client) in clients.iter().enumerate() {
        play.agenda.extend((0..client.threads).map(|thread| (client.from_ms, Next::Asks, index, thread)));
    }
    while let Some((at, next, client, thread)) = play.agenda.pop_first()
        && at < until_ms
    {
        match next {
            Next::Asks => play.ask(at, client, thread),
            Next::IsDone => play.end(at, client, thread),
        }
    }
    let open: Vec<_> = play.permits.keys().copied().collect();
    for (client, _, since) in open {
        play.count(client, since, until_ms);
    }
    play.used.iter().map(|used| *used as f64 / (until_ms - from_ms) as f64).collect()
}

impl Play<'_> {
    fn ask(&mut self, at: u64, index: usize, thread: u32) {
        let client = self.clients[index];
        let tenant = Tenant { id: client.id, weight: NonZeroU32::new(client.weight).unwrap() };
        let arrival =
            Arrival::new(RouteId(0)).with_tenant(tenant).with_cost(NonZeroU32::new(client.slots).unwrap());
        match self.admission.arrive(Timestamp::from_millis(at), arrival) {
            Decision::Admit(permit) => self.begin(at, index, thread, permit),
            Decision::Queue(ticket) => drop(self.waiting.insert(ticket.id().index(), (index, thread))),
            Decision::Reject(rejection) => panic!("{rejection:?}"),
        }
        self.listen(at);
    }

    fn begin(&mut self, at: u64, index: usize, thread: u32, permit: Permit) {
        let client = self.clients[index];
        self.permits.insert((index, thread, at), permit);
        let done = at + client.works_ms;
        self.agenda.insert((done, Next::IsDone, index, thread));
        // A thread that does not think asks again just before it is done, so that it is in line when its slot is free.
        self.agenda.insert((done + client.thinks_ms, Next::Asks, index, thread));
    }

    fn end(&mut self, at: u64, index: usize, thread: u32) {
        let since = at - self.clients[index].works_ms;
        let permit = self.permits.remove(&(index, thread, since)).unwrap();
        self.count(index, since, at);
        self.admission.complete(Timestamp::from_millis(at), permit, Outcome::Success);
        self.listen(at);
    }

    fn count(&mut self, index: usize, since: u64, until: u64) {
        let watched = until.saturating_sub(since.max(self.watched_from));
        self.used[index] += watched * u64::from(self.clients[index].slots);
    }

    fn listen(&mut self, at: u64) {
        while let Some(event) = self.admission.poll_event() {
            let Event::Granted { ticket, permit } = event else { panic!("somebody was refused") };
            let (index, thread) = self.waiting.remove(&ticket.index()).unwrap();
            self.begin(at, index, thread, permit);
        }
    }
}

/// Max-min fairness by filling up: everybody's share grows evenly, by weight, until it has what it wants or nothing is left.
fn fair(slots: u32, clients: &[Client]) -> Vec<f64> {
    let wants: Vec<f64> = clients
        .iter()
        .map(|client| {
            let busy = client.works_ms as f64 / (client.works_ms + client.thinks_ms) as f64;
            f64::from(client.threads * client.slots) * busy
        })
        .collect();
    let mut has = vec![0.0; clients.len()];
    let mut left = f64::from(slots);
    loop {
        let open: Vec<usize> = (0..wants.len()).filter(|n| wants[*n] - has[*n] > 1e-9).collect();
        let weights: f64 = open.iter().map(|n| f64::from(clients[*n].weight)).sum();
        if open.is_empty() || left < 1e-9 {
            return has;
        }
        // As far as the first of them is satisfied.
        let level = |n: &usize| (wants[*n] - has[*n]) / f64::from(clients[*n].weight);
        let step = open.iter().map(level).fold(left / weights, f64::min);
        for n in open {
            has[n] += step * f64::from(clients[n].weight);
        }
        left -= step * weights;
    }
}

fn check(what: &str, slots: u32, clients: &[Client], margin: f64) {
    let (got, share) = (play(slots, clients, 10_000, 110_000), fair(slots, clients));
    for (got, share) in got.iter().zip(&share) {
        let off = (got - share).abs() / share;
        assert!(off <= margin, "{what}: {got:.3} slots, and {share:.3} would be fair");
    }
}

#[test]
fn the_oracle_divides_by_max_min() {
    let clients = [client(1, 1, 50, 50), client(2, 8, 50, 0), Client { weight: 2, ..client(3, 8, 50, 0) }];
    assert_eq!(fair(5, &clients), [0.5, 1.5, 3.0]);
    assert_eq!(fair(99, &clients), [0.5, 8.0, 8.0]);
}

/// The uniform scenarios of Kubernetes, and some of our own.
#[test]
fn everybody_has_its_fair_share() {
    let think = 999;
    check("8 and 8 threads", 4, &[client(1, 8, 1000, think), client(2, 8, 1000, think)], 0.01);
    check("8 threads, and 7 that think less", 4, &[client(1, 8, 1000, 1000), client(2, 7, 1000, 500)], 0.01);
    check("4 and 2 threads", 3, &[client(1, 4, 1000, think), client(2, 2, 1000, think)], 0.01);
    let wide = Client { slots: 2, ..client(2, 7, 1000, think) };
    check("one slot and two", 6, &[client(1, 13, 1000, think), wide], 0.155);
    check("one that works ten times as long", 4, &[client(1, 8, 100, 0), client(2, 8, 1000, 0)], 0.05);
    check("little and much", 10, &[client(1, 1, 50, 50), client(2, 99, 50, 0), client(3, 99, 20, 0)], 0.02);
    let heavy = Client { weight: 3, ..client(2, 20, 50, 0) };
    check("one and three parts", 8, &[client(1, 20, 50, 0), heavy], 0.02);
}

/// Kubernetes' test of winding up: one that could not use its share for a while, and then asks for more. It has no credit
/// from that time, and the others have no debt. There a margin of 0.26 is allowed.
#[test]
fn nobody_saves_up() {
    let clients =
        [client(1, 2, 1000, 0), client(2, 1, 1000, 0), Client { from_ms: 40_000, ..client(2, 1, 1000, 0) }];
    assert_eq!(play(3, &clients, 10_000, 40_000), [2.0, 1.0, 0.0]);
    let slots = play(3, &clients, 40_000, 80_000);
    for (got, fair) in [(slots[0], 1.5), (slots[1] + slots[2], 1.5)] {
        assert!((got - fair).abs() / fair <= 0.26, "{slots:?}");
    }
    // And one that was not there at all.
    let late = Client { from_ms: 60_000, ..client(3, 8, 1000, 0) };
    for slots in play(3, &[client(1, 8, 1000, 0), client(2, 8, 1000, 0), late], 60_000, 70_000) {
        assert!((slots - 1.0).abs() <= 0.1, "{slots} slots of 3 in the first ten seconds");
    }
}

/// More tenants than there are flows: they share, and still nobody is without. What is kept does not grow.
#[test]
fn ten_thousand_tenants_share_what_there_is() {
    let clients: Vec<Client> = (0..10_000).map(|n| client(n + 1, 1, 10, 100_000)).collect();
    let quiet = [clients, vec![client(77_777, 400, 10, 0)]].concat();
    let hour = Duration::from_secs(3600);
    let mut admission = Admission::new(AdmissionPolicy::new(
        LimitPolicy::Fixed(NonZeroU32::MIN),
        QueuePolicy::of(hour, Capacity::Fixed(20_000)),
    ));
    let mut running = None;
    for client in quiet.iter().flat_map(|client| std::iter::repeat_n(client, client.threads as usize)) {
        let arrival = Arrival::new(RouteId(0)).with_tenant(Tenant::new(client.id));
        match admission.arrive(Timestamp::ZERO, arrival) {
            Decision::Admit(permit) => running = Some(permit),
            Decision::Queue(_) => {}
            Decision::Reject(rejection) => panic!("{rejection:?}"),
        }
    }
    let mut served = 0;
    for millis in 1.. {
        let Some(permit) = running.take() else { break };
        admission.complete(Timestamp::from_millis(millis), permit, Outcome::Success);
        served += 1;
        if let Some(Event::Granted { permit, .. }) = admission.poll_event() {
            running = Some(permit);
        }
    }
    assert_eq!(served, 10_400);
}
