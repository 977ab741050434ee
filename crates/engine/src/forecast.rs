//! How long somebody who queues up now will wait.
//!
//! Little's law gives the mean: with `ahead` in line, `W` slots and a service time of `S`, the turn comes after about
//! `ahead · S / W`. That is right when releases are spread evenly and wrong when they come in lockstep: four slots
//! filled at once are free again all at once, a whole `S` later. So the ages of the oldest and the youngest request
//! in flight are used too: between them the ages are taken to lie evenly, which is exact in both cases. The larger of
//! the two estimates counts. Refusing a little early costs nothing while others wait; letting in somebody who will be
//! refused by a timer costs that client its time.

use core::time::Duration;

use crate::time::Timestamp;

/// A sample weighs at least this much, so the estimate follows the upstream within some dozens of requests.
const WEIGHT_MIN: u64 = 16;
/// A sample counts for at most so many times the estimate: one stuck request must not close the queue.
const OUTLIER: u64 = 4;

/// The state of the slots, as far as a forecast needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    /// How many there are. At least one.
    pub(crate) limit: u32,
    /// How many are taken; more than `limit` after the limit fell.
    pub(crate) taken: u32,
    /// Since when the one taken longest ago has been taken.
    pub(crate) oldest: Timestamp,
    /// Since when the one taken last has been taken.
    pub(crate) youngest: Timestamp,
}

/// The measured service time: how long a slot stays taken.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    /// Nanoseconds; zero while unknown.
    service: u64,
    samples: u64,
}

impl Forecast {
    /// A slot was free again after `held`.
    pub(crate) fn observe(&mut self, held: Duration) {
        let held = u64::try_from(held.as_nanos()).unwrap_or(u64::MAX).max(1);
        if self.service == 0 {
            self.service = held;
            self.samples = 1;
            return;
        }
        let sample = held.min(self.service.saturating_mul(OUTLIER));
        // The first samples are averaged, later ones smoothed.
        self.samples = (self.samples + 1).min(WEIGHT_MIN);
        if sample >= self.service {
            self.service += (sample - self.service) / self.samples;
        } else {
            self.service -= (self.service - sample) / self.samples;
        }
    }

    /// The service time, once one is known.
    pub(crate) const fn service(&self) -> Option<Duration> {
        match self.service {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// How long somebody with `ahead` in front of him will wait; zero while nothing is known.
    pub(crate) fn wait(&self, now: Timestamp, ahead: u32, slots: Slots) -> Duration {
        let limit = u64::from(slots.limit.max(1));
        // After the limit fell, some slots have to be given back before one can be given out.
        let ahead = u64::from(ahead) + u64::from(slots.taken.saturating_sub(slots.limit));
        let oldest = nanos_since(now, slots.oldest);
        let youngest = nanos_since(now, slots.youngest);
        if self.service == 0 {
            return Duration::ZERO;
        }
        let service = self.service;
        // Nothing was dispatched for longer than a service time although somebody waits: the upstream stands still. How
        // long it will is not known; as long again as it has is the guess that is right in the middle of every pause.
        // Afterwards it is as fast as before.
        let stall = youngest.saturating_sub(service);
        let spread = ahead.saturating_mul(service) / limit;

        let (rounds, place) = (ahead / limit, ahead % limit);
        let age = match limit {
            1 => oldest,
            _ => oldest.saturating_sub(oldest.saturating_sub(youngest) / (limit - 1) * place),
        };
        let lockstep = rounds.saturating_mul(service).saturating_add(service.saturating_sub(age));
        Duration::from_nanos(spread.max(lockstep).saturating_add(stall))
    }

    /// How many can be served within `wait` (Q ≤ W·B/S), once a service time is known.
    pub(crate) fn capacity(&self, limit: u32, wait: Duration) -> Option<u64> {
        if self.service == 0 {
            return None;
        }
        let places = u128::from(limit) * wait.as_nanos() / u128::from(self.service);
        Some(u64::try_from(places).unwrap_or(u64::MAX))
    }
}

fn nanos_since(now: Timestamp, then: Timestamp) -> u64 {
    now.as_nanos().saturating_sub(then.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn known(service: Duration) -> Forecast {
        let mut forecast = Forecast::default();
        forecast.observe(service);
        forecast
    }

    fn slots(limit: u32, oldest_ms: u64, youngest_ms: u64) -> Slots {
        let (oldest, youngest) = (Timestamp::from_millis(oldest_ms), Timestamp::from_millis(youngest_ms));
        Slots { limit, taken: limit, oldest, youngest }
    }

    /// Four slots taken together at t = 0 come free together at 200, 400, 600 ms.
    #[test]
    fn lockstep_is_exact() {
        let forecast = known(ms(200));
        let waits = [0, 3, 4, 7, 8].map(|ahead| forecast.wait(Timestamp::ZERO, ahead, slots(4, 0, 0)));
        assert_eq!(waits, [ms(200), ms(200), ms(400), ms(400), ms(600)]);
        let later = forecast.wait(Timestamp::from_millis(150), 8, slots(4, 0, 0));
        assert_eq!(later, ms(450));
    }

    /// Slots taken at 0, 50, 100, 150 ms come free 50 ms apart, the next right at 200.
    #[test]
    fn an_even_spread_is_exact() {
        let forecast = known(ms(200));
        let waits = [0, 1, 3, 4, 9].map(|ahead| {
            // Between the oldest and the youngest the division leaves a fraction of a millisecond.
            forecast.wait(Timestamp::from_millis(199), ahead, slots(4, 0, 150)).as_millis()
        });
        assert_eq!(waits, [1, 51, 151, 201, 451]);
    }

    #[test]
    fn one_slot_counts_its_age() {
        let forecast = known(ms(1000));
        assert_eq!(forecast.wait(Timestamp::from_millis(900), 0, slots(1, 0, 0)), ms(100));
    }

    /// After three seconds of silence it will be silent for about as long again, and then everybody is served as before.
    #[test]
    fn silence_lengthens_the_forecast() {
        let forecast = known(ms(20));
        let wait = forecast.wait(Timestamp::from_millis(3000), 4, slots(10, 0, 0));
        assert_eq!(wait, ms(3000 - 20) + ms(8));
    }

    #[test]
    fn slots_to_give_back_count_as_ahead() {
        let forecast = known(ms(100));
        let draining = Slots { taken: 80, ..slots(10, 0, 0) };
        assert_eq!(forecast.wait(Timestamp::ZERO, 0, draining), ms(800));
    }

    #[test]
    fn an_outlier_moves_the_estimate_by_a_bounded_step() {
        let mut forecast = known(ms(16));
        for _ in 0..20 {
            forecast.observe(ms(16));
        }
        forecast.observe(Duration::MAX);
        assert_eq!(forecast.service(), Some(ms(19)));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let forecast = known(Duration::MAX);
        let slots = Slots { limit: 1, taken: u32::MAX, oldest: Timestamp::ZERO, youngest: Timestamp::ZERO };
        assert!(forecast.wait(Timestamp::MAX, u32::MAX, slots) > ms(1));
        assert!(known(Duration::from_nanos(1)).capacity(u32::MAX, Duration::MAX).is_some());
    }
}
