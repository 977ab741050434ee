//! [`Workers`]: a bounded executor that says what becomes of the excess.
//!
//! A shell: the queue and all decisions are in `workers/state.rs`, what a task is in `workers/task.rs`. It spawns
//! nothing. Each [`Worker`] is a loop to be run wherever the user likes, so no runtime is chosen here, and a worker that
//! is dropped takes its work with it and nothing else.

use std::fmt;
use std::future::{Future, poll_fn};
use std::num::NonZeroU32;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_engine::Timestamp;
use tokio::task::coop::poll_proceed;

use crate::clock::Clock;
use crate::sync::{Arc, Mutex, lock};
use crate::timer::Timer;
use crate::waiters::{Closed, Ticket};

mod task;
use task::Job;
pub use task::{Handle, Lost, Task};

mod state;
use state::{Queued, State, Way};
pub use state::{TaskCounts, WorkersSnapshot};

/// What becomes of a task when all workers are busy and the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused and given back, at once. What one wants at the edge of a service.
    Abort,
    /// Whoever submits it runs it, and cannot submit more meanwhile: backpressure without a word. It runs in the
    /// submitting task, so not where that has something better to do.
    CallerRuns,
    /// The one that has waited longest makes way; where none waits, as [`Abort`](Self::Abort). For telemetry, where the
    /// newest matters most; not for what somebody waits for.
    DiscardOldest,
    /// It is dropped, and its handle says so.
    DiscardNewest,
    /// It waits for room, first come, first served; refused and given back after `timeout`, or at its deadline when that
    /// is sooner. Needs a runtime of tokio's that has timers.
    Block {
        /// How long.
        timeout: Duration,
    },
}

/// How many work, how many tasks may wait, and what becomes of the excess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkersPolicy {
    /// How many tasks run at once.
    pub workers: NonZeroU32,
    /// How many tasks may wait for a worker. To keep the wait within a budget: at most workers × budget / time for each.
    pub queue: u32,
    /// What becomes of a task beyond that.
    pub when_full: WhenFull,
}

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// All workers are busy and the queue is full.
    Full,
    /// There was no room within the time of [`WhenFull::Block`].
    TimedOut,
    /// Its deadline has passed already, or passed while it waited for room.
    Expired,
    /// There are no workers any more, or [`Workers::close`] was called.
    Closed,
}

/// A task that was not taken, given back.
pub struct RefusedTask<F> {
    /// Why.
    pub why: NotTaken,
    /// The task; it has not begun.
    pub task: Task<F>,
}

/// Where tasks are submitted. Cloning gives another handle; when the last is dropped, workers do what is queued and end.
pub struct Workers {
    shared: Arc<Shared>,
}

/// One that works: run it, or spawn what [`run`](Self::run) gives.
#[must_use = "a worker that is not run does nothing, and its place in the policy stays empty"]
pub struct Worker {
    shared: Arc<Shared>,
    number: u32,
}

struct Shared {
    clock: Clock,
    when_full: WhenFull,
    state: Mutex<State>,
}

impl Workers {
    /// A queue and those who work it off.
    pub fn new(policy: WorkersPolicy) -> (Self, Vec<Worker>) {
        let state = Mutex::new(State::new(policy.workers.get(), policy.queue));
        let shared = Arc::new(Shared { clock: Clock::start(), when_full: policy.when_full, state });
        let crew = (0..policy.workers.get()).map(|number| Worker { shared: Arc::clone(&shared), number });
        (Self { shared: Arc::clone(&shared) }, crew.collect())
    }

