//! One quota for each of many keys.

use alloc::boxed::Box;
use core::num::NonZeroU32;
use core::time::Duration;

use super::gcra::{Gcra, Verdict};
use super::sketch::Sketch;
use super::table::{Found, Place, Table};
use super::turns::Turns;
use crate::decision::{Reason, Rejection};
use crate::rate::Quota;
use crate::time::Timestamp;

/// Past so many ticks the epoch is moved, so that times do not run out of bits: after 104 days for the fastest rates,
/// whose ticks are shorter than nanoseconds, and after 292 years for the slow ones.
const TICKS_MAX: u64 = 1 << 63;

/// Token buckets, one for each key, in a table of fixed size.
///
/// A key is a 64-bit hash of whatever names the caller, made by the driver with a secret seed: two callers share a
/// bucket with a probability of about n²/2⁶⁵, and nobody can aim for it.
///
/// Memory is allocated once: about 29 bytes for each key of `max_keys`, and 8 KiB. When more keys are in use than the
/// table can tell apart, the excess shares a sketch that can only restrict too much.
#[derive(Debug)]
pub struct RateLimiter {
    quota: Quota,
    gcra: Gcra,
    now: Timestamp,
    /// What tick 0 stands for.
    epoch: Timestamp,
    table: Table,
    overflow: Box<Sketch>,
    overflowed: u64,
    turns: Turns,
}

/// What [`RateLimiter::peek`] found: a request that conforms and has not been counted yet.
#[derive(Debug)]
#[must_use = "a reservation that is not committed is not counted"]
pub struct Reservation {
    key: u64,
    place: Option<Place>,
    tat: u64,
}

/// Why a request is over its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateRefusal {
    /// It conforms after this time, if nobody else uses the key until then.
    NotYet(Duration),
    /// It costs more than the whole burst: it never conforms, and waiting is of no use.
    Never,
}

impl RateLimiter {
    /// A limiter that tells at least `max_keys` keys apart.
    pub fn new(quota: Quota, max_keys: NonZeroU32) -> Self {
        Self {
            gcra: Gcra::new(&quota),
            quota,
            now: Timestamp::ZERO,
            epoch: Timestamp::ZERO,
            table: Table::new(max_keys.get()),
            overflow: Box::new(Sketch::new()),
            overflowed: 0,
            turns: Turns::new(max_keys.get()),
        }
    }

    /// Counts a request of `cost`, if it conforms.
    pub fn check(&mut self, now: Timestamp, key: u64, cost: NonZeroU32) -> Result<(), RateRefusal> {
        let reservation = self.peek(now, key, cost)?;
        self.commit(reservation);
        Ok(())
    }

    /// Whether a request conforms, without counting it. With several limits to pass, peek at all of them first and
    /// commit only if all agree; otherwise a request refused by one would use up the others (envoy#25139).
    pub fn peek(&mut self, now: Timestamp, key: u64, cost: NonZeroU32) -> Result<Reservation, RateRefusal> {
        if cost > self.quota.burst() {
            return Err(RateRefusal::Never);
        }
        let now = self.advance(now);
        let (place, tat) = match self.table.find(now, key) {
            Found::Here(place, tat) => (Some(place), tat),
            // A key that shared the sketch until now brings along what it may have used there.
            Found::Free(place) => (Some(place), self.overflow.tat(key)),
            Found::Full => (None, self.overflow.tat(key)),
        };
        match self.gcra.check(now, tat, cost.get()) {
            Verdict::Conforms(tat) => Ok(Reservation { key, place, tat }),
            Verdict::Wait(ticks) => Err(RateRefusal::NotYet(self.gcra.duration(ticks))),
        }
    }

    /// Counts a request that [`peek`](Self::peek) found to conform. Nothing else may come between the two.
    pub fn commit(&mut self, reservation: Reservation) {
        match reservation.place {
            Some(place) => self.table.set(place, reservation.key, reservation.tat),
            None => {
                self.overflow.raise(reservation.key, reservation.tat);
                self.overflowed += 1;
            }
        }
    }

    /// How many requests of cost 1 this key may make at once now.
    pub fn left(&mut self, now: Timestamp, key: u64) -> u32 {
        let now = self.advance(now);
        let tat = match self.table.find(now, key) {
            Found::Here(_, tat) => tat,
            Found::Free(_) | Found::Full => self.overflow.tat(key),
        };
        self.gcra.left(now, tat)
    }

    /// What whoever was refused just now is to be told. [`RateRefusal::NotYet`] is the same for all who are refused at
    /// one moment; here each is told a time of its own, as far apart as the rate lets them in: the first the exact time,
    /// and nobody an earlier one. No time is longer than `longest`; those who would have to wait longer are spread over
    /// the upper half of that.
    pub fn rejection(
        &mut self,
        now: Timestamp,
        key: u64,
        cost: NonZeroU32,
        refusal: RateRefusal,
        longest: Duration,
    ) -> Rejection {
        self.advance(now);
        let retry_after = match refusal {
            RateRefusal::Never => Duration::MAX,
            RateRefusal::NotYet(wait) => {
                let interval = self.gcra.interval.saturating_mul(cost.get().into());
                self.turns.next(self.now, key, wait, self.gcra.duration(interval), longest)
            }
        };
        Rejection { reason: Reason::RateLimited, retry_after }
    }

    /// Puts another quota in force. What keys have used stays used; the same quota changes nothing at all.
    pub fn reconfigure(&mut self, now: Timestamp, quota: Quota) {
        if quota == self.quota {
            return;
        }
        let old_now = self.advance(now);
        let old = self.gcra;
        self.gcra = Gcra::new(&quota);
        self.quota = quota;
        // Another quota may count in other ticks, so start from a new epoch.
        self.epoch = self.now;
        let new = self.gcra;
        let change = |tat| new.carry_over(&old, old_now, tat, 0);
        self.table.map(change);
        self.overflow.map(change);
        self.turns.forget();
    }

    /// The quota in force.
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// How many keys have used some of their quota lately; in a large table, about how many.
    pub fn keys_in_use(&mut self, now: Timestamp) -> usize {
        let now = self.advance(now);
        self.table.in_use(now)
    }

    /// How many requests were counted in the sketch because the table was full.
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Moves time, never back, and gives it in ticks.
    fn advance(&mut self, now: Timestamp) -> u64 {
        self.now = self.now.max(now);
        let elapsed = u128::from(self.now.as_nanos() - self.epoch.as_nanos()) << self.gcra.shift;
        let ticks = u64::try_from(elapsed).unwrap_or(u64::MAX);
        if ticks < TICKS_MAX {
            return ticks;
        }
        self.epoch = self.now;
        self.table.map(|tat| tat.saturating_sub(ticks));
        self.overflow.map(|tat| tat.saturating_sub(ticks));
        0
    }
}
