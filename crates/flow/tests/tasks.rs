//! Workers under random inputs: whoever comes, leaves, works, stops or panics, every task that was taken ends once, its
//! handle hears of it, and nobody sleeps beside a task or beside room. The workers check their own invariants after every
//! input in debug builds; this supplies the inputs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tidegate_flow::*;

type Boxed<R> = Pin<Box<dyn Future<Output = R> + Send>>;
type Submitted = Result<Handle<u32>, RefusedTask<Boxed<u32>>>;

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A task comes that is done after so many polls, or panics then.
    Submit {
        polls: u8,
        panics: bool,
        expired: bool,
    },
    Try {
        polls: u8,
    },
    /// Whoever waits for room, or runs its task itself, leaves.
    Leave(prop::sample::Index),
    /// Somebody who was woken is polled.
    Submitter(prop::sample::Index),
    Worker(prop::sample::Index),
    Stop(prop::sample::Index),
    Close,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let who = any::<prop::sample::Index>;
    let polls = || 0..4_u8;
    prop::collection::vec(
        prop_oneof![
            20 => (polls(), prop::bool::weighted(0.2), prop::bool::weighted(0.1))
                .prop_map(|(polls, panics, expired)| Operation::Submit { polls, panics, expired }),
            8 => polls().prop_map(|polls| Operation::Try { polls }),
            6 => who().prop_map(Operation::Leave),
            12 => who().prop_map(Operation::Submitter),
            20 => who().prop_map(Operation::Worker),
            1 => who().prop_map(Operation::Stop),
            1 => Just(Operation::Close),
        ],
        1..100,
    )
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A future and whether it was woken.
struct Sleeper<R> {
    future: Boxed<R>,
    bell: Arc<Bell>,
}

impl<R> Sleeper<R> {
    fn new(future: Boxed<R>) -> Self {
        Self { future, bell: Arc::new(Bell(AtomicBool::new(true))) }
    }

    fn was_woken(&self) -> bool {
        self.bell.0.load(Ordering::SeqCst)
    }

    fn poll(&mut self) -> Poll<R> {
        self.bell.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.bell));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

fn task(mut polls: u8, panics: bool) -> Boxed<u32> {
    Box::pin(poll_fn(move |cx| {
        if polls > 0 {
            polls -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if panics {
            // Unlike `panic!`, without a message on the terminal.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        Poll::Ready(1)
    }))
}

struct World {
    workers: Workers,
    crew: Vec<Sleeper<()>>,
    submitters: Vec<Sleeper<Submitted>>,
    handles: Vec<Handle<u32>>,
}

impl World {
    fn new(when_full: WhenFull) -> Self {
        let policy = WorkersPolicy { workers: 2.try_into().unwrap(), queue: 2, when_full };
        let (workers, crew) = Workers::new(policy);
        let crew = crew.into_iter().map(|worker| Sleeper::new(Box::pin(worker.run()))).collect();
        Self { workers, crew, submitters: Vec::new(), handles: Vec::new() }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Submit { polls, panics, expired } => {
                let mut task = Task::new(task(polls, panics));
                if expired {
                    task = task.until(Timestamp::ZERO);
                }
                let workers = self.workers.clone();
                self.submitters.push(Sleeper::new(Box::pin(async move { workers.submit(task).await })));
                self.poll_submitter(self.submitters.len() - 1);
            }
            Operation::Try { polls } => {
                self.handles.extend(self.workers.try_submit(Task::new(task(polls, false))).ok());
            }
            Operation::Leave(who) if !self.submitters.is_empty() => {
                drop(self.submitters.swap_remove(who.index(self.submitters.len())));
            }
            Operation::Submitter(who) if !self.submitters.is_empty() => {
                self.poll_submitter(who.index(self.submitters.len()));
            }
            Operation::Worker(who) if !self.crew.is_empty() => self.poll_worker(who.index(self.crew.len())),
            Operation::Stop(who) if !self.crew.is_empty() => {
                drop(self.crew.swap_remove(who.index(self.crew.len())));
            }
            Operation::Close => self.workers.close(),
            _ => {}
        }
    }

    fn poll_submitter(&mut self, index: usize) {
        if let Poll::Ready(submitted) = self.submitters[index].poll() {
            drop(self.submitters.swap_remove(index));
            self.handles.extend(submitted.ok());
        }
    }

    fn poll_worker(&mut self, index: usize) {
        if self.crew[index].poll().is_ready() {
            drop(self.crew.swap_remove(index));
        }
    }

    /// Polls whoever was woken, until nobody is.
    fn settle(&mut self) {
        loop {
            if let Some(index) = self.crew.iter().position(Sleeper::was_woken) {
                self.poll_worker(index);
            } else if let Some(index) = self.submitters.iter().position(Sleeper::was_woken) {
                self.poll_submitter(index);
            } else {
                return;
            }
        }
    }

    fn check(&self) {
        let WorkersSnapshot { depth, running, counts, .. } = self.workers.snapshot();
        let ended = counts.completed + counts.panicked + counts.stopped;
        let lost = counts.expired_in_queue + counts.discarded_in_queue;
        let inside = depth + u64::from(running);
        let here = counts.taken + counts.ran_by_caller - ended - lost - inside;
        assert!(here <= self.submitters.len() as u64, "{here} tasks are nowhere: {counts:?}");
        assert!(depth <= 4, "two in the queue, and two for workers that have not looked yet");
    }
}

fn when_full() -> impl Strategy<Value = WhenFull> {
    prop_oneof![
        1 => Just(WhenFull::Abort),
        1 => Just(WhenFull::CallerRuns),
        1 => Just(WhenFull::DiscardOldest),
        1 => Just(WhenFull::DiscardNewest),
        2 => Just(WhenFull::Block { timeout: Duration::from_secs(3600) }),
    ]
}

proptest! {
    #[test]
    fn every_task_ends_once_and_nobody_sleeps_beside_it(operations in operations(), when_full in when_full()) {
        // Those who wait for room have a timer.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _guard = runtime.enter();
        let mut world = World::new(when_full);
        for operation in operations {
            world.apply(operation);
            world.check();
        }
        // Whoever was woken goes on. Then all that was taken has ended, and nobody waits: without a wake-up that is lost
        // there is nothing left.
        world.settle();
        let end = world.workers.snapshot();
        prop_assert_eq!((end.depth, end.running, end.submitters_waiting), (0, 0, 0));
        prop_assert!(world.submitters.is_empty());
        world.check();
        world.workers.close();
        world.settle();
        prop_assert!(world.crew.is_empty(), "a worker did not go home");
        for mut handle in world.handles {
            let heard = Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop()));
            prop_assert!(heard.is_ready(), "a task ended and nobody heard of it");
        }
    }
}
