//! Two workloads in one service, and the greedy one cannot take what the other needs:
//! `cargo run -p tidegate-tower --example bulkhead`.
//!
//! Reports take long and come in hundreds; the checkout is what the shop lives from. Both share eight slots, of which
//! reports may have three, so the checkout finds five at least. It prints what came of both, and ends.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tidegate_tower::engine::{AdmissionPolicy, Capacity, LimitPolicy, Outcome, QueuePolicy, RouteId};
use tidegate_tower::{Gate, GateEvent, GateLayer};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tower::{Layer as _, ServiceExt as _, service_fn};

const CHECKOUT: RouteId = RouteId(0);
const REPORTS: RouteId = RouteId(1);

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn work(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let long = request.uri().path() == "/report";
    tokio::time::sleep(Duration::from_millis(if long { 100 } else { 10 })).await;
    Ok(Response::new(Full::from("done")))
}

/// What came of the requests of a route, as the layer tells it.
#[derive(Default)]
struct Tally {
    served: AtomicU32,
    refused: AtomicU32,
}

impl Tally {
    fn hear(&self, event: &GateEvent) {
        match event {
            GateEvent::Ended { outcome: Outcome::Success, .. } => self.served.fetch_add(1, Ordering::Relaxed),
            GateEvent::Refused { .. } => self.refused.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    fn show(&self, name: &str) {
        let (served, refused) = (self.served.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed));
        println!("{name:<9} {served:>3} served, {refused:>3} refused");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let number = |number| NonZeroU32::new(number).ok_or("it is not zero");
    let mut policy = AdmissionPolicy::new(
        LimitPolicy::Fixed(number(8)?),
        QueuePolicy::of(Duration::from_millis(500), Capacity::Fixed(16)),
    );
    // Those of a route who wait are counted too, so reports cannot fill the queue either.
    policy.bulkheads = vec![(REPORTS, number(3)?)];
    let gate = Gate::new(policy);

    // One layer for each route, one gate for both.
    let tallies = Arc::new([Tally::default(), Tally::default()]);
    let told = tallies.clone();
    let layer = GateLayer::new(gate.clone()).with_observer(move |event| {
        let (GateEvent::Admitted { route, .. }
        | GateEvent::Refused { route, .. }
        | GateEvent::Ended { route, .. }) = event;
        told[usize::from(*route == REPORTS)].hear(event);
    });
    let checkout = layer.for_route(CHECKOUT).layer(service_fn(work));
    let reports = layer.for_route(REPORTS).layer(service_fn(work));

    // For half a second: ten reports and two checkouts every ten milliseconds.
    let mut calls = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..50 {
        ticks.tick().await;
        for n in 0..12 {
            let (service, path) = if n < 10 { (&reports, "/report") } else { (&checkout, "/checkout") };
            let service = service.clone();
            calls.spawn(async move {
                let response = service.oneshot(Request::get(path).body(Full::default())?).await?;
                // The slot is free when the body has been read.
                response.into_body().collect().await?;
                Ok::<_, Error>(())
            });
        }
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    tallies[0].show("checkout");
    tallies[1].show("reports");
    println!("{} in flight at the end", gate.snapshot().in_flight);
    Ok(())
}
