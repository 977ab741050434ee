//! The types of keys: from a TOML value to a Rust value within the bounds of the key table.

use std::time::Duration;

use toml::de::{DeInteger, DeValue};

use crate::keys::{Key, Kind};
use crate::values::{self, Rate, Wrong, duration_text, grouped, nearest, show};

pub(crate) fn switch(_: &Key, value: &DeValue<'_>) -> Result<bool, Wrong> {
    match value {
        DeValue::Boolean(on) => Ok(*on),
        DeValue::String(word) if &**word == "true" || &**word == "false" => Err(Wrong::new(
            "true or false is needed, this is a string",
            format!("write {word} without quotes"),
        )),
        _ => Err(mismatch("true or false is needed", value)),
    }
}

pub(crate) fn integer(key: &Key, value: &DeValue<'_>) -> Result<u32, Wrong> {
    let Kind::Integer { min, max } = key.kind else { unreachable!("`{}` is an integer", key.name) };
    match value {
        DeValue::Integer(integer) => bounded(key, integer, min, max),
        _ => Err(not_whole("a whole number is needed", value)),
    }
}

/// One of the numbers.
pub(crate) fn one_of(key: &Key, value: &DeValue<'_>) -> Result<u32, Wrong> {
    let Kind::OneOf(numbers) = key.kind else { unreachable!("`{}` is one of some numbers", key.name) };
    let DeValue::Integer(integer) = value else { return Err(not_whole("a whole number is needed", value)) };
    let known = wide(integer).and_then(|wide| numbers.iter().find(|number| i128::from(**number) == wide));
    known.copied().ok_or_else(|| Wrong::new(format!("must be one of {}", key.kind.says()), ""))
}

/// A limit: that of an algorithm, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdaptiveOr {
    Adaptive,
    Number(u32),
}

pub(crate) fn adaptive_or(key: &Key, value: &DeValue<'_>) -> Result<AdaptiveOr, Wrong> {
    const HELP: &str = "write \"adaptive\", or a number that you have measured";
    let Kind::AdaptiveOr { min, max } = key.kind else { unreachable!("`{}` is a limit", key.name) };
    match value {
        DeValue::String(word) if &**word == "adaptive" => Ok(AdaptiveOr::Adaptive),
        DeValue::String(word) if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(Wrong::new("a number in quotes is a string", format!("write {} without quotes", show(word))))
        }
        DeValue::String(word) => Err(Wrong::new(format!("`{}` is not a limit", show(word)), HELP)),
        DeValue::Integer(integer) => bounded(key, integer, min, max).map(AdaptiveOr::Number),
        _ => Err(not_whole("\"adaptive\" or a whole number is needed", value)),
    }
}

pub(crate) fn factor(key: &Key, value: &DeValue<'_>) -> Result<f64, Wrong> {
    let Kind::Factor { above, max } = key.kind else { unreachable!("`{}` is a factor", key.name) };
    // NaN fails both comparisons, and what overflowed is infinite.
    number(key, value, |number| number > above && number <= max)
}

pub(crate) fn share(key: &Key, value: &DeValue<'_>) -> Result<f64, Wrong> {
    let Kind::Share { max } = key.kind else { unreachable!("`{}` is a share", key.name) };
    number(key, value, |number| (0.0..=max).contains(&number))
}

fn number(key: &Key, value: &DeValue<'_>, fits: impl Fn(f64) -> bool) -> Result<f64, Wrong> {
    let number: Option<f64> = match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::Integer(integer) => wide(integer).map(|wide| wide as f64),
        _ => return Err(mismatch("a number is needed", value)),
    };
    match number {
        Some(number) if fits(number) => Ok(number),
        _ => Err(Wrong::new(format!("the number must be {}", key.kind.bounds()), "")),
    }
}

