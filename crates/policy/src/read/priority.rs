//! `[[priority]]` and `[[tenant]]`: the classes, and the tenants with a weight of their own.

use super::section::{Found, Section, share, text};
use super::upstream::Names;
use super::{Places, unique};
use crate::keys::{FLOORS_MAX, PRIORITY, TENANT};
use crate::model::{PriorityClass, TenantWeight};
use crate::problem::Report;
use crate::values;

/// The classes where a file names none, and their floors: enough for what matters more, less and not at all to whoever
/// waits. The last has a floor, because work that is put off for ever is not put off but lost.
const CLASSES: [(&str, f64); 3] = [("critical", 0.0), (PriorityClass::DEFAULT, 0.0), ("background", 0.05)];

/// The names that routes and the server may refer to, right or wrong.
pub(crate) fn names<'d>(classes: &[Found<'d>]) -> Names<'d> {
    if classes.is_empty() { Names::fixed(&CLASSES.map(|(name, _)| name)) } else { Names::of(classes) }
}

/// `None` after a problem was reported.
pub(crate) fn read(
    classes: &[Found<'_>],
    report: &mut Report,
    places: &mut Places,
) -> Option<Vec<PriorityClass>> {
    if classes.is_empty() {
        return Some(CLASSES.map(|(name, floor)| PriorityClass { name: name.to_owned(), floor }).into());
    }
    let mut left = FLOORS_MAX;
    let list: Vec<Option<PriorityClass>> = classes
        .iter()
        .enumerate()
        .map(|(index, found)| class(index, found, &mut left, report, places))
        .collect();
    let names = list.iter().enumerate().filter_map(|(index, class)| {
        class.as_ref().map(|class| (class.name.as_str(), places.of(&PRIORITY, index, "name")))
    });
    unique(names, report);
    list.into_iter().collect()
}

fn class(
    index: usize,
    found: &Found<'_>,
    left: &mut f64,
    report: &mut Report,
    places: &mut Places,
) -> Option<PriorityClass> {
    let mut section = Section::open(&PRIORITY, index, Some(found.clone()), report, places);
    let name = section.required("name", |_, value| values::name(text(value)?));
    let floor = section.value("floor", share);
    // Sums of what people write, such as 0.1 and 0.4, are off by the last bit.
    if floor > *left + 1e-9 {
        section.contradiction(
            "floor",
            format!("all floors together are more than {FLOORS_MAX}"),
            "what is set aside is missing where it matters most: lower this one or another",
        );
    }
    *left -= floor;
    section.close();
    Some(PriorityClass { name: name?, floor })
}

/// `None` after a problem was reported.
pub(crate) fn read_tenants(
    tenants: &[Found<'_>],
    report: &mut Report,
    places: &mut Places,
) -> Option<Vec<TenantWeight>> {
    let mut one = |(index, found): (usize, &Found<'_>)| {
        let mut section = Section::open(&TENANT, index, Some(found.clone()), report, places);
        let name = section.required("name", |_, value| values::tenant_name(text(value)?));
        let weight = section.count("weight");
        section.close();
        Some(TenantWeight { name: name?, weight })
    };
    let list: Vec<Option<TenantWeight>> = tenants.iter().enumerate().map(&mut one).collect();
    let names = list.iter().enumerate().filter_map(|(index, tenant)| {
        tenant.as_ref().map(|tenant| (tenant.name.as_str(), places.of(&TENANT, index, "name")))
    });
    unique(names, report);
    list.into_iter().collect()
}

/// The class of what nobody says anything about.
pub(crate) fn default(classes: &Names<'_>) -> usize {
    classes.index(PriorityClass::DEFAULT).unwrap_or_else(|| classes.count().saturating_sub(1))
}

/// The class that a key refers to by its name; the default one after a problem was reported.
pub(crate) fn refer(
    section: &mut Section<'_, '_>,
    key: &'static str,
    name: &str,
    classes: &Names<'_>,
) -> usize {
    classes.refer(section, key, "class", name).unwrap_or_else(|| default(classes))
}
