//! The rules of the Reactive Streams specification (1.0.4) that apply in Rust, one test each, named by its number.
//!
//! `docs/flow.md` lists all of them, and says of those that are not here why they do not apply.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use tidegate_flow::{Drops, Failure, Policy, Publisher, Subscription, Why};

const PLENTY: u32 = 64;

fn pair() -> (Publisher<u32>, Subscription<u32>) {
    let publisher = Publisher::new(Policy::new(PLENTY));
    let subscription = publisher.subscribe();
    (publisher, subscription)
}

fn multicast(subscribers: u32) -> Publisher<u32> {
    Publisher::multicast(Policy::new(PLENTY), subscribers.try_into().unwrap())
}

/// A signal that is there now.
#[derive(Debug, PartialEq)]
enum Signal {
    Item(u32),
    Failure(&'static str),
    End,
    Nothing,
}

/// Looks, and does not wait: whether a wake-up comes when it has to is another question, asked by [`Woken`].
fn signal(subscription: &mut Subscription<u32>) -> Signal {
    match pin!(subscription.next()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => Signal::Nothing,
        Poll::Ready(None) => Signal::End,
        Poll::Ready(Some(Ok(item))) => Signal::Item(item),
        Poll::Ready(Some(Err(failure))) => Signal::Failure(match failure {
            Failure::Failed(_) => "failed",
            Failure::Abandoned => "abandoned",
            Failure::AskedForNothing => "asked for nothing",
            Failure::TooSlow { .. } => "too slow",
            Failure::NoPlace => "no place",
        }),
    }
}

fn signals(subscription: &mut Subscription<u32>) -> Vec<Signal> {
    let mut all = Vec::new();
    loop {
        match signal(subscription) {
            Signal::Nothing => return all,
            Signal::End => {
                all.push(Signal::End);
                return all;
            }
            other => all.push(other),
        }
    }
}

fn items(numbers: std::ops::Range<u32>) -> Vec<Signal> {
    numbers.map(Signal::Item).collect()
}

fn submit(publisher: &Publisher<u32>, items: std::ops::Range<u32>) {
    items.for_each(|item| publisher.try_submit(item).unwrap());
}

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn rule_1_01_no_more_items_than_were_asked_for() {
    let (publisher, mut subscription) = pair();
    submit(&publisher, 0..20);
    assert_eq!(signals(&mut subscription), []);
    subscription.request(3);
    assert_eq!(signals(&mut subscription), items(0..3));
    subscription.request(2);
    assert_eq!(signals(&mut subscription), items(3..5));
}

#[test]
fn rule_1_02_fewer_items_than_were_asked_for_and_then_the_end() {
    let (publisher, mut subscription) = pair();
    subscription.request(100);
    submit(&publisher, 0..3);
    publisher.complete();
    assert_eq!(signals(&mut subscription), [Signal::Item(0), Signal::Item(1), Signal::Item(2), Signal::End]);
}

/// Four producers on four threads: what one of them submits first comes first, and `&mut` keeps signals apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rule_1_03_signals_come_one_after_the_other_in_order() {
    let publisher = Publisher::new(Policy::new(8));
    let mut subscription = publisher.subscribe();
    for producer in 0..4_u32 {
        let publisher = publisher.clone();
        tokio::spawn(async move {
            for number in 0..500 {
                publisher.submit((producer, number)).await.unwrap();
            }
        });
    }
    let mut next = [0; 4];
    for _ in 0..2_000 {
        let (producer, number) = subscription.pull().await.unwrap().unwrap();
        assert_eq!(number, std::mem::replace(&mut next[producer as usize], number + 1));
    }
}

