//! A server on loopback that answers with whatever a function says. Plain HTTP/1.1, kept connections.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::Service;

pub(crate) type Answer = Response<Full<Bytes>>;

/// Where it listens, and the task that does. Aborting that closes the door; connections that are open go on.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) door: JoinHandle<()>,
}

impl Server {
    pub(crate) fn uri(&self) -> http::Uri {
        format!("http://{}/", self.address).parse().unwrap()
    }
}

/// Serves each connection with a clone of this.
pub(crate) async fn serve<S, F>(service: S) -> Server
where
    S: Service<Request<Incoming>, Response = Answer, Error = Infallible, Future = F> + Clone + Send + 'static,
    F: Future<Output = Result<Answer, Infallible>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let door = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                // A client that leaves breaks its connection, which is its right.
                drop(connection.await);
            });
        }
    });
    Server { address, door }
}

/// An answer with nothing in it.
pub(crate) fn status(status: u16) -> Answer {
    Response::builder().status(status).body(Full::default()).unwrap()
}
