//! Producers that wait: their order, those who leave, and that none of the user's code runs under the lock.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tidegate_flow::*;
use tokio::time::{sleep, timeout};

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn next<T>(subscription: &mut Subscription<T>) -> Option<T> {
    match subscription.poll_signal(&mut Context::from_waker(Waker::noop()), 1) {
        Poll::Ready(Some(Ok(item))) => Some(item),
        _ => None,
    }
}

/// A5 (embassy#6964). Ten thousand producers wait, and all but the last leave: the last is next.
#[test]
fn those_who_leave_take_no_wake_up_along() {
    let publisher = Publisher::new(Policy::new(0));
    let mut subscription = publisher.subscribe();
    let mut waiting: Vec<_> = (0..10_000).map(|item| Box::pin(publisher.submit(item))).collect();
    assert!(waiting.iter_mut().all(|submit| poll(submit).is_pending()));
    let mut last = waiting.pop().unwrap();
    drop(waiting);
    assert_eq!(publisher.snapshot().producers_waiting, 1);
    assert_eq!(next(&mut subscription), Some(9_999));
    assert!(matches!(poll(&mut last), Poll::Ready(Ok(()))));
    let counts = publisher.snapshot().counts;
    assert_eq!((counts.submitted, counts.delivered, counts.dropped), (1, 1, 0));
}

/// A heavy item at the head waits for bytes. A light one would fit, and does not go past it: not by waiting, not by trying,
/// not by being offered; and when the heavy one leaves, the light one moves up.
#[test]
fn nobody_overtakes_those_who_wait() {
    let publisher = Publisher::new(Policy::new(10).with_bytes(100, |bytes: &u64| *bytes));
    let mut subscription = publisher.subscribe();
    publisher.try_submit(60).unwrap();
    let mut heavy = Box::pin(publisher.submit(50));
    let mut light = Box::pin(publisher.submit(1));
    assert!(poll(&mut heavy).is_pending() && poll(&mut light).is_pending());
    assert_eq!(publisher.try_submit(2).unwrap_err().why, Why::Full);
    assert_eq!(publisher.offer(3, Drops::Newest), 1);
    drop(heavy);
    assert!(matches!(poll(&mut light), Poll::Ready(Ok(()))));
    assert_eq!(
        [next(&mut subscription), next(&mut subscription), next(&mut subscription)],
        [Some(60), Some(1), None]
    );
}

/// A submission that was taken is taken, even if its producer left before it heard of it; one that was not is given back.
#[test]
fn leaving_loses_nothing() {
    let publisher = Publisher::new(Policy::new(0));
    let mut subscription = publisher.subscribe();
    let mut first = Box::pin(publisher.submit(1));
    let mut second = Box::pin(publisher.submit(2));
    let third = publisher.submit(3);
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    subscription.request(1);
    // It does not know yet that it has been taken.
    assert_eq!(Pin::into_inner(first).take_back(), None);
    assert_eq!(Pin::into_inner(second).take_back(), Some(2));
    assert_eq!(third.take_back(), Some(3));
    assert_eq!((next(&mut subscription), next(&mut subscription)), (Some(1), None));
    // A waiting one that has been refused meanwhile has its item too.
    let mut fourth = Box::pin(publisher.submit(4));
    subscription.cancel();
    assert!(matches!(poll(&mut fourth), Poll::Ready(Err(Refused { why: Why::NoSubscriber, item: 4 }))));
    let fifth = Box::pin(publisher.submit(5));
    assert_eq!(Pin::into_inner(fifth).take_back(), Some(5));
}

/// The consumer gives up over and over, just when something comes: it gets everything all the same, in order.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_gives_up_over_and_over_loses_nothing() {
    let publisher = Publisher::new(Policy::new(2));
    let mut subscription = publisher.subscribe();
    tokio::spawn(async move {
        for item in 0..200_u64 {
            sleep(Duration::from_millis(item % 3)).await;
            publisher.submit(item).await.unwrap();
        }
        publisher.complete();
    });
    let mut got = Vec::new();
    loop {
        match timeout(Duration::from_millis(1), subscription.pull()).await {
            Ok(Some(item)) => got.push(item.unwrap()),
            Ok(None) => break,
            Err(_) => {
                assert!(subscription.demand().outstanding() <= 1, "asked again for what it had asked for")
            }
        }
    }
    assert_eq!(got, (0..200).collect::<Vec<_>>());
}

/// Eight producers that submit as fast as they can to a slow consumer have the same share, whoever began.
#[tokio::test(start_paused = true)]
async fn producers_take_turns() {
    let publisher = Publisher::new(Policy::new(4));
    let mut subscription = publisher.subscribe();
    for producer in 0..8_usize {
        let publisher = publisher.clone();
        tokio::spawn(async move { while publisher.submit(producer).await.is_ok() {} });
    }
    drop(publisher);
    let mut shares = [0_u32; 8];
    for _ in 0..805 {
        shares[subscription.pull().await.unwrap().unwrap()] += 1;
        sleep(Duration::from_millis(1)).await;
    }
    // The first found the buffer empty.
    assert_eq!(shares, [105, 100, 100, 100, 100, 100, 100, 100]);
}

