//! What there is to ask for on the admin address.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::Admin;
use super::body::Body;
use super::live::{Follower, Pace};
use crate::history::{SECONDS_MAX, columns};
use crate::metrics;
use crate::top::Top;

const JSON: &str = "application/json";

pub(super) async fn answer(admin: &Admin, pace: &Arc<Pace>, request: Request<Incoming>) -> Response<Body> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let shared = &admin.shared;
    match request.uri().path() {
        "/livez" => text(StatusCode::OK, "alive\n"),
        // Not ready only while draining: taking a loaded instance out would move its load to the others.
        "/readyz" if shared.is_serving() => text(StatusCode::OK, "ready\n"),
        "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        "/metrics" => exposition(admin, &request),
        "/api/stats" => page(StatusCode::OK, JSON, format!("{:#}\n", metrics::stats(shared))),
        "/api/live" => live(admin, pace),
        "/api/history" => history(admin, &request),
        "/api/top" => top(admin, &request),
        "/" => text(StatusCode::OK, "tidegate: /livez /readyz /metrics /api/stats\n"),
        _ => text(StatusCode::NOT_FOUND, "there is /livez, /readyz, /metrics and /api/stats\n"),
    }
}

/// All metrics, in the format that is asked for.
fn exposition(admin: &Admin, request: &Request<Incoming>) -> Response<Body> {
    let format = metrics::Format::wanted(request.headers());
    let mut response = page(StatusCode::OK, format.content_type(), metrics::expose(&admin.shared, format));
    // What stands between, if anything, must not give the one format to who asks for the other.
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Everything from now on.
fn live(admin: &Admin, pace: &Arc<Pace>) -> Response<Body> {
    let Ok(place) = admin.followers.clone().try_acquire_owned() else {
        let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "as many follow as may\n");
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
        return response;
    };
    let follower = Follower::new(admin.newest.subscribe(), pace.clone(), place);
    let mut response = page(StatusCode::OK, "text/event-stream", String::new());
    *response.body_mut() = Body::Events(Box::new(follower));
    response
}

/// Everything up to now.
fn history(admin: &Admin, request: &Request<Incoming>) -> Response<Body> {
    let seconds = match parameter(request, "seconds").map(str::parse::<usize>) {
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

fn top(admin: &Admin, request: &Request<Incoming>) -> Response<Body> {
    let shared = &admin.shared;
    let (by, group, top): (_, _, &Top) = match parameter(request, "by") {
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
fn parameter<'a>(request: &'a Request<Incoming>, name: &str) -> Option<&'a str> {
    let query = request.uri().query()?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    page(status, "text/plain; charset=utf-8", text.to_string())
}

fn page(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
