//! The queue of tasks, who works, who is idle and who waits for room: the state machine behind the workers' lock.
//!
//! It has no clock and wakes nobody; tasks that are done with are put aside ([`State::lost`]) and told why by whoever
//! holds the lock after releasing it.
//!
//! What never happens: a task in the queue and an idle worker who has not been woken for it; room and somebody who waits
//! for it; a task begun at or after its deadline.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_engine::Timestamp;

use super::WhenFull;
use super::task::{Job, Lost};
use crate::waiters::{Ticket, Waiters, Wakes};

/// How [`Workers`](crate::Workers) stand at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkersSnapshot {
    /// Who works or could.
    pub workers: u32,
    /// Tasks that run on a worker.
    pub running: u32,
    /// Tasks that wait for a worker.
    pub depth: u64,
    /// The most tasks that ever waited for a worker at once.
    pub depth_max: u64,
    /// Submissions that wait for room.
    pub submitters_waiting: u64,
    /// What has happened so far.
    pub counts: TaskCounts,
}

/// Counters since the workers were made.
///
/// Of the tasks that were taken: `taken + ran_by_caller = completed + panicked + stopped + expired_in_queue +
/// discarded_in_queue + depth + running`, with those included that run in their caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Tasks that came into the queue.
    pub taken: u64,
    /// Tasks that their submitter began itself.
    pub ran_by_caller: u64,
    /// Tasks that came to their end.
    pub completed: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks dropped while they ran, or with the last worker.
    pub stopped: u64,
    /// Tasks whose deadline passed before they were begun, on arrival and while waiting for room included.
    pub expired: u64,
    /// The part of `expired` that was in the queue.
    pub expired_in_queue: u64,
    /// Tasks discarded, old and new.
    pub discarded: u64,
    /// The part of `discarded` that was in the queue.
    pub discarded_in_queue: u64,
    /// Tasks given back because there was no room or nobody works.
    pub refused: u64,
    /// How long tasks that were begun had waited in the queue, summed up.
    pub waited: Duration,
    /// The longest that a task that was begun had waited.
    pub waited_max: Duration,
}

/// A task in the queue.
pub(super) struct Queued {
    pub(super) job: Box<dyn Job>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) since: Timestamp,
}

impl Queued {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// The answer to whoever comes with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// There is a place, which is taken now.
    Open,
    Full,
    Expired,
    Closed,
}

pub(super) struct State {
    queue: VecDeque<Queued>,
    queue_max: u32,
    /// No task in the queue has an earlier deadline.
    earliest: Timestamp,
    /// Places given out and not filled yet.
    promised: u32,
    running: u32,
    /// Workers there are.
    crew: u32,
    idle: VecDeque<(u32, Waker)>,
    pub(super) waiters: Waiters<(), bool>,
    pub(super) handles: usize,
    closed: bool,
    depth_max: usize,
    pub(super) counts: TaskCounts,
    pub(super) wakes: Wakes,
    pub(super) lost: Vec<(Box<dyn Job>, Lost)>,
}

impl State {
    pub(super) fn new(crew: u32, queue_max: u32) -> Self {
        Self {
            queue: VecDeque::new(),
            queue_max,
            earliest: Timestamp::MAX,
            promised: 0,
            running: 0,
            crew,
            idle: VecDeque::new(),
            waiters: Waiters::default(),
            handles: 1,
            closed: false,
            depth_max: 0,
            counts: TaskCounts::default(),
            wakes: Wakes::default(),
            lost: Vec::new(),
        }
    }

    /// Somebody comes with a task.
    pub(super) fn enter(&mut self, now: Timestamp, deadline: Option<Timestamp>, when_full: WhenFull) -> Way {
        if self.closed {
            self.counts.refused += 1;
            return Way::Closed;
        }
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.counts.expired += 1;
            return Way::Expired;
        }
        if !self.has_room() {
            // Nobody waits for those any more, so they are the first to make way.
            self.expire(now);
        }
        if !self.has_room()
            && when_full == WhenFull::DiscardOldest
            && let Some(oldest) = self.queue.pop_front()
        {
            self.counts.discarded += 1;
            self.counts.discarded_in_queue += 1;
            self.lost.push((oldest.job, Lost::Discarded));
        }
        if !self.has_room() || !self.waiters.is_empty() {
            return Way::Full;
        }
        self.promised += 1;
        Way::Open
    }

    /// Joins the line of those who wait for room.
    pub(super) fn wait(&mut self, cx: &Context<'_>) -> Ticket {
        let ticket = self.waiters.open((), cx);
        self.admit();
        ticket
    }

    /// A place is filled.
    pub(super) fn fill_place(&mut self, queued: Queued) {
        self.promised -= 1;
        self.counts.taken += 1;
        if self.crew == 0 {
            // The last worker has left since the place was given out.
            self.counts.stopped += 1;
            self.lost.push((queued.job, Lost::Stopped));
            return;
        }
        self.earliest = self.earliest.min(queued.deadline.unwrap_or(Timestamp::MAX));
        self.queue.push_back(queued);
        self.depth_max = self.depth_max.max(self.queue.len());
        self.wake_one();
    }

    /// A place is not filled after all.
    pub(super) fn give_back_place(&mut self) {
        self.promised -= 1;
        self.admit();
    }

    /// The next task for this worker, which runs from now on; `None` when there will be none.
    pub(super) fn next(
        &mut self,
        now: Timestamp,
        worker: u32,
        cx: &Context<'_>,
    ) -> Poll<Option<Box<dyn Job>>> {
        self.forget_idle(worker);
        while let Some(queued) = self.queue.pop_front() {
            if queued.has_expired(now) {
                self.lose_expired(queued);
                continue;
            }
            let waited = now.since(queued.since);
            self.counts.waited = self.counts.waited.saturating_add(waited);
            self.counts.waited_max = self.counts.waited_max.max(waited);
            self.running += 1;
            self.admit();
            return Poll::Ready(Some(queued.job));
        }
        self.admit();
        if self.closed && self.promised == 0 {
            return Poll::Ready(None);
        }
        self.idle.push_back((worker, cx.waker().clone()));
        Poll::Pending
    }
}