pub(crate) fn duration(key: &Key, value: &DeValue<'_>) -> Result<Duration, Wrong> {
    let Kind::Duration { min, max } = key.kind else { unreachable!("`{}` is a duration", key.name) };
    let duration = match value {
        DeValue::String(text) => values::duration(text)?,
        DeValue::Integer(integer) if is_plain(integer.as_str()) => {
            return Err(values::duration_without_unit(integer.as_str()));
        }
        DeValue::Float(float) if is_plain(float.as_str()) => {
            return Err(values::duration_without_unit(float.as_str()));
        }
        _ => return Err(mismatch("a string with a unit, such as \"500ms\", is needed", value)),
    };
    if duration.is_zero() && !min.is_zero() && !key.zero.is_empty() {
        return Err(Wrong::new(format!("0 is not allowed: {}", key.zero), within(key)));
    }
    if duration < min || duration > max {
        return Err(Wrong::new(format!("must be from {} to {}", duration_text(min), duration_text(max)), ""));
    }
    Ok(duration)
}

pub(crate) fn rate(_: &Key, value: &DeValue<'_>) -> Result<Rate, Wrong> {
    match value {
        DeValue::String(text) => values::rate(text),
        DeValue::Integer(integer) if is_plain(integer.as_str()) => {
            Err(values::rate_without_unit(integer.as_str()))
        }
        _ => Err(mismatch("a string with a period, such as \"10/s\", is needed", value)),
    }
}

/// One of the words, as its number.
pub(crate) fn choice(key: &Key, value: &DeValue<'_>) -> Result<usize, Wrong> {
    let Kind::Choice { of, not_yet } = key.kind else { unreachable!("`{}` is a choice", key.name) };
    let word = text(value)?;
    if let Some(at) = of.iter().position(|known| *known == word) {
        return Ok(at);
    }
    let all = of.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ");
    if let Some(later) = not_yet.iter().find(|later| **later == word) {
        return Err(Wrong::not_yet(&format!("\"{later}\""), format!("write {all}, or leave the key out")));
    }
    let help = match nearest(word, of.iter().copied()) {
        Some(near) if of.len() > 1 => format!("did you mean \"{near}\"? It can be {all}"),
        _ => format!("write {all}"),
    };
    Err(Wrong::new(format!("`{}` is none of the words that it can be", show(word)), help))
}

pub(crate) fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Wrong> {
    match value {
        DeValue::String(text) => Ok(text),
        _ => Err(mismatch("a string is needed", value)),
    }
}

/// The error for a value of the wrong type.
pub(crate) fn mismatch(needed: &str, value: &DeValue<'_>) -> Wrong {
    let found = match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    let help = match value {
        DeValue::Integer(_) if needed.starts_with("a string is") => "write it in quotes",
        DeValue::String(_) if needed.starts_with("a list of strings") => "write it in brackets: [\"…\"]",
        _ => "",
    };
    Wrong::new(format!("{needed}, this is {found}"), help)
}

fn not_whole(needed: &str, value: &DeValue<'_>) -> Wrong {
    let mut wrong = mismatch(needed, value);
    match value {
        DeValue::Float(float) => {
            if let Some(whole) = float.as_str().strip_suffix(".0") {
                wrong.help = format!("write {}", show(whole));
            }
        }
        DeValue::String(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            wrong.help = format!("write {} without quotes", show(text));
        }
        DeValue::String(text) => wrong.message = format!("`{}` is not a whole number", show(text)),
        _ => {}
    }
    wrong
}

fn bounded(key: &Key, integer: &DeInteger<'_>, min: u32, max: u32) -> Result<u32, Wrong> {
    let wide = wide(integer);
    if wide == Some(0) && min > 0 && !key.zero.is_empty() {
        return Err(Wrong::new(format!("0 is not allowed: {}", key.zero), within(key)));
    }
    // What is too large even for 128 bits is out of every bound.
    let Some(number) =
        wide.and_then(|wide| u32::try_from(wide).ok()).filter(|number| (min..=max).contains(number))
    else {
        let message = format!("must be from {} to {}", grouped(min), grouped(max));
        return Err(Wrong::new(message, ""));
    };
    Ok(number)
}

fn within(key: &Key) -> String {
    format!("it can be {}", key.kind.bounds())
}

fn wide(integer: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Digits and a point: a number that would be right with a unit behind it.
fn is_plain(number: &str) -> bool {
    number.len() <= 20 && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
