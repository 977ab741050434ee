//! Metrics as OTLP has them: the same families as `/metrics`, with the same values.
//!
//! Their names are without `_total` and the unit, which are fields of their own here; whoever makes Prometheus' names of
//! them again, as collectors do, gets those of `/metrics`.

use serde_json::{Value, json};

use super::json::{scope, text, time};
use crate::clock;
use crate::gateway::Shared;
use crate::metrics::{Format, Histogram, Kind, Metric, fill};
use tidegate_engine::Timestamp;

/// Sums since the start, and not since the last time.
const CUMULATIVE: u8 = 2;

/// The body of a request to `/v1/metrics`.
pub(super) fn request(resource: &Value, shared: &Shared) -> String {
    let now = shared.clock.now();
    let epoch = clock::offset(now);
    let families = Families { start: time(Timestamp::ZERO, epoch), now: time(now, epoch), all: Vec::new() };
    let all = fill(shared, Format::Otlp(families)).into_families();
    json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": [{ "scope": scope(), "metrics": all }] }] })
        .to_string()
}

/// What has been said so far.
pub(crate) struct Families {
    start: Value,
    now: Value,
    all: Vec<Value>,
}

impl Families {
    pub(crate) fn head(&mut self, metric: &Metric) {
        let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let name = if metric.seconds { name.strip_suffix("_seconds").unwrap_or(name) } else { name };
        let mut family = json!({
            "name": name,
            "description": metric.help,
            "unit": if metric.seconds { "s" } else { "1" },
        });
        family[member(metric.kind)] = match metric.kind {
            Kind::Counter => {
                json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": [] })
            }
            Kind::Histogram => json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": [] }),
            Kind::Gauge => json!({ "dataPoints": [] }),
        };
        self.all.push(family);
    }

    pub(crate) fn sample(&mut self, metric: &Metric, values: &[&str], value: f64) {
        let point = json!({
            "attributes": attributes(metric, values),
            "startTimeUnixNano": self.start,
            "timeUnixNano": self.now,
            "asDouble": value,
        });
        self.push(metric, point);
    }

    pub(crate) fn histogram(&mut self, metric: &Metric, values: &[&str], histogram: &Histogram) {
        let cumulative = histogram.cumulative();
        let total = cumulative.last().map_or(0, |(_, count)| *count);
        let bounds: Vec<f64> =
            cumulative.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect();
        let mut before = 0;
        let counts: Vec<String> = cumulative
            .iter()
            .map(|(_, count)| {
                let own = count - before;
                before = *count;
                own.to_string()
            })
            .collect();
        let point = json!({
            "attributes": attributes(metric, values),
            "startTimeUnixNano": self.start,
            "timeUnixNano": self.now,
            "count": total.to_string(),
            "sum": histogram.seconds(),
            "bucketCounts": counts,
            "explicitBounds": bounds,
        });
        self.push(metric, point);
    }

    pub(crate) fn into_all(self) -> Vec<Value> {
        // A family without a point says nothing.
        let has_points = |family: &Value| {
            ["sum", "gauge", "histogram"]
                .into_iter()
                .any(|kind| family[kind]["dataPoints"].as_array().is_some_and(|points| !points.is_empty()))
        };
        self.all.into_iter().filter(has_points).collect()
    }

    fn push(&mut self, metric: &Metric, point: Value) {
        let points = self.all.last_mut().map(|family| &mut family[member(metric.kind)]["dataPoints"]);
        if let Some(Value::Array(points)) = points {
            points.push(point);
        }
    }
}

const fn member(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "sum",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    }
}

fn attributes(metric: &Metric, values: &[&str]) -> Value {
    metric.labels.iter().zip(values).map(|(label, value)| text(label, *value)).collect()
}
