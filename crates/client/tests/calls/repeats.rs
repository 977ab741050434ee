//! What is tried again: H8, and how the tries are counted.

use super::*;
use http::HeaderValue;
use tidegate_client::engine::Stop;
use tidegate_client::{Ambient, AmbientLayer, RoomPolicy};
use tower::service_fn;

#[tokio::test(start_paused = true)]
async fn what_may_be_done_twice_is_tried_again() {
    for (method, key, tries) in [
        (Method::GET, false, 3),
        (Method::PUT, false, 3),
        (Method::DELETE, false, 3),
        (Method::POST, false, 1),
        (Method::PATCH, false, 1),
        (Method::POST, true, 3),
    ] {
        let script = Script::new([UNAVAILABLE]);
        let mut request = request(method.clone());
        if key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static("\"8e03978e\""));
        }
        let body = request.body().clone().collect().await.unwrap().to_bytes();
        let answer = client(policy(), &script).call(request).await;
        assert_eq!(status(&answer), 503);
        let seen = script.seen();
        assert_eq!(seen.len(), tries, "{method} {key}");
        assert!(seen.iter().all(|seen| seen.body == body), "each try has the whole body");
    }
}

/// Nothing of it was sent, so it is as if it had not been tried.
#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_tried_again_whatever_it_is() {
    let script = Script::new([Says::Unreachable, OK]);
    let answer = client(policy(), &script).call(request(Method::POST)).await;
    assert_eq!((status(&answer), script.seen().len()), (200, 2));
    let script = Script::new([Says::Reset, OK]);
    let answer = client(policy(), &script).call(request(Method::POST)).await;
    assert!(matches!(answer, Err(Error::Service(_))));
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_is_sent_once() {
    for (room, tries) in [(5, 3), (4, 1)] {
        let script = Script::new([UNAVAILABLE]);
        let policy = Policy { replay_bytes: room, ..policy() };
        assert_eq!(status(&client(policy, &script).call(request(Method::PUT)).await), 503);
        assert_eq!(script.seen().len(), tries);
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_try_would_meet_too_is_not_tried_again() {
    for says in [500, 501, 504, 400, 404] {
        let script = Script::new([Says::After(0, says)]);
        assert_eq!(status(&get(&client(policy(), &script)).await), says);
        assert_eq!(script.seen().len(), 1, "{says}");
    }
    for says in [429, 502, 503] {
        let script = Script::new([Says::After(0, says), OK]);
        assert_eq!(status(&get(&client(policy(), &script)).await), 200, "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tries_are_counted_in_the_field() {
    let script = Script::new([UNAVAILABLE]);
    let mut request = request(Method::PUT);
    request.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    drop(client(policy(), &script).call(request).await);
    let said: Vec<_> = script
        .seen()
        .iter()
        .map(|seen| {
            let before = seen.headers.get("grpc-previous-rpc-attempts").map(|value| value.to_str().unwrap());
            (seen.headers["x-envoy-attempt-count"].to_str().unwrap().to_owned(), before.map(str::to_owned))
        })
        .collect();
    let is = |this: &str, before: Option<&str>| (this.to_owned(), before.map(str::to_owned));
    assert_eq!(said, [is("1", None), is("2", Some("1")), is("3", Some("2"))]);
}

/// One layer only: whoever is inside another's retry does not try again, and says which try it is.
#[tokio::test(start_paused = true)]
async fn inside_anothers_retry_there_is_none() {
    let policy = policy();
    let script = Script::new([UNAVAILABLE]);
    let calls = client(policy.clone(), &script);
    let mut headers = HeaderMap::new();
    headers.insert("x-envoy-attempt-count", HeaderValue::from_static("2"));
    let ambient = || Ambient::of(&headers, &policy.attempt_field, &policy.deadline_fields);
    // By the task, by the request's extensions, and by a request that is passed on as it is.
    assert_eq!(status(&ambient().scope(get(&calls)).await), 503);
    let mut request = request(Method::GET);
    request.extensions_mut().insert(ambient());
    assert_eq!(status(&calls.clone().call(request).await), 503);
    let mut request = super::request(Method::GET);
    *request.headers_mut() = headers.clone();
    assert_eq!(status(&calls.clone().call(request).await), 503);
    let seen = script.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.headers["x-envoy-attempt-count"] == "2"));
    // And if whoever is called tries again by itself.
    let script = Script::new([UNAVAILABLE]);
    let policy = Policy { upstream_retries: true, ..policy };
    assert_eq!(status(&get(&client(policy, &script)).await), 503);
    assert_eq!(script.seen().len(), 1);
}

/// H6. A retry that is decided on and then not sent, here for want of a place, is the end of the call like any other: it
/// is counted, and the layer above does not start over.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_declined_is_the_end_too() {
    let room = RoomPolicy { calls: 1, waiting: 0, wait: Duration::ZERO };
    let policy = Policy { room, ..policy() };
    let script = Script::new([Says::Status(503, &[("retry-after-ms", "200")]), Says::After(60_000, 200)]);
    let calls = client(policy.clone(), &script);
    let ambient = Ambient::of(&HeaderMap::new(), &policy.attempt_field, &policy.deadline_fields);
    let (served, pausing) = (ambient.clone(), calls.clone());
    let pausing = tokio::spawn(async move { served.scope(get(&pausing)).await });
    sleep(Duration::from_millis(100)).await;
    let other = tokio::spawn({
        let calls = calls.clone();
        async move { get(&calls).await }
    });
    assert_eq!(status(&pausing.await.unwrap()), 503);
    other.abort();
    assert!(ambient.is_exhausted());
    let now = calls.resilience().snapshot("orders").unwrap().caller;
    assert_eq!((now.counts.stopped(Stop::Declined), now.counts.given_up, now.budget), (1, 1, 10));
}

/// The answer to a request for which another was made in vain says so: of HTTP in one field, of gRPC, whose failures come
/// with 200, in its own (gRFC A6).
#[tokio::test(start_paused = true)]
async fn what_was_tried_in_vain_is_marked() {
    const PUSHBACK: &str = "grpc-retry-pushback-ms";
    for (made, fields, marked) in [
        (503, &[][..], Some(("x-should-retry", "false"))),
        (429, &[], Some(("x-should-retry", "false"))),
        (404, &[], None),
        (200, &[], None),
        (200, &[("grpc-status", "14")], Some((PUSHBACK, "-1"))),
        (200, &[("grpc-status", "2")], Some((PUSHBACK, "-1"))),
        (200, &[("grpc-status", "0")], None),
    ] {
        let calls = client(policy(), &Script::new([UNAVAILABLE]));
        let service = service_fn(move |_: Request<()>| {
            let calls = calls.clone();
            async move {
                assert_eq!(status(&get(&calls).await), 503);
                let answer = Response::builder().status(made);
                fields.iter().fold(answer, |answer, (name, value)| answer.header(*name, *value)).body(())
            }
        });
        let answer = AmbientLayer::new(&policy()).layer(service).call(Request::new(())).await.unwrap();
        let found = ["x-should-retry", PUSHBACK]
            .into_iter()
            .find_map(|name| Some((name, answer.headers().get(name)?.to_str().unwrap())));
        assert_eq!(found, marked, "{made} {fields:?}");
    }
}
