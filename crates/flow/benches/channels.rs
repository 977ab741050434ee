//! What an item costs, beside tokio's channel in the same run: `cargo xtask bench flow`.
//!
//! The channel is what one would use instead. It has one buffer, one consumer, and no demand, weights, counters or clock.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tidegate_flow::{Drops, Policy, Publisher};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

fn main() {
    divan::main();
}

const ITEMS: u64 = 10_000;
const BUFFERS: [u32; 2] = [16, 1024];

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// One item in and out again, nobody waits.
#[divan::bench_group(name = "in_and_out")]
mod in_and_out {
    use super::*;

    #[divan::bench]
    fn tidegate(bencher: Bencher<'_, '_>) {
        let publisher = Publisher::new(Policy::new(16));
        let mut subscription = publisher.subscribe();
        subscription.request(u64::MAX);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        bencher.bench_local(|| {
            publisher.try_submit(black_box(1_u64)).unwrap();
            black_box(subscription.poll_signal(&mut cx, 0))
        });
    }

    #[divan::bench]
    fn tidegate_weighed(bencher: Bencher<'_, '_>) {
        let publisher = Publisher::new(Policy::new(16).with_bytes(1 << 20, |item: &u64| *item));
        let mut subscription = publisher.subscribe();
        subscription.request(u64::MAX);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        bencher.bench_local(|| {
            publisher.try_submit(black_box(1_u64)).unwrap();
            black_box(subscription.poll_signal(&mut cx, 0))
        });
    }

    #[divan::bench]
    fn tokio_mpsc(bencher: Bencher<'_, '_>) {
        let (sender, mut receiver) = mpsc::channel(16);
        bencher.bench_local(|| {
            sender.try_send(black_box(1_u64)).unwrap();
            black_box(receiver.try_recv().unwrap())
        });
    }
}

/// A producer and a consumer that take turns on one thread: each waits when the buffer is full or empty.
#[divan::bench_group(name = "ten_thousand_items")]
mod ten_thousand_items {
    use super::*;

    #[divan::bench(args = BUFFERS)]
    fn tidegate(bencher: Bencher<'_, '_>, buffer: u32) {
        let runtime = runtime();
        bencher.counter(ItemsCount::new(ITEMS)).bench_local(|| {
            runtime.block_on(async {
                let publisher = Publisher::new(Policy::new(buffer));
                let mut subscription = publisher.subscribe();
                let consumer = tokio::spawn(async move {
                    let mut sum = 0;
                    subscription.request(u64::MAX);
                    while let Some(Ok(item)) = subscription.next().await {
                        sum += item;
                    }
                    sum
                });
                for item in 0..ITEMS {
                    publisher.submit(item).await.unwrap();
                }
                publisher.complete();
                consumer.await.unwrap()
            })
        });
    }

    #[divan::bench(args = BUFFERS)]
    fn tokio_mpsc(bencher: Bencher<'_, '_>, buffer: u32) {
        let runtime = runtime();
        bencher.counter(ItemsCount::new(ITEMS)).bench_local(|| {
            runtime.block_on(async {
                let (sender, mut receiver) = mpsc::channel(buffer as usize);
                let consumer = tokio::spawn(async move {
                    let mut sum = 0;
                    while let Some(item) = receiver.recv().await {
                        sum += item;
                    }
                    sum
                });
                for item in 0..ITEMS {
                    sender.send(item).await.unwrap();
                }
                drop(sender);
                consumer.await.unwrap()
            })
        });
    }
}

/// What does not fit is dropped.
#[divan::bench_group(name = "full")]
mod full {
    use super::*;

    #[divan::bench(args = [Drops::Newest, Drops::Oldest])]
    fn tidegate_offer(bencher: Bencher<'_, '_>, drops: Drops) {
        let publisher = Publisher::new(Policy::new(16));
        let _subscription = publisher.subscribe();
        (0..16).for_each(|item| publisher.try_submit(item).unwrap());
        bencher.bench_local(|| black_box(publisher.offer(black_box(1_u64), drops)));
    }

    #[divan::bench]
    fn tokio_mpsc_try_send(bencher: Bencher<'_, '_>) {
        let (sender, _receiver) = mpsc::channel(16);
        (0..16).for_each(|item| sender.try_send(item).unwrap());
        bencher.bench_local(|| black_box(sender.try_send(black_box(1_u64)).is_err()));
    }
}
