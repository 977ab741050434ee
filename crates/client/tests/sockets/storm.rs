//! The retry storm, on sockets: two hundred clients, an upstream that stands still for three seconds, and no gateway. With
//! this client in each it is over two seconds after the stall; with clients that simply try four times it is not.
//!
//! The upstream has ten workers of 50 ms, a queue without a bound, and goes on working for those who have left, as most
//! do. Each client asks every two and a half seconds, together two fifths of what it can do, and waits for a second.
//! `scenarios/client-storm-*.toml` are the same in virtual time, with two and a half times as much of everything.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use http::{Request, Uri};
use hyper::body::Incoming;
use tidegate_client::engine::CallerPolicy;
use tidegate_client::{Client, Policy};
use tokio::sync::{RwLock, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};
use tower::service_fn;

use crate::server::{Server, serve, status};

const CLIENTS: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(2_500);
const WORK: Duration = Duration::from_millis(50);
/// When it stands still, when it works again, when all has to be well, and the end.
const STALL: [Duration; 4] =
    [SECOND, SECOND.saturating_mul(4), SECOND.saturating_mul(6), SECOND.saturating_mul(9)];

async fn upstream(stalled: Arc<RwLock<()>>) -> Server {
    let workers = Arc::new(Semaphore::new(10));
    serve(service_fn(move |_: Request<Incoming>| {
        let (workers, stalled) = (Arc::clone(&workers), Arc::clone(&stalled));
        // A task of its own: the work goes on when the client has left.
        let work = tokio::spawn(async move {
            let _worker = workers.acquire_owned().await.unwrap();
            drop(stalled.read().await);
            sleep(WORK).await;
        });
        async move {
            drop(work.await);
            Ok::<_, Infallible>(status(200))
        }
    }))
    .await
}

/// How many calls had an answer in time, and how many were made, of those that began after all had to be well.
#[derive(Default)]
struct Tally {
    calls: AtomicU32,
    good: AtomicU32,
}

/// Clients that each ask now and then, not in step, by whatever `ask` does.
async fn storm<A, F>(began: Instant, ask: impl Fn(u32) -> A) -> Arc<Tally>
where
    A: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    let tally = Arc::new(Tally::default());
    let [.., well, end] = STALL;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let (ask, tally) = (Arc::new(ask(number)), Arc::clone(&tally));
        clients.push(tokio::spawn(async move {
            let mut at = EVERY * number / CLIENTS;
            // Whoever begins in the last second would not be done at the end.
            while at < end - SECOND {
                sleep_until(began + at).await;
                let (ask, tally) = (Arc::clone(&ask), Arc::clone(&tally));
                // Each call is a task of its own: a client does not ask less because it has no answer.
                tokio::spawn(async move {
                    let counts = u32::from(at >= well);
                    tally.calls.fetch_add(counts, SeqCst);
                    let good = ask().await;
                    tally.good.fetch_add(counts * u32::from(good), SeqCst);
                });
                at += EVERY;
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    // The last of those who try four times has an answer by then, if it has any.
    sleep_until(began + end + 3 * SECOND).await;
    tally
}

fn resilient(uri: Uri) -> impl Fn(u32) -> Box<dyn Fn() -> futures::Called + Send + Sync> {
    move |_| {
        let (client, uri) = (Client::new(Policy::careful(SECOND)), uri.clone());
        Box::new(move || {
            let (client, uri) = (client.clone(), uri.clone());
            Box::pin(async move { client.get(uri).await.is_ok_and(|answer| answer.status().is_success()) })
        })
    }
}

/// Four tries of a second each, one after the other. The call is good if any of them is: generous, since its user may have
/// left by then.
fn naive(uri: Uri) -> impl Fn(u32) -> Box<dyn Fn() -> futures::Called + Send + Sync> {
    move |_| {
        let mut policy = Policy::careful(SECOND);
        policy.caller = CallerPolicy::once();
        policy.room.calls = 10_000;
        let (client, uri) = (Client::new(policy), uri.clone());
        Box::new(move || {
            let (client, uri) = (client.clone(), uri.clone());
            Box::pin(async move {
                for _ in 0..4 {
                    if client.get(uri.clone()).await.is_ok_and(|answer| answer.status().is_success()) {
                        return true;
                    }
                }
                false
            })
        })
    }
}

mod futures {
    //! A name for a future that says whether a call was good.
    pub(super) type Called = std::pin::Pin<Box<dyn Future<Output = bool> + Send>>;
}

/// Plays the storm, and says how many calls began after all had to be well, and the share of them that was answered.
async fn play<A, F, C>(clients: impl FnOnce(Uri) -> C) -> (u32, f64)
where
    C: Fn(u32) -> A,
    A: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    let stalled = Arc::new(RwLock::new(()));
    let server = upstream(Arc::clone(&stalled)).await;
    let began = now();
    let stall = async {
        sleep_until(began + STALL[0]).await;
        let standing_still = stalled.write().await;
        sleep_until(began + STALL[1]).await;
        drop(standing_still);
    };
    let (tally, ()) = tokio::join!(storm(began, clients(server.uri())), stall);
    let (calls, good) = (tally.calls.load(SeqCst), tally.good.load(SeqCst));
    (calls, f64::from(good) / f64::from(calls.max(1)))
}

/// One after the other, since both at once would need more of this machine than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_recover_from_a_stall_by_themselves() {
    let ours = play(resilient).await;
    let others = play(naive).await;
    println!("from two seconds after the stall on: with this client {ours:?}, with others {others:?}");
    assert!(ours.0 > 100 && ours.1 > 0.95, "{ours:?}");
    assert!(others.1 < 0.5, "{others:?}");
}

#[expect(clippy::disallowed_methods, reason = "a test on a real clock")]
fn now() -> Instant {
    Instant::now()
}