#[test]
fn rule_1_04_a_publisher_that_fails_says_so() {
    let (publisher, mut subscription) = pair();
    submit(&publisher, 0..1);
    publisher.fail("the disk is full");
    subscription.request(1);
    assert_eq!(signals(&mut subscription), [Signal::Item(0), Signal::Failure("failed"), Signal::End]);
    // And one that vanishes has failed too.
    let (publisher, mut subscription) = pair();
    drop(publisher.clone());
    assert_eq!(signal(&mut subscription), Signal::Nothing);
    drop(publisher);
    assert_eq!(signals(&mut subscription), [Signal::Failure("abandoned"), Signal::End]);
}

#[test]
fn rule_1_05_a_publisher_that_is_done_says_so() {
    let (publisher, mut subscription) = pair();
    submit(&publisher, 0..2);
    assert!(publisher.complete());
    subscription.request(1);
    // Nothing that was taken is lost by the end.
    assert_eq!(signals(&mut subscription), items(0..1));
    subscription.request(1);
    assert_eq!(signals(&mut subscription), [Signal::Item(1), Signal::End]);
}

#[test]
fn rule_1_06_with_its_last_signal_a_subscription_is_cancelled() {
    for fails in [false, true] {
        let (publisher, subscription) = pair();
        if fails {
            publisher.fail("broken")
        } else {
            publisher.complete()
        };
        assert_eq!(publisher.snapshot().subscribers, 0);
        assert_eq!(publisher.try_submit(0).unwrap_err().why, Why::Closed);
        drop(subscription);
    }
}

#[test]
fn rule_1_07_after_the_last_signal_there_is_none() {
    let (publisher, mut subscription) = pair();
    publisher.fail("first");
    assert!(!publisher.complete(), "it has failed already");
    assert!(!publisher.fail("second"), "it has failed already");
    subscription.request(10);
    drop(publisher);
    assert_eq!(signals(&mut subscription), [Signal::Failure("failed"), Signal::End]);
    assert_eq!(signals(&mut subscription), [Signal::End]);
}

#[test]
fn rule_1_08_a_cancelled_subscription_gets_no_more_signals() {
    let (publisher, mut subscription) = pair();
    subscription.request(10);
    submit(&publisher, 0..5);
    assert_eq!(signal(&mut subscription), Signal::Item(0));
    subscription.cancel();
    publisher.offer(5, Drops::Newest);
    publisher.fail("too late to tell");
    assert_eq!(signals(&mut subscription), [Signal::End]);
}

#[test]
fn rule_1_09_there_is_always_a_subscription_and_a_refusal_is_its_only_signal() {
    let (publisher, _first) = pair();
    let mut second = publisher.subscribe();
    assert_eq!(signals(&mut second), [Signal::Failure("no place"), Signal::End]);
    publisher.complete();
    assert_eq!(signals(&mut publisher.subscribe()), [Signal::End]);
    let failed = multicast(2);
    failed.fail("broken");
    assert_eq!(signals(&mut failed.subscribe()), [Signal::Failure("failed"), Signal::End]);
}

#[test]
fn rule_1_10_one_may_subscribe_as_often_as_one_likes() {
    let publisher = multicast(2);
    let mut first = publisher.subscribe();
    for round in 0..1_000 {
        let mut second = publisher.subscribe();
        second.request(1);
        first.request(1);
        submit(&publisher, round..round + 1);
        assert_eq!(signals(&mut second), items(round..round + 1));
        assert_eq!(signals(&mut first), items(round..round + 1));
    }
    assert_eq!(publisher.snapshot().subscribers, 1);
    assert_eq!(publisher.snapshot().counts.delivered, 2_000);
}

#[test]
fn rule_1_11_a_publisher_serves_one_subscriber_or_all_of_several() {
    let publisher = multicast(3);
    let mut all = [publisher.subscribe(), publisher.subscribe(), publisher.subscribe()];
    submit(&publisher, 0..4);
    for subscription in &mut all {
        subscription.request(u64::MAX);
        assert_eq!(signals(subscription), items(0..4));
    }
    // One of several gets what is submitted after it has come, and nothing from before.
    drop(all);
    let mut late = publisher.subscribe();
    submit(&publisher, 4..6);
    late.request(10);
    assert_eq!(signals(&mut late), items(4..6));
}

