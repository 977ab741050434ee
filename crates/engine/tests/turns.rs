//! What callers over a rate limit are told: whoever comes back then gets in, and they do not come all at once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_engine::{Quota, RateLimiter, RateRefusal, Timestamp};

const ONE: NonZeroU32 = NonZeroU32::MIN;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const KEY: u64 = 7;

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn limiter(rate: u32, burst: u32) -> RateLimiter {
    RateLimiter::new(Quota::new(number(rate), SECOND, number(burst)).unwrap(), number(100))
}

/// Asks, and says when to come back if that was in vain.
fn ask(limiter: &mut RateLimiter, now: Timestamp, cost: NonZeroU32, longest: Duration) -> Option<Duration> {
    let refusal = limiter.check(now, KEY, cost).err()?;
    Some(limiter.rejection(now, KEY, cost, refusal, longest).retry_after)
}

/// Asks so many times at once. The times told to those who are refused.
fn herd(limiter: &mut RateLimiter, now: Timestamp, callers: u32) -> Vec<Duration> {
    (0..callers).filter_map(|_| ask(limiter, now, ONE, MINUTE)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// B6 for many: they are refused at any moments, for any costs; each comes back once, when it was told to, and nobody
    /// else comes. All of them get in, and whoever is the only one is told the exact time.
    #[test]
    fn whoever_comes_back_when_told_gets_in(
        rate in 1..100_000_u32,
        burst in 1..50_u32,
        start in 0..u64::MAX / 4,
        callers in prop::collection::vec((0..100_u64, 1..4_u32), 1..200),
    ) {
        let mut limiter = limiter(rate, burst);
        // In units of a hundredth of an emission interval, so that some come at once and some far apart.
        let step = 10_000_000 / u64::from(rate) + 1;
        let mut now = start;
        let _ = herd(&mut limiter, Timestamp::from_nanos(now), burst);
        let mut back: BTreeMap<(u64, usize), NonZeroU32> = BTreeMap::new();
        for (index, (wait, cost)) in callers.into_iter().enumerate() {
            now += wait * step;
            let cost = number(cost.min(burst));
            // Whoever is due by now comes first.
            while let Some(entry) = back.first_entry().filter(|entry| entry.key().0 <= now) {
                let ((at, _), cost) = entry.remove_entry();
                prop_assert!(limiter.check(Timestamp::from_nanos(at), KEY, cost).is_ok());
            }
            let alone = back.is_empty();
            let at = Timestamp::from_nanos(now);
            // Whoever would get in takes what others were to have: nobody else comes.
            let Err(refusal) = limiter.peek(at, KEY, cost).map(drop) else { continue };
            let told = limiter.rejection(at, KEY, cost, refusal, Duration::MAX).retry_after;
            if alone {
                prop_assert_eq!(refusal, RateRefusal::NotYet(told));
            }
            back.insert((now + told.as_nanos() as u64, index), cost);
        }
        for ((at, _), cost) in back {
            prop_assert!(limiter.check(Timestamp::from_nanos(at), KEY, cost).is_ok());
        }
    }
}

/// The most that came in any second: `arrivals` in order.
fn peak(arrivals: &[Duration]) -> usize {
    let within = |(first, from): (usize, &Duration)| {
        arrivals[first..].iter().take_while(|at| **at < *from + SECOND).count()
    };
    arrivals.iter().enumerate().map(within).max().unwrap_or(0)
}

/// H10 (k8s#79805). A thousand are refused at once and come back when told to, to the millisecond or rounded up to whole
/// seconds. In no second come more than one and a half times the rate, and all get in at the first attempt, as long as
/// a second's worth fits the bucket.
#[test]
fn a_thousand_at_once_come_back_spread() {
    let whole = |told: Duration| Duration::from_secs(told.as_nanos().div_ceil(1_000_000_000) as u64);
    let millis = |told: Duration| Duration::from_millis(told.as_nanos().div_ceil(1_000_000) as u64);
    for (rate, rounding) in
        [(20, &whole as &dyn Fn(Duration) -> Duration), (50, &whole), (20, &millis), (400, &millis)]
    {
        let mut limiter = limiter(rate, rate);
        let now = Timestamp::from_millis(1_234);
        let told = herd(&mut limiter, now, 1_000 + rate);
        assert_eq!(told.len(), 1_000);
        let arrivals: Vec<Duration> = told.into_iter().map(rounding).collect();
        let peak = peak(&arrivals) as f64;
        assert!(peak <= 1.5 * f64::from(rate), "{peak} in a second at {rate}/s");
        let admitted =
            arrivals.iter().filter(|wait| limiter.check(now.after(**wait), KEY, ONE).is_ok()).count();
        assert_eq!(admitted, 1_000, "{rate}/s");
    }
}

/// More than the longest time has turns for: they come more often than the rate, but as evenly as can be, and the turns
/// of those who were told exactly are not all taken.
#[test]
fn more_than_there_are_turns_for() {
    let mut limiter = limiter(10, 10);
    let mut arrivals = herd(&mut limiter, Timestamp::ZERO, 1_010);
    let exact: Vec<Duration> = arrivals[..600].to_vec();
    assert!(exact.is_sorted() && exact[0] == SECOND / 10 && exact[599] == MINUTE, "{exact:?}");
    arrivals.sort_unstable();
    assert!(arrivals.iter().all(|told| *told <= MINUTE));
    // 600 in sixty seconds, and the other 400 in the last thirty.
    assert!(peak(&arrivals) <= 10 + 400 / 30 + 3, "{}", peak(&arrivals));
}

/// What is said to be left is exactly how many get in.
#[test]
fn what_is_left_is_there() {
    for (rate, burst, used) in [(10, 20, 0), (10, 20, 7), (1_000_000_000, 3, 2), (7, 1, 1), (3, 1_000, 999)] {
        let mut limiter = limiter(rate, burst);
        for wait in [0, 1_000_000, 150_000_000, u64::MAX / 2] {
            let now = Timestamp::from_nanos(wait);
            let _ = (0..used).find(|_| limiter.check(now, KEY, ONE).is_err());
            let left = limiter.left(now, KEY);
            let admitted = (0..=burst).take_while(|_| limiter.check(now, KEY, ONE).is_ok()).count();
            assert_eq!(left as usize, admitted, "{rate}/s, {burst}, {used} used");
            assert_eq!(limiter.left(now, KEY), 0);
        }
    }
}

/// Nobody is kept away by what was told long ago, nor by another quota.
#[test]
fn what_was_told_is_forgotten() {
    let mut limiter = limiter(10, 1);
    assert_eq!(herd(&mut limiter, Timestamp::ZERO, 4), [100, 200, 300].map(Duration::from_millis));
    // Those did not come back. Whoever comes now does not stand behind them.
    assert_eq!(herd(&mut limiter, Timestamp::from_millis(300), 3), [100, 200].map(Duration::from_millis));
    limiter.reconfigure(Timestamp::from_millis(310), Quota::new(number(1), SECOND, ONE).unwrap());
    let told = herd(&mut limiter, Timestamp::from_millis(310), 2);
    assert_eq!(told, [900, 1900].map(Duration::from_millis), "nine tenths of the one are still used");
}
