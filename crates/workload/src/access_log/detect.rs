//! Which format a log has, by its first lines: each candidate reads them all, and the one that can make out most of
//! them wins, the one that explains more of a line if several can.

use std::fmt;
use std::io;

use super::draft::shares_its_second;
use super::fault::{self, Unreadable};
use super::format::Format;
use super::layout::{Layout, is_empty};
use super::lines::{Line, ReadError};
use super::mapping::Mapping;
use super::options::{Choice, Options};
use super::stamp::Zone;

/// So many lines are looked at.
pub(crate) const SAMPLE_MAX: usize = 200;

/// What a log was taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The name of the format.
    pub format: String,
    /// Whether it was found out, rather than said.
    pub guessed: bool,
    /// How many lines were looked at.
    pub sampled: usize,
    /// How many of them fit.
    pub fitting: usize,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// What the times are taken to be, in sentences.
    pub time: String,
}

impl fmt::Display for Recognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, sampled, fitting, time, .. } = self;
        let compressed = if self.compressed { ", compressed" } else { "" };
        let guessed = if self.guessed { "recognised as" } else { "read as" };
        write!(f, "{guessed} {format}{compressed}: {fitting} of the first {sampled} lines fit. {time}")
    }
}

/// Why a log cannot be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Its first bytes could not be read.
    Io(io::Error),
    /// Its first lines could not be read.
    Read(ReadError),
    /// It has no line but blank ones and comments.
    Empty,
    /// All of its first lines are longer than is read.
    TooLong {
        /// How many bytes the first of them has.
        bytes: u64,
        /// How many are read.
        most: usize,
    },
    /// No format fits half of the lines.
    Unrecognised {
        /// Each format that was tried, and how many lines fit it.
        tried: Vec<(&'static str, usize)>,
        /// How many lines were looked at.
        sampled: usize,
        /// The first line: its beginning, printable and without addresses.
        first_line: String,
    },
    /// No line fits the format that was said.
    NothingFits {
        /// The format.
        format: String,
        /// How many lines were looked at.
        sampled: usize,
        /// What is wrong with the first of them.
        first: Unreadable,
    },
    /// The first line of a CSV file does not name a column of the mapping.
    NoSuchColumn {
        /// The column.
        column: String,
        /// The first line: its beginning, printable and without addresses.
        first_line: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the log cannot be read: {error}"),
            Self::Read(error) => error.fmt(f),
            Self::Empty => f.write_str("the log is empty"),
            Self::TooLong { bytes, most } => {
                write!(
                    f,
                    "the first line has {bytes} bytes, and at most {most} are read: is it one entry a line?"
                )
            }
            Self::Unrecognised { tried, sampled, first_line } => {
                writeln!(
                    f,
                    "no known format fits half of the first {sampled} lines; say which it is, or map its columns"
                )?;
                writeln!(f, "  the first line: {first_line}")?;
                let tried: Vec<_> = tried.iter().map(|(name, fit)| format!("{name} ({fit} fit)")).collect();
                write!(f, "  tried: {}", tried.join(", "))
            }
            Self::NothingFits { format, sampled, first } => {
                write!(f, "none of the first {sampled} lines is of the format {format}; {first}")
            }
            Self::NoSuchColumn { column, first_line } => {
                write!(f, "there is no column {column:?}; the first line: {first_line}")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Read(error) => Some(error),
            _ => None,
        }
    }
}

/// How a log's lines are read, and the words for it.
struct Chosen {
    layout: Layout,
    format: String,
    time: String,
}

