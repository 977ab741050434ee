//! What there is to ask for on the admin address. Start reading here.
//!
//! Reading needs no token; what is read is for whoever reaches the address. See `guard.rs` for what more is asked of those
//! who change something, and of browsers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{ALLOW, VARY};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::body::{Body, read};
use super::guard::{self, Refused};
use super::live::{Follower, Pace};
use super::reply::{JSON, page, text};
use super::{Admin, asked, assets, change, policy, whatif};
use crate::explain::{explain, explained_json};
use crate::history::{SECONDS_MAX, columns};
use crate::metrics;
use crate::top::Top;

/// One who asks.
pub(super) struct Visitor {
    pub(super) admin: Arc<Admin>,
    pub(super) peer: SocketAddr,
    pub(super) pace: Arc<Pace>,
}

/// What is asked by POST, and by nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Posted {
    Explain,
    WhatIf,
    Drain,
    Limit,
}

impl Posted {
    fn at(path: &str) -> Option<Self> {
        match path {
            "/api/explain" => Some(Self::Explain),
            "/api/whatif" => Some(Self::WhatIf),
            "/api/drain" => Some(Self::Drain),
            "/api/limit" => Some(Self::Limit),
            _ => None,
        }
    }
}

const NOT_FOUND: &str = "there is / for people, and /livez, /readyz, /metrics, /api/stats, /api/live, /api/history, /api/top \
                         and /api/policy; docs/operating.md says what each is\n";

pub(super) async fn answer(visitor: &Arc<Visitor>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    match head.method {
        Method::GET | Method::HEAD => get(visitor, &head),
        Method::POST => post(visitor, &head, body).await.unwrap_or_else(refuse),
        _ => not_allowed("GET, HEAD, POST"),
    }
}

fn get(visitor: &Arc<Visitor>, head: &request::Parts) -> Response<Body> {
    let (admin, path) = (&visitor.admin, head.uri.path());
    let shared = &admin.shared;
    match path {
        "/livez" => return text(StatusCode::OK, "alive\n"),
        // Not ready only while draining: taking a loaded instance out would move its load to the others.
        "/readyz" if shared.is_serving() => return text(StatusCode::OK, "ready\n"),
        "/readyz" => return text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        "/metrics" => return exposition(admin, &head.headers),
        "/api/stats" => return page(StatusCode::OK, JSON, format!("{:#}\n", metrics::stats(shared))),
        _ => {}
    }
    // Probes and scrapers call us by whatever name they have; what follows names tenants and clients.
    if let Err(refused) = names_us(admin, &head.headers) {
        return refuse(refused);
    }
    match path {
        "/api/live" => live(visitor),
        "/api/history" => history(admin, head),
        "/api/top" => top(admin, head),
        "/api/policy" => page(StatusCode::OK, JSON, policy::json(shared).to_string()),
        _ if Posted::at(path).is_some() => not_allowed("POST"),
        _ => assets::find(path, &head.headers).unwrap_or_else(|| text(StatusCode::NOT_FOUND, NOT_FOUND)),
    }
}

/// What changes something, or takes a question that is longer than a line.
async fn post(
    visitor: &Arc<Visitor>,
    head: &request::Parts,
    body: Incoming,
) -> Result<Response<Body>, Refused> {
    let (admin, headers) = (&visitor.admin, &head.headers);
    let shared = &admin.shared;
    let Some(posted) = Posted::at(head.uri.path()) else { return Ok(not_allowed("GET, HEAD")) };
    names_us(admin, headers)?;
    match posted {
        Posted::Explain => {
            let question = question(headers, body).await?;
            Ok(explanation(visitor, &question))
        }
        Posted::WhatIf => {
            let question = question(headers, body).await?;
            Ok(whatif::answer(admin, &question).await)
        }
        Posted::Drain => {
            may_change(admin, headers)?;
            Ok(changed(change::drain(shared, visitor.peer.ip())))
        }
        Posted::Limit => {
            may_change(admin, headers)?;
            let (upstream, limit) = (parameter(head, "upstream"), parameter(head, "limit"));
            Ok(changed(change::limit(shared, visitor.peer.ip(), upstream, limit)))
        }
    }
}

async fn question(headers: &HeaderMap, body: Incoming) -> Result<Value, Refused> {
    guard::is_json(headers)?;
    let bytes = read(body).await.map_err(|(status, why)| Refused::new(status, why))?;
    serde_json::from_slice(&bytes).map_err(|_| Refused::new(StatusCode::BAD_REQUEST, "that is not JSON\n"))
}

