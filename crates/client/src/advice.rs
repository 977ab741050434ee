//! What an answer says about trying again: every field that means it, in the order in which they are believed.
//!
//! Nothing is decided here. Whatever a field says is at most a time to wait for or a no; how that is answered is the
//! engine's business.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};
use tidegate_engine::Advice;

use crate::clock;

/// Fields that say yes or no. Only the no counts: what may be repeated is for the caller to know.
const SHOULD_RETRY: [HeaderName; 2] =
    [HeaderName::from_static("x-should-retry"), HeaderName::from_static("stripe-should-retry")];
/// Envoy says of itself that it has too much to do, or that a rate limit of its own refused; it means that another try
/// would be refused as well.
const ENVOY: [HeaderName; 2] =
    [HeaderName::from_static("x-envoy-overloaded"), HeaderName::from_static("x-envoy-ratelimited")];
/// gRFC A6: what is negative, or cannot be read, means never.
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
const MILLIS: [HeaderName; 2] =
    [HeaderName::from_static("retry-after-ms"), HeaderName::from_static("x-ms-retry-after-ms")];
/// RFC 9209. A gateway of ours names the reason of a refusal in it.
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");

/// What these fields of an answer say about trying again.
pub(crate) fn read(headers: &HeaderMap) -> Advice {
    if says_never(headers) {
        return Advice::Never;
    }
    if let Some(value) = headers.get(&PUSHBACK) {
        return whole(value.as_bytes()).map_or(Advice::Never, |ms| Advice::After(Duration::from_millis(ms)));
    }
    let millis = MILLIS.iter().find_map(|name| headers.get(name).and_then(|value| whole(value.as_bytes())));
    if let Some(millis) = millis {
        return Advice::After(Duration::from_millis(millis));
    }
    let told = headers.get(RETRY_AFTER).and_then(|value| {
        whole(value.as_bytes()).map(Duration::from_secs).or_else(|| until(value.to_str().ok()?, headers))
    });
    told.map_or(Advice::Unsaid, Advice::After)
}

fn says_never(headers: &HeaderMap) -> bool {
    let is = |name: &HeaderName, word: &[u8]| {
        headers.get(name).is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(word))
    };
    // Whoever has tried more than once itself has done what a retry would do.
    let tried = headers.get(&ATTEMPT_COUNT).and_then(|value| whole(value.as_bytes()));
    SHOULD_RETRY.iter().any(|name| is(name, b"false"))
        || ENVOY.iter().any(|name| is(name, b"true"))
        || tried.is_some_and(|tries| tries > 1)
        || headers.get_all(&PROXY_STATUS).iter().any(|value| {
            let value = String::from_utf8_lossy(value.as_bytes());
            value.contains("tidegate;") && value.contains("details=\"retry_budget\"")
        })
}

/// How long until a date (RFC 9110 section 10.2.3), by the clock of whoever named it, if it says what time it has:
/// clocks differ by more than most waits.
fn until(date: &str, headers: &HeaderMap) -> Option<Duration> {
    let then = httpdate::parse_http_date(date).ok()?;
    let theirs = headers.get(DATE).and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
    let now: SystemTime = theirs.unwrap_or_else(clock::time_of_day);
    Some(then.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Digits only. More than fit are as many as fit: a wait of half a million years is not begun, whatever it is exactly.
fn whole(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits
            .iter()
            .fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn said(fields: &[(&'static str, &str)]) -> Advice {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        read(&headers)
    }

    fn after(millis: u64) -> Advice {
        Advice::After(Duration::from_millis(millis))
    }

    /// H4.
    #[test]
    fn times() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (fields, advice) in [
            (&[("retry-after", "2")][..], after(2_000)),
            (&[("retry-after", " 0 ")], after(0)),
            (&[("retry-after", "9223372037")], after(9_223_372_037_000)),
            (&[("retry-after", "99999999999999999999999999")], Advice::After(Duration::from_secs(u64::MAX))),
            (&[("retry-after", "1e30")], Advice::Unsaid),
            (&[("retry-after", "12x")], Advice::Unsaid),
            (&[("retry-after", "-1")], Advice::Unsaid),
            (&[("retry-after", "")], Advice::Unsaid),
            (&[("retry-after", "é")], Advice::Unsaid),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), date], after(3_000)),
            (&[("retry-after", "Sunday, 06-Nov-94 08:49:40 GMT"), date], after(3_000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"), date], after(0)),
            (&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], after(0)),
            (&[("retry-after", "2"), ("retry-after-ms", "1100")], after(1_100)),
            (&[("retry-after", "2"), ("retry-after-ms", "x")], after(2_000)),
            (&[("x-ms-retry-after-ms", "7")], after(7)),
            (&[("grpc-retry-pushback-ms", "250"), ("retry-after", "2")], after(250)),
            (&[], Advice::Unsaid),
        ] {
            assert_eq!(said(fields), advice, "{fields:?}");
        }
        let Advice::After(far) = said(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]) else {
            panic!("a date far ahead is a time");
        };
        assert!(far > Duration::from_secs(7_000 * 365 * 86_400));
    }

    proptest::proptest! {
        /// Whatever stands in the fields, it is read as something, and nothing panics.
        #[test]
        fn anything_can_be_read(which in 0..9_usize, value: Vec<u8>, digits in "[0-9]{0,40}", date in "[A-Za-z]{3}, [0-9]{2} [A-Za-z]{3} [0-9]{4} [0-9:]{8} GMT") {
            let names = [
                "retry-after", "retry-after-ms", "x-ms-retry-after-ms", "grpc-retry-pushback-ms", "x-should-retry",
                "proxy-status", "x-envoy-attempt-count", "date", "stripe-should-retry",
            ];
            for value in [&value[..], digits.as_bytes(), date.as_bytes()] {
                let Ok(value) = HeaderValue::from_bytes(value) else { continue };
                let mut headers = HeaderMap::new();
                headers.insert("retry-after", HeaderValue::from_static("Sun, 06 Nov 1994 08:49:40 GMT"));
                headers.insert(HeaderName::from_static(names[which]), value);
                read(&headers);
            }
        }
    }

    /// H6.
    #[test]
    fn never() {
        for field in [
            ("x-should-retry", "false"),
            ("x-should-retry", "False"),
            ("stripe-should-retry", "false"),
            ("grpc-retry-pushback-ms", "-1"),
            ("grpc-retry-pushback-ms", "soon"),
            ("x-envoy-overloaded", "true"),
            ("x-envoy-ratelimited", "true"),
            ("x-envoy-attempt-count", "3"),
            ("proxy-status", "tidegate; error=connection_limit_reached; details=\"retry_budget\""),
        ] {
            assert_eq!(said(&[field, ("retry-after", "1")]), Advice::Never, "{field:?}");
        }
        for field in [
            ("x-should-retry", "true"),
            ("x-envoy-attempt-count", "1"),
            ("proxy-status", "tidegate; error=connection_limit_reached; details=\"queue_full\""),
            ("proxy-status", "other; details=\"retry_budget\""),
        ] {
            assert_eq!(said(&[field, ("retry-after", "1")]), after(1_000), "{field:?}");
        }
    }
}
