//! The demo's client: many requests at once, each on a connection of its own that is open already, so that what is
//! measured is the gateway and not the opening of sockets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::clock;
use crate::exit::Failure;

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Shot {
    pub(super) status: u16,
    /// The reason in the problem document, if it was one.
    pub(super) reason: String,
    pub(super) took: Duration,
    /// When the answer was complete.
    pub(super) at: Instant,
    /// The `Retry-After` field.
    pub(super) retry_after: Option<Duration>,
}

/// A connection to the gateway.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
}

impl Connection {
    pub(super) async fn open(to: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(Failure::runtime)?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    pub(super) async fn get(&mut self, target: &str) -> Result<Shot, Failure> {
        let began = clock::now();
        let (head, body) = self.ask("GET", target).await?.into_parts();
        let body = body.collect().await.map_err(Failure::runtime)?.to_bytes();
        let at = clock::now();
        let reason = if head.status.is_success() { String::new() } else { reason(&body) };
        let retry_after = retry_after(&head.headers);
        Ok(Shot { status: head.status.as_u16(), reason, took: at - began, at, retry_after })
    }

    /// Sends a request whose answer is JSON.
    pub(super) async fn json(&mut self, method: &str, target: &str) -> Result<Value, Failure> {
        let body = self.ask(method, target).await?.into_body();
        let bytes = body.collect().await.map_err(Failure::runtime)?.to_bytes();
        serde_json::from_slice(&bytes).map_err(Failure::runtime)
    }

    async fn ask(&mut self, method: &str, target: &str) -> Result<Response<Incoming>, Failure> {
        self.sender.ready().await.map_err(Failure::runtime)?;
        let request = Request::builder().method(method).uri(target).header("host", "lab").body(Empty::new());
        self.sender.send_request(request.map_err(Failure::runtime)?).await.map_err(Failure::runtime)
    }
}

/// Sends `count` requests at once.
pub(super) async fn burst(to: SocketAddr, count: usize, target: &str) -> Result<Vec<Shot>, Failure> {
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        connections.push(Connection::open(to).await?);
    }
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let target = target.to_string();
            tokio::spawn(async move { connection.get(&target).await })
        })
        .collect();
    let mut shots = Vec::with_capacity(count);
    for task in tasks {
        shots.push(task.await.map_err(Failure::runtime)??);
    }
    Ok(shots)
}

fn reason(body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    problem["reason"].as_str().unwrap_or_default().to_string()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