#[test]
fn the_end_gives_items_back_to_those_who_wait() {
    let publisher = Publisher::new(Policy::new(0));
    let _subscription = publisher.subscribe();
    let mut waiting = Box::pin(publisher.submit(1));
    assert!(poll(&mut waiting).is_pending());
    publisher.complete();
    assert!(matches!(poll(&mut waiting), Poll::Ready(Err(Refused { why: Why::Closed, item: 1 }))));
    assert_eq!(publisher.snapshot().counts.refused, 1);
}

/// A submission is for those who were there when it was made, and those who leave meanwhile are not waited for.
#[test]
fn a_submission_is_for_those_who_were_there() {
    let publisher = Publisher::multicast(Policy::new(0), 3.try_into().unwrap());
    let (mut stays, leaves) = (publisher.subscribe(), publisher.subscribe());
    stays.request(1);
    let mut waiting = Box::pin(publisher.submit(7));
    assert!(poll(&mut waiting).is_pending());
    let mut comes = publisher.subscribe();
    comes.request(1);
    drop(leaves);
    assert!(matches!(poll(&mut waiting), Poll::Ready(Ok(()))));
    assert_eq!((next(&mut stays), next(&mut comes)), (Some(7), None));
}

/// One that panics when it is copied harms nobody: copies are made before the lock is taken.
#[test]
fn an_item_that_panics_when_it_is_copied_is_not_submitted() {
    struct Bomb;
    impl Clone for Bomb {
        fn clone(&self) -> Self {
            panic!("copied");
        }
    }
    let publisher = Publisher::multicast(Policy::new(4), 2.try_into().unwrap());
    let (first, second) = (publisher.subscribe(), publisher.subscribe());
    assert!(catch_unwind(AssertUnwindSafe(|| publisher.try_submit(Bomb))).is_err());
    assert_eq!((publisher.snapshot().depth, first.snapshot().counts.submitted), (0, 0));
    drop(second);
    publisher.try_submit(Bomb).unwrap();
    assert_eq!(publisher.snapshot().depth, 1);
}

/// Items are dropped after the lock is released, so what they do when they are dropped may use the publisher.
#[test]
fn an_item_may_use_its_publisher_when_it_is_dropped() {
    struct Looks(Option<Demand<Self>>, Arc<AtomicU32>);
    impl Drop for Looks {
        fn drop(&mut self) {
            if let Some(demand) = &self.0 {
                demand.outstanding();
                self.1.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let publisher = Publisher::new(Policy::new(2));
    let subscription = publisher.subscribe();
    let drops = Arc::new(AtomicU32::new(0));
    let item = || Looks(Some(subscription.demand()), Arc::clone(&drops));
    for _ in 0..3 {
        publisher.offer(item(), Drops::Oldest);
    }
    assert!(publisher.try_submit(item()).is_err());
    let mut waiting = Box::pin(publisher.submit(item()));
    assert!(poll(&mut waiting).is_pending());
    drop(waiting);
    assert_eq!(drops.load(Ordering::SeqCst), 3);
    subscription.request(0);
    assert_eq!(drops.load(Ordering::SeqCst), 5);
}

/// The same for wakers, which may be the last that holds a task and with it a handle: of a consumer, of a producer that
/// waits, and of one that leaves.
#[test]
fn a_waker_may_use_the_publisher_when_it_is_dropped() {
    struct Looks(Demand<u32>, Arc<AtomicU32>);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.outstanding();
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let publisher = Publisher::new(Policy::new(0));
    let mut subscription = publisher.subscribe();
    let drops = Arc::new(AtomicU32::new(0));
    let demand = subscription.demand();
    let waker = || Waker::from(Arc::new(Looks(demand.clone(), Arc::clone(&drops))));
    for _ in 0..3 {
        assert!(subscription.poll_signal(&mut Context::from_waker(&waker()), 0).is_pending());
    }
    assert_eq!(drops.load(Ordering::SeqCst), 2);
    let mut submit = Box::pin(publisher.submit(1));
    for _ in 0..3 {
        assert!(submit.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
    }
    assert_eq!(drops.load(Ordering::SeqCst), 4);
    drop(submit);
    assert_eq!(drops.load(Ordering::SeqCst), 5);
    subscription.cancel();
    assert_eq!(drops.load(Ordering::SeqCst), 6);
}

/// Items need not be `Sync`, and nobody's handle is tied to a thread.
#[test]
fn handles_go_from_thread_to_thread() {
    fn goes<T: Send>() {}
    fn is_shared<T: Sync>() {}
    type Item = std::cell::Cell<u8>;
    goes::<Publisher<Item>>();
    is_shared::<Publisher<Item>>();
    goes::<Subscription<Item>>();
    goes::<Submit<'_, Item>>();
    is_shared::<Demand<Item>>();
    is_shared::<Workers>();
    goes::<Worker>();
}
