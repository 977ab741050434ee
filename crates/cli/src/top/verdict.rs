//! One line that says how an upstream is, before any number: the instance's verdict, put into words. What is so is decided
//! in the gateway, for this and for the dashboard alike.

use super::frame::Tone;
use super::sample::{Sample, Upstream};
use super::words::{count, millis, name};

/// What matters most comes first.
pub(super) fn verdict(sample: &Sample, upstream: &Upstream) -> (Tone, String) {
    if sample.draining {
        return (Tone::Warn, "DRAINING: no new connections; what runs may end".into());
    }
    let it = &upstream.verdict;
    let tone = match (it.kind.as_str(), it.level.as_str()) {
        ("idle", _) => Tone::Plain,
        (_, "good") => Tone::Good,
        (_, "bad") => Tone::Bad,
        _ => Tone::Warn,
    };
    let (arrivals, goodput) = (count(it.arrivals), count(it.goodput));
    let says = match it.kind.as_str() {
        "down" => "DOWN: no endpoint answers; requests are refused at once".into(),
        "clients_leave" => {
            format!("LEAVING: {}/s of {arrivals}/s give up before their answer", count(it.client_left))
        }
        "fails" => {
            let what = if it.reason == "upstream_timeout" { "take too long" } else { "fail" };
            format!("FAILING: {}/s of {arrivals}/s {what}", count(it.failed))
        }
        "full" => {
            format!("OVERLOADED: {}/s of {arrivals}/s are too much; goodput {goodput}/s", count(it.refused))
        }
        "refuses" => format!(
            "REFUSING: {}/s of {arrivals}/s, mostly {}; goodput {goodput}/s",
            count(it.refused),
            name(&it.reason)
        ),
        "held_back" => {
            format!("LIMITED: {}/s are over their callers' limits; goodput {goodput}/s", count(it.for_reason))
        }
        "just_full" => {
            let wait = upstream.classes.iter().map(|class| class.wait_max_ms).fold(f64::NAN, f64::max);
            format!("FULL: {} wait, the longest did for {}", count(it.waiting), millis(wait))
        }
        "well" => {
            let free = count((it.limit - it.taken).max(0.0));
            format!("WELL: {goodput}/s served in time, {free} of {} slots free", count(it.limit))
        }
        "idle" => "IDLE".into(),
        "" => "it is not said how it is: this instance is of another version".into(),
        other => format!("{}: goodput {goodput}/s of {arrivals}/s", name(other).to_uppercase()),
    };
    (tone, says)
}
