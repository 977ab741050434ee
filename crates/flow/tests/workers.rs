//! The bounded executor on a paused clock: what becomes of the excess, deadlines, panics, and the end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use tidegate_flow::*;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance, sleep};

const WORK: Duration = Duration::from_millis(200);

/// Workers that run.
fn start(workers: u32, queue: u32, when_full: WhenFull) -> (Workers, Vec<JoinHandle<()>>) {
    let workers = NonZeroU32::new(workers).unwrap();
    let (workers, crew) = Workers::new(WorkersPolicy { workers, queue, when_full });
    (workers, crew.into_iter().map(|worker| tokio::spawn(worker.run())).collect())
}

/// Takes its time, and gives its number.
fn work(number: u32) -> Task<impl Future<Output = u32> + Send + 'static> {
    Task::new(async move {
        sleep(WORK).await;
        number
    })
}

#[expect(clippy::disallowed_methods, reason = "virtual time")]
fn now() -> Instant {
    Instant::now()
}

/// What was taken is what has ended, waits or runs.
#[track_caller]
fn check_sums(workers: &Workers) {
    let WorkersSnapshot { depth, running, counts, .. } = workers.snapshot();
    let ended = counts.completed + counts.panicked + counts.stopped;
    let lost = counts.expired_in_queue + counts.discarded_in_queue;
    assert_eq!(counts.taken + counts.ran_by_caller, ended + lost + depth + u64::from(running), "{counts:?}");
}

/// Four workers, a queue of eight, fifty tasks of 200 ms at once: twelve are done, in three rounds, and the others were
/// given back before any of them was.
#[tokio::test(start_paused = true)]
async fn abort_gives_the_excess_back_at_once() {
    let (workers, _crew) = start(4, 8, WhenFull::Abort);
    let began = now();
    let mut handles = Vec::new();
    let mut refused = Vec::new();
    for number in 0..50 {
        match workers.submit(work(number)).await {
            Ok(handle) => handles.push(handle),
            Err(back) => {
                assert_eq!(back.why, NotTaken::Full);
                refused.push(number);
            }
        }
    }
    assert_eq!((began.elapsed(), refused), (Duration::ZERO, (12..50).collect::<Vec<_>>()));
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.await, Ok(number as u32));
        assert_eq!(began.elapsed(), WORK * (number as u32 / 4 + 1));
    }
    let end = workers.snapshot();
    assert_eq!((end.counts.completed, end.counts.refused, end.running, end.depth), (12, 38, 0, 0));
    assert_eq!(end.counts.waited_max, WORK * 2);
    check_sums(&workers);
}

