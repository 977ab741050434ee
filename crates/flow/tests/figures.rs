//! What a publisher with a slow consumer does, in exact figures on a paused clock: 100 items, a buffer of 16, a consumer
//! that asks for one item at a time and takes 10 ms for it.
//!
//! The same in real time is the example `slow_consumer`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tidegate_flow::{Drops, Policy, Publisher, Slowest, Subscription};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep, timeout};

const ITEMS: u64 = 100;
const BUFFER: u32 = 16;
/// Whole milliseconds, because that is what tokio's timers count in.
const ITEM: Duration = Duration::from_millis(10);

/// Asks for an item, takes its time for it, asks for the next; gives what it got.
fn consume(mut subscription: Subscription<u64>) -> JoinHandle<Vec<u64>> {
    subscription.request(1);
    tokio::spawn(async move {
        let mut got = Vec::new();
        while let Some(item) = subscription.next().await {
            got.push(item.unwrap());
            sleep(ITEM).await;
            subscription.request(1);
        }
        got
    })
}

#[expect(clippy::disallowed_methods, reason = "virtual time")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn submit_holds_its_producer_to_the_consumers_pace_and_loses_nothing() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let consumer = consume(publisher.subscribe());
    let began = now();
    for item in 0..ITEMS {
        publisher.submit(item).await.unwrap();
    }
    let blocked = began.elapsed();
    publisher.complete();
    assert_eq!(consumer.await.unwrap(), (0..ITEMS).collect::<Vec<_>>());

    // Sixteen in the buffer and the one asked for are taken at once. Each of the other 83 waits until the consumer is
    // done with one item. Nothing else costs time here.
    assert_eq!(blocked, ITEM * 83);
    assert_eq!(began.elapsed(), ITEM * 100);
    let end = publisher.snapshot();
    assert_eq!((end.counts.submitted, end.counts.delivered, end.counts.dropped), (100, 100, 0));
    assert_eq!((end.counts.blocked, end.counts.blocked_for), (83, ITEM * 83));
    assert_eq!((end.depth, end.depth_max), (0, 17));
}

#[tokio::test(start_paused = true)]
async fn offer_is_done_at_once_delivers_17_and_drops_83() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let consumer = consume(publisher.subscribe());
    let began = now();
    let mut dropped = Vec::new();
    for item in 0..ITEMS {
        publisher.offer_with(item, Drops::Newest, |item| dropped.push(item));
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    publisher.complete();
    assert_eq!(consumer.await.unwrap(), (0..17).collect::<Vec<_>>());
    assert_eq!(dropped, (17..ITEMS).collect::<Vec<_>>());
    let counts = publisher.snapshot().counts;
    assert_eq!((counts.submitted, counts.delivered, counts.dropped), (100, 17, 83));
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_drops_the_oldest_delivers_the_last_17() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let consumer = consume(publisher.subscribe());
    let dropped: u64 = (0..ITEMS).map(|item| publisher.offer(item, Drops::Oldest)).sum();
    publisher.complete();
    assert_eq!((dropped, consumer.await.unwrap()), (83, (83..ITEMS).collect::<Vec<_>>()));
}

/// An item that knows how many of its kind there are.
struct Counted(Arc<Live>);

#[derive(Default)]
struct Live {
    now: AtomicI64,
    most: AtomicI64,
    made: AtomicI64,
    asked_for: AtomicI64,
    /// The most that were made and not asked for: those that their producer holds.
    held_most: AtomicI64,
}

