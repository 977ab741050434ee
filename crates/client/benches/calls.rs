//! What the layer costs for each call, beside tower's own retry with a budget. Nothing is sent: the service answers at once.
//! `cargo bench -p tidegate-client`
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use http::{Request, Response};
use http_body_util::Full;
use tidegate_client::engine::{Advice, Caller, CallerPolicy, Ended, HedgePolicy, Reply, Timestamp};
use tidegate_client::{Policy, Resilience, ResilientLayer};
use tower::retry::budget::{Budget as _, TpsBudget};
use tower::retry::{Policy as TowerPolicy, Retry};
use tower::{Layer, Service};

fn main() {
    divan::main();
}

/// Answers at once.
#[derive(Clone)]
struct Instantly;

impl<B> Service<Request<B>> for Instantly {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"answer")))))
    }
}

/// As tower's documentation has it: a budget, three tries, no pause.
#[derive(Clone)]
struct Budgeted {
    budget: Arc<TpsBudget>,
    left: u32,
}

impl TowerPolicy<Request<Full<Bytes>>, Response<Full<Bytes>>, Infallible> for Budgeted {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<Full<Bytes>>, Infallible>,
    ) -> Option<Ready<()>> {
        if result.as_ref().is_ok_and(|response| response.status().as_u16() != 503) {
            self.budget.deposit();
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        self.budget.withdraw().then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

fn request() -> Request<Full<Bytes>> {
    let request = Request::post("http://orders/1").header("idempotency-key", "\"8e03978e\"");
    request.body(Full::new(Bytes::from_static(b"a body that is sent once"))).unwrap()
}

/// Calls of one service, one after the other, on one runtime.
fn calls<S>(bencher: Bencher<'_, '_>, mut service: S)
where
    S: Service<Request<Full<Bytes>>>,
    S::Error: std::fmt::Debug,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        runtime.block_on(async {
            std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
            service.call(request()).await.unwrap()
        })
    });
}

#[divan::bench]
fn no_layer(bencher: Bencher<'_, '_>) {
    calls(bencher, Instantly);
}

#[divan::bench]
fn tower_retry_with_budget(bencher: Bencher<'_, '_>) {
    let budget = Arc::new(TpsBudget::new(Duration::from_secs(10), 10, 0.1));
    calls(bencher, Retry::new(Budgeted { budget, left: 2 }, Instantly));
}

/// Breaker, throttle, budget, room, deadline, fields, replay: all that is on by default.
#[divan::bench]
fn tidegate(bencher: Bencher<'_, '_>) {
    calls(bencher, ResilientLayer::with(Resilience::seeded(Policy::default(), 1)).layer(Instantly));
}

#[divan::bench]
fn tidegate_with_hedges(bencher: Bencher<'_, '_>) {
    let mut policy = Policy::default();
    policy.caller.hedge = Some(HedgePolicy { percentile: 95, least: Duration::from_millis(10) });
    calls(bencher, ResilientLayer::with(Resilience::seeded(policy, 1)).layer(Instantly));
}

/// The decisions alone: may it be sent, sent, answered.
#[divan::bench]
fn decisions_alone(bencher: Bencher<'_, '_>) {
    let mut caller = Caller::new(CallerPolicy::careful(Duration::from_secs(1)));
    let mut nanos = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        nanos += 1_000;
        let now = Timestamp::from_nanos(nanos);
        let deadline = now.after(Duration::from_secs(1));
        caller.arrive(now, deadline, nanos).unwrap();
        let sent = caller.send(now, deadline).unwrap();
        let ended = Ended { reply: Reply::Success, advice: Advice::Unsaid, repeatable: true, deadline };
        caller.answered(now, sent, ended, nanos)
    });
}