/// Whoever submits more than there is room for works itself, and submits nothing meanwhile.
#[tokio::test(start_paused = true)]
async fn caller_runs_holds_the_caller() {
    let (workers, _crew) = start(1, 1, WhenFull::CallerRuns);
    let began = now();
    for number in 0..6 {
        // Each takes a little longer than the one before, so that no two end at the same moment.
        let task = Task::new(async move { sleep(WORK + Duration::from_millis(number)).await });
        drop(workers.submit(task).await.unwrap());
    }
    // Two go in, the third is run here, and meanwhile the worker has begun its second; so on.
    let counts = workers.snapshot().counts;
    assert_eq!((counts.ran_by_caller, counts.refused, counts.discarded), (2, 0, 0));
    assert_eq!(began.elapsed(), WORK * 2 + Duration::from_millis(2 + 4));
    check_sums(&workers);
    // Its panic is contained here as well.
    let (workers, _crew) = start(1, 0, WhenFull::CallerRuns);
    let _busy = workers.submit(work(0)).await.unwrap();
    let lost = workers.submit(Task::new(async { panic!("in the caller") })).await.unwrap().await;
    assert_eq!(lost, Err(Lost::Panicked("in the caller".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn discard_oldest_makes_way_for_the_newest() {
    let (workers, _crew) = start(1, 2, WhenFull::DiscardOldest);
    let mut handles = Vec::new();
    for number in 0..10 {
        handles.push(workers.submit(work(number)).await.unwrap());
        yield_now().await;
    }
    let mut done = Vec::new();
    for handle in handles {
        match handle.await {
            Ok(number) => done.push(number),
            Err(lost) => assert_eq!(lost, Lost::Discarded),
        }
    }
    // The first had begun, and who has begun is not discarded.
    assert_eq!(done, [0, 8, 9]);
    assert_eq!(workers.snapshot().counts.discarded, 7);
    check_sums(&workers);
}

#[tokio::test(start_paused = true)]
async fn discard_newest_keeps_those_who_wait() {
    let (workers, _crew) = start(1, 2, WhenFull::DiscardNewest);
    let mut done = Vec::new();
    let mut handles = Vec::new();
    for number in 0..10 {
        handles.push(workers.submit(work(number)).await.unwrap());
    }
    for handle in handles {
        done.extend(handle.await.ok());
    }
    assert_eq!((done, workers.snapshot().counts.discarded), (vec![0, 1, 2], 7));
    check_sums(&workers);
}

/// Whoever waits gets room in the order in which he came, or his task back when his time is up.
#[tokio::test(start_paused = true)]
async fn block_waits_for_room_in_order_and_not_longer_than_it_may() {
    let (workers, _crew) = start(1, 0, WhenFull::Block { timeout: WORK * 2 });
    let began = now();
    let submits: Vec<_> = (0..5)
        .map(|number| {
            let workers = workers.clone();
            tokio::spawn(async move {
                let taken = workers.submit(work(number)).await;
                (began.elapsed(), taken.map_err(|back| back.why).map(|_| number))
            })
        })
        .collect();
    let mut ends = Vec::new();
    for submit in submits {
        ends.push(submit.await.unwrap());
    }
    // The place that comes free just when the time is up may go to either; here the timers were set first.
    assert_eq!(ends[..2], [(Duration::ZERO, Ok(0)), (WORK, Ok(1))]);
    assert_eq!(ends[3..], [(WORK * 2, Err(NotTaken::TimedOut)), (WORK * 2, Err(NotTaken::TimedOut))]);
    assert_eq!(ends[2].0, WORK * 2);
    sleep(WORK * 2).await;
    assert_eq!(workers.snapshot().submitters_waiting, 0);
    check_sums(&workers);
}

/// A5, A6. Of a thousand that wait for room all but the last leave, one of them with room already granted: the last gets
/// it.
#[tokio::test(start_paused = true)]
async fn submitters_that_leave_pass_their_places_on() {
    let (workers, crew) = start(1, 0, WhenFull::Block { timeout: Duration::from_secs(3600) });
    let first = workers.submit(work(0)).await.unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut waiting: Vec<_> = (0..1_000).map(|number| Box::pin(workers.submit(work(number)))).collect();
    for submit in &mut waiting {
        assert!(submit.as_mut().poll(&mut cx).is_pending());
    }
    first.await.unwrap();
    // The first of them has been granted room by now, and does not know yet.
    assert_eq!(workers.snapshot().submitters_waiting, 999);
    let last = waiting.pop().unwrap();
    drop(waiting);
    let handle = last.await.unwrap();
    assert_eq!(handle.await, Ok(999));
    check_sums(&workers);
    drop(workers);
    for worker in crew {
        worker.await.unwrap();
    }
}

/// The queue holds nobody whose time has passed: not begun by a worker, and not in the way of somebody who comes.
#[tokio::test(start_paused = true)]
async fn an_expired_task_is_not_begun_and_takes_no_room() {
    let (workers, _crew) = start(1, 2, WhenFull::Abort);
    let begun = Arc::new(AtomicU32::new(0));
    let count = |time: Duration| {
        let begun = Arc::clone(&begun);
        Task::new(async move { begun.fetch_add(1, Ordering::SeqCst) }).within(time)
    };
    let busy = workers.submit(work(0)).await.unwrap();
    yield_now().await;
    let short = workers.submit(count(WORK / 2)).await.unwrap();
    let exact = workers.submit(count(WORK)).await.unwrap();
    assert_eq!(workers.submit(count(WORK)).await.unwrap_err().why, NotTaken::Full);
    advance(WORK / 2).await;
    // The short one has expired, so there is room for another.
    let long = workers.submit(count(WORK)).await.unwrap();
    assert_eq!(short.await, Err(Lost::Expired));
    busy.await.unwrap();
    // A deadline is the moment from which on it is too late.
    assert_eq!((exact.await, long.await), (Err(Lost::Expired), Ok(0)));
    let late = Task::new(async {}).until(workers.clock().now());
    assert_eq!(workers.submit(late).await.unwrap_err().why, NotTaken::Expired);
    assert_eq!((begun.load(Ordering::SeqCst), workers.snapshot().counts.expired), (1, 3));
    check_sums(&workers);
}

/// A deadline also ends the wait for room.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_room_past_his_deadline() {
    let (workers, _crew) = start(1, 0, WhenFull::Block { timeout: WORK });
    let _busy = workers.submit(work(0)).await.unwrap();
    let began = now();
    let back = workers.submit(work(1).within(WORK / 4)).await.unwrap_err();
    assert_eq!((back.why, began.elapsed()), (NotTaken::Expired, WORK / 4));
    let number = back.task.into_inner().await;
    assert_eq!(number, 1, "the task comes back as it was");
}

/// A7. A panic, in the task or in its drop, costs that task and nothing else.
#[tokio::test(start_paused = true)]
async fn panics_are_contained() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    let (workers, _crew) = start(1, 8, WhenFull::DiscardOldest);
    let plain = workers.submit(Task::new(async { panic!("in poll") })).await.unwrap();
    let text = workers.submit(Task::new(async { panic!("{} {}", "with", "arguments") })).await.unwrap();
    let bomb = PanicsWhenDropped;
    let in_drop = workers
        .submit(Task::new(async move {
            let _bomb = &bomb;
        }))
        .await
        .unwrap();
    let next = workers.submit(work(4)).await.unwrap();
    assert_eq!(plain.await, Err(Lost::Panicked("in poll".to_owned())));
    assert_eq!(text.await, Err(Lost::Panicked("with arguments".to_owned())));
    assert_eq!(in_drop.await, Err(Lost::Panicked("in drop".to_owned())));
    assert_eq!(next.await, Ok(4));
    // Discarded, it is dropped as well.
    let bomb = PanicsWhenDropped;
    let discarded = Task::new(async move {
        let _bomb = &bomb;
    });
    let _busy = workers.submit(work(5)).await.unwrap();
    yield_now().await;
    let discarded = workers.submit(discarded).await.unwrap();
    for number in 0..8 {
        drop(workers.submit(work(number)).await.unwrap());
    }
    assert_eq!(discarded.await, Err(Lost::Discarded));
    check_sums(&workers);
}

#[tokio::test(start_paused = true)]
async fn closing_finishes_what_is_queued_and_takes_nothing_new() {
    let (workers, crew) = start(1, 8, WhenFull::Block { timeout: WORK });
    let handles = [workers.submit(work(0)).await.unwrap(), workers.submit(work(1)).await.unwrap()];
    workers.close();
    assert_eq!(workers.submit(work(2)).await.unwrap_err().why, NotTaken::Closed);
    for worker in crew {
        worker.await.unwrap();
    }
    for handle in handles {
        handle.await.unwrap();
    }
    check_sums(&workers);
}

/// A worker that is dropped takes its task with it; with the last one those go that wait, and all are told.
#[tokio::test(start_paused = true)]
async fn without_workers_nobody_waits_for_ever() {
    let (workers, crew) = start(2, 8, WhenFull::Abort);
    let handles: Vec<_> = (0..5).map(|number| workers.try_submit(work(number)).unwrap()).collect();
    yield_now().await;
    for worker in crew {
        worker.abort();
        let _ = worker.await;
    }
    for handle in handles {
        assert_eq!(handle.await, Err(Lost::Stopped));
    }
    assert_eq!(workers.submit(work(9)).await.unwrap_err().why, NotTaken::Closed);
    let end = workers.snapshot();
    assert_eq!((end.workers, end.running, end.counts.stopped), (0, 0, 5));
    check_sums(&workers);
}

/// On real threads: many submit and wait for room; every task that was taken ends, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_task_that_is_taken_ends() {
    let (workers, crew) = start(4, 16, WhenFull::Block { timeout: Duration::from_secs(60) });
    let submitters: Vec<_> = (0..16)
        .map(|_| {
            let workers = workers.clone();
            tokio::spawn(async move {
                for number in 0..200_u32 {
                    let task = Task::new(async move {
                        yield_now().await;
                        number
                    });
                    assert_eq!(workers.submit(task).await.unwrap().await, Ok(number));
                }
            })
        })
        .collect();
    for submitter in submitters {
        submitter.await.unwrap();
    }
    assert_eq!(workers.snapshot().counts.completed, 3_200);
    check_sums(&workers);
    drop(workers);
    for worker in crew {
        worker.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_while_it_runs_a_task_stops_it() {
    let (workers, _crew) = start(1, 0, WhenFull::CallerRuns);
    let _busy = workers.submit(work(0)).await.unwrap();
    {
        let mut submit = pin!(workers.submit(work(1)));
        assert!(submit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(workers.snapshot().counts.stopped, 1);
    check_sums(&workers);
}
