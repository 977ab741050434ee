//! What clients wish of their own: RFC 9218's `Priority`, and the mark of a prefetch.

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};

const PRIORITY: HeaderName = HeaderName::from_static("priority");
const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
const PURPOSE: HeaderName = HeaderName::from_static("purpose");

/// The urgency of a request that says nothing; 0 is the most urgent, 7 the least (RFC 9218 section 4.1).
pub(super) const URGENCY_DEFAULT: u8 = 3;

/// The urgency that a request states, from 0 to 7. A member that cannot be read is not there (section 4), and of several
/// the last counts (RFC 8941 section 4.2.2).
pub(super) fn urgency(headers: &HeaderMap) -> Option<u8> {
    members(headers)
        .filter_map(|member| match member.split(|&byte| byte == b';').next().unwrap_or(member).trim_ascii() {
            [b'u', b'=', digit @ b'0'..=b'7'] => Some(digit - b'0'),
            _ => None,
        })
        .last()
}

/// Makes an urgency above the default into the default, and leaves the rest as it is.
pub(super) fn take_back_urgency(headers: &mut HeaderMap) {
    if urgency(headers).is_none_or(|urgency| urgency >= URGENCY_DEFAULT) {
        return;
    }
    // `i`, for incremental, is the only other member that there is.
    let incremental = members(headers).any(|member| member == b"i");
    let value = if incremental { "u=3, i" } else { "u=3" };
    headers.insert(PRIORITY, HeaderValue::from_static(value));
}

fn members(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(PRIORITY).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii)
}

/// Whether a browser asks for it in case it is needed: `Sec-Purpose: prefetch` (the Fetch standard), or `Purpose`, which
/// was there before.
pub(super) fn is_prefetch(headers: &HeaderMap) -> bool {
    [SEC_PURPOSE, PURPOSE].iter().filter_map(|name| headers.get(name)).any(|value| {
        let token = value.as_bytes().split(|byte| b";,".contains(byte)).next().unwrap_or_default();
        token.trim_ascii().eq_ignore_ascii_case(b"prefetch")
    })
}
