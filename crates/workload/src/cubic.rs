//! A client that slows itself down when it is refused: the rate of CUBIC, as the AWS SDKs' "adaptive" retry mode has it.
//!
//! It is a model of clients that exist, to be played against; tidegate's own client does without. On a refusal the rate
//! falls to seven tenths; from there it rises along a cubic that is flat where the refusal was (RFC 9438 section 4.1 has
//! the curve, the SDKs use it for requests a second).

use std::time::Duration;

/// What remains of the rate after a refusal.
const BETA: f64 = 0.7;
/// How steep the curve is, per second cubed.
const SCALE: f64 = 0.4;
/// How much the latest measurement counts.
const SMOOTHING: f64 = 0.8;
/// How long one measurement takes, in seconds.
const MEASURE: f64 = 0.5;
/// It always sends so many a second, or it would never learn that things are better.
const RATE_MIN: f64 = 0.5;
/// It asks again after at most so long, since meanwhile it may have come to send faster.
const ASK_AGAIN: f64 = 0.5;

/// The rate that a client allows itself. It allows itself everything until it is refused for the first time.
#[derive(Clone, Debug, PartialEq)]
pub struct CubicRate {
    curve: Option<Curve>,
    /// Requests that may be sent at once.
    tokens: f64,
    fill: f64,
    filled_at: f64,
    measured: f64,
    /// The stretch of time that is being measured, by its number, and what was sent in it.
    stretch: f64,
    sent: f64,
    /// The stretch in which it was slowed down last. The refusals of one volley tell one thing, and count once.
    slowed: f64,
}

/// Where the last refusal was.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    max: f64,
    refused_at: f64,
}

impl Curve {
    /// The rate after a success at this moment, in seconds.
    fn rate(self, now: f64) -> f64 {
        let plateau = libm::cbrt(self.max * (1.0 - BETA) / SCALE);
        let beyond = now - self.refused_at - plateau;
        SCALE * beyond * beyond * beyond + self.max
    }
}

impl Default for CubicRate {
    fn default() -> Self {
        Self {
            curve: None,
            tokens: 0.0,
            fill: RATE_MIN,
            filled_at: 0.0,
            measured: 0.0,
            stretch: 0.0,
            sent: 0.0,
            slowed: -1.0,
        }
    }
}

impl CubicRate {
    /// Zero if a request may be sent, which counts as sent then; otherwise how long to wait before asking again.
    pub fn send(&mut self, now: Duration) -> Duration {
        let now = now.as_secs_f64();
        if self.curve.is_none() {
            return Duration::ZERO;
        }
        self.refill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Duration::ZERO;
        }
        Duration::from_secs_f64(((1.0 - self.tokens) / self.fill).clamp(0.001, ASK_AGAIN))
    }

    /// A request was answered.
    pub fn succeeded(&mut self, now: Duration) {
        let now = now.as_secs_f64();
        self.measure(now);
        if let Some(curve) = self.curve {
            self.set(now, curve.rate(now));
        }
    }

    /// A request was refused.
    pub fn refused(&mut self, now: Duration) {
        let now = now.as_secs_f64();
        self.measure(now);
        if self.slowed == self.stretch {
            return;
        }
        self.slowed = self.stretch;
        let rate = if self.curve.is_some() { self.measured.min(self.fill) } else { self.measured };
        self.curve = Some(Curve { max: rate, refused_at: now });
        self.set(now, rate * BETA);
    }

    fn set(&mut self, now: f64, rate: f64) {
        self.refill(now);
        // Never more than twice what is really sent: a client that has nothing to do must not save up for a flood.
        self.fill = rate.min(2.0 * self.measured).max(RATE_MIN);
        self.tokens = self.tokens.min(self.fill.max(1.0));
    }

    fn refill(&mut self, now: f64) {
        let most = self.fill.max(1.0);
        self.tokens = (self.tokens + (now - self.filled_at).max(0.0) * self.fill).min(most);
        self.filled_at = self.filled_at.max(now);
    }

    fn measure(&mut self, now: f64) {
        let stretch = libm::floor(now / MEASURE);
        self.sent += 1.0;
        if stretch > self.stretch {
            let rate = self.sent / ((stretch - self.stretch) * MEASURE);
            self.measured = rate * SMOOTHING + self.measured * (1.0 - SMOOTHING);
            (self.sent, self.stretch) = (0.0, stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() < 1e-9 * should, "{is} and not {should}");
    }

    /// The vectors of the SDKs' common test suite: successes at one moment after the other.
    #[test]
    fn the_curve_has_the_published_values() {
        let curve = Curve { max: 10.0, refused_at: 5.0 };
        let should = [
            7.0,
            9.648_936_009_66,
            10.000_030_849_917_364,
            10.453_284_520_772_092,
            13.408_697_022_224_185,
            21.266_268_354_273_64,
            36.425_998_516_920_465,
        ];
        for (seconds, should) in should.into_iter().enumerate() {
            assert!((curve.rate(5.0 + seconds as f64) - should).abs() < 1e-9, "{seconds}");
        }
    }

    /// The same suite: a success, two refusals, four successes. It puts the plateau at the rate after a refusal, where the
    /// SDKs themselves put it at the rate before; the curve and the fall are what is compared.
    #[test]
    fn refusals_lower_it_as_published() {
        let mut curve = Curve { max: 10.0, refused_at: 5.0 };
        let mut rate = curve.rate(6.0);
        near(rate, 9.648_936_009_660_1);
        for (at, should) in [(7.0, 6.754_255_206_761_999), (8.0, 4.727_978_644_733_399)] {
            rate *= BETA;
            near(rate, should);
            curve = Curve { max: rate, refused_at: at };
        }
        for (at, should) in [
            (9.0, 4.670_125_557_970_046),
            (10.0, 4.770_870_456_867_401),
            (11.0, 6.011_819_748_005_445),
            (12.0, 10.792_973_431_384_178),
        ] {
            near(curve.rate(at), should);
        }
    }

    /// Refused again and again it comes to send less, but never nothing.
    #[test]
    fn it_slows_down_and_does_not_stop() {
        let mut rate = CubicRate::default();
        let (mut now, mut sent) = (Duration::ZERO, 0);
        assert_eq!(rate.send(now), Duration::ZERO);
        while now < Duration::from_secs(100) {
            rate.refused(now);
            now += rate.send(now).max(Duration::from_millis(10));
            sent += 1;
        }
        assert!((50..500).contains(&sent), "{sent}");
    }
}
