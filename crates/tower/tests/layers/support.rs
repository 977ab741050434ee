//! Gates, services that work until they are told to stop, and what came of a call.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use tidegate_tower::engine::*;
use tidegate_tower::{AnswerBody, Gate, GateEvent, GateLayer, GateService};
use tokio::sync::Semaphore;
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, service_fn};

pub(crate) type Asked = Request<Empty<Bytes>>;
pub(crate) type Answered = Response<AnswerBody<Full<Bytes>>>;
pub(crate) type Inner = BoxCloneSyncService<Asked, Response<Full<Bytes>>, Infallible>;

pub(crate) fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn policy(limit: u32, capacity: u32, wait_ms: u64) -> AdmissionPolicy {
    AdmissionPolicy::new(
        LimitPolicy::Fixed(number(limit)),
        QueuePolicy::of(millis(wait_ms), Capacity::Fixed(capacity)),
    )
}

pub(crate) fn gate(limit: u32, capacity: u32, wait_ms: u64) -> Gate {
    Gate::new(policy(limit, capacity, wait_ms))
}

pub(crate) fn get(path: &str) -> Asked {
    Request::get(path).body(Empty::new()).unwrap()
}

pub(crate) fn grpc(path: &str) -> Asked {
    Request::post(path).header("content-type", "application/grpc").body(Empty::new()).unwrap()
}

/// A service whose calls end one by one, when the test says so.
#[derive(Clone)]
pub(crate) struct Work {
    permission: Arc<Semaphore>,
    working: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
}

impl Work {
    pub(crate) fn new() -> Self {
        let zero = || Arc::new(AtomicUsize::new(0));
        Self { permission: Arc::new(Semaphore::new(0)), working: zero(), most: zero(), stopped: zero() }
    }

    /// So many calls, under way or to come, may end.
    pub(crate) fn finish(&self, calls: usize) {
        self.permission.add_permits(calls);
    }

    pub(crate) fn working(&self) -> usize {
        self.working.load(Ordering::SeqCst)
    }

    /// The most that were ever under way at once.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// How many were dropped before their end.
    pub(crate) fn stopped(&self) -> usize {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) async fn run(&self) {
        let mut shift = Shift { work: self.clone(), ended: false };
        let now = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.permission.acquire().await.unwrap().forget();
        shift.ended = true;
    }

    pub(crate) fn service(&self) -> Inner {
        let work = self.clone();
        BoxCloneSyncService::new(service_fn(move |_: Asked| {
            let work = work.clone();
            async move {
                work.run().await;
                Ok(Response::new(Full::from("done")))
            }
        }))
    }

    pub(crate) fn behind(&self, layer: &GateLayer) -> GateService<Inner> {
        layer.layer(self.service())
    }
}

struct Shift {
    work: Work,
    ended: bool,
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.work.working.fetch_sub(1, Ordering::SeqCst);
        if !self.ended {
            self.work.stopped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Lets every task go as far as it can.
pub(crate) async fn settle() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

/// The status and the text of an answer's body, which is read to its end.
pub(crate) async fn read(answered: Answered) -> (u16, String) {
    let status = answered.status().as_u16();
    let bytes = answered.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

/// The reason in a problem document.
pub(crate) async fn reason(answered: Answered) -> (u16, String) {
    assert_eq!(answered.headers()["content-type"], "application/problem+json");
    let (status, text) = read(answered).await;
    let reason = text.strip_prefix("{\"reason\":\"").and_then(|rest| rest.split('"').next());
    (status, reason.unwrap_or_else(|| panic!("no reason in {text}")).to_owned())
}

/// What a layer has told.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<GateEvent>>>);

impl Heard {
    pub(crate) fn listen(&self, layer: GateLayer) -> GateLayer {
        layer.with_observer(self.hear())
    }

    pub(crate) fn hear(&self) -> impl Fn(&GateEvent) + Send + Sync + 'static {
        let heard = self.0.clone();
        move |event| heard.lock().unwrap().push(*event)
    }

    pub(crate) fn take(&self) -> Vec<GateEvent> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The outcomes of those that have ended.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |event: GateEvent| match event {
            GateEvent::Ended { outcome, .. } => Some(outcome),
            _ => None,
        };
        self.take().into_iter().filter_map(outcome).collect()
    }
}
