//! gRPC over the layer, by tonic at both ends: what is tried again, what each try says, and that it is at one layer. The
//! service is written by hand, as tonic's code generator would write it.

use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, Uri};
use tidegate_client::engine::{BudgetPolicy, CallerPolicy, Reply};
use tidegate_client::{AmbientLayer, Policy, ReplayBody, Resilient, ResilientLayer};
use tonic::body::Body;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tower::util::MapRequest;
use tower::{Layer, service_fn};

#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    value: u64,
}

/// A channel of tonic takes tonic's bodies only.
type Calls = Resilient<MapRequest<Channel, fn(Request<ReplayBody<Body>>) -> Request<Body>>>;

/// Three tries, and nothing that stands in the way of them.
fn policy() -> Policy {
    let mut policy = Policy::careful(Duration::from_secs(20));
    let budget = BudgetPolicy { percent: 100, burst: 1_000, per_minute: 0 };
    let attempts = NonZeroU32::new(3).unwrap();
    policy.caller = CallerPolicy { attempts, budget, breaker: None, throttle: None, ..policy.caller };
    policy
}

fn calls(origin: &Uri) -> Calls {
    let channel = Endpoint::from(origin.clone()).connect_lazy();
    ResilientLayer::new(policy()).layer(MapRequest::new(channel, |request| request.map(Body::new)))
}

/// Asks for a square; `key`: as something that may be done twice.
async fn square(calls: Calls, origin: Uri, value: u64, key: bool) -> Result<u64, Status> {
    let mut client = tonic::client::Grpc::with_origin(calls, origin);
    client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let mut request = tonic::Request::new(Number { value });
    if key {
        request.metadata_mut().insert("idempotency-key", "\"8e03978e\"".parse().unwrap());
    }
    let path = PathAndQuery::from_static("/test.Squares/Square");
    let answer = client.unary(request, path, ProstCodec::<Number, Number>::default()).await?;
    Ok(answer.into_inner().value)
}

/// Squares numbers by itself, after so many failures, or asks another.
#[derive(Clone, Default)]
struct Squares {
    fails: usize,
    next: Option<(Calls, Uri)>,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Squares {
    async fn answer(self, request: tonic::Request<Number>) -> Result<tonic::Response<Number>, Status> {
        let (metadata, _, Number { value }) = request.into_parts();
        let tries = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(metadata.into_headers());
            seen.len()
        };
        let value = match self.next {
            // What the other's failure says to its caller is not for ours.
            Some((calls, origin)) => square(calls, origin, value, true)
                .await
                .map_err(|status| Status::new(status.code(), status.message()))?,
            None if tries <= self.fails => return Err(Status::unavailable("busy")),
            None => value * value,
        };
        Ok(tonic::Response::new(Number { value }))
    }

    /// What the tries have said in this field, one after the other.
    fn said(&self, name: &str) -> Vec<Option<String>> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|seen| seen.get(name).map(|value| value.to_str().unwrap().to_owned())).collect()
    }

    async fn serve(&self) -> Uri {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap();
        let server = Server::builder().layer(AmbientLayer::new(&policy())).add_service(self.clone());
        tokio::spawn(server.serve_with_incoming(incoming));
        format!("http://{address}").parse().unwrap()
    }
}

impl tonic::server::NamedService for Squares {
    const NAME: &'static str = "test.Squares";
}

impl tower::Service<Request<Body>> for Squares {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let squares = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Number, Number>::default());
            let answer = service_fn(move |request| squares.clone().answer(request));
            Ok(grpc.unary(answer, request).await)
        })
    }
}

#[tokio::test]
async fn what_may_be_done_twice_is_tried_again() {
    let squares = Squares { fails: 2, ..Squares::default() };
    let origin = squares.serve().await;
    let calls = calls(&origin);
    assert_eq!(square(calls.clone(), origin.clone(), 7, true).await.unwrap(), 49);
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(squares.said("x-envoy-attempt-count"), [is("1"), is("2"), is("3")]);
    assert_eq!(squares.said("grpc-previous-rpc-attempts"), [None, is("1"), is("2")]);
    assert!(squares.said("grpc-timeout").iter().all(Option::is_some));
    let name = origin.authority().unwrap().as_str();
    let now = calls.resilience().snapshot(name).unwrap();
    assert_eq!((now.caller.counts.replied(Reply::Unavailable), now.in_flight), (2, 0));
    // Every call of gRPC is a POST: without a key it is made once.
    let squares = Squares { fails: 1, ..Squares::default() };
    let origin = squares.serve().await;
    let status = square(self::calls(&origin), origin, 7, false).await.unwrap_err();
    assert_eq!((status.code(), squares.said("te").len()), (Code::Unavailable, 1));
}

/// H6. Three services one before the other, each with three tries: three calls at the bottom, and one at each of those
/// above, which are told by gRPC's own field that it has been tried in vain.
#[tokio::test]
async fn three_layers_are_three_calls() {
    let bottom = Squares { fails: usize::MAX, ..Squares::default() };
    let mut origin = bottom.serve().await;
    let mut above = Vec::new();
    for _ in 0..2 {
        let squares = Squares { next: Some((calls(&origin), origin)), ..Squares::default() };
        origin = squares.serve().await;
        above.push(squares);
    }
    let status = square(calls(&origin), origin, 7, true).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
    assert_eq!(bottom.said("te").len(), 3);
    assert!(above.iter().all(|squares| squares.said("te").len() == 1));
}
