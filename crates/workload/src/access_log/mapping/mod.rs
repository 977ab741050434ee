//! Logs of no known format: JSON lines or CSV, and a mapping that says which column is what.
//!
//! ```text
//! arrival=ts,duration=latency_ms,status=code,path=url,tenant=account
//! ```

mod columns;

use std::fmt;
use std::str::FromStr;

use crate::access_log::draft::{Draft, bad};
use crate::access_log::fault::{Fault, What};
use crate::access_log::json::{lookup, object};
use crate::access_log::role::{Clock, Role};
use crate::access_log::stamp::Zone;
use crate::access_log::value::Unit;

pub(crate) use columns::Header;

/// The most pairs of a mapping.
const PAIRS_MAX: usize = 32;

/// Which column of a log says what: pairs of `key=column`, with commas between.
///
/// | key | what the column has |
/// |---|---|
/// | `arrival` | when the request came |
/// | `end` | when it ended; one of these two has to be there |
/// | `duration`, `queued`, `service` | spans of time, in the unit of the column |
/// | `status`, `method`, `path`, `host`, `client`, `bytes`, `route`, `tenant`, `attempts` | as in [`Entry`](super::Entry) |
/// | `request` | a request line, `GET /path HTTP/1.1` |
///
/// `service` may be a list of attempts, as nginx writes it; a line on which it is empty was served by nobody.
///
/// The unit of a span follows the column's name (`latency_ms`, `took_us`, `elapsed_ns`, `time_seconds`, `latencyMs`)
/// or is said: `latency:ms`. A moment may be a text (ISO 8601, or as in Apache's logs) or a number, whose unit is
/// guessed by its size unless it is said. In JSON, a dot leads into an object: `request.uri`. In CSV, a column may be a
/// number, from 1; if all are numbers, the file has no header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    column: Box<str>,
    role: Role,
}

/// Why a text is no mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappingError {
    /// Not of the form `key=column`.
    NotAPair(String),
    /// A key that means nothing.
    UnknownKey(String),
    /// A key that was given before.
    Twice(String),
    /// A span whose unit is neither said nor part of the column's name.
    WhichUnit(String, String),
    /// Neither `arrival` nor `end`.
    NoTime,
    /// More than 32 pairs.
    TooLong,
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPair(text) => write!(f, "`{text}` is not of the form key=column"),
            Self::UnknownKey(key) => write!(
                f,
                "`{key}` is no key of a mapping; there are arrival, end, duration, queued, service, status, method, \
                 path, request, host, client, bytes, route, tenant and attempts"
            ),
            Self::Twice(key) => write!(f, "`{key}` is there twice"),
            Self::WhichUnit(key, column) => {
                write!(f, "`{key}={column}`: in which unit? Write {key}={column}:ms, or s, us, ns")
            }
            Self::NoTime => {
                f.write_str("neither `arrival` nor `end` is there: nothing says when a request came")
            }
            Self::TooLong => write!(f, "the mapping has more than {PAIRS_MAX} pairs"),
        }
    }
}

impl std::error::Error for MappingError {}

impl FromStr for Mapping {
    type Err = MappingError;

    fn from_str(text: &str) -> Result<Self, MappingError> {
        let mut keys: Vec<&str> = Vec::new();
        let mut pairs = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((key, column)) = pair.split_once('=').filter(|(_, column)| !column.trim().is_empty())
            else {
                return Err(MappingError::NotAPair(pair.into()));
            };
            let (key, column) = (key.trim(), column.trim());
            if keys.contains(&key) {
                return Err(MappingError::Twice(key.into()));
            }
            if keys.len() == PAIRS_MAX {
                return Err(MappingError::TooLong);
            }
            pairs.push(pair_of(key, column)?);
            keys.push(key);
        }
        if !keys.contains(&"arrival") && !keys.contains(&"end") {
            return Err(MappingError::NoTime);
        }
        Ok(Self { pairs })
    }
}

fn pair_of(key: &str, column: &str) -> Result<Pair, MappingError> {
    let (name, said) = match column.rsplit_once(':') {
        Some((name, unit)) if !name.is_empty() => match Unit::named(unit) {
            Some(unit) => (name, Some(unit)),
            None => (column, None),
        },
        _ => (column, None),
    };
    let unit = || {
        said.or_else(|| unit_of_name(name)).ok_or_else(|| MappingError::WhichUnit(key.into(), column.into()))
    };
    let clock = || said.map_or(Clock::Any, Clock::Epoch);
    let role = match key {
        "arrival" => Role::Start(clock()),
        "end" => Role::End(clock()),
        "duration" => Role::Total(unit()?),
        "queued" => Role::Queued(unit()?),
        "service" => Role::ServiceList(unit()?),
        "status" => Role::Status,
        "method" => Role::Method,
        "path" => Role::Target,
        "request" => Role::Request,
        "host" => Role::Host,
        "client" => Role::Client,
        "bytes" => Role::Bytes,
        "route" => Role::Route,
        "tenant" => Role::Tenant,
        "attempts" => Role::Attempts,
        _ => return Err(MappingError::UnknownKey(key.into())),
    };
    Ok(Pair { column: name.into(), role })
}

