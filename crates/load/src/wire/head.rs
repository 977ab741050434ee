//! What a client looks at in the head of an answer: its status, who refused it and why, and when to come back.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, RETRY_AFTER};
use tidegate_engine::Reason;

use crate::clock;
use crate::play::Answer;

/// The longest time that somebody is told to stay away which anybody believes.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The same in milliseconds, which our own client believes first.
const MILLIS: [HeaderName; 2] =
    [HeaderName::from_static("retry-after-ms"), HeaderName::from_static("x-ms-retry-after-ms")];

pub(crate) fn read(status: u16, headers: &HeaderMap) -> Answer {
    Answer {
        status,
        reason: reason(headers),
        retry_after: retry_after(headers),
        retry_after_ms: millis(headers),
    }
}

/// The reason that a tidegate gives in `Proxy-Status` (RFC 9209), whose value names who says so, with parameters.
fn reason(headers: &HeaderMap) -> Option<Reason> {
    let said = headers.get_all("proxy-status").iter().filter_map(|value| value.to_str().ok());
    // Each hop on the way back adds itself at the end, so the last of ours is whom we spoke with.
    let ours = said
        .flat_map(|line| line.split(','))
        .rfind(|member| member.split(';').next().is_some_and(|name| name.trim() == "tidegate"))?;
    let details = ours.split(';').find_map(|parameter| parameter.trim().strip_prefix("details="))?;
    let name = details.trim().trim_matches('"');
    Reason::ALL.into_iter().find(|reason| reason.name() == name)
}

/// Milliseconds. What is no number is not there.
fn millis(headers: &HeaderMap) -> Option<Duration> {
    let value = |name: &HeaderName| whole(headers.get(name)?.to_str().ok()?.trim());
    MILLIS.iter().find_map(value).map(|millis| Duration::from_millis(millis).min(RETRY_AFTER_MAX))
}

/// So many digits that they are no number are a great one all the same.
fn whole(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Seconds, or a date (RFC 9110, section 10.2.3). What is neither is not there.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match whole(text) {
        Some(seconds) => Duration::from_secs(seconds),
        None => clock::until(httpdate::parse_http_date(text).ok()?),
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>()
    }

    #[test]
    fn a_reason_is_ours_or_none() {
        for (value, expected) in [
            ("tidegate; error=connection_limit_reached; details=\"queue_full\"", Some(Reason::QueueFull)),
            (
                "tidegate; error=http_request_error; status-code=429; details=\"rate_limited\"",
                Some(Reason::RateLimited),
            ),
            ("cdn; error=dns_error, tidegate;details=\"deadline\"", Some(Reason::Deadline)),
            ("nginx; details=\"queue_full\"", None),
            ("tidegate", None),
            ("tidegate; details=\"whatever\"", None),
        ] {
            assert_eq!(reason(&headers(&[("proxy-status", value)])), expected, "{value}");
        }
    }

    #[test]
    fn whoever_is_told_when_to_come_back_knows_it() {
        let told = |value| retry_after(&headers(&[("retry-after", value)]));
        assert_eq!(told("2"), Some(Duration::from_secs(2)));
        assert_eq!(told("0"), Some(Duration::ZERO));
        assert_eq!(told("99999999999999999999999"), Some(RETRY_AFTER_MAX));
        assert_eq!(told("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(told("Tue, 31 Dec 2999 23:59:59 GMT"), Some(RETRY_AFTER_MAX));
        let told = |name, value| millis(&headers(&[("retry-after", "2"), (name, value)]));
        assert_eq!(told("retry-after-ms", "1100"), Some(Duration::from_millis(1_100)));
        assert_eq!(told("x-ms-retry-after-ms", "7"), Some(Duration::from_millis(7)));
        assert_eq!(told("retry-after-ms", "99999999999999999999999"), Some(RETRY_AFTER_MAX));
        assert_eq!((told("retry-after-ms", "-1"), told("date", "7")), (None, None));
        let told = |value| retry_after(&headers(&[("retry-after", value)]));
        for nothing in ["", "-1", "1.5", "soon", "+3"] {
            assert_eq!(told(nothing), None, "{nothing}");
        }
    }
}
