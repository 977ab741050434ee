//! The slot and the answer's body.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use tidegate_tower::engine::*;
use tidegate_tower::{AnswerBody, Gate, GateLayer};
use tokio::sync::mpsc;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::*;

type Piece = Result<Frame<Bytes>, &'static str>;
type AnyBody = BoxBody<Bytes, &'static str>;

/// A body that ends when the sender is dropped.
fn streaming() -> (mpsc::Sender<Piece>, AnyBody) {
    let (sender, mut receiver) = mpsc::channel(8);
    let stream = futures_like(move |cx| receiver.poll_recv(cx));
    (sender, StreamBody::new(stream).boxed())
}

/// A stream from a function, for which a crate of its own would be too much.
fn futures_like<T>(
    poll: impl FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<T>> + Unpin,
) -> impl tokio_stream::Stream<Item = T> {
    struct Polled<F>(F);
    impl<T, F: FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<T>> + Unpin> tokio_stream::Stream
        for Polled<F>
    {
        type Item = T;
        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<T>> {
            (self.0)(cx)
        }
    }
    Polled(poll)
}

/// One call through a layer, answered by this.
async fn through<B: Body<Data = Bytes> + Send + 'static>(
    layer: &GateLayer,
    answer: Response<B>,
) -> Response<AnswerBody<B>> {
    let answer = std::sync::Arc::new(std::sync::Mutex::new(Some(answer)));
    let service = layer.layer(service_fn(move |_: Asked| {
        let answer = answer.lock().unwrap().take().unwrap();
        async move { Ok::<_, Infallible>(answer) }
    }));
    service.oneshot(get("/")).await.unwrap()
}

fn layer() -> (GateLayer, Gate, Heard) {
    let (gate, heard) = (gate(1, 0, 500), Heard::default());
    (heard.listen(GateLayer::new(gate.clone())), gate, heard)
}

fn data(text: &'static str) -> Piece {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

fn trailers(status: &'static str) -> Piece {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    Ok(Frame::trailers(trailers))
}

/// A8 (tower-http#447).
#[tokio::test(start_paused = true)]
async fn the_slot_is_held_until_the_body_ends() {
    let (layer, gate, heard) = layer();
    let (sender, body) = streaming();
    let mut body = through(&layer, Response::new(body)).await.into_body();
    sender.send(data("one")).await.unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
    assert_eq!(gate.snapshot().in_flight, 1);
    let (work, second) = (Work::new(), layer.clone());
    assert_eq!(work.behind(&second).oneshot(get("/")).await.unwrap().status(), 503);
    drop(sender);
    assert!(body.frame().await.is_none());
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Success]));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_frees_the_slot() {
    let (layer, gate, heard) = layer();
    let (_sender, body) = streaming();
    let answered = through(&layer, Response::new(body)).await;
    assert_eq!(gate.snapshot().in_flight, 1);
    drop(answered);
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Ignore]));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_frees_the_slot() {
    let (layer, gate, heard) = layer();
    let (sender, body) = streaming();
    let mut body = through(&layer, Response::new(body)).await.into_body();
    sender.send(Err("the disk is gone")).await.unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "the disk is gone");
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Failure]));
}

/// A7.
#[tokio::test(start_paused = true)]
async fn a_body_that_panics_frees_the_slot() {
    let (layer, gate, heard) = layer();
    let stream = futures_like(|_| -> std::task::Poll<Option<Piece>> { panic!("as it is meant to") });
    let mut body = through(&layer, Response::new(StreamBody::new(stream))).await.into_body();
    let panicked = tokio::spawn(async move { body.frame().await.is_none() }).await;
    assert!(panicked.unwrap_err().is_panic());
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Failure]));
}

/// hyper does not ask for what follows the last byte of a body whose length it knows.
#[tokio::test(start_paused = true)]
async fn the_last_byte_of_a_known_length_is_the_end() {
    let (layer, gate, heard) = layer();
    let mut body = through(&layer, Response::new(Full::<Bytes>::from("whole"))).await.into_body();
    assert_eq!(body.size_hint().exact(), Some(5));
    assert_eq!(gate.snapshot().in_flight, 1);
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "whole");
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Success]));
    assert!(body.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn without_a_body_the_head_is_the_end() {
    let (layer, gate, heard) = layer();
    let answered = through(&layer, Response::new(Empty::<Bytes>::new())).await;
    assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![Outcome::Success]));
    drop(answered);
    let switching = Response::builder().status(101).body(Empty::<Bytes>::new()).unwrap();
    drop(through(&layer, switching).await);
    assert_eq!(heard.outcomes(), [Outcome::Ignore], "what follows is another protocol, and no answer");
}

