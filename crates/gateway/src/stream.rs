//! The streams of an HTTP/2 connection, each with a patience of its own.
//!
//! Over HTTP/1.1 a body that stands still is the standstill of its whole connection, which the connection's watchdog
//! sees. Over HTTP/2 its siblings may move all the while, and the slot that it holds would be kept for nobody. hyper
//! runs each stream as a task on an executor of our choice; this one ends the stream, and no other, when its bodies
//! have stood still for too long. The client sees it reset.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hyper::rt::Executor;
use tokio::time::sleep;

use crate::gateway::Shared;

tokio::task_local! {
    /// The stream whose task this is: what ties a request to the task that hyper runs it in.
    static CURRENT: Arc<Stream>;
}

/// How one stream gets on.
#[derive(Default)]
pub(crate) struct Stream {
    /// Its answer has begun. Before that the queue and the upstream have their own timers.
    answering: AtomicBool,
    /// A part of a body went either way since it was looked at last.
    moved: AtomicBool,
}

impl Stream {
    /// The stream that this is the task of; `None` over HTTP/1.1.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Clone::clone).ok()
    }

    pub(crate) fn answer_began(&self) {
        self.answering.store(true, Relaxed);
        self.moved();
    }

    pub(crate) fn moved(&self) {
        self.moved.store(true, Relaxed);
    }

    /// Ends when the answer has been under way for a whole `body_timeout` in which nothing moved.
    async fn stands_still(&self, shared: &Shared) {
        loop {
            let was_answering = self.answering.load(Relaxed);
            self.moved.store(false, Relaxed);
            let patience = shared.live().policy.server.body_timeout;
            sleep(patience).await;
            if was_answering && !self.moved.load(Relaxed) {
                return;
            }
        }
    }
}

/// Runs the streams of a connection.
#[derive(Clone)]
pub(crate) struct Streams(pub(crate) Arc<Shared>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, serving: F) {
        let shared = self.0.clone();
        let stream = Arc::<Stream>::default();
        tokio::spawn(CURRENT.scope(stream.clone(), async move {
            tokio::select! {
                biased;
                () = serving => {}
                // To drop the stream is to reset it.
                () = stream.stands_still(&shared) => {}
            }
        }));
    }
}