#[test]
fn rule_2_01_without_demand_there_is_no_item() {
    let (publisher, mut subscription) = pair();
    submit(&publisher, 0..1);
    assert_eq!(signal(&mut subscription), Signal::Nothing);
    // And `pull` is what asks for one.
    let pulled = pin!(subscription.pull()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(pulled, Poll::Ready(Some(Ok(0)))));
}

#[test]
fn rule_2_04_after_the_last_signal_a_request_does_nothing() {
    let (publisher, mut subscription) = pair();
    publisher.complete();
    assert_eq!(signal(&mut subscription), Signal::End);
    subscription.request(1);
    subscription.request(0);
    subscription.cancel();
    assert_eq!(signal(&mut subscription), Signal::End);
    assert_eq!(subscription.demand().outstanding(), 0);
}

#[test]
fn rule_2_06_a_subscription_that_is_dropped_is_cancelled() {
    let (publisher, subscription) = pair();
    submit(&publisher, 0..5);
    drop(subscription);
    let snapshot = publisher.snapshot();
    assert_eq!((snapshot.subscribers, snapshot.depth, snapshot.counts.dropped), (0, 0, 5));
    assert_eq!(publisher.try_submit(5).unwrap_err().why, Why::NoSubscriber);
}

/// Eight threads ask for a thousand items each, all at once: no request is lost.
#[test]
fn rule_2_07_requests_from_many_threads_are_put_in_order() {
    let (_publisher, subscription) = pair();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let demand = subscription.demand();
            scope.spawn(move || (0..1_000).for_each(|_| demand.request(1)));
        }
    });
    assert_eq!(subscription.demand().outstanding(), 8_000);
}

#[test]
fn rule_2_08_what_was_pending_when_it_was_cancelled_is_dropped() {
    let (publisher, mut subscription) = pair();
    subscription.request(10);
    submit(&publisher, 0..5);
    subscription.demand().cancel();
    assert_eq!(signal(&mut subscription), Signal::End);
    assert_eq!(publisher.snapshot().counts.dropped, 5);
}

#[test]
fn rule_2_09_completion_needs_no_demand() {
    let (publisher, mut subscription) = pair();
    publisher.complete();
    assert_eq!(signal(&mut subscription), Signal::End);
}

#[test]
fn rule_2_10_failure_needs_no_demand() {
    let (publisher, mut subscription) = pair();
    publisher.fail("broken");
    assert_eq!(signal(&mut subscription), Signal::Failure("failed"));
}

#[test]
fn rule_2_12_no_two_subscriptions_are_the_same() {
    let publisher = multicast(2);
    let old = publisher.subscribe();
    let stale = old.demand();
    drop(old);
    // The newcomer has the old one's place in the table, and nothing else of it.
    let mut new = publisher.subscribe();
    stale.request(5);
    submit(&publisher, 0..1);
    assert_eq!((signal(&mut new), new.demand().outstanding()), (Signal::Nothing, 0));
    stale.cancel();
    new.request(1);
    assert_eq!(signal(&mut new), Signal::Item(0));
}

/// A waker that panics stands for all code of the subscriber's that runs when it is signalled.
#[test]
fn rule_2_13_a_subscriber_that_panics_harms_nobody_else() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("woken");
        }
    }
    let publisher = multicast(2);
    let mut bad = publisher.subscribe();
    let mut good = publisher.subscribe();
    bad.request(1);
    good.request(2);
    let waker = Waker::from(Arc::new(Panics));
    assert!(pin!(bad.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(pin!(good.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    let submitted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| publisher.try_submit(0)));
    assert!(submitted.is_err(), "raised to whoever caused the signal");
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "the other one was signalled all the same");
    drop(bad);
    submit(&publisher, 1..2);
    assert_eq!(signals(&mut good), items(0..2));
}

