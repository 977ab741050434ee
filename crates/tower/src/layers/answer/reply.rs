//! Writes the answers of the table, as cheaply as can be: bodies and most fields are made once.
//!
//! A caller is told in the way it asked: gRPC by a trailers-only answer, all others by a problem document (RFC 9457).
//! No decision is taken here, and nothing is known of connections.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::mem;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tidegate_engine::{Reason, Rejection, whole_millis, whole_seconds};

use super::{Retry, Row};

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The types of problems that draft-ietf-httpapi-ratelimit-headers-11 registers, section 5.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const REDUCED_CAPACITY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// The longest time that a caller is told to stay away for, unless somebody says otherwise.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// How a caller wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// By a status and a problem document.
    Http,
    /// By a trailers-only answer.
    Grpc,
}

impl Manner {
    /// How whoever sent these fields wants to be told: as gRPC if they say `content-type: application/grpc`, with or
    /// without a suffix.
    pub fn of(headers: &HeaderMap) -> Self {
        match headers.get(CONTENT_TYPE) {
            Some(value) if value.as_bytes().starts_with(b"application/grpc") => Self::Grpc,
            _ => Self::Http,
        }
    }
}

/// A row of the table, ready to be sent.
#[derive(Debug)]
pub struct Answer {
    row: Row,
    problem: Bytes,
    proxy_status: HeaderValue,
    grpc_status: HeaderValue,
    grpc_message: HeaderValue,
}

static ANSWERS: LazyLock<Vec<Answer>> =
    LazyLock::new(|| Reason::ALL.map(|reason| Answer::new(reason, Row::to(reason))).into());
static ROUTE_QUOTA: LazyLock<Answer> = LazyLock::new(|| Answer::new(Reason::RouteLimit, Row::route_quota()));
/// `Retry-After` for the first minutes, so that the common ones are not made each time.
static SECONDS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| (0..=300u64).map(HeaderValue::from).collect());

impl Answer {
    /// The answer for this reason.
    pub fn to(reason: Reason) -> &'static Self {
        &ANSWERS[reason as usize]
    }

    /// The answer for `route_limit` where the bulkhead is a quota: 429 in the place of 503.
    pub fn route_quota() -> &'static Self {
        &ROUTE_QUOTA
    }

    fn new(reason: Reason, row: Row) -> Self {
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
        Self {
            problem: document(kind, row.status, reason.name(), row.title, None),
            proxy_status: value(&proxy_status),
            grpc_status: HeaderValue::from(u16::from(row.grpc)),
            grpc_message: value(row.title),
            row,
        }
    }

    /// What it says.
    pub const fn row(&self) -> &Row {
        &self.row
    }

    /// Its problem document.
    pub const fn problem(&self) -> &Bytes {
        &self.problem
    }

    /// After what time to come back, if that is said at all; never after longer than `longest`.
    pub fn wait(&self, rejection: Rejection, longest: Duration) -> Option<Duration> {
        match self.row.retry {
            // Where nothing is known, a second is a fair guess; at once would be the worst.
            Retry::After if rejection.retry_after.is_zero() => Some(Duration::from_secs(1)),
            Retry::After => Some(rejection.told(longest)),
            Retry::Unsaid | Retry::Never => None,
        }
    }

    /// The answer, in this manner, with this problem document for who gets one, to come back after so long.
    ///
    /// `Retry-After` is in whole seconds, rounded up and at least one; `Retry-After-Ms` and `grpc-retry-pushback-ms` are
    /// in milliseconds, rounded up.
    pub fn response(&self, manner: Manner, problem: &Bytes, wait: Option<Duration>) -> Response<Whole> {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(PROXY_STATUS, self.proxy_status.clone());
        if let Some(wait) = wait {
            headers.insert(RETRY_AFTER, seconds(wait));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(whole_millis(wait)));
        }
        if manner == Manner::Http {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
            return assemble(self.row.status, headers, Whole(problem.clone()));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(GRPC_STATUS, self.grpc_status.clone());
        headers.insert(GRPC_MESSAGE, self.grpc_message.clone());
        match (wait, self.row.retry) {
            (Some(wait), _) => {
                headers.insert(GRPC_PUSHBACK, HeaderValue::from(whole_millis(wait)));
            }
            (None, Retry::Never) => {
                headers.insert(GRPC_PUSHBACK, HeaderValue::from_static("-1"));
            }
            (None, _) => {}
        }
        assemble(StatusCode::OK, headers, Whole::default())
    }
}

