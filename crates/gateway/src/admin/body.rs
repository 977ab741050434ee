//! Bodies: what an operator gets, which is a whole one or events without an end, and what an operator sends.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::live::Follower;

pub(super) enum Body {
    Whole(Bytes),
    Events(Box<Follower>),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Events(follower) => {
                follower.poll_event(cx).map(|event| event.map(|it| Ok(Frame::data(it))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// A question has at most so many bytes.
const QUESTION_MAX: usize = 16 * 1024;
/// And comes within this time.
const QUESTION_TIME: Duration = Duration::from_secs(5);

/// Reads a short body to its end.
pub(super) async fn read(mut body: Incoming) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let whole = async {
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let Ok(frame) = frame else { return Err((StatusCode::BAD_REQUEST, "the body broke off\n")) };
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > QUESTION_MAX {
                return Err((StatusCode::PAYLOAD_TOO_LARGE, "the body has more than 16 KiB\n"));
            }
            bytes.extend_from_slice(data);
        }
        Ok(bytes)
    };
    timeout(QUESTION_TIME, whole)
        .await
        .unwrap_or(Err((StatusCode::REQUEST_TIMEOUT, "the body did not come\n")))
}
