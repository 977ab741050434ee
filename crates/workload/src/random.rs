//! Seeded randomness. One seed gives one run, on every machine and in every version.
//!
//! Each use draws from a stream of its own, so that a policy that asks for one number more does not change who arrives
//! when, and policies side by side meet the same traffic. Logarithms come from `libm`, since those of the platform may
//! differ in the last digit.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// When clients arrive.
    Arrivals,
    /// What they ask for.
    Mix,
    /// How long the work takes.
    Service,
    /// How long clients wait before they try again, and think between requests.
    Clients,
    /// Which of several gateways is asked.
    Balance,
    /// What the models of other products draw.
    Model,
}

impl Random {
    /// The stream for one of many, all of the same seed and the same purpose.
    pub fn stream(seed: u64, purpose: Purpose, index: usize) -> Self {
        // SplitMix64's finalizer spreads neighbouring numbers over the whole range.
        let mut mixed =
            seed ^ (purpose as u64 + 1) << 56 ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed ^ mixed >> 31))
    }

    /// A whole number, uniform over all of them.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform, from 0 up to and without 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }

    /// Normal with mean 0 and variance 1 (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers themselves are part of what is promised: a report names its seed, and must be the same next year.
    #[test]
    fn the_streams_do_not_change() {
        let first = |purpose, index| Random::stream(1, purpose, index).bits();
        expect_test::expect!["7ace7029e7d1da83 be49bee6175af9ab 63568b129ae254e4"].assert_eq(&format!(
            "{:x} {:x} {:x}",
            first(Purpose::Arrivals, 0),
            first(Purpose::Arrivals, 1),
            first(Purpose::Service, 0)
        ));
    }

    #[test]
    fn the_distributions_have_their_moments() {
        let mut random = Random::stream(7, Purpose::Service, 0);
        let count = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..count).map(|_| draw()).sum::<f64>() / f64::from(count);
        let uniform = mean(&mut || random.uniform());
        let exponential = mean(&mut || random.exponential());
        let normal = mean(&mut || random.normal());
        let square = mean(&mut || random.normal().powi(2));
        for (is, should) in [(uniform, 0.5), (exponential, 1.0), (normal, 0.0), (square, 1.0)] {
            assert!((is - should).abs() < 0.01, "{is} and not {should}");
        }
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
