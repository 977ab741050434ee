//! How the lab's gateway and service stand while a scenario is played, looked at as the simulator looks at its own, so that
//! both can be drawn in the same chart.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use tidegate_gateway::Gateway;
use tidegate_workload::{Gauges, Report, Scenario};

use super::service::Served;
use crate::clock;
use crate::exit::Failure;

/// How often it is looked, over the whole scenario: twice for each stretch of the report.
const LOOKS: u32 = 240;

/// Plays, while somebody looks, and puts what was seen into the report. What the generator itself saw from outside is less.
pub(super) fn watched(
    scenario: &Scenario,
    gateway: Option<&Gateway>,
    service: &Served,
    play: impl FnOnce() -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let every = (scenario.duration / LOOKS).max(Duration::from_millis(5));
    let (playing, ended) = sync_channel::<()>(0);
    let (report, seen) = thread::scope(|scope| {
        let looking = scope.spawn(move || {
            let began = clock::now();
            let mut seen = Vec::with_capacity(LOOKS as usize);
            // Not more often than the scenario is long, whatever happens.
            while seen.len() <= LOOKS as usize && ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout)
            {
                seen.push((clock::now().saturating_duration_since(began), look(scenario, gateway, service)));
            }
            seen
        });
        let report = play();
        drop(playing);
        (report, looking.join().unwrap_or_default())
    });
    let mut report = report?;
    for bucket in &mut report.series.buckets {
        (bucket.looks, bucket.limit, bucket.in_flight, bucket.queue, bucket.service_queue) =
            (0, 0.0, 0.0, 0.0, 0.0);
    }
    for (at, gauges) in seen.into_iter().filter(|(at, _)| *at < scenario.duration) {
        let bucket = report.series.at(at);
        bucket.looks += 1;
        bucket.limit += gauges.limit;
        bucket.in_flight += gauges.in_flight;
        bucket.queue += gauges.queue;
        bucket.service_queue += gauges.service_queue;
    }
    Ok(report)
}

fn look(scenario: &Scenario, gateway: Option<&Gateway>, service: &Served) -> Gauges {
    let (inside, waiting) = service.stands();
    let Some(gateway) = gateway else {
        return Gauges { in_flight: inside, service_queue: waiting, ..Gauges::default() };
    };
    let stats = gateway.stats();
    let upstreams = &stats["upstreams"];
    // The one of the service's name; a policy that has only another protects it by that.
    let named = upstreams.get(&scenario.services[0].name);
    let first = || upstreams.as_object().and_then(|all| all.values().next());
    let number = |name: &str| named.or_else(first).and_then(|one| one[name].as_f64()).unwrap_or_default();
    Gauges {
        limit: number("limit"),
        in_flight: number("in_flight"),
        queue: number("queue_depth"),
        service_queue: waiting,
    }
}
