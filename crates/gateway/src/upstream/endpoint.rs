//! One address of an upstream: how much is under way to it, and what is known of how it does.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tidegate_engine::{Breaker, BreakerPolicy, BreakerState, Pass, Refused, Tally, Timestamp, Verdict};
use tidegate_policy::{Endpoint as Address, Host};
use tokio::net::TcpStream;

pub(crate) struct Endpoint {
    /// Never used twice, so that a pool cannot mix up endpoints of different policies.
    pub(super) id: u64,
    pub(crate) address: Address,
    in_flight: AtomicU32,
    breaker: Mutex<Breaker>,
    /// Whether the breaker was closed after the last look at it, so that most looks need no lock.
    closed: AtomicBool,
    /// What the health checks say, if there are any.
    healthy: AtomicBool,
    /// Whether they have said anything yet.
    checked: AtomicBool,
}

impl Endpoint {
    pub(super) fn new(address: Address, policy: BreakerPolicy) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Relaxed),
            address,
            in_flight: AtomicU32::new(0),
            breaker: Mutex::new(Breaker::new(policy)),
            closed: AtomicBool::new(true),
            healthy: AtomicBool::new(true),
            checked: AtomicBool::new(false),
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.healthy.load(Relaxed)
    }

    /// Whether a health check has found out anything yet.
    pub(super) fn is_checked(&self) -> bool {
        self.checked.load(Relaxed)
    }

    /// A health check has found out.
    pub(super) fn found(&self, now: Timestamp, healthy: bool) {
        self.checked.store(true, Relaxed);
        let was_healthy = self.healthy.swap(healthy, Relaxed);
        if healthy && !was_healthy {
            // It is back, so there is no need to wait for the end of a time that was only a guess.
            self.with_breaker(|breaker| breaker.hasten(now));
        }
    }

    pub(super) fn reconfigure(&self, now: Timestamp, policy: BreakerPolicy) {
        self.with_breaker(|breaker| breaker.reconfigure(now, policy));
    }

    /// Whether a request could be sent here now, as far as the breaker says.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), Refused> {
        self.with_breaker(|breaker| breaker.check(now))
    }

    pub(super) fn trip(&self, now: Timestamp) {
        self.with_breaker(|breaker| breaker.trip(now));
    }

    pub(super) fn tally(&self, now: Timestamp) -> Tally {
        self.with_breaker(|breaker| breaker.tally(now))
    }

    /// Whether it was ejected because others do better: then it answers at least in part.
    pub(super) fn is_outlier(&self) -> bool {
        self.with_breaker(|breaker| breaker.is_outlier())
    }

    pub(crate) fn state(&self, now: Timestamp) -> BreakerState {
        self.with_breaker(|breaker| breaker.state(now))
    }

    /// How it stands, for people and scripts.
    pub(crate) fn stats(&self, now: Timestamp) -> Value {
        let (state, openings, is_outlier, tally) = self.with_breaker(|breaker| {
            (breaker.state(now), breaker.openings(), breaker.is_outlier(), breaker.tally(now))
        });
        json!({
            "address": self.to_string(),
            "breaker": state.name(),
            "ejected": is_outlier,
            "healthy": self.is_healthy(),
            "opened": openings,
            "in_flight": self.in_flight(),
            "lately": {
                "requests": tally.requests,
                "failures": tally.failures,
                "overloads": tally.overloads,
            },
        })
    }

    /// Counts an exchange with this endpoint until the visit is over, without asking the breaker.
    pub(super) fn enter(self: &Arc<Self>) -> Visit {
        self.in_flight.fetch_add(1, Relaxed);
        Visit { endpoint: self.clone(), pass: None }
    }

    /// The same, if the breaker lets it pass.
    pub(super) fn try_enter(self: &Arc<Self>, now: Timestamp) -> Result<Visit, Refused> {
        let pass = self.with_breaker(|breaker| breaker.try_pass(now))?;
        let mut visit = self.enter();
        visit.pass = Some(pass);
        Ok(visit)
    }

    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        let port = self.address.port;
        let stream = match &self.address.host {
            Host::Ip(address) => TcpStream::connect(SocketAddr::new(*address, port)).await?,
            Host::Name(name) => TcpStream::connect((name.as_str(), port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn with_breaker<T>(&self, act: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let value = act(&mut breaker);
        // Whether it is closed does not depend on the time.
        self.closed.store(breaker.state(Timestamp::ZERO) == BreakerState::Closed, Relaxed);
        value
    }
}

/// As it stands in a `Host` field.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// One exchange with an endpoint. It says once what came of it; dropped before, it says nothing, and a probe gives its
/// place back.
pub(crate) struct Visit {
    endpoint: Arc<Endpoint>,
    /// `None` once it has been said, and where no breaker was asked.
    pass: Option<Pass>,
}

impl Visit {
    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Whether it has been said what came of it, or nobody asks.
    pub(super) const fn has_said(&self) -> bool {
        self.pass.is_none()
    }

    /// What came of it. Only the first verdict counts.
    pub(super) fn say(&mut self, now: Timestamp, verdict: Verdict) {
        if let Some(pass) = self.pass.take() {
            self.endpoint.with_breaker(|breaker| breaker.complete(now, pass, verdict));
        }
    }

    /// Nobody waits for the answer any more, so that it may be long in coming: a probe makes room for another.
    pub(super) fn is_left(&mut self) {
        if self.pass.as_ref().is_some_and(Pass::is_probe) {
            self.say(Timestamp::ZERO, Verdict::Nothing);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // The breaker's own time is late enough to give a place back.
        self.say(Timestamp::ZERO, Verdict::Nothing);
        self.endpoint.in_flight.fetch_sub(1, Relaxed);
    }
}
