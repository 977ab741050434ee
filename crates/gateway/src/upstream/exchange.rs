//! Sends a request and waits for the head of its answer.

use std::future::poll_fn;
use std::sync::Arc;

use http::header::CONNECTION;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, Version, response};
use tidegate_engine::{Outcome, Reason, Rejection, Timestamp, Verdict};
use tokio::time::{sleep_until, timeout_at};

use super::Upstream;
use super::connection::{ConnectError, Connection};
use super::endpoint::{Endpoint, Visit};
use super::flight::{AnswerBody, Flight};
use super::retries::{Decision, is_idempotent};
use super::upload::{Kept, RequestBody};
use crate::answer::Refusal;
use crate::connection::Client;
use crate::deadline;
use crate::head::lists;
use crate::route::BadRequest;
use crate::worker::Worker;

/// Sends a request to an endpoint, and if that fails in a way that allows it, once more (see `retries`).
pub(crate) async fn send(
    client: &Client,
    upstream: &Arc<Upstream>,
    flight: Flight,
    request: Request<RequestBody>,
) -> Result<Response<AnswerBody>, Refusal> {
    let now = flight.began();
    let Some(visit) = upstream.choose(now, None) else {
        // It could have been asked when the request came, and cannot now.
        flight.broken(Outcome::Ignore);
        let open = Rejection { reason: Reason::BreakerOpen, retry_after: std::time::Duration::ZERO };
        return Err(upstream.refusal(now).unwrap_or(open).into());
    };
    let mut undone = match attempt(client, upstream, flight, request, visit, Try::First).await {
        Ok(response) => return Ok(response),
        Err(Failed::For(refusal)) => return Err(refusal),
        Err(Failed::Undone(undone)) => undone,
    };
    undone.settle(upstream);
    let (decision, visit) = again(client, upstream, &undone);
    upstream.retries.count(decision);
    let Some(visit) = visit else { return Err(undone.given_up()) };
    let Undone { flight, request, why, .. } = *undone;
    let second = if why == Why::Unreachable { Try::Second } else { Try::Fresh };
    match attempt(client, upstream, flight, request, visit, second).await {
        Ok(response) => Ok(response),
        Err(Failed::For(refusal)) => Err(refusal),
        Err(Failed::Undone(mut undone)) => {
            undone.settle(upstream);
            upstream.retries.count(Decision::Second);
            Err(undone.given_up())
        }
    }
}

/// Whether there may be another try, and where. The budget is asked last, since it is charged at once.
fn again(client: &Client, upstream: &Upstream, undone: &Undone) -> (Decision, Option<Visit>) {
    let now = client.now();
    if undone.flight.overdue().0 <= now || client.socket.has_left() {
        return (Decision::Late, None);
    }
    let elsewhere = upstream.choose(now, Some(undone.visit.endpoint()));
    let here = || match undone.why {
        Why::Unreachable => None,
        // The connection was to blame, so a new one to the same endpoint is as good.
        Why::Stale | Why::Broken => upstream.choose(now, None),
    };
    match elsewhere.or_else(here) {
        None => (Decision::Nowhere, None),
        Some(_) if !upstream.gate.spend_retry() => (Decision::Budget, None),
        Some(visit) => (Decision::Retried, Some(visit)),
    }
}

/// Which try it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Try {
    First,
    /// The second, on whatever connection there is.
    Second,
    /// The second, after a kept connection had died: on a new one.
    Fresh,
}

enum Failed {
    /// It can be done again.
    Undone(Box<Undone>),
    For(Refusal),
}

/// A try that failed in a way that allows another.
struct Undone {
    flight: Flight,
    request: Request<RequestBody>,
    visit: Visit,
    why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// There was no connection.
    Unreachable,
    /// A kept connection had died. That happens to connections, and says nothing about the endpoint.
    Stale,
    /// A new one died before anything was sent.
    Broken,
}

impl Undone {
    /// Tells the endpoint's breaker. Before another endpoint is chosen, since a probe makes room by that.
    fn settle(&mut self, upstream: &Upstream) {
        let verdict = match self.why {
            Why::Unreachable => Verdict::NoConnection,
            Why::Stale => Verdict::Nothing,
            Why::Broken => Verdict::Failure,
        };
        upstream.report(self.flight.now(), &mut self.visit, verdict);
    }

    /// For the client.
    fn given_up(self) -> Refusal {
        self.flight.broken(Outcome::Failure);
        match self.why {
            Why::Unreachable => Reason::UpstreamConnect.into(),
            Why::Stale | Why::Broken => Reason::UpstreamReset.into(),
        }
    }
}

