//! Behind hyper on real sockets: connections without a request, and clients that leave.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tidegate_tower::GateLayer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tower::limit::ConcurrencyLimit;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use crate::support::*;

/// Serves each connection by a clone that is made ready before there is a request, as servers do that follow tower's
/// contract to the letter. Counts connections whose service is ready.
async fn serve<S, B>(service: S, ready: Arc<AtomicUsize>) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut service, ready) = (service.clone(), ready.clone());
            tokio::spawn(async move {
                service.ready().await.unwrap();
                ready.fetch_add(1, Ordering::SeqCst);
                let service = Arc::new(Mutex::new(service));
                let answer = hyper::service::service_fn(move |request| {
                    let service = service.clone();
                    async move {
                        let call = {
                            let mut service = service.lock().await;
                            service.call(request)
                        };
                        let answer = call.await;
                        service.lock().await.ready().await?;
                        answer
                    }
                });
                let builder = hyper::server::conn::http1::Builder::new();
                let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    address
}

type Sender = http1::SendRequest<Empty<Bytes>>;

async fn connect(address: SocketAddr) -> Sender {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(sender: &mut Sender, path: &str) -> (u16, String) {
    let answer = sender.send_request(get(path)).await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(text.to_vec()).unwrap())
}

/// Waits for something that other tasks do, for as long as it takes a broken one to be noticed.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waits = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waits).await;
    assert!(waited.is_ok(), "waited in vain: {what}");
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

/// vector#26457. A limit of one, and sixteen connections that have nothing to ask: everybody can be served.
#[tokio::test]
async fn idle_connections_hold_no_capacity() {
    let (gate, ready) = (gate(1, 0, 500), Arc::new(AtomicUsize::new(0)));
    let service = GateLayer::new(gate.clone()).layer(service_fn(hello));
    let address = serve(service, ready.clone()).await;
    let mut connections = Vec::new();
    for _ in 0..16 {
        connections.push(connect(address).await);
    }
    until("all are ready", || ready.load(Ordering::SeqCst) == 16).await;
    assert_eq!(gate.snapshot().in_flight, 0);
    for round in 0..2 {
        for connection in &mut connections {
            assert_eq!(ask(connection, "/").await, (200, "hello".into()), "round {round}");
            until("the slot is free", || gate.snapshot().in_flight == 0).await;
        }
    }
    assert_eq!(gate.snapshot().counts.completed, 32);
}

/// What the test above would find if capacity were taken where tower's own limit takes it.
#[tokio::test]
async fn with_towers_own_limit_one_idle_connection_is_enough() {
    let (slots, ready) = (Arc::new(Semaphore::new(1)), Arc::new(AtomicUsize::new(0)));
    let service = ConcurrencyLimit::with_semaphore(service_fn(hello), slots.clone());
    let address = serve(service, ready.clone()).await;
    let _idle = connect(address).await;
    until("it is ready", || ready.load(Ordering::SeqCst) == 1).await;
    assert_eq!(slots.available_permits(), 0, "taken, and there is no request");
}

/// A2, A4. hyper drops the future of a client that has closed its connection.
#[tokio::test]
async fn a_client_that_closes_leaves_the_queue_and_frees_the_slot() {
    let (work, gate) = (Work::new(), gate(1, 8, 60_000));
    let inner = {
        let work = work.clone();
        service_fn(move |_: Request<Incoming>| {
            let work = work.clone();
            async move {
                work.run().await;
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("done")))
            }
        })
    };
    let service = GateLayer::new(gate.clone()).layer(inner);
    let address = serve(service, Arc::default()).await;
    let mut calls = Vec::new();
    for depth in 0..3 {
        let mut sender = connect(address).await;
        calls.push(tokio::spawn(async move { ask(&mut sender, "/").await }));
        until("it is in the gate", || gate.snapshot().queue_depth == depth).await;
        until("one works", || work.working() == 1).await;
    }
    let (first, second, third) = (calls.remove(0), calls.remove(0), calls.remove(0));
    second.abort();
    until("the second has left the queue", || gate.snapshot().queue_depth == 1).await;
    first.abort();
    until("the first's work has stopped", || work.stopped() == 1).await;
    work.finish(1);
    assert_eq!(third.await.unwrap(), (200, "done".into()));
    until("all slots are free", || gate.snapshot().in_flight == 0).await;
    assert_eq!(gate.snapshot().counts.cancelled, 1);
}
