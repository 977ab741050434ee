//! The guards of a slot. Each has exactly three endings, and each ending happens once.

use std::fmt;

use tidegate_engine::{Outcome, Permit, Timestamp};

use crate::gate::Gate;

/// One admitted request: the right to do the work.
///
/// It ends in one of three ways: [`complete`](Self::complete) (the work is done), [`abandon`](Self::abandon) (the
/// client has been answered, the work may go on), or by being dropped, which completes it with
/// [`Outcome::Ignore`]: also a panic gives the slot back.
#[must_use = "the slot is free again when this is dropped"]
pub struct Admitted {
    gate: Gate,
    /// `None` only while it is being ended.
    permit: Option<Permit>,
}

impl Admitted {
    pub(crate) const fn new(gate: Gate, permit: Permit) -> Self {
        Self { gate, permit: Some(permit) }
    }

    /// When the slot was taken, on the gate's clock.
    pub fn since(&self) -> Timestamp {
        self.permit.as_ref().map_or(Timestamp::ZERO, Permit::since)
    }

    /// The time now, on the same clock.
    #[cfg(feature = "http")]
    pub(crate) fn now(&self) -> Timestamp {
        self.gate.clock().now()
    }

    /// The answer has begun: the limit learns how long that took and how it went. The slot stays taken until the
    /// answer has ended. Only the first sample counts.
    pub fn sample(&mut self, outcome: Outcome) {
        self.sample_at(self.gate.clock().now(), outcome);
    }

    /// The same for who has just read the gate's clock.
    pub fn sample_at(&mut self, now: Timestamp, outcome: Outcome) {
        if let Some(permit) = &mut self.permit {
            self.gate.sample(now, permit, outcome);
        }
    }

    /// The answer says how busy whoever gave it is, as a part of what it should be; see
    /// [`Admission::on_load`](tidegate_engine::Admission::on_load).
    pub fn report_load(&self, load: f64) {
        self.gate.on_load(load);
    }

    /// The work is done.
    pub fn complete(self, outcome: Outcome) {
        let now = self.gate.clock().now();
        self.complete_at(now, outcome);
    }

    /// The same for who has just read the gate's clock.
    pub fn complete_at(mut self, now: Timestamp, outcome: Outcome) {
        self.end(now, outcome);
    }

    /// The client has been answered or has left, but the work may go on: the slot stays taken until the orphan ends.
    pub fn abandon(mut self, outcome: Outcome) -> Orphan {
        if let Some(permit) = &mut self.permit {
            self.gate.abandon(permit, outcome);
        }
        Orphan { admitted: self }
    }

    fn end(&mut self, now: Timestamp, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            self.gate.complete(now, permit, outcome);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.permit.is_some() {
            self.end(self.gate.clock().now(), Outcome::Ignore);
        }
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").field("permit", &self.permit).finish_non_exhaustive()
    }
}

/// A slot whose client is gone while the work goes on. Free again when [`ended`](Self::ended) or dropped.
#[must_use = "the slot is free again when this is dropped"]
#[derive(Debug)]
pub struct Orphan {
    admitted: Admitted,
}

impl Orphan {
    /// The work has ended after all: its length counts as a service time, which dropping would not say.
    pub fn ended(self) {
        self.admitted.complete(Outcome::Success);
    }
}