/// The one who asks is woken by nobody but itself, and may ask from within what its own wake-up runs.
#[test]
fn rule_3_02_one_may_ask_for_more_from_within_a_signal() {
    struct Asks(std::sync::Mutex<Option<tidegate_flow::Demand<u32>>>);
    impl Wake for Asks {
        fn wake(self: Arc<Self>) {
            let demand = self.0.lock().unwrap();
            demand.as_ref().unwrap().request(1);
        }
    }
    let (publisher, mut subscription) = pair();
    let waker = Waker::from(Arc::new(Asks(std::sync::Mutex::new(Some(subscription.demand())))));
    subscription.request(1);
    assert!(pin!(subscription.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    submit(&publisher, 0..2);
    assert_eq!(signals(&mut subscription), items(0..2));
}

/// Two hundred thousand items, each asked for when the one before has come: no depth of calls grows with their number.
#[test]
fn rule_3_03_asking_and_getting_do_not_recurse() {
    let (publisher, mut subscription) = pair();
    for item in 0..200_000 {
        subscription.request(1);
        publisher.try_submit(item).unwrap();
        assert_eq!(signal(&mut subscription), Signal::Item(item));
    }
}

/// Asking runs nothing of the subscriber's or the producer's: it lets in who waits, and wakes.
#[test]
fn rule_3_04_a_request_does_little_and_returns() {
    let publisher = Publisher::new(Policy::new(0));
    let subscription = publisher.subscribe();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut waiting: Vec<_> = (0..1_000_u32).map(|item| Box::pin(publisher.submit(item))).collect();
    for submit in &mut waiting {
        assert!(submit.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    subscription.request(1);
    // One was let in, so one was woken; the others did not hear of it.
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
}

#[test]
fn rule_3_05_cancelling_is_idempotent_and_safe_from_any_thread() {
    let (publisher, mut subscription) = pair();
    submit(&publisher, 0..5);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let demand = subscription.demand();
            scope.spawn(move || (0..100).for_each(|_| demand.cancel()));
        }
    });
    assert_eq!(signal(&mut subscription), Signal::End);
    assert_eq!(publisher.snapshot().counts.dropped, 5);
}

#[test]
fn rule_3_06_after_cancelling_a_request_does_nothing() {
    let (publisher, mut subscription) = pair();
    subscription.cancel();
    subscription.request(5);
    subscription.request(0);
    assert_eq!((signal(&mut subscription), subscription.demand().outstanding()), (Signal::End, 0));
    assert_eq!(publisher.try_submit(0).unwrap_err().why, Why::NoSubscriber);
}

#[test]
fn rule_3_07_after_cancelling_cancelling_does_nothing() {
    let publisher = multicast(2);
    let first = publisher.subscribe();
    first.cancel();
    let mut second = publisher.subscribe();
    first.cancel();
    drop(first);
    second.request(1);
    submit(&publisher, 0..1);
    assert_eq!(signal(&mut second), Signal::Item(0));
}

#[test]
fn rule_3_08_requests_add_up() {
    let (publisher, mut subscription) = pair();
    subscription.request(2);
    subscription.request(3);
    assert_eq!(subscription.demand().outstanding(), 5);
    submit(&publisher, 0..10);
    assert_eq!(signals(&mut subscription), items(0..5));
}

#[test]
fn rule_3_09_asking_for_nothing_is_a_failure_told_to_the_subscriber() {
    let publisher = multicast(2);
    let (mut wrong, mut right) = (publisher.subscribe(), publisher.subscribe());
    submit(&publisher, 0..3);
    wrong.request(1);
    wrong.request(0);
    assert_eq!(signals(&mut wrong), [Signal::Failure("asked for nothing"), Signal::End]);
    // It is that subscriber's failure, and nobody else's.
    right.request(3);
    assert_eq!(signals(&mut right), items(0..3));
    assert!(Failure::AskedForNothing.to_string().contains("request(0)"));
    // Also when the publisher is done, as long as that has not been told.
    submit(&publisher, 3..5);
    publisher.complete();
    right.request(0);
    assert_eq!(signals(&mut right), [Signal::Failure("asked for nothing"), Signal::End]);
}

/// The publisher makes use of the right to let items in while somebody asks, in the thread that asks.
#[test]
fn rule_3_10_a_request_may_bring_an_item_at_once() {
    let publisher = Publisher::new(Policy::new(0));
    let mut subscription = publisher.subscribe();
    let mut waiting = pin!(publisher.submit(7));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    subscription.request(1);
    assert_eq!(signal(&mut subscription), Signal::Item(7));
    assert!(matches!(waiting.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(()))));
}

