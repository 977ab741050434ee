//! What a layer costs for each call, beside tower's own and tower_governor in the same run:
//! `cargo xtask bench layers`.
//!
//! The service behind them is ready at once and answers at once, so that what is measured is the layer.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::convert::Infallible;
use std::future::{Future, Pending, Ready, pending, ready};
use std::num::NonZeroU32;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use divan::{Bencher, black_box};
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::{Empty, Full};
use tidegate_tower::engine::*;
use tidegate_tower::{Class, Entry, Gate, GateEvent, GateLayer, Key, RateLimit, RateLimitLayer};
use tower::{Layer as _, Service, ServiceBuilder, ServiceExt as _};

fn main() {
    divan::main();
}

type Asked = Request<Empty<Bytes>>;

/// Answers at once, with an empty body or with this one.
#[derive(Clone)]
struct Quick;

impl Service<Asked> for Quick {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Asked) -> Self::Future {
        ready(Ok(Response::new(Full::from("done"))))
    }
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn gate(limit: u32, capacity: u32) -> Gate {
    Gate::new(AdmissionPolicy::new(
        LimitPolicy::Fixed(number(limit)),
        QueuePolicy::of(Duration::from_secs(3600), Capacity::Fixed(capacity)),
    ))
}

/// A head as a client sends it, from one of a thousand callers.
fn asked(n: u32) -> Asked {
    let mut request = Request::get("/orders/17").body(Empty::new()).unwrap();
    let headers = request.headers_mut();
    for (name, value) in [("host", "shop.test"), ("user-agent", "bench/1.0"), ("accept", "*/*")] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("x-key", HeaderValue::from(n % 1000));
    request
}

/// One call to its end: made ready, called, answered, and the body read.
fn measure<S, B>(bencher: Bencher<'_, '_>, service: S)
where
    S: Service<Asked, Response = Response<B>> + Clone,
    B: Body,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    let mut n = 0;
    bencher
        .with_inputs(|| {
            n += 1;
            asked(n)
        })
        .bench_local_values(|request| {
            let mut cx = Context::from_waker(Waker::noop());
            let mut call = pin!(service.clone().oneshot(request));
            let Poll::Ready(answer) = call.as_mut().poll(&mut cx) else { unreachable!() };
            let Ok(answer) = answer else { return };
            let mut body = pin!(answer.into_body());
            while !body.is_end_stream() {
                assert!(body.as_mut().poll_frame(&mut cx).is_ready());
            }
        });
}

/// A call that is let through.
#[divan::bench_group(name = "gate_admits", sample_size = 500)]
mod gate_admits {
    use super::*;

    #[divan::bench]
    fn no_layer(bencher: Bencher<'_, '_>) {
        measure(bencher, Quick);
    }

    /// What of that is the gate's: a slot, its sample, its end.
    #[divan::bench]
    fn the_gate_alone(bencher: Bencher<'_, '_>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let gate = gate(64, 64);
        bencher.bench_local(|| {
            let Entry::Admitted(mut admitted) = gate.enter(Arrival::new(RouteId(0))) else { unreachable!() };
            admitted.sample(Outcome::Success);
            admitted.complete(Outcome::Success);
        });
    }

    /// And of that, reading the clock three times.
    #[divan::bench]
    fn the_clock_alone(bencher: Bencher<'_, '_>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let clock = gate(1, 1).clock();
        bencher.bench_local(|| [clock.now(), clock.now(), clock.now()]);
    }

    #[divan::bench]
    fn tower_concurrency_limit_and_load_shed(bencher: Bencher<'_, '_>) {
        measure(bencher, ServiceBuilder::new().load_shed().concurrency_limit(64).service(Quick));
    }

    #[divan::bench]
    fn tidegate(bencher: Bencher<'_, '_>) {
        measure(bencher, GateLayer::new(gate(64, 64)).layer(Quick));
    }

    /// With a class, a tenant, a deadline and somebody who listens.
    #[divan::bench]
    fn tidegate_everything_on(bencher: Bencher<'_, '_>) {
        let layer = GateLayer::new(gate(64, 64))
            .with_classifier(|head| {
                Class::default()
                    .with_patience(Duration::from_secs(1))
                    .with_tenant(head.headers.get("x-key").map(HeaderValue::as_bytes))
                    .with_priority(Priority(1))
            })
            .with_observer(|event: &GateEvent| {
                black_box(event);
            });
        measure(bencher, layer.layer(Quick));
    }
}

/// A call that is refused, because all slots are taken and nobody may wait. tidegate's is a whole answer to the caller,
/// load_shed's an error that something else has to make one of.
#[divan::bench_group(name = "gate_refuses", sample_size = 500)]
mod gate_refuses {
    use super::*;

    #[divan::bench]
    fn tower_concurrency_limit_and_load_shed(bencher: Bencher<'_, '_>) {
        let full = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        let limit = tower::limit::GlobalConcurrencyLimitLayer::with_semaphore(full);
        measure(bencher, ServiceBuilder::new().load_shed().layer(limit).service(Quick));
    }

