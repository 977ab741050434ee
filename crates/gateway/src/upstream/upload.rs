//! The request body on its way to the upstream, and how far it has come.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tidegate_engine::Timestamp;
use tidegate_tower::Clock;

use crate::connection::Client;
use crate::socket::Socket;
use crate::stream::Stream;

/// What is sent to the upstream as a body: the client's, frame by frame, never more than one at a time.
pub(crate) struct RequestBody {
    /// `None` when there is nothing to send.
    incoming: Option<Incoming>,
    /// `None` for a request without a body, which has nothing to follow.
    upload: Option<Arc<Upload>>,
    /// Where it goes if it is dropped unread.
    kept: Option<Arc<Mutex<Option<Self>>>>,
}

/// A body that is wanted back if whoever was to send it has not read any of it.
pub(super) struct Kept(Arc<Mutex<Option<RequestBody>>>);

impl Kept {
    /// The body, if it was dropped unread.
    pub(super) fn take_back(&self) -> Option<RequestBody> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// How far a request body has come.
pub(crate) struct Upload {
    clock: Clock,
    /// Where it comes from.
    socket: Arc<Socket>,
    stream: Option<Arc<Stream>>,
    last_frame: AtomicU64,
    begun: AtomicBool,
    complete: AtomicBool,
    broken: AtomicBool,
}

impl RequestBody {
    pub(crate) fn new(incoming: Option<Incoming>, client: &Client) -> Self {
        let clock = client.worker.shared.clock;
        let incoming = incoming.filter(|incoming| !incoming.is_end_stream());
        let upload = incoming.is_some().then(|| {
            client.socket.upload_began();
            Arc::new(Upload {
                clock,
                socket: client.socket.clone(),
                stream: Stream::current(),
                last_frame: AtomicU64::new(clock.now().as_nanos()),
                begun: AtomicBool::new(false),
                complete: AtomicBool::new(false),
                broken: AtomicBool::new(false),
            })
        });
        Self { incoming, upload, kept: None }
    }

    /// Nothing to send.
    pub(super) const fn none() -> Self {
        Self { incoming: None, upload: None, kept: None }
    }

    pub(crate) fn has_content(&self) -> bool {
        self.upload.is_some()
    }

    /// Wants it back if it is dropped unread, for as long as what is returned is kept.
    pub(super) fn keep(&mut self) -> Kept {
        let kept = Arc::default();
        self.kept = Some(Arc::clone(&kept));
        Kept(kept)
    }

    pub(super) fn upload(&self) -> Option<Arc<Upload>> {
        self.upload.clone()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(upload) = &self.upload else { return };
        if let Some(kept) = self.kept.take()
            && !upload.begun.load(Relaxed)
        {
            let back = Self { incoming: self.incoming.take(), upload: self.upload.take(), kept: None };
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(back);
            // If nobody wants it any more, it ends with the last handle on its place, and that is here.
            return;
        }
        if !upload.is_complete() {
            // Its client may still be sending, and must not be reset before it has read its answer.
            upload.socket.left_unread();
        }
        upload.socket.upload_ended();
    }
}

impl Upload {
    /// Something of it was handed on, or it ended.
    fn moved(&self) {
        self.begun.store(true, Relaxed);
        self.last_frame.store(self.clock.now().as_nanos(), Relaxed);
        self.socket.body_moved();
        if let Some(stream) = &self.stream {
            stream.moved();
        }
    }

    /// When the upstream was given something last.
    pub(super) fn last_frame(&self) -> Timestamp {
        Timestamp::from_nanos(self.last_frame.load(Relaxed))
    }

    /// Whether the client broke off, or sent what is not a body.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    /// Whether it was given everything.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.load(Relaxed)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(incoming) = &mut this.incoming else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *incoming).poll_frame(cx);
        if let (Poll::Ready(frame), Some(upload)) = (&polled, &this.upload) {
            upload.moved();
            let is_last = match frame {
                None => true,
                // Nothing can follow trailers, and hyper does not ask.
                Some(Ok(frame)) => frame.is_trailers() || incoming.is_end_stream(),
                Some(Err(_)) => {
                    upload.broken.store(true, Relaxed);
                    false
                }
            };
            if is_last {
                upload.complete.store(true, Relaxed);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
