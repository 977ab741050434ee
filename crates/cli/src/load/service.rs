//! The service of a scenario, on a socket: the simulator's model of it, moved by a clock instead of by an agenda.
//!
//! What it can do is exact. A timer may be late, and then an answer is; but the next job begins when the one before was to
//! end, so no lateness adds up, and ten workers of 40 ms do 250 a second.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_engine::Timestamp;
use tidegate_sim::{Look, Place, Station};
use tidegate_workload::{Change, Purpose, Random, Service};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use crate::clock;

/// The field in which the generator says how much more work a request is than others.
pub(super) const COST: &str = "x-lab-cost";
const COST_MAX: f64 = 1e6;
/// More is not taken on: whoever brings it hears that the service has no room.
const JOBS_MAX: usize = 100_000;

/// A service that is being served. It ends with the process.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Something is due sooner than whoever sleeps believes.
    sooner: Notify,
    described: Service,
}

struct State {
    began: Instant,
    station: Station<u64>,
    /// By time, and by order where times are the same.
    agenda: BinaryHeap<Reverse<(Timestamp, u64, Due)>>,
    planned: u64,
    jobs: HashMap<u64, Job>,
    taken: u64,
    working: Random,
    fails: f64,
    completed: u64,
    done: Vec<u64>,
}

struct Job {
    place: Place,
    /// Whoever waits; the answer is whether it went well.
    waits: oneshot::Sender<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Look(Look),
    Change(usize),
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Order is that of the numbers beside it.
impl Ord for Due {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// Starts serving on a thread of its own. `number` is the place of the service in its scenario.
pub(super) fn serve(described: &Service, seed: u64, number: usize) -> io::Result<Served> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let state = State {
        began: clock::now(),
        station: Station::new(described.capacity, described.queue),
        agenda: BinaryHeap::new(),
        planned: 0,
        jobs: HashMap::new(),
        taken: 0,
        working: Random::stream(seed, Purpose::Service, number),
        fails: described.fails,
        completed: 0,
        done: Vec::new(),
    };
    let shared =
        Arc::new(Shared { state: Mutex::new(state), sooner: Notify::new(), described: described.clone() });
    let served = Served { address, shared: shared.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("lab".into()).spawn(move || {
        let _ = runtime.block_on(accept(listener, shared));
    })?;
    Ok(served)
}

impl Served {
    /// The scenario begins now: what changes about the service changes so long after this.
    pub(super) fn begin(&self) {
        let mut state = self.shared.lock();
        state.began = clock::now();
        for (index, (at, _)) in self.shared.described.changes.iter().enumerate() {
            state.plan(Timestamp::ZERO.after(*at), Due::Change(index));
        }
        self.shared.sooner.notify_one();
    }

    /// How many are in it, and how many of them wait for a worker.
    pub(super) fn stands(&self) -> (f64, f64) {
        let state = self.shared.lock();
        (state.station.len() as f64, f64::from(state.station.waiting()))
    }

    /// How much work was finished.
    pub(super) fn completed(&self) -> u64 {
        self.shared.lock().completed
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tokio::spawn(keep_time(shared.clone()));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: the lab can wait.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(shared.answer(&request).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Does what is due when it is due.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let wait = {
            let mut state = shared.lock();
            let now = state.now();
            state.let_pass(now, &shared.described);
            state.agenda.peek().map(|Reverse((at, ..))| at.since(now))
        };
        match wait {
            Some(wait) => {
                tokio::select! {
                    () = sleep(wait) => {}
                    () = shared.sooner.notified() => {}
                }
            }
            None => shared.sooner.notified().await,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let cost = request.headers().get(COST).and_then(|value| value.to_str().ok()?.parse().ok());
        let cost: f64 = cost.filter(|cost| *cost > 0.0 && *cost <= COST_MAX).unwrap_or(1.0);
        sleep(self.described.delay).await;
        let Some((number, waits)) = self.take_on(cost) else {
            return text(StatusCode::SERVICE_UNAVAILABLE, "no room\n");
        };
        // Whoever leaves drops this future; the work goes on, unless the service stops it.
        let mut leaving = Leaving { shared: self, number: self.described.cancels_work.then_some(number) };
        let went_well = waits.await;
        leaving.number = None;
        sleep(self.described.delay).await;
        match went_well {
            Ok(true) => text(StatusCode::OK, "done\n"),
            Ok(false) | Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "failed\n"),
        }
    }

    fn take_on(&self, cost: f64) -> Option<(u64, oneshot::Receiver<bool>)> {
        let mut state = self.lock();
        let now = state.now();
        state.let_pass(now, &self.described);
        if state.jobs.len() >= JOBS_MAX {
            return None;
        }
        let drawn = self.described.time.draw(&mut state.working);
        let work = if cost == 1.0 { drawn } else { drawn.mul_f64(cost) };
        state.taken += 1;
        let number = state.taken;
        let place = state.station.accept(now, number, work)?;
        let (sender, receiver) = oneshot::channel();
        state.jobs.insert(number, Job { place, waits: sender });
        if state.plan_looks() {
            self.sooner.notify_one();
        }
        Some((number, receiver))
    }
}

/// Somebody waits for this job, and may stop.
struct Leaving<'a> {
    shared: &'a Shared,
    number: Option<u64>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.shared.lock();
        let now = state.now();
        if let Some(job) = state.jobs.remove(&number) {
            state.station.release(now, job.place);
            if state.plan_looks() {
                self.shared.sooner.notify_one();
            }
        }
    }
}

impl State {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO.after(clock::now().saturating_duration_since(self.began))
    }

    fn plan(&mut self, at: Timestamp, due: Due) {
        self.planned += 1;
        self.agenda.push(Reverse((at, self.planned, due)));
    }

    /// Puts on the agenda what the station has planned. Says whether the next thing is another now.
    fn plan_looks(&mut self) -> bool {
        let before = self.agenda.peek().map(|Reverse((at, ..))| *at);
        for (at, look) in std::mem::take(&mut self.station.plans) {
            self.plan(at, Due::Look(look));
        }
        self.agenda.peek().map(|Reverse((at, ..))| *at) != before
    }

    /// Does all that is due by now, each at its own moment.
    fn let_pass(&mut self, now: Timestamp, described: &Service) {
        while let Some(&Reverse((at, _, due))) = self.agenda.peek()
            && at <= now
        {
            self.agenda.pop();
            match due {
                Due::Look(look) => self.look(at, look),
                Due::Change(index) => match described.changes[index].1 {
                    Change::Workers(workers) => self.station.set_workers(at, workers),
                    Change::Slowdown(times) => self.station.set_slowdown(times),
                    Change::Fails(share) => self.fails = share,
                    Change::Pause(pause) => self.station.pause(at, pause),
                },
            }
            self.plan_looks();
        }
    }

    fn look(&mut self, at: Timestamp, look: Look) {
        let mut done = std::mem::take(&mut self.done);
        self.station.look(at, look, &mut done);
        for number in done.drain(..) {
            let Some(job) = self.jobs.remove(&number) else { continue };
            self.station.release(at, job.place);
            let fails = self.fails > 0.0 && self.working.uniform() < self.fails;
            self.completed += u64::from(!fails);
            let _ = job.waits.send(!fails);
        }
        self.done = done;
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response
}
