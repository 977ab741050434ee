//! Points in time as logs write them: `10/Oct/2000:13:55:36 -0700`, ISO 8601, seconds since 1970; and the zone for
//! those that name none.
//!
//! It knows how a time is spelled, not what happened then: whether it is the start or the end of a request is the
//! format's business.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use tidegate_engine::Timestamp;

/// How fine a time was written. It says how much of an order of arrival is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// Whole seconds: all requests of a second bear the same time.
    Second,
    /// One to three digits after the second.
    Millisecond,
    /// More digits.
    Finer,
}

/// A moment, and how fine it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) at: Timestamp,
    pub(crate) grain: Grain,
}

/// The time zone of times that name none, such as HAProxy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated Universal Time, the default.
    pub const UTC: Self = Self(TimeZone::UTC);
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.iana_name() {
            Some(name) => f.write_str(name),
            None => self.0.to_fixed_offset().map_or(Ok(()), |offset| write!(f, "UTC{offset}")),
        }
    }
}

/// The text that names no zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone(String);

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a time zone; write a name such as \"Europe/Paris\", or \"+02:00\"", self.0)
    }
}

impl std::error::Error for UnknownZone {}

impl FromStr for Zone {
    type Err = UnknownZone;

    /// Reads a name of the tz database (`Europe/Paris`, `UTC`), which is built in, or an offset (`+02:00`, `-0700`).
    fn from_str(text: &str) -> Result<Self, UnknownZone> {
        if let Some(seconds) = offset(text) {
            let offset = Offset::from_seconds(seconds).map_err(|_| UnknownZone(text.into()))?;
            return Ok(Self(TimeZone::fixed(offset)));
        }
        TimeZone::get(text).map(Self).map_err(|_| UnknownZone(text.chars().take(64).collect()))
    }
}

/// Reads `10/Oct/2000:13:55:36 -0700`, with or without a fraction of the second, with or without the offset.
/// <https://httpd.apache.org/docs/current/mod/mod_log_config.html>
pub(crate) fn common(text: &str, zone: &Zone) -> Option<Stamp> {
    let (time, rest) = text.split_once(' ').map_or((text, ""), |(time, rest)| (time, rest));
    let mut parts = time.splitn(3, '/');
    let (day, month, rest_of_date) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, clock) = rest_of_date.split_once(':')?;
    let date = (digits(year, 4)?, month_number(month)?, digits(day, 2)?);
    let offset = if rest.is_empty() { None } else { Some(offset(rest)?) };
    stamp(date, clock, offset, zone)
}

/// Reads `2026-05-01T10:00:00.123Z`: `T` or a space, a fraction or none, `Z`, an offset or nothing (RFC 3339 and its
/// kin).
pub(crate) fn iso(text: &str, zone: &Zone) -> Option<Stamp> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let mut parts = date.split('-');
    let date = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let end = rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len());
    let (clock, named) = rest.split_at(end);
    let offset = match named.trim() {
        "" => None,
        "Z" | "z" | "UTC" => Some(0),
        named => Some(offset(named)?),
    };
    stamp(date, clock, offset, zone)
}

/// Reads a number of seconds since 1970, whose fraction may have as many digits as it likes.
pub(crate) fn epoch_seconds(text: &str) -> Option<Stamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = all_digits(whole)?;
    let (nanos, grain) = fraction_of_second(fraction)?;
    let at = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Some(Stamp { at: Timestamp::from_nanos(at), grain })
}

/// Reads a number of units since 1970, each of `unit` nanoseconds.
pub(crate) fn epoch_units(text: &str, unit: u64) -> Option<Stamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if unit == 1_000_000_000 {
        return epoch_seconds(text);
    }
    let (billionths, _) = fraction_of_second(fraction)?;
    let rest = u128::from(billionths) * u128::from(unit) / 1_000_000_000;
    let nanos = all_digits(whole)?.saturating_mul(unit).saturating_add(u64::try_from(rest).unwrap_or(0));
    let grain = if unit == 1_000_000 && fraction.is_empty() { Grain::Millisecond } else { Grain::Finer };
    Some(Stamp { at: Timestamp::from_nanos(nanos), grain })
}

fn stamp(date: (u32, u32, u32), clock: &str, offset: Option<i32>, zone: &Zone) -> Option<Stamp> {
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    // A leap second counts as the one before it, as POSIX clocks have it.
    let second = digits(parts.next()?, 2)?.min(59);
    if parts.next().is_some() {
        return None;
    }
    let small = |number: u32| i8::try_from(number).ok();
    let (year, month, day) = (i16::try_from(date.0).ok()?, small(date.1)?, small(date.2)?);
    let civil = DateTime::new(year, month, day, small(hour)?, small(minute)?, small(second)?, 0).ok()?;
    let (nanos, grain) = fraction_of_second(fraction)?;
    let moment = match offset {
        Some(seconds) => Offset::from_seconds(seconds).ok()?.to_timestamp(civil).ok()?,
        // In the hour that a zone has twice, the first is meant; in the one that it skips, the later.
        None => zone.0.to_timestamp(civil).ok()?,
    };
    let seconds = u64::try_from(moment.as_second()).unwrap_or(0);
    let at = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Some(Stamp { at: Timestamp::from_nanos(at), grain })
}

