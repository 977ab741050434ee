//! What is noted of a request on its way, if it is traced: when it waited, and whom it was sent to.
//!
//! Three spans come of it: one for the request as a whole, one for its wait in the queue, one for its exchange with the
//! upstream. They are made by the exporter, from what was noted; here nothing is put into words. A request that is not
//! sampled has a trace too, since the upstream is told of it, but nothing is noted.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use tidegate_engine::Timestamp;
use tokio::sync::mpsc;

use super::Ended;
use super::context::{Context, SpanId, TRACEPARENT, TRACESTATE, TraceId};
use super::ids::{Ids, is_within};
use crate::gateway::Shared;
use crate::upstream::Endpoint;

/// Requests that may wait to be told of.
pub(super) const REQUESTS_MAX: usize = 4_096;
/// The longest `tracestate` that the collector is told; a longer one still goes to the upstream.
const TRACESTATE_MAX: usize = 512;

/// What all requests need to be traced.
pub(crate) struct Tracer {
    ids: Ids,
    /// The share of requests without a trace of their own.
    sample: f64,
    finished: mpsc::Sender<Finished>,
}

impl Tracer {
    pub(super) fn new(sample: f64) -> (Self, mpsc::Receiver<Finished>) {
        let (finished, inbox) = mpsc::channel(REQUESTS_MAX);
        (Self { ids: Ids::default(), sample, finished }, inbox)
    }
}

/// The trace of one request.
pub(crate) struct Trace {
    pub(super) id: TraceId,
    /// The caller's span, if there is one.
    pub(super) parent: Option<SpanId>,
    pub(super) request: SpanId,
    /// What the upstream is told to be its parent.
    pub(super) upstream: SpanId,
    pub(super) queue: SpanId,
    sampled: bool,
    pub(super) state: Option<String>,
    pub(super) waited: Option<(Timestamp, Timestamp)>,
    pub(super) exchange: Option<Arc<Exchange>>,
}

/// Whom a request was sent to.
#[derive(Default)]
pub(crate) struct Exchange {
    last: Mutex<Option<Arc<Endpoint>>>,
    tries: AtomicU32,
}

impl Exchange {
    /// It is about to be sent there.
    pub(crate) fn tries(&self, endpoint: &Arc<Endpoint>) {
        self.tries.fetch_add(1, Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint.clone());
    }

    /// The last one it was sent to, and how often it was sent.
    pub(super) fn seen(&self) -> (Option<Arc<Endpoint>>, u32) {
        (self.last.lock().unwrap_or_else(PoisonError::into_inner).clone(), self.tries.load(Relaxed))
    }
}

impl Trace {
    /// A request with these fields begins. The caller's trace is gone on with if it names one that is right, and what it
    /// has decided about sampling counts; else there is a new one.
    pub(crate) fn begin(tracer: Option<&Tracer>, headers: &HeaderMap) -> Option<Box<Self>> {
        let tracer = tracer?;
        let context = Context::of(headers);
        let id = context.map_or_else(|| tracer.ids.trace(), |context| context.trace);
        let sampled = context.map_or_else(|| is_within(id, tracer.sample), |context| context.sampled);
        let state = || {
            let state = headers.get(TRACESTATE).filter(|_| context.is_some())?.to_str().ok()?;
            (state.len() <= TRACESTATE_MAX).then(|| state.to_owned())
        };
        let upstream = tracer.ids.span();
        // Of the others only the collector hears.
        let others = || if sampled { tracer.ids.span() } else { upstream };
        Some(Box::new(Self {
            id,
            parent: context.map(|context| context.parent),
            request: others(),
            upstream,
            queue: others(),
            sampled,
            state: if sampled { state() } else { None },
            waited: None,
            exchange: None,
        }))
    }

    pub(crate) fn id(&self) -> TraceId {
        self.id
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// It was in the queue.
    pub(crate) fn waited(&mut self, from: Timestamp, to: Timestamp) {
        self.waited = Some((from, to));
    }

    /// It is about to be sent to the upstream, and somebody will say whom to.
    pub(crate) fn exchange(&mut self) -> Option<Arc<Exchange>> {
        if !self.sampled {
            return None;
        }
        Some(self.exchange.get_or_insert_default().clone())
    }

    /// Tells the upstream, in the place of what the client said. Without a trace of the client's that is right, its state
    /// says nothing either.
    pub(crate) fn pass_on(&self, headers: &mut HeaderMap) {
        let context = Context { trace: self.id, parent: self.upstream, sampled: self.sampled };
        if let Some(field) = context.field() {
            headers.insert(TRACEPARENT, field);
        }
        if self.parent.is_none() {
            headers.remove(TRACESTATE);
        }
    }

    /// The request has ended. If too many wait to be told of, this one is not.
    pub(crate) fn end(self, shared: &Shared, ended: Ended) {
        let Some(tracer) = shared.tracer.as_ref().filter(|_| self.sampled) else { return };
        let finished = Finished { trace: self, ended };
        if let Err(error) = tracer.finished.try_send(finished) {
            shared.metrics.spans.dropped.add(error.into_inner().spans());
        }
    }
}

/// A request that the collector is to be told of.
pub(super) struct Finished {
    pub(super) trace: Trace,
    pub(super) ended: Ended,
}

impl Finished {
    /// How many spans come of it.
    pub(super) fn spans(&self) -> u64 {
        1 + u64::from(self.trace.waited.is_some()) + u64::from(self.ended.dispatched.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";

    fn headers(parents: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
        }
        headers.append(TRACESTATE, HeaderValue::from_static("a=1"));
        headers.append(TRACESTATE, HeaderValue::from_static("b=2"));
        headers
    }

    fn passed_on(headers: &HeaderMap, sample: f64) -> (Box<Trace>, HeaderMap) {
        let (tracer, _inbox) = Tracer::new(sample);
        let trace = Trace::begin(Some(&tracer), headers).unwrap();
        let mut headers = headers.clone();
        trace.pass_on(&mut headers);
        (trace, headers)
    }

    /// The caller's trace goes on, whatever the share, with a span of ours in the place of its own.
    #[test]
    fn the_callers_decision_counts() {
        for (flags, sampled, share) in [("00", false, 1.0), ("01", true, 0.0)] {
            let (trace, sent) = passed_on(&headers(&[&format!("{PARENT}-{flags}")]), share);
            assert_eq!(trace.is_sampled(), sampled);
            let context = Context::of(&sent).unwrap();
            assert_eq!((context.trace, context.sampled), (trace.id(), sampled));
            assert_eq!(
                (trace.parent.unwrap().to_string().as_str(), context.parent),
                ("00f067aa0ba902b7", trace.upstream)
            );
            assert_eq!(trace.upstream != trace.request, sampled);
            assert_eq!(sent.get_all(TRACESTATE).iter().count(), 2, "it is the caller's and passes");
        }
    }

    /// What is not right begins a new trace, and brings no state with it.
    #[test]
    fn a_broken_trace_is_a_new_one() {
        let right = format!("{PARENT}-01");
        for parents in [&[][..], &["nonsense"], &[&right, &right]] {
            let (trace, sent) = passed_on(&headers(parents), 1.0);
            assert_eq!((trace.parent, trace.is_sampled()), (None, true));
            assert_eq!(sent.get_all(TRACEPARENT).iter().count(), 1);
            assert_eq!(Context::of(&sent).unwrap().trace, trace.id());
            assert!(!sent.contains_key(TRACESTATE));
            assert!(!passed_on(&headers(parents), 0.0).0.is_sampled());
        }
    }
}