/// The answer for this rejection, in this manner, for who has nothing to add: to come back after a minute at most.
pub fn refuse(manner: Manner, rejection: Rejection) -> Response<Whole> {
    let answer = Answer::to(rejection.reason);
    answer.response(manner, &answer.problem, answer.wait(rejection, RETRY_AFTER_MAX))
}

/// A problem that is no reason of the table.
pub fn problem(status: StatusCode, reason: &str, title: &str) -> Response<Whole> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    assemble(status, headers, Whole(document("about:blank", status, reason, title, None)))
}

/// The problem document for whoever is over this rate limit: as for any other, and which it was
/// (draft-ietf-httpapi-ratelimit-headers-11, section 5.1).
pub fn over_the_rate(name: &str) -> Bytes {
    let Row { status, title, .. } = Row::to(Reason::RateLimited);
    document(QUOTA_EXCEEDED, status, Reason::RateLimited.name(), title, Some(name))
}

fn document(kind: &str, status: StatusCode, reason: &str, title: &str, violated: Option<&str>) -> Bytes {
    let (kind, reason, title) = (json(kind), json(reason), json(title));
    let status = status.as_u16();
    let violated =
        violated.map_or_else(String::new, |name| format!(",\"violated-policies\":[{}]", json(name)));
    Bytes::from(format!(
        "{{\"reason\":{reason},\"status\":{status},\"title\":{title},\"type\":{kind}{violated}}}\n"
    ))
}

/// A string of JSON (RFC 8259, section 7). This crate goes into other people's services, and four strings are not worth
/// a serializer there.
fn json(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\u{1f}' => {
                // Writing into a string does not fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn assemble(status: StatusCode, headers: HeaderMap, body: Whole) -> Response<Whole> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// At least one.
fn seconds(wait: Duration) -> HeaderValue {
    let seconds = whole_seconds(wait).max(1);
    usize::try_from(seconds)
        .ok()
        .and_then(|index| SECONDS.get(index).cloned())
        .unwrap_or_else(|| HeaderValue::from(seconds))
}

/// A body that is there already: one piece, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Whole(Bytes);

impl Whole {
    /// The piece.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let bytes = mem::take(&mut self.0);
        (!bytes.is_empty()).then_some(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) const fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(manner: Manner, reason: Reason, retry_after: Duration) -> String {
        let response = refuse(manner, Rejection { reason, retry_after });
        let mut lines: Vec<String> = response
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        let body = String::from_utf8(response.body().0.to_vec()).unwrap();
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
        .assert_eq(&shown(Manner::Http, Reason::QueueFull, Duration::from_millis(1001)));
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
        .assert_eq(&shown(Manner::Grpc, Reason::RateLimited, Duration::from_nanos(1)));
        let never = shown(Manner::Grpc, Reason::RetryBudget, Duration::ZERO);
        assert!(never.contains("grpc-retry-pushback-ms: -1"), "{never}");
    }

    /// H4.
    #[test]
    fn retry_after_is_at_least_a_second_and_at_most_what_the_policy_says() {
        let shown = |reason, wait| shown(Manner::Http, reason, wait);
        assert!(shown(Reason::QueueFull, Duration::ZERO).contains("retry-after: 1\n"));
        assert!(shown(Reason::QueueFull, Duration::MAX).contains("retry-after: 60\n"));
        assert!(!shown(Reason::UpstreamTimeout, Duration::MAX).contains("retry-after"));
        let answer = Answer::to(Reason::QueueFull);
        let forever = answer.response(Manner::Http, answer.problem(), Some(Duration::MAX));
        assert_eq!(forever.headers()["retry-after"], "18446744073709551615");
    }

    #[test]
    fn which_rate_limit_it_was_is_said_whatever_it_is_called() {
        let document = over_the_rate("a \"b\"\\\n");
        let document = std::str::from_utf8(&document).unwrap();
        assert!(document.ends_with(",\"violated-policies\":[\"a \\\"b\\\"\\\\\\u000a\"]}\n"), "{document}");
    }
}
