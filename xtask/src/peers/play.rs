//! Playing one case against one contender: everything is started anew, loaded, and ended again.
//!
//! Whatever was started ends when this returns, also when it fails.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};

use super::capacity::{self, Measured};
use super::case::Case;
use super::contender::{Contender, Known};
use super::load::{self, Sample};
use crate::bench::http::Connection;
use crate::bench::lab::{self, Lab};
use crate::bench::process::Running;
use crate::clock;

/// How long after everything is ready the load begins.
const HEAD_START: Duration = Duration::from_millis(300);

/// One that can be compared: who, and where its program is.
#[derive(Clone, Debug)]
pub(crate) struct Entrant {
    /// Who.
    pub(crate) contender: Contender,
    /// Where its program is.
    pub(crate) program: PathBuf,
}

/// The service that is to be protected: `tidegate upstream`, which takes on whatever comes.
struct Service {
    _running: Running,
    address: SocketAddr,
}

impl Service {
    fn start(lab: &Lab, tidegate: &Path, workers: u32, service_time: Duration) -> Result<Self> {
        let address = Lab::free_address()?;
        let args = [
            "upstream".to_owned(),
            format!("--port={}", address.port()),
            format!("--workers={workers}"),
            format!("--service-time={}ms", service_time.as_millis()),
        ];
        let mut running = Running::start(lab.load_core, tidegate, &args, lab.path("upstream.log"))?;
        lab::wait_until_it_answers(&mut running, "the service", address)?;
        Ok(Self { _running: running, address })
    }
}

/// What the service can do in each phase of `case`, measured; 0 where it takes longer than anybody waits. Nothing when
/// nothing is compared with it.
pub(crate) fn capacities(lab: &Lab, tidegate: &Path, case: &Case, length: Duration) -> Result<Vec<f64>> {
    if !case.asks_for_capacity() {
        return Ok(Vec::new());
    }
    let mut known: Vec<(Duration, f64)> = Vec::new();
    for time in case.phases.iter().map(|phase| phase.service_time) {
        if known.iter().any(|(earlier, _)| *earlier == time) {
            continue;
        }
        let answers = if time < case.patience.timeout {
            let service = Service::start(lab, tidegate, case.workers, time)?;
            let Service { address, .. } = service;
            let (workers, core) = (case.workers, lab.gateway_core);
            capacity::measure(Measured { address, workers, service_time: time, core }, length)?
        } else {
            0.0
        };
        known.push((time, answers));
    }
    let of = |time| known.iter().find(|(earlier, _)| *earlier == time).map_or(0.0, |(_, answers)| *answers);
    Ok(case.phases.iter().map(|phase| of(phase.service_time)).collect())
}

/// Play `case` against `entrant`, from cold. The samples are in the order of the case's kinds of clients.
pub(crate) fn play(
    lab: &Lab,
    tidegate: &Path,
    entrant: &Entrant,
    case: &Case,
    capacity: f64,
    seed: u64,
) -> Result<Vec<Vec<Sample>>> {
    let first = case.phases.first().context("a case without phases")?;
    let service = Service::start(lab, tidegate, case.workers, first.service_time)?;
    let known = Known {
        upstream: service.address,
        workers: case.workers,
        capacity,
        timeout: case.patience.timeout,
        story: case.story,
    };
    let mut gateway = entrant.contender.start(lab, &entrant.program, &known)?;
    // Connected before the load begins, so that a change is not held up by it.
    let control = Connection::open(service.address)?;
    let began = clock::now() + HEAD_START;
    let streams = case.streams(seed);
    let samples = thread::scope(|scope| {
        let changes = scope.spawn(|| change_as_planned(control, case, began));
        let samples = load::run(gateway.address, &streams, case.patience, began);
        changes.join().map_err(|_| anyhow!("the changes of the service panicked"))??;
        samples
    })?;
    if let Some(running) = &mut gateway.running {
        let ended = running.ended()?;
        ensure!(ended.is_none(), "it ended while it was loaded ({ended:?}): {}", running.printed());
    }
    Ok(samples)
}

/// Tell the service how long it is to work from each phase on.
fn change_as_planned(mut control: Connection, case: &Case, began: Instant) -> Result<()> {
    for (index, phase) in case.phases.iter().enumerate().skip(1) {
        let at = began + case.span_of(index).start;
        clock::sleep(at.saturating_duration_since(clock::now()));
        let path = format!("/set?service_time={}ms", phase.service_time.as_millis());
        let answer = control.post(&path).context("the service cannot be changed")?;
        ensure!(answer.status == 200, "the service does not change: {}", answer.status);
    }
    Ok(())
}
