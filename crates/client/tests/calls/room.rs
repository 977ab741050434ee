//! The bound in front of the connection pool, and the line before it: A5, A6, A8, A12.

use super::*;
use tidegate_client::{Refusal, RoomPolicy};

fn narrow(calls: u32, waiting: u32, wait_ms: u64) -> Policy {
    let room = RoomPolicy { calls, waiting, wait: Duration::from_millis(wait_ms) };
    Policy { room, ..policy() }
}

fn in_flight(calls: &Calls) -> (u32, u32) {
    let now = calls.resilience().snapshot("orders").unwrap();
    (now.in_flight, now.waiting)
}

fn spawn(calls: &Calls) -> tokio::task::JoinHandle<Answer> {
    let calls = calls.clone();
    tokio::spawn(async move { get(&calls).await })
}

/// Each of fifty clones has the same two places.
#[tokio::test(start_paused = true)]
async fn clones_do_not_admit_more_together() {
    let script = Script::new([Says::After(100, 200)]);
    let calls = client(narrow(2, 50, 60_000), &script);
    let tasks: Vec<_> = (0..50).map(|_| spawn(&calls)).collect();
    for round in 1..=25 {
        sleep(Duration::from_millis(if round == 1 { 50 } else { 101 })).await;
        assert!(in_flight(&calls).0 <= 2);
    }
    for task in tasks {
        // The body is dropped, and with it the place.
        assert_eq!(status(&task.await.unwrap()), 200);
    }
    let seen = script.seen();
    for three in seen.windows(3) {
        assert!(three[2].at - three[0].at >= Duration::from_millis(100), "three at once");
    }
    assert_eq!(in_flight(&calls), (0, 0));
}

/// Nothing is held by a service that is ready and not called.
#[tokio::test(start_paused = true)]
async fn being_ready_holds_nothing() {
    let script = Script::new([OK]);
    let calls = client(narrow(1, 0, 0), &script);
    let mut ready: Vec<Calls> = (0..100).map(|_| calls.clone()).collect();
    for calls in &mut ready {
        std::future::poll_fn(|cx| Service::poll_ready(calls, cx)).await.unwrap();
    }
    // Nor by a call that is not polled.
    let _unpolled = ready[0].call(request(Method::GET));
    assert_eq!(status(&ready[1].call(request(Method::GET)).await), 200);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_passes_its_place_on() {
    let script = Script::new([Says::After(100, 200)]);
    let calls = client(narrow(1, 10, 60_000), &script);
    let first = spawn(&calls);
    tokio::task::yield_now().await;
    let leaving: Vec<_> = (0..5).map(|_| spawn(&calls)).collect();
    tokio::task::yield_now().await;
    let last = spawn(&calls);
    tokio::task::yield_now().await;
    assert_eq!(in_flight(&calls), (1, 6));
    leaving.iter().for_each(tokio::task::JoinHandle::abort);
    let began = now();
    drop(first.await.unwrap());
    assert_eq!(status(&last.await.unwrap()), 200);
    assert!(now() - began <= Duration::from_millis(202));
    assert_eq!(in_flight(&calls), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_line_has_a_length_and_an_end() {
    let script = Script::new([Says::After(1_000, 200)]);
    let calls = client(narrow(1, 1, 300), &script);
    let first = spawn(&calls);
    tokio::task::yield_now().await;
    let second = spawn(&calls);
    tokio::task::yield_now().await;
    assert!(matches!(get(&calls).await, Err(Error::Refused(Refusal::NoRoom))));
    let began = now();
    assert!(matches!(second.await.unwrap(), Err(Error::Refused(Refusal::WaitTooLong))));
    assert!(now() - began <= Duration::from_millis(301));
    assert_eq!(status(&first.await.unwrap()), 200);
    assert_eq!((in_flight(&calls), script.seen().len()), ((0, 0), 1));
}

/// A8 (tower-http#447): the place is free when the body has ended, or is dropped.
#[tokio::test(start_paused = true)]
async fn the_place_is_held_until_the_body_has_ended() {
    let script = Script::new([OK]);
    let calls = client(narrow(1, 0, 0), &script);
    let answer = get(&calls).await.unwrap();
    assert!(matches!(get(&calls).await, Err(Error::Refused(Refusal::NoRoom))));
    answer.into_body().collect().await.unwrap();
    let answer = get(&calls).await.unwrap();
    assert_eq!(in_flight(&calls).0, 1);
    drop(answer);
    assert_eq!(in_flight(&calls).0, 0);
}

/// Whoever pauses before a retry lets others go first.
#[tokio::test(start_paused = true)]
async fn a_pause_holds_no_place() {
    let script = Script::new([Says::Status(503, &[("retry-after", "2")]), OK]);
    let calls = client(narrow(1, 0, 0), &script);
    let pausing = spawn(&calls);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(in_flight(&calls), (0, 0));
    assert_eq!(status(&get(&calls).await), 200);
    assert_eq!(status(&pausing.await.unwrap()), 200);
}

/// A8. An answer that is too long to be read ahead is still on its connection during the pause, and holds its place: the
/// retry is made in it, and if it is not, the answer that is given keeps it until its body has ended.
#[tokio::test(start_paused = true)]
async fn a_long_answer_keeps_its_place() {
    const LONG_503: Says = Says::Long(503, &[("retry-after-ms", "200")]);
    let script = Script::new([LONG_503, OK]);
    let calls = client(narrow(1, 0, 0), &script);
    let pausing = spawn(&calls);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(in_flight(&calls), (1, 0));
    assert!(matches!(get(&calls).await, Err(Error::Refused(Refusal::NoRoom))));
    assert_eq!(status(&pausing.await.unwrap()), 200);
    // The same, with a breaker that has opened meanwhile.
    let mut policy = narrow(2, 0, 0);
    policy.caller.breaker = CallerPolicy::careful(Duration::from_secs(5)).breaker;
    let script = Script::new([LONG_503, Says::Unreachable]);
    let calls = client(policy, &script);
    let pausing = spawn(&calls);
    sleep(Duration::from_millis(100)).await;
    while counts(&calls).breaker_open == 0 {
        drop(get(&calls).await);
    }
    let answer = pausing.await.unwrap();
    assert_eq!((status(&answer), in_flight(&calls)), (503, (1, 0)));
    assert_eq!(answer.unwrap().into_body().collect().await.unwrap().to_bytes().len(), LONG);
    assert_eq!(in_flight(&calls), (0, 0));
}

/// Many threads, a real clock: never more than there is room for, and nothing is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_come_and_go_at_once() {
    let script = Script::new([Says::After(1, 200)]);
    let calls = client(narrow(3, 1_000, 60_000), &script);
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let calls = calls.clone();
            // An answer that nobody reads keeps its place, so each is dropped where it is had.
            let task = tokio::spawn(async move { get(&calls).await.map(drop) });
            if number % 3 == 0 {
                task.abort();
            }
            task
        })
        .collect();
    for task in tasks {
        match task.await {
            Ok(answer) => answer.unwrap(),
            Err(error) => assert!(error.is_cancelled()),
        }
        assert!(in_flight(&calls).0 <= 3);
    }
    assert_eq!(in_flight(&calls), (0, 0));
}
