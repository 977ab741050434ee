//! `tidegate upstream`: the slow service of the lab.
//!
//! It takes on whatever comes, on purpose, so that whatever protects it must be somebody else. Work goes on when its
//! client leaves, as it does in most services.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tidegate_policy::parse_duration;
use tokio::net::TcpListener as AsyncListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::args::UpstreamArgs;
use crate::exit::Failure;

/// The longest work and the longest answer that a request may ask for.
const MILLIS_MAX: u64 = 3_600_000;
const BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) fn run(args: &UpstreamArgs) -> Result<(), Failure> {
    let listener = bind(args.port)?;
    let address = listener.local_addr()?;
    let _ =
        writeln!(io::stderr(), "the lab's upstream listens on http://{address}: /work?ms=N, /stats, /set");
    serve(listener, args)
}

/// Binds a port of the loopback interface.
pub(crate) fn bind(port: u16) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).map_err(|e| {
        Failure::bind(format_args!(
            "cannot listen on {address}: {e}; choose another port (--port, or demo --any-port)"
        ))
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves until the process ends.
pub(crate) fn serve(listener: TcpListener, args: &UpstreamArgs) -> Result<(), Failure> {
    let lab = Arc::new(Lab {
        workers: (args.workers > 0).then(|| Semaphore::new(args.workers as usize)),
        service_nanos: AtomicU64::new(nanos(args.service_time)),
        cancels_work: args.cancels_work,
        counts: Counts::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = AsyncListener::from_std(listener)?;
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, most likely: the lab can wait.
                sleep(Duration::from_millis(10)).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let lab = lab.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let lab = lab.clone();
                    async move { Ok::<_, Infallible>(lab.answer(&request).await) }
                });
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

struct Lab {
    workers: Option<Semaphore>,
    service_nanos: AtomicU64,
    cancels_work: bool,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    in_flight: AtomicU64,
    max_in_flight: AtomicU64,
    started: AtomicU64,
    completed: AtomicU64,
}

/// One piece of work that has been taken on.
struct UnderWay(Arc<Lab>);

impl UnderWay {
    fn begin(lab: &Arc<Lab>) -> Self {
        let counts = &lab.counts;
        counts.started.fetch_add(1, SeqCst);
        let now = counts.in_flight.fetch_add(1, SeqCst) + 1;
        counts.max_in_flight.fetch_max(now, SeqCst);
        Self(lab.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.counts.in_flight.fetch_sub(1, SeqCst);
    }
}

impl Lab {
    async fn answer(self: &Arc<Self>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/stats" => text(StatusCode::OK, "application/json", self.counts.json()),
            "/reset" if request.method() == Method::POST => {
                self.counts.forget();
                text(StatusCode::OK, "application/json", self.counts.json())
            }
            "/set" if request.method() == Method::POST => {
                match self.set(request.uri().query().unwrap_or_default()) {
                    Ok(()) => text(StatusCode::OK, "text/plain", "set\n".into()),
                    Err(what) => text(StatusCode::BAD_REQUEST, "text/plain", format!("{what}\n")),
                }
            }
            path if path == "/work" || path.starts_with("/work/") => {
                match Asked::parse(request.uri().query().unwrap_or_default()) {
                    Ok(asked) => self.work(asked).await,
                    Err(what) => text(StatusCode::BAD_REQUEST, "text/plain", format!("{what}\n")),
                }
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "text/plain",
                "there is GET /work?ms=N, GET /stats, POST /reset and POST /set?service_time=TIME\n".into(),
            ),
        }
    }

    /// Changes how long work takes that begins from now on.
    fn set(&self, query: &str) -> Result<(), String> {
        let text = query.strip_prefix("service_time=").ok_or("/set needs ?service_time=TIME")?;
        self.service_nanos.store(nanos(parse_duration(text)?), SeqCst);
        Ok(())
    }

    async fn work(self: &Arc<Self>, asked: Asked) -> Response<Full<Bytes>> {
        let lab = self.clone();
        let under_way = UnderWay::begin(self);
        let work = async move {
            let _worker = match &lab.workers {
                Some(workers) => workers.acquire().await.ok(),
                None => None,
            };
            // Read only now: who still waits for a worker works as the service does by then.
            let usual = Duration::from_nanos(lab.service_nanos.load(SeqCst));
            sleep(asked.time.unwrap_or(usual)).await;
            lab.counts.completed.fetch_add(1, SeqCst);
            drop(under_way);
        };
        // In a task of its own the work goes on, whatever becomes of the request.
        if self.cancels_work {
            work.await;
        } else if tokio::spawn(work).await.is_err() {
            return text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "the work failed\n".into());
        }
        match asked.bytes {
            Some(bytes) => text(asked.status, "application/octet-stream", "x".repeat(bytes)),
            None => text(asked.status, "text/plain", "done\n".into()),
        }
    }
}

impl Counts {
    /// Begins to count anew; what is under way still counts as that.
    fn forget(&self) {
        self.started.store(0, SeqCst);
        self.completed.store(0, SeqCst);
        self.max_in_flight.store(self.in_flight.load(SeqCst), SeqCst);
    }

    fn json(&self) -> String {
        let value = json!({
            "inFlight": self.in_flight.load(SeqCst),
            "maxInFlight": self.max_in_flight.load(SeqCst),
            "started": self.started.load(SeqCst),
            "completed": self.completed.load(SeqCst),
        });
        format!("{value}\n")
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(MILLIS_MAX * 1_000_000)
}

/// What a request asks for.
struct Asked {
    /// How long its work takes; what the service takes, when left out.
    time: Option<Duration>,
    status: StatusCode,
    bytes: Option<usize>,
}

impl Asked {
    fn parse(query: &str) -> Result<Self, String> {
        let mut asked = Self { time: None, status: StatusCode::OK, bytes: None };
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let number = || value.parse::<u64>().map_err(|_| format!("{key} is not a number: {value:?}"));
            match key {
                "ms" => asked.time = Some(Duration::from_millis(number()?.min(MILLIS_MAX))),
                "bytes" => {
                    asked.bytes = Some(usize::try_from(number()?).unwrap_or(usize::MAX).min(BYTES_MAX))
                }
                "status" => {
                    let status = u16::try_from(number()?).unwrap_or(0);
                    asked.status =
                        StatusCode::from_u16(status).map_err(|_| format!("{status} is no status"))?;
                }
                _ => {}
            }
        }
        Ok(asked)
    }
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
