//! The gateway as a whole: starts, reloads, drains, stops.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, Socket, Type};
use tidegate_policy::{Parsed, Policy, Setting};
use tidegate_tower::Clock;
use tokio::sync::{Semaphore, watch};

use crate::ahead::Budget;
use crate::live::Live;
use crate::log::Log;
use crate::mask::Mask;
use crate::metrics::Metrics;
use crate::returns::Returns;
use crate::top::Top;
use crate::trace::{Exporter, Tracer};
use crate::{admin, worker};

/// Connections that the kernel may hold for us while we are at our cap.
const BACKLOG: i32 = 4_096;
/// Connections that may linger after an early answer, all workers together.
const LINGERING_MAX: usize = 1_024;
/// How often, every five milliseconds, it is looked whether the log has been written to its end.
const LOG_LOOKS: u32 = 200;
/// Descriptors that are not client connections: listeners, runtimes, the log, the admin side.
const DESCRIPTORS_RESERVED: usize = 64;

/// Where the gateway stands between start and stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Serving,
    /// No new connections; what runs may end.
    Draining,
    /// Time is up.
    Stopped,
}

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    live: ArcSwap<Live>,
    pub(crate) metrics: Metrics,
    pub(crate) returns: Returns,
    /// The keys of rate limits that are refused most.
    pub(crate) top_keys: Top,
    /// The tenants that are refused most.
    pub(crate) top_tenants: Top,
    /// Covers what of them may be a credential.
    pub(crate) mask: Mask,
    pub(crate) log: Log,
    /// What traces begin with, if a collector is told of them.
    pub(crate) tracer: Option<Tracer>,
    /// Client connections that may still be opened.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) upgrades: Arc<Semaphore>,
    pub(crate) upgrades_max: usize,
    pub(crate) lingering: Semaphore,
    pub(crate) read_ahead: Arc<Budget>,
    /// The port that clients connect to.
    pub(crate) port: u16,
    stage: watch::Sender<Stage>,
    /// One change of the policy at a time.
    changing: Mutex<()>,
    /// How many policies have been put in force since the start, for those who go on by one.
    reloads: watch::Sender<u64>,
}

impl Shared {
    /// The policy in force. A request keeps the one it began with.
    pub(crate) fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// Tells when another policy is in force.
    pub(crate) fn reloads(&self) -> watch::Receiver<u64> {
        self.reloads.subscribe()
    }

    /// Puts what `change` makes of the policy in force in its place, unless it makes nothing of it.
    pub(crate) fn change(&self, change: impl FnOnce(&Live) -> Option<Live>) -> bool {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&self.live());
        let is_changed = changed.is_some();
        if let Some(live) = changed {
            self.live.store(Arc::new(live));
        }
        is_changed
    }

    /// Takes no new connections from now on and lets what runs end.
    pub(crate) fn drain(&self) {
        self.stage.send_if_modified(|stage| {
            let serving = *stage == Stage::Serving;
            if serving {
                *stage = Stage::Draining;
            }
            serving
        });
    }

    pub(crate) fn is_serving(&self) -> bool {
        *self.stage.borrow() == Stage::Serving
    }

    pub(crate) fn stage_name(&self) -> &'static str {
        match *self.stage.borrow() {
            Stage::Serving => "serving",
            Stage::Draining => "draining",
            Stage::Stopped => "stopped",
        }
    }
}

/// A running gateway. Dropping it does not stop it; see [`Gateway::drain`] and [`Gateway::wait`].
pub struct Gateway {
    shared: Arc<Shared>,
    listening: Listening,
    threads: Vec<JoinHandle<()>>,
    exporter: Option<JoinHandle<()>>,
    log_thread: JoinHandle<()>,
}

/// A policy, and where its values come from as far as that is known: what a gateway is given to put in force.
#[derive(Clone, Debug)]
pub struct Given {
    policy: Policy,
    settings: Vec<Setting>,
}

impl From<Policy> for Given {
    fn from(policy: Policy) -> Self {
        Self { policy, settings: Vec::new() }
    }
}

impl From<Parsed> for Given {
    fn from(parsed: Parsed) -> Self {
        Self { policy: parsed.policy, settings: parsed.settings }
    }
}

