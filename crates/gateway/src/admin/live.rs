//! Server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>): one sample a second to everybody
//! who follows.
//!
//! Nothing is kept for a follower but what the kernel keeps, which `mod.rs` bounds. Whoever is slow misses samples, which
//! `/api/history` still has, and whoever has taken nothing for [`PATIENCE`] is cut off, since a connection that nobody reads is
//! a place that somebody else could have.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Sleep, sleep};

use crate::history::{Sample, row};

/// So many may follow at once; a page is one.
pub(super) const FOLLOWERS_MAX: usize = 32;
/// What is not read for so long is not read any more.
const PATIENCE: Duration = Duration::from_secs(15);
/// After so much time without a sample a comment goes out, so that proxies do not take the stream for dead.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What a stream begins with: when to come back after it broke, in milliseconds.
const BEGINNING: &str = "retry: 2000\n: one sample a second, as /api/history has them\n\n";
const KEEP_ALIVE: &str = ": still here\n\n";

/// A sample as an event. JSON on one line needs no further care: a line end within it would be the end of the data.
pub(super) fn event(sample: &Sample) -> Bytes {
    Bytes::from(format!("event: sample\nid: {}\ndata: {}\n\n", sample.id, row(sample)))
}

/// One who follows: the body of an answer.
pub(super) struct Follower {
    begun: bool,
    next: Next,
    silence: Pin<Box<Sleep>>,
    pace: Arc<Pace>,
    _place: OwnedSemaphorePermit,
}

/// The next event, and who waits for it.
type Next = Pin<Box<dyn Future<Output = Option<(Bytes, watch::Receiver<Bytes>)>> + Send>>;

impl Follower {
    pub(super) fn new(
        mut samples: watch::Receiver<Bytes>,
        pace: Arc<Pace>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        // The newest is new to whoever has just come.
        samples.mark_changed();
        Self {
            begun: false,
            next: Box::pin(next(samples)),
            silence: Box::pin(sleep(SILENCE_MAX)),
            pace,
            _place: place,
        }
    }

    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Asked for more, so what there was has been taken.
        self.pace.took();
        if !self.begun {
            self.begun = true;
            return Poll::Ready(Some(Bytes::from_static(BEGINNING.as_bytes())));
        }
        loop {
            if let Poll::Ready(next_event) = self.next.as_mut().poll(cx) {
                let Some((event, samples)) = next_event else { return Poll::Ready(None) };
                self.next = Box::pin(next(samples));
                // There was none yet.
                if event.is_empty() {
                    continue;
                }
                self.silence = Box::pin(sleep(SILENCE_MAX));
                return Poll::Ready(Some(event));
            }
            ready!(self.silence.as_mut().poll(cx));
            self.silence = Box::pin(sleep(SILENCE_MAX));
            return Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE.as_bytes())));
        }
    }
}

async fn next(mut samples: watch::Receiver<Bytes>) -> Option<(Bytes, watch::Receiver<Bytes>)> {
    samples.changed().await.ok()?;
    let event = samples.borrow_and_update().clone();
    Some((event, samples))
}

/// How a connection keeps up with what it follows. hyper asks for more only when what it had is written, and something
/// comes at least every [`SILENCE_MAX`].
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How often something was taken; 0 while nothing is followed.
    taken: AtomicU64,
}

impl Pace {
    fn took(&self) {
        self.taken.fetch_add(1, Relaxed);
    }

    /// Ends when a follower has stopped reading.
    pub(super) async fn too_slow(&self) {
        let mut before = 0;
        loop {
            sleep(PATIENCE).await;
            let now = self.taken.load(Relaxed);
            if now > 0 && now == before {
                return;
            }
            before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::sync::Semaphore;

    async fn next_event(follower: &mut Follower) -> String {
        let event = poll_fn(|cx| follower.poll_event(cx)).await;
        String::from_utf8(event.unwrap_or_default().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_comes_at_once_and_silence_is_broken() {
        let samples = watch::Sender::new(Bytes::new());
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        samples.send_replace("the newest".into());
        let mut follower = Follower::new(samples.subscribe(), Arc::default(), place);
        assert_eq!(next_event(&mut follower).await, BEGINNING);
        assert_eq!(next_event(&mut follower).await, "the newest");
        assert_eq!(next_event(&mut follower).await, KEEP_ALIVE);
        // Whoever is slow misses what was in between.
        samples.send_replace("missed".into());
        samples.send_replace("seen".into());
        assert_eq!(next_event(&mut follower).await, "seen");
        drop(samples);
        assert_eq!(next_event(&mut follower).await, "", "the gateway has ended");
    }

    /// HEAD makes a follower that is never asked, and the connection has other uses after it.
    #[tokio::test(start_paused = true)]
    async fn whoever_wants_only_the_head_is_not_slow() {
        let (samples, pace) = (watch::Sender::new(Bytes::new()), Arc::<Pace>::default());
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        drop(Follower::new(samples.subscribe(), pace.clone(), place));
        let day = Duration::from_secs(86_400);
        assert!(tokio::time::timeout(day, pace.too_slow()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_read_is_cut_off() {
        let pace = Pace::default();
        let day = Duration::from_secs(86_400);
        assert!(tokio::time::timeout(day, pace.too_slow()).await.is_err(), "nothing is followed");
        pace.took();
        let reads = async {
            for _ in 0..20 {
                sleep(SILENCE_MAX).await;
                pace.took();
            }
        };
        tokio::select! {
            () = pace.too_slow() => panic!("it was read all the time"),
            () = reads => {}
        }
        assert!(tokio::time::timeout(PATIENCE * 3, pace.too_slow()).await.is_ok());
    }
}
