//! The scenario that a log is played in: one service of which the log has told, and whoever comes as they are handed in.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_workload::{
    Arrivals, Capacity, Clients, NamedPolicy, RetryPolicy, Scenario, Service, ServiceTime,
};

use super::args::ReplayArgs;
use super::kinds::Kinds;
use super::survey::Survey;
use crate::exit::Failure;

/// How long the last requests are watched at least, and at most.
const TAIL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(1_200));

/// A wait budget counts for this much of it: the model of a system without one has a very long one.
const BUDGET_MAX: Duration = Duration::from_secs(60);

/// The scenario for a log.
pub(crate) fn scenario(
    args: &ReplayArgs,
    survey: &Survey,
    kinds: &Kinds<'_>,
    policies: &[NamedPolicy],
) -> Result<Scenario, Failure> {
    let time = match args.service_time {
        Some(time) => ServiceTime::Constant(time),
        None if survey.times.is_empty() => {
            return Err(Failure::runtime(
                "the log does not say how long any request took; say it with --service-time, such as \
                 --service-time 50ms",
            ));
        }
        None => ServiceTime::Recorded(survey.times.clone()),
    };
    let budget =
        policies.iter().flat_map(|named| &named.policy.upstreams).map(|upstream| upstream.queue.wait);
    // The last ones may wait as a policy lets them, and be worked on as long as any was.
    let tail = survey.total.max().max(survey.worked.max()) + budget.max().unwrap_or_default().min(BUDGET_MAX);
    let duration = at_speed(survey.span(), args.speed) + tail.clamp(TAIL.0, TAIL.1);
    let services = kinds.services.iter().map(|name| Service {
        name: name.clone(),
        capacity: args.workers.map_or(Capacity::Elastic { slope: 0.0 }, Capacity::Workers),
        time: time.clone(),
        queue: None,
        delay: Duration::ZERO,
        best: None,
        fails: 0.0,
        cancels_work: false,
        calls: Vec::new(),
        changes: Vec::new(),
    });
    let clients = Clients {
        name: "as logged".to_owned(),
        arrivals: Arrivals::Recorded,
        timeout: args.timeout,
        tells_deadline: false,
        identified: false,
        tenants: NonZeroU32::MIN,
        // The log has the retries already, each as a request of its own.
        retry: RetryPolicy::NONE,
        mix: kinds.kinds.clone(),
    };
    Ok(Scenario {
        name: "replay".to_owned(),
        story: String::new(),
        seed: args.seed,
        runs: 1,
        // The last arrival has to be before it.
        duration: Duration::from_secs(duration.as_secs() + 1),
        warmup: Duration::ZERO,
        gateways: 1,
        services: services.collect(),
        clients: vec![clients],
        policies: policies.to_vec(),
        expectations: Vec::new(),
    })
}

/// A time between two requests, when they come so many times as fast.
pub(crate) fn at_speed(time: Duration, speed: f64) -> Duration {
    if speed == 1.0 {
        return time;
    }
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or(Duration::MAX / 4)
}
