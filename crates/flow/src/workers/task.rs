//! A task: what is to be done, until when it is worth doing, and who hears what came of it. It knows no queue.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_engine::Timestamp;
use tokio::sync::oneshot;

/// What is to be done, and until when.
pub struct Task<F> {
    future: F,
    until: Until,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Forever,
    At(Timestamp),
    Within(Duration),
}

impl<F> Task<F> {
    /// Something worth doing however late it is.
    pub const fn new(future: F) -> Self {
        Self { future, until: Until::Forever }
    }

    /// Not worth beginning later than so long after it is submitted: nobody waits for it any more.
    pub const fn within(mut self, time: Duration) -> Self {
        self.until = Until::Within(time);
        self
    }

    /// Not worth beginning at or after this moment of [`Workers::clock`](crate::Workers::clock).
    pub const fn until(mut self, deadline: Timestamp) -> Self {
        self.until = Until::At(deadline);
        self
    }

    /// What was to be done.
    pub fn into_inner(self) -> F {
        self.future
    }

    pub(super) fn deadline(&self, now: Timestamp) -> Option<Timestamp> {
        match self.until {
            Until::Forever => None,
            Until::At(deadline) => Some(deadline),
            Until::Within(time) => Some(now.after(time)),
        }
    }
}

impl<F> Task<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    pub(super) fn into_job(self) -> (Work<F>, Handle<F::Output>) {
        let (done, hears) = oneshot::channel();
        (Work { future: self.future, done }, Handle { hears })
    }
}

impl<F> fmt::Debug for Task<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("until", &self.until).finish_non_exhaustive()
    }
}

/// Why a task that was taken did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its deadline passed before a worker was free. It was not begun.
    Expired,
    /// It made way for a newer one, or was itself too new. It was not begun.
    Discarded,
    /// It panicked, with this message. The worker goes on with the next.
    Panicked(String),
    /// Its worker was dropped with it, or all workers were before it was begun.
    Stopped,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("its deadline passed before it was begun"),
            Self::Discarded => f.write_str("it was discarded before it was begun"),
            Self::Panicked(message) => write!(f, "it panicked: {message}"),
            Self::Stopped => f.write_str("its worker was stopped"),
        }
    }
}

impl Error for Lost {}

/// What comes of a task, as a future. Dropping it does not stop the task.
#[derive(Debug)]
pub struct Handle<R> {
    hears: oneshot::Receiver<Result<R, Lost>>,
}

impl<R> Future for Handle<R> {
    type Output = Result<R, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.hears).poll(cx).map(|heard| heard.unwrap_or(Err(Lost::Stopped)))
    }
}

/// A task whose type is forgotten, so that tasks of all types wait in one queue.
pub(crate) trait Job: Send {
    /// Does it; gives whether it panicked.
    fn run(self: Box<Self>) -> Pin<Box<dyn Future<Output = bool> + Send>>;
    /// Does not do it, for this reason.
    fn lose(self: Box<Self>, why: Lost);
}

pub(super) struct Work<F: Future> {
    future: F,
    done: oneshot::Sender<Result<F::Output, Lost>>,
}

impl<F> Job for Work<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn run(self: Box<Self>) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let Self { future, done } = *self;
        Box::pin(async move {
            let result = Contained { future: Some(Box::pin(future)) }.await;
            let panicked = result.is_err();
            // Whoever has dropped the handle does not want to hear it. The result's own drop may panic as well.
            let _ = caught(|| drop(done.send(result)));
            panicked
        })
    }

    fn lose(self: Box<Self>, why: Lost) {
        let Self { future, done } = *self;
        let _ = done.send(Err(why));
        // What a task does when it is dropped is its own code, and may panic as well as the rest of it.
        let _ = caught(|| drop(future));
    }
}

/// A future whose panics end here, those of its drop included.
struct Contained<F> {
    /// `None` once it has ended.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.future.as_mut().expect("a future is not polled after it is ready");
        let polled = match caught(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(message) => Err(Lost::Panicked(message)),
        };
        let future = self.future.take();
        let dropped = caught(|| drop(future)).map_err(Lost::Panicked);
        Poll::Ready(dropped.and(polled))
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        let future = self.future.take();
        let _ = caught(|| drop(future));
    }
}

/// Runs code of a task. What the task leaves broken by a panic is its own: nothing of ours is touched by it, and it is
/// never run again.
fn caught<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| message(&*payload))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
