//! Whether a request says of itself that it was tried before.
//!
//! Anybody is believed: nobody gains by saying so. Who does not say so may still be known; see [`fingerprint`].
//!
//! [`fingerprint`]: super::fingerprint

use http::header::HeaderName;

use crate::fields::{Fields, Name};

/// A field by which clients say how often a request was tried, and how it says it.
#[derive(Clone, Debug)]
pub(super) struct AttemptField {
    name: Name,
    says: Says,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// As the SDKs of AWS do: `attempt=2; max=3`, the first try being 1.
    Amz,
    /// The number of this try, the first being 1.
    This,
    /// The number of tries before this one.
    Before,
}

impl AttemptField {
    /// The field of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let says = match name {
            "amz-sdk-request" => Says::Amz,
            _ if name.ends_with("attempt-count") => Says::This,
            _ => Says::Before,
        };
        Some(Self { name: Name::named(name)?, says })
    }

    /// Whether the value speaks of another try. What cannot be read says nothing.
    fn is_retry(&self, value: &[u8]) -> bool {
        match self.says {
            Says::Amz => value.split(|&byte| byte == b';').any(|part| {
                part.trim_ascii().strip_prefix(b"attempt=").is_some_and(|number| whole(number) > Some(1))
            }),
            Says::This => whole(value.trim_ascii()) > Some(1),
            Says::Before => whole(value.trim_ascii()) > Some(0),
        }
    }
}

/// The first field that says that the request was tried before.
pub(super) fn said<'f>(fields: &'f [AttemptField], head: Fields<'_>) -> Option<&'f HeaderName> {
    let mut retry = fields
        .iter()
        .filter(|field| head.get(&field.name).is_some_and(|value| field.is_retry(value.as_bytes())));
    retry.next().map(|field| &field.name.name)
}

/// Digits only, and not more than any count has.
fn whole(digits: &[u8]) -> Option<u64> {
    let fits = (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let sum =
        digits.iter().fold(0_u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit & 15)));
    fits.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    fn is_retry(name: &str, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        let field = AttemptField::named(name).unwrap();
        headers.insert(field.name.name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        said(&[field], Fields::of(&headers)).is_some()
    }

    #[test]
    fn what_says_that_it_was_tried_before() {
        for (name, value) in [
            ("x-envoy-attempt-count", "2"),
            ("x-envoy-attempt-count", "007"),
            ("grpc-previous-rpc-attempts", "1"),
            ("amz-sdk-request", "attempt=2; max=3"),
            ("amz-sdk-request", "ttl=20260101T000000Z;attempt=10;max=10"),
            ("x-stainless-retry-count", "1"),
            ("x-my-attempt-count", "3"),
            ("x-tries-before", "999999999999999999"),
        ] {
            assert!(is_retry(name, value), "{name}: {value}");
        }
    }

    #[test]
    fn what_does_not() {
        for (name, value) in [
            ("x-envoy-attempt-count", "1"),
            ("x-envoy-attempt-count", "0"),
            ("x-envoy-attempt-count", "-2"),
            ("x-envoy-attempt-count", ""),
            ("grpc-previous-rpc-attempts", "0"),
            ("amz-sdk-request", "attempt=1; max=3"),
            ("amz-sdk-request", "max=3"),
            ("amz-sdk-request", "2"),
            ("x-stainless-retry-count", "0"),
            ("x-stainless-retry-count", "yes"),
            ("x-stainless-retry-count", "1.5"),
            ("x-stainless-retry-count", "99999999999999999999999"),
            ("x-stainless-retry-count", "\u{e9}"),
        ] {
            assert!(!is_retry(name, value), "{name}: {value}");
        }
    }
}
