//! [`GateLayer`]: a gate in front of any service from an HTTP request to an HTTP response.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, request, response};
use http_body::Body;
use pin_project_lite::pin_project;
use tidegate_engine::{Outcome, Reason, Rejection, RouteId};
use tower_layer::Layer;
use tower_service::Service;

use crate::gate::Gate;
use crate::layers::answer::{Answer, Manner, RETRY_AFTER_MAX, Whole};
use crate::layers::body::AnswerBody;
use crate::layers::class::Class;
use crate::layers::deadline::{self, Deadline};
use crate::layers::event::GateEvent;
use crate::layers::outcome;
use crate::layers::passing::{CallError, Passing};
use crate::layers::slot::Setup;

type Classify = Arc<dyn Fn(&request::Parts) -> Class + Send + Sync>;
type Judge = Arc<dyn Fn(&response::Parts) -> Outcome + Send + Sync>;

/// Lets requests through to a service as its [`Gate`] does, and answers those that it refuses.
///
/// It decides when the future of a call is first polled, and holds nothing before: `poll_ready` is always ready. The
/// slot is held until the body of the answer has ended, has failed or is dropped; the limit learns at the head. A caller
/// that leaves while it waits leaves the queue. One that leaves while the service works stops the work, as far as that is
/// in its future, and the slot is free; work that the service has given to other tasks or threads goes on without one.
///
/// What is refused is answered by the table of [`answer`](crate::answer).
///
/// Clones share the gate. Each may be for another route, which is what bulkheads and events tell apart.
#[derive(Clone)]
pub struct GateLayer {
    rules: Arc<Rules>,
}

#[derive(Clone)]
struct Rules {
    setup: Arc<Setup>,
    classify: Classify,
    /// Requests are believed what they say of their deadline.
    stated: bool,
    /// `None` for [`outcome_of`](crate::outcome_of), which may leave it to the trailers.
    judge: Option<Judge>,
    retry_after_max: Duration,
    bulkhead_is_quota: bool,
}

impl GateLayer {
    /// A layer that takes all requests for first tries of the most important class on route 0, and believes them what
    /// they say of their deadline in `grpc-timeout` and `x-envoy-expected-rq-timeout-ms`.
    pub fn new(gate: Gate) -> Self {
        let rules = Rules {
            setup: Arc::new(Setup::new(gate)),
            classify: Arc::new(|_| Class::default()),
            stated: true,
            judge: None,
            retry_after_max: RETRY_AFTER_MAX,
            bulkhead_is_quota: false,
        };
        Self { rules: Arc::new(rules) }
    }

    /// The same layer, for this route.
    #[must_use]
    pub fn for_route(&self, route: RouteId) -> Self {
        self.clone().with_setup(|setup| setup.route = route)
    }

    /// The same layer, which asks this function what kind of request it is. Of the patience that it names and the deadline
    /// that the request states, the earlier counts.
    #[must_use]
    pub fn with_classifier(
        self,
        classify: impl Fn(&request::Parts) -> Class + Send + Sync + 'static,
    ) -> Self {
        self.with_rules(|rules| rules.classify = Arc::new(classify))
    }

    /// The same layer, which does not look for a deadline in `grpc-timeout` and `x-envoy-expected-rq-timeout-ms`: for a
    /// service whose clients are not to be believed, or state it in other fields, which are the classifier's to read. The
    /// deadline of a layer outside still counts, even where that one has read it from these fields.
    #[must_use]
    pub fn without_stated_deadlines(self) -> Self {
        self.with_rules(|rules| rules.stated = false)
    }

    /// The same layer, which asks this function what an answer's head says about the service. When left out, it is
    /// [`outcome_of`](crate::outcome_of), and over gRPC the trailers if the head does not say.
    #[must_use]
    pub fn with_outcome(self, judge: impl Fn(&response::Parts) -> Outcome + Send + Sync + 'static) -> Self {
        self.with_rules(|rules| rules.judge = Some(Arc::new(judge)))
    }

