//! One upstream: the engine's [`Caller`] behind one lock, a clock, chance, and the room in front of it.
//!
//! What is under way and what is paid for are guards. Each ends once, by a call or by its drop, so that a call that nobody
//! wants any more gives everything back: a probe's place, and what a retry cost that was not sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_engine::{Caller, CallerSnapshot, Declined, Ended, Pause, Reply, Sent, Step, Stop, Timestamp};

use crate::clock::Clock;
use crate::dice::Dice;
use crate::meter::Meter;
use crate::policy::Policy;
use crate::reading::Reading;
use crate::room::Room;

#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) clock: Clock,
    pub(crate) room: Room,
    pub(crate) meter: Meter,
    caller: Mutex<Caller>,
    dice: Dice,
}

/// How one upstream stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// What was decided, and how it stands.
    pub caller: CallerSnapshot,
    /// Calls that have a place: under way, or with an answer whose body has not ended.
    pub in_flight: u32,
    /// Calls that wait for one.
    pub waiting: u32,
}

impl Upstream {
    pub(crate) fn new(name: &str, policy: &Policy, clock: Clock, dice: Dice) -> Self {
        let caller = Mutex::new(Caller::new(policy.caller.clone()));
        Self { clock, room: Room::new(policy.room), meter: Meter::of(name), caller, dice }
    }

    /// The engine's state is whole after every input, so a panic elsewhere must not end all calls for ever.
    fn caller(&self) -> MutexGuard<'_, Caller> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call makes sense now.
    pub(crate) fn arrive(&self, deadline: Timestamp) -> Result<(), Declined> {
        let random = self.dice.roll();
        let mut caller = self.caller();
        // The clock is read inside the lock, so that the engine sees times in order.
        caller.arrive(self.clock.now(), deadline, random)
    }

    /// The first try is sent.
    pub(crate) fn send(self: &Arc<Self>, deadline: Timestamp) -> Result<Flight, Declined> {
        let mut caller = self.caller();
        let sent = caller.send(self.clock.now(), deadline)?;
        Ok(Flight { upstream: Arc::clone(self), sent: Some(sent) })
    }

    pub(crate) fn hedge_after(&self) -> Option<Duration> {
        self.caller().hedge_after()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let caller = self.caller().snapshot(self.clock.now());
        Snapshot { caller, in_flight: self.room.taken(), waiting: self.room.waiting() }
    }
}

/// One try under way. Dropped, it is abandoned.
#[must_use = "a try that is dropped counts as abandoned"]
pub(crate) struct Flight {
    upstream: Arc<Upstream>,
    /// `None` only while it is being ended.
    sent: Option<Sent>,
}

impl Flight {
    /// Which of the call's tries it is.
    pub(crate) fn number(&self) -> u32 {
        self.sent.as_ref().map_or(1, Sent::number)
    }

    /// A second try beside this one.
    pub(crate) fn hedge(&mut self) -> Option<Self> {
        let mut caller = self.upstream.caller();
        let sent = caller.hedge(self.upstream.clock.now(), self.sent.as_mut()?)?;
        Some(Self { upstream: Arc::clone(&self.upstream), sent: Some(sent) })
    }

    /// It has ended. The retry that is decided on, or why there is none.
    pub(crate) fn answered(
        mut self,
        reading: Reading,
        repeatable: bool,
        deadline: Timestamp,
    ) -> Result<Paused, Stop> {
        let Some(sent) = self.sent.take() else { return Err(Stop::Answered) };
        self.upstream.meter.replied(reading.reply);
        let Reading { reply, advice, .. } = reading;
        let random = self.upstream.dice.roll();
        let step = {
            let mut caller = self.upstream.caller();
            caller.answered(
                self.upstream.clock.now(),
                sent,
                Ended { reply, advice, repeatable, deadline },
                random,
            )
        };
        match step {
            Step::Again(pause) => {
                Ok(Paused { upstream: Arc::clone(&self.upstream), pause: Some(pause), deadline })
            }
            Step::Stop(stop) => Err(stop),
        }
    }

    /// It has ended while another goes on.
    pub(crate) fn noted(mut self, reply: Reply) {
        if let Some(sent) = self.sent.take() {
            self.upstream.meter.replied(reply);
            self.upstream.caller().noted(self.upstream.clock.now(), sent, reply);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.upstream.caller().abandoned(self.upstream.clock.now(), sent);
        }
    }
}

/// A retry that is decided on and paid for. Dropped, it gives back what it cost.
#[must_use = "a retry that is dropped is given up"]
pub(crate) struct Paused {
    upstream: Arc<Upstream>,
    pause: Option<Pause>,
    deadline: Timestamp,
}

impl Paused {
    /// When it is to be sent.
    pub(crate) fn until(&self) -> Timestamp {
        self.pause.as_ref().map_or(Timestamp::ZERO, Pause::until)
    }

    /// There is no place for it.
    pub(crate) fn decline(mut self) {
        if let Some(pause) = self.pause.take() {
            self.upstream.caller().decline(self.upstream.clock.now(), pause);
        }
    }

    /// It is sent now.
    pub(crate) fn resume(mut self) -> Result<Flight, Declined> {
        let Some(pause) = self.pause.take() else { return Err(Declined::Deadline) };
        let random = self.upstream.dice.roll();
        let sent = {
            let mut caller = self.upstream.caller();
            caller.resume(self.upstream.clock.now(), pause, self.deadline, random)?
        };
        Ok(Flight { upstream: Arc::clone(&self.upstream), sent: Some(sent) })
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if let Some(pause) = self.pause.take() {
            self.upstream.caller().give_up(self.upstream.clock.now(), pause);
        }
    }
}
