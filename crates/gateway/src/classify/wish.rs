//! What clients wish of their own: RFC 9218's `Priority`, and the mark of a prefetch.

use crate::fields::{Fields, Name};

static PRIORITY: Name = Name::of("priority");
static SEC_PURPOSE: Name = Name::of("sec-purpose");
static PURPOSE: Name = Name::of("purpose");

/// The urgency of a request that says nothing; 0 is the most urgent, 7 the least (RFC 9218 section 4.1).
pub(super) const URGENCY_DEFAULT: u8 = 3;

/// The urgency that a request states, from 0 to 7. A member that cannot be read is not there (section 4), and of several
/// the last counts (RFC 8941 section 4.2.2).
pub(super) fn urgency(head: Fields<'_>) -> Option<u8> {
    let lines = head.all(&PRIORITY)?.into_iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    let mut urgencies = members.filter_map(|member| {
        let parameters = member.iter().position(|&byte| byte == b';').unwrap_or(member.len());
        match member[..parameters].trim_ascii() {
            [b'u', b'=', digit @ b'0'..=b'7'] => Some(digit - b'0'),
            _ => None,
        }
    });
    urgencies.next_back()
}

/// Whether a browser asks for it in case it is needed: `Sec-Purpose: prefetch` (the Fetch standard), or `Purpose`, which
/// was there before.
pub(super) fn is_prefetch(head: Fields<'_>) -> bool {
    [&SEC_PURPOSE, &PURPOSE].into_iter().filter_map(|name| head.get(name)).any(|value| {
        let token = value.as_bytes().split(|byte| b";,".contains(byte)).next().unwrap_or_default();
        token.trim_ascii().eq_ignore_ascii_case(b"prefetch")
    })
}
