//! `[upstream.concurrency]`

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{AimdPolicy, LimitPolicy};

use super::Places;
use super::section::{AdaptiveOr, Found, Section, adaptive_or, choice, duration, factor, integer, nonzero};
use crate::keys::CONCURRENCY;
use crate::problem::Report;

/// Where the adaptive limit starts if nothing is said and the range allows it.
const INITIAL: u32 = 20;

pub(crate) fn read(
    index: usize,
    found: Option<Found<'_>>,
    timeout: Duration,
    report: &mut Report,
    places: &mut Places,
) -> LimitPolicy {
    let mut section = Section::open(&CONCURRENCY, index, found, report, places);
    let limit = section.value("limit", adaptive_or);
    // The only word there is; the key is read so that any other is refused.
    let _aimd = section.value("algorithm", choice);
    let min = section.count("min");
    let max = section.count("max");
    let initial = section.optional("initial", integer).map(nonzero);
    let baseline = section.optional("baseline", duration);
    let tolerance = section.value("tolerance", factor);
    let window = section.count("window");
    let cooldown = section.duration("cooldown");
    match limit {
        AdaptiveOr::Number(_) => refuse_adaptive(&mut section),
        AdaptiveOr::Adaptive => check_range(&mut section, min, max, initial),
    }
    section.close();
    match limit {
        AdaptiveOr::Number(number) => LimitPolicy::Fixed(nonzero(number)),
        AdaptiveOr::Adaptive => LimitPolicy::Aimd(AimdPolicy {
            min,
            max,
            initial: initial.unwrap_or_else(|| nonzero(INITIAL)).min(max).max(min),
            // Half the timeout: late enough to leave healthy answers alone, and it speaks before the timeout does.
            slow: baseline.map_or(timeout / 2, |baseline| baseline.mul_f64(tolerance)),
            window,
            cooldown,
        }),
    }
}

/// A fixed limit that comes with adaptive keys is a misunderstanding, one way or the other.
fn refuse_adaptive(section: &mut Section<'_, '_>) {
    for key in CONCURRENCY.keys.iter().filter(|key| key.name != "limit") {
        if section.has(key.name) {
            section.contradiction(
                key.name,
                "this belongs to the adaptive limit, and `limit` is a number",
                "remove it, or write limit = \"adaptive\"",
            );
        }
    }
}

fn check_range(section: &mut Section<'_, '_>, min: NonZeroU32, max: NonZeroU32, initial: Option<NonZeroU32>) {
    if !section.is_sound() {
        return;
    }
    if min > max {
        let (at, other) = if section.has("max") { ("max", "min") } else { ("min", "max") };
        let message = format!("`min` is {min} and `max` is {max}: nothing lies between");
        let help = if section.has(other) { String::new() } else { format!("give `{other}` as well") };
        section.contradiction(at, message, help);
    } else if let Some(initial) = initial.filter(|initial| !(min..=max).contains(initial)) {
        section.contradiction(
            "initial",
            format!("{initial} is not within `min` and `max`"),
            format!("write a number from {min} to {max}"),
        );
    }
}
