//! How long a caller waits, and how that is told to whom it calls.
//!
//! A deadline can only shrink on its way: what is sent is what is left when it is sent, and never more than the request said
//! itself. Reading what a client said is the business of whoever serves it; [`Ambient`](crate::Ambient) carries it here.

use std::time::Duration;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::clock;

/// When the answer to a request is of no use any more. Put into the request's extensions it is that request's deadline, if
/// the policy's own timeout does not come first.
///
/// ```
/// use std::time::Duration;
/// use tidegate_client::Deadline;
///
/// let mut request = http::Request::get("http://orders/42").body(()).unwrap();
/// request.extensions_mut().insert(Deadline::within(Duration::from_millis(300)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub(crate) Instant);

impl Deadline {
    /// So long from now; what is longer than thirty years is thirty years.
    pub fn within(left: Duration) -> Self {
        const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
        Self(clock::instant() + left.min(FAR))
    }

    /// At this instant of the standard library's clock.
    pub fn at(instant: std::time::Instant) -> Self {
        Self(instant.into())
    }

    /// How long until then; zero if it has passed. What a handler asks before each expensive step.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(clock::instant())
    }
}

/// How a field says how long its sender waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As gRPC has it: up to eight digits and the letter of a unit.
    Grpc,
    /// Whole milliseconds.
    Millis,
    /// Seconds, also with a fraction.
    Seconds,
}

/// A field by which callers say how long they wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineField {
    /// Its name.
    pub name: HeaderName,
    /// How it says it.
    pub unit: Unit,
}

impl DeadlineField {
    /// `grpc-timeout`, which is added to gRPC requests only.
    pub const GRPC: Self = Self { name: HeaderName::from_static("grpc-timeout"), unit: Unit::Grpc };
    /// `x-envoy-expected-rq-timeout-ms`, as Envoy tells its upstreams.
    pub const ENVOY: Self =
        Self { name: HeaderName::from_static("x-envoy-expected-rq-timeout-ms"), unit: Unit::Millis };

    /// What it says in these headers; `None` if it is not there, or cannot be read, which is the same.
    pub fn read(&self, headers: &HeaderMap) -> Option<Duration> {
        self.unit.parse(headers.get(&self.name)?.to_str().ok()?.trim())
    }

    fn belongs_into(&self, headers: &HeaderMap, is_grpc: bool) -> bool {
        self.unit != Unit::Grpc || is_grpc || headers.contains_key(&self.name)
    }
}

/// The shortest of what these fields say.
pub(crate) fn said(fields: &[DeadlineField], headers: &HeaderMap) -> Option<Duration> {
    fields.iter().filter_map(|field| field.read(headers)).min()
}

/// Tells whoever is called what is left.
pub(crate) fn tell(fields: &[DeadlineField], headers: &mut HeaderMap, is_grpc: bool, left: Duration) {
    for field in fields {
        if field.belongs_into(headers, is_grpc) {
            headers.insert(field.name.clone(), field.unit.show(left));
        }
    }
}

impl Unit {
    /// `None` for what is not a time. What is valid and huge is clamped by the policy's own timeout.
    fn parse(self, value: &str) -> Option<Duration> {
        match self {
            Self::Grpc => {
                let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
                let number = whole(digits, 8)?;
                Some(match unit {
                    "H" => Duration::from_secs(number * 3_600),
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
                let exact = fraction.get(..fraction.len().min(9))?;
                whole(fraction, 18)?;
                let nanos = whole(exact, 9)? * 10_u64.pow(9 - exact.len() as u32);
                Some(Duration::new(whole(seconds, 9)?, nanos as u32))
            }
        }
    }

    /// Rounded down: whoever is called must not think that it has longer.
    fn show(self, left: Duration) -> HeaderValue {
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let text = match self {
            Self::Grpc if millis < 100_000_000 => format!("{millis}m"),
            Self::Grpc => format!("{}S", left.as_secs().min(99_999_999)),
            Self::Millis => millis.to_string(),
            Self::Seconds => format!("{}.{:03}", millis / 1_000, millis % 1_000),
        };
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
    }
}

/// Digits only, so many at most.
fn whole(digits: &str, most: usize) -> Option<u64> {
    let fits = (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H1.
    #[test]
    fn what_fields_say() {
        for (unit, value, millis) in [
            (Unit::Grpc, "100m", Some(100)),
            (Unit::Grpc, "2S", Some(2_000)),
            (Unit::Grpc, "99999999H", Some(99_999_999 * 3_600_000)),
            (Unit::Grpc, "123456789m", None),
            (Unit::Grpc, "100", None),
            (Unit::Grpc, "m", None),
            (Unit::Grpc, "", None),
            (Unit::Grpc, "-1S", None),
            (Unit::Grpc, "1é", None),
            (Unit::Millis, "250", Some(250)),
            (Unit::Millis, "99999999999999999999", None),
            (Unit::Millis, "1.5", None),
            (Unit::Seconds, "0.25", Some(250)),
            (Unit::Seconds, "3", Some(3_000)),
            (Unit::Seconds, "1.0000000001", Some(1_000)),
            (Unit::Seconds, "1.", None),
            (Unit::Seconds, ".5", None),
            (Unit::Seconds, "1.5é", None),
            (Unit::Seconds, "1e3", None),
        ] {
            assert_eq!(unit.parse(value).map(|time| time.as_millis()), millis, "{unit:?} {value}");
        }
    }

    proptest::proptest! {
        /// Nothing panics, and nothing that is read comes out longer than it went in.
        #[test]
        fn anything_can_be_read(value: String, digits in "[0-9]{0,12}[HMSmun.]?[0-9]{0,12}") {
            for unit in [Unit::Grpc, Unit::Millis, Unit::Seconds] {
                for value in [&value, &digits] {
                    let Some(time) = unit.parse(value) else { continue };
                    let shown = unit.show(time);
                    let again = unit.parse(shown.to_str().unwrap()).unwrap();
                    proptest::prop_assert!(again <= time, "{value}: {time:?}, {again:?}");
                }
            }
        }
    }

    /// H3. What is told is never longer than what is left, and what was read comes out no longer.
    #[test]
    fn a_deadline_only_shrinks() {
        let seconds = DeadlineField { name: HeaderName::from_static("request-timeout"), unit: Unit::Seconds };
        let fields = [DeadlineField::GRPC, DeadlineField::ENVOY, seconds];
        let mut headers = HeaderMap::new();
        tell(&fields, &mut headers, false, Duration::from_micros(1_234_567));
        assert!(!headers.contains_key("grpc-timeout"));
        assert_eq!(headers["x-envoy-expected-rq-timeout-ms"], "1234");
        assert_eq!(headers["request-timeout"], "1.234");
        tell(&fields, &mut headers, true, Duration::MAX);
        assert_eq!(headers["grpc-timeout"], "99999999S");
        tell(&fields, &mut headers, true, Duration::ZERO);
        assert_eq!(said(&fields, &headers), Some(Duration::ZERO));
        for nanos in [0, 1, 999_999, 1_000_000, 1_500_000, 86_400_000_000_000] {
            let left = Duration::from_nanos(nanos);
            for unit in [Unit::Grpc, Unit::Millis, Unit::Seconds] {
                let told = unit.parse(unit.show(left).to_str().unwrap()).unwrap();
                assert!(told <= left && left - told < Duration::from_millis(1), "{unit:?} {left:?}");
            }
        }
    }
}
