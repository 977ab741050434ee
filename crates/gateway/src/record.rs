//! What became of one request: counted and, if the policy says so, logged, exactly once.
//!
//! A record that is dropped without having been told how the request ended says that the client left, since a future
//! that is dropped is what a client's leaving looks like from in here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, Uri, Version, request};
use tidegate_engine::{Attempt, Priority, Reason, Timestamp};
use tidegate_tower::answer::Row;

use crate::answer::Refusal;
use crate::classify::Class;
use crate::connection::Client;
use crate::live::Live;
use crate::log::Line;
use crate::metrics::{Ending, RouteStats};
use crate::rate::{Rule, Standing};
use crate::stream::Stream;
use crate::trace::{Context, Ended, Exchange, Trace, TraceId};
use crate::upstream::Upstream;

pub(crate) struct Record {
    client: Arc<Client>,
    live: Arc<Live>,
    began: Timestamp,
    /// When the first byte of the head came, if that is known.
    head_began: Option<Timestamp>,
    route: Option<usize>,
    priority: Priority,
    /// It says that it was tried before.
    retry: bool,
    /// The client's address, as far as trusted proxies tell it.
    pub(crate) address: IpAddr,
    /// What was asked for; kept only if there is a log, or a collector is told.
    asked: Option<(Method, Uri, Version)>,
    /// It stands in the queue.
    queueing: bool,
    /// Time spent in the queue.
    queued: Option<Duration>,
    /// The rate limit that it was over, by its index in the policy.
    over: Option<usize>,
    /// What tells it from others, once somebody has asked for that.
    fingerprint: Option<u64>,
    /// How the rate limits stand that it was counted against, if answers say that.
    pub(crate) standings: Vec<Standing>,
    dispatched: Option<Timestamp>,
    /// From the dispatch to the head of the answer.
    upstream: Option<Duration>,
    /// The trace that it belongs to, if that is known and anybody will ask.
    trace_id: Option<TraceId>,
    /// What is noted for a collector.
    trace: Option<Box<Trace>>,
    status: StatusCode,
    /// `None` over HTTP/1.1, where the connection is watched as a whole.
    stream: Option<Arc<Stream>>,
    /// Bytes of the answer's body that were handed on.
    bytes: u64,
    answering: bool,
    ended: bool,
}

impl Record {
    pub(crate) fn begin(client: &Arc<Client>, live: &Arc<Live>, head: &request::Parts) -> Self {
        let head_began = client.socket.request_began();
        let shared = &client.worker.shared;
        let trace = Trace::begin(shared.tracer.as_ref(), &head.headers);
        let is_logged = shared.log.is_on();
        let trace_id = match &trace {
            Some(trace) => Some(trace.id()),
            None if is_logged => Context::of(&head.headers).map(|context| context.trace),
            None => None,
        };
        let is_traced = trace.as_ref().is_some_and(|trace| trace.is_sampled());
        let asked = (is_logged || is_traced).then(|| {
            // Clones of small handles; the text itself is shared.
            (head.method.clone(), head.uri.clone(), head.version)
        });
        Self {
            began: client.now(),
            head_began,
            client: client.clone(),
            live: live.clone(),
            route: None,
            priority: Priority(0),
            retry: false,
            address: client.peer.ip().to_canonical(),
            asked,
            queueing: false,
            queued: None,
            over: None,
            fingerprint: None,
            standings: Vec::new(),
            dispatched: None,
            upstream: None,
            trace_id,
            trace,
            status: StatusCode::OK,
            stream: Stream::current(),
            bytes: 0,
            answering: false,
            ended: false,
        }
    }

    pub(crate) fn began(&self) -> Timestamp {
        self.began
    }

    /// When its client began to wait, as far as that can be known here.
    pub(crate) fn head_began(&self) -> Timestamp {
        self.head_began.unwrap_or(self.began)
    }

    pub(crate) fn routed(&mut self, route: usize) {
        self.route = Some(route);
        self.live.routes[route].open.enter();
        self.with_upstream(|stats| stats.received.add(1));
    }

