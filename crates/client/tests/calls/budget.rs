//! How much is tried again, and when nothing is sent any more: H5, H9.

use super::*;
use tidegate_client::Refusal;
use tidegate_client::engine::{BudgetPolicy, Reply};

/// Article 004: in a full outage the budget drains, and from then on there are at most eleven tries for ten calls. Here it
/// is the one retry for ten seconds.
#[tokio::test(start_paused = true)]
async fn in_an_outage_there_is_hardly_a_retry() {
    let script = Script::new([OK]);
    let calls = client(policy(), &script);
    for _ in 0..200 {
        get(&calls).await.unwrap();
    }
    script.says([UNAVAILABLE]);
    let drained = calls.resilience().snapshot("orders").unwrap().caller.budget;
    for _ in 0..20 {
        assert_eq!(status(&get(&calls).await), 503);
    }
    let before = script.seen().len();
    let began = now();
    for _ in 0..500 {
        assert_eq!(status(&get(&calls).await), 503);
        sleep(Duration::from_millis(20)).await;
    }
    let tries = script.seen().len() - before;
    let most = 500 + (now() - began).as_secs() as usize / 10 + 1;
    assert!((500..=most).contains(&tries), "{tries} tries for 500 calls");
    assert_eq!(drained, 10);
}

/// After a cold start: as many calls at once as there are places, and as many again in line, to a service that is slow and
/// well. What is under way has not been refused, so nothing is held back.
#[tokio::test(start_paused = true)]
async fn a_burst_to_a_slow_service_is_not_held_back() {
    let script = Script::new([Says::After(400, 200)]);
    let calls = client(Policy::careful(Duration::from_secs(5)), &script);
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let calls = calls.clone();
            tokio::spawn(async move { get(&calls).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(status(&task.await.unwrap()), 200);
    }
    assert_eq!((counts(&calls).throttled, script.seen().len()), (0, 200));
}

/// Half of the calls fail at their first try. With a budget of 0.6 of the successes, sixty of a hundred are paid for; one
/// that is rounded up would pay for all (tower#857).
#[tokio::test(start_paused = true)]
async fn six_tenths_are_six_tenths() {
    let mut policy = policy();
    policy.caller.budget = BudgetPolicy { percent: 60, burst: 2, per_minute: 0 };
    policy.caller.attempts = std::num::NonZeroU32::new(2).unwrap();
    let script = Script::new([OK]);
    let calls = client(policy, &script);
    for _ in 0..1_000 {
        script.says([OK]);
        get(&calls).await.unwrap();
        script.says([UNAVAILABLE]);
        drop(get(&calls).await);
    }
    let retries = counts(&calls).retries;
    assert!((600..=602).contains(&retries), "{retries} of 1,000");
}

/// The breaker opens when nobody is there, says when to come back, and is closed by those who come then.
#[tokio::test(start_paused = true)]
async fn the_breaker_opens_and_closes() {
    let mut policy = Policy::careful(Duration::from_secs(5));
    policy.caller.attempts = std::num::NonZeroU32::MIN;
    let script = Script::new([Says::Unreachable]);
    let calls = client(policy, &script);
    for _ in 0..5 {
        assert!(matches!(get(&calls).await, Err(Error::Service(_))));
    }
    let refused = get(&calls).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::BreakerOpen { .. })), "{refused}");
    assert!(!refused.was_sent() && script.seen().len() == 5);
    script.says([OK]);
    sleep(Duration::from_millis(250)).await;
    for _ in 0..10 {
        assert_eq!(status(&get(&calls).await), 200);
    }
}

/// 429 is about this caller: it waits as it was told, and goes on asking.
#[tokio::test(start_paused = true)]
async fn the_breaker_stays_closed_for_429() {
    let mut policy = Policy::careful(Duration::from_secs(5));
    policy.caller.throttle = None;
    let script = Script::new([Says::Status(429, &[("retry-after", "60")])]);
    let calls = client(policy, &script);
    for _ in 0..200 {
        assert_eq!(status(&get(&calls).await), 429);
    }
    script.says([OK]);
    assert_eq!(status(&get(&calls).await), 200);
}

