//! A second request beside the first: after a while, once, paid for, and only for what may be asked twice.

use super::*;
use tidegate_client::engine::HedgePolicy;

fn hedging() -> Policy {
    let mut policy = policy();
    policy.caller.hedge = Some(HedgePolicy { percentile: 95, least: Duration::from_millis(10) });
    policy
}

/// A client that knows that answers take ten milliseconds.
async fn warm(script: &Script) -> Calls {
    let calls = client(hedging(), script);
    script.says([Says::After(10, 200)]);
    for _ in 0..40 {
        get(&calls).await.unwrap();
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn the_slow_one_is_overtaken_and_cancelled() {
    let script = Script::new([OK]);
    let calls = warm(&script).await;
    script.says([Says::After(4_000, 200), Says::After(10, 200)]);
    let (before, began) = (script.seen().len(), now());
    assert_eq!(status(&get(&calls).await), 200);
    let took = now() - began;
    assert!((Duration::from_millis(20)..Duration::from_millis(30)).contains(&took), "{took:?}");
    let now = calls.resilience().snapshot("orders").unwrap();
    assert_eq!((script.seen().len() - before, now.caller.counts.hedges), (2, 1));
    assert_eq!((now.caller.counts.abandoned, now.in_flight), (1, 0), "the loser is cancelled");
    assert_eq!(script.seen().last().unwrap().headers["x-envoy-attempt-count"], "2");
}

/// If the second is the slow one, the first wins; if one fails, the other may still be good.
#[tokio::test(start_paused = true)]
async fn the_first_answer_that_is_of_use_wins() {
    let script = Script::new([OK]);
    let calls = warm(&script).await;
    script.says([Says::After(50, 200), Says::After(1_000, 200)]);
    let began = now();
    assert_eq!(status(&get(&calls).await), 200);
    assert!(now() - began < Duration::from_millis(55));
    script.says([Says::After(50, 200), Says::Reset]);
    assert_eq!(status(&get(&calls).await), 200);
    script.says([Says::After(50, 503), Says::After(100, 200)]);
    assert_eq!(status(&get(&calls).await), 200);
    assert_eq!(counts(&calls).hedges, 3);
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_asked_twice_is_not() {
    let script = Script::new([OK]);
    let calls = warm(&script).await;
    script.says([Says::After(1_000, 200)]);
    assert_eq!(status(&calls.clone().call(request(Method::POST)).await), 200);
    assert_eq!(counts(&calls).hedges, 0);
}

/// A service that has become slow for everybody is not asked twice by everybody: hedges are as many as retries may be.
#[tokio::test(start_paused = true)]
async fn hedges_are_paid_for_like_retries() {
    let script = Script::new([OK]);
    let calls = warm(&script).await;
    script.says([Says::After(60_000, 200)]);
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let calls = calls.clone();
            tokio::spawn(async move { get(&calls).await })
        })
        .collect();
    for task in tasks {
        drop(task.await.unwrap());
    }
    assert!(counts(&calls).hedges <= 10, "{} of 200", counts(&calls).hedges);
}

/// Nobody waits longer than the deadline because there are two.
#[tokio::test(start_paused = true)]
async fn two_that_hang_end_at_the_deadline() {
    let script = Script::new([OK]);
    let calls = warm(&script).await;
    script.says([Says::After(60_000, 200)]);
    let began = now();
    assert!(matches!(get(&calls).await, Err(Error::TimedOut)));
    assert!(now() - began <= Duration::from_millis(5_001));
    let now = calls.resilience().snapshot("orders").unwrap();
    assert_eq!((now.in_flight, now.caller.counts.hedges), (0, 1));
}

/// H5. A hedge that is overtaken by a retry is one of the three tries that there may be, and the only one of its kind.
#[tokio::test(start_paused = true)]
async fn a_hedge_is_one_of_the_tries() {
    let script = Script::new([OK]);
    let calls = warm(&script).await;
    let before = script.seen().len();
    script.says([Says::After(50, 503)]);
    assert_eq!(status(&get(&calls).await), 503);
    let said: Vec<_> = script.seen()[before..]
        .iter()
        .map(|seen| seen.headers["x-envoy-attempt-count"].to_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["1", "2", "3"]);
    assert_eq!(counts(&calls).hedges, 1);
}