impl State {
    /// A task has come to its end, or was dropped before.
    pub(super) fn end_turn(&mut self, on_worker: bool, panicked: Option<bool>) {
        match panicked {
            Some(false) => self.counts.completed += 1,
            Some(true) => self.counts.panicked += 1,
            None => self.counts.stopped += 1,
        }
        if on_worker {
            self.running -= 1;
            self.admit();
        }
    }

    /// Takes nothing new.
    pub(super) fn close(&mut self) {
        self.closed = true;
        while let Some((waker, ())) = self.waiters.end_front(|()| (false, ())) {
            self.wakes.push(waker);
        }
        self.dismiss();
    }

    pub(super) fn remove_handle(&mut self) {
        self.handles -= 1;
        if self.handles == 0 {
            self.close();
        }
    }

    /// A worker is not there any more.
    pub(super) fn remove_worker(&mut self, worker: u32) {
        self.crew -= 1;
        self.forget_idle(worker);
        if self.crew == 0 {
            self.close();
            let stopped = std::mem::take(&mut self.queue);
            self.counts.stopped += stopped.len() as u64;
            self.lost.extend(stopped.into_iter().map(|queued| (queued.job, Lost::Stopped)));
        } else if !self.queue.is_empty() {
            // It may have been woken for a task, which is another's now.
            self.wake_one();
        }
    }

    pub(super) fn snapshot(&self) -> WorkersSnapshot {
        WorkersSnapshot {
            workers: self.crew,
            running: self.running,
            depth: self.queue.len() as u64,
            depth_max: self.depth_max as u64,
            submitters_waiting: self.waiters.len() as u64,
            counts: self.counts,
        }
    }

    /// What must hold after every input; called after each in debug builds.
    pub(super) fn check_invariants(&self) {
        assert!(self.running <= self.crew, "more tasks run than there are workers");
        assert!(self.waiters.is_empty() || !self.has_room(), "room, and somebody who waits for it");
        assert!(!self.closed || self.waiters.is_empty(), "somebody waits for what is closed");
        let earliest = self.queue.iter().filter_map(|queued| queued.deadline).min();
        assert!(earliest.is_none_or(|earliest| self.earliest <= earliest), "a deadline was overlooked");
    }

    /// Whoever is idle counts as a place: with four workers and a queue of eight, twelve tasks have room at the start,
    /// whether or not the workers have looked yet.
    fn has_room(&self) -> bool {
        let inside = self.queue.len() as u64 + u64::from(self.promised) + u64::from(self.running);
        inside < u64::from(self.crew) + u64::from(self.queue_max)
    }

    fn admit(&mut self) {
        while self.has_room()
            && let Some((waker, ())) = self.waiters.end_front(|()| (true, ()))
        {
            self.promised += 1;
            self.wakes.push(waker);
        }
        self.dismiss();
    }

    /// Lets idle workers go home when nothing will come any more.
    fn dismiss(&mut self) {
        if self.closed && self.promised == 0 {
            self.idle.drain(..).for_each(|(_, waker)| self.wakes.push(waker));
        }
    }

    fn forget_idle(&mut self, worker: u32) {
        let place = self.idle.iter().position(|(idle, _)| *idle == worker);
        if let Some((_, waker)) = place.and_then(|place| self.idle.remove(place)) {
            self.wakes.retire(waker);
        }
    }

    fn wake_one(&mut self) {
        if let Some((_, waker)) = self.idle.pop_front() {
            self.wakes.push(waker);
        }
    }

    /// Takes those out of the queue that nobody waits for any more. It looks through the queue only when one of them
    /// must have expired, so a full queue of lively tasks costs nothing.
    fn expire(&mut self, now: Timestamp) {
        if now < self.earliest {
            return;
        }
        let all = std::mem::take(&mut self.queue);
        for queued in all {
            if queued.has_expired(now) {
                self.lose_expired(queued);
            } else {
                self.queue.push_back(queued);
            }
        }
        self.earliest =
            self.queue.iter().filter_map(|queued| queued.deadline).min().unwrap_or(Timestamp::MAX);
        self.admit();
    }

    fn lose_expired(&mut self, queued: Queued) {
        self.counts.expired += 1;
        self.counts.expired_in_queue += 1;
        self.lost.push((queued.job, Lost::Expired));
    }
}
