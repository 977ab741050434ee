//! To and from streams, sinks and channels: nothing is lost on the way, and backpressure goes all the way through.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::{SinkExt, Stream, StreamExt};
use tidegate_flow::adapters::*;
use tidegate_flow::*;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;

const BUFFER: u32 = 4;

/// Counts, and how far it was asked to.
struct Numbers(Arc<AtomicU32>);

impl Stream for Numbers {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
        Poll::Ready(Some(self.0.fetch_add(1, Ordering::SeqCst)))
    }
}

#[tokio::test]
async fn a_stream_is_polled_no_further_than_the_publisher_takes() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let mut subscription = publisher.subscribe();
    let polled = Arc::new(AtomicU32::new(0));
    let mut stream = Numbers(Arc::clone(&polled));
    let publishes = tokio::spawn(async move { publish(&mut stream, &publisher).await });
    yield_now().await;
    assert_eq!(polled.load(Ordering::SeqCst), BUFFER + 1);
    subscription.request(3);
    for expected in 0..3 {
        assert_eq!(subscription.next().await.unwrap().unwrap(), expected);
    }
    yield_now().await;
    assert_eq!(polled.load(Ordering::SeqCst), BUFFER + 1 + 3);
    drop(subscription);
    let refused = publishes.await.unwrap().unwrap_err();
    assert_eq!((refused.why, refused.item), (Why::NoSubscriber, BUFFER + 3));
}

#[tokio::test]
async fn a_subscription_is_a_stream_that_ends_with_its_failure() {
    for ask in [1, 3, u64::MAX] {
        let publisher = Publisher::new(Policy::new(BUFFER));
        let ask = NonZeroU64::new(ask).unwrap();
        let stream = SubscriptionStream::new(publisher.subscribe(), ask);
        let collects = tokio::spawn(stream.collect::<Vec<_>>());
        for number in 0..20 {
            publisher.submit(number).await.unwrap();
        }
        publisher.fail("the end");
        let mut got = collects.await.unwrap();
        assert!(matches!(got.pop(), Some(Err(Failure::Failed(_)))));
        assert_eq!(got.into_iter().map(Result::unwrap).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_publisher_is_a_sink_that_is_ready_when_it_has_handed_over() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let subscription = publisher.subscribe();
    let mut sink = PublisherSink::new(publisher.clone());
    for number in 0..=BUFFER {
        sink.feed(number).await.unwrap();
    }
    // One more than the buffer is on its way, so it is not ready for the next.
    let mut cx = Context::from_waker(Waker::noop());
    assert!(sink.poll_ready_unpin(&mut cx).is_pending());
    assert_eq!(publisher.snapshot().producers_waiting, 1);
    let stream = SubscriptionStream::from(subscription);
    let collects = tokio::spawn(stream.map(Result::unwrap).collect::<Vec<_>>());
    sink.send(BUFFER + 1).await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(collects.await.unwrap(), (0..BUFFER + 2).collect::<Vec<_>>());
    let refused = sink.send(9).await.unwrap_err();
    assert_eq!((refused.why, refused.item), (Why::Closed, 9));
}

#[tokio::test]
async fn a_sink_that_is_dropped_leaves_the_line() {
    let publisher = Publisher::new(Policy::new(0));
    let mut subscription = publisher.subscribe();
    let mut sink = PublisherSink::new(publisher.clone());
    sink.feed(1).await.unwrap();
    assert!(sink.poll_flush_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(sink);
    assert_eq!(publisher.snapshot().producers_waiting, 0);
    subscription.request(1);
    publisher.try_submit(2).unwrap();
    assert_eq!(subscription.next().await.unwrap().unwrap(), 2);
}

/// From a channel through a publisher into a channel: all bounds hold, everything arrives in order.
#[tokio::test]
async fn channels_in_and_out() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let mut subscription = publisher.subscribe();
    let (send_in, mut receive_in) = mpsc::channel(1);
    let (send_out, mut receive_out) = mpsc::channel(2);
    tokio::spawn(async move {
        publish_channel(&mut receive_in, &publisher).await.unwrap();
        publisher.complete();
    });
    let forwards = tokio::spawn(async move { forward(&mut subscription, &send_out).await });
    // Nobody receives: one in each hand, and what the two channels and the buffer hold.
    let mut taken = 0;
    while timeout(Duration::from_millis(50), send_in.send(taken)).await.is_ok() {
        taken += 1;
    }
    // Channel in, hand of the publisher, buffer, channel out. Nothing is asked for while the channel out is full.
    assert_eq!(taken, 1 + 1 + BUFFER + 2);
    let sends = tokio::spawn(async move {
        for number in taken..100 {
            send_in.send(number).await.unwrap();
        }
    });
    let mut got = Vec::new();
    while let Some(number) = receive_out.recv().await {
        got.push(number);
    }
    assert_eq!(got, (0..100).collect::<Vec<_>>());
    sends.await.unwrap();
    forwards.await.unwrap().unwrap();
}

/// The receiver leaves while nothing is submitted: that is noticed at once, and the next item is not lost in the channel.
#[tokio::test]
async fn a_receiver_that_leaves_costs_no_item() {
    let publisher = Publisher::new(Policy::new(BUFFER));
    let mut subscription = publisher.subscribe();
    let (sender, receiver) = mpsc::channel(1);
    let forwards = tokio::spawn(async move { (forward(&mut subscription, &sender).await, subscription) });
    yield_now().await;
    drop(receiver);
    let (end, mut subscription) = forwards.await.unwrap();
    assert!(matches!(end, Err(ForwardError::Closed)));
    publisher.try_submit(7).unwrap();
    assert_eq!(subscription.next().await.unwrap().unwrap(), 7);
}

#[tokio::test]
async fn a_failure_is_forwarded_as_such() {
    let publisher = Publisher::<u32>::new(Policy::new(BUFFER));
    let mut subscription = publisher.subscribe();
    let (sender, _receiver) = mpsc::channel(1);
    drop(publisher);
    let end = forward(&mut subscription, &sender).await;
    assert!(matches!(end, Err(ForwardError::Failed(Failure::Abandoned))));
}
