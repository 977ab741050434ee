//! The show: two services that are alike, under the same load, one behind nothing and one behind tidegate, for as long as
//! somebody watches.
//!
//! Each service has ten workers of 200 ms, so it can answer 50 a second. For a while half of that comes, then twice as
//! much, then half again, and so on. Everybody waits two seconds and then leaves. The service that takes on whatever comes
//! is soon busy with requests whose clients have left, and nobody is served any more, also for long after the load has gone.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use tidegate_gateway::Gateway;
use tidegate_policy::Policy;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::burst::Connection;
use crate::args::UpstreamArgs;
use crate::exit::Failure;
use crate::{check, clock, lab};

const WORKERS: u32 = 10;
const SERVICE_TIME: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(2);

/// How many come in a second to each of the two, and for how long; over and over.
const ACTS: [(f64, Duration); 3] =
    [(25.0, Duration::from_secs(10)), (100.0, Duration::from_secs(40)), (25.0, Duration::from_secs(60))];

/// The names that the dashboard and the table have.
const WITH: &str = "with-tidegate";
const WITHOUT: &str = "without-tidegate";

/// Two services of their own, so that neither feels what is done to the other.
pub(super) fn services() -> Result<[SocketAddr; 2], Failure> {
    let start = || {
        let listener = lab::bind(0)?;
        let address = listener.local_addr()?;
        std::thread::Builder::new().name("show".into()).spawn(move || {
            let args =
                UpstreamArgs { port: 0, workers: WORKERS, service_time: SERVICE_TIME, cancels_work: false };
            // It ends with the process.
            let _ = lab::serve(listener, &args);
        })?;
        Ok::<_, Failure>(address)
    };
    Ok([start()?, start()?])
}

/// One upstream under the defaults, and one that lets through whatever comes: with a limit that is never reached, as if the
/// gateway were a wire.
fn policy(server: &str, services: [SocketAddr; 2]) -> String {
    let [with, without] = services;
    format!(
        "{server}\n\
         # As it comes: the limit is found, and nobody waits for longer than half a second.\n\
         [[upstream]]\nname = \"{WITH}\"\nendpoints = [\"http://{with}\"]\n\n\
         # As if there were no tidegate.\n\
         [[upstream]]\nname = \"{WITHOUT}\"\nendpoints = [\"http://{without}\"]\ntimeout = \"1h\"\norphan_max = \"1h\"\n\
         [upstream.concurrency]\nlimit = 5000\n[upstream.queue]\ncapacity = 0\n[upstream.retries]\ndamp = false\n\
         [upstream.breaker]\nenabled = false\n\n\
         [[route]]\npath = \"/work/{WITH}\"\nupstream = \"{WITH}\"\n\
         [[route]]\npath = \"/work/{WITHOUT}\"\nupstream = \"{WITHOUT}\"\n"
    )
}

/// What the show needs of the gateway.
pub(super) fn parsed(server: &str, services: [SocketAddr; 2]) -> Result<tidegate_policy::Parsed, Failure> {
    Policy::parse(&policy(server, services), "the demo").map_err(|errors| check::failure(&errors))
}

/// Clients come, and every second a line says what became of them. Ends with the process, or with the gateway.
pub(super) async fn play(gateway: &Gateway) -> Result<(), Failure> {
    let clients = gateway.listening().clients;
    let watch = async {
        let mut second = interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = Counted::of(gateway);
        let began = clock::now();
        let mut out = io::stdout();
        writeln!(out, "{}", heading())?;
        second.tick().await;
        loop {
            second.tick().await;
            let now = Counted::of(gateway);
            let line = now.line(&before, (clock::now() - began).as_secs());
            // On a terminal the line is written over; a file gets one in ten.
            if out.is_terminal() {
                write!(out, "\r{line}")?;
            } else if (clock::now() - began).as_secs().is_multiple_of(10) {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
            before = now;
        }
    };
    tokio::select! {
        result = watch => result,
        () = come(clients, WITH) => Ok(()),
        () = come(clients, WITHOUT) => Ok(()),
    }
}

fn heading() -> String {
    format!("{:>8}   {:>12}   {:>22}   {:>22}", "", "come to each", "useful with tidegate", "useful without")
}

/// What has been counted so far.
struct Counted {
    arrivals: u64,
    with: u64,
    without: u64,
}

impl Counted {
    fn of(gateway: &Gateway) -> Self {
        let stats = gateway.stats();
        let count = |name: &str, what: &str| stats["upstreams"][name][what].as_u64().unwrap_or_default();
        Self {
            arrivals: count(WITH, "received"),
            with: count(WITH, "goodput"),
            without: count(WITHOUT, "goodput"),
        }
    }

    fn line(&self, before: &Self, second: u64) -> String {
        let rate = |now: u64, before: u64| format!("{}/s", now.saturating_sub(before));
        format!(
            "{:>6} s   {:>12}   {:>22}   {:>22}",
            second,
            rate(self.arrivals, before.arrivals),
            rate(self.with, before.with),
            rate(self.without, before.without),
        )
    }
}

/// Open loop: they come when they come, whatever became of those before them.
async fn come(gateway: SocketAddr, name: &'static str) {
    let mut next = Instant::from_std(clock::now());
    loop {
        for (rate, length) in ACTS {
            let end = next + length;
            while next < end {
                sleep_until(next).await;
                tokio::spawn(timeout(PATIENCE, ask(gateway, name)));
                next += Duration::from_secs_f64(1.0 / rate);
            }
        }
    }
}

/// Whoever gives up drops the connection, as a browser does whose page is closed.
async fn ask(gateway: SocketAddr, name: &str) {
    if let Ok(mut connection) = Connection::open(gateway).await {
        let _ = connection.get(&format!("/work/{name}")).await;
    }
}
