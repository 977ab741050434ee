//! What a client gets as a body: ours, whole, or the upstream's, frame by frame.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::record::Record;
use crate::upstream::AnswerBody;

pub(crate) enum Body {
    Empty,
    Whole(Bytes),
    Upstream(Box<Delivery>),
}

/// The upstream's body and the record of its request, which ends with it.
pub(crate) struct Delivery {
    body: AnswerBody,
    /// `None` once it is written.
    record: Option<Record>,
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Whole(bytes) }
    }

    pub(crate) fn answer(body: AnswerBody, mut record: Record) -> Self {
        record.answer_began();
        Self::Upstream(Box::new(Delivery { body, record: Some(record) }))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = Self::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Upstream(delivery) => delivery.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Upstream(delivery) => delivery.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Upstream(delivery) => delivery.body.size_hint(),
        }
    }
}

impl Delivery {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(record), Some(data)) = (&mut self.record, frame.data_ref()) {
                    record.passed_on(data.len());
                }
            }
            None => self.end(Record::served),
            Some(Err(_)) => self.end(Record::cut_off),
        }
        Poll::Ready(frame)
    }

    fn end(&mut self, how: impl FnOnce(Record)) {
        if let Some(record) = self.record.take() {
            how(record);
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        // hyper does not read past a body of known length. Any other body that is dropped early was cut off by its
        // client, which is what a record says that is dropped.
        if self.body.has_ended() {
            self.end(Record::served);
        }
    }
}
