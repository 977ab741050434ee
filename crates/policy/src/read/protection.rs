//! `[upstream.breaker]` and `[upstream.health_check]`.

use std::time::Duration;

use tidegate_engine::BreakerPolicy;

use super::Places;
use super::section::{Found, Section, duration, factor, switch, text};
use crate::keys::{BREAKER, HEALTH_CHECK};
use crate::model::{Breaker, Ejection, HealthCheck};
use crate::problem::Report;
use crate::values;

/// `None` when it is turned off.
pub(crate) fn breaker(
    index: usize,
    found: Option<Found<'_>>,
    timeout: Duration,
    report: &mut Report,
    places: &mut Places,
) -> Option<Breaker> {
    let mut section = Section::open(&BREAKER, index, found, report, places);
    let enabled = section.value("enabled", switch);
    let policy = BreakerPolicy {
        connect_failures: section.count("connect_failures"),
        failure_ratio: section.value("failure_ratio", factor),
        min_requests: section.count("min_requests"),
        window: section.duration("window"),
        open: section.duration("open"),
        open_max: section.duration("open_max"),
        probes: section.count("probes"),
        probe_timeout: section.optional("probe_timeout", duration).unwrap_or(timeout),
    };
    let eject = section.value("eject", switch);
    let ejection = Ejection {
        worse_by: section.value("worse_by", factor),
        max_ejected: section.value("max_ejected", factor),
    };
    if !enabled {
        refuse_others(&mut section, "enabled", BREAKER.keys.iter().map(|key| key.name));
    } else if !eject {
        refuse_others(&mut section, "eject", ["worse_by", "max_ejected"].into_iter());
    }
    if policy.open > policy.open_max && section.is_sound() {
        let (at, other) = if section.has("open_max") { ("open_max", "open") } else { ("open", "open_max") };
        let help = if section.has(other) { String::new() } else { format!("give `{other}` as well") };
        section.contradiction(at, "`open` is longer than `open_max`", help);
    }
    section.close();
    enabled.then_some(Breaker { policy, ejection: eject.then_some(ejection) })
}

/// A key beside a switch that makes it mean nothing would be a number that somebody relies on in vain.
fn refuse_others(
    section: &mut Section<'_, '_>,
    switch: &'static str,
    others: impl Iterator<Item = &'static str>,
) {
    for key in others.filter(|key| *key != switch) {
        if section.has(key) {
            section.contradiction(
                key,
                format!("this has no effect with `{switch} = false`"),
                "remove one of the two",
            );
        }
    }
}

/// `None` unless it is written.
pub(crate) fn health_check(
    index: usize,
    found: Option<Found<'_>>,
    report: &mut Report,
    places: &mut Places,
) -> Option<HealthCheck> {
    found.as_ref()?;
    let mut section = Section::open(&HEALTH_CHECK, index, found, report, places);
    let path = section.required("path", |_, value| values::target(text(value)?));
    let host = section.optional("host", |_, value| values::host_field(text(value)?));
    let interval = section.duration("interval");
    let timeout = section.duration("timeout");
    let healthy_after = section.count("healthy_after");
    let unhealthy_after = section.count("unhealthy_after");
    section.close();
    Some(HealthCheck { path: path?, host, interval, timeout, healthy_after, unhealthy_after })
}
