//! What answers say about rate limits: `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11.
//!
//! Members of their lists, as text. Which of them an answer carries is the caller's.

use tidegate_engine::Quota;

/// The member of `RateLimit-Policy` for a quota of this name: so many in the time that it takes for all of them to come
/// back, in seconds. The name is put as it is, so it has to be letters, digits, `_` and `-`.
pub fn advert(name: &str, quota: Quota) -> String {
    let burst = quota.burst().get();
    format!("\"{name}\";q={burst};w={}", refilled_in(quota, burst))
}

/// In how many seconds so many are let through, rounded up and at least one.
pub fn refilled_in(quota: Quota, requests: u32) -> u64 {
    let nanos = quota.period().as_nanos() * u128::from(requests) / u128::from(quota.count().get());
    u64::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use std::time::Duration;

    #[test]
    fn a_quota_in_the_words_of_the_draft() {
        let number = |number| NonZeroU32::new(number).unwrap();
        for (count, period, burst, expected) in [
            (10, 1, 20, "\"a\";q=20;w=2"),
            (10, 1, 10, "\"a\";q=10;w=1"),
            // Less than a second cannot be said.
            (10, 1, 5, "\"a\";q=5;w=1"),
            (600, 60, 100, "\"a\";q=100;w=10"),
            (1, 86_400, 3, "\"a\";q=3;w=259200"),
            (1_000_000_000, 1, 1, "\"a\";q=1;w=1"),
        ] {
            let quota = Quota::new(number(count), Duration::from_secs(period), number(burst)).unwrap();
            assert_eq!(advert("a", quota), expected);
        }
    }
}