/// The addresses that a gateway listens on. A policy that asks for port 0 gets one that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// For clients.
    pub clients: SocketAddr,
    /// For operators.
    pub admin: SocketAddr,
}

/// Why a gateway cannot start.
#[derive(Debug)]
pub enum StartError {
    /// An address cannot be listened on.
    Bind(SocketAddr, io::Error),
    /// The log file cannot be opened.
    Log(io::Error),
    /// A thread cannot be started.
    Thread(io::Error),
    /// What the policy says of a collector cannot be used.
    Otlp(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Log(error) => write!(f, "cannot open the access log: {error}"),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
            Self::Otlp(error) => write!(f, "cannot tell the collector of [server.otlp]: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Why a policy cannot be put in force without a restart: these keys of `[server]` have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError {
    /// The keys.
    pub keys: Vec<&'static str>,
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a change of {} needs a restart; the policy before it stays in force", self.keys.join(", "))
    }
}

impl std::error::Error for ReloadError {}

impl Gateway {
    /// Binds both addresses and starts to serve.
    pub fn start(given: impl Into<Given>) -> Result<Self, StartError> {
        let Given { policy, settings } = given.into();
        let server = &policy.server;
        let clients = listen(server.listen).map_err(|error| StartError::Bind(server.listen, error))?;
        let operators = listen(server.admin).map_err(|error| StartError::Bind(server.admin, error))?;
        let address =
            |listener: &TcpListener, asked| listener.local_addr().map_err(|e| StartError::Bind(asked, e));
        let listening = Listening {
            clients: address(&clients, server.listen)?,
            admin: address(&operators, server.admin)?,
        };
        let (log, log_thread) =
            Log::open(server.access_log, server.access_log_file.as_deref()).map_err(StartError::Log)?;
        let workers = match server.workers {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            workers => workers.into(),
        };
        let (stage, stage_seen) = watch::channel(Stage::Serving);
        let clock = Clock::start();
        let (tracer, exporter) = Exporter::of(server).map_err(StartError::Otlp)?;
        let shared = Arc::new(Shared {
            places: Arc::new(Semaphore::new(connections_max(&policy, workers, &log))),
            upgrades: Arc::new(Semaphore::new(server.max_upgrades as usize)),
            upgrades_max: server.max_upgrades as usize,
            lingering: Semaphore::new(LINGERING_MAX),
            read_ahead: Arc::default(),
            port: listening.clients.port(),
            live: ArcSwap::from_pointee(Live::new(policy, settings, None, clock)),
            metrics: Metrics::default(),
            returns: Returns::new(),
            top_keys: Top::default(),
            top_tenants: Top::default(),
            mask: Mask::default(),
            log,
            tracer,
            clock,
            stage,
            changing: Mutex::new(()),
            reloads: watch::Sender::new(0),
        });
        let mut threads = Vec::with_capacity(workers + 1);
        for number in 0..workers {
            let (shared, stage) = (shared.clone(), stage_seen.clone());
            let clients = clients.try_clone().map_err(|error| StartError::Bind(listening.clients, error))?;
            threads.push(spawn(format!("tidegate-{number}"), move || worker::run(shared, clients, stage))?);
        }
        let for_admin = shared.clone();
        threads.push(spawn("tidegate-admin".into(), move || admin::run(for_admin, operators, stage_seen))?);
        let exporter = match exporter {
            Some(exporter) => {
                let (shared, stage) = (shared.clone(), shared.stage.subscribe());
                Some(spawn("tidegate-otlp".into(), move || exporter.run(&shared, stage))?)
            }
            None => None,
        };
        Ok(Self { shared, listening, threads, exporter, log_thread })
    }

    /// The addresses that it listens on.
    pub fn listening(&self) -> Listening {
        self.listening
    }

    /// Puts another policy in force for requests that come from now on, all of it or nothing. Limits keep what they
    /// have learned, buckets what was used, and nobody who waits or is served is sent away. The log file is opened anew
    /// in either case.
    pub fn reload(&self, given: impl Into<Given>) -> Result<(), ReloadError> {
        let Given { policy, settings } = given.into();
        self.shared.log.reopen();
        let mut keys = Vec::new();
        let is_changed = self.shared.change(|before| {
            keys = fixed_at_start(&before.policy, &policy);
            keys.is_empty().then(|| Live::new(policy, settings, Some(before), self.shared.clock))
        });
        if !is_changed {
            self.shared.metrics.reloads_refused.add(1);
            return Err(ReloadError { keys });
        }
        self.shared.reloads.send_modify(|reloads| *reloads += 1);
        self.shared.metrics.reloads_done.add(1);
        Ok(())
    }

