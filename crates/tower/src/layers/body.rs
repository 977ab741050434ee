//! What a caller gets as a body: the service's, which holds the slot until it has ended, or a refusal's.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tidegate_engine::Outcome;

use crate::layers::answer::Whole;
use crate::layers::deadline::Deadline;
use crate::layers::outcome;
use crate::layers::slot::Slot;

pin_project! {
    /// The body of an answer that has come through a layer. Frames, trailers and size are the service's own.
    ///
    /// The slot is free when the body has ended, has failed, or is dropped.
    pub struct AnswerBody<B> {
        #[pin]
        kind: Kind<B>,
        delivery: Delivery,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B> {
        Service { #[pin] body: B },
        Refusal { whole: Whole },
    }
}

/// What is to be done while a body goes out.
#[derive(Default)]
struct Delivery {
    /// `None` once it has ended, and for what needs none.
    slot: Option<Slot>,
    outcome: Option<Outcome>,
    /// Trailers may say something else.
    by_trailers: bool,
    /// Bytes that are still to come, where that is known.
    left: Option<u64>,
    deadline: Option<Deadline>,
}

impl<B> AnswerBody<B> {
    pub(crate) fn refusal(whole: Whole) -> Self {
        Self { kind: Kind::Refusal { whole }, delivery: Delivery::default() }
    }

    /// A body that holds nothing.
    pub(crate) fn free(body: B) -> Self {
        Self { kind: Kind::Service { body }, delivery: Delivery::default() }
    }
}

impl<B: Body> AnswerBody<B> {
    /// The outcome is `None` if the head does not say it. Trailers may still say that it was no success after all, unless
    /// somebody has judged by the head alone.
    pub(crate) fn held(
        body: B,
        slot: Option<Slot>,
        (outcome, by_trailers): (Option<Outcome>, bool),
        deadline: Option<Deadline>,
    ) -> Self {
        let mut delivery = Delivery { slot, outcome, by_trailers, left: body.size_hint().exact(), deadline };
        if let (Some(slot), Some(outcome)) = (&mut delivery.slot, outcome) {
            slot.sample(outcome);
        }
        if body.is_end_stream() {
            delivery.end();
        }
        Self { kind: Kind::Service { body }, delivery }
    }
}

impl Delivery {
    /// Nothing has come right after the head that would say more than it.
    fn nothing_yet(&mut self) {
        if self.outcome.is_none() {
            self.outcome = Some(Outcome::Success);
            if let Some(slot) = &mut self.slot {
                slot.sample(Outcome::Success);
            }
        }
    }

    fn trailers(&mut self, trailers: &HeaderMap) {
        if self.by_trailers
            && let Some(outcome) = outcome::of_grpc(trailers)
            && self.outcome.is_none_or(|known| known == Outcome::Success)
        {
            self.outcome = Some(outcome);
        }
        self.end();
    }

    fn data(&mut self, bytes: usize) {
        self.nothing_yet();
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
            // hyper does not ask for what follows the last byte of a body of known length.
            if *left == 0 {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        if let Some(slot) = self.slot.take() {
            slot.end(self.outcome.unwrap_or(Outcome::Success));
        }
    }

    fn fail(&mut self) {
        if let Some(slot) = self.slot.take() {
            slot.end(Outcome::Failure);
        }
    }
}

impl<B> Body for AnswerBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let mut body = match this.kind.project() {
            KindProjection::Service { body } => body,
            KindProjection::Refusal { whole } => {
                return Poll::Ready(whole.take().map(|bytes| Ok(Frame::data(bytes.into()))));
            }
        };
        let Delivery { slot, deadline, .. } = this.delivery;
        let frame = Slot::during(slot, deadline.as_ref(), || body.as_mut().poll_frame(cx));
        let delivery = this.delivery;
        match &frame {
            Poll::Pending => delivery.nothing_yet(),
            Poll::Ready(None) => delivery.end(),
            Poll::Ready(Some(Err(_))) => delivery.fail(),
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    delivery.trailers(trailers);
                } else if let Some(data) = frame.data_ref() {
                    delivery.data(data.remaining());
                }
                if body.is_end_stream() {
                    delivery.end();
                }
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Service { body } => body.is_end_stream(),
            Kind::Refusal { whole } => whole.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Service { body } => body.size_hint(),
            Kind::Refusal { whole } => SizeHint::with_exact(whole.len()),
        }
    }
}

impl<B> fmt::Debug for AnswerBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (refusal, slot) = (matches!(self.kind, Kind::Refusal { .. }), self.delivery.slot.is_some());
        f.debug_struct("AnswerBody").field("refusal", &refusal).field("slot", &slot).finish_non_exhaustive()
    }
}
