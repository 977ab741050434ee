//! What the recorder gets that the program has installed.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use tidegate_flow::*;

/// Writes down the last value of each series.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<String, f64>>>);

struct Series(String, Notes);

impl Series {
    fn note(&self, value: f64) {
        self.1.0.lock().unwrap().insert(self.0.clone(), value);
    }
}

impl CounterFn for Series {
    fn increment(&self, _: u64) {
        panic!("sums are set, so that a call that is missed loses nothing");
    }

    fn absolute(&self, value: u64) {
        self.note(value as f64);
    }
}

impl GaugeFn for Series {
    fn increment(&self, _: f64) {
        panic!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        panic!("gauges are set");
    }

    fn set(&self, value: f64) {
        self.note(value);
    }
}

impl Notes {
    fn series(&self, key: &Key) -> Arc<Series> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Series(format!("{}{{{}}}", key.name(), labels.join(",")), self.clone()))
    }

    #[track_caller]
    fn check(&self, expected: &[(&str, f64)]) {
        let notes = self.0.lock().unwrap();
        for (series, value) in expected {
            assert_eq!(notes.get(*series), Some(value), "{series} of {notes:#?}");
        }
    }
}

impl Recorder for Notes {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn depth_drops_and_refusals_of_a_publisher() {
    let publisher = Publisher::new(Policy::new(4).with_bytes(100, |bytes: &u64| *bytes));
    let _subscription = publisher.subscribe();
    for _ in 0..6 {
        publisher.offer(10, Drops::Newest);
    }
    assert!(publisher.try_submit(10).is_err());
    let notes = Notes::default();
    with_local_recorder(&notes, || export_flow("events", &publisher.snapshot()));
    notes.check(&[
        ("tidegate_flow_depth{flow=events}", 4.0),
        ("tidegate_flow_bytes{flow=events}", 40.0),
        ("tidegate_flow_subscribers{flow=events}", 1.0),
        ("tidegate_flow_submitted_total{flow=events}", 6.0),
        ("tidegate_flow_dropped_total{flow=events}", 2.0),
        ("tidegate_flow_refused_total{flow=events}", 1.0),
    ]);
}

#[tokio::test(start_paused = true)]
async fn depth_waits_and_expiries_of_workers() {
    let policy = WorkersPolicy { workers: NonZeroU32::MIN, queue: 8, when_full: WhenFull::Abort };
    let (workers, mut crew) = Workers::new(policy);
    let handle = workers.try_submit(Task::new(async {})).unwrap();
    let _expires =
        workers.try_submit(Task::new(async {}).within(std::time::Duration::from_millis(5))).unwrap();
    tokio::time::advance(std::time::Duration::from_millis(20)).await;
    tokio::spawn(crew.pop().unwrap().run());
    handle.await.unwrap();
    tokio::task::yield_now().await;
    let notes = Notes::default();
    with_local_recorder(&notes, || export_workers("writers", &workers.snapshot()));
    notes.check(&[
        ("tidegate_workers_depth{workers=writers}", 0.0),
        ("tidegate_workers_wait_seconds_max{workers=writers}", 0.02),
        ("tidegate_workers_tasks_total{workers=writers,end=completed}", 1.0),
        ("tidegate_workers_tasks_total{workers=writers,end=expired}", 1.0),
    ]);
}
