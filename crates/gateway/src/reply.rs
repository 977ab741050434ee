//! Renders refusals, before the request's body is read and as cheaply as can be.
//!
//! What they say is [`tidegate_tower::answer`]'s. What is here is what only whoever has the connection can do: close it,
//! and see to a body that nobody has read.

use std::pin::Pin;
use std::task::Poll;

use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Response, StatusCode, Version, request};
use http_body::Body as _;
use hyper::body::Incoming;
use tidegate_engine::Reason;
use tidegate_tower::answer::{self, Answer, Whole};

use crate::answer::Refusal;
use crate::body::Body;
use crate::connection::Client;
use crate::record::Record;
use crate::route::BadRequest;
use crate::signals;

/// An unread body up to this size that has come already is read and thrown away, so that the connection can be kept.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How often the drain looks again before it gives up. Each look lets hyper read what the socket has.
const DRAIN_LOOKS: u32 = 2;

/// How a client wants to be told.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    answer: answer::Manner,
    /// It waits for a `100 Continue` before it sends its body.
    expects: bool,
    http1: bool,
}

impl Manner {
    pub(crate) fn of(head: &request::Parts) -> Self {
        Self {
            answer: answer::Manner::of(&head.headers),
            expects: head.headers.contains_key(EXPECT),
            http1: head.version <= Version::HTTP_11,
        }
    }
}

/// The answer to a request that is refused.
pub(crate) fn refuse(
    client: &Client,
    mut record: Record,
    head: &request::Parts,
    manner: Manner,
    refusal: Refusal,
) -> Response<Body> {
    let now = client.now();
    let (mut response, close) = match refusal {
        Refusal::Rejected(rejection) => {
            let answer = match rejection.reason {
                Reason::RouteLimit if record.bulkhead_is_quota() => Answer::route_quota(),
                reason => Answer::to(reason),
            };
            let status = answer.row().status;
            let wait = answer.wait(rejection, record.live().policy.server.retry_after_max);
            // Of one that was sent on already there is no head left to know it again by.
            if let Some(wait) = wait.filter(|_| !record.was_dispatched()) {
                let fingerprint = record.fingerprint(head);
                client.worker.shared.returns.tell(now, fingerprint, status, wait);
            }
            let problem = record.over().map_or_else(|| answer.problem(), |rule| &rule.problem);
            let mut response = whole(answer.response(manner.answer, problem, wait));
            let headers = response.headers_mut();
            signals::on_refusal(headers, record.live(), (status, wait), record.over(), record.upstream());
            (response, answer.row().close)
        }
        Refusal::NotFound => {
            (problem(StatusCode::NOT_FOUND, "not_found", "No route matches this request"), false)
        }
        Refusal::Bad(BadRequest::Malformed(what)) => {
            (problem(StatusCode::BAD_REQUEST, "bad_request", what), true)
        }
        Refusal::Bad(BadRequest::NotImplemented(what)) => {
            (problem(StatusCode::NOT_IMPLEMENTED, "not_implemented", what), true)
        }
    };
    record.refused(now, refusal, response.status());
    if close {
        close_after(&mut response, manner);
    }
    response
}

/// Sees to the body of a request that is refused, if nobody has read it.
pub(crate) async fn see_to_unread(
    client: &Client,
    manner: Manner,
    body: Incoming,
    mut response: Response<Body>,
) -> Response<Body> {
    if manner.expects || !drained(body).await {
        client.socket.left_unread();
        // A connection whose request was not read to its end is never used again (CVE-2025-4366).
        close_after(&mut response, manner);
    }
    response
}

fn close_after(response: &mut Response<Body>, manner: Manner) {
    if manner.http1 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

fn problem(status: StatusCode, reason: &str, title: &str) -> Response<Body> {
    whole(answer::problem(status, reason, title))
}

/// The body of an answer of ours.
fn whole(response: Response<Whole>) -> Response<Body> {
    response.map(|body| Body::whole(body.into_bytes()))
}

/// Reads what has come of a small body already. Says whether that was all of it; waits for nothing.
async fn drained(mut body: Incoming) -> bool {
    let (mut bytes, mut looks) = (0, 0);
    std::future::poll_fn(move |cx| {
        loop {
            match Pin::new(&mut body).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(true),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(false),
                Poll::Ready(Some(Ok(frame))) => {
                    bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                    if body.is_end_stream() {
                        return Poll::Ready(true);
                    }
                    if bytes > DRAIN_BYTES {
                        return Poll::Ready(false);
                    }
                }
                Poll::Pending if looks == DRAIN_LOOKS => return Poll::Ready(false),
                Poll::Pending => {
                    looks += 1;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    })
    .await
}
