//! The gate on a paused clock: waiting, being granted, timing out, leaving.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tidegate_tower::engine::*;
use tidegate_tower::{Admitted, Entry, Gate, Waiting};
use tokio::time::sleep;

fn gate(limit: u32, capacity: u32, wait_ms: u64) -> Gate {
    Gate::new(policy(limit, capacity, wait_ms))
}

fn policy(limit: u32, capacity: u32, wait_ms: u64) -> AdmissionPolicy {
    AdmissionPolicy::new(
        LimitPolicy::Fixed(NonZeroU32::new(limit).unwrap()),
        QueuePolicy::of(Duration::from_millis(wait_ms), Capacity::Fixed(capacity)),
    )
}

fn admitted(gate: &Gate) -> Admitted {
    match gate.enter(Arrival::new(RouteId(0))) {
        Entry::Admitted(admitted) => admitted,
        other => panic!("a slot is free: {other:?}"),
    }
}

fn waiting(gate: &Gate) -> Waiting {
    match gate.enter(Arrival::new(RouteId(0))) {
        Entry::Waiting(waiting) => waiting,
        other => panic!("there is room to wait: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_granted_the_slot_that_is_given_back() {
    let gate = gate(1, 8, 500);
    let first = admitted(&gate);
    let second = tokio::spawn(waiting(&gate));
    tokio::task::yield_now().await;
    first.complete(Outcome::Success);
    second.await.unwrap().unwrap().complete(Outcome::Success);
    assert_eq!(gate.snapshot().in_flight, 0);
}

/// A13. Refused by a timer, not when a slot happens to be free.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_on_time() {
    let gate = gate(1, 8, 500);
    let _held = admitted(&gate);
    let began = gate.clock().now();
    let rejection = waiting(&gate).await.unwrap_err();
    let took = gate.clock().now().since(began);
    assert_eq!(rejection.reason, Reason::QueueTimeout);
    assert!((500..=502).contains(&took.as_millis()), "{took:?}");
}

/// A5. Of ten thousand waiters all but the last leave; the last gets the next slot at once.
#[tokio::test(start_paused = true)]
async fn the_last_of_many_is_served_when_the_others_leave() {
    let gate = gate(1, 10_000, 60_000);
    let held = admitted(&gate);
    let mut waiters: Vec<Waiting> = (0..10_000).map(|_| waiting(&gate)).collect();
    let last = tokio::spawn(waiters.pop().unwrap());
    drop(waiters);
    assert_eq!(gate.snapshot().queue_depth, 1);
    held.complete(Outcome::Success);
    last.await.unwrap().unwrap().complete(Outcome::Success);
    assert_eq!(gate.snapshot().counts.cancelled, 9_999);
}

/// A6. Eight time out beside a limit of eight; afterwards the whole limit is there.
#[tokio::test(start_paused = true)]
async fn waiters_that_time_out_take_no_slot_with_them() {
    let gate = gate(8, 8, 100);
    let held: Vec<Admitted> = (0..8).map(|_| admitted(&gate)).collect();
    let late: Vec<_> = (0..8).map(|_| tokio::spawn(waiting(&gate))).collect();
    for waiter in late {
        assert_eq!(waiter.await.unwrap().unwrap_err().reason, Reason::QueueTimeout);
    }
    drop(held);
    let again: Vec<Admitted> = (0..8).map(|_| admitted(&gate)).collect();
    assert_eq!(gate.snapshot().in_flight as usize, again.len());
}

/// A slot that was granted to somebody who left before looking goes on to the next.
#[tokio::test(start_paused = true)]
async fn a_slot_granted_to_nobody_is_passed_on() {
    let gate = gate(1, 8, 500);
    let held = admitted(&gate);
    let gone = waiting(&gate);
    let next = waiting(&gate);
    held.complete(Outcome::Success);
    drop(gone);
    next.await.unwrap().complete(Outcome::Success);
    assert_eq!(gate.snapshot().in_flight, 0);
}

/// A7. Whoever panics with a slot gives it back, and the gate still works.
#[tokio::test(start_paused = true)]
async fn a_panic_gives_the_slot_back() {
    let gate = gate(1, 0, 500);
    let inside = gate.clone();
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _admitted = admitted(&inside);
        panic!("the handler failed");
    }));
    assert!(caught.is_err());
    admitted(&gate).complete(Outcome::Success);
}

