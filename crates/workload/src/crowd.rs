//! Clients of one sort: when the next one comes, and what each does about a failure.
//!
//! The simulator and the load generator ask it the same questions, so whoever comes in virtual time comes on a socket at
//! the same moment and for the same thing. It sends nothing and knows no clock.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{Advice, CallerPolicy, Reply, Timestamp};

use crate::arrivals::OpenArrivals;
use crate::cubic::CubicRate;
use crate::random::{Purpose, Random};
use crate::resilient::{Course, Resilient};
use crate::retry::{CallerId, Failed, Next, Retries};
use crate::scenario::{Arrivals, Clients, ServiceTime};

/// Clients of one sort, as they are during a run.
#[derive(Debug)]
pub struct Crowd<'a> {
    /// Who they are.
    pub clients: &'a Clients,
    source: Source<'a>,
    retries: Retries,
    /// Those who have our own client, and decide with it.
    resilient: Option<Resilient>,
    /// The rate that they allow themselves, if they slow down.
    rate: Option<CubicRate>,
    arriving: Random,
    choosing: Random,
    deciding: Random,
}

#[derive(Debug)]
enum Source<'a> {
    Open(OpenArrivals),
    Bursts { left: &'a [(Duration, u32)] },
    Closed { think: &'a ServiceTime, until: Duration },
    Recorded,
}

impl<'a> Crowd<'a> {
    /// Nobody has come yet. `index` is the place of these clients in the scenario.
    pub fn new(clients: &'a Clients, seed: u64, index: usize) -> Self {
        let source = match &clients.arrivals {
            Arrivals::Open { spacing, together, pieces } => {
                Source::Open(OpenArrivals::new(*spacing, *together, pieces))
            }
            Arrivals::Bursts(list) => Source::Bursts { left: list },
            Arrivals::Closed { think, until, .. } => Source::Closed { think, until: *until },
            Arrivals::Recorded => Source::Recorded,
        };
        Self {
            clients,
            source,
            retries: Retries::new(clients.retry),
            resilient: clients
                .retry
                .resilient
                .map(|callers| Resilient::new(&caller_policy(clients), callers)),
            rate: clients.retry.slows_down.then(CubicRate::default),
            arriving: Random::stream(seed, Purpose::Arrivals, index),
            choosing: Random::stream(seed, Purpose::Mix, index),
            deciding: Random::stream(seed, Purpose::Clients, index),
        }
    }

    /// When the next come who do not wait for anything, and how many.
    pub fn next_arrivals(&mut self) -> Option<(Duration, u32)> {
        match &mut self.source {
            Source::Open(arrivals) => arrivals.next(&mut self.arriving),
            Source::Bursts { left } => {
                let (next, rest) = left.split_first()?;
                *left = rest;
                Some(*next)
            }
            Source::Closed { .. } | Source::Recorded => None,
        }
    }

    /// When somebody who has had an answer, or has given up, asks again; `None` if not.
    pub fn asks_again(&mut self, now: Duration) -> Option<Duration> {
        let Source::Closed { think, until } = &self.source else { return None };
        let at = now + think.draw(&mut self.arriving);
        (at < *until).then_some(at)
    }

    /// When the users who go round and round ask for the first time: one after the other within the time that they
    /// think, so that they are not in step.
    pub fn first_asks(&mut self) -> Vec<Duration> {
        let Arrivals::Closed { users, think, from, .. } = &self.clients.arrivals else { return Vec::new() };
        (0..*users).map(|_| *from + think.draw(&mut self.arriving).mul_f64(self.arriving.uniform())).collect()
    }

    /// The kind of the next request, as an index into the mix.
    pub fn kind(&mut self) -> usize {
        self.clients.draw_kind(&mut self.choosing)
    }

    /// Which of the tenants behind one name the next request is of.
    pub fn tenant(&mut self) -> usize {
        match self.clients.tenants.get() {
            1 => 0,
            tenants => self.choosing.below(tenants as usize),
        }
    }

    /// How long they wait before they send, because they were refused.
    pub fn holds_back(&mut self, now: Duration) -> Option<Duration> {
        let wait = self.rate.as_mut()?.send(now);
        (!wait.is_zero()).then_some(wait)
    }

    /// An attempt of one of them has been answered, or refused. That it has [failed](Self::failed) is told besides.
    pub fn answered(&mut self, now: Duration, caller: CallerId, success: bool) {
        if success {
            self.retries.succeeded(now, caller);
        }
        match &mut self.rate {
            Some(rate) if success => rate.succeeded(now),
            Some(rate) => rate.refused(now),
            None => {}
        }
    }

    /// One of them makes a first try. Which one does not depend on what became of others, so all policies meet the same.
    pub fn first_try(&mut self) -> CallerId {
        self.retries.first_try(&mut self.choosing)
    }

    /// The course of a call by one of those who have our own client; `None` for all others.
    pub fn begin(&mut self, now: Timestamp) -> Option<Course> {
        let resilient = self.resilient.as_mut()?;
        Some(resilient.begin(now, self.clients.timeout, &mut self.deciding))
    }

    /// Whether the next try of such a call is sent.
    pub fn sends(&mut self, now: Timestamp, course: &mut Course) -> bool {
        self.resilient.as_mut().is_none_or(|resilient| resilient.send(now, course, &mut self.deciding))
    }

    /// A try of such a call has ended.
    pub fn ended(&mut self, now: Timestamp, course: &mut Course, said: (Reply, Advice)) -> Next {
        match &mut self.resilient {
            Some(resilient) => resilient.ended(now, course, said, &mut self.deciding),
            None => Next::GiveUp,
        }
    }

    /// A try of one of them has failed.
    pub fn failed(&mut self, now: Duration, failed: Failed) -> Next {
        self.retries.failed(now, failed, &mut self.deciding)
    }
}

fn caller_policy(clients: &Clients) -> CallerPolicy {
    /// A probe of which nothing was heard for so long is given up, where clients wait for ever.
    const PATIENT: Duration = Duration::from_secs(10);
    let attempts = NonZeroU32::new(clients.retry.attempts).unwrap_or(NonZeroU32::MIN);
    CallerPolicy { attempts, ..CallerPolicy::careful(clients.timeout.unwrap_or(PATIENT)) }
}
