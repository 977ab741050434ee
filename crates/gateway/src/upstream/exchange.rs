//! Sends a request and waits for the head of its answer.

use std::future::poll_fn;
use std::sync::Arc;

use http::header::CONNECTION;
use http::{Request, Response, StatusCode, Version, response};
use tidegate_engine::{Outcome, Reason, Timestamp};
use tokio::time::{sleep_until, timeout_at};

use super::Upstream;
use super::connection::{ConnectError, Connection};
use super::endpoint::Endpoint;
use super::flight::{AnswerBody, Flight};
use super::upload::RequestBody;
use crate::answer::Refusal;
use crate::head::lists;
use crate::route::BadRequest;
use crate::worker::Worker;

/// Sends a request to the endpoint with the least in flight. An endpoint that cannot be reached is passed over for
/// the next, and a kept connection that had died before it was used is replaced: in both cases nothing was sent, so
/// nothing is done twice.
pub(crate) async fn send(
    worker: &Arc<Worker>,
    upstream: &Arc<Upstream>,
    mut flight: Flight,
    mut request: Request<RequestBody>,
) -> Result<Response<AnswerBody>, Refusal> {
    let mut tried: Vec<Arc<Endpoint>> = Vec::new();
    let mut fresh = false;
    loop {
        let Some(endpoint) = upstream.choose(&tried) else {
            flight.broken();
            return Err(Reason::UpstreamConnect.into());
        };
        let in_flight = endpoint.enter();
        let (overdue, reason) = flight.overdue();
        let kept = if fresh { None } else { worker.pool.take(endpoint.id) };
        let connected = match kept {
            Some(kept) => Ok(kept),
            None => open(worker, upstream, endpoint, overdue).await,
        };
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(ConnectError::Overdue) => {
                flight.broken();
                return Err(reason.into());
            }
            Err(ConnectError::Unreachable) => {
                tried.push(endpoint.clone());
                continue;
            }
            Err(ConnectError::Descriptors) => {
                flight.broken();
                return Err(Reason::GatewayOverloaded.into());
            }
        };
        let reused = connection.reused;
        let upload = request.body().upload();
        let answering = connection.send(request);
        flight.sent(connection, in_flight, upload, answering);
        match head(worker, flight).await {
            Ok(response) => return Ok(response),
            Err(Failed::For(refusal)) => return Err(refusal),
            Err(Failed::NotSent(back)) if reused => {
                (flight, request) = *back;
                fresh = true;
            }
            Err(Failed::NotSent(back)) => {
                back.0.broken();
                return Err(Reason::UpstreamReset.into());
            }
        }
    }
}

/// Opens a connection. Time runs from the dispatch, and an answer that is overdue is not asked for any more.
async fn open(
    worker: &Worker,
    upstream: &Upstream,
    endpoint: &Endpoint,
    overdue: Timestamp,
) -> Result<Connection, ConnectError> {
    let connections = &worker.shared.metrics.upstream_connections;
    // Boxed, because it is rare, and would make the future of every request larger.
    let opening = Box::pin(Connection::open(endpoint, upstream.policy.connect_timeout, connections));
    timeout_at(worker.shared.clock.instant(overdue), opening).await.unwrap_or(Err(ConnectError::Overdue))
}

enum Failed {
    /// Nothing went out: both can be used again.
    NotSent(Box<(Flight, Request<RequestBody>)>),
    For(Refusal),
}

/// Waits for the head of the answer.
async fn head(worker: &Worker, mut flight: Flight) -> Result<Response<AnswerBody>, Failed> {
    let clock = worker.shared.clock;
    loop {
        let (overdue, _) = flight.overdue();
        let answer = tokio::select! {
            biased;
            answer = poll_fn(|cx| flight.poll_head(cx)) => answer,
            () = sleep_until(clock.instant(overdue)) => {
                // More of the request may have come in the meantime.
                let (overdue, reason) = flight.overdue();
                if overdue > clock.now() {
                    continue;
                }
                flight.timed_out(reason);
                return Err(Failed::For(reason.into()));
            }
        };
        return match answer {
            Ok(response) => Ok(begin_answer(flight, response)),
            Err(mut error) => match error.take_message() {
                Some(request) => {
                    flight.unsent();
                    Err(Failed::NotSent(Box::new((flight, request))))
                }
                None => {
                    let refusal = if flight.upload_is_broken() {
                        BadRequest::Malformed("the request body is malformed or was cut short").into()
                    } else {
                        Reason::UpstreamReset.into()
                    };
                    flight.broken();
                    Err(Failed::For(refusal))
                }
            },
        };
    }
}

fn begin_answer(mut flight: Flight, response: Response<hyper::body::Incoming>) -> Response<AnswerBody> {
    let (head, body) = response.into_parts();
    flight.answered(body, outcome(head.status), closes(&head));
    Response::from_parts(head, AnswerBody { flight })
}

/// Whether the upstream closes the connection after this answer, so that it need not be kept.
fn closes(head: &response::Parts) -> bool {
    let listed = head.headers.get(CONNECTION).is_some_and(|value| lists(value.as_bytes(), b"close"));
    listed || head.version == Version::HTTP_10
}

/// What a status says about the upstream: 503 and 504 that it has too much to do; other errors nothing, since a fast
/// failure is not a sign of health (Netflix/concurrency-limits#176).
const fn outcome(status: StatusCode) -> Outcome {
    match status.as_u16() {
        503 | 504 => Outcome::Overload,
        500..=599 => Outcome::Ignore,
        _ => Outcome::Success,
    }
}
