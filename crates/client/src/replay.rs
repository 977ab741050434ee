//! A request body that can be sent again: what has passed is kept, up to a bound, and what has not passed yet is taken
//! from where it comes.
//!
//! Nothing is collected beforehand, so a body that is made while it is sent is not delayed, and one that is longer than
//! the bound passes through unharmed; it can only be sent once.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::error::BoxError;

/// What a frame costs at least, so that a body of empty frames has an end too.
const FRAME_COST: usize = 64;

/// A body that the layer hands to the service below. Its data are [`Bytes`], whatever those of the body in it are.
pub struct ReplayBody<B> {
    /// `None` if there is nothing in it.
    source: Option<Arc<Mutex<Source<B>>>>,
    /// How many frames this one has given.
    given: usize,
    /// How much of it is still to come, as far as is known.
    size: SizeHint,
}

struct Source<B> {
    body: Pin<Box<B>>,
    kept: Vec<Kept>,
    /// How many frames have come out of the body.
    passed: usize,
    room: usize,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// More may come, and all that came is kept.
    Open,
    /// All of it is kept.
    Whole,
    /// More may come, and nothing is kept any more.
    TooLong,
    /// It broke off, or its end has passed and nothing is kept.
    Over,
}

#[derive(Clone, Debug)]
enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl<B: Body> ReplayBody<B> {
    /// Keeps at most `room` bytes.
    pub(crate) fn new(body: B, room: usize) -> Self {
        let size = body.size_hint();
        if body.is_end_stream() {
            return Self { source: None, given: 0, size: SizeHint::with_exact(0) };
        }
        // What is too long anyway need not be kept at all.
        let too_long = size.lower() > room as u64;
        let fate = if too_long { Fate::TooLong } else { Fate::Open };
        let source = Source { body: Box::pin(body), kept: Vec::new(), passed: 0, room, fate };
        Self { source: Some(Arc::new(Mutex::new(source))), given: 0, size }
    }
}

impl<B> ReplayBody<B> {
    /// The same body from its beginning. To be sent only while [`is_replayable`](Self::is_replayable).
    pub(crate) fn again(&self) -> Self {
        Self { source: self.source.clone(), given: 0, size: self.size }
    }

    /// Whether all that has passed is kept.
    pub(crate) fn is_replayable(&self) -> bool {
        self.fate().is_none_or(|fate| matches!(fate, Fate::Open | Fate::Whole))
    }

    /// Whether all of it is kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.fate().is_none_or(|fate| fate == Fate::Whole)
    }

    fn fate(&self) -> Option<Fate> {
        self.source.as_ref().map(|source| lock(source).fate)
    }
}

fn lock<B>(source: &Mutex<Source<B>>) -> MutexGuard<'_, Source<B>> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B> Source<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// The frame after so many.
    fn poll_after(
        &mut self,
        given: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(kept) = self.kept.get(given) {
            return Poll::Ready(Some(Ok(kept.clone().into_frame())));
        }
        match self.fate {
            Fate::Whole => return Poll::Ready(None),
            Fate::Over if given == self.passed => return Poll::Ready(None),
            Fate::Open | Fate::TooLong if given == self.passed => {}
            // Only what is replayable is sent again, but a body must not be shortened in silence if it ever is.
            _ => return Poll::Ready(Some(Err("the beginning of the body was not kept".into()))),
        }
        match ready!(self.body.as_mut().poll_frame(cx)) {
            None => {
                self.fate = if self.fate == Fate::Open { Fate::Whole } else { Fate::Over };
                Poll::Ready(None)
            }
            Some(Err(error)) => {
                self.fate = Fate::Over;
                Poll::Ready(Some(Err(error.into())))
            }
            Some(Ok(frame)) => {
                let Some(kept) = Kept::of(frame) else { return self.poll_after(given, cx) };
                self.passed += 1;
                self.keep(&kept);
                Poll::Ready(Some(Ok(kept.into_frame())))
            }
        }
    }

    fn keep(&mut self, frame: &Kept) {
        if self.fate != Fate::Open {
            return;
        }
        match self.room.checked_sub(frame.cost()) {
            Some(room) => {
                self.room = room;
                self.kept.push(frame.clone());
                // hyper does not ask for what follows the last byte of a body of known length.
                if self.body.is_end_stream() {
                    self.fate = Fate::Whole;
                }
            }
            None => {
                self.fate = Fate::TooLong;
                self.kept = Vec::new();
            }
        }
    }
}

