//! `[server.otlp]`

use super::Places;
use super::section::{Found, Section, share, text};
use crate::keys::OTLP;
use crate::model::Otlp;
use crate::problem::Report;
use crate::values;

/// `None` unless it is written.
pub(crate) fn read(found: Option<Found<'_>>, report: &mut Report, places: &mut Places) -> Option<Otlp> {
    found.as_ref()?;
    let mut section = Section::open(&OTLP, 0, found, report, places);
    let otlp = Otlp {
        endpoint: section.value("endpoint", |_, value| values::endpoint(text(value)?)),
        service_name: section.value("service_name", |_, value| values::service_name(text(value)?)),
        sample: section.value("sample", share),
        metrics_interval: section.duration("metrics_interval"),
        headers_file: section.optional("headers_file", |_, value| values::file_path(text(value)?)),
        headers: Vec::new(),
    };
    section.close();
    Some(otlp)
}
