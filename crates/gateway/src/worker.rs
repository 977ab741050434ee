//! One event loop: a thread with a runtime of its own, which accepts, serves and talks to upstreams.
//!
//! Connections stay on the worker that accepted them, and each worker has its own idle upstream connections, so the
//! path of a request crosses no thread. What workers share is the gates, the rate limits and the counters.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::gateway::{Shared, Stage};
use crate::listen;
use crate::upstream::Pool;

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) stage: watch::Receiver<Stage>,
    /// Idle upstream connections of this worker.
    pub(crate) pool: Pool,
}

/// Runs until the gateway is told to stop and this worker's connections have ended, or time is up.
pub(crate) fn run(shared: Arc<Shared>, listener: TcpListener, stage: watch::Receiver<Stage>) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            shared.log.notice(&format!("a worker could not start: {error}"));
            return;
        }
    };
    runtime.block_on(async {
        let worker = Arc::new(Worker { shared, stage, pool: Pool::default() });
        let reaper = tokio::spawn(reap_idle(Arc::clone(&worker)));
        listen::accept_until_draining(&worker, listener).await;
        drained(&worker).await;
        reaper.abort();
    });
    // What is left now has had its time.
    runtime.shutdown_background();
}

/// Waits until all client connections of all workers are closed, or until the stage says that time is up.
async fn drained(worker: &Worker) {
    let mut stage = worker.stage.clone();
    let empty = async {
        while worker.shared.metrics.client_connections.now_open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = empty => {}
        _ = stage.wait_for(|stage| *stage == Stage::Stopped) => {}
    }
}

/// Closes upstream connections that have been idle for too long.
async fn reap_idle(worker: Arc<Worker>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        worker.pool.reap(worker.shared.clock.now());
    }
}
