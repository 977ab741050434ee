//! The layer over a service that answers as it is told, on a paused clock, so that every time is exact.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod budget;
mod deadlines;
mod hedges;
mod repeats;
mod room;
mod told;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tidegate_client::engine::{CallerCounts, CallerPolicy};
use tidegate_client::{
    AnswerBody, BoxError, Error, Policy, ReplayBody, Resilience, Resilient, ResilientLayer,
};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service};

/// What the service says to one try.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// A status, and fields.
    Status(u16, &'static [(&'static str, &'static str)]),
    /// The same after so many milliseconds.
    After(u64, u16),
    /// A status and fields, before a body that is too long to be read ahead.
    Long(u16, &'static [(&'static str, &'static str)]),
    /// There is no connection.
    Unreachable,
    /// The connection breaks.
    Reset,
}

/// Sixteen KiB and one.
pub(crate) const LONG: usize = 16 * 1024 + 1;
pub(crate) const OK: Says = Says::Status(200, &[]);
pub(crate) const UNAVAILABLE: Says = Says::Status(503, &[]);

/// One try as the service has seen it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A service that says one thing after the other, and the last for ever.
#[derive(Clone)]
pub(crate) struct Script {
    says: Arc<Mutex<VecDeque<Says>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Script {
    pub(crate) fn new(says: impl IntoIterator<Item = Says>) -> Self {
        Self { says: Arc::new(Mutex::new(says.into_iter().collect())), seen: Arc::default() }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn says(&self, says: impl IntoIterator<Item = Says>) {
        *self.says.lock().unwrap() = says.into_iter().collect();
    }

    fn next(&self) -> Says {
        let mut says = self.says.lock().unwrap();
        if says.len() > 1 { says.pop_front().unwrap() } else { says.front().unwrap().clone() }
    }
}

impl Service<Request<ReplayBody<Full<Bytes>>>> for Script {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Full<Bytes>>>) -> Self::Future {
        let script = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let seen = Seen { at: now(), headers: parts.headers, body };
            script.seen.lock().unwrap().push(seen);
            let mut length = 0;
            let (status, fields) = match script.next() {
                Says::Status(status, fields) => (status, fields),
                Says::Long(status, fields) => {
                    length = LONG;
                    (status, fields)
                }
                Says::After(millis, status) => {
                    sleep(Duration::from_millis(millis)).await;
                    (status, &[][..])
                }
                Says::Unreachable => return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
                Says::Reset => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
            };
            let response = Response::builder().status(status);
            let response =
                fields.iter().fold(response, |response, (name, value)| response.header(*name, *value));
            let body = if length == 0 { Bytes::from_static(b"answer") } else { vec![b'.'; length].into() };
            Ok(response.body(Full::new(body))?)
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock of these tests is paused")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) type Answer = Result<Response<AnswerBody<Full<Bytes>>>, Error>;
pub(crate) type Calls = Resilient<Script>;

/// Five seconds, and neither breaker nor throttle, which have tests of their own.
pub(crate) fn policy() -> Policy {
    let mut policy = Policy::careful(Duration::from_secs(5));
    policy.caller = CallerPolicy { breaker: None, throttle: None, ..policy.caller };
    policy
}

pub(crate) fn client(policy: Policy, script: &Script) -> Calls {
    ResilientLayer::with(Resilience::seeded(policy, 7)).layer(script.clone())
}

pub(crate) fn request(method: Method) -> Request<Full<Bytes>> {
    let body = if method == Method::GET { Bytes::new() } else { Bytes::from_static(b"hello") };
    Request::builder().method(method).uri("http://orders/1").body(Full::new(body)).unwrap()
}

pub(crate) async fn get(calls: &Calls) -> Answer {
    calls.clone().call(request(Method::GET)).await
}

pub(crate) fn status(answer: &Answer) -> u16 {
    answer.as_ref().unwrap().status().as_u16()
}

pub(crate) fn counts(calls: &Calls) -> CallerCounts {
    calls.resilience().snapshot("orders").unwrap().caller.counts
}
