//! A publisher with a slow consumer: does its producer slow down, or does it drop? In real time, with what it costs.
//!
//! ```sh
//! cargo run --release -p tidegate-flow --example slow_consumer
//! ```
//!
//! One hundred items, a buffer of sixteen, a consumer that asks for one item at a time and takes 10 ms for it. The first
//! seventeen need no waiting: sixteen for the buffer, and the one that has been asked for. `submit` waits with each of the
//! other 83 until the consumer asks for its next; `offer` drops them.

use std::error::Error;
use std::time::{Duration, Instant};

use tidegate_flow::{Drops, Failure, Policy, Publisher, Snapshot, Subscription};

const ITEMS: u32 = 100;
const BUFFER: u32 = 16;
const ITEM: Duration = Duration::from_millis(10);

/// How the producer hands its items over.
#[derive(Clone, Copy, Debug)]
enum How {
    Submit,
    Offer(Drops),
}

struct Row {
    how: How,
    /// Until the producer was done.
    producer: Duration,
    /// Until the consumer was.
    consumer: Duration,
    first: Option<u32>,
    last: Option<u32>,
    end: Snapshot,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{ITEMS} items, buffer {BUFFER}, {ITEM:?} an item");
    println!(
        "{:14} {:>12} {:>12} {:>10} {:>8} {:>12} {:>10}",
        "", "producer", "consumer", "delivered", "dropped", "numbers", "in buffer"
    );
    for how in [How::Submit, How::Offer(Drops::Newest), How::Offer(Drops::Oldest)] {
        play(how).await?.print();
    }
    Ok(())
}

async fn play(how: How) -> Result<Row, Box<dyn Error>> {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let subscription = publisher.subscribe();
    // Asked for before anything is there: this one never waits for demand.
    subscription.request(1);
    let consumer = tokio::spawn(consume(subscription));

    let began = now();
    for number in 0..ITEMS {
        match how {
            How::Submit => publisher.submit(number).await?,
            How::Offer(drops) => {
                publisher.offer(number, drops);
            }
        }
    }
    let producer = began.elapsed();
    publisher.complete();
    let got = consumer.await??;
    let end = publisher.snapshot();
    let row = Row {
        how,
        producer,
        consumer: began.elapsed(),
        first: got.first().copied(),
        last: got.last().copied(),
        end,
    };
    Ok(row)
}

async fn consume(mut subscription: Subscription<u32>) -> Result<Vec<u32>, Failure> {
    let mut got = Vec::new();
    while let Some(number) = subscription.next().await {
        got.push(number?);
        tokio::time::sleep(ITEM).await;
        subscription.request(1);
    }
    Ok(got)
}

impl Row {
    fn print(&self) {
        let counts = &self.end.counts;
        println!(
            "{:14} {:>9.1} ms {:>9.1} ms {:>10} {:>8} {:>12} {:>10}",
            match self.how {
                How::Submit => "submit",
                How::Offer(Drops::Newest) => "offer, newest",
                How::Offer(Drops::Oldest) => "offer, oldest",
            },
            self.producer.as_secs_f64() * 1e3,
            self.consumer.as_secs_f64() * 1e3,
            counts.delivered,
            counts.dropped,
            format!("{}..={}", self.first.unwrap_or_default(), self.last.unwrap_or_default()),
            self.end.depth_max,
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}
