//! Lints of `[[upstream]]`, its limit and its queue.

use std::time::Duration;

use tidegate_engine::{Capacity, LimitPolicy};

use super::{At, LintCode, Lints};
use crate::keys::{CONCURRENCY, QUEUE, UPSTREAM};
use crate::model::{Policy, Upstream};
use crate::values::{duration_text, grouped};

/// Beyond this most people and most programs have given up.
const WAIT_MAX: Duration = Duration::from_secs(10);

pub(super) fn check(policy: &Policy, lints: &mut Lints<'_>) {
    for (index, upstream) in policy.upstreams.iter().enumerate() {
        timeouts(index, upstream, lints);
        limit(index, upstream, lints);
        queue(index, upstream, lints);
        if !policy.routes.iter().any(|route| route.upstream == index) {
            lints.warn(
                LintCode::UpstreamUnused,
                At { section: &UPSTREAM, index, key: "name" },
                format!("no route leads to `{}`", upstream.name),
                format!("remove it, or write a [[route]] with upstream = \"{}\"", upstream.name),
            );
        }
    }
}

fn timeouts(index: usize, upstream: &Upstream, lints: &mut Lints<'_>) {
    let at = |key| At { section: &UPSTREAM, index, key };
    let timeout = duration_text(upstream.timeout);
    if upstream.cancels_work && lints.given(at("orphan_max")).is_some() {
        lints.warn(
            LintCode::OrphanMaxUnused,
            at("orphan_max"),
            "it has no effect with `cancels_work = true`: a timeout frees the slot at once",
            "remove one of the two",
        );
    }
    if !upstream.cancels_work && upstream.orphan_max < upstream.timeout {
        lints.warn(
            LintCode::EarlyOrphan,
            at("orphan_max"),
            format!(
                "{} is shorter than `timeout` ({timeout}): the slot is given away while the upstream still works",
                duration_text(upstream.orphan_max)
            ),
            "allow the longest time that the upstream may go on with a request that was given up",
        );
    }
    if upstream.connect_timeout >= upstream.timeout && lints.given(at("connect_timeout")).is_some() {
        lints.warn(
            LintCode::ConnectTimeoutUnused,
            at("connect_timeout"),
            format!("`timeout` ({timeout}) includes the time to connect and ends first"),
            "write less than `timeout`, or leave it out",
        );
    }
}

fn limit(index: usize, upstream: &Upstream, lints: &mut Lints<'_>) {
    let at = |key| At { section: &CONCURRENCY, index, key };
    let LimitPolicy::Aimd(aimd) = &upstream.limit else { return };
    if lints.given(at("baseline")).is_none() {
        if lints.given(at("tolerance")).is_some() {
            lints.warn(
                LintCode::ToleranceUnused,
                at("tolerance"),
                "it has no effect without `baseline`",
                "give `baseline`, the time of an answer when the upstream is not busy, or remove `tolerance`",
            );
        }
    } else if aimd.slow >= upstream.timeout {
        lints.warn(
            LintCode::SlowBeyondTimeout,
            at("baseline"),
            format!(
                "times `tolerance` it is {}, and `timeout` is {}: no answer in time is ever slow",
                duration_text(aimd.slow),
                duration_text(upstream.timeout)
            ),
            "lower `baseline` or `tolerance`, or raise `timeout`",
        );
    }
}

fn queue(index: usize, upstream: &Upstream, lints: &mut Lints<'_>) {
    let at = |key| At { section: &QUEUE, index, key };
    let wait = upstream.queue.wait;
    if wait > WAIT_MAX {
        lints.warn(
            LintCode::LongWait,
            at("wait"),
            format!("few clients wait for {}: most have gone before they are served", duration_text(wait)),
            "write less than what your clients wait for, such as \"500ms\"",
        );
    }
    let Capacity::Fixed(capacity) = upstream.queue.capacity else { return };
    let limit = upstream.limit.most().get();
    // With a service time S, W slots serve W·B/S within the budget B. Next to nothing behind a gateway takes less
    // than a millisecond; with a longer S the bound is lower still.
    let served = u128::from(limit) * wait.as_millis();
    if u128::from(capacity) > served {
        let served = u32::try_from(served).unwrap_or(u32::MAX);
        lints.warn(
            LintCode::QueueBeyondBudget,
            at("capacity"),
            format!(
                "even at 1 ms a request, {} slots serve only {} within `wait` ({}): nobody further back is served",
                grouped(limit),
                grouped(served),
                duration_text(wait)
            ),
            format!("write {} or less, or leave it out and it follows the measured service time", grouped(served)),
        );
    }
}
