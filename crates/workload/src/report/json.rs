//! The report for a program.

use serde_json::{Map, Value, json};
use tidegate_engine::Reason;

use super::{Latencies, Report, Sending, Series, Totals, WireError};

impl Report {
    /// The report as JSON. Counts are sums over all runs; times are in milliseconds.
    pub fn to_json(&self) -> Value {
        let named = |list: &[(String, Totals)]| -> Map<String, Value> {
            list.iter().map(|(name, totals)| (name.clone(), totals.to_json())).collect()
        };
        let mut value = self.all.to_json();
        if let Value::Object(map) = &mut value {
            map.insert("policy".into(), json!(self.policy));
            map.insert("runs".into(), json!(self.runs));
            map.insert("watched_s".into(), json!(self.watched.as_secs_f64()));
            map.insert("goodput_of_runs".into(), json!(self.goodput_of_runs));
            map.insert("waited_ms".into(), self.waited.to_json());
            map.insert("classes".into(), Value::Object(named(&self.classes)));
            map.insert("tenants".into(), Value::Object(named(&self.tenants)));
            map.insert("series".into(), self.series.to_json());
            if let Some(sending) = &self.sending {
                map.insert("sending".into(), sending.to_json());
            }
            map.insert("events".into(), json!(self.events));
            map.insert("trace".into(), json!(format!("{:016x}", self.trace)));
        }
        value
    }
}

impl Totals {
    fn to_json(&self) -> Value {
        let rejected: Map<String, Value> = Reason::ALL
            .into_iter()
            .filter(|reason| self.rejected[*reason as usize] > 0)
            .map(|reason| (reason.name().to_owned(), json!(self.rejected[reason as usize])))
            .collect();
        json!({
            "offered": self.offered,
            "goodput": self.goodput,
            "failed": self.failed,
            "pending": self.pending(),
            "attempts": self.attempts,
            "left": self.left,
            "broken": self.broken,
            "rejected": rejected,
            "late": self.late,
            "let_in": self.let_in,
            "retries": self.retries,
            "retries_let_in": self.retries_let_in,
            "overtaken": self.overtaken,
            "told": self.told,
            "told_admitted": self.told_admitted,
            "served_ms": self.served.to_json(),
            "refused_ms": self.refused.to_json(),
        })
    }
}

impl Latencies {
    fn to_json(&self) -> Value {
        let millis = |share: f64| self.quantile(share).as_secs_f64() * 1e3;
        json!({
            "count": self.count(),
            "mean": self.mean().as_secs_f64() * 1e3,
            "p50": millis(0.5), "p90": millis(0.9), "p99": millis(0.99), "p999": millis(0.999),
            "max": self.max().as_secs_f64() * 1e3,
        })
    }
}

impl Sending {
    fn to_json(&self) -> Value {
        let statuses: Map<String, Value> =
            self.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
        let errors: Map<String, Value> = WireError::ALL
            .into_iter()
            .map(|error| (error.name().replace(' ', "_"), json!(self.errors[error as usize])))
            .collect();
        json!({
            "lag_ms": self.lag.to_json(),
            "held_ms": self.held.to_json(),
            "connecting_ms": self.connecting.to_json(),
            "naive_ms": self.naive.to_json(),
            "statuses": statuses,
            "errors": errors,
            "connections": self.connections,
            "connections_most": self.connections_most,
            "connections_max": self.connections_max,
            "outstanding_max": self.outstanding_max,
            "unsent": self.unsent,
            "resent": self.resent,
            "limited": self.limited_in_words(),
        })
    }
}

impl Series {
    fn to_json(&self) -> Value {
        let column = |of: fn(&super::Bucket) -> f64| -> Vec<f64> { self.buckets.iter().map(of).collect() };
        json!({
            "every_s": self.every.as_secs_f64(),
            "offered": column(|bucket| bucket.offered as f64),
            "goodput": column(|bucket| bucket.goodput as f64),
            "rejected": column(|bucket| bucket.rejected as f64),
            "late": column(|bucket| bucket.late as f64),
            "limit": column(|bucket| bucket.mean(bucket.limit)),
            "in_flight": column(|bucket| bucket.mean(bucket.in_flight)),
            "queue": column(|bucket| bucket.mean(bucket.queue)),
            "service_queue": column(|bucket| bucket.mean(bucket.service_queue)),
        })
    }
}
