//! A12. Every interleaving of a few threads at one publisher and at one crew of workers, explored by loom:
//! `RUSTFLAGS="--cfg tidegate_loom" cargo test -p tidegate-flow --release --test loom`.
#![cfg(tidegate_loom)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;
use tidegate_flow::*;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Two producers and a consumer that asks for one at a time, with no buffer at all: everything is handed over.
#[test]
fn no_wake_up_is_lost_between_producers_and_consumer() {
    explore(|| {
        let publisher = Publisher::new(Policy::new(0));
        let mut subscription = publisher.subscribe();
        let threads: Vec<_> = (0..2)
            .map(|item| {
                let publisher = publisher.clone();
                thread::spawn(move || block_on(publisher.submit(item)).unwrap())
            })
            .collect();
        let mut got: Vec<_> = (0..2).map(|_| block_on(subscription.pull()).unwrap().unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let counts = publisher.snapshot().counts;
        assert_eq!((counts.submitted, counts.delivered), (2, 2));
    });
}

/// The first in line leaves just when room comes free: either its item is taken, or the second one's is, and nobody waits
/// for ever.
#[test]
fn a_producer_that_leaves_passes_its_place_on() {
    explore(|| {
        let publisher = Publisher::new(Policy::new(0));
        let mut subscription = publisher.subscribe();
        let leaver = publisher.clone();
        let leaves = thread::spawn(move || {
            let mut submit = Box::pin(leaver.submit(1));
            let _ = submit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        let stayer = publisher.clone();
        let stays = thread::spawn(move || block_on(stayer.submit(2)).unwrap());
        // One or both: what is got is what was submitted.
        let mut got = vec![block_on(subscription.pull()).unwrap().unwrap()];
        if got == [1] {
            got.push(block_on(subscription.pull()).unwrap().unwrap());
        }
        assert_eq!(got.last(), Some(&2));
        leaves.join().unwrap();
        stays.join().unwrap();
        assert_eq!(publisher.snapshot().producers_waiting, 0);
    });
}

/// The consumer cancels while a producer waits: the producer gets its item back.
#[test]
fn cancelling_ends_the_wait_of_a_producer() {
    explore(|| {
        let publisher = Publisher::new(Policy::new(0));
        let subscription = publisher.subscribe();
        let submits = {
            let publisher = publisher.clone();
            thread::spawn(move || block_on(publisher.submit(7)).unwrap_err().item)
        };
        subscription.cancel();
        assert_eq!(submits.join().unwrap(), 7);
        assert_eq!(publisher.snapshot().producers_waiting, 0);
    });
}

/// The end comes while the consumer waits, or before, and is told once.
#[test]
fn the_end_is_told_once() {
    explore(|| {
        let publisher: Publisher<u32> = Publisher::new(Policy::new(1));
        let mut subscription = publisher.subscribe();
        let other = publisher.clone();
        let completes = thread::spawn(move || other.complete());
        let fails = thread::spawn(move || publisher.fail("broken"));
        let end = block_on(subscription.pull());
        assert!(block_on(subscription.pull()).is_none());
        let (completed, failed) = (completes.join().unwrap(), fails.join().unwrap());
        assert!(completed != failed, "one of them was the end");
        assert_eq!(failed, end.is_some());
    });
}

/// Demand that is asked for by another thread wakes the consumer.
#[test]
fn a_request_from_elsewhere_wakes_the_consumer() {
    explore(|| {
        let publisher = Publisher::new(Policy::new(1));
        let mut subscription = publisher.subscribe();
        publisher.try_submit(5).unwrap();
        let demand = subscription.demand();
        let asks = thread::spawn(move || demand.request(1));
        assert_eq!(block_on(subscription.next()).unwrap().unwrap(), 5);
        asks.join().unwrap();
    });
}

const ABORT: WorkersPolicy =
    WorkersPolicy { workers: std::num::NonZeroU32::MIN, queue: 1, when_full: WhenFull::Abort };

/// A task submitted while the worker goes to sleep is done, and the worker ends when the queue is closed.
#[test]
fn no_task_is_overlooked_by_a_worker_that_goes_to_sleep() {
    explore(|| {
        let (workers, mut crew) = Workers::new(ABORT);
        let worker = crew.pop().unwrap();
        let works = thread::spawn(move || block_on(worker.run()));
        let handle = workers.try_submit(Task::new(async { 3 })).unwrap();
        drop(workers);
        works.join().unwrap();
        assert_eq!(block_on(handle), Ok(3));
    });
}

/// A worker that is dropped when it has just been woken leaves the task to the other.
#[test]
fn a_worker_that_leaves_passes_its_wake_up_on() {
    explore(|| {
        let (workers, mut crew) = Workers::new(WorkersPolicy { workers: 2.try_into().unwrap(), ..ABORT });
        let (leaver, stayer) = (crew.pop().unwrap(), crew.pop().unwrap());
        let leaves = thread::spawn(move || {
            let mut run = pin!(leaver.run());
            let _ = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        let works = thread::spawn(move || block_on(stayer.run()));
        let handle = workers.try_submit(Task::new(async { 3 })).unwrap();
        drop(workers);
        leaves.join().unwrap();
        works.join().unwrap();
        assert_eq!(block_on(handle), Ok(3));
    });
}

/// Somebody waits for room while the worker takes the task that is in the way.
#[test]
fn whoever_waits_for_room_gets_it() {
    explore(|| {
        let timeout = std::time::Duration::MAX;
        let policy = WorkersPolicy { queue: 0, when_full: WhenFull::Block { timeout }, ..ABORT };
        let (workers, mut crew) = Workers::new(policy);
        let worker = crew.pop().unwrap();
        let _first = workers.try_submit(Task::new(async {})).unwrap();
        let works = thread::spawn(move || block_on(worker.run()));
        let second = block_on(workers.submit(Task::new(async { 4 }))).unwrap();
        drop(workers);
        works.join().unwrap();
        assert_eq!(block_on(second), Ok(4));
    });
}