async fn attempt(
    client: &Client,
    upstream: &Arc<Upstream>,
    mut flight: Flight,
    mut request: Request<RequestBody>,
    mut visit: Visit,
    which: Try,
) -> Result<Response<AnswerBody>, Failed> {
    let worker = &client.worker;
    let (overdue, reason) = flight.overdue();
    flight.tries(visit.endpoint());
    let kept = if which == Try::Fresh { None } else { worker.pool.take(visit.endpoint().id) };
    let connected = match kept {
        Some(kept) => Ok(kept),
        None => open(worker, upstream, visit.endpoint(), overdue).await,
    };
    let mut connection = match connected {
        Ok(connection) => connection,
        Err(ConnectError::Unreachable) => {
            return Err(Failed::Undone(Box::new(Undone { flight, request, visit, why: Why::Unreachable })));
        }
        Err(error) => {
            // How little time a client has says nothing about the upstream, and our descriptors do not either.
            let (reason, outcome, verdict) = match error {
                ConnectError::Descriptors => (Reason::GatewayOverloaded, Outcome::Ignore, Verdict::Nothing),
                _ if reason == Reason::Deadline => (reason, Outcome::Ignore, Verdict::Nothing),
                _ => (reason, Outcome::Failure, Verdict::NoConnection),
            };
            upstream.report(client.now(), &mut visit, verdict);
            flight.broken(outcome);
            return Err(Failed::For(reason.into()));
        }
    };
    let reused = connection.reused;
    let spare = (reused && which == Try::First).then(|| Spare::of(&mut request)).flatten();
    if let Some(left) = flight.left() {
        // Now, when there is a connection: what it took to have one is gone.
        deadline::pass_on(&worker.shared.live().deadline_fields, request.headers_mut(), left);
    }
    let upload = request.body().upload();
    let answering = connection.send(request);
    flight.sent(connection, visit, upload, answering);
    let (mut flight, back) = match head(worker, flight).await {
        Ok(response) => return Ok(response),
        Err(Lost::For(refusal)) => return Err(Failed::For(refusal)),
        Err(Lost::Connection(flight, back)) => (flight, back),
    };
    let died_unheard = reused && !flight.has_heard();
    let visit = flight.lost();
    let again = || spare.filter(|_| died_unheard)?.request();
    match (visit, back.or_else(again)) {
        (Some(visit), Some(request)) => {
            let why = if reused { Why::Stale } else { Why::Broken };
            Err(Failed::Undone(Box::new(Undone { flight, request: *request, visit, why })))
        }
        (visit, _) => {
            let decision = if which == Try::First { Decision::NotSafe } else { Decision::Second };
            upstream.retries.count(decision);
            if let Some(mut visit) = visit {
                upstream.report(client.now(), &mut visit, Verdict::Failure);
            }
            flight.broken(Outcome::Failure);
            Err(Failed::For(Reason::UpstreamReset.into()))
        }
    }
}

/// The same request once more, for when it is lost: there is one only if doing it twice is as good as once.
///
/// Nearly all of them are thrown away, so it is no request but what one can be made of again. Its fields are text, a line
/// each: to copy the map, and drop it, costs several times as much.
struct Spare {
    method: Method,
    target: Uri,
    fields: Vec<u8>,
    /// Its body, which can be sent only once: it has to come back unread.
    body: Option<Kept>,
}

impl Spare {
    /// What most heads fit in.
    const USUAL_BYTES: usize = 1_000;

    fn of(request: &mut Request<RequestBody>) -> Option<Self> {
        if !is_idempotent(request.method()) {
            return None;
        }
        let mut fields = Vec::with_capacity(Self::USUAL_BYTES);
        for (name, value) in request.headers() {
            // Neither has a line break in it, and a name no colon (RFC 9110 section 5).
            fields.extend_from_slice(name.as_str().as_bytes());
            fields.push(b':');
            fields.extend_from_slice(value.as_bytes());
            fields.push(b'\n');
        }
        Some(Self {
            method: request.method().clone(),
            target: request.uri().clone(),
            fields,
            body: request.body().has_content().then(|| request.body_mut().keep()),
        })
    }

    /// `None` if some of its body was read. To be asked when the connection is gone, and with it what it had.
    fn request(self) -> Option<Box<Request<RequestBody>>> {
        let body = match &self.body {
            Some(kept) => kept.take_back()?,
            None => RequestBody::none(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target;
        for line in self.fields.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            request.headers_mut().append(name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?);
        }
        Some(Box::new(request))
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

/// Why there is no answer.
enum Lost {
    /// The connection, with the request if nothing of it went out.
    Connection(Flight, Option<Box<Request<RequestBody>>>),
    For(Refusal),
}

/// Waits for the head of the answer.
async fn head(worker: &Worker, mut flight: Flight) -> Result<Response<AnswerBody>, Lost> {
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
                return Err(Lost::For(reason.into()));
            }
        };
        return match answer {
            Ok(response) => Ok(begin_answer(flight, response)),
            Err(mut error) => match error.take_message() {
                None if flight.upload_is_broken() => {
                    flight.broken(Outcome::Ignore);
                    let what = "the request body is malformed or was cut short";
                    Err(Lost::For(BadRequest::Malformed(what).into()))
                }
                back => Err(Lost::Connection(flight, back.map(Box::new))),
            },
        };
    }
}

fn begin_answer(mut flight: Flight, response: Response<hyper::body::Incoming>) -> Response<AnswerBody> {
    let (mut head, body) = response.into_parts();
    flight.hear_of_load(&mut head.headers);
    flight.answered(body, head.status, closes(&head));
    Response::from_parts(head, AnswerBody { flight })
}

/// Whether the upstream closes the connection after this answer, so that it need not be kept.
fn closes(head: &response::Parts) -> bool {
    let listed = head.headers.get(CONNECTION).is_some_and(|value| lists(value.as_bytes(), b"close"));
    listed || head.version == Version::HTTP_10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_is_the_same_request() {
        let mut request = Request::put("/a?b=c:d")
            .header("host", "shop.example:80")
            .header("x-empty", "")
            .header("cookie", "a=1")
            .header("cookie", "b: 2")
            .header("x-latin", HeaderValue::from_bytes(b"\xe9\t:").unwrap())
            .body(RequestBody::none())
            .unwrap();
        let spare = Spare::of(&mut request).unwrap().request().unwrap();
        assert_eq!(
            (spare.method(), spare.uri(), spare.version()),
            (request.method(), request.uri(), request.version())
        );
        assert_eq!(spare.headers(), request.headers());
        *request.method_mut() = Method::POST;
        assert!(Spare::of(&mut request).is_none(), "doing it twice is not as good as once");
    }
}