/// How the sampled lines are to be read, and what to say about it.
pub(crate) fn recognise(
    sample: &[(u64, Line)],
    options: &Options,
) -> Result<(Layout, Recognised), OpenError> {
    let texts = sample.iter().filter_map(|(number, line)| match line {
        Line::Text(text) if !is_empty(text) => Some((*number, text.as_str())),
        _ => None,
    });
    let mut lines: Vec<(u64, &str)> = texts.collect();
    let Some(&(_, first_line)) = lines.first() else { return Err(nothing_to_see(sample, options.line_max)) };
    let Chosen { layout, format, mut time } = match &options.format {
        Choice::Detect => guess(&lines, &options.zone)?,
        Choice::Known(format) => known(*format, &options.zone),
        Choice::Nginx(format) => Chosen {
            time: format.time().to_owned(),
            format: format!("log_format {}", format.name),
            layout: Layout::Template(format.template.clone()),
        },
        Choice::Mapped(mapping) => mapped(mapping, first_line, &options.zone)?,
    };
    if layout.has_header() {
        lines.remove(0);
    }
    let (mut fitting, mut in_seconds, mut first) = (0, false, None);
    for (number, line) in &lines {
        match layout.read(*number, line, &options.zone) {
            Ok(reading) => {
                fitting += 1;
                in_seconds |= shares_its_second(&reading.entry);
            }
            Err(fault) => first = first.or_else(|| Some(Unreadable::new(*number, line, &fault))),
        }
    }
    match first {
        Some(first) if fitting == 0 => {
            return Err(OpenError::NothingFits { format, sampled: lines.len(), first });
        }
        None if fitting == 0 => return Err(OpenError::Empty),
        _ => {}
    }
    if in_seconds {
        time.push(' ');
        time.push_str(options.spread.in_words());
    }
    let guessed = matches!(options.format, Choice::Detect);
    let sampled = lines.len();
    Ok((layout, Recognised { format, guessed, sampled, fitting, compressed: false, time }))
}

/// Why there is no line to look at.
fn nothing_to_see(sample: &[(u64, Line)], most: usize) -> OpenError {
    let too_long = sample.iter().find_map(|(_, line)| match line {
        Line::TooLong(bytes) => Some(*bytes),
        Line::Text(_) => None,
    });
    too_long.map_or(OpenError::Empty, |bytes| OpenError::TooLong { bytes, most })
}

fn known(format: Format, zone: &Zone) -> Chosen {
    let mut time = format.time().to_owned();
    if format == Format::Haproxy {
        time.push_str(&format!(" It names no time zone and is taken to be in {zone}."));
    }
    Chosen { layout: format.layout(), format: format.to_string(), time }
}

fn mapped(mapping: &Mapping, first_line: &str, zone: &Zone) -> Result<Chosen, OpenError> {
    let time = format!("{} A time that names no zone is taken to be in {zone}.", mapping.time());
    let mapping = mapping.clone();
    if first_line.trim_start().starts_with('{') {
        let format = "mapped JSON lines".to_owned();
        return Ok(Chosen { layout: Layout::MappedJson(mapping), format, time });
    }
    let header = mapping.header(first_line).map_err(|column| {
        let first_line = fault::shown(first_line);
        OpenError::NoSuchColumn { column, first_line }
    })?;
    Ok(Chosen { layout: Layout::MappedCsv(mapping, header), format: "mapped CSV".to_owned(), time })
}

fn guess(lines: &[(u64, &str)], zone: &Zone) -> Result<Chosen, OpenError> {
    let mut tried = Vec::new();
    let mut best: Option<(usize, usize, Format)> = None;
    for format in Format::ALL {
        let layout = format.layout();
        let fitting = lines.iter().filter(|(number, line)| layout.read(*number, line, zone).is_ok()).count();
        tried.push((format.name(), fitting));
        let score = (fitting, layout.weight());
        if best.is_none_or(|(most, weight, _)| score > (most, weight)) {
            best = Some((fitting, layout.weight(), format));
        }
    }
    match best {
        Some((fitting, _, format)) if fitting * 2 >= lines.len() => Ok(known(format, zone)),
        _ => {
            let first_line = fault::shown(lines.first().map_or("", |(_, line)| line));
            Err(OpenError::Unrecognised { tried, sampled: lines.len(), first_line })
        }
    }
}