/// Counts how often it is called, and panics if it is told to.
struct Call {
    times: AtomicUsize,
    panics: bool,
}

impl Call {
    fn new(panics: bool) -> Arc<Self> {
        Arc::new(Self { times: AtomicUsize::new(0), panics })
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.times.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "this waker is broken");
    }
}

/// All are granted a slot at once, and the first to be told panics: the others hear of it all the same, not only when
/// their timers fire, and the panic is of whoever made the input.
#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_leaves_nobody_asleep() {
    let gate = gate(1, 8, 60_000);
    let held = admitted(&gate);
    let calls = [true, false, true, false].map(Call::new);
    let mut waiters: Vec<Waiting> = calls.iter().map(|_| waiting(&gate)).collect();
    for (waiter, call) in waiters.iter_mut().zip(&calls) {
        let waker = Waker::from(call.clone());
        assert!(Pin::new(waiter).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let caught = catch_unwind(AssertUnwindSafe(|| gate.reconfigure(policy(8, 8, 60_000))));
    assert!(caught.is_err());
    assert_eq!(calls.map(|call| call.times.load(Ordering::SeqCst)), [1; 4]);
    for waiter in waiters {
        waiter.await.unwrap().complete(Outcome::Success);
    }
    held.complete(Outcome::Success);
    assert_eq!(gate.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn an_orphan_keeps_the_slot_until_it_has_ended() {
    let gate = gate(1, 8, 500);
    let orphan = admitted(&gate).abandon(Outcome::Overload);
    assert_eq!((gate.snapshot().in_flight, gate.snapshot().orphans), (1, 1));
    let next = tokio::spawn(waiting(&gate));
    sleep(Duration::from_millis(100)).await;
    assert!(!next.is_finished());
    orphan.ended();
    next.await.unwrap().unwrap().complete(Outcome::Success);
    assert_eq!((gate.snapshot().in_flight, gate.snapshot().orphans), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_limit_raised_wakes_those_who_wait() {
    let gate = gate(1, 8, 60_000);
    let _held = admitted(&gate);
    let next = tokio::spawn(waiting(&gate));
    tokio::task::yield_now().await;
    gate.reconfigure(policy(2, 8, 60_000));
    next.await.unwrap().unwrap().complete(Outcome::Success);
}

/// A14 (haproxy#3290): with an idle upstream nobody ever sits in the queue. Twenty rounds of two hundred, four threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_waits_beside_a_free_slot() {
    let gate = gate(4, 10_000, 10_000);
    for _ in 0..20 {
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let gate = gate.clone();
                tokio::spawn(async move {
                    let admitted = gate.admit(Arrival::new(RouteId(0))).await.unwrap();
                    tokio::task::yield_now().await;
                    admitted.complete(Outcome::Success);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
    let end = gate.snapshot();
    assert_eq!((end.counts.completed, end.in_flight, end.queue_depth), (4_000, 0, 0));
    assert!(end.max_in_flight <= 4);
}

/// An arrival lets time pass. When that ends somebody's wait, the newcomer may get the very index that is free again:
/// the one must be refused and the other wait, and not the other way round.
#[tokio::test(start_paused = true)]
async fn a_newcomer_is_not_taken_for_the_one_whose_wait_it_ended() {
    let gate = gate(1, 8, 500);
    let held = admitted(&gate);
    let early = waiting(&gate);
    tokio::time::advance(Duration::from_millis(500)).await;
    let late = tokio::spawn(waiting(&gate));
    assert_eq!(early.await.unwrap_err().reason, Reason::QueueTimeout);
    held.complete(Outcome::Success);
    late.await.unwrap().unwrap().complete(Outcome::Success);
}

/// Arrivals, ends of waits and completions all at once, on real threads and a real clock: every request ends once, and
/// afterwards nothing is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_arrive_while_waits_end() {
    let gate = gate(2, 64, 2);
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    if let Ok(admitted) = gate.admit(Arrival::new(RouteId(0))).await {
                        sleep(Duration::from_millis(1)).await;
                        admitted.complete(Outcome::Success);
                    }
                }
            })
        })
        .collect();
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("nobody waits for ever");
    let end = gate.snapshot();
    assert_eq!((end.counts.arrived, end.in_flight, end.queue_depth), (6_400, 0, 0));
    assert_eq!(end.counts.completed + end.counts.rejected_total(), 6_400);
}
