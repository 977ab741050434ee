//! A client that speaks HTTP/2 from the first byte, as gRPC clients do without TLS.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;

use crate::wait::patiently;

/// A connection.
pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Response<()>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
    /// The head was the whole of it.
    pub(crate) head_only: bool,
}

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).await.unwrap();
        let mut client = h2::client::Builder::new();
        // One stream that is not read leaves the others room, as with every client that opens several.
        client.initial_window_size(64 * 1024).initial_connection_window_size(16 * 1024 * 1024);
        let (sender, connection) = client.handshake(stream).await.unwrap();
        // It ends with the connection, and its errors are those of the requests.
        tokio::spawn(async move { drop(connection.await) });
        Self { sender }
    }

    /// Sends a request. With the stream the rest of its body can be sent, or it can be reset.
    pub(crate) async fn send(
        &mut self,
        request: Request<()>,
        end: bool,
    ) -> (ResponseFuture, h2::SendStream<Bytes>) {
        let ready = std::future::poll_fn(|cx| self.sender.poll_ready(cx));
        patiently("room for a stream", ready).await.unwrap();
        self.sender.send_request(request, end).unwrap()
    }

    pub(crate) async fn ask(&mut self, request: Request<()>) -> Answer {
        let (answer, _stream) = self.send(request, true).await;
        whole(answer).await
    }
}

/// Waits for the whole of an answer.
pub(crate) async fn whole(answer: ResponseFuture) -> Answer {
    let (head, mut stream) = patiently("an answer", answer).await.unwrap().into_parts();
    let head_only = stream.is_end_stream();
    let mut body = Vec::new();
    while let Some(data) = patiently("the body", stream.data()).await {
        let data = data.unwrap();
        stream.flow_control().release_capacity(data.len()).unwrap();
        body.extend_from_slice(&data);
    }
    let trailers = patiently("the trailers", stream.trailers()).await.unwrap();
    Answer { head: Response::from_parts(head, ()), body, trailers, head_only }
}

/// A GET request.
pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(format!("http://shop.example{path}")).body(()).unwrap()
}
