//! What a client looks at in the head of an answer: its status, who refused it and why, and when to come back.

use std::time::Duration;

use http::header::{HeaderMap, RETRY_AFTER};
use tidegate_engine::Reason;

use crate::clock;
use crate::play::Answer;

/// The longest time that somebody is told to stay away which anybody believes.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn read(status: u16, headers: &HeaderMap) -> Answer {
    Answer { status, reason: reason(headers), retry_after: retry_after(headers) }
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

/// Seconds, or a date (RFC 9110, section 10.2.3). What is neither is not there.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // So many digits that it is no number are a long time all the same.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        clock::until(httpdate::parse_http_date(text).ok()?)
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
        for nothing in ["", "-1", "1.5", "soon", "+3"] {
            assert_eq!(told(nothing), None, "{nothing}");
        }
    }
}
