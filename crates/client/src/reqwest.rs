//! A middleware for `reqwest-middleware`, for those who have a `reqwest` client already.
//!
//! Bodies that are streams are sent once: reqwest cannot clone them.

use std::future::Future;

use http::{Extensions, Response as HttpResponse};
use reqwest::{Body, Request, Response, ResponseBuilderExt as _, Url};
use reqwest_middleware::{Middleware, Next};

use crate::answer::AnswerBody;
use crate::drive::{End, Exchange, Leave, drive};
use crate::error::Error;
use crate::layer::write;
use crate::policy::Policy;
use crate::reading::{Reading, is_grpc};
use crate::resilience::Resilience;

/// Makes a `reqwest` client resilient. Put it before middlewares that sign or trace each try, and behind those that look at
/// the call as a whole.
///
/// reqwest follows redirects below it, so an error never shows that nothing was done: what is not idempotent is sent once,
/// also if there is no connection.
///
/// A call that is not sent, or has no answer in time, ends with [`reqwest_middleware::Error::Middleware`], in which there
/// is an [`Error`] of this crate.
#[derive(Clone, Debug)]
pub struct ResilientMiddleware {
    resilience: Resilience,
}

impl ResilientMiddleware {
    /// A middleware under this policy that knows nothing yet.
    pub fn new(policy: Policy) -> Self {
        Self::with(Resilience::new(policy))
    }

    /// A middleware that knows of upstreams what others with the same handle know.
    pub const fn with(resilience: Resilience) -> Self {
        Self { resilience }
    }

    /// What is known of the upstreams.
    pub const fn resilience(&self) -> &Resilience {
        &self.resilience
    }
}

#[async_trait::async_trait]
impl Middleware for ResilientMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let uri = request.url().as_str().parse().unwrap_or_default();
        let upstream = self.resilience.upstream(&uri, request.headers());
        let ask = self.resilience.ask(request.method(), request.headers(), extensions);
        let covers = self.resilience.policy().covers_body;
        let mut through =
            Through { request: Some(request), extensions, next, policy: self.resilience.policy() };
        match drive(&upstream, &ask, &mut through).await {
            End::Answer(answer, slot) => {
                let deadline = covers.then(|| upstream.clock.instant(ask.deadline));
                let (url, mut parts) = (answer.url, answer.parts);
                let mut body = answer.body;
                body.hold(slot, deadline);
                let made = HttpResponse::builder().url(url).body(Body::wrap(body));
                let mut response = made.map_err(|error| middleware(Error::Service(error.into())))?;
                *response.status_mut() = parts.status;
                *response.version_mut() = parts.version;
                std::mem::swap(response.headers_mut(), &mut parts.headers);
                response.extensions_mut().extend(parts.extensions);
                Ok(Response::from(response))
            }
            End::Failure(error) => Err(error),
            End::TimedOut => Err(middleware(Error::TimedOut)),
            End::Refused(refusal) => Err(middleware(Error::Refused(refusal))),
        }
    }
}

fn middleware(error: Error) -> reqwest_middleware::Error {
    reqwest_middleware::Error::middleware(error)
}

/// A request through what comes after the middleware.
struct Through<'a> {
    /// `None` once a request that cannot be cloned has been sent.
    request: Option<Request>,
    extensions: &'a mut Extensions,
    next: Next<'a>,
    policy: &'a Policy,
}

struct Answer {
    url: Url,
    parts: http::response::Parts,
    body: AnswerBody<Body>,
}

impl<'a> Exchange for Through<'a> {
    type Answer = Answer;
    type Failure = reqwest_middleware::Error;

    fn send(&mut self, leave: Leave) -> impl Future<Output = Result<Answer, Self::Failure>> + Send + use<'a> {
        let again = self.request.as_ref().and_then(Request::try_clone);
        let request = again.or_else(|| self.request.take());
        let (next, mut extensions, policy) = (self.next.clone(), self.extensions.clone(), self.policy);
        async move {
            let gone = || middleware(Error::Service("the body cannot be sent twice".into()));
            let mut request = request.ok_or_else(gone)?;
            let is_grpc = is_grpc(request.headers());
            write(request.headers_mut(), policy, is_grpc, leave);
            let response = next.run(request, &mut extensions).await?;
            let url = response.url().clone();
            let (parts, body) = HttpResponse::from(response).into_parts();
            Ok(Answer { url, parts, body: AnswerBody::new(body) })
        }
    }

    fn is_replayable(&self) -> bool {
        self.request.as_ref().is_some_and(|request| {
            let fits =
                |body: &Body| body.as_bytes().is_some_and(|bytes| bytes.len() <= self.policy.replay_bytes);
            request.body().is_none_or(fits)
        })
    }

    fn is_at_hand(&self) -> bool {
        self.is_replayable()
    }

    fn read(result: &Result<Answer, Self::Failure>) -> Reading {
        match result {
            Ok(answer) => Reading::of_head(answer.parts.status, &answer.parts.headers),
            // Whatever it was caused by: below here redirects are followed, and a connection that fails need not be the
            // first of the try.
            Err(error) => Reading { undone: false, ..Reading::of_error(error) },
        }
    }

    async fn settle(answer: &mut Answer) {
        answer.body.settle().await;
    }

    fn has_settled(answer: &Answer) -> bool {
        answer.body.has_settled()
    }
}
