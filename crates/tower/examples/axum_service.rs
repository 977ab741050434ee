//! An axum service that keeps its useful answers at its capacity: `cargo run -p tidegate-tower --example axum_service`.
//!
//! It starts on a free port, gets more than it can do from forty clients at once, says what came of them, and ends.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::routing::get;
use axum::{Router, http::Request, http::Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tidegate_tower::answer::Whole;
use tidegate_tower::engine::{
    AdmissionPolicy, Capacity, LimitPolicy, Priority, PriorityPolicy, QueuePolicy, Quota,
};
use tidegate_tower::{Class, Gate, GateLayer, Key, RateLimit, RateLimitLayer, deadline};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Two expensive steps. Before the second it asks whether anybody still waits; if not, `?` answers 504.
async fn order() -> Result<String, Response<Whole>> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    deadline::check()?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok("ordered".to_owned())
}

fn service() -> Result<(Router, GateLayer), Error> {
    let number = |number| NonZeroU32::new(number).ok_or("it is not zero");
    // Four at a time, the others wait for at most a second. Bots go last.
    let mut policy = AdmissionPolicy::new(
        LimitPolicy::Fixed(number(4)?),
        QueuePolicy::of(Duration::from_secs(1), Capacity::Derived),
    );
    policy.priorities = vec![PriorityPolicy::default(); 2];
    let gate = GateLayer::new(Gate::new(policy)).with_classifier(|head| {
        let bot = head.headers.get("user-agent").is_some_and(|agent| agent.as_bytes().ends_with(b"bot"));
        if bot { Class::default().with_priority(Priority(1)) } else { Class::default() }
    });
    // Nobody may send more than thirty a minute.
    let quota =
        Quota::new(number(30)?, Duration::from_secs(60), number(30)?).map_err(|why| format!("{why:?}"))?;
    let limits = RateLimitLayer::new([RateLimit::new("per-agent", quota, |head| {
        Some(Key::of(head.headers.get("user-agent").map(|agent| agent.as_bytes())))
    })]);
    let router = Router::new()
        .route("/order", get(order).layer(gate.clone()))
        // A health check is answered however busy the service is.
        .route("/healthz", get(|| async { "well" }))
        .layer(limits);
    Ok((router, gate))
}

async fn ask(address: std::net::SocketAddr, agent: &str) -> Result<String, Error> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/order")
        .header("host", "example")
        .header("user-agent", agent)
        .header("x-envoy-expected-rq-timeout-ms", "5000")
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let told = response.headers().get("proxy-status").and_then(|field| field.to_str().ok());
    let reason = told.and_then(|field| field.split("details=").nth(1)).unwrap_or("served").to_owned();
    let status = response.status();
    response.into_body().collect().await?;
    Ok(format!("{status}: {reason}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (router, gate) = service()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });

    let mut clients = JoinSet::new();
    for client in 0..40 {
        let agent = if client < 32 { "bot" } else { "person" };
        clients.spawn(async move { ask(address, agent).await.map(|answer| format!("{agent:<7} {answer}")) });
    }
    let mut answers = BTreeMap::new();
    while let Some(answer) = clients.join_next().await {
        *answers.entry(answer??).or_insert(0) += 1;
    }
    for (answer, times) in answers {
        println!("{times:>3} × {answer}");
    }
    let snapshot = gate.gate().snapshot();
    println!("at most {} at once; {} in flight at the end", snapshot.max_in_flight, snapshot.in_flight);
    Ok(())
}
