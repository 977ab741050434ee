//! A deadline is never passed, and shrinks on its way: H3, H7.

use super::*;
use http::HeaderValue;
use tidegate_client::{Ambient, Deadline};

/// Timers of tokio are exact to a millisecond, and late rather than early.
const TICK: Duration = Duration::from_millis(1);

fn within(millis: u64, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    request.extensions_mut().insert(Deadline::within(Duration::from_millis(millis)));
    request
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_would_come_too_late_is_not_begun() {
    let script = Script::new([Says::Status(503, &[("retry-after", "2")])]);
    let calls = client(policy(), &script);
    let began = now();
    let answer = calls.clone().call(within(2_000, request(Method::GET))).await;
    assert_eq!((status(&answer), now() - began), (503, Duration::ZERO), "the last answer, and at once");
    assert_eq!(
        calls.resilience().snapshot("orders").unwrap().caller.budget,
        10,
        "and nothing is paid for it"
    );
}

#[tokio::test(start_paused = true)]
async fn the_earliest_deadline_ends_the_call() {
    let policy = policy();
    let script = Script::new([Says::After(60_000, 200)]);
    let calls = client(policy.clone(), &script);
    let mut headers = HeaderMap::new();
    headers.insert("x-envoy-expected-rq-timeout-ms", HeaderValue::from_static("400"));
    let ambient = Ambient::of(&headers, &policy.attempt_field, &policy.deadline_fields);
    for (own, field, inside, ends) in [
        (None, None, false, 5_000),
        (Some(300), None, false, 300),
        (Some(9_000), None, false, 5_000),
        (Some(300), Some("200"), false, 200),
        (Some(300), Some("12x"), false, 300),
        (None, None, true, 400),
        (Some(700), None, true, 400),
    ] {
        let mut request = request(Method::GET);
        if let Some(own) = own {
            request = within(own, request);
        }
        if let Some(field) = field {
            request.headers_mut().insert("x-envoy-expected-rq-timeout-ms", HeaderValue::from_static(field));
        }
        if inside {
            // A new one: the deadline is from when the request that is being served has come.
            let fresh = Ambient::of(&headers, &policy.attempt_field, &policy.deadline_fields);
            assert!(fresh.deadline() >= ambient.deadline());
            request.extensions_mut().insert(fresh);
        }
        let began = now();
        assert!(matches!(calls.clone().call(request).await, Err(Error::TimedOut)));
        let took = now() - began;
        let ends = Duration::from_millis(ends);
        assert!((ends..=ends + TICK).contains(&took), "{took:?} and not {ends:?}");
    }
}

/// What is told at each try is what is left then.
#[tokio::test(start_paused = true)]
async fn what_is_told_is_what_is_left() {
    let script = Script::new([Says::Status(503, &[("retry-after-ms", "1000")])]);
    let mut request = request(Method::PUT);
    request.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    request.headers_mut().insert("grpc-timeout", HeaderValue::from_static("4S"));
    let began = now();
    drop(client(policy(), &script).call(request).await);
    let seen = script.seen();
    assert_eq!(seen.len(), 3);
    for seen in seen {
        let left = Duration::from_secs(4) - (seen.at - began);
        let millis = left.as_millis();
        assert_eq!(seen.headers["x-envoy-expected-rq-timeout-ms"], millis.to_string().as_str());
        assert_eq!(seen.headers["grpc-timeout"], format!("{millis}m").as_str());
    }
}

/// With a bound for each try, one that hangs is not all that the call gets.
#[tokio::test(start_paused = true)]
async fn a_try_that_hangs_is_left_for_another() {
    let script = Script::new([Says::After(60_000, 200), OK]);
    let calls = client(Policy { try_timeout: Some(Duration::from_millis(100)), ..policy() }, &script);
    assert_eq!((status(&get(&calls).await), script.seen().len()), (200, 2));
    let late = Script::new([Says::After(60_000, 200)]);
    let calls = client(Policy { try_timeout: Some(Duration::from_secs(2)), ..policy() }, &late);
    let began = now();
    assert!(matches!(get(&calls).await, Err(Error::TimedOut)));
    assert!(now() - began <= Duration::from_secs(5) + TICK);
}

/// tower-http#295: a timeout that covers only the head.
#[tokio::test(start_paused = true)]
async fn a_body_ends_at_the_deadline_too() {
    for covers_body in [true, false] {
        let (mut sender, channel) = http_body_util::channel::Channel::<Bytes, BoxError>::new(1);
        sender.send_data(Bytes::from_static(b"first")).await.unwrap();
        let channel = Arc::new(Mutex::new(Some(channel)));
        let service = tower::service_fn(move |_: Request<ReplayBody<Full<Bytes>>>| {
            let body = channel.lock().unwrap().take().unwrap();
            async move { Ok::<_, BoxError>(Response::new(body)) }
        });
        let policy = Policy { covers_body, ..policy() };
        let mut calls = ResilientLayer::new(policy).layer(service);
        let mut body = calls.call(request(Method::GET)).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
        let next = tokio::time::timeout(Duration::from_secs(60), body.frame()).await;
        assert_eq!(matches!(next, Ok(Some(Err(Error::TimedOut)))), covers_body);
        assert_eq!(next.is_err(), !covers_body);
        drop(body);
        assert_eq!(calls.resilience().snapshot("orders").unwrap().in_flight, 0);
    }
}
