//! The values of a scenario file that have a form of their own: durations, rates, service times, ranges.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::ServiceTime;

/// Whoever asks for more than this in a second has mistaken the unit.
const RATE_MAX: f64 = 10_000_000.0;
/// The spread of a lognormal time beyond which its mean says nothing any more.
const SIGMA_MAX: f64 = 5.0;

/// A duration with a unit, as in policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        tidegate_policy::parse_duration(&text).map(Self).map_err(D::Error::custom)
    }
}

/// Arrivals a second, written as `150/s`, `2.5/s` or `600/min`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate(pub(super) f64);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_rate(&text).map(Self).map_err(D::Error::custom)
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let form = || format!("`{text}` is not a rate; write it as \"150/s\" or \"600/min\"");
    let (number, unit) = text.split_once('/').ok_or_else(form)?;
    let number: f64 = number.trim().parse().map_err(|_| form())?;
    let seconds = match unit.trim() {
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(form()),
    };
    let rate = number / seconds;
    // NaN is in no range.
    if (0.0..=RATE_MAX).contains(&rate) {
        Ok(rate)
    } else {
        Err(format!("a rate is from 0 to {RATE_MAX} a second"))
    }
}

impl<'de> Deserialize<'de> for ServiceTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

/// Reads a string as a constant time and a table as a distribution, so that what is wrong with either is said.
struct TimeVisitor;

impl<'de> Visitor<'de> for TimeVisitor {
    type Value = ServiceTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"100ms\", or a table with `exponential`, `lognormal` or `uniform`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ServiceTime, E> {
        tidegate_policy::parse_duration(text).map(ServiceTime::Constant).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ServiceTime, A::Error> {
        Ok(match Drawn::deserialize(MapAccessDeserializer::new(map))? {
            Drawn::Exponential(Span(mean)) => ServiceTime::Exponential(mean),
            Drawn::Lognormal { sigma, .. } if !(0.0..=SIGMA_MAX).contains(&sigma) => {
                return Err(A::Error::custom(format!("sigma is from 0 to {SIGMA_MAX}")));
            }
            Drawn::Lognormal { mean: Span(mean), sigma } => ServiceTime::Lognormal(mean, sigma),
            Drawn::Uniform([Span(least), Span(most)]) if least > most => {
                return Err(A::Error::custom("the first of the two is the shorter"));
            }
            Drawn::Uniform([Span(least), Span(most)]) => ServiceTime::Uniform(least, most),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Drawn {
    Exponential(Span),
    Lognormal { mean: Span, sigma: f64 },
    Uniform([Span; 2]),
}

/// A number, or the lowest and the highest that are right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range(pub(super) f64, pub(super) f64);

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number, or a list of the lowest and the highest that are right")]
        enum Form {
            Exact(f64),
            Between([f64; 2]),
        }
        let (least, most) = match Form::deserialize(deserializer)? {
            Form::Exact(number) => (number, number),
            Form::Between([least, most]) => (least, most),
        };
        // NaN compares with nothing.
        if least <= most {
            Ok(Self(least, most))
        } else {
            Err(D::Error::custom("the first of the two is the lower"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(parse_rate("150/s"), Ok(150.0));
        assert_eq!(parse_rate("90/min"), Ok(1.5));
        assert_eq!(parse_rate("0.5/s"), Ok(0.5));
        for wrong in ["150", "x/s", "1/day", "-1/s", "NaN/s", "inf/s", "1e99/s", ""] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
