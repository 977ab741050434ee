//! What a collector is told: spans and metrics, by OTLP over HTTP in JSON
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>), from a thread of its own.
//!
//! The encoding is stable and takes no code that is not here already, where the crates of OpenTelemetry would bring thirty
//! others. Nothing waits for a collector: what it does not take within some tries is counted as lost, and so is what comes
//! while the queue before this thread is full.

mod collector;
use collector::{Collector, Failed};

mod spans;

mod metrics;
pub(crate) use metrics::Families;

mod json;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_policy::{Otlp, Server};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::span::{Finished, Tracer};
use crate::clock;
use crate::gateway::{Shared, Stage};

/// Requests that are told of at once.
const BATCH: usize = 256;
/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How often the same is offered, and how long is waited before the second time; then twice as long each time.
const TRIES: u32 = 5;
const BACK_OFF: Duration = Duration::from_secs(1);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// What is left at the end has so long to get away.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The thread's part.
pub(crate) struct Exporter {
    policy: Otlp,
    collector: Collector,
    inbox: mpsc::Receiver<Finished>,
}

impl Exporter {
    /// The two ends, if the policy names a collector: what requests are traced with, and what tells of them.
    pub(crate) fn of(server: &Server) -> io::Result<(Option<Tracer>, Option<Self>)> {
        let Some(policy) = &server.otlp else { return Ok((None, None)) };
        let (tracer, inbox) = Tracer::new(policy.sample);
        let exporter = Self { policy: policy.clone(), collector: Collector::new(policy)?, inbox };
        Ok((Some(tracer), Some(exporter)))
    }

    /// Runs until the gateway has stopped.
    pub(crate) fn run(self, shared: &Arc<Shared>, stage: watch::Receiver<Stage>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return shared.log.notice(&format!("the exporter could not start: {error}")),
        };
        let Self { policy, collector, inbox } = self;
        let resource = json::resource(&policy.service_name);
        runtime.block_on(async {
            tokio::join!(
                tell_spans(shared, &collector, &resource, inbox, stage.clone()),
                tell_metrics(shared, &collector, &resource, policy.metrics_interval, stage),
            )
        });
        // A name that is being looked up cannot be given up, and nobody waits for it.
        runtime.shutdown_background();
    }
}

async fn stopped(stage: &mut watch::Receiver<Stage>) {
    let _ = stage.wait_for(|stage| *stage == Stage::Stopped).await;
}

/// Posts this. A collector that says nothing keeps the gateway from ending for no longer than the last words may take.
async fn post(
    collector: &Collector,
    path: &'static str,
    body: String,
    stage: &mut watch::Receiver<Stage>,
) -> Result<u64, Failed> {
    let time_is_up = async {
        stopped(stage).await;
        sleep(LAST_WORDS).await;
    };
    tokio::select! {
        sent = collector.post(path, body) => sent,
        () = time_is_up => Err(Failed::ForGood),
    }
}

async fn tell_spans(
    shared: &Shared,
    collector: &Collector,
    resource: &Value,
    mut inbox: mpsc::Receiver<Finished>,
    mut stage: watch::Receiver<Stage>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        tokio::select! {
            // With a full queue there is always more to tell, and the end would be a matter of chance.
            biased;
            () = stopped(&mut stage) => break,
            () = gather(&mut inbox, &mut batch) => tell(shared, collector, resource, &batch, &mut stage).await,
        }
    }
    inbox.close();
    last_words(shared, collector, resource, inbox, batch).await;
}

/// What was gathered when the end came, and what had come after it, as far as there is time.
async fn last_words(
    shared: &Shared,
    collector: &Collector,
    resource: &Value,
    mut inbox: mpsc::Receiver<Finished>,
    mut batch: Vec<Finished>,
) {
    let counts = &shared.metrics.spans;
    let telling = async {
        loop {
            while batch.len() < BATCH
                && let Ok(finished) = inbox.try_recv()
            {
                batch.push(finished);
            }
            if batch.is_empty() {
                return;
            }
            let body = spans::request(resource, &batch, clock::offset(shared.clock.now()));
            let sent = collector.post("/v1/traces", body).await;
            let counter = if sent.is_ok() { &counts.exported } else { &counts.failed };
            counter.add(batch.drain(..).map(|finished| finished.spans()).sum());
        }
    };
    let _ = timeout(LAST_WORDS, telling).await;
}

/// Waits for the first, and for those that come soon after it.
async fn gather(inbox: &mut mpsc::Receiver<Finished>, batch: &mut Vec<Finished>) {
    if inbox.recv_many(batch, BATCH).await == 0 {
        // There will be no more; the stage says when it is time to end.
        return std::future::pending().await;
    }
    let more = async {
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            if inbox.recv_many(batch, room).await == 0 {
                return;
            }
        }
    };
    let _ = timeout(GATHER, more).await;
}

/// Offers a batch until it is taken, it makes no sense any more, or the gateway stops.
async fn tell(
    shared: &Shared,
    collector: &Collector,
    resource: &Value,
    batch: &[Finished],
    stage: &mut watch::Receiver<Stage>,
) {
    let counts = &shared.metrics.spans;
    let all = batch.iter().map(Finished::spans).sum::<u64>();
    let body = spans::request(resource, batch, clock::offset(shared.clock.now()));
    let mut back_off = BACK_OFF;
    for attempt in 1..=TRIES {
        match post(collector, "/v1/traces", body.clone(), stage).await {
            Ok(refused) => {
                counts.failed.add(refused.min(all));
                counts.exported.add(all - refused.min(all));
                return;
            }
            Err(Failed::ForGood) => break,
            Err(Failed::ForNow(after)) if attempt < TRIES => {
                tokio::select! {
                    () = sleep(after.unwrap_or(back_off).min(BACK_OFF_MAX)) => {}
                    () = stopped(stage) => break,
                }
                back_off = (back_off * 2).min(BACK_OFF_MAX);
            }
            Err(Failed::ForNow(_)) => {}
        }
    }
    counts.failed.add(all);
}

/// Metrics are as they are by now, so what was not taken is not offered again; and a last time at the end.
async fn tell_metrics(
    shared: &Shared,
    collector: &Collector,
    resource: &Value,
    every: Duration,
    mut stage: watch::Receiver<Stage>,
) {
    loop {
        let is_last = tokio::select! {
            () = sleep(every) => false,
            () = stopped(&mut stage) => true,
        };
        let body = metrics::request(resource, shared);
        let _ = post(collector, "/v1/metrics", body, &mut stage).await;
        if is_last {
            return;
        }
    }
}
