//! `[[rate_limit]]`

use tidegate_engine::{Quota, QuotaError};

use super::section::{Found, Section, integer, nonzero, rate, switch, text};
use super::{Places, unique};
use crate::keys::RATE_LIMIT;
use crate::model::{PathPattern, RateLimit};
use crate::problem::Report;
use crate::values;

/// `None` after a problem was reported.
pub(crate) fn read(limits: &[Found<'_>], report: &mut Report, places: &mut Places) -> Option<Vec<RateLimit>> {
    let list: Vec<Option<RateLimit>> =
        limits.iter().enumerate().map(|(index, found)| one(index, found, report, places)).collect();
    let names = list.iter().enumerate().filter_map(|(index, limit)| {
        limit.as_ref().map(|limit| (limit.name.as_str(), places.of(&RATE_LIMIT, index, "name")))
    });
    unique(names, report);
    list.into_iter().collect()
}

fn one(index: usize, found: &Found<'_>, report: &mut Report, places: &mut Places) -> Option<RateLimit> {
    let mut section = Section::open(&RATE_LIMIT, index, Some(found.clone()), report, places);
    let name = section.required("name", |_, value| values::name(text(value)?));
    let key = section.required("key", |_, value| values::rate_key(text(value)?));
    let rate = section.required("rate", rate);
    let burst = section.optional("burst", integer).map(nonzero);
    let max_keys = section.count("max_keys");
    let show_key = section.value("show_key", switch);
    let paths = section.list("paths", PathPattern::parse);
    let quota = rate.and_then(|rate| {
        let quota = Quota::new(rate.count, rate.period, burst.unwrap_or_else(|| rate.per_second()));
        quota.map_err(|error| refuse(&mut section, error)).ok()
    });
    section.close();
    Some(RateLimit { name: name?, key: key?, quota: quota?, max_keys, show_key, paths })
}

fn refuse(section: &mut Section<'_, '_>, error: QuotaError) {
    let (key, message) = match error {
        QuotaError::Period => ("rate", "the period is longer than 366 days"),
        QuotaError::Rate => ("rate", "more than a thousand million a second cannot be told apart"),
        QuotaError::Burst => {
            ("burst", "at this rate the burst would take more than a hundred years to come back")
        }
    };
    section.contradiction(key, message, "is the unit the right one?");
}
