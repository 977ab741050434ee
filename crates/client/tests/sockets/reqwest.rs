//! The middleware for reqwest does what the layer does.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use reqwest_middleware::ClientBuilder;
use tidegate_client::engine::Reply;
use tidegate_client::{Error, Policy, ResilientMiddleware};
use tower::service_fn;

use crate::server::{Server, serve, status};

/// A server that fails so often, and what it has seen.
async fn failing(times: u32) -> (Server, Arc<Mutex<Vec<String>>>) {
    let (seen, count) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
    let heard = Arc::clone(&seen);
    let server = serve(service_fn(move |request: Request<Incoming>| {
        let (heard, count) = (Arc::clone(&heard), Arc::clone(&count));
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let attempt = parts.headers["x-envoy-attempt-count"].to_str().unwrap().to_owned();
            heard.lock().unwrap().push(format!("{attempt} {}", String::from_utf8_lossy(&body)));
            let number = count.fetch_add(1, SeqCst);
            let answer = status(if number < times { 503 } else { 200 });
            Ok::<_, Infallible>(answer.map(|_| http_body_util::Full::from("answer")))
        }
    }))
    .await;
    (server, seen)
}

fn client(policy: Policy) -> (reqwest_middleware::ClientWithMiddleware, ResilientMiddleware) {
    let middleware = ResilientMiddleware::new(policy);
    (ClientBuilder::new(reqwest::Client::new()).with(middleware.clone()).build(), middleware)
}

#[tokio::test]
async fn what_may_be_done_twice_is_tried_again() {
    let (server, seen) = failing(2).await;
    let (client, middleware) = client(Policy::careful(Duration::from_secs(5)));
    let answer = client.put(server.uri().to_string()).body("hello").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.url().as_str()), (200, server.uri().to_string().as_str()));
    let name = server.address.to_string();
    assert_eq!(middleware.resilience().snapshot(&name).unwrap().in_flight, 1);
    assert_eq!(answer.text().await.unwrap(), "answer");
    assert_eq!(middleware.resilience().snapshot(&name).unwrap().in_flight, 0);
    assert_eq!(*seen.lock().unwrap(), ["1 hello", "2 hello", "3 hello"]);
}

#[tokio::test]
async fn what_may_not_is_not() {
    let (server, seen) = failing(2).await;
    let (client, _) = client(Policy::careful(Duration::from_secs(5)));
    let answer = client.post(server.uri().to_string()).body("hello").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), seen.lock().unwrap().len()), (503, 1));
    assert_eq!(answer.text().await.unwrap(), "answer");
}

#[tokio::test]
async fn a_call_has_an_end() {
    let server =
        serve(service_fn(|_: Request<Incoming>| std::future::pending::<Result<_, Infallible>>())).await;
    let (client, middleware) = client(Policy::careful(Duration::from_millis(200)));
    let error = client.get(server.uri().to_string()).send().await.unwrap_err();
    let reqwest_middleware::Error::Middleware(error) = error else { panic!("{error}") };
    assert!(matches!(error.downcast_ref::<Error>(), Some(Error::TimedOut)));
    assert_eq!(middleware.resilience().snapshot(&server.address.to_string()).unwrap().in_flight, 0);
}

#[tokio::test]
async fn nobody_listens() {
    let server = serve(service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(status(200)) })).await;
    server.door.abort();
    drop(server.door.await);
    let (client, middleware) = client(Policy::careful(Duration::from_secs(5)));
    let request = client.put(format!("http://{}/", server.address)).body("hello");
    assert!(request.send().await.is_err());
    let counts = middleware.resilience().snapshot(&server.address.to_string()).unwrap().caller.counts;
    assert_eq!(counts.replied(Reply::NoConnection), 3);
}

/// H8. Below the middleware reqwest follows redirects by itself, so a connection that fails need not be the first: a POST
/// that was done, and whose redirect leads nowhere, is not done again.
#[tokio::test]
async fn what_was_done_before_a_redirect_is_not_done_again() {
    let nowhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let done = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&done);
    let server = serve(service_fn(move |_: Request<Incoming>| {
        count.fetch_add(1, SeqCst);
        let mut answer = status(303);
        let location = format!("http://{nowhere}/").parse().unwrap();
        answer.headers_mut().insert("location", location);
        async { Ok::<_, Infallible>(answer) }
    }))
    .await;
    let (client, middleware) = client(Policy::careful(Duration::from_secs(5)));
    client.post(server.uri().to_string()).body("once").send().await.unwrap_err();
    assert_eq!(done.load(SeqCst), 1);
    let counts = middleware.resilience().snapshot(&server.address.to_string()).unwrap().caller.counts;
    assert_eq!((counts.sent, counts.replied(Reply::NoConnection)), (1, 1));
    // What may be done twice is tried again wherever it failed.
    client.put(server.uri().to_string()).body("as often as you like").send().await.unwrap_err();
    assert_eq!(done.load(SeqCst), 1 + 3);
}

/// What reqwest says is read, though the middleware's error stands before it: its own timeout is no broken connection.
#[tokio::test]
async fn a_timeout_of_reqwest_is_one() {
    let server =
        serve(service_fn(|_: Request<Incoming>| std::future::pending::<Result<_, Infallible>>())).await;
    let middleware = ResilientMiddleware::new(Policy::careful(Duration::from_secs(5)));
    let impatient = reqwest::Client::builder().timeout(Duration::from_millis(50)).build().unwrap();
    let client = ClientBuilder::new(impatient).with(middleware.clone()).build();
    client.post(server.uri().to_string()).send().await.unwrap_err();
    let counts = middleware.resilience().snapshot(&server.address.to_string()).unwrap().caller.counts;
    assert_eq!((counts.replied(Reply::TimedOut), counts.replied(Reply::Broken)), (1, 0));
}

/// Another of these middlewares below has decided already: what it refuses is not tried again (one layer only).
#[tokio::test]
async fn what_the_one_below_refuses_is_not_tried_again() {
    let server = serve(service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(status(200)) })).await;
    let above = ResilientMiddleware::new(Policy::careful(Duration::from_secs(5)));
    // Whatever it is asked comes too late.
    let below = ResilientMiddleware::new(Policy::careful(Duration::ZERO));
    let client = ClientBuilder::new(reqwest::Client::new()).with(above.clone()).with(below).build();
    client.get(server.uri().to_string()).send().await.unwrap_err();
    let counts = above.resilience().snapshot(&server.address.to_string()).unwrap().caller.counts;
    assert_eq!((counts.sent, counts.retries), (1, 0));
}