/// resilience4j#903: probes that are cancelled give their places back.
#[tokio::test(start_paused = true)]
async fn cancelled_probes_do_not_keep_the_breaker_shut() {
    let mut policy = Policy::careful(Duration::from_secs(5));
    policy.caller.attempts = std::num::NonZeroU32::MIN;
    let script = Script::new([Says::Unreachable]);
    let calls = client(policy, &script);
    for _ in 0..5 {
        drop(get(&calls).await);
    }
    sleep(Duration::from_millis(300)).await;
    script.says([Says::After(1_000, 200)]);
    for _ in 0..10 {
        // Three at once are all the probes that there may be; all of them are dropped under way.
        let probes = async { tokio::join!(get(&calls), get(&calls), get(&calls), get(&calls)) };
        assert!(tokio::time::timeout(Duration::from_millis(1), probes).await.is_err());
    }
    assert_eq!(counts(&calls).abandoned, 30);
    script.says([OK]);
    assert_eq!(status(&get(&calls).await), 200);
}

/// A call that nobody wants any more gives back what it had paid for a retry that was not sent.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_gives_everything_back() {
    let script = Script::new([Says::Status(503, &[("retry-after", "2")])]);
    let calls = client(policy(), &script);
    let call = get(&calls);
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    let snapshot = calls.resilience().snapshot("orders").unwrap();
    assert_eq!((snapshot.caller.budget, snapshot.in_flight, snapshot.caller.counts.given_up), (10, 0, 1));
    // While it is sent it is paid for, and dropping it then gives back its place only.
    script.says([UNAVAILABLE, Says::After(60_000, 200)]);
    assert!(tokio::time::timeout(Duration::from_secs(1), get(&calls)).await.is_err());
    let snapshot = calls.resilience().snapshot("orders").unwrap();
    assert_eq!((snapshot.caller.budget, snapshot.in_flight, snapshot.caller.counts.abandoned), (9, 0, 1));
}

/// Refused at the time of its retry, a call ends with the answer that it has, body and all.
#[tokio::test(start_paused = true)]
async fn the_last_answer_is_better_than_none() {
    let mut policy = Policy::careful(Duration::from_secs(5));
    policy.caller.throttle = None;
    let script = Script::new([Says::Status(503, &[("retry-after-ms", "200")])]);
    let calls = client(policy, &script);
    let waiting = tokio::spawn({
        let calls = calls.clone();
        async move { get(&calls).await }
    });
    sleep(Duration::from_millis(100)).await;
    script.says([Says::Unreachable]);
    while counts(&calls).breaker_open == 0 {
        drop(calls.clone().call(request(Method::POST)).await);
        sleep(Duration::from_millis(5)).await;
    }
    let answer = waiting.await.unwrap();
    assert_eq!(status(&answer), 503);
    assert_eq!(answer.unwrap().into_body().collect().await.unwrap().to_bytes(), "answer");
    assert_eq!(counts(&calls).replied(Reply::Unavailable), 1);
}

/// Names that are made up do not fill the memory (H11): what is beyond the bound is known together.
#[tokio::test(start_paused = true)]
async fn upstreams_are_told_apart_up_to_a_bound() {
    let script = Script::new([OK]);
    let calls = client(Policy { upstreams_max: 2, ..policy() }, &script);
    for host in ["a", "b", "c", "d", "user:secret@A", "c"] {
        let mut request = request(Method::GET);
        *request.uri_mut() = format!("http://{host}/").parse().unwrap();
        calls.clone().call(request).await.unwrap();
    }
    let known = calls.resilience().snapshots();
    let known: Vec<_> = known.iter().map(|(name, now)| (name.as_str(), now.caller.counts.calls)).collect();
    assert_eq!(known, [("(others)", 3), ("a", 2), ("b", 1)]);
}