impl Kept {
    fn of<D: Buf>(frame: Frame<D>) -> Option<Self> {
        match frame.into_data() {
            // No copy for what is `Bytes` already.
            Ok(mut data) => Some(Self::Data(data.copy_to_bytes(data.remaining()))),
            Err(frame) => frame.into_trailers().ok().map(Self::Trailers),
        }
    }

    fn into_frame(self) -> Frame<Bytes> {
        match self {
            Self::Data(data) => Frame::data(data),
            Self::Trailers(trailers) => Frame::trailers(trailers),
        }
    }

    /// The first small frame costs no more than its bytes, so that a body of exactly the bound fits.
    fn cost(&self) -> usize {
        match self {
            Self::Data(data) if data.is_empty() => FRAME_COST,
            Self::Data(data) => data.len(),
            Self::Trailers(trailers) => {
                let bytes = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                    name.as_str().len() + value.len() + FRAME_COST
                };
                trailers.iter().map(bytes).sum()
            }
        }
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(source) = &this.source else { return Poll::Ready(None) };
        let frame = ready!(lock(source).poll_after(this.given, cx));
        if let Some(Ok(frame)) = &frame {
            this.given += 1;
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            let mut left = SizeHint::new();
            left.set_lower(this.size.lower().saturating_sub(bytes));
            if let Some(upper) = this.size.upper() {
                left.set_upper(upper.saturating_sub(bytes).max(left.lower()));
            }
            this.size = left;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let Some(source) = &self.source else { return true };
        let source = lock(source);
        self.given == source.passed
            && (matches!(source.fate, Fate::Whole | Fate::Over) || source.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").field("fate", &self.fate()).field("given", &self.given).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full, channel::Channel};
    use std::convert::Infallible;

    async fn all<B: Body<Data = Bytes, Error = BoxError> + Unpin>(body: B) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    /// H8.
    #[tokio::test]
    async fn what_fits_can_be_sent_again() {
        for (room, replayable) in [(5, true), (4, false)] {
            let body = ReplayBody::new(Full::new(Bytes::from_static(b"hello")), room);
            let second = body.again();
            assert_eq!(body.size_hint().exact(), Some(5));
            assert_eq!(all(body).await, "hello");
            assert_eq!((second.is_replayable(), second.is_whole()), (replayable, replayable));
            if replayable {
                assert_eq!(second.again().size_hint().exact(), Some(5));
                assert_eq!(all(second).await, "hello");
            }
        }
        let empty = ReplayBody::new(http_body_util::Empty::<Bytes>::new(), 0);
        assert!(empty.is_end_stream() && empty.is_whole());
    }

    /// A body that is still being made: the second try gets what the first has had, and then what follows.
    #[tokio::test]
    async fn a_second_try_goes_on_where_the_first_was() {
        let (mut sender, channel) = Channel::<Bytes, Infallible>::new(4);
        let first = ReplayBody::new(channel, 100);
        let second = first.again();
        sender.send_data(Bytes::from_static(b"one ")).await.unwrap();
        let mut first = first;
        assert_eq!(first.frame().await.unwrap().unwrap().into_data().unwrap(), "one ");
        drop(first);
        assert!(second.is_replayable() && !second.is_whole());
        sender.send_data(Bytes::from_static(b"two")).await.unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", "7".parse().unwrap());
        sender.send_trailers(trailers).await.unwrap();
        drop(sender);
        let again = second.again();
        let whole = second.collect().await.unwrap();
        assert_eq!(whole.trailers().unwrap()["checksum"], "7");
        assert_eq!(whole.to_bytes(), "one two");
        assert!(again.is_whole());
        assert_eq!(all(again).await, "one two");
    }

    /// What is kept has a bound, also if each frame is empty; and what was not kept is never shortened in silence.
    #[tokio::test]
    async fn what_is_kept_has_a_bound() {
        let (mut sender, channel) = Channel::<Bytes, Infallible>::new(64);
        let mut body = ReplayBody::new(channel, 64 * 8);
        let again = body.again();
        for _ in 0..9 {
            sender.send_data(Bytes::new()).await.unwrap();
            body.frame().await.unwrap().unwrap();
        }
        assert!(!again.is_replayable());
        assert!(again.collect().await.is_err());
    }
}