    /// Submits a task and does with it what the policy says when there is no room. Only [`WhenFull::Block`] waits, and
    /// only [`WhenFull::CallerRuns`] works here. The handle gives what comes of it; dropping the handle changes nothing.
    ///
    /// Cancel safe: dropped while it waits for room, it gives up its place in line. The task is dropped with it, not run.
    ///
    /// # Errors
    ///
    /// The task comes back when it was not taken.
    pub async fn submit<F>(&self, task: Task<F>) -> Result<Handle<F::Output>, RefusedTask<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let deadline = task.deadline(self.shared.clock.now());
        let way = self.shared.input(|state, now| state.enter(now, deadline, self.shared.when_full));
        match (way, self.shared.when_full) {
            (Way::Open, _) => Ok(self.fill(Place::new(&self.shared), task, deadline)),
            (Way::Expired, _) => Err(RefusedTask { why: NotTaken::Expired, task }),
            (Way::Closed, _) => Err(RefusedTask { why: NotTaken::Closed, task }),
            (Way::Full, WhenFull::CallerRuns) => Ok(self.run_here(task).await),
            (Way::Full, WhenFull::DiscardNewest) => Ok(self.discard(task)),
            (Way::Full, WhenFull::Block { timeout }) => {
                let until = self.shared.clock.now().after(timeout);
                match self.place(until.min(deadline.unwrap_or(Timestamp::MAX))).await {
                    Ok(place) => Ok(self.fill(place, task, deadline)),
                    Err(NotTaken::TimedOut) if deadline.is_some_and(|deadline| deadline <= until) => {
                        self.shared.input(|state, _| state.counts.expired += 1);
                        Err(RefusedTask { why: NotTaken::Expired, task })
                    }
                    Err(why) => Err(self.refuse(why, task)),
                }
            }
            (Way::Full, WhenFull::Abort | WhenFull::DiscardOldest) => Err(self.refuse(NotTaken::Full, task)),
        }
    }

    /// Submits a task if there is room for it now, whatever the policy says of the excess.
    ///
    /// # Errors
    ///
    /// The task comes back when it was not taken.
    pub fn try_submit<F>(&self, task: Task<F>) -> Result<Handle<F::Output>, RefusedTask<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let deadline = task.deadline(self.shared.clock.now());
        match self.shared.input(|state, now| state.enter(now, deadline, WhenFull::Abort)) {
            Way::Open => Ok(self.fill(Place::new(&self.shared), task, deadline)),
            Way::Expired => Err(RefusedTask { why: NotTaken::Expired, task }),
            Way::Closed => Err(RefusedTask { why: NotTaken::Closed, task }),
            Way::Full => Err(self.refuse(NotTaken::Full, task)),
        }
    }

    /// Takes nothing new. Workers do what is queued and end; those who wait for room are refused.
    pub fn close(&self) {
        self.shared.input(|state, _| state.close());
    }

    /// The clock that deadlines of tasks are compared with.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// How it stands.
    pub fn snapshot(&self) -> WorkersSnapshot {
        lock(&self.shared.state).snapshot()
    }

    fn fill<F>(&self, place: Place<'_>, task: Task<F>, deadline: Option<Timestamp>) -> Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (job, handle) = task.into_job();
        place.fill(Box::new(job), deadline);
        handle
    }

    async fn run_here<F>(&self, task: Task<F>) -> Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (job, handle) = task.into_job();
        self.shared.input(|state, _| state.counts.ran_by_caller += 1);
        let mut turn = Turn { shared: &self.shared, on_worker: false, panicked: None };
        turn.panicked = Some(Box::new(job).run().await);
        handle
    }

    fn discard<F>(&self, task: Task<F>) -> Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (job, handle) = task.into_job();
        self.shared.input(|state, _| state.counts.discarded += 1);
        Box::new(job).lose(Lost::Discarded);
        handle
    }

    fn refuse<F>(&self, why: NotTaken, task: Task<F>) -> RefusedTask<F> {
        self.shared.input(|state, _| state.counts.refused += 1);
        RefusedTask { why, task }
    }

    /// Waits for room.
    async fn place(&self, until: Timestamp) -> Result<Place<'_>, NotTaken> {
        let mut wait = Wait { shared: &self.shared, ticket: None, timer: Timer::default() };
        poll_fn(|cx| wait.poll(until, cx)).await
    }
}

impl Worker {
    /// Works until the queue is closed and empty. Panics of tasks end here. Dropped while a task runs, it drops the task.
    pub async fn run(self) {
        while let Some(job) = poll_fn(|cx| self.poll_job(cx)).await {
            let mut turn = Turn { shared: &self.shared, on_worker: true, panicked: None };
            turn.panicked = Some(job.run().await);
        }
    }

