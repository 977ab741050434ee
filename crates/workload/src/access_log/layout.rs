//! How the lines of one log are read: the one place where all kinds of formats come together.

use super::draft::Reading;
use super::fault::Fault;
use super::json::Table;
use super::mapping::{Header, Mapping};
use super::stamp::Zone;
use super::syslog;
use super::template::Template;
use super::{alb, haproxy};

/// How a line is read.
#[derive(Debug)]
pub(crate) enum Layout {
    Template(Template),
    Haproxy,
    Alb,
    Json(&'static Table),
    MappedJson(Mapping),
    MappedCsv(Mapping, Header),
}

impl Layout {
    /// Reads a line: without what a collector may have put before it, or, if that does not fit, as it is.
    ///
    /// In this order, because a layout that begins with a text of any kind would take a collector's words for it.
    pub(crate) fn read(&self, number: u64, line: &str, zone: &Zone) -> Result<Reading, Fault> {
        let length = syslog::prefix(line);
        match self.read_bare(number, &line[length..], zone) {
            Err(fault) if length > 0 => self.read_bare(number, line, zone).map_err(|_| fault.moved(length)),
            read => read,
        }
    }

    fn read_bare(&self, number: u64, line: &str, zone: &Zone) -> Result<Reading, Fault> {
        let draft = match self {
            Self::Template(template) => template.read(line, zone),
            Self::Haproxy => haproxy::read(line, zone),
            Self::Alb => alb::read(line, zone),
            Self::Json(table) => table.read(line, zone),
            Self::MappedJson(mapping) => mapping.read_json(line, zone),
            Self::MappedCsv(mapping, header) => mapping.read_csv(line, header, zone),
        };
        draft?.finish(number)
    }

    /// How much of a line it explains. Between two that fit a line, the one that explains more is right.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Template(template) => template.weight(),
            Self::Json(table) => table.weight(),
            // What they read, no other layout does.
            Self::Haproxy | Self::Alb | Self::MappedJson(_) | Self::MappedCsv(..) => 1,
        }
    }

    /// Whether the first line names the columns.
    pub(crate) fn has_header(&self) -> bool {
        matches!(self, Self::MappedCsv(_, header) if header.has_names)
    }
}

/// Whether nothing stands on the line, or a comment as W3C logs have them.
pub(crate) fn is_empty(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}
