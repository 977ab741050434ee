//! Draws service times and kinds of requests.

use std::time::Duration;

use super::{Clients, ServiceTime};
use crate::random::Random;

impl ServiceTime {
    /// One time. A service takes at least a nanosecond, so that no two things happen for ever at the same moment.
    pub fn draw(&self, random: &mut Random) -> Duration {
        let nanos = match self {
            Self::Constant(time) => return (*time).max(Duration::from_nanos(1)),
            Self::Exponential(mean) => mean.as_nanos() as f64 * random.exponential(),
            // The mean of a lognormal is that of its logarithm and half its variance, raised again.
            Self::Lognormal(mean, sigma) => {
                mean.as_nanos() as f64 * libm::exp(sigma * random.normal() - sigma * sigma / 2.0)
            }
            Self::Uniform(least, most) => {
                least.as_nanos() as f64 + (*most - *least).as_nanos() as f64 * random.uniform()
            }
            Self::Recorded(times) => times[random.below(times.len())] as f64,
        };
        // A cast saturates.
        Duration::from_nanos((nanos as u64).max(1))
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        match self {
            Self::Constant(mean) | Self::Exponential(mean) | Self::Lognormal(mean, _) => *mean,
            Self::Uniform(least, most) => (*least + *most) / 2,
            Self::Recorded(times) => {
                let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
                Duration::from_nanos((sum / times.len().max(1) as u128) as u64)
            }
        }
    }
}

impl Clients {
    /// The kind of the next request, as an index into the mix.
    pub fn draw_kind(&self, random: &mut Random) -> usize {
        let [_, _, ..] = self.mix[..] else { return 0 };
        let whole: f64 = self.mix.iter().map(|kind| kind.share).sum();
        let mut left = random.uniform() * whole;
        for (index, kind) in self.mix.iter().enumerate() {
            left -= kind.share;
            if left < 0.0 {
                return index;
            }
        }
        self.mix.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn the_times_have_their_means() {
        let millis = Duration::from_millis;
        for time in [
            ServiceTime::Constant(millis(20)),
            ServiceTime::Exponential(millis(20)),
            ServiceTime::Lognormal(millis(20), 0.8),
            ServiceTime::Uniform(millis(10), millis(30)),
            ServiceTime::Recorded(vec![10_000_000, 20_000_000, 30_000_000]),
        ] {
            let mut random = Random::stream(5, Purpose::Service, 0);
            let sum: Duration = (0..100_000).map(|_| time.draw(&mut random)).sum();
            let mean = sum.as_secs_f64() / 100_000.0;
            assert!((mean / 0.020 - 1.0).abs() < 0.02, "{time:?}: {mean}");
            assert_eq!(time.mean(), millis(20), "{time:?}");
        }
    }
}