    #[divan::bench]
    fn tidegate(bencher: Bencher<'_, '_>) {
        let gate = gate(1, 0);
        let held = gate.enter(Arrival::new(RouteId(0)));
        measure(bencher, GateLayer::new(gate).layer(Quick));
        drop(held);
    }
}

/// Ten thousand wait for one slot: whoever has it leaves, the next gets it, and somebody else joins those who wait.
#[divan::bench_group(name = "ten_thousand_wait", sample_size = 500)]
mod ten_thousand_wait {
    use super::*;
    use std::collections::VecDeque;

    const WAITING: u32 = 10_000;

    /// Works until it is dropped.
    #[derive(Clone)]
    struct Busy;

    impl Service<Asked> for Busy {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = Pending<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Asked) -> Self::Future {
            pending()
        }
    }

    fn turn<S: Service<Asked> + Clone>(bencher: Bencher<'_, '_>, service: S) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let mut calls = VecDeque::new();
        let join = |request, cx: &mut Context<'_>| {
            let mut call = Box::pin(service.clone().oneshot(request));
            assert!(call.as_mut().poll(cx).is_pending());
            call
        };
        for n in 0..=WAITING {
            calls.push_back(join(asked(n), &mut cx));
        }
        let mut n = 0;
        let next_request = || {
            n += 1;
            asked(n)
        };
        bencher.with_inputs(next_request).bench_local_values(|request| {
            calls.push_back(join(request, &mut cx));
            drop(calls.pop_front());
            let served = calls.front_mut().unwrap().as_mut().poll(&mut cx);
            assert!(served.is_pending());
        });
        assert_eq!(calls.len(), WAITING as usize + 1);
    }

    /// No bound, no budget, no timers.
    #[divan::bench]
    fn tower_concurrency_limit(bencher: Bencher<'_, '_>) {
        let one = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
        turn(bencher, tower::limit::ConcurrencyLimit::with_semaphore(Busy, one));
    }

    #[divan::bench]
    fn tidegate(bencher: Bencher<'_, '_>) {
        let gate = gate(1, 2 * WAITING);
        turn(bencher, GateLayer::new(gate.clone()).layer(Busy));
        let end = gate.snapshot();
        assert!(end.max_queue_depth > WAITING && end.counts.rejected_total() == 0);
    }
}

/// A call that a rate limit lets through, one of a thousand callers'.
#[divan::bench_group(name = "rate_limit_admits", sample_size = 500)]
mod rate_limit_admits {
    use super::*;
    use tower_governor::GovernorLayer;
    use tower_governor::errors::GovernorError;
    use tower_governor::governor::GovernorConfigBuilder;
    use tower_governor::key_extractor::KeyExtractor;

    /// The same service with a body of axum's, which is what tower_governor can refuse with.
    #[derive(Clone)]
    struct QuickAxum;

    impl Service<Asked> for QuickAxum {
        type Response = Response<axum::body::Body>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Asked) -> Self::Future {
            ready(Ok(Response::new(axum::body::Body::empty())))
        }
    }

    #[divan::bench]
    fn no_layer(bencher: Bencher<'_, '_>) {
        measure(bencher, QuickAxum);
    }

    fn plenty() -> Quota {
        Quota::new(number(1_000_000), Duration::from_secs(1), number(1_000_000)).unwrap()
    }

    #[divan::bench]
    fn tidegate(bencher: Bencher<'_, '_>) {
        let key = |head: &http::request::Parts| head.headers.get("x-key").map(|it| Key::of(it.as_bytes()));
        measure(bencher, RateLimitLayer::new([RateLimit::new("all", plenty(), key)]).layer(QuickAxum));
    }

    #[divan::bench]
    fn tidegate_two_quotas(bencher: Bencher<'_, '_>) {
        let key = |head: &http::request::Parts| head.headers.get("x-key").map(|it| Key::of(it.as_bytes()));
        let limits = [
            RateLimit::new("caller", plenty(), key),
            RateLimit::new("all", plenty(), |_: &http::request::Parts| Some(Key::ALL)),
        ];
        measure(bencher, RateLimitLayer::new(limits).layer(QuickAxum));
    }

    /// By the same header.
    #[derive(Clone)]
    struct ByHeader;

    impl KeyExtractor for ByHeader {
        type Key = HeaderValue;

        fn extract<T>(&self, request: &Request<T>) -> Result<HeaderValue, GovernorError> {
            request.headers().get("x-key").cloned().ok_or(GovernorError::UnableToExtractKey)
        }
    }

    #[divan::bench]
    fn tower_governor(bencher: Bencher<'_, '_>) {
        let config = GovernorConfigBuilder::default()
            .per_nanosecond(1000)
            .burst_size(1_000_000)
            .key_extractor(ByHeader)
            .finish()
            .unwrap();
        measure(bencher, GovernorLayer::<_, _, axum::body::Body>::new(config).layer(QuickAxum));
    }
}