impl Counted {
    fn new(live: &Arc<Live>) -> Self {
        let now = live.now.fetch_add(1, Ordering::SeqCst) + 1;
        live.most.fetch_max(now, Ordering::SeqCst);
        let made = live.made.fetch_add(1, Ordering::SeqCst) + 1;
        live.held_most.fetch_max(made - live.asked_for.load(Ordering::SeqCst), Ordering::SeqCst);
        Self(Arc::clone(live))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A steady producer of a slow consumer holds at most a buffer and one item that nobody has asked for yet: the full buffer,
/// and the one that waits to get in. Together with the one that the consumer has asked for, that is all there is.
#[tokio::test(start_paused = true)]
async fn a_producer_never_holds_more_than_the_buffer_and_one_item() {
    let live = Arc::new(Live::default());
    let publisher = Publisher::new(Policy::new(BUFFER));
    let mut subscription = publisher.subscribe();
    let seen = Arc::clone(&live);
    let consumer = tokio::spawn(async move {
        let mut got = 0;
        loop {
            seen.asked_for.fetch_add(1, Ordering::SeqCst);
            subscription.request(1);
            let Some(item) = subscription.next().await else { return got };
            sleep(ITEM).await;
            drop(item.unwrap());
            got += 1;
        }
    });
    yield_now().await;
    for _ in 0..1_000 {
        publisher.submit(Counted::new(&live)).await.unwrap();
    }
    publisher.complete();
    assert_eq!(consumer.await.unwrap(), 1_000);
    assert_eq!(live.held_most.load(Ordering::SeqCst), i64::from(BUFFER) + 1);
    assert_eq!(live.most.load(Ordering::SeqCst), i64::from(BUFFER) + 2);
    assert_eq!(live.now.load(Ordering::SeqCst), 0, "an item was leaked");
}

/// The same in bytes: what is in the buffer never weighs more than the bound, however large the items are.
#[tokio::test(start_paused = true)]
async fn a_buffer_is_bounded_in_bytes_as_well() {
    let policy = Policy::new(1_000).with_bytes(4096, |line: &Vec<u8>| line.len() as u64);
    let publisher = Publisher::new(policy);
    let mut subscription = publisher.subscribe();
    let consumer = tokio::spawn(async move {
        let mut bytes = 0;
        while let Some(line) = subscription.pull().await {
            assert!(subscription.snapshot().bytes <= 4096);
            bytes += line.unwrap().len();
            sleep(ITEM).await;
        }
        bytes
    });
    let mut most = 0;
    let mut sent = 0;
    for number in 0..200_usize {
        let line = vec![0; number * 37 % 1500];
        sent += line.len();
        publisher.submit(line).await.unwrap();
        most = most.max(publisher.snapshot().bytes);
    }
    assert!((2700..=4096).contains(&most), "{most}");
    let refused = publisher.submit(vec![0; 4097]).await.unwrap_err();
    assert_eq!((refused.why, refused.item.len()), (tidegate_flow::Why::TooLarge, 4097));
    publisher.complete();
    assert_eq!(consumer.await.unwrap(), sent);
}

/// With several subscribers the slowest decides, and each gets everything.
#[tokio::test(start_paused = true)]
async fn the_slowest_of_several_decides() {
    let publisher = Publisher::multicast(Policy::new(4), 2.try_into().unwrap());
    let slow = consume(publisher.subscribe());
    let mut subscription = publisher.subscribe();
    let fast = tokio::spawn(async move {
        let mut got = Vec::new();
        while let Some(item) = subscription.pull().await {
            got.push(item.unwrap());
        }
        got
    });
    let began = now();
    for item in 0..50 {
        publisher.submit(item).await.unwrap();
    }
    assert_eq!(began.elapsed(), ITEM * 45);
    publisher.complete();
    let all: Vec<_> = (0..50).collect();
    assert_eq!((slow.await.unwrap(), fast.await.unwrap()), (all.clone(), all));
}

/// Or it is cut off when a producer has waited long enough for it, and is told why; the others never notice more than that.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_stands_still_is_cut_off() {
    let patience = Duration::from_millis(50);
    let policy = Policy::new(4).with_slowest(Slowest::CutOff { after: patience });
    let publisher = Publisher::multicast(policy, 2.try_into().unwrap());
    let slow_enough = consume(publisher.subscribe());
    let mut dead = publisher.subscribe();
    let began = now();
    for item in 0..9 {
        publisher.submit(item).await.unwrap();
    }
    // Four went in at once, the fifth waited for the one that does not ask, and then the other had room for the rest.
    assert_eq!(began.elapsed(), patience);
    publisher.complete();
    assert_eq!(slow_enough.await.unwrap(), (0..9).collect::<Vec<_>>());
    let failure = dead.next().await.unwrap().unwrap_err();
    assert!(matches!(failure, tidegate_flow::Failure::TooSlow { missed: 4 }), "{failure:?}");
    assert!(dead.next().await.is_none());
    let end = publisher.snapshot();
    assert_eq!((end.counts.cut_off, end.counts.dropped, end.depth), (1, 4, 0));
}

/// Patience counts from when somebody is in the way, and starts anew when he has moved: whoever takes an item in time is
/// slow, and not dead.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_moves_in_time_is_not_cut_off() {
    let policy = Policy::new(4).with_slowest(Slowest::CutOff { after: ITEM + Duration::from_millis(1) });
    let publisher = Publisher::new(policy);
    let consumer = consume(publisher.subscribe());
    for item in 0..50 {
        publisher.submit(item).await.unwrap();
    }
    publisher.complete();
    assert_eq!(consumer.await.unwrap().len(), 50);
}

/// A producer that gives up takes with it what it has waited: the next one has its own patience.
#[tokio::test(start_paused = true)]
async fn patience_begins_anew_when_nobody_waits_any_more() {
    let patience = Duration::from_millis(50);
    let publisher = Publisher::new(Policy::new(1).with_slowest(Slowest::CutOff { after: patience }));
    let mut subscription = publisher.subscribe();
    publisher.submit(0).await.unwrap();
    assert!(timeout(patience / 2, publisher.submit(1)).await.is_err());
    assert_eq!(subscription.snapshot().producers_waiting, 0);
    sleep(patience * 2).await;
    let began = now();
    let consumer = tokio::spawn(async move {
        sleep(patience / 2).await;
        subscription.pull().await.unwrap().unwrap()
    });
    publisher.submit(2).await.unwrap();
    assert_eq!((consumer.await.unwrap(), began.elapsed()), (0, patience / 2));
    assert_eq!(publisher.snapshot().counts.cut_off, 0);
}

/// Without patience nobody ever waits.
#[tokio::test(start_paused = true)]
async fn without_patience_a_full_subscriber_is_cut_off_at_once() {
    let policy = Policy::new(4).with_slowest(Slowest::CutOff { after: Duration::ZERO });
    let publisher = Publisher::new(policy);
    let _dead = publisher.subscribe();
    let began = now();
    for item in 0..4 {
        publisher.submit(item).await.unwrap();
    }
    let refused = publisher.submit(4).await.unwrap_err();
    assert_eq!(
        (refused.why, refused.item, began.elapsed()),
        (tidegate_flow::Why::NoSubscriber, 4, Duration::ZERO)
    );
}

/// A producer and a consumer that never have to wait leave their thread to others all the same.
#[tokio::test]
async fn those_who_never_wait_let_others_run() {
    let publisher = Publisher::new(Policy::new(0));
    let mut subscription = publisher.subscribe();
    subscription.request(u64::MAX);
    let busy = tokio::spawn(async move {
        loop {
            publisher.submit(1).await.unwrap();
            subscription.next().await.unwrap().unwrap();
        }
    });
    // Would never be reached.
    yield_now().await;
    busy.abort();
}
