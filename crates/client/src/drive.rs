//! The life of a call: asked, in line, sent, answered, and perhaps again. The same for every kind of client.
//!
//! Here is the order of things and the waiting; what is decided is the engine's, and what is sent is the exchange's.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::{Stop, Timestamp};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::ambient::Ambient;
use crate::error::Refusal;
use crate::reading::Reading;
use crate::room::Slot;
use crate::upstream::{Flight, Paused, Upstream};

/// What there is to know of a call before it is made.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) deadline: Timestamp,
    pub(crate) try_timeout: Option<Duration>,
    /// Doing it twice is as good as once.
    pub(crate) idempotent: bool,
    /// It is for this layer to try again.
    pub(crate) may_retry: bool,
    /// Which try of the layer above it is.
    pub(crate) attempt: u32,
    pub(crate) ambient: Option<Ambient>,
}

/// What a try has to say on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    /// Which try it is, over all layers.
    pub(crate) attempt: u32,
    /// What is left of the deadline.
    pub(crate) left: Duration,
}

/// One request that can be sent, and how its answers are read.
pub(crate) trait Exchange {
    type Answer;
    type Failure;

    /// Sends it. What comes back holds nothing of the exchange, so that there may be two.
    fn send(
        &mut self,
        leave: Leave,
    ) -> impl Future<Output = Result<Self::Answer, Self::Failure>> + Send + use<Self>;

    /// Whether all of it could be sent once more.
    fn is_replayable(&self) -> bool;

    /// Whether all of it is at hand, so that it could be sent once more while it is being sent.
    fn is_at_hand(&self) -> bool;

    /// What has come of a try.
    fn read(result: &Result<Self::Answer, Self::Failure>) -> Reading;

    /// Reads what is left of an answer that may not be the last, so that its connection is free during the pause.
    fn settle(answer: &mut Self::Answer) -> impl Future<Output = ()> + Send;

    /// Whether nothing of an answer is left to be read.
    fn has_settled(answer: &Self::Answer) -> bool;
}

/// How a call ends.
pub(crate) enum End<A, F> {
    /// With an answer, good or bad, and the place that it holds until its body has ended.
    Answer(A, Option<Slot>),
    /// With a failure of the service.
    Failure(F),
    /// With no answer in time.
    TimedOut,
    /// With nothing sent.
    Refused(Refusal),
}

type Came<E> = Option<Result<<E as Exchange>::Answer, <E as Exchange>::Failure>>;

/// What has come of the last try, while the next is not sent yet.
struct Last<E: Exchange> {
    came: Came<E>,
    reading: Reading,
    /// That of an answer of which not all has been read, and whose connection is in use. The next try is made in it.
    slot: Option<Slot>,
}

/// Makes a call.
pub(crate) async fn drive<E: Exchange>(
    upstream: &Arc<Upstream>,
    ask: &Ask,
    exchange: &mut E,
) -> End<E::Answer, E::Failure> {
    if let Err(declined) = upstream.arrive(ask.deadline) {
        return refused::<E>(upstream, ask, None, declined.into());
    }
    let mut earlier: Option<(Paused, Last<E>)> = None;
    loop {
        let held = earlier.as_mut().and_then(|(_, last)| last.slot.take());
        let entered = match held {
            Some(slot) => Ok(slot),
            None => upstream.room.enter(upstream.clock, ask.deadline).await,
        };
        let slot = match entered {
            Ok(slot) => slot,
            Err(refusal) => {
                let last = earlier.map(|(paused, last)| {
                    paused.decline();
                    last
                });
                return refused(upstream, ask, last, refusal);
            }
        };
        let (flight, last) = match earlier.take() {
            None => (upstream.send(ask.deadline), None),
            Some((paused, last)) => (paused.resume(), Some(last)),
        };
        let flight = match flight {
            Ok(flight) => flight,
            Err(declined) => {
                let last = last.map(|last| Last { slot: Some(slot), ..last });
                return refused(upstream, ask, last, declined.into());
            }
        };
        drop(last);
        let (flight, came) = fly(upstream, ask, exchange, flight).await;
        let reading = came.as_ref().map_or(Reading::TIMED_OUT, E::read);
        let repeatable =
            ask.may_retry && reading.again && (ask.idempotent || reading.undone) && exchange.is_replayable();
        match flight.answered(reading, repeatable, ask.deadline) {
            Err(stop) => {
                upstream.meter.stopped(stop);
                mark(ask, reading, stop);
                return end(came, Some(slot));
            }
            Ok(paused) => {
                upstream.meter.retried();
                let last = pause::<E>(upstream, &paused, Last { came, reading, slot: Some(slot) }).await;
                earlier = Some((paused, last));
            }
        }
    }
}

