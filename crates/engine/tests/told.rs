//! Who was told when to come back: nobody who is on time counts as early, nobody who is early as on time, and of those
//! who were told nothing about as few are mistaken as is documented.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::*;
use tidegate_engine::{Return, Timestamp, Told};

const KEYS: u32 = 1_000;

fn told() -> Told {
    Told::new(NonZeroU32::new(KEYS).unwrap())
}

/// SplitMix64: as good as the driver's keyed hash for a test.
fn key(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[test]
fn the_early_the_punctual_and_the_rest() {
    let mut told = told();
    assert_eq!(told.comes(at(0), key(1)), None, "it was told nothing");
    told.tell(at(0), key(1), Timestamp::from_nanos(1_500_700_000));
    assert_eq!(told.due(at(0), key(1)), Some(at(1500)), "nobody may be held to more than was said");
    assert_eq!(told.comes(at(1499), key(1)), Some(Return::Early));
    assert_eq!(told.comes(at(1499), key(2)), None);
    assert_eq!(told.comes(at(1500), key(1)), Some(Return::OnTime));
    assert_eq!(told.comes(at(1501), key(1)), None, "it has come back, and is a caller like any other");
    told.tell(at(1501), key(1), at(9000));
    assert_eq!(told.comes(at(5000), key(1)), Some(Return::Early));
    told.tell(at(5000), key(1), at(6000));
    assert_eq!(told.due(at(6500), key(1)), Some(at(9000)), "what was said first holds");
    assert_eq!(told.comes(at(10_999), key(1)), Some(Return::OnTime));
    told.tell(at(10_999), key(1), at(12_000));
    assert_eq!(told.comes(at(14_000), key(1)), None, "by then nobody remembers");
}

/// Times run out of no bits: the engine may run for centuries, and what was said last survives each move of the epoch.
#[test]
fn a_long_life() {
    let mut told = told();
    let day = 86_400_000;
    for today in (0..400).chain([40_000, 200_000, 213_000]) {
        let now = at(today * day);
        assert_eq!(told.due(now, key(today)), None, "day {today}");
        told.tell(now, key(today), at(today * day + 60_000));
        assert_eq!(told.due(now, key(today)), Some(at(today * day + 60_000)), "day {today}");
    }
    told.tell(at(213_000 * day), key(7), Timestamp::MAX);
    assert!(told.due(at(213_000 * day), key(7)) > Some(at(213_011 * day)), "far away");
    // Time that steps back stands still.
    assert_eq!(told.due(Timestamp::ZERO, key(213_000)), Some(at(213_000 * day + 60_000)));
}

/// With as many keys remembered as it was made for, one in a hundred others is mistaken for one of them; with twice as
/// many, one in twelve.
#[test]
fn so_many_are_mistaken() {
    for (remembered, share) in [(KEYS / 2, 0.001), (KEYS, 0.01), (2 * KEYS, 0.085)] {
        let mut mistaken = 0;
        for round in 0..20 {
            let mut told = told();
            for number in 0..remembered {
                told.tell(at(0), key(round << 32 | u64::from(number)), at(5000));
            }
            let strangers = (0..5_000).map(|number| key(round << 32 | 1 << 31 | number));
            mistaken += strangers.filter(|key| told.due(at(1), *key).is_some()).count();
        }
        let measured = mistaken as f64 / 100_000.0;
        assert!(measured <= share * 1.1 + 0.0005, "{remembered} of {KEYS}: {measured}");
        assert!(measured >= share / 4.0, "{remembered} of {KEYS}: {measured}, so the test looks at nothing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whoever comes before its time is early, whoever shares its cells. A key is never due earlier than it was told,
    /// less a millisecond, until it is forgotten.
    #[test]
    fn nobody_is_due_too_early(script in prop::collection::vec((0..300_u64, 0..40_u64, 0..8_000_u64), 1..2_000)) {
        let mut told = told();
        let mut said: BTreeMap<u64, u64> = BTreeMap::new();
        let mut now = 0;
        for (number, step, ahead) in script {
            now += step;
            let until = now + ahead;
            told.tell(at(now), key(number), at(until));
            let latest = said.entry(number).or_default();
            *latest = until.max(*latest);
            for (number, until) in said.iter().filter(|(_, until)| **until > now) {
                let due = told.due(at(now), key(*number));
                prop_assert!(due >= Some(at(*until)), "{} is due at {:?}, told {}", number, due, until);
            }
        }
        let grace = Told::GRACE.as_millis() as u64;
        for number in said.keys() {
            prop_assert_eq!(told.due(at(now + 8_000 + grace), key(*number)), None);
            prop_assert!(said[number] <= now + 8_000);
        }
    }
}