    /// It is known what kind of request it is.
    pub(crate) fn classified(&mut self, class: &Class) {
        self.priority = class.priority;
        self.retry = class.attempt == Attempt::Retry;
        self.with_route(|stats| stats.arrived.add(1));
        self.fingerprint = class.fingerprint;
    }

    /// It is over this rate limit.
    pub(crate) fn over_limit(&mut self, rule: usize) {
        self.over = Some(rule);
    }

    /// It has been put in the queue.
    pub(crate) fn wait_began(&mut self) {
        self.queueing = true;
    }

    /// The wait in the queue is over, however it ended.
    pub(crate) fn wait_ended(&mut self, now: Timestamp) {
        self.queueing = false;
        let queued = now.since(self.began);
        if let Some(trace) = &mut self.trace {
            trace.waited(self.began, now);
        }
        if let Some(upstream) = self.upstream() {
            upstream.stats.waited(self.priority, queued, upstream.policy.queue.wait);
        }
        self.queued = Some(queued);
    }

    pub(crate) fn dispatched(&mut self, at: Timestamp) {
        self.dispatched = Some(at);
        self.with_upstream(|stats| stats.forwarded.add(1));
    }

    /// The upstream is told which trace the request belongs to, if somebody is.
    pub(crate) fn pass_on_trace(&self, headers: &mut HeaderMap) {
        if let Some(trace) = &self.trace {
            trace.pass_on(headers);
        }
    }

    /// Where it is to be noted whom the request is sent to.
    pub(crate) fn exchange(&mut self) -> Option<Arc<Exchange>> {
        self.trace.as_mut()?.exchange()
    }

    pub(crate) fn was_dispatched(&self) -> bool {
        self.dispatched.is_some()
    }

    /// The head of the upstream's answer has come.
    pub(crate) fn answered(&mut self, status: StatusCode, took: Duration) {
        self.with_upstream(|stats| {
            stats.answering.observe(took);
            stats.head.observe(took);
        });
        self.upstream = Some(took);
        self.status = status;
    }

    /// The client is being sent an answer's body, and may be slow to take it.
    pub(crate) fn answer_began(&mut self) {
        self.answering = true;
        self.client.socket.answer_began();
        if let Some(stream) = &self.stream {
            stream.answer_began();
        }
    }

    /// So many bytes of the answer's body go out.
    pub(crate) fn passed_on(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.client.socket.body_moved();
        if let Some(stream) = &self.stream {
            stream.moved();
        }
    }

    /// The client has had all of the upstream's answer.
    pub(crate) fn served(self) {
        let ending = if self.status.is_server_error() { Ending::ServerError } else { Ending::Success };
        if self.status.is_success() || self.status.is_redirection() {
            self.client.worker.shared.metrics.goodput.add(1);
            self.with_route(|stats| stats.goodput.add(1));
            self.with_upstream(|stats| stats.goodput.add(1));
        }
        let now = self.client.now();
        self.with_upstream(|stats| {
            stats.completed.add(1);
            stats.whole.observe(now.since(self.began));
        });
        self.end(now, ending, None);
    }

    /// The upstream broke off in the middle of its answer.
    pub(crate) fn cut_off(self) {
        let now = self.client.now();
        self.end(now, Ending::Failed, Some(Reason::UpstreamReset));
    }

    /// The client is told no.
    pub(crate) fn refused(mut self, now: Timestamp, refusal: Refusal, status: StatusCode) {
        self.status = status;
        let Refusal::Rejected(rejection) = refusal else { return self.end(now, Ending::BadRequest, None) };
        let reason = rejection.reason;
        self.count_refusal(reason);
        match reason {
            Reason::UpstreamTimeout | Reason::UpstreamConnect | Reason::UpstreamReset => {
                self.end(now, Ending::Failed, Some(reason));
            }
            Reason::ClientLeft => self.end(now, Ending::ClientLeft, Some(reason)),
            _ => {
                self.client.worker.shared.metrics.rejection.observe(now.since(self.began));
                self.end(now, Ending::Rejected, Some(reason));
            }
        }
    }

    /// Whether what exceeds the route's bulkhead is over a quota, and not more than the service can take.
    pub(crate) fn bulkhead_is_quota(&self) -> bool {
        let bulkhead = self.route.and_then(|route| self.live.policy.routes[route].bulkhead);
        bulkhead.is_some_and(|bulkhead| bulkhead.is_quota)
    }