    /// Counts a reload that failed before it came here, because the policy could not be read.
    pub fn reload_refused(&self) {
        self.shared.metrics.reloads_refused.add(1);
    }

    /// Takes no new connections from now on and lets what runs end.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Waits until somebody has asked it to drain, be it here or over the admin address.
    pub async fn until_draining(&self) {
        // The other end is kept in what is shared.
        let _ = self.shared.stage.subscribe().wait_for(|stage| *stage != Stage::Serving).await;
    }

    /// Ends at once, whatever runs.
    pub fn stop(&self) {
        self.shared.stage.send_replace(Stage::Stopped);
    }

    /// The policy in force.
    pub fn policy(&self) -> Policy {
        self.shared.live().policy.clone()
    }

    /// How long draining may take, by the policy in force.
    pub fn drain_time(&self) -> Duration {
        self.shared.live().policy.server.drain
    }

    /// Whether all threads have ended.
    pub fn has_ended(&self) -> bool {
        // The admin side serves until the workers are done.
        self.threads[..self.threads.len() - 1].iter().all(JoinHandle::is_finished)
    }

    /// The numbers of `/api/stats`.
    pub fn stats(&self) -> serde_json::Value {
        crate::metrics::stats(&self.shared)
    }

    /// Waits until the gateway has been drained or stopped and all is written.
    pub fn wait(mut self) {
        let admin = self.threads.pop();
        for thread in self.threads {
            let _ = thread.join();
        }
        self.shared.stage.send_replace(Stage::Stopped);
        // The exporter has its last words meanwhile, and a bound on them.
        for thread in admin.into_iter().chain(self.exporter) {
            let _ = thread.join();
        }
        // A log whose reader has stalled must not keep the process from ending.
        let mut looks = 0;
        while !self.log_thread.is_finished() && looks < LOG_LOOKS {
            self.shared.log.stop();
            std::thread::park_timeout(Duration::from_millis(5));
            looks += 1;
        }
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    std::thread::Builder::new().name(name).spawn(run).map_err(StartError::Thread)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the connections of the process before it to time out.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// As many connections as the policy says, but no more than there are descriptors for besides those to upstreams.
fn connections_max(policy: &Policy, workers: usize, log: &Log) -> usize {
    let to_upstream = |upstream: &tidegate_policy::Upstream| {
        let idle = upstream.endpoints.len() * workers * upstream.max_idle_connections as usize;
        let checks = if upstream.health_check.is_some() { upstream.endpoints.len() } else { 0 };
        upstream.limit.most().get() as usize + idle + checks
    };
    let others = DESCRIPTORS_RESERVED + policy.upstreams.iter().map(to_upstream).sum::<usize>();
    let wanted = policy.server.max_connections as usize;
    let needed = wanted + others;
    let available = rlimit::increase_nofile_limit(needed as u64).unwrap_or(1_024) as usize;
    // When they do not reach for everything, clients and upstreams share what there is.
    let affordable = available.saturating_sub(others).max(available / 2);
    if affordable < wanted {
        log.notice(&format!(
            "max_connections is {wanted}, but {available} file descriptors are enough for {affordable} only; \
             raise the limit (ulimit -n) to {needed}"
        ));
    }
    wanted.min(affordable)
}

/// The keys that differ and cannot be changed while running.
fn fixed_at_start(before: &Policy, after: &Policy) -> Vec<&'static str> {
    let (old, new) = (&before.server, &after.server);
    let changed = [
        ("listen", old.listen != new.listen),
        ("admin", old.admin != new.admin),
        ("workers", old.workers != new.workers),
        ("max_connections", old.max_connections != new.max_connections),
        ("max_upgrades", old.max_upgrades != new.max_upgrades),
        ("access_log", old.access_log != new.access_log),
        ("access_log_file", old.access_log_file != new.access_log_file),
        ("otlp", old.otlp != new.otlp),
    ];
    changed.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
}
