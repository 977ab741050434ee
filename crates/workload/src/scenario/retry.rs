//! From the file to what clients do about a failure: the bounds of `retry`, and which of its keys go together.

use std::ops::Range;
use std::time::Duration;

use tidegate_engine::Backoff;

use super::file;
use super::read::{Failure, wrong};
use super::value::Span;
use crate::retry::RetryPolicy;

const ATTEMPTS_MAX: u32 = 100;
/// As many as the library makes, unless somebody says otherwise.
const RESILIENT_ATTEMPTS: u32 = 3;
const CALLERS_MAX: u32 = 10_000;

/// Reads it; `span` is where the clients are in the text.
pub(super) fn retry(retry: &file::Retry, span: &Range<usize>) -> Result<RetryPolicy, Failure> {
    let usual = if retry.resilient.is_some() { RESILIENT_ATTEMPTS } else { 1 };
    let attempts = retry.attempts.unwrap_or(usual);
    if !(1..=ATTEMPTS_MAX).contains(&attempts) {
        return wrong(span.clone(), format!("`attempts` is from 1 to {ATTEMPTS_MAX}"), "");
    }
    if retry.resilient.is_some_and(|callers| callers.get() > CALLERS_MAX) {
        return wrong(
            span.clone(),
            format!("`resilient` is how many of them there are, at most {CALLERS_MAX}"),
            "",
        );
    }
    if retry.resilient.is_some() && has_ways_of_its_own(retry) {
        let message =
            "clients that are `resilient` have their own back-off and budget, and do as they are told";
        return wrong(span.clone(), message, "beside `resilient` there may be `attempts` and `marked`");
    }
    let base = retry.base.map_or(Duration::from_millis(100), |Span(base)| base);
    let cap = retry.cap.map_or(Duration::from_secs(10), |Span(cap)| cap);
    let backoff = match retry.backoff {
        None | Some(file::Backoff::None) => Backoff::None,
        Some(file::Backoff::Fixed) => Backoff::Fixed(base),
        Some(file::Backoff::Exponential) => Backoff::Exponential { base, cap },
        Some(file::Backoff::FullJitter) => Backoff::FullJitter { base, cap },
    };
    Ok(RetryPolicy {
        attempts,
        backoff,
        budget_percent: retry.budget_percent.map(|percent| percent.min(1_000)),
        honours_retry_after: retry.honours_retry_after,
        slows_down: retry.slows_down,
        marked: retry.marked,
        resilient: retry.resilient,
    })
}

const fn has_ways_of_its_own(retry: &file::Retry) -> bool {
    retry.backoff.is_some()
        || retry.base.is_some()
        || retry.cap.is_some()
        || retry.budget_percent.is_some()
        || retry.honours_retry_after
        || retry.slows_down
}
