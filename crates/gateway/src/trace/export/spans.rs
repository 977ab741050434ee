//! Requests as spans, in the words of OpenTelemetry's semantic conventions for HTTP
//! (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>). What they have no word for begins with `tidegate.`.
//!
//! Queries are left out, since what should not be seen stands in them rather than in paths.

use http::{Method, Version};
use serde_json::{Value, json};
use tidegate_engine::{Reason, Timestamp};
use tidegate_policy::{Endpoint as Address, Host};

use super::super::context::SpanId;
use super::super::span::Finished;
use super::json::{number, scope, text, time};

/// Bits of a span's flags: it is sampled; it is known whether its parent is of another process; it is.
const SAMPLED: u32 = 0x001;
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

#[derive(Clone, Copy)]
enum Kind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The body of a request to `/v1/traces`.
pub(super) fn request(resource: &Value, batch: &[Finished], epoch_nanos: u64) -> String {
    let spans: Vec<Value> =
        batch.iter().flat_map(|finished| Words { finished, epoch_nanos }.spans()).collect();
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "scope": scope(), "spans": spans }] }] })
        .to_string()
}

/// One request, to be put into words.
struct Words<'a> {
    finished: &'a Finished,
    epoch_nanos: u64,
}

struct Span {
    id: SpanId,
    parent: Option<SpanId>,
    kind: Kind,
    name: String,
    from: Timestamp,
    to: Timestamp,
    attributes: Vec<Value>,
    /// What went wrong, if it did.
    error: Option<String>,
}

impl Words<'_> {
    fn spans(&self) -> impl Iterator<Item = Value> + use<> {
        let all = [Some(self.whole()), self.wait(), self.exchange()];
        all.into_iter().flatten().map(|span| self.word(span)).collect::<Vec<_>>().into_iter()
    }

    /// The request as a whole.
    fn whole(&self) -> Span {
        let Finished { trace, ended } = self.finished;
        let method = known(&ended.method);
        let route = ended.route.map(|route| &ended.live.policy.routes[route]);
        let pattern = route.map(|route| route.path.to_string());
        let mut attributes = vec![
            text("http.request.method", method),
            text("url.scheme", "http"),
            text("url.path", ended.path.as_str()),
            text("network.protocol.version", protocol(ended.version)),
            text("client.address", ended.client.to_string()),
        ];
        if method == OTHER {
            attributes.push(text("http.request.method_original", ended.method.as_str()));
        }
        if let Some(pattern) = &pattern {
            attributes.push(text("http.route", pattern));
        }
        if let Some(route) = route {
            attributes.push(text("tidegate.upstream", &ended.live.policy.upstreams[route.upstream].name));
            let class = usize::from(ended.priority.0);
            attributes.push(text("tidegate.priority", &ended.live.policy.priorities[class].name));
        }
        if let Some(reason) = ended.reason {
            attributes.push(text("tidegate.reason", reason.name()));
        }
        // Nobody was told anything.
        if ended.reason != Some(Reason::ClientLeft) {
            attributes.push(number("http.response.status_code", ended.status.as_u16()));
        }
        let error = match ended.reason {
            Some(reason) if ended.status.is_server_error() || reason == Reason::ClientLeft => {
                Some(reason.name().into())
            }
            None if ended.status.is_server_error() => Some(ended.status.as_str().to_owned()),
            // What is the client's fault is no error of the server's.
            _ => None,
        };
        let name =
            pattern.map_or_else(|| spoken(method).to_owned(), |path| format!("{} {path}", spoken(method)));
        Span {
            id: trace.request,
            parent: trace.parent,
            kind: Kind::Server,
            name,
            from: ended.began,
            to: ended.at,
            attributes,
            error,
        }
    }

    /// Its wait in the queue.
    fn wait(&self) -> Option<Span> {
        let Finished { trace, ended } = self.finished;
        let (from, to) = trace.waited?;
        let route = &ended.live.policy.routes[ended.route?];
        let class = usize::from(ended.priority.0);
        Some(Span {
            id: trace.queue,
            parent: Some(trace.request),
            kind: Kind::Internal,
            name: "queue".into(),
            from,
            to,
            attributes: vec![
                text("tidegate.upstream", &ended.live.policy.upstreams[route.upstream].name),
                text("tidegate.priority", &ended.live.policy.priorities[class].name),
            ],
            // Whoever was sent on got what it waited for.
            error: ended.reason.filter(|_| ended.dispatched.is_none()).map(|reason| reason.name().into()),
        })
    }

    /// Its exchange with the upstream, as long as somebody waited for it.
    fn exchange(&self) -> Option<Span> {
        let Finished { trace, ended } = self.finished;
        let from = ended.dispatched?;
        let method = known(&ended.method);
        let mut attributes =
            vec![text("http.request.method", method), text("network.protocol.version", "1.1")];
        let (endpoint, tries) = trace.exchange.as_ref().map(|exchange| exchange.seen()).unwrap_or_default();
        if let Some(endpoint) = endpoint {
            let Address { host, port } = &endpoint.address;
            let host = match host {
                Host::Ip(address) => address.to_string(),
                Host::Name(name) => name.clone(),
            };
            attributes.push(text("url.full", format!("http://{endpoint}{}", ended.path)));
            attributes.push(text("server.address", host));
            attributes.push(number("server.port", *port));
        }
        if tries > 1 {
            attributes.push(number("http.request.resend_count", tries - 1));
        }
        let status =
            ended.answered.then_some(ended.status).filter(|_| ended.reason != Some(Reason::ClientLeft));
        if let Some(status) = status {
            attributes.push(number("http.response.status_code", status.as_u16()));
        }
        let bad = |status: &http::StatusCode| status.is_client_error() || status.is_server_error();
        let error = match ended.reason {
            Some(reason) => Some(reason.name().into()),
            None => status.filter(bad).map(|status| status.as_str().to_owned()),
        };
        Some(Span {
            id: trace.upstream,
            parent: Some(trace.request),
            kind: Kind::Client,
            name: spoken(method).into(),
            from,
            to: ended.at,
            attributes,
            error,
        })
    }

    fn word(&self, span: Span) -> Value {
        let trace = &self.finished.trace;
        let Span { id, parent, kind, name, from, to, mut attributes, error } = span;
        let is_remote = matches!(kind, Kind::Server) && parent.is_some();
        let mut word = json!({
            "traceId": trace.id.to_string(),
            "spanId": id.to_string(),
            "flags": SAMPLED | KNOWS_REMOTE | if is_remote { IS_REMOTE } else { 0 },
            "name": name,
            "kind": kind as u8,
            "startTimeUnixNano": time(from, self.epoch_nanos),
            "endTimeUnixNano": time(to.max(from), self.epoch_nanos),
        });
        if let Some(parent) = parent {
            word["parentSpanId"] = parent.to_string().into();
        }
        if let Some(state) = &trace.state {
            word["traceState"] = state.as_str().into();
        }
        if let Some(error) = error {
            attributes.push(text("error.type", error));
            word["status"] = json!({ "code": 2 });
        }
        word["attributes"] = attributes.into();
        word
    }
}

/// What stands for a method that is not one of RFC 9110's or RFC 5789's, so that there are not as many as clients think of.
const OTHER: &str = "_OTHER";

fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(OTHER)
}

/// A method in the name of a span.
fn spoken(method: &'static str) -> &'static str {
    if method == OTHER { "HTTP" } else { method }
}

const fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}
