//! [`CallLayer`]: a gate in front of any service at all. It knows no HTTP; who is refused gets a typed error.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tidegate_engine::{Outcome, RouteId};
use tower_layer::Layer;
use tower_service::Service;

use crate::gate::Gate;
use crate::layers::answer::Manner;
use crate::layers::class::Class;
use crate::layers::deadline::{self, Deadline};
use crate::layers::event::GateEvent;
use crate::layers::passing::{CallError, Passing};
use crate::layers::slot::Setup;

/// Lets calls through to a service as its [`Gate`] does; others fail with [`CallError::Rejected`].
///
/// It is what [`GateLayer`](crate::GateLayer) is for HTTP, with two differences: the slot is free when the service's
/// future has ended, since there is no body; and an error of the service counts as a failure, everything else as a
/// success. `R` is the request.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::convert::Infallible;
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use tidegate_tower::engine::*;
/// use tidegate_tower::{CallError, CallLayer, Gate};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// // Nobody may wait, so whoever comes second is refused.
/// let gate = Gate::new(AdmissionPolicy::new(
///     LimitPolicy::Fixed(NonZeroU32::MIN),
///     QueuePolicy::of(Duration::ZERO, Capacity::Fixed(0)),
/// ));
/// let double = service_fn(|number: u32| async move {
///     tokio::task::yield_now().await;
///     Ok::<_, Infallible>(2 * number)
/// });
/// let service = ServiceBuilder::new().layer(CallLayer::new(gate)).service(double);
/// let (first, second) = tokio::join!(service.clone().oneshot(1), service.oneshot(2));
/// assert_eq!(first.unwrap(), 2);
/// let Err(CallError::Rejected(rejection)) = second else { panic!() };
/// assert_eq!(rejection.reason, Reason::QueueFull);
/// # }
/// ```
pub struct CallLayer<R> {
    setup: Arc<Setup>,
    classify: Arc<dyn Fn(&R) -> Class + Send + Sync>,
}

impl<R> CallLayer<R> {
    /// A layer that takes all calls for first tries of the most important class on route 0, without a deadline of their
    /// own.
    pub fn new(gate: Gate) -> Self {
        Self { setup: Arc::new(Setup::new(gate)), classify: Arc::new(|_| Class::default()) }
    }

    /// The same layer, for this route.
    #[must_use]
    pub fn for_route(&self, route: RouteId) -> Self {
        self.clone().with_setup(|setup| setup.route = route)
    }

    /// The same layer, which asks this function what kind of request it is.
    #[must_use]
    pub fn with_classifier(self, classify: impl Fn(&R) -> Class + Send + Sync + 'static) -> Self {
        Self { classify: Arc::new(classify), ..self }
    }

    /// The same layer, which gives the service so long, and never longer than to the deadline. Then its future is
    /// dropped and the call fails for [`Reason::UpstreamTimeout`](tidegate_engine::Reason::UpstreamTimeout) or
    /// [`Reason::Deadline`](tidegate_engine::Reason::Deadline). When left out, nothing is cut off.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.with_setup(|setup| setup.timeout = Some(timeout))
    }

    /// The same layer, which tells this function what happens. It is called where it happens, so it has to be quick, and
    /// must not panic.
    #[must_use]
    pub fn with_observer(self, observe: impl Fn(&GateEvent) + Send + Sync + 'static) -> Self {
        self.with_setup(|setup| setup.observer = Some(Arc::new(observe)))
    }

    /// Its gate.
    pub fn gate(&self) -> &Gate {
        &self.setup.gate
    }

    fn with_setup(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(Arc::make_mut(&mut self.setup));
        self
    }
}

// By hand, because a request need not be `Clone` for its layer to be.
impl<R> Clone for CallLayer<R> {
    fn clone(&self) -> Self {
        Self { setup: self.setup.clone(), classify: self.classify.clone() }
    }
}

impl<R> fmt::Debug for CallLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { gate, route, timeout, .. } = &*self.setup;
        let mut shown = f.debug_struct("CallLayer");
        shown.field("gate", gate).field("route", route).field("timeout", timeout).finish_non_exhaustive()
    }
}

impl<S, R> Layer<S> for CallLayer<R> {
    type Service = CallService<S, R>;

    fn layer(&self, inner: S) -> CallService<S, R> {
        CallService { inner, layer: self.clone() }
    }
}

/// A service behind a gate; see [`CallLayer`].
pub struct CallService<S, R> {
    inner: S,
    layer: CallLayer<R>,
}

impl<S: Clone, R> Clone for CallService<S, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S: fmt::Debug, R> fmt::Debug for CallService<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallService").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

impl<S: Service<R> + Clone, R> Service<R> for CallService<S, R> {
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future = CallFuture<S, R>;

    /// Always ready. What is behind the gate is asked when there is a slot.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> CallFuture<S, R> {
        let CallLayer { setup, classify } = &self.layer;
        let class = classify(&request);
        let known = [deadline::current(), None];
        let deadline = Deadline::earliest(setup.gate.clock(), class.patience, known, Manner::Http);
        CallFuture { passing: Passing::new(setup, &class, deadline, self.inner.clone(), request) }
    }
}

pin_project! {
    /// The future of a call through a gate. Dropping it leaves the queue, or stops the work and frees the slot.
    pub struct CallFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        passing: Passing<S, R>,
    }
}

impl<S: Service<R>, R> Future for CallFuture<S, R> {
    type Output = Result<S::Response, CallError<S::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, slot) = ready!(self.project().passing.poll(cx))?;
        if let Some(slot) = slot {
            slot.end(Outcome::Success);
        }
        Poll::Ready(Ok(response))
    }
}
