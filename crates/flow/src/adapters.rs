//! To and from what others use: [`futures_core::Stream`], [`futures_sink::Sink`] and [`tokio::sync::mpsc`].
//!
//! The only module whose interface names another crate's types. Backpressure goes through all of them: a stream is
//! polled, and a channel received from, only when the publisher has taken what came before, and a subscription is asked
//! for no more than the other side has room for. None of them has a queue of its own, save the one item on its way.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::num::NonZeroU64;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use tokio::sync::mpsc;

use crate::publisher::Publisher;
use crate::signal::{Failure, Refused};
use crate::submit::Submission;
use crate::subscription::Subscription;

/// A subscription as a stream: whoever polls it asks. Ends after the last item, or after the failure.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct SubscriptionStream<T> {
    subscription: Subscription<T>,
    ask: NonZeroU64,
}

impl<T> SubscriptionStream<T> {
    /// A stream that asks for `ask` items whenever none is asked for. One is stop and wait; more saves little here, as
    /// what is asked for still waits in the buffer until it is polled for.
    pub const fn new(subscription: Subscription<T>, ask: NonZeroU64) -> Self {
        Self { subscription, ask }
    }

    /// The subscription.
    pub fn into_inner(self) -> Subscription<T> {
        self.subscription
    }
}

impl<T> Stream for SubscriptionStream<T> {
    type Item = Result<T, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let ask = self.ask.get();
        self.subscription.poll_signal(cx, ask)
    }
}

impl<T> From<Subscription<T>> for SubscriptionStream<T> {
    /// Asks for one item at a time.
    fn from(subscription: Subscription<T>) -> Self {
        Self::new(subscription, NonZeroU64::MIN)
    }
}

/// A publisher as a sink: it is ready when it has handed over the item before. Closing it completes the publisher.
///
/// Its error is an item that was not taken; after one it can be used again, unless the publisher is closed. An item on its
/// way when the sink is dropped was not submitted and is dropped too.
#[derive(Debug)]
#[must_use = "sinks do nothing unless polled"]
pub struct PublisherSink<T> {
    publisher: Publisher<T>,
    /// The item that waits for room.
    on_its_way: Option<Submission<T>>,
}

impl<T> PublisherSink<T> {
    /// A sink into this publisher.
    pub const fn new(publisher: Publisher<T>) -> Self {
        Self { publisher, on_its_way: None }
    }
}

impl<T> Sink<T> for PublisherSink<T> {
    type Error = Refused<T>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_flush(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, item: T) -> Result<(), Self::Error> {
        debug_assert!(self.on_its_way.is_none(), "start_send comes after poll_ready");
        self.on_its_way = Some(Submission::New(item));
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let Self { publisher, on_its_way } = &mut *self;
        let Some(submission) = on_its_way else { return Poll::Ready(Ok(())) };
        let taken = ready!(submission.poll(&publisher.shared, cx));
        *on_its_way = None;
        Poll::Ready(taken)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.publisher.complete();
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for PublisherSink<T> {
    fn drop(&mut self) {
        if let Some(mut submission) = mem::take(&mut self.on_its_way) {
            drop(submission.leave(&self.publisher.shared));
        }
    }
}

// The item is moved, never borrowed in place.
impl<T> Unpin for PublisherSink<T> {}

/// Submits everything that a stream gives. Does not complete the publisher: another stream may follow.
///
/// # Errors
///
/// The item that was not taken. The stream can be read on.
pub async fn publish<S>(stream: &mut S, publisher: &Publisher<S::Item>) -> Result<(), Refused<S::Item>>
where
    S: Stream + Unpin,
{
    while let Some(item) = poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await {
        publisher.submit(item).await?;
    }
    Ok(())
}

/// Submits everything that comes out of a channel, until it is closed. Does not complete the publisher.
///
/// # Errors
///
/// The item that was not taken. The channel can be received from again.
pub async fn publish_channel<T>(
    receiver: &mut mpsc::Receiver<T>,
    publisher: &Publisher<T>,
) -> Result<(), Refused<T>> {
    while let Some(item) = receiver.recv().await {
        publisher.submit(item).await?;
    }
    Ok(())
}

/// Sends everything that a subscription gives into a channel, and asks for an item only when the channel has room for it.
/// Returns when the publisher is done. Cancel safe: an item is asked for and not fetched, or it is in the channel.
///
/// # Errors
///
/// Why the subscription ended before, or that the channel's receiver is gone; then the subscription can be used on, as
/// the item that is asked for has not been fetched.
pub async fn forward<T>(
    subscription: &mut Subscription<T>,
    sender: &mpsc::Sender<T>,
) -> Result<(), ForwardError> {
    loop {
        let Ok(room) = sender.reserve().await else { return Err(ForwardError::Closed) };
        let item = {
            // A receiver that leaves while nothing is submitted is noticed at once, and not by the item that is lost.
            let mut closed = pin!(sender.closed());
            poll_fn(|cx| match closed.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(Err(ForwardError::Closed)),
                Poll::Pending => subscription.poll_signal(cx, 1).map(Ok),
            })
            .await?
        };
        match item {
            Some(Ok(item)) => room.send(item),
            Some(Err(failure)) => return Err(ForwardError::Failed(failure)),
            None => return Ok(()),
        }
    }
}

/// Why [`forward`] stopped before the publisher was done.
#[derive(Clone, Debug)]
pub enum ForwardError {
    /// The subscription failed.
    Failed(Failure),
    /// The receiver of the channel is gone.
    Closed,
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => write!(f, "the subscription failed: {failure}"),
            Self::Closed => f.write_str("the receiver of the channel is gone"),
        }
    }
}

impl Error for ForwardError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Closed => None,
        }
    }
}
