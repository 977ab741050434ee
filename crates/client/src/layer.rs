//! The layer for any tower service that speaks HTTP: hyper's clients, tonic's channels, one's own.
//!
//! It is always ready and decides in `call`. Whoever reserves something in `poll_ready` keeps it from others for as long
//! as no request comes (style of tower's `ConcurrencyLimit`; vector#26457), so the service below is made ready when a try
//! has its place, and not before.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::HeaderName;
use http::{HeaderValue, Request, Response, request};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::AnswerBody;
use crate::deadline;
use crate::drive::{Ask, End, Exchange, Leave, drive};
use crate::error::{BoxError, Error};
use crate::policy::Policy;
use crate::reading::{Reading, is_grpc};
use crate::replay::ReplayBody;
use crate::resilience::Resilience;

/// gRFC A6: how often a request of gRPC was tried before.
const GRPC_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// Makes a service that calls others resilient. All services that one layer makes share what is known of the upstreams.
///
/// The service below is asked with [`ReplayBody`] and answers with any body. It has to be cheap to clone, since each try
/// is made by a clone; what tower calls a client usually is. One that takes a body of its own only, as tonic's channel does,
/// goes below `tower::util::MapRequest` with `|request| request.map(tonic::body::Body::new)`.
#[derive(Clone, Debug)]
pub struct ResilientLayer {
    resilience: Resilience,
}

impl ResilientLayer {
    /// A layer under this policy that knows nothing yet.
    pub fn new(policy: Policy) -> Self {
        Self::with(Resilience::new(policy))
    }

    /// A layer that knows what others with the same handle know.
    pub const fn with(resilience: Resilience) -> Self {
        Self { resilience }
    }

    /// What is known of the upstreams.
    pub const fn resilience(&self) -> &Resilience {
        &self.resilience
    }
}

impl<S> Layer<S> for ResilientLayer {
    type Service = Resilient<S>;

    fn layer(&self, inner: S) -> Resilient<S> {
        Resilient { resilience: self.resilience.clone(), inner }
    }
}

/// A resilient service; see [`ResilientLayer`]. Clones share everything.
#[derive(Clone)]
pub struct Resilient<S> {
    resilience: Resilience,
    inner: S,
}

impl<S> Resilient<S> {
    /// What is known of the upstreams.
    pub const fn resilience(&self) -> &Resilience {
        &self.resilience
    }
}

impl<S, B, R> Service<Request<B>> for Resilient<S>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody<R>>;
    type Error = Error;
    type Future = Answering<R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering<R> {
        let (parts, body) = request.into_parts();
        let resilience = self.resilience.clone();
        // Read now, in the caller's task: the future may be polled in another.
        let ask = resilience.ask(&parts.method, &parts.headers, &parts.extensions);
        let body = ReplayBody::new(body, resilience.policy().replay_bytes);
        let exchange =
            Over { inner: self.inner.clone(), is_grpc: is_grpc(&parts.headers), parts, body, resilience };
        Answering { call: Box::pin(call(ask, exchange)) }
    }
}

async fn call<S, B, R>(ask: Ask, mut over: Over<S, B>) -> Answer<R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    let upstream = over.resilience.upstream(&over.parts.uri, &over.parts.headers);
    match drive(&upstream, &ask, &mut over).await {
        End::Answer(mut response, slot) => {
            let covers = over.resilience.policy().covers_body;
            let deadline = covers.then(|| upstream.clock.instant(ask.deadline));
            response.body_mut().hold(slot, deadline);
            Ok(response)
        }
        End::Failure(error) => Err(Error::Service(error)),
        End::TimedOut => Err(Error::TimedOut),
        End::Refused(refusal) => Err(Error::Refused(refusal)),
    }
}

/// The answer to come. Dropping it ends the call, wherever it is, and gives back all that it held.
#[must_use = "a call is not made before its future is polled"]
pub struct Answering<R> {
    call: Pin<Box<dyn Future<Output = Answer<R>> + Send>>,
}

type Answer<R> = Result<Response<AnswerBody<R>>, Error>;

impl<R> Future for Answering<R> {
    type Output = Answer<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().call.as_mut().poll(cx)
    }
}

/// A request over a service.
struct Over<S, B> {
    resilience: Resilience,
    inner: S,
    parts: request::Parts,
    is_grpc: bool,
    body: ReplayBody<B>,
}

impl<S, B, R> Exchange for Over<S, B>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    type Answer = Response<AnswerBody<R>>;
    type Failure = BoxError;

    fn send(
        &mut self,
        leave: Leave,
    ) -> impl Future<Output = Result<Self::Answer, BoxError>> + Send + use<S, B, R> {
        let mut parts = self.parts.clone();
        write(&mut parts.headers, self.resilience.policy(), self.is_grpc, leave);
        let request = Request::from_parts(parts, self.body.again());
        let mut inner = self.inner.clone();
        async move {
            poll_fn(|cx| inner.poll_ready(cx)).await.map_err(Into::into)?;
            let response = inner.call(request).await.map_err(Into::into)?;
            Ok(response.map(AnswerBody::new))
        }
    }

    fn is_replayable(&self) -> bool {
        self.body.is_replayable()
    }

    fn is_at_hand(&self) -> bool {
        self.body.is_whole()
    }

    fn read(result: &Result<Self::Answer, BoxError>) -> Reading {
        match result {
            Ok(response) => Reading::of_head(response.status(), response.headers()),
            Err(error) => Reading::of_error(&**error),
        }
    }

    async fn settle(answer: &mut Self::Answer) {
        answer.body_mut().settle().await;
    }

    fn has_settled(answer: &Self::Answer) -> bool {
        answer.body().has_settled()
    }
}

/// Says in a request which try it is, and what is left of the deadline.
pub(crate) fn write(headers: &mut http::HeaderMap, policy: &Policy, is_grpc: bool, leave: Leave) {
    headers.insert(policy.attempt_field.clone(), HeaderValue::from(leave.attempt));
    if is_grpc && leave.attempt > 1 {
        headers.insert(GRPC_ATTEMPTS, HeaderValue::from(leave.attempt - 1));
    }
    deadline::tell(&policy.deadline_fields, headers, is_grpc, leave.left);
}

impl<S> fmt::Debug for Resilient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resilient").field("resilience", &self.resilience).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Answering<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}
