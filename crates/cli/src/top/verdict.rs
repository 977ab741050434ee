//! One line that says how an upstream is, before any number.

use super::frame::Tone;
use super::sample::{Sample, Upstream};
use super::words::{count, millis};

/// Refusals that say that there is more to do than can be done.
const OVERLOAD: [&str; 5] = ["queue_full", "wait_too_long", "queue_timeout", "pushed_out", "retry_budget"];
/// Refusals of one caller's excess.
const QUOTA: [&str; 3] = ["rate_limited", "tenant_limit", "route_limit"];

/// What matters most comes first.
pub(super) fn verdict(sample: &Sample, upstream: &Upstream) -> (Tone, String) {
    let (shed, over) = (upstream.rejected_for(&OVERLOAD), upstream.rejected_for(&QUOTA));
    let Upstream { arrivals, goodput, orphans, limit, in_flight, breakers, .. } = upstream;
    let is_full = *limit > 0.0 && in_flight >= limit;
    if sample.draining {
        return (Tone::Warn, "DRAINING: no new connections; what runs may end".into());
    }
    if breakers.open > 0.0 && breakers.closed + breakers.half_open == 0.0 {
        return (Tone::Bad, "DOWN: no endpoint answers; requests are refused at once".into());
    }
    if *limit > 0.0 && orphans >= limit {
        return (Tone::Bad, "STALLED: every slot works on an answer that nobody waits for".into());
    }
    let timed_out = upstream.rejected_for(&["upstream_timeout"]);
    if upstream.failed > 0.0 && upstream.failed >= 0.05 * arrivals {
        let what = if timed_out * 2.0 > upstream.failed { "take too long" } else { "fail" };
        return (
            Tone::Bad,
            format!("FAILING: {}/s of {}/s {what}", count(upstream.failed), count(*arrivals)),
        );
    }
    if shed > 0.0 {
        let (shed, good) = (count(shed), count(*goodput));
        return (
            Tone::Bad,
            format!("OVERLOADED: {shed}/s of {}/s are too much; goodput {good}/s", count(*arrivals)),
        );
    }
    if over > 0.0 {
        return (
            Tone::Warn,
            format!(
                "LIMITED: {}/s are over their callers' limits; goodput {}/s",
                count(over),
                count(*goodput)
            ),
        );
    }
    if upstream.queue.now > 0.0 {
        let wait = upstream.classes.iter().map(|class| class.wait_max_ms).fold(f64::NAN, f64::max);
        return (
            Tone::Warn,
            format!("BUSY: {} wait, the longest did for {}", count(upstream.queue.now), millis(wait)),
        );
    }
    if is_full {
        return (
            Tone::Warn,
            format!("FULL: all {} slots are in use; goodput {}/s", count(*limit), count(*goodput)),
        );
    }
    if !(*arrivals > 0.0 || *in_flight > 0.0) {
        return (Tone::Plain, "IDLE".into());
    }
    let free = count((limit - in_flight).max(0.0));
    (
        Tone::Good,
        format!("WELL: {}/s served in time, {free} of {} slots free", count(*goodput), count(*limit)),
    )
}
