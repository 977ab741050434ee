//! Clients that speak HTTP/1.1: one request on a connection of its own, or many at once.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::message::{Message, Wire};
use crate::wait::{Stopwatch, patiently};

/// Opens a connection.
pub(crate) async fn connect(to: SocketAddr) -> Wire {
    let stream = patiently("to connect", TcpStream::connect(to)).await;
    Wire::new(stream.unwrap_or_else(|error| panic!("cannot connect to {to}: {error}")))
}

/// Opens a connection from an address of the loopback network.
pub(crate) async fn connect_from(from: &str, to: SocketAddr) -> Wire {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    Wire::new(patiently("to connect", socket.connect(to)).await.unwrap())
}

/// A GET request.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n")
}

/// The head of a POST request whose body has this length.
pub(crate) fn post(target: &str, length: usize) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n")
}

/// A connection on which this has been sent.
pub(crate) async fn sent(to: SocketAddr, bytes: impl AsRef<[u8]>) -> Wire {
    let mut wire = connect(to).await;
    wire.send(bytes).await;
    wire
}

/// The answer to this request, on a connection of its own.
pub(crate) async fn ask(to: SocketAddr, request: impl AsRef<[u8]>) -> Message {
    sent(to, request).await.message().await
}

/// The answer to one of several requests made at once.
pub(crate) struct Shot {
    pub(crate) answer: Message,
    /// From the sending of the request to the end of the answer.
    pub(crate) took: Duration,
    /// From the sending of the first request of all to the end of this answer.
    pub(crate) at: Duration,
}

/// Sends the same request `count` times at once, each on a connection that is open already.
pub(crate) async fn burst(to: SocketAddr, count: usize, request: &str) -> Vec<Shot> {
    let mut wires = Vec::with_capacity(count);
    for _ in 0..count {
        wires.push(connect(to).await);
    }
    let began = Stopwatch::start();
    let mut answers = JoinSet::new();
    for mut wire in wires {
        wire.send(request).await;
        let sent = Stopwatch::start();
        answers.spawn(async move {
            let answer = wire.message().await;
            Shot { answer, took: sent.elapsed(), at: began.elapsed() }
        });
    }
    answers.join_all().await
}

/// The answers with this status and, unless it is empty, this reason.
pub(crate) fn with<'a>(shots: &'a [Shot], status: u16, reason: &str) -> Vec<&'a Shot> {
    let is_one = |shot: &&Shot| shot.answer.status() == status && shot.answer.reason() == reason;
    shots.iter().filter(is_one).collect()
}
