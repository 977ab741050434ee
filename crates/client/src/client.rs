//! A ready client on hyper: plain HTTP/1.1, kept connections, and everything of the layer.
//!
//! It has no TLS. For `https`, or HTTP/2, lay [`ResilientLayer`] over a client that has it.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::AnswerBody;
use crate::error::Error;
use crate::layer::{Resilient, ResilientLayer};
use crate::policy::Policy;
use crate::replay::ReplayBody;
use crate::resilience::Resilience;

/// The longest that a connection takes to be made.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// A kept connection is closed after so long, before most servers close it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// A resilient HTTP client. Cloning gives another handle to the same.
///
/// ```no_run
/// # async fn run() -> Result<(), tidegate_client::Error> {
/// use std::time::Duration;
/// use tidegate_client::{Client, Error, Policy};
///
/// let client = Client::new(Policy::careful(Duration::from_secs(2)));
/// loop {
///     match client.get("http://127.0.0.1:8102/orders/42".parse().unwrap()).await {
///         Ok(response) if response.status().is_success() => {
///             let order = response.into_body().bytes(64 * 1024).await?;
///             println!("{} bytes", order.len());
///             break;
///         }
///         // Tried again as often as made sense, and this is the last answer.
///         Ok(response) => println!("{}", response.status()),
///         // Nothing was sent, because it would not have made sense.
///         Err(Error::Refused(refusal)) => println!("{refusal}"),
///         Err(error) => println!("{error}"),
///     }
///     tokio::time::sleep(Duration::from_secs(1)).await;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    service: Resilient<Wire>,
}

impl Client {
    /// A client under this policy, without a connection yet.
    pub fn new(policy: Policy) -> Self {
        Self::with(Resilience::new(policy))
    }

    /// A client that knows of upstreams what others with the same handle know.
    pub fn with(resilience: Resilience) -> Self {
        let policy = resilience.policy();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(policy.timeout.min(CONNECT_TIMEOUT_MAX)));
        let pool = Pool::builder(TokioExecutor::new())
            // Trying again is for the layer, which counts it.
            .retry_canceled_requests(false)
            .pool_max_idle_per_host(policy.room.calls as usize)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { service: ResilientLayer::with(resilience).layer(Wire { pool }) }
    }

    /// What is known of the upstreams.
    pub const fn resilience(&self) -> &Resilience {
        self.service.resilience()
    }

    /// Asks for this.
    pub async fn get(&self, uri: Uri) -> Result<Response<Body>, Error> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri;
        self.send(request).await
    }

    /// Sends this. The URI has to name a host.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let request = request.map(Whole::new);
        let response = self.service.clone().call(request).await?;
        Ok(response.map(|inner| Body { inner }))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(self.resilience()).finish()
    }
}

/// The connections. A type of our own, so that hyper-util's is no part of what is promised.
#[derive(Clone)]
struct Wire {
    pool: Pool<HttpConnector, ReplayBody<Whole>>,
}

impl Service<Request<ReplayBody<Whole>>> for Wire {
    type Response = Response<Incoming>;
    type Error = hyper_util::client::legacy::Error;
    type Future = hyper_util::client::legacy::ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.pool.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<Whole>>) -> Self::Future {
        self.pool.call(request)
    }
}

/// A request's body, which is there as a whole.
struct Whole(Option<Bytes>);

impl Whole {
    fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl HttpBody for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// The body of an answer. It holds the call's place until it has ended or been dropped.
#[derive(Debug)]
pub struct Body {
    inner: AnswerBody<Incoming>,
}

impl Body {
    /// All of it, if it is not longer than this many bytes.
    pub async fn bytes(mut self, most: usize) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut self.inner).poll_frame(cx)).await {
            let Ok(data) = frame?.into_data() else { continue };
            if data.len() > most.saturating_sub(all.len()) {
                return Err(Error::TooLong(most));
            }
            if all.is_empty() && self.inner.is_end_stream() {
                return Ok(data);
            }
            all.extend_from_slice(&data);
        }
        Ok(all.freeze())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.get_mut().inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
