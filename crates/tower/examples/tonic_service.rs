//! A gRPC service behind a gate and a rate limit: `cargo run -p tidegate-tower --example tonic_service`.
//!
//! It starts on a free port, is called by nine clients at once, says what each was told, and ends. The service is
//! written by hand, as tonic's code generator would write it, so that there is nothing to generate.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response};
use tidegate_tower::engine::{AdmissionPolicy, Capacity, LimitPolicy, QueuePolicy, Quota};
use tidegate_tower::{Gate, GateLayer, Key, RateLimit, RateLimitLayer, deadline};
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Status, body::Body};
use tonic_prost::ProstCodec;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    value: u64,
}

/// Squares numbers, slowly. Before each expensive step it asks whether anybody still waits.
async fn square(request: tonic::Request<Number>) -> Result<tonic::Response<Number>, Status> {
    for _ in 0..2 {
        deadline::check().map_err(|expired| Status::deadline_exceeded(expired.to_string()))?;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let value = request.get_ref().value.saturating_mul(request.get_ref().value);
    Ok(tonic::Response::new(Number { value }))
}

#[derive(Clone)]
struct Squares;

impl tonic::server::NamedService for Squares {
    const NAME: &'static str = "example.Squares";
}

impl tower::Service<Request<Body>> for Squares {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Number, Number>::default());
            Ok(grpc.unary(tower::service_fn(square), request).await)
        })
    }
}

async fn call(channel: Channel, value: u64) -> Result<u64, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let mut request = tonic::Request::new(Number { value });
    request.set_timeout(Duration::from_secs(5));
    let path = PathAndQuery::from_static("/example.Squares/Square");
    let answer = client.unary(request, path, ProstCodec::<Number, Number>::default()).await?;
    Ok(answer.into_inner().value)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let number = |number| NonZeroU32::new(number).ok_or("it is not zero");
    // Two at a time, two may wait; and no more than eight calls an hour.
    let gate = Gate::new(AdmissionPolicy::new(
        LimitPolicy::Fixed(number(2)?),
        QueuePolicy::of(Duration::from_secs(2), Capacity::Fixed(2)),
    ));
    let hourly =
        Quota::new(number(8)?, Duration::from_secs(3600), number(8)?).map_err(|why| format!("{why:?}"))?;
    let limits = RateLimitLayer::new([RateLimit::new("hourly", hourly, |_| Some(Key::ALL))]);
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let server = Server::builder().layer(limits).layer(GateLayer::new(gate.clone())).add_service(Squares);
    tokio::spawn(server.serve_with_incoming(incoming));

    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect().await?;
    let mut clients = JoinSet::new();
    for value in 1..=9 {
        clients.spawn(call(channel.clone(), value));
    }
    let mut answers = BTreeMap::new();
    while let Some(answer) = clients.join_next().await {
        let told = match answer? {
            Ok(_) => "OK".to_owned(),
            Err(status) => format!("{:?}: {}", status.code(), status.message()),
        };
        *answers.entry(told).or_insert(0) += 1;
    }
    for (answer, times) in answers {
        println!("{times} × {answer}");
    }
    let snapshot = gate.snapshot();
    println!("at most {} at once; {} in flight at the end", snapshot.max_in_flight, snapshot.in_flight);
    Ok(())
}
