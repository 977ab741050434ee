//! How those who wait say in words how long: read and written in one place, so that what one hop says is what the next
//! understands. It knows no fields and no HTTP; which words are there is for whoever has them to say.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

/// How a text says how long its sender waits.
///
/// ```
/// use std::time::Duration;
/// use tidegate_engine::DeadlineUnit;
///
/// assert_eq!(DeadlineUnit::Grpc.parse("250m"), Some(Duration::from_millis(250)));
/// assert_eq!(DeadlineUnit::Seconds.show(Duration::from_micros(1_500_900)), "1.500");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineUnit {
    /// As gRPC has it: up to eight digits and the letter of a unit.
    Grpc,
    /// In whole milliseconds, up to twelve digits.
    Millis,
    /// In seconds, up to nine digits, also with a fraction, of which nine digits count.
    Seconds,
}

impl DeadlineUnit {
    /// By the name of the field, in lower case: `grpc-timeout` as gRPC has it, what ends in `-ms` in milliseconds, all
    /// others in seconds.
    pub fn of_field(name: &str) -> Self {
        match name {
            "grpc-timeout" => Self::Grpc,
            _ if name.ends_with("-ms") => Self::Millis,
            _ => Self::Seconds,
        }
    }

    /// `None` for what is not a time: what cannot be read has not been said. What is valid and huge is for the other bounds
    /// to clamp.
    pub fn parse(self, text: &str) -> Option<Duration> {
        match self {
            Self::Grpc => {
                let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
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
            Self::Millis => whole(text, 12).map(Duration::from_millis),
            Self::Seconds => {
                let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
                let (exact, rest) = fraction.split_at_checked(fraction.len().min(9))?;
                let nanos = whole(exact, 9)? * 10_u64.pow(9 - exact.len() as u32);
                let is_number = rest.bytes().all(|byte| byte.is_ascii_digit());
                is_number.then_some(Duration::new(whole(seconds, 9)?, nanos as u32))
            }
        }
    }

    /// Rounded down: the next hop must not think that it has longer.
    pub fn show(self, left: Duration) -> String {
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::Grpc if millis < 100_000_000 => format!("{millis}m"),
            Self::Grpc => format!("{}S", left.as_secs().min(99_999_999)),
            Self::Millis => millis.min(999_999_999_999).to_string(),
            Self::Seconds => {
                let left = left.min(Duration::from_secs(999_999_999));
                format!("{}.{:03}", left.as_secs(), left.subsec_millis())
            }
        }
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
    use DeadlineUnit::{Grpc, Millis, Seconds};

    /// H1.
    #[test]
    fn what_is_said() {
        for (unit, text, nanos) in [
            (Grpc, "100m", 100_000_000),
            (Grpc, "2S", 2_000_000_000),
            (Grpc, "1M", 60_000_000_000),
            (Grpc, "500000u", 500_000_000),
            (Grpc, "1n", 1),
            (Grpc, "99999999H", 99_999_999 * 3_600_000_000_000),
            (Millis, "250", 250_000_000),
            (Seconds, "3", 3_000_000_000),
            (Seconds, "0.25", 250_000_000),
            (Seconds, "1.0000000001", 1_000_000_000),
            (Seconds, "0.1234567899999999999999999999999", 123_456_789),
        ] {
            assert_eq!(unit.parse(text).map(|time| time.as_nanos()), Some(nanos), "{unit:?} {text}");
        }
    }

    /// H1.
    #[test]
    fn what_says_nothing() {
        for (unit, text) in [
            (Grpc, ""),
            (Grpc, "m"),
            (Grpc, "100"),
            (Grpc, "123456789m"),
            (Grpc, "-1m"),
            (Grpc, "1é"),
            (Millis, "1.5"),
            (Millis, "99999999999999999999"),
            (Seconds, "1."),
            (Seconds, ".5"),
            (Seconds, "1.x"),
            (Seconds, "1.5é"),
            (Seconds, "1.00000000é"),
            (Seconds, "1.1234567890x"),
            (Seconds, "1e3"),
        ] {
            assert_eq!(unit.parse(text), None, "{unit:?} {text}");
        }
    }

    #[test]
    fn a_field_has_its_unit_by_its_name() {
        for (name, unit) in
            [("grpc-timeout", Grpc), ("x-envoy-expected-rq-timeout-ms", Millis), ("request-timeout", Seconds)]
        {
            assert_eq!(DeadlineUnit::of_field(name), unit);
        }
    }

    proptest::proptest! {
        /// Nothing panics, and what is read comes out again, no longer than it went in.
        #[test]
        fn anything_can_be_read(text: String, digits in "[0-9]{0,12}[HMSmun.]?[0-9]{0,30}") {
            for unit in [Grpc, Millis, Seconds] {
                for text in [&text, &digits] {
                    let Some(time) = unit.parse(text) else { continue };
                    let again = unit.parse(&unit.show(time)).unwrap();
                    proptest::prop_assert!(again <= time, "{text}: {time:?}, {again:?}");
                }
            }
        }

        /// H3. Whatever is left can be said and read, and is at most a millisecond shorter unless it is beyond all bounds.
        #[test]
        fn what_is_left_only_shrinks(seconds: u64, near in 0..100_000_u64, nanos in 0..1_000_000_000_u32) {
            for unit in [Grpc, Millis, Seconds] {
                let far = Duration::new(seconds, nanos);
                proptest::prop_assert!(unit.parse(&unit.show(far)).unwrap() <= far);
                let left = Duration::new(near, nanos);
                let told = unit.parse(&unit.show(left)).unwrap();
                proptest::prop_assert!(told <= left && left - told < Duration::from_millis(1));
            }
        }
    }
}
