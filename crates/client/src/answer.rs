//! The body of an answer: it holds the call's place until it has ended, and ends at the call's deadline.
//!
//! A place that is free at the head of the answer would let as many bodies stream at once as like (tower-http#447).

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::{BoxError, Error};
use crate::room::Slot;

/// So much of an answer that may not be the last is read ahead, so that its connection can be used again. More than that is
/// dearer than a new connection.
const AHEAD_MAX: usize = 16 * 1024;

/// The body of an answer. Dropping it gives up the rest. Its data are [`Bytes`], whatever those of the body in it are.
pub struct AnswerBody<B> {
    /// `None` once it has ended.
    inner: Option<Pin<Box<B>>>,
    /// Read already.
    ahead: VecDeque<Frame<Bytes>>,
    /// How it broke off behind that.
    broken: Option<Error>,
    slot: Option<Slot>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<B> AnswerBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(body: B) -> Self {
        let inner = (!body.is_end_stream()).then(|| Box::pin(body));
        Self { inner, ahead: VecDeque::new(), broken: None, slot: None, deadline: None }
    }

    /// It is given to whoever called. What has ended holds nothing.
    pub(crate) fn hold(&mut self, slot: Option<Slot>, deadline: Option<Instant>) {
        if self.inner.is_some() {
            self.slot = slot;
            self.deadline = deadline.map(|at| Box::pin(sleep_until(at)));
        }
    }

    /// Reads ahead to the end, if that is not far.
    pub(crate) async fn settle(&mut self) {
        let mut room = AHEAD_MAX;
        let near = |body: &Pin<Box<B>>| body.size_hint().lower() <= AHEAD_MAX as u64;
        if !self.inner.as_ref().is_some_and(near) {
            return;
        }
        while let Some(inner) = &mut self.inner {
            match poll_fn(|cx| inner.as_mut().poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    let frame = into_bytes(frame);
                    let cost = frame.data_ref().map_or(0, Bytes::len).max(1);
                    self.ahead.push_back(frame);
                    match room.checked_sub(cost) {
                        Some(left) => room = left,
                        None => return,
                    }
                }
                Some(Err(error)) => {
                    // It may be the last after all, and must not pass for a whole one then.
                    self.broken = Some(Error::Service(error.into()));
                    self.inner = None;
                }
                None => self.inner = None,
            }
        }
    }

    /// Whether nothing more of it is to come, so that its connection is free.
    pub(crate) const fn has_settled(&self) -> bool {
        self.inner.is_none()
    }

    fn end(&mut self) {
        self.inner = None;
        self.slot = None;
        self.deadline = None;
    }
}

fn into_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

impl<B> Body for AnswerBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        if let Some(frame) = this.ahead.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(inner) = &mut this.inner else { return Poll::Ready(this.broken.take().map(Err)) };
        // The deadline is looked at first: a body that always has something ready must not outlive it.
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            this.end();
            return Poll::Ready(Some(Err(Error::TimedOut)));
        }
        let frame = ready!(inner.as_mut().poll_frame(cx));
        // Nobody is made to ask for what follows the last byte of a body of known length.
        if inner.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            this.end();
        }
        Poll::Ready(frame.map(|frame| frame.map(into_bytes).map_err(|error| Error::Service(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty()
            && self.broken.is_none()
            && self.inner.as_ref().is_none_or(|inner| inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let ahead: u64 = self.ahead.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        let rest = match (&self.inner, &self.broken) {
            (Some(inner), _) => inner.size_hint(),
            (None, None) => SizeHint::with_exact(0),
            (None, Some(_)) => SizeHint::new(),
        };
        let mut size = SizeHint::new();
        size.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            size.set_upper(upper.saturating_add(ahead));
        }
        size
    }
}

impl<B> fmt::Debug for AnswerBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody").field("holds_place", &self.slot.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, channel::Channel};

    /// An answer that breaks off while it is read ahead breaks off for whoever is given it, at the same place: it is not
    /// complete because a retry was declined.
    #[tokio::test]
    async fn what_broke_off_ahead_breaks_off() {
        let (mut sender, channel) = Channel::<Bytes, BoxError>::new(4);
        let mut body = AnswerBody::new(channel);
        sender.send_data(Bytes::from_static(b"half of")).await.unwrap();
        sender.abort("the connection broke".into());
        body.settle().await;
        assert!(body.has_settled() && !body.is_end_stream());
        assert!(body.size_hint().upper().is_none(), "nobody knows how much is missing");
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half of");
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Service(error) if error.to_string() == "the connection broke"));
        assert!(body.frame().await.is_none() && body.is_end_stream());
    }

    /// What ends well is as long as it is.
    #[tokio::test]
    async fn what_was_read_ahead_is_whole() {
        let (mut sender, channel) = Channel::<Bytes, BoxError>::new(4);
        let mut body = AnswerBody::new(channel);
        sender.send_data(Bytes::from_static(b"all of it")).await.unwrap();
        drop(sender);
        body.settle().await;
        assert!(body.has_settled());
        assert_eq!(body.size_hint().exact(), Some(9));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "all of it");
    }
}