/// The unit that a column's name ends with.
fn unit_of_name(name: &str) -> Option<Unit> {
    const ENDINGS: [(&str, Unit); 16] = [
        ("_ms", Unit::Millis),
        ("_millis", Unit::Millis),
        ("_milliseconds", Unit::Millis),
        ("Ms", Unit::Millis),
        ("Millis", Unit::Millis),
        ("_us", Unit::Micros),
        ("_micros", Unit::Micros),
        ("_microseconds", Unit::Micros),
        ("Us", Unit::Micros),
        ("_ns", Unit::Nanos),
        ("_nanos", Unit::Nanos),
        ("_nanoseconds", Unit::Nanos),
        ("_s", Unit::Seconds),
        ("_sec", Unit::Seconds),
        ("_secs", Unit::Seconds),
        ("_seconds", Unit::Seconds),
    ];
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, unit)| *unit)
}

impl Mapping {
    /// Reads a line of JSON.
    pub(crate) fn read_json(&self, line: &str, zone: &Zone) -> Result<Draft, Fault> {
        let object = object(line)?;
        let mut draft = Draft::default();
        for pair in &self.pairs {
            let Some(text) = lookup(&object, &pair.column) else { continue };
            let set = draft.set(pair.role, &text, zone);
            set.map_err(|kind| Fault::somewhere(bad(&pair.column, kind)))?;
        }
        Ok(draft)
    }

    /// Reads a line of CSV.
    pub(crate) fn read_csv(&self, line: &str, header: &Header, zone: &Zone) -> Result<Draft, Fault> {
        let fields = columns::split(line, header.separator)?;
        let mut draft = Draft::default();
        for (pair, column) in self.pairs.iter().zip(&header.columns) {
            let Some((at, text)) = fields.get(*column) else {
                let name = format!("column {} ({} are there)", pair.column, fields.len());
                return Err(Fault::at(line.len(), What::Missing(name.into())));
            };
            draft.set(pair.role, text, zone).map_err(|kind| Fault::at(*at, bad(&pair.column, kind)))?;
        }
        Ok(draft)
    }

    /// Finds the columns in the first line of a CSV file. The error names the column that is not there.
    pub(crate) fn header(&self, first: &str) -> Result<Header, String> {
        columns::find(self.pairs.iter().map(|pair| &*pair.column), first)
    }

    /// What the times are taken to be, as a sentence.
    pub(crate) fn time(&self) -> &'static str {
        let has = |wanted: fn(Role) -> bool| self.pairs.iter().any(|pair| wanted(pair.role));
        if has(|role| matches!(role, Role::Start(_))) {
            "The column of `arrival` says when a request came."
        } else if has(|role| matches!(role, Role::Total(_))) {
            "The arrival is `end` less `duration`."
        } else {
            "`end` counts as the arrival, since no `duration` is mapped."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_that_say_too_little_are_refused() {
        let error = |text: &str| text.parse::<Mapping>().unwrap_err().to_string();
        assert_eq!(error(""), "neither `arrival` nor `end` is there: nothing says when a request came");
        assert_eq!(error("arrival"), "`arrival` is not of the form key=column");
        assert_eq!(error("arrival=a,arrival=b"), "`arrival` is there twice");
        assert_eq!(
            error("arrival=ts,duration=latency"),
            "`duration=latency`: in which unit? Write duration=latency:ms, or s, us, ns"
        );
        assert!(error("arrive=ts").starts_with("`arrive` is no key of a mapping; there are arrival,"));
    }

    #[test]
    fn units_are_said_or_part_of_the_name() {
        let role = |text: &str| text.parse::<Mapping>().unwrap().pairs.swap_remove(1);
        for (column, name, unit) in [
            ("took:us", "took", Unit::Micros),
            ("took_ms:s", "took_ms", Unit::Seconds),
            ("latencyMs", "latencyMs", Unit::Millis),
            ("elapsed_seconds", "elapsed_seconds", Unit::Seconds),
        ] {
            let pair = role(&format!("arrival=ts, duration={column}"));
            assert_eq!(pair, Pair { column: name.into(), role: Role::Total(unit) });
        }
        // What only looks like a unit belongs to the name.
        assert_eq!(*role("arrival=ts,host=:authority").column, *":authority");
    }
}