/// A gate whose limit is halved by an answer that took longer than a second.
fn learning() -> (GateLayer, Gate) {
    let limit = LimitPolicy::Aimd(AimdPolicy {
        min: number(1),
        max: number(8),
        initial: number(8),
        slow: Duration::from_secs(1),
        window: number(1),
        cooldown: Duration::ZERO,
    });
    let queue = QueuePolicy::of(millis(500), Capacity::Fixed(0));
    let gate = Gate::new(AdmissionPolicy::new(limit, queue));
    (GateLayer::new(gate.clone()), gate)
}

/// The limit learns at the head how long that took, however long the body is.
#[tokio::test(start_paused = true)]
async fn the_sample_is_taken_at_the_head() {
    let (layer, gate) = learning();
    let (_sender, body) = streaming();
    let quick = through(&layer, Response::new(body)).await;
    tokio::time::advance(Duration::from_secs(30)).await;
    drop(quick);
    assert_eq!(gate.snapshot().limit, 8, "a long body is not a slow answer");
    let slow = layer.layer(service_fn(|_: Asked| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok::<_, Infallible>(Response::new(streaming().1))
    }));
    let _body = slow.oneshot(get("/")).await.unwrap();
    assert_eq!((gate.snapshot().limit, gate.snapshot().in_flight), (4, 1), "and that was one");
}

/// Over gRPC it is taken when it is seen that no trailers follow the head at once, and not only when they come.
#[tokio::test(start_paused = true)]
async fn a_long_grpc_stream_is_not_a_slow_answer() {
    for message_at_once in [true, false] {
        let (layer, gate) = learning();
        let (sender, body) = streaming();
        let answer = Response::builder().header("content-type", "application/grpc").body(body).unwrap();
        let mut body = through(&layer, answer).await.into_body();
        if message_at_once {
            sender.send(data("message")).await.unwrap();
            body.frame().await.unwrap().unwrap();
        } else {
            let nothing = tokio::time::timeout(millis(10), body.frame()).await;
            assert!(nothing.is_err());
        }
        tokio::time::advance(Duration::from_secs(30)).await;
        sender.send(trailers("0")).await.unwrap();
        body.frame().await.unwrap().unwrap();
        assert_eq!((gate.snapshot().limit, gate.snapshot().in_flight), (8, 0), "{message_at_once}");
    }
}

#[tokio::test(start_paused = true)]
async fn trailers_pass_and_say_how_a_grpc_call_went() {
    for (status, outcome) in [
        ("0", Outcome::Success),
        ("14", Outcome::Overload),
        ("13", Outcome::Failure),
        ("5", Outcome::Success),
    ] {
        let (layer, gate, heard) = layer();
        let (sender, body) = streaming();
        let answer = Response::builder().header("content-type", "application/grpc").body(body).unwrap();
        let mut body = through(&layer, answer).await.into_body();
        sender.send(data("message")).await.unwrap();
        sender.send(trailers(status)).await.unwrap();
        assert!(body.frame().await.unwrap().unwrap().is_data());
        let last = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(last["grpc-status"], status);
        assert_eq!((gate.snapshot().in_flight, heard.outcomes()), (0, vec![outcome]), "{status}");
    }
}

/// A call that fails at once has its status in the trailers, right after the head: the limit learns that, and not that
/// all is well.
#[tokio::test(start_paused = true)]
async fn trailers_right_after_the_head_are_the_sample() {
    let mut policy = policy(8, 0, 500);
    policy.breaker = Some(BreakerPolicy { min_requests: number(1), ..BreakerPolicy::careful(millis(500)) });
    let gate = Gate::new(policy);
    let layer = GateLayer::new(gate.clone());
    for _ in 0..20 {
        let (sender, body) = streaming();
        sender.send(trailers("13")).await.unwrap();
        drop(sender);
        let answer = Response::builder().header("content-type", "application/grpc").body(body).unwrap();
        let answered = through(&layer, answer).await;
        if answered.headers().contains_key("proxy-status") {
            break;
        }
        answered.into_body().collect().await.unwrap();
    }
    assert_eq!(gate.snapshot().breaker, Some(BreakerState::Open));
}

#[tokio::test(start_paused = true)]
async fn whoever_knows_better_says_what_an_answer_means() {
    let (layer, _, heard) = layer();
    let layer = layer.with_outcome(|head| match head.headers.get("x-busy") {
        Some(_) => Outcome::Overload,
        None => Outcome::Success,
    });
    let busy = Response::builder().header("x-busy", "1").body(Empty::<Bytes>::new()).unwrap();
    drop(through(&layer, busy).await);
    let failed = Response::builder().status(500).body(Empty::<Bytes>::new()).unwrap();
    drop(through(&layer, failed).await);
    assert_eq!(heard.outcomes(), [Outcome::Overload, Outcome::Success]);
    let (sender, body) = streaming();
    sender.send(trailers("14")).await.unwrap();
    drop(sender);
    let answer = Response::builder().header("content-type", "application/grpc").body(body).unwrap();
    through(&layer, answer).await.into_body().collect().await.unwrap();
    assert_eq!(heard.outcomes(), [Outcome::Success], "also where trailers say something else");
}
