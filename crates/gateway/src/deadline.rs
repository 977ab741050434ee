//! How long a client waits, as far as it says so, and what of that is left for the upstream.
//!
//! A client can only shorten: the earliest of what its fields say, what the route says, and the upstream's own timeout
//! counts, from the first byte of the head on. The upstream is told what is left, and never more, in the field
//! that the client used, so that a deadline shrinks from hop to hop.

use std::time::Duration;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tidegate_engine::Timestamp;
use tidegate_policy::Policy;

use crate::fields::{Fields, Name};

/// Kept back for the way of the answer: a fiftieth of what is left, at most so much.
const MARGIN_MAX: Duration = Duration::from_millis(5);
const MARGIN_SHARE: u32 = 50;

/// A field by which clients say how long they wait, and how it says it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: Name,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// As gRPC has it: up to eight digits and the letter of a unit.
    Grpc,
    Millis,
    /// Also with a fraction.
    Seconds,
}

impl Field {
    /// Those that the policy names.
    pub(crate) fn all(policy: &Policy) -> Vec<Self> {
        policy.server.deadline_headers.iter().filter_map(|name| Self::named(name)).collect()
    }

    /// The field of this name. What ends in `-ms` is in milliseconds, all others but gRPC's are in seconds.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let unit = match name {
            "grpc-timeout" => Unit::Grpc,
            _ if name.ends_with("-ms") => Unit::Millis,
            _ => Unit::Seconds,
        };
        Some(Self { name: Name::named(name)?, unit })
    }
}

impl Unit {
    /// `None` for what is not a time: a field that cannot be read is not there.
    fn parse(self, value: &str) -> Option<Duration> {
        match self {
            Self::Grpc => {
                let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
                let number = whole(digits, 8)?;
                Some(match unit {
                    "H" => Duration::from_secs(number * 3600),
                    "M" => Duration::from_secs(number * 60),
                    "S" => Duration::from_secs(number),
                    "m" => Duration::from_millis(number),
                    "u" => Duration::from_micros(number),
                    "n" => Duration::from_nanos(number),
                    _ => return None,
                })
            }
            Self::Millis => whole(value, 12).map(Duration::from_millis),
            Self::Seconds => {
                let (seconds, fraction) = value.split_once('.').unwrap_or((value, "0"));
                let seconds = whole(seconds, 9)?;
                let digits = fraction.len().min(9);
                let nanos = whole(fraction.get(..digits)?, 9)? * 10_u64.pow(9 - digits as u32);
                fraction
                    .bytes()
                    .all(|byte| byte.is_ascii_digit())
                    .then(|| Duration::new(seconds, nanos as u32))
            }
        }
    }

    /// Rounded down: the next hop must not think that it has longer.
    fn show(self, left: Duration) -> HeaderValue {
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let text = match self {
            Self::Grpc if millis < 100_000_000 => format!("{millis}m"),
            Self::Grpc => format!("{}S", left.as_secs().min(99_999_999)),
            Self::Millis => millis.to_string(),
            Self::Seconds => format!("{}.{:03}", millis / 1000, millis % 1000),
        };
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
    }
}

/// Digits only, so many at most.
fn whole(digits: &str, most: usize) -> Option<u64> {
    let fits = (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| fits)
}

/// When the answer is of no use any more; `None` if nobody says. `began` is when the request began to come.
pub(crate) fn of(
    fields: &[Field],
    headers: &HeaderMap,
    route: Option<Duration>,
    began: Timestamp,
) -> Option<Timestamp> {
    let said = said(fields, headers).map(|(_, time)| time);
    said.chain(route).min().map(|shortest| began.after(shortest))
}

/// What the client says, field by field.
pub(crate) fn said<'a>(
    fields: &'a [Field],
    headers: &'a HeaderMap,
) -> impl Iterator<Item = (&'a HeaderName, Duration)> {
    let head = Fields::of(headers);
    fields.iter().filter_map(move |field| {
        let value = head.get(&field.name)?.to_str().ok()?;
        Some((&field.name.name, field.unit.parse(value.trim())?))
    })
}

/// Tells the upstream what is left, in the fields that are there.
pub(crate) fn pass_on(fields: &[Field], headers: &mut HeaderMap, left: Duration) {
    let left = left.saturating_sub((left / MARGIN_SHARE).min(MARGIN_MAX));
    for field in fields {
        if let Some(value) = headers.get_mut(&field.name.name) {
            *value = field.unit.show(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, value: &str) -> Option<Duration> {
        Field::named(name).unwrap().unit.parse(value)
    }

    /// H1: what is valid and huge is clamped by the others that count.
    #[test]
    fn what_fields_say() {
        let millis = Duration::from_millis;
        for (name, value, said) in [
            ("grpc-timeout", "100m", Some(millis(100))),
            ("grpc-timeout", "2S", Some(millis(2000))),
            ("grpc-timeout", "1M", Some(millis(60_000))),
            ("grpc-timeout", "99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("grpc-timeout", "500000u", Some(millis(500))),
            ("grpc-timeout", "1n", Some(Duration::from_nanos(1))),
            ("x-envoy-expected-rq-timeout-ms", "250", Some(millis(250))),
            ("request-timeout", "3", Some(millis(3000))),
            ("request-timeout", "0.25", Some(millis(250))),
            ("request-timeout", "1.0000000001", Some(millis(1000))),
        ] {
            assert_eq!(parsed(name, value), said, "{name}: {value}");
        }
    }

    /// H1.
    #[test]
    fn what_says_nothing() {
        for (name, value) in [
            ("grpc-timeout", ""),
            ("grpc-timeout", "m"),
            ("grpc-timeout", "100"),
            ("grpc-timeout", "123456789m"),
            ("grpc-timeout", "-1m"),
            ("grpc-timeout", "1é"),
            ("x-timeout-ms", "1.5"),
            ("x-timeout-ms", "99999999999999999999"),
            ("request-timeout", "1."),
            ("request-timeout", ".5"),
            ("request-timeout", "1.x"),
            ("request-timeout", "1e3"),
        ] {
            assert_eq!(parsed(name, value), None, "{name}: {value}");
        }
    }

    /// H3. The earliest counts, and whatever comes in comes out no longer.
    #[test]
    fn a_deadline_only_shrinks() {
        let fields: Vec<Field> = ["grpc-timeout", "x-timeout-ms", "request-timeout"]
            .iter()
            .filter_map(|name| Field::named(name))
            .collect();
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", HeaderValue::from_static("2S"));
        headers.insert("x-timeout-ms", HeaderValue::from_static("1000"));
        let began = Timestamp::from_millis(500);
        assert_eq!(of(&fields, &headers, None, began), Some(Timestamp::from_millis(1500)));
        assert_eq!(
            of(&fields, &headers, Some(Duration::from_millis(10)), began),
            Some(Timestamp::from_millis(510))
        );
        assert_eq!(of(&[], &headers, None, began), None);
        pass_on(&fields, &mut headers, Duration::from_millis(100));
        assert_eq!(
            (&headers["grpc-timeout"], &headers["x-timeout-ms"]),
            (&"98m".parse().unwrap(), &"98".parse().unwrap())
        );
        assert!(!headers.contains_key("request-timeout"), "nothing is added that was not there");
        pass_on(&fields, &mut headers, Duration::from_secs(10));
        assert_eq!(headers["x-timeout-ms"], "9995");
        pass_on(&fields, &mut headers, Duration::MAX);
        assert_eq!(headers["grpc-timeout"], "99999999S");
    }
}