/// The nanoseconds in the digits after a second's point.
fn fraction_of_second(digits: &str) -> Option<(u64, Grain)> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let grain = match digits.len() {
        0 => Grain::Second,
        1..=3 => Grain::Millisecond,
        _ => Grain::Finer,
    };
    Some((nanos, grain))
}

/// Seconds east of Greenwich, from `+0200`, `-07:00` or `+02`.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        2 => (rest, "00"),
        4 => (rest.get(..2)?, rest.get(2..)?),
        5 if rest.as_bytes()[2] == b':' => (rest.get(..2)?, rest.get(3..)?),
        _ => return None,
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok()?;
    (hours < 24 && minutes < 60).then_some(sign * seconds)
}

fn month_number(name: &str) -> Option<u32> {
    const NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    u32::try_from(at + 1).ok()
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// A number of any length, saturating.
fn all_digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(stamp: Option<Stamp>) -> Option<(u64, Grain)> {
        stamp.map(|stamp| (stamp.at.as_nanos(), stamp.grain))
    }

    #[test]
    fn many_spellings_of_one_moment() {
        let paris: Zone = "Europe/Paris".parse().unwrap();
        let expected = Some((1_714_557_600_000_000_000, Grain::Second));
        for text in ["01/May/2024:10:00:00 +0000", "01/May/2024:05:30:00 -0430", "01/may/2024:12:00:00 +0200"]
        {
            assert_eq!(nanos(common(text, &Zone::UTC)), expected, "{text}");
        }
        assert_eq!(nanos(common("01/May/2024:12:00:00", &paris)), expected);
        for text in ["2024-05-01T10:00:00Z", "2024-05-01 12:00:00+02:00", "2024-05-01T10:00:00"] {
            assert_eq!(nanos(iso(text, &Zone::UTC)), expected, "{text}");
        }
        assert_eq!(nanos(epoch_seconds("1714557600")), expected);
    }

    #[test]
    fn the_grain_is_what_was_written() {
        let millis = Some((1_714_557_600_123_000_000, Grain::Millisecond));
        assert_eq!(nanos(common("01/May/2024:10:00:00.123", &Zone::UTC)), millis);
        assert_eq!(nanos(iso("2024-05-01T10:00:00.123Z", &Zone::UTC)), millis);
        assert_eq!(nanos(epoch_seconds("1714557600.123")), millis);
        assert_eq!(nanos(epoch_units("1714557600123", 1_000_000)), millis);
        let finer = Some((1_714_557_600_123_456_789, Grain::Finer));
        assert_eq!(nanos(iso("2024-05-01T10:00:00.1234567891Z", &Zone::UTC)), finer);
        assert_eq!(nanos(epoch_units("1714557600123.456789", 1_000_000)), finer);
        assert_eq!(nanos(epoch_units("1714557600123456789", 1)), finer);
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["", "-", "32/May/2024:10:00:00", "01/Mai/2024:10:00:00", "01/May/2024", "1/1/1:1:1:1 +0000"]
        {
            assert_eq!(common(text, &Zone::UTC), None, "{text}");
        }
        for text in
            ["2024-13-01T10:00:00Z", "2024-05-01", "2024-05-01T10:00Z", "2024-05-01T10:00:00+99:00", "é"]
        {
            assert_eq!(iso(text, &Zone::UTC), None, "{text}");
        }
        for text in ["", ".5", "-1", "1e9", "١"] {
            assert_eq!(epoch_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn times_out_of_range_saturate() {
        assert_eq!(nanos(common("01/Jan/1960:00:00:00 +0000", &Zone::UTC)), Some((0, Grain::Second)));
        assert_eq!(nanos(epoch_seconds("99999999999999999999999")), Some((u64::MAX, Grain::Second)));
        assert_eq!(nanos(epoch_units("99999999999999999999", 1_000)), Some((u64::MAX, Grain::Finer)));
    }

    #[test]
    fn zones_have_names_and_offsets() {
        for (text, shown) in [("UTC", "UTC"), ("Europe/Paris", "Europe/Paris"), ("+02:00", "UTC+02")] {
            assert_eq!(text.parse::<Zone>().unwrap().to_string(), shown);
        }
        let error = "Mars/Olympus".parse::<Zone>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"Mars/Olympus\" is not a time zone; write a name such as \"Europe/Paris\", or \"+02:00\""
        );
    }
}