    /// The same layer, which gives the service so long, from the slot taken to the head of the answer, and never longer
    /// than to the deadline. Then its future is dropped and the answer is 504. When left out, nothing is cut off.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.with_setup(|setup| setup.timeout = Some(timeout))
    }

    /// The same layer, which tells nobody to stay away for longer than this. When left out, it is a minute.
    #[must_use]
    pub fn with_retry_after_max(self, longest: Duration) -> Self {
        self.with_rules(|rules| rules.retry_after_max = longest)
    }

    /// The same layer, which answers 429 in the place of 503 to what exceeds a bulkhead: the bulkhead is a quota.
    #[must_use]
    pub fn with_bulkhead_as_quota(self) -> Self {
        self.with_rules(|rules| rules.bulkhead_is_quota = true)
    }

    /// The same layer, which tells this function what happens. It is called where it happens, so it has to be quick, and
    /// must not panic.
    #[must_use]
    pub fn with_observer(self, observe: impl Fn(&GateEvent) + Send + Sync + 'static) -> Self {
        self.with_setup(|setup| setup.observer = Some(Arc::new(observe)))
    }

    /// Its gate.
    pub fn gate(&self) -> &Gate {
        &self.rules.setup.gate
    }

    fn with_setup(self, change: impl FnOnce(&mut Setup)) -> Self {
        self.with_rules(|rules| change(Arc::make_mut(&mut rules.setup)))
    }

    fn with_rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(Arc::make_mut(&mut self.rules));
        self
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = GateService<S>;

    fn layer(&self, inner: S) -> GateService<S> {
        GateService { inner, layer: self.clone() }
    }
}

impl fmt::Debug for GateLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { gate, route, timeout, .. } = &*self.rules.setup;
        let mut shown = f.debug_struct("GateLayer");
        shown.field("gate", gate).field("route", route).field("timeout", timeout).finish_non_exhaustive()
    }
}

/// A service behind a gate; see [`GateLayer`].
#[derive(Clone, Debug)]
pub struct GateService<S> {
    inner: S,
    layer: GateLayer,
}

impl<S, B, A> Service<Request<B>> for GateService<S>
where
    S: Service<Request<B>, Response = Response<A>> + Clone,
    A: Body,
    A::Data: From<Bytes>,
{
    type Response = Response<AnswerBody<A>>;
    type Error = S::Error;
    type Future = GateFuture<S, B>;

    /// Always ready. What is behind the gate is asked when there is a slot.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> GateFuture<S, B> {
        let rules = &self.layer.rules;
        let setup = &rules.setup;
        let (mut head, body) = request.into_parts();
        let class = (rules.classify)(&head);
        let manner = Manner::of(&head.headers);
        let known = [deadline::current(), head.extensions.get().copied()];
        let stated = if rules.stated { deadline::stated(&head.headers) } else { None };
        let patience = class.patience.into_iter().chain(stated).min();
        let deadline = Deadline::earliest(setup.gate.clock(), patience, known, manner);
        if let Some(deadline) = deadline {
            head.extensions.insert(deadline);
        }
        let request = Request::from_parts(head, body);
        let passing = Passing::new(setup, &class, deadline, self.inner.clone(), request);
        GateFuture { passing, rules: rules.clone(), manner }
    }
}

pin_project! {
    /// The future of a call through a gate. Dropping it leaves the queue, or stops the work and frees the slot.
    pub struct GateFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        passing: Passing<S, Request<B>>,
        rules: Arc<Rules>,
        manner: Manner,
    }
}

impl<S, B, A> Future for GateFuture<S, B>
where
    S: Service<Request<B>, Response = Response<A>>,
    A: Body,
    A::Data: From<Bytes>,
{
    type Output = Result<Response<AnswerBody<A>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (response, slot) = match ready!(this.passing.as_mut().poll(cx)) {
            Ok(answered) => answered,
            Err(CallError::Service(error)) => return Poll::Ready(Err(error)),
            Err(CallError::Rejected(rejection)) => {
                let response = this.rules.refuse(*this.manner, rejection);
                return Poll::Ready(Ok(response.map(AnswerBody::refusal)));
            }
        };
        let (head, body) = response.into_parts();
        let outcome = match &this.rules.judge {
            Some(judge) => (Some(judge(&head)), false),
            None => (outcome::of_head(&head), true),
        };
        let body = AnswerBody::held(body, slot, outcome, this.passing.deadline());
        Poll::Ready(Ok(Response::from_parts(head, body)))
    }
}

impl Rules {
    fn refuse(&self, manner: Manner, rejection: Rejection) -> Response<Whole> {
        let answer = match rejection.reason {
            Reason::RouteLimit if self.bulkhead_is_quota => Answer::route_quota(),
            reason => Answer::to(reason),
        };
        answer.response(manner, answer.problem(), answer.wait(rejection, self.retry_after_max))
    }
}
