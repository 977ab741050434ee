//! What the upstream says of its own load, as a ceiling on whatever the limit is.
//!
//! An upstream that knows how busy it is knows it sooner than a limit can find out from outside, and knows of load that
//! does not come through here. It is told in parts of what it should be: at 1.2, a sixth of what is in flight is too much.
//! So the ceiling is what is in flight, divided by the load. Both are smoothed alike, so that what belongs together is
//! divided.
//!
//! It is a ceiling and no limit: it only ever takes away. It goes up again while reports say that there is room, and is
//! gone [`HOLD`] after the last report that said otherwise; an upstream that stops to report, for whatever reason, has no
//! more say. A report is not believed beyond [`LOAD_MAX`], and what is no number, or below zero, is no report.

use core::time::Duration;

use crate::time::{Timestamp, nanos};

/// Over how long reports are smoothed: long against what one garbage collection makes of a processor's load, short
/// against the seconds in which an overload does harm.
const SMOOTHED_OVER: Duration = Duration::from_millis(500);
/// How long a ceiling stands after the last report that speaks for it. Answers report, so where there is load there are
/// many in this time.
const HOLD: Duration = Duration::from_secs(5);
/// A limit falls to a tenth at once at most, whatever is reported.
const LOAD_MAX: f64 = 10.0;

#[derive(Debug, Default)]
pub(super) struct Reported {
    smooth: Option<Smooth>,
    /// Until when; none is in force at or after that.
    ceiling: Option<(f64, Timestamp)>,
}

#[derive(Clone, Copy, Debug)]
struct Smooth {
    at: Timestamp,
    load: f64,
    in_flight: f64,
}

impl Reported {
    /// The most that may be in flight by what was reported.
    pub(super) fn ceiling(&self) -> u32 {
        // Saturates; a ceiling below one would stop the reports that could lift it.
        self.ceiling.map_or(u32::MAX, |(ceiling, _)| ceiling.max(1.0) as u32)
    }

    /// Lets time pass.
    pub(super) fn observe(&mut self, now: Timestamp) {
        if self.ceiling.is_some_and(|(_, until)| until <= now) {
            *self = Self::default();
        }
    }

    /// An answer reports this load, as a part of what it should be.
    pub(super) fn on_load(&mut self, now: Timestamp, load: f64, in_flight: u32) {
        // NaN fails both.
        if !(load >= 0.0 && load.is_finite()) {
            return;
        }
        let (load, in_flight) = (load.min(LOAD_MAX), f64::from(in_flight));
        let smooth = match self.smooth {
            // What was before a pause says nothing about now.
            Some(smooth) if now.since(smooth.at) < HOLD => smooth.towards(now, load, in_flight),
            _ => Smooth { at: now, load, in_flight },
        };
        self.smooth = Some(smooth);
        // Without any load there is room for all.
        let room = smooth.in_flight / smooth.load.max(1.0 / LOAD_MAX);
        if smooth.load >= 1.0 {
            self.ceiling = Some((room, now.after(HOLD)));
        } else if let Some((ceiling, _)) = &mut self.ceiling {
            *ceiling = ceiling.max(room);
        }
    }
}

impl Smooth {
    /// By the time that has passed, and not by the number of reports, of which there are more the more there is to do.
    fn towards(self, now: Timestamp, load: f64, in_flight: f64) -> Self {
        let passed = nanos(now.since(self.at)) as f64;
        let part = passed / (passed + nanos(SMOOTHED_OVER) as f64);
        Self {
            at: now,
            load: self.load + (load - self.load) * part,
            in_flight: self.in_flight + (in_flight - self.in_flight) * part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Every ten milliseconds for so long.
    fn report(
        reported: &mut Reported,
        from: u64,
        millis: u64,
        load: impl Fn(u32) -> f64,
        wanted: u32,
    ) -> u32 {
        for now in (from..from + millis).step_by(10) {
            reported.observe(at(now));
            let in_flight = wanted.min(reported.ceiling());
            reported.on_load(at(now), load(in_flight), in_flight);
        }
        reported.ceiling()
    }

    #[test]
    fn finds_what_is_bearable() {
        let mut reported = Reported::default();
        // A processor that has what it should have with 50 in flight, and 100 that want to be.
        let load = |in_flight| f64::from(in_flight) / 50.0;
        let ceiling = report(&mut reported, 0, 5_000, load, 100);
        assert!((48..=50).contains(&ceiling), "{ceiling}");
        // Twice as fast: up again, though not at once.
        let ceiling = report(&mut reported, 5_000, 100, |in_flight| load(in_flight) / 2.0, 100);
        assert!((48..=65).contains(&ceiling), "{ceiling}");
        let ceiling = report(&mut reported, 5_100, 4_000, |in_flight| load(in_flight) / 2.0, 100);
        assert!(ceiling >= 95, "{ceiling}");
    }

    #[test]
    fn below_what_it_should_be_nothing_happens() {
        let mut reported = Reported::default();
        assert_eq!(report(&mut reported, 0, 60_000, |_| 0.99, 100), u32::MAX);
    }

    #[test]
    fn goes_when_reports_stop() {
        let mut reported = Reported::default();
        reported.on_load(at(0), 2.0, 40);
        assert_eq!(reported.ceiling(), 20);
        reported.observe(at(4_999));
        assert_eq!(reported.ceiling(), 20);
        reported.observe(at(5_000));
        assert_eq!(reported.ceiling(), u32::MAX);
        // One report of much, and then only such of little: these do not make it stay.
        reported.on_load(at(6_000), 10.0, 10);
        assert_eq!(report(&mut reported, 6_010, 7_000, |_| 0.5, 1), u32::MAX);
    }

    /// Whatever an upstream says, there is a limit of at least one, and no number that is none.
    #[test]
    fn nonsense_is_no_report() {
        let mut reported = Reported::default();
        for load in [f64::NAN, -1.0, f64::NEG_INFINITY, f64::INFINITY, -f64::MIN_POSITIVE] {
            reported.on_load(at(1), load, 100);
            assert_eq!(reported.ceiling(), u32::MAX, "{load}");
        }
        reported.on_load(at(1), 1e308, 100);
        assert_eq!(reported.ceiling(), 10, "no more than to a tenth at once");
        assert_eq!(report(&mut reported, 2, 100_000, |_| 1e308, 100), 1);
        reported.on_load(at(0), 5.0, u32::MAX);
        reported.on_load(Timestamp::MAX, 1e-300, 0);
        assert!(reported.ceiling() >= 1);
    }
}
