//! What somebody who opens a log may say about it.

use super::filter::Filter;
use super::format::Format;
use super::mapping::Mapping;
use super::nginx::LogFormat;
use super::order::{Spread, Window};
use super::stamp::Zone;

/// The format of a log, or that it is to be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first lines tell.
    #[default]
    Detect,
    /// A format that is known by name.
    Known(Format),
    /// nginx, with a `log_format` of one's own.
    Nginx(LogFormat),
    /// JSON lines or CSV with these columns. A file whose first line begins with `{` is JSON.
    Mapped(Mapping),
}

/// How a log is read. The defaults are right for most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The format.
    pub format: Choice,
    /// The zone of times that name none.
    pub zone: Zone,
    /// What becomes of requests whose log has whole seconds only.
    pub spread: Spread,
    /// Which entries are wanted.
    pub filter: Filter,
    /// How far lines may be out of order.
    pub window: Window,
    /// Longer lines are not read, in bytes. From 256 bytes to 16 MiB.
    pub line_max: usize,
    /// So many unreadable lines are kept with their reasons, at most 1,000; all are counted.
    pub unreadable_kept: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Choice::Detect,
            zone: Zone::UTC,
            spread: Spread::Even,
            filter: Filter::default(),
            window: Window::default(),
            line_max: 65_536,
            unreadable_kept: 20,
        }
    }
}
