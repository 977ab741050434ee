//! `[upstream.concurrency]`

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{AimdPolicy, EbbPolicy, LimitPolicy, RangePolicy};

use super::Places;
use super::section::{AdaptiveOr, Found, Section, adaptive_or, choice, duration, factor, integer, nonzero};
use crate::keys::{ALGORITHMS, CONCURRENCY};
use crate::problem::Report;

/// Where Ebb starts if nothing is said and the range allows it: enough for most services, and not too much for a small one.
const INITIAL_EBB: u32 = 10;
/// Where the others start, as Netflix's do.
const INITIAL: u32 = 20;

/// The algorithms, in the order of the key table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Ebb,
    Aimd,
    Gradient2,
    Vegas,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Ebb, Self::Aimd, Self::Gradient2, Self::Vegas];

    /// Keys that say something to this algorithm alone.
    const fn own_keys(self) -> &'static [&'static str] {
        match self {
            Self::Ebb => &["deadline"],
            Self::Aimd => &["baseline", "tolerance", "window", "cooldown"],
            Self::Gradient2 | Self::Vegas => &[],
        }
    }
}

/// The limit, and how busy the upstream may say that it is.
pub(crate) fn read(
    index: usize,
    found: Option<Found<'_>>,
    timeout: Duration,
    report: &mut Report,
    places: &mut Places,
) -> (LimitPolicy, Option<f64>) {
    let mut section = Section::open(&CONCURRENCY, index, found, report, places);
    let limit = section.value("limit", adaptive_or);
    let algorithm = Algorithm::ALL[section.value("algorithm", choice)];
    let min = section.count("min");
    let max = section.count("max");
    let initial = section.optional("initial", integer).map(nonzero);
    let deadline = section.optional("deadline", duration);
    let baseline = section.optional("baseline", duration);
    let tolerance = section.value("tolerance", factor);
    let window = section.count("window");
    let cooldown = section.duration("cooldown");
    let orca_utilization = section.optional("orca_utilization", factor);
    match limit {
        AdaptiveOr::Number(_) => refuse_adaptive(&mut section),
        AdaptiveOr::Adaptive => {
            check_range(&mut section, min, max, initial);
            refuse_keys_of_others(&mut section, algorithm);
        }
    }
    section.close();
    if let AdaptiveOr::Number(number) = limit {
        return (LimitPolicy::Fixed(nonzero(number)), orca_utilization);
    }
    let start = if algorithm == Algorithm::Ebb { INITIAL_EBB } else { INITIAL };
    let initial = initial.unwrap_or_else(|| nonzero(start)).min(max).max(min);
    let range = RangePolicy { min, max, initial };
    let limit = match algorithm {
        Algorithm::Ebb => LimitPolicy::Ebb(EbbPolicy {
            min,
            max,
            initial,
            deadline: deadline.unwrap_or(timeout),
            without: None,
        }),
        Algorithm::Aimd => LimitPolicy::Aimd(AimdPolicy {
            min,
            max,
            initial,
            // Half the timeout: late enough to leave healthy answers alone, and it speaks before the timeout does.
            slow: baseline.map_or(timeout / 2, |baseline| baseline.mul_f64(tolerance)),
            window,
            cooldown,
        }),
        Algorithm::Gradient2 => LimitPolicy::Gradient2(range),
        Algorithm::Vegas => LimitPolicy::Vegas(range),
    };
    (limit, orca_utilization)
}

/// A key that the chosen algorithm does not look at would be a number that somebody relies on in vain.
fn refuse_keys_of_others(section: &mut Section<'_, '_>, chosen: Algorithm) {
    let name = |algorithm: Algorithm| ALGORITHMS[algorithm as usize];
    for other in Algorithm::ALL.into_iter().filter(|other| *other != chosen) {
        for key in other.own_keys().iter().filter(|key| section.has(key)).copied().collect::<Vec<_>>() {
            section.contradiction(
                key,
                format!(
                    "this belongs to the algorithm \"{}\", and \"{}\" does not look at it",
                    name(other),
                    name(chosen)
                ),
                format!("remove it, or write algorithm = \"{}\"", name(other)),
            );
        }
    }
}

/// A fixed limit that comes with adaptive keys is a misunderstanding, one way or the other.
fn refuse_adaptive(section: &mut Section<'_, '_>) {
    // What the upstream reports is a ceiling on whatever the limit is.
    for key in CONCURRENCY.keys.iter().filter(|key| !["limit", "orca_utilization"].contains(&key.name)) {
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
