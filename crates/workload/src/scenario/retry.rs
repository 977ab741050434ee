//! From the file to what clients do about a failure: the bounds of `retry`, and which of its keys go together.

use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use tidegate_engine::Backoff;

use super::file;
use super::read::{Failure, wrong};
use super::value::Span;
use crate::breaker::RetryBreaker;
use crate::retry::RetryPolicy;

const ATTEMPTS_MAX: u32 = 100;
/// As many as the library makes, unless somebody says otherwise.
const RESILIENT_ATTEMPTS: u32 = 3;
const CALLERS_MAX: u32 = 10_000;
/// How far back a breaker looks, if nobody says otherwise. Hystrix has the same (`metrics.rollingStats.timeInMilliseconds`).
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_MIN: Duration = Duration::from_millis(10);
const WINDOW_MAX: Duration = Duration::from_secs(3_600);
const MIN_TRIES_MAX: u32 = 10_000;

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
        let message = "clients that are `resilient` have their own back-off, budget and breaker, and do as they are told";
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
        callers: callers(retry, span)?,
        breaker: breaker(retry, span)?,
        budget_percent: retry.budget_percent.map(|percent| percent.min(1_000)),
        honours_retry_after: retry.honours_retry_after,
        slows_down: retry.slows_down,
        marked: retry.marked,
        resilient: retry.resilient,
    })
}

fn callers(retry: &file::Retry, span: &Range<usize>) -> Result<NonZeroU32, Failure> {
    let Some(callers) = retry.callers else { return Ok(NonZeroU32::MIN) };
    if callers.get() > CALLERS_MAX {
        return wrong(span.clone(), format!("`callers` is at most {CALLERS_MAX}"), "");
    }
    if retry.budget_percent.is_none() && retry.breaker_percent.is_none() {
        let message = "`callers` without a budget or a breaker: there is nothing that each has of its own";
        return wrong(span.clone(), message, "write `budget_percent` or `breaker_percent`");
    }
    Ok(callers)
}

fn breaker(retry: &file::Retry, span: &Range<usize>) -> Result<Option<RetryBreaker>, Failure> {
    let Some(percent) = retry.breaker_percent else {
        if retry.breaker_window.is_some() || retry.breaker_min_tries.is_some() {
            let message = "`breaker_window` and `breaker_min_tries` belong to `breaker_percent`";
            return wrong(
                span.clone(),
                message,
                "write above which share of failures nothing is tried again",
            );
        }
        return Ok(None);
    };
    // With 0 nothing would ever be tried again, and more than all never fail.
    if !(1..=99).contains(&percent) {
        return wrong(span.clone(), "`breaker_percent` is from 1 to 99", "");
    }
    let window = retry.breaker_window.map_or(WINDOW, |Span(window)| window);
    if !(WINDOW_MIN..=WINDOW_MAX).contains(&window) {
        return wrong(span.clone(), format!("`breaker_window` is from {WINDOW_MIN:?} to {WINDOW_MAX:?}"), "");
    }
    let min_tries = retry.breaker_min_tries.unwrap_or(NonZeroU32::MIN);
    if min_tries.get() > MIN_TRIES_MAX {
        return wrong(span.clone(), format!("`breaker_min_tries` is at most {MIN_TRIES_MAX}"), "");
    }
    Ok(Some(RetryBreaker { percent, window, min_tries }))
}

const fn has_ways_of_its_own(retry: &file::Retry) -> bool {
    retry.backoff.is_some()
        || retry.base.is_some()
        || retry.cap.is_some()
        || retry.callers.is_some()
        || retry.budget_percent.is_some()
        || retry.breaker_percent.is_some()
        || retry.breaker_window.is_some()
        || retry.breaker_min_tries.is_some()
        || retry.honours_retry_after
        || retry.slows_down
}
