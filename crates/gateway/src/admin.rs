//! The operators' side: health, statistics, metrics, on an address and a thread of its own, so that it answers
//! however busy the other side is. It is never limited; it has only a bound on its own connections.

use std::convert::Infallible;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener as AsyncListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::body::Body;
use crate::gateway::{Shared, Stage};
use crate::metrics;
use crate::upstream;

const CONNECTIONS_MAX: usize = 128;
const HEADER_TIME: Duration = Duration::from_secs(10);
/// However slowly somebody reads, a connection is not kept for longer than this.
const CONNECTION_TIME: Duration = Duration::from_secs(600);

pub(crate) fn run(shared: Arc<Shared>, listener: TcpListener, stage: watch::Receiver<Stage>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.log.notice(&format!("the admin side could not start: {error}")),
    };
    runtime.block_on(async {
        let mut stage = stage;
        tokio::select! {
            () = accept(&shared, listener) => {}
            // Here, because there is one such thread, and it is never busy.
            () = upstream::watch(shared.clone(), shared.reloads()) => {}
            _ = stage.wait_for(|stage| *stage == Stage::Stopped) => {}
        }
    });
}

async fn accept(shared: &Arc<Shared>, listener: TcpListener) {
    let listener = match AsyncListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return shared.log.notice(&format!("the admin side cannot listen: {error}")),
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let _ = timeout(CONNECTION_TIME, serve(shared, stream)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&shared, &request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
    let _ = pin!(builder.serve_connection(TokioIo::new(stream), service)).await;
}

fn answer(shared: &Shared, request: &Request<Incoming>) -> Response<Body> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/livez" => text(StatusCode::OK, "alive\n"),
        // Not ready only while draining: taking a loaded instance out would move its load to the others.
        "/readyz" if shared.is_serving() => text(StatusCode::OK, "ready\n"),
        "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        "/metrics" => {
            page(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics::expose(shared))
        }
        "/api/stats" => page(StatusCode::OK, "application/json", format!("{:#}\n", metrics::stats(shared))),
        "/" => text(StatusCode::OK, "tidegate: /livez /readyz /metrics /api/stats\n"),
        _ => text(StatusCode::NOT_FOUND, "there is /livez, /readyz, /metrics and /api/stats\n"),
    }
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
