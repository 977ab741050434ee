//! Renders refusals, before the request's body is read and as cheaply as can be.
//!
//! Bodies and most fields are made once. A client is told in the way it asked: gRPC by a trailers-only answer, all
//! others by a problem document (RFC 9457).

use std::pin::Pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, EXPECT, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, request};
use http_body::Body as _;
use hyper::body::Incoming;
use serde_json::json;
use tidegate_engine::{Reason, Rejection};

use crate::answer::{Refusal, Retry, Row};
use crate::body::Body;
use crate::connection::Client;
use crate::record::Record;
use crate::route::BadRequest;
use crate::signals;

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The types of problems that draft-ietf-httpapi-ratelimit-headers-11 registers, section 5.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const REDUCED_CAPACITY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// An unread body up to this size that has come already is read and thrown away, so that the connection can be kept.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How often the drain looks again before it gives up. Each look lets hyper read what the socket has.
const DRAIN_LOOKS: u32 = 2;

/// How a client wants to be told.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    grpc: bool,
    /// It waits for a `100 Continue` before it sends its body.
    expects: bool,
    http1: bool,
}

impl Manner {
    pub(crate) fn of(head: &request::Parts) -> Self {
        let content_type = head.headers.get(CONTENT_TYPE);
        Self {
            grpc: content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc")),
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
    let (mut response, close) = match refusal {
        Refusal::Rejected(rejection) => {
            let row = rendered(rejection.reason, record.bulkhead_is_quota());
            let wait = wait(row.row, rejection, record.live().policy.server.retry_after_max);
            // Of one that was sent on already there is no head left to know it again by.
            if let Some(wait) = wait.filter(|_| !record.was_dispatched()) {
                let fingerprint = record.fingerprint(head);
                client.worker.shared.returns.tell(client.now(), fingerprint, row.row.status, wait);
            }
            let problem = record.over().map_or(&row.problem, |rule| &rule.problem);
            let mut response = rejected(manner, row, problem, wait);
            let headers = response.headers_mut();
            signals::on_refusal(
                headers,
                record.live(),
                (row.row.status, wait),
                record.over(),
                record.upstream(),
            );
            (response, row.row.close)
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
    record.refused(refusal, response.status());
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

/// A reason, rendered.
struct Rendered {
    row: Row,
    problem: Bytes,
    proxy_status: HeaderValue,
    grpc_status: HeaderValue,
    grpc_message: HeaderValue,
}

static RENDERED: LazyLock<Vec<Rendered>> =
    LazyLock::new(|| Reason::ALL.map(|reason| render(reason, Row::to(reason))).into());
static ROUTE_QUOTA: LazyLock<Rendered> = LazyLock::new(|| render(Reason::RouteLimit, Row::route_quota()));
/// `Retry-After` for the first minutes, so that the common ones are not made each time.
static SECONDS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| (0..=300u64).map(HeaderValue::from).collect());

fn rendered(reason: Reason, bulkhead_is_quota: bool) -> &'static Rendered {
    match reason {
        Reason::RouteLimit if bulkhead_is_quota => &ROUTE_QUOTA,
        _ => &RENDERED[reason as usize],
    }
}

fn render(reason: Reason, row: Row) -> Rendered {
    let kind = match row.status {
        StatusCode::TOO_MANY_REQUESTS => QUOTA_EXCEEDED,
        StatusCode::SERVICE_UNAVAILABLE => REDUCED_CAPACITY,
        _ => "about:blank",
    };
    let proxy_status = match reason {
        Reason::RateLimited => {
            format!("tidegate; error={}; status-code=429; details=\"{reason}\"", row.proxy_error)
        }
        _ => format!("tidegate; error={}; details=\"{reason}\"", row.proxy_error),
    };
    let value = |text: &str| HeaderValue::from_str(text).expect("names and titles are plain ASCII");
    Rendered {
        problem: document(kind, row.status, reason.name(), row.title),
        proxy_status: value(&proxy_status),
        grpc_status: HeaderValue::from(u16::from(row.grpc)),
        grpc_message: value(row.title),
        row,
    }
}

fn document(kind: &str, status: StatusCode, reason: &str, title: &str) -> Bytes {
    let problem = json!({ "type": kind, "title": title, "status": status.as_u16(), "reason": reason });
    Bytes::from(format!("{problem}\n"))
}

/// The problem document for whoever is over this rate limit: as for any other, and which it was
/// (draft-ietf-httpapi-ratelimit-headers-11, section 5.1).
pub(crate) fn over_the_rate(name: &str) -> Bytes {
    let Row { status, title, .. } = Row::to(Reason::RateLimited);
    let reason = Reason::RateLimited.name();
    let problem = json!({
        "type": QUOTA_EXCEEDED, "title": title, "status": status.as_u16(), "reason": reason,
        "violated-policies": [name],
    });
    Bytes::from(format!("{problem}\n"))
}

/// After what time to come back, if that is said at all.
fn wait(row: Row, rejection: Rejection, longest: Duration) -> Option<Duration> {
    match row.retry {
        // Where nothing is known, a second is a fair guess; at once would be the worst.
        Retry::After if rejection.retry_after.is_zero() => Some(Duration::from_secs(1)),
        Retry::After => Some(rejection.told(longest)),
        Retry::Unsaid | Retry::Never => None,
    }
}

fn rejected(manner: Manner, rendered: &Rendered, problem: &Bytes, wait: Option<Duration>) -> Response<Body> {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(PROXY_STATUS, rendered.proxy_status.clone());
    if let Some(wait) = wait {
        headers.insert(RETRY_AFTER, whole_seconds(wait));
        headers.insert(RETRY_AFTER_MS, HeaderValue::from(whole_millis(wait)));
    }
    if manner.grpc {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(GRPC_STATUS, rendered.grpc_status.clone());
        headers.insert(GRPC_MESSAGE, rendered.grpc_message.clone());
        match (wait, rendered.row.retry) {
            (Some(wait), _) => {
                headers.insert(GRPC_PUSHBACK, HeaderValue::from(whole_millis(wait)));
            }
            (None, Retry::Never) => {
                headers.insert(GRPC_PUSHBACK, HeaderValue::from_static("-1"));
            }
            (None, _) => {}
        }
        return assemble(StatusCode::OK, headers, Body::Empty);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    assemble(rendered.row.status, headers, Body::Whole(problem.clone()))
}

fn problem(status: StatusCode, reason: &str, title: &str) -> Response<Body> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    assemble(status, headers, Body::Whole(document("about:blank", status, reason, title)))
}

fn assemble(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Rounded up, and at least one: whoever comes back a moment too early is refused again.
fn whole_seconds(wait: Duration) -> HeaderValue {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    SECONDS.get(seconds as usize).cloned().unwrap_or_else(|| HeaderValue::from(seconds))
}

fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(grpc: bool, reason: Reason, retry_after: Duration) -> String {
        let manner = Manner { grpc, expects: false, http1: true };
        let rejection = Rejection { reason, retry_after };
        let row = rendered(reason, false);
        let response = rejected(manner, row, &row.problem, wait(row.row, rejection, Duration::from_secs(60)));
        let mut lines: Vec<String> = response
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        let body = match response.body() {
            Body::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => String::new(),
        };
        format!("{}\n{}\n{body}", response.status(), lines.join("\n"))
    }

    #[test]
    fn a_refusal_over_http() {
        expect_test::expect![[r#"
            503 Service Unavailable
            content-type: application/problem+json
            proxy-status: tidegate; error=connection_limit_reached; details="queue_full"
            retry-after-ms: 1001
            retry-after: 2
            {"reason":"queue_full","status":503,"title":"The service is at capacity and the queue is full","type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"}
        "#]]
        .assert_eq(&shown(false, Reason::QueueFull, Duration::from_millis(1001)));
    }

    #[test]
    fn a_refusal_over_grpc() {
        expect_test::expect![[r#"
            200 OK
            content-type: application/grpc
            grpc-message: Over the rate limit
            grpc-retry-pushback-ms: 1
            grpc-status: 8
            proxy-status: tidegate; error=http_request_error; status-code=429; details="rate_limited"
            retry-after-ms: 1
            retry-after: 1
        "#]]
        .assert_eq(&shown(true, Reason::RateLimited, Duration::from_nanos(1)));
        assert!(shown(true, Reason::RetryBudget, Duration::ZERO).contains("grpc-retry-pushback-ms: -1"));
    }

    #[test]
    fn retry_after_is_at_least_a_second_and_at_most_what_the_policy_says() {
        assert!(shown(false, Reason::QueueFull, Duration::ZERO).contains("retry-after: 1\n"));
        assert!(shown(false, Reason::QueueFull, Duration::MAX).contains("retry-after: 60\n"));
        assert!(!shown(false, Reason::UpstreamTimeout, Duration::MAX).contains("retry-after"));
    }
}
