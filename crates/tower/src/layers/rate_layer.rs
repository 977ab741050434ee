//! [`RateLimitLayer`]: may this caller send this much? Several quotas, each with a key of its own, in front of any service
//! from an HTTP request to an HTTP response.
//!
//! It protects callers from one another, and not the service: an unexpected number of well-behaved callers can still
//! flood it. That is [`GateLayer`](crate::GateLayer)'s work, which goes inside this one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tidegate_engine::whole_seconds;
use tower_layer::Layer;
use tower_service::Service;

use crate::layers::answer::{Answer, Manner, RETRY_AFTER_MAX, Whole};
use crate::layers::body::AnswerBody;
use crate::layers::limits::{Limits, Over, RateLimit};
use crate::layers::passing::Calling;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Counts each request against all its quotas, or against none and answers 429.
///
/// A refusal says when to come back, and each caller is told a time of its own: the first the exact time, and nobody an
/// earlier one. What is refused by one quota uses up nothing of the others. `poll_ready` is always ready, and what is
/// behind the layer is asked once a request has passed.
///
/// Clones, and all the services made by them, share the buckets.
#[derive(Clone)]
pub struct RateLimitLayer {
    limits: Arc<Limits>,
    retry_after_max: Duration,
    advertise: bool,
}

impl RateLimitLayer {
    /// A layer with these quotas, of which nothing is used yet.
    pub fn new(limits: impl IntoIterator<Item = RateLimit>) -> Self {
        let limits = Arc::new(Limits::new(limits));
        Self { limits, retry_after_max: RETRY_AFTER_MAX, advertise: false }
    }

    /// The same layer, which tells nobody to stay away for longer than this. When left out, it is a minute.
    #[must_use]
    pub fn with_retry_after_max(self, longest: Duration) -> Self {
        Self { retry_after_max: longest, ..self }
    }

    /// The same layer, whose refusals carry `RateLimit` and `RateLimit-Policy` for the quota that was exceeded
    /// (draft-ietf-httpapi-ratelimit-headers-11).
    #[must_use]
    pub fn with_ratelimit_fields(self) -> Self {
        Self { advertise: true, ..self }
    }

    /// How many requests were counted more strictly than a quota says, because there were more keys than it tells apart.
    pub fn overflowed(&self) -> u64 {
        self.limits.overflowed()
    }

    fn refuse(&self, manner: Manner, over: &Over<'_>) -> Response<Whole> {
        let Over { rule, rejection } = over;
        let answer = Answer::to(rejection.reason);
        let wait = answer.wait(*rejection, self.retry_after_max);
        let mut response = answer.response(manner, &rule.problem, wait);
        if let (true, Some(advert), Some(wait)) = (self.advertise, &rule.advert, wait) {
            let seconds = whole_seconds(wait).max(1);
            let limit = format!("\"{}\";r=0;t={seconds}", rule.name());
            response.headers_mut().append(POLICY, advert.clone());
            if let Ok(limit) = HeaderValue::try_from(limit) {
                response.headers_mut().append(LIMIT, limit);
            }
        }
        response
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimitService<S>;

    fn layer(&self, inner: S) -> RateLimitService<S> {
        RateLimitService { inner, layer: self.clone() }
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitLayer").field(&self.limits).finish()
    }
}

/// A service behind rate limits; see [`RateLimitLayer`].
#[derive(Clone, Debug)]
pub struct RateLimitService<S> {
    inner: S,
    layer: RateLimitLayer,
}

impl<S, B, A> Service<Request<B>> for RateLimitService<S>
where
    S: Service<Request<B>, Response = Response<A>> + Clone,
    A: Body,
    A::Data: From<Bytes>,
{
    type Response = Response<AnswerBody<A>>;
    type Error = S::Error;
    type Future = RateLimitFuture<S, B>;

    /// Always ready. What is behind the limits is asked when a request has passed.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> RateLimitFuture<S, B> {
        let (head, body) = request.into_parts();
        let limits = &self.layer.limits;
        let state = match limits.check(&head, self.layer.retry_after_max) {
            Ok(()) => {
                State::Passed { calling: Calling::new(self.inner.clone(), Request::from_parts(head, body)) }
            }
            Err(over) => {
                State::Refused { response: Some(self.layer.refuse(Manner::of(&head.headers), &over)) }
            }
        };
        RateLimitFuture { state }
    }
}

pin_project! {
    /// The future of a call through rate limits. The request was counted, or refused, when it was called.
    pub struct RateLimitFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B>
    where
        S: Service<Request<B>>,
    {
        Passed { #[pin] calling: Calling<S, Request<B>> },
        Refused { response: Option<Response<Whole>> },
    }
}

impl<S, B, A> Future for RateLimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<A>>,
{
    type Output = Result<Response<AnswerBody<A>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project().state.project() {
            StateProjection::Passed { calling } => {
                ready!(calling.poll(cx)).map(|response| response.map(AnswerBody::free))
            }
            StateProjection::Refused { response } => match response.take() {
                Some(response) => Ok(response.map(AnswerBody::refusal)),
                // It has been polled after it was ready.
                None => return Poll::Pending,
            },
        })
    }
}