    fn poll_job(&self, cx: &mut Context<'_>) -> Poll<Option<Box<dyn Job>>> {
        // A worker that always finds a task would keep its thread for itself.
        let turn = ready!(poll_proceed(cx));
        let job = self.shared.input(|state, now| state.next(now, self.number, cx));
        if job.is_ready() {
            turn.made_progress();
        }
        job
    }
}

/// A task that runs. It ends with what came of it, or is dropped half way; each is counted, and the worker is free again.
struct Turn<'a> {
    shared: &'a Shared,
    /// Or in the task that submitted it.
    on_worker: bool,
    /// `None` until it has come to an end.
    panicked: Option<bool>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.shared.input(|state, _| state.end_turn(self.on_worker, self.panicked));
    }
}

/// Room for one task. It is filled, or given back by being dropped.
struct Place<'a> {
    /// `None` once it is filled.
    shared: Option<&'a Shared>,
}

impl<'a> Place<'a> {
    const fn new(shared: &'a Shared) -> Self {
        Self { shared: Some(shared) }
    }

    fn fill(mut self, job: Box<dyn Job>, deadline: Option<Timestamp>) {
        if let Some(shared) = self.shared.take() {
            shared.input(|state, now| state.fill_place(Queued { job, deadline, since: now }));
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.input(|state, _| state.give_back_place());
        }
    }
}

/// A wait for room.
struct Wait<'a> {
    shared: &'a Shared,
    ticket: Option<Ticket>,
    timer: Timer,
}

impl<'a> Wait<'a> {
    fn poll(&mut self, until: Timestamp, cx: &mut Context<'_>) -> Poll<Result<Place<'a>, NotTaken>> {
        let ended = self.shared.input(|state, _| match self.ticket {
            Some(ticket) => state.waiters.poll(ticket, cx, &mut state.wakes),
            None => {
                self.ticket = Some(state.wait(cx));
                None
            }
        });
        match ended {
            Some(granted) => {
                self.ticket = None;
                let place = granted.then(|| Place::new(self.shared));
                Poll::Ready(place.ok_or(NotTaken::Closed))
            }
            None if self.timer.is_up(self.shared.clock, until, cx) => Poll::Ready(self.give_up()),
            None => Poll::Pending,
        }
    }

    /// Leaves the line; with the place, if one was granted meanwhile.
    fn give_up(&mut self) -> Result<Place<'a>, NotTaken> {
        let Some(ticket) = self.ticket.take() else { return Err(NotTaken::TimedOut) };
        match self.shared.input(|state, _| state.waiters.close(ticket, &mut state.wakes)) {
            Closed::Ended(true) => Ok(Place::new(self.shared)),
            Closed::Ended(false) => Err(NotTaken::Closed),
            Closed::Waiting(()) | Closed::Gone => Err(NotTaken::TimedOut),
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        // A place that nobody is there to use goes to the next in line.
        drop(self.give_up());
    }
}

impl Shared {
    /// One input: then, without the lock, wakers are called and the tasks that are done with hear why.
    fn input<R>(&self, act: impl FnOnce(&mut State, Timestamp) -> R) -> R {
        let (value, wakes, lost);
        {
            let mut state = lock(&self.state);
            value = act(&mut state, self.clock.now());
            if cfg!(any(debug_assertions, tidegate_loom)) {
                state.check_invariants();
            }
            wakes = std::mem::take(&mut state.wakes);
            lost = std::mem::take(&mut state.lost);
        }
        wakes.wake();
        for (job, why) in lost {
            job.lose(why);
        }
        value
    }
}

impl Clone for Workers {
    fn clone(&self) -> Self {
        self.shared.input(|state, _| state.handles += 1);
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.input(|state, _| state.remove_handle());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.input(|state, _| state.remove_worker(self.number));
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workers").field(&self.snapshot()).finish()
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for RefusedTask<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedTask").field("why", &self.why).finish_non_exhaustive()
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all workers are busy and the queue is full",
            Self::TimedOut => "there was no room in time",
            Self::Expired => "its deadline has passed",
            Self::Closed => "there are no workers any more",
        })
    }
}

impl<F> fmt::Display for RefusedTask<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not taken: {}", self.why)
    }
}

impl<F> std::error::Error for RefusedTask<F> {}
