//! Behind axum and tonic, with a client of its own kind on a real socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use tidegate_tower::answer::Whole;
use tidegate_tower::deadline::{self, Deadline};
use tidegate_tower::engine::*;
use tidegate_tower::{GateLayer, Key, RateLimit, RateLimitLayer};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::support::*;

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// One request on a connection of its own.
async fn ask(address: SocketAddr, request: Request<Full<Bytes>>) -> (http::response::Parts, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    (head, String::from_utf8(text.to_vec()).unwrap())
}

fn to(path: &str) -> http::request::Builder {
    Request::builder().uri(path).header("host", "test")
}

fn empty(builder: http::request::Builder) -> Request<Full<Bytes>> {
    builder.body(Full::default()).unwrap()
}

#[tokio::test]
async fn in_axum_routes_share_a_gate() {
    let work = Work::new();
    let mut shared = policy(2, 0, 500);
    shared.bulkheads = vec![(RouteId(1), number(1))];
    let layer = GateLayer::new(tidegate_tower::Gate::new(shared));
    let slow = {
        let work = work.clone();
        move || async move {
            work.run().await;
            "done"
        }
    };
    let router = Router::new()
        .route("/reports", get(slow.clone()).layer(layer.for_route(RouteId(1))))
        .route("/checkout", post(slow).layer(layer.for_route(RouteId(2))))
        .route("/free", get(|| async { "free" }));
    let address = serve(router).await;
    let report = tokio::spawn(ask(address, empty(to("/reports"))));
    while work.working() < 1 {
        tokio::task::yield_now().await;
    }
    let (head, text) = ask(address, empty(to("/reports"))).await;
    assert_eq!((head.status.as_u16(), &head.headers["retry-after"]), (503, &"1".parse().unwrap()));
    assert!(text.contains("\"reason\":\"route_limit\""), "{text}");
    let checkout = tokio::spawn(ask(address, empty(to("/checkout").method("POST"))));
    while work.working() < 2 {
        tokio::task::yield_now().await;
    }
    let (_, text) = ask(address, empty(to("/checkout").method("POST"))).await;
    assert!(text.contains("\"reason\":\"queue_full\""), "{text}");
    assert_eq!(ask(address, empty(to("/free"))).await.1, "free");
    work.finish(2);
    assert_eq!(report.await.unwrap().1, "done");
    assert_eq!(checkout.await.unwrap().1, "done");
    assert_eq!(layer.gate().snapshot().in_flight, 0);
}

async fn check_twice(
    axum::Extension(deadline): axum::Extension<Deadline>,
) -> Result<String, Response<Whole>> {
    deadline::check()?;
    let left = deadline.remaining();
    while !deadline.remaining().is_zero() {
        tokio::task::yield_now().await;
    }
    deadline::check()?;
    Ok(format!("there was {left:?}, and nobody has looked at the clock"))
}

#[tokio::test]
async fn in_axum_a_handler_checks_its_deadline() {
    let layer = GateLayer::new(gate(1, 0, 500));
    let limits = RateLimitLayer::new([RateLimit::new("all", hourly(1), |_| Some(Key::ALL))]);
    let router = Router::new()
        .route("/", get(check_twice).layer(layer))
        .route("/once", get(|| async { "once" }))
        .layer(limits);
    let address = serve(router).await;
    let stated = to("/").header("x-envoy-expected-rq-timeout-ms", "50");
    let (head, text) = ask(address, empty(stated)).await;
    assert_eq!(head.status, 504, "{text}");
    assert!(text.contains("\"reason\":\"deadline\""), "{text}");
    let (head, text) = ask(address, empty(to("/once"))).await;
    assert_eq!((head.status.as_u16(), text.contains("rate_limited")), (429, true), "{text}");
}

fn hourly(burst: u32) -> Quota {
    Quota::new(number(1), Duration::from_secs(3600), number(burst)).unwrap()
}

#[derive(Clone, PartialEq, prost::Message)]
struct Say {
    #[prost(string, tag = "1")]
    text: String,
}