fn names_us(admin: &Admin, headers: &HeaderMap) -> Result<(), Refused> {
    guard::names_us(headers, admin.address, &admin.shared.live().policy.server.admin_hosts)
}

fn may_change(admin: &Admin, headers: &HeaderMap) -> Result<(), Refused> {
    let live = admin.shared.live();
    guard::may_change(headers, live.policy.server.admin_token_file.as_deref())
}

fn changed(changed: change::Changed) -> Response<Body> {
    match changed {
        Ok(said) => page(StatusCode::OK, JSON, said.to_string()),
        Err((status, why)) => page(status, super::reply::TEXT, why),
    }
}

fn explanation(visitor: &Visitor, question: &Value) -> Response<Body> {
    let bad = |why: String| page(StatusCode::BAD_REQUEST, JSON, json!({ "error": why }).to_string());
    let peer = match question.get("client").and_then(Value::as_str).filter(|client| !client.is_empty()) {
        None => visitor.peer.ip(),
        Some(client) => match client.trim().parse::<IpAddr>() {
            Ok(address) => address,
            Err(_) => return bad(format!("`{client}` is no address")),
        },
    };
    let request = question.get("request").and_then(Value::as_str).unwrap_or_default();
    match asked::parse(request) {
        Err(why) => bad(why),
        Ok(request) => {
            let live = visitor.admin.shared.live();
            let line = format!("{} {}", request.method(), request.uri());
            let mut said = explained_json(&live.policy, &explain(&live.policy, request, peer));
            said["request"] = line.into();
            page(StatusCode::OK, JSON, said.to_string())
        }
    }
}

/// All metrics, in the format that is asked for.
fn exposition(admin: &Admin, headers: &HeaderMap) -> Response<Body> {
    let format = metrics::Format::wanted(headers);
    let mut response = page(StatusCode::OK, format.content_type(), metrics::expose(&admin.shared, format));
    // What stands between, if anything, must not give the one format to who asks for the other.
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Everything from now on.
fn live(visitor: &Arc<Visitor>) -> Response<Body> {
    let admin = &visitor.admin;
    let Ok(place) = admin.followers.clone().try_acquire_owned() else {
        let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "as many follow as may\n");
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from_static("10"));
        return response;
    };
    let follower = Follower::new(admin.newest.subscribe(), visitor.pace.clone(), place);
    let mut response = page(StatusCode::OK, "text/event-stream", String::new());
    *response.body_mut() = Body::Events(Box::new(follower));
    response
}

/// Everything up to now.
fn history(admin: &Admin, head: &request::Parts) -> Response<Body> {
    let seconds = match parameter(head, "seconds").map(str::parse::<usize>) {
        None => SECONDS_MAX,
        Some(Ok(seconds)) => seconds.min(SECONDS_MAX),
        Some(Err(_)) => return text(StatusCode::BAD_REQUEST, "seconds is a whole number\n"),
    };
    // Copied, so that the history is not locked while it is put into words.
    let (samples, kept) = {
        let history = admin.history();
        (history.last(seconds).cloned().collect::<Vec<_>>(), history.len())
    };
    page(StatusCode::OK, JSON, columns(samples.iter(), kept))
}

fn top(admin: &Admin, head: &request::Parts) -> Response<Body> {
    let shared = &admin.shared;
    let (by, group, top): (_, _, &Top) = match parameter(head, "by") {
        Some("rate_limit") => ("rate_limit", "rate_limit", &shared.top_keys),
        Some("tenant") => ("tenant", "upstream", &shared.top_tenants),
        _ => return text(StatusCode::BAD_REQUEST, "by is rate_limit or tenant\n"),
    };
    let entries = top.list(shared.clock.now());
    let entries: Vec<Value> = entries
        .into_iter()
        .map(|entry| {
            json!({
                group: entry.group,
                "key": entry.name,
                "refused": entry.refused,
                "overrated": entry.overrated,
            })
        })
        .collect();
    page(StatusCode::OK, JSON, json!({ "by": by, "half_life_seconds": 60, "top": entries }).to_string())
}

/// The value of a parameter of the query. None that is known here needs decoding.
fn parameter<'a>(head: &'a request::Parts, name: &str) -> Option<&'a str> {
    let query = head.uri.query()?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn refuse(refused: Refused) -> Response<Body> {
    let mut response = page(refused.status, super::reply::TEXT, refused.why);
    if refused.status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer realm=\"tidegate\"");
        response.headers_mut().insert(http::header::WWW_AUTHENTICATE, bearer);
    }
    response
}

fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "that method is not answered here\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
