//! Whether a client makes an outage worse: one hundred calls while all is well, one hundred while the upstream refuses
//! everything, one hundred when it is back. `cargo run -p tidegate-client --example resilient_client`

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_client::engine::BreakerState;
use tidegate_client::{Client, Error, Policy};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// What the upstream does, and how often it was asked.
#[derive(Default)]
struct Upstream {
    is_down: AtomicBool,
    asked: AtomicU32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let upstream = Arc::new(Upstream::default());
    let address = serve(Arc::clone(&upstream)).await?;

    // Half a second for each call with all its tries; at most twenty at once.
    let mut policy = Policy::careful(Duration::from_millis(500));
    policy.room.calls = 20;
    let client = Client::new(policy);

    println!(
        "{:22} {:>8} {:>8} {:>8} {:>9} {:>7}",
        "", "answered", "refused", "not sent", "upstream", "budget"
    );
    play("all is well", &client, address, &upstream).await;

    upstream.is_down.store(true, SeqCst);
    play("it refuses everything", &client, address, &upstream).await;

    upstream.is_down.store(false, SeqCst);
    // The breaker lets probes through by itself, at the latest after a second.
    sleep(Duration::from_millis(1_100)).await;
    play("it is back", &client, address, &upstream).await;

    let now = client.resilience().snapshot(&address.to_string()).ok_or("nobody was called")?;
    assert_eq!(now.caller.breaker, BreakerState::Closed);
    println!(
        "{} calls, {} tries, {} of them retries",
        now.caller.counts.calls, now.caller.counts.sent, now.caller.counts.retries
    );
    Ok(())
}

/// A hundred calls, one every five milliseconds, whatever becomes of them.
async fn play(what: &str, client: &Client, address: SocketAddr, upstream: &Upstream) {
    let before = upstream.asked.load(SeqCst);
    let mut calls = Vec::new();
    for _ in 0..100 {
        let client = client.clone();
        calls.push(tokio::spawn(async move {
            let uri = http::Uri::builder().scheme("http").authority(address.to_string()).path_and_query("/");
            let response = client.get(uri.build().unwrap_or_default()).await?;
            // A call has its place until its answer has been read, or dropped.
            let status = response.status();
            response.into_body().bytes(1_024).await.map(|_| status)
        }));
        sleep(Duration::from_millis(5)).await;
    }
    let (mut answered, mut refused, mut not_sent) = (0, 0, 0);
    for call in calls {
        match call.await {
            Ok(Ok(status)) if status.is_success() => answered += 1,
            // The last answer, when trying again made no more sense.
            Ok(Ok(_)) => refused += 1,
            // It would have been in vain, and was not even sent.
            Ok(Err(Error::Refused(_))) => not_sent += 1,
            Ok(Err(error)) => println!("{error}"),
            Err(error) => println!("{error}"),
        }
    }
    let asked = upstream.asked.load(SeqCst) - before;
    let now = client.resilience().snapshot(&address.to_string());
    let budget = now.map_or(0, |now| now.caller.budget);
    println!("{what:22} {answered:8} {refused:8} {not_sent:8} {asked:9} {budget:7}");
}

async fn serve(upstream: Arc<Upstream>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let upstream = Arc::clone(&upstream);
            let service = service_fn(move |_: Request<Incoming>| {
                upstream.asked.fetch_add(1, SeqCst);
                let status = if upstream.is_down.load(SeqCst) { 503 } else { 200 };
                let mut response = Response::new(Full::new(Bytes::from_static(b"42")));
                *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
                async { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                drop(connection.serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    Ok(address)
}
