//! What came of it, for a page to draw: what happened, the policy as it is, and the policy as it would be, over the same
//! stretches of time.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_workload::{Report, Totals};

use super::Recording;
use super::recording::Second;

pub(super) fn json(recording: &Recording, reports: &[Report], took: Duration) -> Value {
    let mut answer = json!({
        "seconds": round(recording.span.as_secs_f64()),
        "workers": recording.workers,
        "work_ms": median(recording).map(round),
        "took_ms": round(took.as_secs_f64() * 1e3),
    });
    let stretches = reports.first().map_or(1, |report| report.series.buckets.len());
    answer["every_seconds"] = round(recording.span.as_secs_f64() / stretches as f64).into();
    answer["happened"] = happened(recording, stretches);
    for (name, report) in ["as_it_is", "changed"].into_iter().zip(reports) {
        answer[name] = played(report);
    }
    answer
}

fn played(report: &Report) -> Value {
    let every = report.series.every.as_secs_f64();
    let rates = |count: fn(&tidegate_workload::Bucket) -> u64| -> Vec<f64> {
        report.series.buckets.iter().map(|bucket| round(count(bucket) as f64 / every)).collect()
    };
    let means = |sum: fn(&tidegate_workload::Bucket) -> f64| -> Vec<f64> {
        report.series.buckets.iter().map(|bucket| round(bucket.mean(sum(bucket)))).collect()
    };
    let classes: Map<String, Value> =
        report.classes.iter().map(|(name, totals)| (name.clone(), of(totals))).collect();
    let mut all = of(&report.all);
    all["classes"] = classes.into();
    all["series"] = json!({
        "arrivals": rates(|bucket| bucket.offered),
        "goodput": rates(|bucket| bucket.goodput),
        "refused": rates(|bucket| bucket.rejected),
        "limit": means(|bucket| bucket.limit),
        "in_flight": means(|bucket| bucket.in_flight),
    });
    all
}

fn of(totals: &Totals) -> Value {
    let millis = |time: Duration| round(time.as_secs_f64() * 1e3);
    json!({
        "arrivals": totals.offered,
        "goodput": totals.goodput,
        "refused": totals.refusals(),
        "p50_ms": millis(totals.served.quantile(0.5)),
        "p99_ms": millis(totals.served.quantile(0.99)),
    })
}

fn happened(recording: &Recording, stretches: usize) -> Value {
    let length = recording.span.as_secs_f64() / stretches as f64;
    let overlap = |number: usize, second: &Second| {
        let (from, until) = (number as f64 * length, (number + 1) as f64 * length);
        (second.end.min(until) - (second.end - second.length).max(from)).max(0.0)
    };
    let mean = |value: fn(&Second) -> f64| -> Vec<Value> {
        let stretch = |number: usize| {
            let add = |(sum, time): (f64, f64), second: &Second| {
                let overlap = overlap(number, second);
                (sum + value(second) * overlap, time + overlap)
            };
            let (sum, time) = recording.happened.iter().fold((0.0, 0.0), add);
            // Before the first sample there is none.
            if time > 0.0 { round(sum / time).into() } else { Value::Null }
        };
        (0..stretches).map(stretch).collect()
    };
    let total = |value: fn(&Second) -> f64| -> f64 {
        recording.happened.iter().map(|it| value(it) * it.length).sum::<f64>().round()
    };
    let priorities = &recording.live.policy.priorities;
    let classes: Map<String, Value> = priorities
        .iter()
        .zip(&recording.useful)
        .map(|(class, useful)| (class.name.clone(), json!({ "goodput": useful.round() })))
        .collect();
    json!({
        "arrivals": total(|it| it.arrivals),
        "goodput": total(|it| it.goodput),
        "refused": total(|it| it.refused),
        "classes": classes,
        "series": {
            "arrivals": mean(|it| it.arrivals),
            "goodput": mean(|it| it.goodput),
            "refused": mean(|it| it.refused),
            "limit": mean(|it| it.limit),
            "in_flight": mean(|it| it.in_flight),
        },
    })
}

fn median(recording: &Recording) -> Option<f64> {
    let mut times: Vec<f32> = recording.worked.iter().flat_map(|worked| worked.times).collect();
    times.sort_by(f32::total_cmp);
    times.get(times.len() / 2).map(|time| f64::from(*time))
}

/// To three digits behind the point.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