/// Waits until the retry is to be sent, and meanwhile reads what there is of the answer. With nothing left to be read there
/// is no place to be held.
async fn pause<E: Exchange>(upstream: &Upstream, paused: &Paused, mut last: Last<E>) -> Last<E> {
    let until = upstream.clock.instant(paused.until());
    let is_read = match &mut last.came {
        Some(Ok(answer)) => {
            let _settled = timeout_at(until, E::settle(answer)).await;
            E::has_settled(answer)
        }
        Some(Err(_)) | None => true,
    };
    if is_read {
        last.slot = None;
    }
    sleep_until(until).await;
    last
}

/// Nothing is sent now. What came of an earlier try is the end then, as if no other had been decided on.
fn refused<E: Exchange>(
    upstream: &Upstream,
    ask: &Ask,
    last: Option<Last<E>>,
    refusal: Refusal,
) -> End<E::Answer, E::Failure> {
    upstream.meter.refused(refusal);
    let Some(last) = last else { return End::Refused(refusal) };
    upstream.meter.stopped(Stop::Declined);
    mark(ask, last.reading, Stop::Declined);
    end(last.came, last.slot)
}

fn end<A, F>(came: Option<Result<A, F>>, slot: Option<Slot>) -> End<A, F> {
    match came {
        Some(Ok(answer)) => End::Answer(answer, slot),
        Some(Err(failure)) => End::Failure(failure),
        None => End::TimedOut,
    }
}

/// Tells the request that is being served that a call for it has failed for good, if this was the layer to try again.
fn mark(ask: &Ask, reading: Reading, stop: Stop) {
    let tried = match stop {
        Stop::Told | Stop::Attempts | Stop::Deadline | Stop::Budget | Stop::Declined => true,
        Stop::Answered | Stop::NotRepeatable => false,
    };
    if let Some(ambient) = ask.ambient.as_ref().filter(|_| tried && reading.reply.is_passing()) {
        ambient.exhaust();
    }
}

fn leave(upstream: &Upstream, ask: &Ask, flight: &Flight) -> Leave {
    // Our own first try may be a retry of the layer above.
    Leave { attempt: flight.number().max(ask.attempt), left: ask.deadline.since(upstream.clock.now()) }
}

/// One try, and a second beside it if the first takes long. The one that has lost is dropped, which cancels it.
async fn fly<E: Exchange>(
    upstream: &Arc<Upstream>,
    ask: &Ask,
    exchange: &mut E,
    mut flight: Flight,
) -> (Flight, Came<E>) {
    let now = upstream.clock.now();
    let longest = ask.try_timeout.map_or(Timestamp::MAX, |longest| now.after(longest));
    let end = upstream.clock.instant(longest.min(ask.deadline));
    let mut first = pin!(exchange.send(leave(upstream, ask, &flight)));
    let hedge_after = upstream.hedge_after().filter(|_| ask.idempotent && ask.may_retry);
    if let Some(hedge_at) = hedge_after.map(|after| upstream.clock.instant(now.after(after)))
        && hedge_at < end
    {
        if let Ok(result) = timeout_at(hedge_at, &mut first).await {
            return (flight, Some(result));
        }
        if exchange.is_at_hand()
            && let Some(_slot) = upstream.room.try_enter()
            && let Some(second_flight) = flight.hedge()
        {
            upstream.meter.hedged();
            let second = pin!(exchange.send(leave(upstream, ask, &second_flight)));
            return both::<E>((flight, first), (second_flight, second), end).await;
        }
    }
    (flight, timeout_at(end, first).await.ok())
}

type Sending<'a, E> =
    Pin<&'a mut (dyn Future<Output = Result<<E as Exchange>::Answer, <E as Exchange>::Failure>> + Send + 'a)>;

/// Two tries of the same call: the first answer that is of use, or else the last.
async fn both<E: Exchange>(
    (one, mut first): (Flight, Sending<'_, E>),
    (other, mut second): (Flight, Sending<'_, E>),
    end: Instant,
) -> (Flight, Came<E>) {
    let (mut one, mut other) = (Some(one), Some(other));
    loop {
        let (mine, others, came) = tokio::select! {
            biased;
            came = &mut first, if one.is_some() => (&mut one, &other, Some(came)),
            came = &mut second, if other.is_some() => (&mut other, &one, Some(came)),
            () = sleep_until(end) => {
                if one.is_some() { (&mut one, &None, None) } else { (&mut other, &None, None) }
            }
        };
        let reading = came.as_ref().map_or(Reading::TIMED_OUT, E::read);
        let Some(flight) = mine.take() else { continue };
        if others.is_none() || !reading.reply.is_passing() {
            return (flight, came);
        }
        flight.noted(reading.reply);
    }
}
