//! How long a client waits, as far as it says so.
//!
//! Numbers from outside: what cannot be read is not there, and what is huge is clamped by the others that count.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

// The same as the client's side tells.
pub use tidegate_engine::DeadlineUnit as Unit;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const ENVOY_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// How long the client waits that sent these fields: the shorter of `grpc-timeout` and `x-envoy-expected-rq-timeout-ms`.
pub fn stated(headers: &HeaderMap) -> Option<Duration> {
    let fields = [(&GRPC_TIMEOUT, Unit::Grpc), (&ENVOY_TIMEOUT, Unit::Millis)];
    fields.into_iter().filter_map(|(name, unit)| parsed(headers.get(name)?, unit)).min()
}

/// The same by a field of another name, which is in lower case; see [`Unit::of_field`].
pub fn stated_in(headers: &HeaderMap, name: &str) -> Option<Duration> {
    parsed(headers.get(name)?, Unit::of_field(name))
}

fn parsed(value: &HeaderValue, unit: Unit) -> Option<Duration> {
    unit.parse(value.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers
            .insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        stated_in(&headers, name)
    }

    /// H1: what is valid and huge is clamped by the others that count.
    #[test]
    fn what_fields_say() {
        let millis = Duration::from_millis;
        for (name, value, expected) in [
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
            assert_eq!(said(name, value), expected, "{name}: {value}");
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
            assert_eq!(said(name, value), None, "{name}: {value}");
        }
    }

    #[test]
    fn the_shortest_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(stated(&headers), None);
        headers.insert("x-envoy-expected-rq-timeout-ms", HeaderValue::from_static("300"));
        assert_eq!(stated(&headers), Some(Duration::from_millis(300)));
        headers.insert("grpc-timeout", HeaderValue::from_static("200m"));
        assert_eq!(stated(&headers), Some(Duration::from_millis(200)));
        headers.insert("grpc-timeout", HeaderValue::from_static("nonsense"));
        assert_eq!(stated(&headers), Some(Duration::from_millis(300)));
    }
}