/// A gRPC service with one method, as a code generator would write it: it works until it may end, and then says how long
/// there was.
#[derive(Clone)]
struct Speaker(Work);

impl tonic::server::NamedService for Speaker {
    const NAME: &'static str = "test.Speaker";
}

impl tower::Service<Request<tonic::body::Body>> for Speaker {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let work = self.0.clone();
        let method = tower::service_fn(move |request: tonic::Request<Say>| {
            let work = work.clone();
            async move {
                if request.get_ref().text == "expire" {
                    while deadline::check().is_ok() {
                        tokio::task::yield_now().await;
                    }
                    deadline::check().map_err(|expired| Status::deadline_exceeded(expired.to_string()))?;
                }
                work.run().await;
                let text = format!("{:?}", deadline::remaining().is_some());
                Ok::<_, Status>(tonic::Response::new(Say { text }))
            }
        });
        Box::pin(async move {
            Ok(tonic::server::Grpc::new(ProstCodec::<Say, Say>::default()).unary(method, request).await)
        })
    }
}

async fn tonic_server<L>(layer: L, work: &Work) -> Channel
where
    L: tower::Layer<tonic::service::Routes> + Clone + Send + 'static,
    L::Service: tower::Service<
            Request<tonic::body::Body>,
            Response = Response<tidegate_tower::AnswerBody<tonic::body::Body>>,
            Error: Into<tower::BoxError> + Send,
            Future: Send,
        > + Clone
        + Send
        + 'static,
{
    let incoming = tonic::transport::server::TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = tonic::transport::Server::builder().layer(layer).add_service(Speaker(work.clone()));
    tokio::spawn(server.serve_with_incoming(incoming));
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

async fn say(channel: Channel, text: &str, timeout: Option<Duration>) -> Result<String, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let mut request = tonic::Request::new(Say { text: text.to_owned() });
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    let path = http::uri::PathAndQuery::from_static("/test.Speaker/Say");
    let answer = client.unary(request, path, ProstCodec::<Say, Say>::default()).await?;
    Ok(answer.into_inner().text)
}

/// H6.
#[tokio::test]
async fn in_tonic_a_refusal_is_a_status_with_a_pushback() {
    let (work, gate) = (Work::new(), gate(1, 0, 500));
    let channel = tonic_server(GateLayer::new(gate.clone()), &work).await;
    let (held, patient) = (channel.clone(), Some(Duration::from_secs(60)));
    let first = tokio::spawn(async move { say(held, "", patient).await });
    while work.working() < 1 {
        tokio::task::yield_now().await;
    }
    let refused = say(channel.clone(), "", None).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, UNAVAILABLE));
    let pushback = refused.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    assert!(pushback.parse::<u64>().unwrap() >= 1, "{pushback}");
    work.finish(2);
    assert_eq!(first.await.unwrap().unwrap(), "true", "it has stated a deadline");
    assert_eq!(say(channel, "", None).await.unwrap(), "false", "and this one has not, and finds a free slot");
}

const UNAVAILABLE: &str = "The service is at capacity and the queue is full";

#[tokio::test]
async fn in_tonic_a_rate_limit_is_resource_exhausted() {
    let work = Work::new();
    work.finish(2);
    let layer = RateLimitLayer::new([RateLimit::new("all", hourly(1), |_| Some(Key::ALL))]);
    let channel = tonic_server(layer, &work).await;
    assert_eq!(say(channel.clone(), "", None).await.unwrap(), "false");
    let refused = say(channel, "", None).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.metadata().get("grpc-retry-pushback-ms").unwrap(), "60000");
}

/// H2. tonic has a timer of its own for `grpc-timeout`, which may be first; the slot is free in either case.
#[tokio::test]
async fn in_tonic_a_handler_checks_its_deadline() {
    let (work, gate) = (Work::new(), gate(1, 0, 500));
    let channel = tonic_server(GateLayer::new(gate.clone()), &work).await;
    let late = say(channel, "expire", Some(millis(30))).await.unwrap_err();
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late:?}");
    while gate.snapshot().in_flight > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gate.snapshot().counts.admitted, 1);
}
