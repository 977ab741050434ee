//! When the next client comes, for clients that come at a rate.
//!
//! A rate that changes with time is inverted exactly: the next arrival is where the area under the rate has grown by one
//! (evenly spaced), or by an exponential number (a Poisson process).

use std::num::NonZeroU32;
use std::time::Duration;

use crate::random::Random;
use crate::scenario::{Piece, Spacing};

/// The moments at which clients come, in order.
#[derive(Clone, Debug)]
pub struct OpenArrivals {
    spacing: Spacing,
    together: NonZeroU32,
    pieces: Vec<Piece>,
    /// The piece that the next arrival may be in, and how much came before it.
    at: usize,
    before: f64,
    /// The area under the rate at the next arrival.
    target: f64,
}

impl OpenArrivals {
    /// Arrivals at the rate of these pieces, which follow each other in time, so many at each moment.
    pub fn new(spacing: Spacing, together: NonZeroU32, pieces: &[Piece]) -> Self {
        Self { spacing, together, pieces: pieces.to_vec(), at: 0, before: 0.0, target: 0.0 }
    }

    /// The next moment, from the beginning of the scenario, and how many come then.
    pub fn next(&mut self, random: &mut Random) -> Option<(Duration, u32)> {
        let gap = match self.spacing {
            Spacing::Even => 1.0,
            Spacing::Poisson => random.exponential(),
        };
        self.target += gap * f64::from(self.together.get());
        while let Some(piece) = self.pieces.get(self.at) {
            let seconds = (piece.until - piece.from).as_secs_f64();
            let area = seconds * (piece.rate + piece.rate_at_end) / 2.0;
            let rest = self.target - self.before;
            // At the very end of a piece it is still in it: whoever comes evenly comes at the last moment too.
            if rest <= area {
                let nanos = (within(piece, seconds, rest) * 1e9) as u64;
                return Some((piece.from + Duration::from_nanos(nanos), self.together.get()));
            }
            self.before += area;
            self.at += 1;
        }
        None
    }
}

/// When, in seconds from its beginning, the area under a piece has grown to this.
fn within(piece: &Piece, seconds: f64, area: f64) -> f64 {
    let slope = (piece.rate_at_end - piece.rate) / seconds;
    if slope == 0.0 {
        return area / piece.rate;
    }
    // rate·t + slope·t²/2 = area, solved so that nothing cancels out.
    let root = libm::sqrt((piece.rate * piece.rate + 2.0 * slope * area).max(0.0));
    2.0 * area / (piece.rate + root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn piece(from: u64, until: u64, rate: f64, rate_at_end: f64) -> Piece {
        Piece { from: Duration::from_secs(from), until: Duration::from_secs(until), rate, rate_at_end }
    }

    fn all(spacing: Spacing, pieces: &[Piece]) -> Vec<Duration> {
        let mut random = Random::stream(3, Purpose::Arrivals, 0);
        let mut arrivals = OpenArrivals::new(spacing, NonZeroU32::MIN, pieces);
        std::iter::from_fn(|| arrivals.next(&mut random).map(|(at, _)| at)).collect()
    }

    #[test]
    fn batches_have_the_rate_of_those_in_them() {
        let mut random = Random::stream(3, Purpose::Arrivals, 0);
        let mut arrivals =
            OpenArrivals::new(Spacing::Even, NonZeroU32::new(30).unwrap(), &[piece(0, 2, 150.0, 150.0)]);
        let batches: Vec<_> = std::iter::from_fn(|| arrivals.next(&mut random)).collect();
        assert_eq!(batches.len(), 10);
        assert_eq!((batches[0].0.as_millis(), batches[0].1), (200, 30));
    }

    #[test]
    fn even_arrivals_are_even_and_keep_count_over_a_change() {
        let times =
            all(Spacing::Even, &[piece(0, 2, 150.0, 150.0), piece(2, 3, 0.0, 0.0), piece(3, 4, 10.0, 10.0)]);
        assert_eq!(times.len(), 310);
        assert_eq!((times[0].as_nanos(), times[299].as_nanos()), (6_666_666, 2_000_000_000));
        assert_eq!(times[300].as_millis(), 3_100);
    }

    #[test]
    fn a_ramp_is_exact() {
        let times = all(Spacing::Even, &[piece(0, 10, 0.0, 20.0)]);
        assert_eq!(times.len(), 100);
        // The area under 2t is t².
        assert_eq!(times[24].as_millis(), 5_000);
        let down = all(Spacing::Even, &[piece(0, 10, 20.0, 0.0)]);
        assert_eq!((down.len(), down[74].as_millis()), (100, 5_000));
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_their_spread() {
        let times = all(Spacing::Poisson, &[piece(0, 1000, 100.0, 100.0)]);
        assert!((99_000..101_000).contains(&times.len()), "{}", times.len());
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!(
            (square / (mean * mean) - 2.0).abs() < 0.05,
            "an exponential gap has a coefficient of variation of 1"
        );
    }
}
