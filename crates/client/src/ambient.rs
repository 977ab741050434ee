//! The request that is being served while others are made for it: its deadline, and whether it was tried before.
//!
//! Three layers that try three times each are 27 calls at the bottom. Two things keep it at one layer. Whoever serves a
//! request that is a retry does not try again itself. And whoever has tried in vain says so in its own answer
//! (`x-should-retry: false`; of gRPC `grpc-retry-pushback-ms: -1`), so that the layer above does not start over.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use crate::deadline::{self, Deadline, DeadlineField};
use crate::reading;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// gRFC A6: a negative number is a no.
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

tokio::task_local! {
    static CURRENT: Ambient;
}

/// What calls that are made for a request have to know of it. [`AmbientLayer`] makes one for each request that a service
/// is asked; it follows the task, and can be put into the extensions of a request where it does not.
#[derive(Clone, Debug)]
pub struct Ambient {
    attempt: u32,
    deadline: Option<Deadline>,
    exhausted: Arc<AtomicBool>,
}

impl Ambient {
    /// What these fields of a request say.
    pub fn of(headers: &HeaderMap, attempt_field: &HeaderName, deadline_fields: &[DeadlineField]) -> Self {
        Self {
            attempt: attempt(headers, attempt_field),
            deadline: deadline::said(deadline_fields, headers).map(Deadline::within),
            exhausted: Arc::default(),
        }
    }

    /// That of the task that asks.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs a future with this for all calls that are made in it.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Which try of its caller it is, the first being 1.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Until when its caller waits, if it said so.
    pub const fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Whether a call that was made for it has failed for good, so that trying again from above would be the same again.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Relaxed)
    }

    pub(crate) fn exhaust(&self) {
        self.exhausted.store(true, Relaxed);
    }
}

/// The number of the try in this field; 1 for whoever says nothing that can be read.
pub(crate) fn attempt(headers: &HeaderMap, field: &HeaderName) -> u32 {
    let said = headers.get(field).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    said.unwrap_or(1).max(1)
}

/// Goes before a service that calls others: what the request says of its deadline and its tries is known to all calls
/// that are made in its handler, and a failure that was tried again in vain is marked, so that the caller does not try
/// again.
#[derive(Clone, Debug)]
pub struct AmbientLayer {
    attempt_field: HeaderName,
    deadline_fields: Arc<[DeadlineField]>,
}

impl AmbientLayer {
    /// Reads the fields that this policy sends.
    pub fn new(policy: &crate::Policy) -> Self {
        Self {
            attempt_field: policy.attempt_field.clone(),
            deadline_fields: policy.deadline_fields.clone().into(),
        }
    }
}

impl<S> Layer<S> for AmbientLayer {
    type Service = AmbientService<S>;

    fn layer(&self, inner: S) -> AmbientService<S> {
        AmbientService { layer: self.clone(), inner }
    }
}

/// See [`AmbientLayer`].
#[derive(Clone, Debug)]
pub struct AmbientService<S> {
    layer: AmbientLayer,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for AmbientService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let AmbientLayer { attempt_field, deadline_fields } = &self.layer;
        let ambient = Ambient::of(request.headers(), attempt_field, deadline_fields);
        // A service may already begin to call while its future is made.
        let future = CURRENT.sync_scope(ambient.clone(), || self.inner.call(request));
        Box::pin(async move {
            let mut response = ambient.clone().scope(future).await?;
            if ambient.is_exhausted()
                && let Some((name, value)) = no(response.status(), response.headers())
            {
                response.headers_mut().insert(name, HeaderValue::from_static(value));
            }
            Ok(response)
        })
    }
}

/// How an answer that is a failure says that it is not to be tried again. Of gRPC's those that have their status in the
/// head, which are all that have nothing before it; behind messages nobody tries again.
fn no(status: StatusCode, headers: &HeaderMap) -> Option<(HeaderName, &'static str)> {
    match reading::grpc_status(status, headers) {
        Some(b"0") => None,
        Some(_) => Some((GRPC_PUSHBACK, "-1")),
        None => (status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS)
            .then_some((SHOULD_RETRY, "false")),
    }
}
