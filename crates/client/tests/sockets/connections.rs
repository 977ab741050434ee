//! Connections that are refused, that die while they are kept, and that are closed in the middle of an answer.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use hyper::body::Incoming;
use tidegate_client::engine::{BreakerState, Reply};
use tidegate_client::{Client, Error, Policy, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::service_fn;

use crate::server::{serve, status};

/// Nobody listens. Whatever it is, it is tried again; then the breaker is open, and nothing is sent.
#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::new(Policy::careful(Duration::from_secs(5)));
    let request = || Request::post(format!("http://{address}/")).body(Bytes::from_static(b"once")).unwrap();
    assert!(matches!(client.send(request()).await, Err(Error::Service(_))));
    let now = client.resilience().snapshot(&address.to_string()).unwrap().caller;
    assert_eq!((now.counts.replied(Reply::NoConnection), now.counts.sent), (3, 3));
    while client.resilience().snapshot(&address.to_string()).unwrap().caller.breaker == BreakerState::Closed {
        drop(client.send(request()).await);
    }
    let refused = client.send(request()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::BreakerOpen { .. })), "{refused}");
    assert!(refused.retry_after() > Some(Duration::ZERO));
}

/// A server that closes each connection after one answer, without saying so, as servers do with those that were idle. What
/// may be done twice comes through.
#[tokio::test]
async fn a_kept_connection_dies() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            let read = stream.read(&mut head).await.unwrap_or(0);
            if read > 0 {
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await);
            }
        }
    });
    let client = Client::new(Policy::careful(Duration::from_secs(5)));
    for _ in 0..50 {
        let response = client.get(format!("http://{address}/").parse().unwrap()).await.unwrap();
        assert_eq!(response.into_body().bytes(10).await.unwrap(), "ok");
    }
}

/// What an answer is allowed to be is said by whoever collects it.
#[tokio::test]
async fn an_answer_that_is_too_long_is_not_collected() {
    let server = serve(service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(status(200).map(|_| http_body_util::Full::from("123456789")))
    }))
    .await;
    let client = Client::new(Policy::careful(Duration::from_secs(5)));
    let body = async || client.get(server.uri()).await.unwrap().into_body();
    assert!(matches!(body().await.bytes(8).await, Err(Error::TooLong(8))));
    assert_eq!(body().await.bytes(9).await.unwrap(), "123456789");
    let name = server.address.to_string();
    assert_eq!(client.resilience().snapshot(&name).unwrap().in_flight, 0);
}

/// An answer that breaks off is an error of its body, also when it is read by itself, and gives the place back.
#[tokio::test]
async fn an_answer_breaks_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            drop(stream.read(&mut head).await);
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\nok").await);
        }
    });
    let client = Client::new(Policy::careful(Duration::from_secs(5)));
    let answer = client.get(format!("http://{address}/").parse().unwrap()).await.unwrap();
    assert!(matches!(answer.into_body().bytes(1_000).await, Err(Error::Service(_))));
    assert_eq!(client.resilience().snapshot(&address.to_string()).unwrap().in_flight, 0);
}

/// The connection of an answer that was not the last is used again: two tries, one connection.
#[tokio::test]
async fn a_retry_uses_the_connection_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 1024];
        for answer in ["HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy", "HTTP/1.1 204 OK\r\n\r\n"] {
            assert!(stream.read(&mut head).await.unwrap() > 0, "the second try comes by the same connection");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let client = Client::new(Policy::careful(Duration::from_secs(5)));
    let mut request = Request::new(Bytes::from_static(b"body"));
    *request.method_mut() = Method::PUT;
    *request.uri_mut() = format!("http://{address}/").parse().unwrap();
    assert_eq!(client.send(request).await.unwrap().status(), 204);
    server.await.unwrap();
}
