//! Snapshots for the recorder that the program has installed, through the `metrics` facade. Feature `metrics`.
//!
//! Nothing is recorded while items flow: call this every few seconds, or when somebody asks. Counters are set to the
//! snapshot's sums, so a call that is missed loses nothing.

use std::time::Duration;

use metrics::{counter, gauge};

use crate::snapshot::Snapshot;
use crate::workers::WorkersSnapshot;

/// Exports how a publisher or a subscription stands, labelled `flow` = `name`.
///
/// Gauges `tidegate_flow_depth`, `tidegate_flow_bytes`, `tidegate_flow_subscribers`, `tidegate_flow_producers_waiting`,
/// `tidegate_flow_wait_seconds_max`; counters `tidegate_flow_submitted_total`, `tidegate_flow_delivered_total`,
/// `tidegate_flow_dropped_total`, `tidegate_flow_refused_total`, `tidegate_flow_cut_off_total`,
/// `tidegate_flow_blocked_total`, `tidegate_flow_wait_microseconds_total`, `tidegate_flow_blocked_microseconds_total`.
pub fn export_flow(name: &'static str, snapshot: &Snapshot) {
    gauge!("tidegate_flow_depth", "flow" => name).set(snapshot.depth as f64);
    gauge!("tidegate_flow_bytes", "flow" => name).set(snapshot.bytes as f64);
    gauge!("tidegate_flow_subscribers", "flow" => name).set(f64::from(snapshot.subscribers));
    gauge!("tidegate_flow_producers_waiting", "flow" => name).set(snapshot.producers_waiting as f64);
    let counts = &snapshot.counts;
    gauge!("tidegate_flow_wait_seconds_max", "flow" => name).set(counts.waited_max.as_secs_f64());
    counter!("tidegate_flow_submitted_total", "flow" => name).absolute(counts.submitted);
    counter!("tidegate_flow_delivered_total", "flow" => name).absolute(counts.delivered);
    counter!("tidegate_flow_dropped_total", "flow" => name).absolute(counts.dropped);
    counter!("tidegate_flow_refused_total", "flow" => name).absolute(counts.refused);
    counter!("tidegate_flow_cut_off_total", "flow" => name).absolute(counts.cut_off);
    counter!("tidegate_flow_blocked_total", "flow" => name).absolute(counts.blocked);
    counter!("tidegate_flow_wait_microseconds_total", "flow" => name).absolute(micros(counts.waited));
    counter!("tidegate_flow_blocked_microseconds_total", "flow" => name).absolute(micros(counts.blocked_for));
}

/// Exports how workers stand, labelled `workers` = `name`.
///
/// Gauges `tidegate_workers`, `tidegate_workers_running`, `tidegate_workers_depth`,
/// `tidegate_workers_submitters_waiting`, `tidegate_workers_wait_seconds_max`; counter
/// `tidegate_workers_wait_microseconds_total`, and `tidegate_workers_tasks_total` with a label `end`, one of `completed`,
/// `panicked`, `stopped`, `expired`, `discarded`, `refused`.
pub fn export_workers(name: &'static str, snapshot: &WorkersSnapshot) {
    gauge!("tidegate_workers", "workers" => name).set(f64::from(snapshot.workers));
    gauge!("tidegate_workers_running", "workers" => name).set(f64::from(snapshot.running));
    gauge!("tidegate_workers_depth", "workers" => name).set(snapshot.depth as f64);
    gauge!("tidegate_workers_submitters_waiting", "workers" => name).set(snapshot.submitters_waiting as f64);
    let counts = &snapshot.counts;
    gauge!("tidegate_workers_wait_seconds_max", "workers" => name).set(counts.waited_max.as_secs_f64());
    counter!("tidegate_workers_wait_microseconds_total", "workers" => name).absolute(micros(counts.waited));
    for (end, count) in [
        ("completed", counts.completed),
        ("panicked", counts.panicked),
        ("stopped", counts.stopped),
        ("expired", counts.expired),
        ("discarded", counts.discarded),
        ("refused", counts.refused),
    ] {
        counter!("tidegate_workers_tasks_total", "workers" => name, "end" => end).absolute(count);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
