//! Durations and rates: a number never goes without its unit.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Wrong, show};

const DURATION_UNITS: [(&str, u64); 5] =
    [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

/// `"500ms"`, `"1.5s"`, `"2m"`. Exact: no floating point, nothing is rounded.
pub(crate) fn duration(text: &str) -> Result<Duration, Wrong> {
    const HELP: &str = "a duration is a number and a unit (us, ms, s, m, h), such as \"500ms\" or \"1.5s\"";
    let (number, unit) = split_number(text);
    if number.is_empty() {
        let message =
            if text.starts_with('-') { "a duration cannot be negative" } else { "this is not a duration" };
        return Err(Wrong::new(message, HELP));
    }
    if unit.is_empty() {
        return Err(duration_without_unit(number));
    }
    if let Some(compact) = without_spaces(text) {
        return Err(Wrong::new("no space stands in a duration", format!("write \"{compact}\"")));
    }
    let Some(&(_, unit_nanos)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(Wrong::new(format!("`{}` is not a unit of time", show(unit)), HELP));
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(Wrong::new(format!("`{}` is not a number", show(number)), HELP));
    }
    let too_long = || Wrong::new("longer than any duration that is allowed", "");
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let nanos = whole.checked_mul(unit_nanos).ok_or_else(too_long)?;
    let rest = fraction_of(fraction, unit_nanos)
        .ok_or_else(|| Wrong::new("finer than a nanosecond", "leave out the last digits"))?;
    Ok(Duration::from_nanos(nanos.checked_add(rest).ok_or_else(too_long)?))
}

/// The error for a number that should have been a duration.
pub(crate) fn duration_without_unit(number: &str) -> Wrong {
    let number = show(number);
    Wrong::new("a duration needs a unit", format!("write \"{number}ms\" or \"{number}s\""))
}

/// 0.`digits` of a unit, in nanoseconds; `None` if that is no whole number of them.
fn fraction_of(digits: &str, unit_nanos: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    let mut scale = 1_u128;
    let mut value = 0_u128;
    // An hour has 2¹³ · 3² · 5¹¹ nanoseconds: nothing with more than 13 digits comes out even.
    for digit in digits.bytes() {
        if scale > 1_000_000_000_000 {
            return None;
        }
        scale *= 10;
        value = value * 10 + u128::from(digit - b'0');
    }
    let nanos = value * u128::from(unit_nanos);
    if nanos.is_multiple_of(scale) { u64::try_from(nanos / scale).ok() } else { None }
}

/// A duration as one would write it: in the largest unit that it is a whole number of.
pub(crate) fn duration_text(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let whole = DURATION_UNITS.iter().rev().find(|&&(_, unit)| nanos.is_multiple_of(u128::from(unit)));
    match whole {
        _ if nanos == 0 => "0s".to_owned(),
        Some(&(name, unit)) => format!("{}{name}", nanos / u128::from(unit)),
        None => format!("{}.{:03}us", nanos / 1_000, nanos % 1_000),
    }
}

/// So many per period, as it is written: `"10/s"`, `"600/min"`, `"5/10s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) count: NonZeroU32,
    pub(crate) period: Duration,
}

impl Rate {
    /// How many come in a second, rounded up; at least 1.
    pub(crate) fn per_second(self) -> NonZeroU32 {
        let count = u128::from(self.count.get()) * 1_000_000_000;
        let per_second = count.div_ceil(self.period.as_nanos().max(1));
        u32::try_from(per_second).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX)
    }
}

pub(crate) fn rate(text: &str) -> Result<Rate, Wrong> {
    const HELP: &str =
        "a rate is a count, `/` and a period (s, min, h, day), such as \"10/s\", \"600/min\" or \"5/10s\"";
    if let Some(compact) = without_spaces(text) {
        return Err(Wrong::new("no space stands in a rate", format!("write \"{compact}\"")));
    }
    let Some((count, period)) = text.split_once('/') else {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(rate_without_unit(text));
        }
        return Err(Wrong::new("this is not a rate", HELP));
    };
    if count.contains('.') {
        return Err(Wrong::new(
            "the count of a rate is a whole number",
            "for less than one in a period, lengthen the period: \"1/2s\" is one every two seconds",
        ));
    }
    if count.starts_with('-') {
        return Err(Wrong::new("a rate cannot be negative", HELP));
    }
    let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(Wrong::new(format!("`{}` is not a count", show(count)), HELP));
    }
    let count: u32 = count.parse().map_err(|_| {
        Wrong::new("faster than any rate that is allowed", "the highest rate is \"1000000000/s\"")
    })?;
    let Some(count) = NonZeroU32::new(count) else {
        return Err(Wrong::new(
            "a rate of 0 would refuse every request",
            "to refuse a path altogether, leave it without a route",
        ));
    };
    let (times, unit) = split_number(period);
    let unit: u64 = match unit {
        "s" | "sec" | "second" => 1,
        "m" | "min" | "minute" => 60,
        "h" | "hour" => 3_600,
        "d" | "day" => 86_400,
        _ => return Err(Wrong::new(format!("`{}` is not a period", show(period)), HELP)),
    };
    let times: u64 = if times.is_empty() { "1" } else { times }
        .parse()
        .map_err(|_| Wrong::new(format!("`{}` is not a period", show(period)), HELP))?;
    if times == 0 {
        return Err(Wrong::new("a period of 0 has no rate", HELP));
    }
    let period = Duration::from_secs(times.saturating_mul(unit));
    Ok(Rate { count, period })
}

/// The error for a number that should have been a rate.
pub(crate) fn rate_without_unit(number: &str) -> Wrong {
    let number = show(number);
    Wrong::new("a rate needs a period", format!("write \"{number}/s\" or \"{number}/min\""))
}

/// The digits and points that a text begins with, and the rest.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// The text without its spaces, for a message, if it has any.
fn without_spaces(text: &str) -> Option<String> {
    text.contains(' ').then(|| show(&text.replace(' ', "")))
}
