//! Chance, for the shell: jitter must differ from process to process and from call to call.
//!
//! Not for secrets, and not for the engine, to which a number is an argument.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct Dice(AtomicU64);

impl Dice {
    /// Seeded as the standard library seeds its hash maps.
    pub(crate) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one(0_u8))
    }

    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Uniform over all numbers: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
    /// OOPSLA 2014), whose state is one counter, so that threads can share it.
    pub(crate) fn roll(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(GAMMA, Relaxed).wrapping_add(GAMMA);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published numbers for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_splitmix() {
        let dice = Dice::seeded(1_234_567);
        assert_eq!([dice.roll(), dice.roll()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        assert_ne!(Dice::new().roll(), Dice::new().roll());
    }
}