    fn count_refusal(&self, reason: Reason) {
        if let Some(upstream) = self.upstream() {
            upstream.count_refusal(reason, self.priority);
        }
    }

    /// What tells it from others when it comes again: what the engine knows it by, or else a hash of its own.
    pub(crate) fn fingerprint(&mut self, head: &request::Parts) -> u64 {
        let returns = &self.client.worker.shared.returns;
        *self.fingerprint.get_or_insert_with(|| returns.fingerprint(self.address, head))
    }

    /// The rate limit that it was over.
    pub(crate) fn over(&self) -> Option<&Rule> {
        self.over.map(|rule| &self.live.rules[rule])
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// Where its route leads.
    pub(crate) fn upstream(&self) -> Option<&Upstream> {
        self.route.map(|route| self.live.upstreams[self.live.policy.routes[route].upstream].as_ref())
    }

    fn with_upstream(&self, act: impl FnOnce(&crate::metrics::UpstreamStats)) {
        if let Some(upstream) = self.upstream() {
            act(&upstream.stats);
        }
    }

    fn with_route(&self, act: impl FnOnce(&RouteStats)) {
        if let Some(route) = self.route {
            act(&self.live.routes[route].stats[usize::from(self.priority.0)]);
        }
    }

    fn end(mut self, now: Timestamp, ending: Ending, reason: Option<Reason>) {
        self.write(now, ending, reason);
    }

    fn write(&mut self, now: Timestamp, ending: Ending, reason: Option<Reason>) {
        self.ended = true;
        if self.queueing {
            self.wait_ended(now);
        }
        self.client.socket.request_ended(now, self.answering);
        match self.route {
            Some(route) => {
                self.live.routes[route].open.leave();
                self.live.routes[route].stats[usize::from(self.priority.0)].ended(ending, reason);
            }
            None => self.client.worker.shared.metrics.unrouted.ended(ending, reason),
        }
        self.trace(now, reason);
        self.log(now, ending, reason);
    }

    /// Tells the collector, if this one is traced.
    fn trace(&mut self, now: Timestamp, reason: Option<Reason>) {
        let Some(trace) = self.trace.take().filter(|trace| trace.is_sampled()) else { return };
        let Some((method, uri, version)) = self.asked.clone() else { return };
        let ended = Ended {
            live: self.live.clone(),
            route: self.route,
            priority: self.priority,
            method,
            path: Ended::cut(uri.path()),
            version,
            client: self.address,
            status: self.status,
            reason,
            began: self.began,
            dispatched: self.dispatched,
            answered: self.upstream.is_some(),
            at: now,
        };
        (*trace).end(&self.client.worker.shared, ended);
    }

    fn log(&self, now: Timestamp, ending: Ending, reason: Option<Reason>) {
        let log = &self.client.worker.shared.log;
        let Some((method, uri, version)) = &self.asked else { return };
        if !log.wants(now, ending) {
            return;
        }
        let policy = self.route.map(|route| &self.live.policy.routes[route]);
        let flag = reason.map_or("", |reason| Row::to(reason).flag);
        log.access(&Line {
            client: self.address,
            method,
            uri,
            version: *version,
            route: policy.map_or("", |route| &route.label),
            upstream: policy.map_or("", |route| &self.live.policy.upstreams[route.upstream].name),
            priority: policy.map_or("", |_| &self.live.policy.priorities[usize::from(self.priority.0)].name),
            attempt: if self.retry { "retry" } else { "" },
            status: self.status.as_u16(),
            reason: reason.map_or("", Reason::name),
            flag,
            rate_limit: self.over.map(|rule| self.live.rules[rule].name.as_str()),
            trace: self.trace_id,
            queued: self.queued,
            upstream_time: self.upstream,
            total: now.since(self.began),
            bytes: self.bytes,
        });
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.count_refusal(Reason::ClientLeft);
        self.status = Row::to(Reason::ClientLeft).status;
        self.write(self.client.now(), Ending::ClientLeft, Some(Reason::ClientLeft));
    }
}