#[test]
fn rule_3_11_a_request_may_bring_the_end_at_once() {
    let (publisher, mut subscription) = pair();
    submit(&publisher, 0..1);
    publisher.complete();
    assert_eq!(signal(&mut subscription), Signal::Nothing);
    subscription.request(1);
    assert_eq!(signals(&mut subscription), [Signal::Item(0), Signal::End]);
}

/// Those who wait for room are told that there is nobody any more.
#[test]
fn rule_3_12_cancelling_stops_the_publisher() {
    let publisher = Publisher::new(Policy::new(0));
    let subscription = publisher.subscribe();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut waiting = pin!(publisher.submit(7));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    subscription.cancel();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Err(refused)) = waiting.poll(&mut Context::from_waker(&waker)) else { panic!() };
    assert_eq!((refused.why, refused.item), (Why::NoSubscriber, 7));
}

#[test]
fn rule_3_13_cancelling_drops_all_that_is_held_of_the_subscriber() {
    let publisher = Publisher::new(Policy::new(PLENTY));
    let mut subscription = publisher.subscribe();
    let woken = Arc::new(Woken::default());
    let task: Weak<Woken> = Arc::downgrade(&woken);
    let waker = Waker::from(woken);
    assert!(pin!(subscription.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    let item = Arc::new(1);
    publisher.try_submit(Arc::clone(&item)).unwrap();
    assert!(task.upgrade().is_some());
    subscription.demand().cancel();
    assert!(task.upgrade().is_none(), "its waker is kept");
    assert_eq!(Arc::strong_count(&item), 1, "its items are kept");
}

/// It is left to the publisher what becomes of it when the last subscriber leaves: this one goes on, for the next.
#[test]
fn rule_3_14_a_publisher_outlives_its_last_subscriber() {
    let (publisher, subscription) = pair();
    drop(subscription);
    assert!(!publisher.is_closed());
    let mut next = publisher.subscribe();
    submit(&publisher, 0..1);
    next.request(1);
    assert_eq!(signal(&mut next), Signal::Item(0));
}

#[test]
fn rule_3_15_cancelling_returns_in_every_state() {
    let (publisher, subscription) = pair();
    let demand = subscription.demand();
    demand.cancel();
    publisher.complete();
    demand.cancel();
    drop(subscription);
    demand.cancel();
    drop(publisher);
    demand.cancel();
}

#[test]
fn rule_3_16_asking_returns_in_every_state() {
    let (publisher, subscription) = pair();
    let demand = subscription.demand();
    for more in [0, 1, u64::MAX] {
        demand.request(more);
    }
    publisher.fail("broken");
    demand.request(0);
    drop(subscription);
    demand.request(u64::MAX);
    drop(publisher);
    demand.request(0);
}

#[test]
fn rule_3_17_demand_saturates_and_is_then_without_end() {
    let (publisher, mut subscription) = pair();
    subscription.request(u64::MAX - 1);
    subscription.request(u64::MAX);
    assert_eq!(subscription.demand().outstanding(), u64::MAX);
    submit(&publisher, 0..3);
    assert_eq!(signals(&mut subscription), items(0..3));
    assert_eq!(subscription.demand().outstanding(), u64::MAX);
    // However much is asked for, the buffer does not grow.
    let taken = (0..1_000).filter(|item| publisher.try_submit(*item).is_ok()).count();
    assert_eq!(taken, PLENTY as usize + 1);
}
