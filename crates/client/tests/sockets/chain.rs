//! Article 004: if three layers each try three times, one failure is 27 calls at the bottom. Three real services, each with
//! the client, over a fourth that fails.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use http::{Request, Uri};
use hyper::body::Incoming;
use tidegate_client::engine::{Backoff, BudgetPolicy, CallerPolicy};
use tidegate_client::{AmbientLayer, Client, Policy};
use tower::{Layer, service_fn};

use crate::server::{Server, serve, status};

/// Three tries, and a budget that stands in the way of none of them, so that what is seen is the rule of one layer.
fn policy() -> Policy {
    let mut policy = Policy::careful(Duration::from_secs(20));
    policy.caller = CallerPolicy {
        attempts: NonZeroU32::new(3).unwrap(),
        backoff: Backoff::FullJitter { base: Duration::from_millis(2), cap: Duration::from_millis(2) },
        budget: BudgetPolicy { percent: 100, burst: 1_000, per_minute: 0 },
        breaker: None,
        throttle: None,
        hedge: None,
    };
    policy
}

/// A service that asks the next and answers with its status. `marks`: with the layer that says what it knows.
async fn hop(next: Uri, marks: bool) -> Server {
    let client = Client::new(policy());
    let service = service_fn(move |_: Request<Incoming>| {
        let (client, next) = (client.clone(), next.clone());
        async move {
            let answer = client.get(next).await;
            Ok::<_, Infallible>(status(answer.map_or(502, |answer| answer.status().as_u16())))
        }
    });
    if marks { serve(AmbientLayer::new(&policy()).layer(service)).await } else { serve(service).await }
}

/// How many calls one call becomes at the bottom of three hops, with a bottom that answers so.
async fn calls_at_the_bottom(
    marks: bool,
    answers: impl Fn(u32) -> u16 + Clone + Send + 'static,
) -> (u32, u16) {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let bottom = serve(service_fn(move |_: Request<Incoming>| {
        let answer = status(answers(counted.fetch_add(1, SeqCst)));
        async move { Ok::<_, Infallible>(answer) }
    }))
    .await;
    let third = hop(bottom.uri(), marks).await;
    let second = hop(third.uri(), marks).await;
    let answer = Client::new(policy()).get(second.uri()).await.unwrap();
    (asked.load(SeqCst), answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_layers_are_three_calls() {
    assert_eq!(calls_at_the_bottom(true, |_| 503).await, (3, 503));
}

/// The same services where none knows of the others: this is what the layer is for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_says_so_they_are_27() {
    assert_eq!(calls_at_the_bottom(false, |_| 503).await, (27, 503));
}

/// What the lowest layer cures, no other hears of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_passes_is_cured_where_it_is_seen() {
    assert_eq!(calls_at_the_bottom(true, |call| if call == 0 { 503 } else { 200 }).await, (2, 200));
}

/// With the policy as it is shipped, in an outage: hundreds of calls through three layers are hardly more at the bottom.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_outage_the_bottom_is_hardly_asked_more() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let bottom = serve(service_fn(move |_: Request<Incoming>| {
        counted.fetch_add(1, SeqCst);
        async { Ok::<_, Infallible>(status(503)) }
    }))
    .await;
    let shipped = || {
        let mut policy = Policy::careful(Duration::from_secs(20));
        // What is measured is the budget alone: a breaker or a throttle would send even less.
        policy.caller = CallerPolicy { breaker: None, throttle: None, ..policy.caller };
        policy.caller.backoff = self::policy().caller.backoff;
        policy
    };
    let mut next = bottom.uri();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let (client, uri) = (Client::new(shipped()), next.clone());
        let service = service_fn(move |_: Request<Incoming>| {
            let (client, uri) = (client.clone(), uri.clone());
            async move {
                Ok::<_, Infallible>(status(
                    client.get(uri).await.map_or(502, |answer| answer.status().as_u16()),
                ))
            }
        });
        let server = serve(AmbientLayer::new(&shipped()).layer(service)).await;
        next = server.uri();
        servers.push(server);
    }
    let client = Client::new(shipped());
    for _ in 0..500 {
        assert_eq!(client.get(next.clone()).await.unwrap().status(), 503);
    }
    let tries = asked.load(SeqCst);
    println!("{tries} calls at the bottom for 500 at the top");
    assert!((500..=550).contains(&tries), "{tries}");
}
