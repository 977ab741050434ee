//! Ingestion with a bounded buffer: events come faster than the database takes them, and memory does not grow.
//!
//! ```sh
//! cargo run -p tidegate-flow --example ingestion
//! ```
//!
//! Events go into a buffer that is bounded in number and in bytes. A writer asks for a batch, hands it to one of two
//! workers, and asks for the next only when that has been taken. In the middle the database becomes twenty times slower.
//! Nothing is measured to find that out and nobody is told: there is no demand, so the buffer fills, and `try_submit` says
//! so at once, which at the edge of a service is a 503. Batches that come too late for whoever waits for them are not
//! written.

use std::error::Error;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_flow::{Policy, Publisher, Refused, Subscription, Task, WhenFull, Why, Workers, WorkersPolicy};
use tokio::time::{interval, sleep};

const BATCH: usize = 50;
const EVENTS: u32 = 3_000;
/// When the migration begins and ends, in events.
const SLOW: std::ops::Range<u32> = 1_000..2_000;

type Event = Vec<u8>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let policy = Policy::new(500).with_bytes(64 << 10, |event: &Event| event.len() as u64);
    let publisher = Publisher::new(policy);
    let (workers, crew) = Workers::new(WorkersPolicy {
        workers: NonZeroU32::MIN.saturating_add(1),
        queue: 2,
        when_full: WhenFull::Block { timeout: Duration::from_secs(5) },
    });
    let crew: Vec<_> = crew.into_iter().map(|worker| tokio::spawn(worker.run())).collect();
    let writer = tokio::spawn(write(publisher.subscribe(), workers.clone()));

    println!("{:>7} {:>9} {:>9} {:>7} {:>9}", "events", "accepted", "refused", "depth", "bytes");
    let mut refused = 0;
    let mut clock = interval(Duration::from_millis(10));
    for number in 0..EVENTS {
        if number.is_multiple_of(10) {
            clock.tick().await;
        }
        match publisher.try_submit(event(number)) {
            Ok(()) => {}
            // What a handler answers with 503 and Retry-After.
            Err(Refused { why: Why::Full, .. }) => refused += 1,
            Err(other) => return Err(other.into()),
        }
        if (number + 1).is_multiple_of(250) {
            let now = publisher.snapshot();
            let accepted = number + 1 - refused;
            println!("{:>7} {accepted:>9} {refused:>9} {:>7} {:>9}", number + 1, now.depth, now.bytes);
        }
    }
    publisher.complete();
    let written = writer.await??;
    drop(workers);
    for worker in crew {
        worker.await?;
    }
    let end = publisher.snapshot();
    println!(
        "written {written}, refused {refused}; at most {} in the buffer, the longest for {:.0?}",
        end.depth_max, end.counts.waited_max
    );
    Ok(())
}

/// Some events are large, and from some number on the database is slow.
fn event(number: u32) -> Event {
    let slow = u8::from(SLOW.contains(&number));
    let length = if number.is_multiple_of(100) { 4_000 } else { 100 };
    vec![slow; length]
}

/// Asks for as much as it can write, and for no more.
async fn write(
    mut events: Subscription<Event>,
    workers: Workers,
) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let mut handles = Vec::new();
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        events.request(BATCH as u64);
        while batch.len() < BATCH
            && let Some(event) = events.next().await
        {
            batch.push(event?);
        }
        if batch.is_empty() {
            break;
        }
        // Waits when both workers are busy and two batches wait: then nothing is asked for either.
        let task = Task::new(store(batch)).within(Duration::from_secs(10));
        handles.push(workers.submit(task).await?);
    }
    let mut written = 0;
    for handle in handles {
        written += handle.await.unwrap_or_default();
    }
    Ok(written)
}

/// The database.
async fn store(batch: Vec<Event>) -> usize {
    let slow = batch.iter().any(|event| event.first() == Some(&1));
    sleep(Duration::from_millis(if slow { 400 } else { 20 })).await;
    batch.len()
}
