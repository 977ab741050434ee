//! nginx's `log_format`, compiled: the format that somebody's nginx.conf states is the one that their log has.
//!
//! <https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format>

mod conf;

use std::fmt;
use std::str::FromStr;

use crate::access_log::role::{Clock, Role};
use crate::access_log::template::{Field, Meaning, PARTS_MAX, Part, Template};
use crate::access_log::value::{Escape, Unit};

/// A compiled `log_format`.
///
/// ```
/// use tidegate_workload::access_log::LogFormat;
///
/// let format: LogFormat = r#"$remote_addr [$msec] "$request" $status $request_time"#.parse()?;
/// let error = "$remote_addr $request".parse::<LogFormat>().unwrap_err();
/// assert_eq!(error.to_string(), "there is no $msec, $time_iso8601 or $time_local: nothing says when a request came");
/// # Ok::<(), tidegate_workload::access_log::LogFormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    pub(crate) name: Box<str>,
    pub(crate) template: Template,
}

/// Why a text is no `log_format` that can be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormatError {
    /// `$` without a name, or `${` without its end; the byte of the `$`.
    BadVariable(usize),
    /// Two variables with nothing between them, so that nobody can tell where the first ends.
    NothingBetween(String, String),
    /// No time of day in it.
    NoTime,
    /// More than 256 variables and texts.
    TooLong,
    /// A quoted piece of the configuration does not end.
    OpenQuote,
    /// The configuration states no format of this name; these it has.
    NoSuchFormat(String, Vec<String>),
    /// The configuration states several formats and none was named.
    WhichFormat(Vec<String>),
    /// The configuration states no format at all.
    NoFormat,
    /// `escape=` of a kind that nginx does not have.
    BadEscape(String),
    /// The format does not have the variable that a mapping names.
    NoSuchVariable(String),
    /// A mapping of something that has no meaning.
    BadKey(String),
}

impl fmt::Display for LogFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadVariable(at) => write!(f, "the `$` at byte {at} begins no variable"),
            Self::NothingBetween(first, second) => {
                write!(f, "nothing stands between ${first} and ${second}, so they cannot be told apart")
            }
            Self::NoTime => f.write_str(
                "there is no $msec, $time_iso8601 or $time_local: nothing says when a request came",
            ),
            Self::TooLong => write!(f, "the format has more than {PARTS_MAX} parts"),
            Self::OpenQuote => f.write_str("a quoted text does not end"),
            Self::NoSuchFormat(name, known) => {
                write!(f, "there is no log_format {name}; there is {}", known.join(", "))
            }
            Self::WhichFormat(known) => write!(f, "which log_format? There is {}", known.join(", ")),
            Self::NoFormat => f.write_str("there is no log_format"),
            Self::BadEscape(name) => write!(f, "escape={name} is not default, json or none"),
            Self::NoSuchVariable(name) => write!(f, "the format does not have ${name}"),
            Self::BadKey(key) => write!(f, "`{key}` cannot be mapped; `tenant`, `client` and `route` can"),
        }
    }
}

impl std::error::Error for LogFormatError {}

impl FromStr for LogFormat {
    type Err = LogFormatError;

    /// Reads the text of a format: bare (`$remote_addr [$msec] …`), or as it stands in a configuration, beginning with
    /// `log_format`, `escape=` or a single quote.
    fn from_str(text: &str) -> Result<Self, LogFormatError> {
        let trimmed = text.trim();
        if trimmed.starts_with("log_format") {
            return Self::from_conf(trimmed, None);
        }
        if trimmed.starts_with('\'') || trimmed.starts_with("escape=") {
            return Self::from_conf(&format!("log_format unnamed {trimmed}"), None);
        }
        Self::compile("unnamed", text, Escape::Backslash)
    }
}

impl LogFormat {
    /// Takes a format out of the text of an nginx configuration: the named one, or the only one.
    ///
    /// # Errors
    ///
    /// If the configuration does not have it, or it cannot be read back.
    pub fn from_conf(text: &str, name: Option<&str>) -> Result<Self, LogFormatError> {
        let mut formats = conf::formats(text)?;
        let names = || formats.iter().map(|format| format.name.clone()).collect::<Vec<_>>();
        let at = match (name, formats.len()) {
            (_, 0) => return Err(LogFormatError::NoFormat),
            (None, 1) => 0,
            (None, _) => return Err(LogFormatError::WhichFormat(names())),
            (Some(name), _) => formats
                .iter()
                .position(|format| format.name == name)
                .ok_or_else(|| LogFormatError::NoSuchFormat(name.into(), names()))?,
        };
        let format = formats.swap_remove(at);
        Self::compile(&format.name, &format.text, format.escape)
    }

    /// Says what a variable is that means nothing by itself: `tenant`, `client` or `route`. It then takes precedence
    /// over what the format says of these.
    ///
    /// # Errors
    ///
    /// If the key is another one, or the format does not have the variable.
    pub fn map(mut self, key: &str, variable: &str) -> Result<Self, LogFormatError> {
        let role = match key {
            "tenant" => Role::Tenant,
            "client" => Role::Client,
            "route" => Role::Route,
            _ => return Err(LogFormatError::BadKey(key.into())),
        };
        let mut found = false;
        for part in &mut self.template.parts {
            let Part::Field(field) = part else { continue };
            if *field.name == *variable {
                (field.role, found) = (Meaning::One(role), true);
            } else if field.role == Meaning::One(role) {
                field.role = Meaning::Ignored;
            }
        }
        if found { Ok(self) } else { Err(LogFormatError::NoSuchVariable(variable.into())) }
    }

    /// What the times are taken to be, as a sentence.
    pub(crate) fn time(&self) -> &'static str {
        let is_total =
            |part: &Part| matches!(part, Part::Field(Field { role: Meaning::One(Role::Total(_)), .. }));
        if self.template.parts.iter().any(is_total) {
            "The time is the end of a request; the arrival is that less $request_time."
        } else {
            "The time is the end of a request, and without $request_time in the format it counts as the arrival."
        }
    }

    pub(crate) fn compile(name: &str, text: &str, escape: Escape) -> Result<Self, LogFormatError> {
        let mut parts = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let next = text[at..].find('$').map_or(text.len(), |found| at + found);
            if next > at {
                parts.push(Part::Text(text[at..next].into()));
                at = next;
                continue;
            }
            let (variable, length) = variable(&text[at..]).ok_or(LogFormatError::BadVariable(at))?;
            push_field(&mut parts, variable)?;
            at += length;
        }
        if parts.len() > PARTS_MAX {
            return Err(LogFormatError::TooLong);
        }
        let has_time = parts
            .iter()
            .any(|part| matches!(part, Part::Field(Field { role: Meaning::One(Role::End(_)), .. })));
        if !has_time {
            return Err(LogFormatError::NoTime);
        }
        let template = Template { parts, escape, open_ended: false };
        Ok(Self { name: name.into(), template })
    }
}

/// The variable that `text` begins with, and how long it is with its `$`.
fn variable(text: &str) -> Option<(&str, usize)> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = text.strip_prefix('$')?;
    let (name, length) = match rest.strip_prefix('{') {
        Some(braced) => {
            let name = &braced[..braced.find('}')?];
            (name, name.len() + 3)
        }
        None => {
            let name = &rest[..rest.find(|c| !in_name(c)).unwrap_or(rest.len())];
            (name, name.len() + 1)
        }
    };
    (!name.is_empty() && name.chars().all(in_name)).then_some((name, length))
}

/// Adds a variable. Right behind another one it must be possible to tell where it begins: a path begins with a slash,
/// and what follows a path belongs to its query.
fn push_field(parts: &mut Vec<Part>, name: &str) -> Result<(), LogFormatError> {
    let mut meaning = role_of(name).map_or(Meaning::Ignored, Meaning::One);
    if let Some(Part::Field(before)) = parts.last_mut() {
        meaning = match (before.role, meaning) {
            (Meaning::One(Role::Host), Meaning::One(Role::Target)) => Meaning::HostAndTarget,
            (Meaning::Ignored, Meaning::Ignored) => Meaning::Ignored,
            (kept @ (Meaning::One(Role::Target) | Meaning::HostAndTarget), Meaning::Ignored) => kept,
            _ => return Err(LogFormatError::NothingBetween(before.name.to_string(), name.into())),
        };
        *before = Field { name: format!("{}${name}", before.name).into(), role: meaning };
        return Ok(());
    }
    parts.push(Part::Field(Field { name: name.into(), role: meaning }));
    Ok(())
}

/// What a variable says, if it is of use here.
/// <https://nginx.org/en/docs/varindex.html>
fn role_of(variable: &str) -> Option<Role> {
    Some(match variable {
        "time_local" => Role::End(Clock::Common),
        "time_iso8601" => Role::End(Clock::Iso),
        "msec" => Role::End(Clock::Epoch(Unit::Seconds)),
        "request_time" => Role::Total(Unit::Seconds),
        "upstream_response_time" => Role::ServiceList(Unit::Seconds),
        "upstream_queue_time" => Role::Queued(Unit::Seconds),
        "upstream_addr" => Role::Upstream,
        "status" => Role::Status,
        "request" => Role::Request,
        "request_method" => Role::Method,
        "request_uri" | "uri" | "document_uri" => Role::Target,
        "host" | "http_host" => Role::Host,
        "remote_addr" => Role::Client,
        "bytes_sent" | "body_bytes_sent" => Role::Bytes,
        "proxy_upstream_name" | "proxy_host" => Role::Route,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::stamp::Zone;

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        assert_eq!(text.parse::<LogFormat>().unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn formats_that_cannot_be_read_back_are_refused() {
        refused("$msec $", "the `$` at byte 6 begins no variable");
        refused("$msec ${a", "the `$` at byte 6 begins no variable");
        refused("$msec$status", "nothing stands between $msec and $status, so they cannot be told apart");
        refused(
            "$msec $request_uri$status",
            "nothing stands between $request_uri and $status, so they cannot be told apart",
        );
        refused(
            "$status",
            "there is no $msec, $time_iso8601 or $time_local: nothing says when a request came",
        );
        refused(&"$msec ".repeat(200), "the format has more than 256 parts");
        refused("'$msec", "a quoted text does not end");
        refused("log_format a escape=xml '$msec';", "escape=xml is not default, json or none");
    }

    #[test]
    fn a_path_may_stand_right_behind_its_host() {
        let format: LogFormat = "$msec $scheme://$host$request_uri$is_args$args".parse().unwrap();
        let line = "1714557600.5 https://shop.test/a?b=1";
        let draft = format.template.read(line, &Zone::UTC).unwrap();
        let entry = draft.finish(1).unwrap().entry;
        assert_eq!((entry.host.as_deref(), &*entry.path), (Some("shop.test"), "/a"));
    }

    #[test]
    fn a_mapping_takes_precedence() {
        let format: LogFormat = "$msec $remote_addr $http_x_real_ip $http_x_tenant".parse().unwrap();
        let format =
            format.map("client", "http_x_real_ip").and_then(|format| format.map("tenant", "http_x_tenant"));
        let draft = format.unwrap().template.read("1 10.0.0.1 10.0.0.2 blue", &Zone::UTC);
        let entry = draft.unwrap().finish(1).unwrap().entry;
        assert_eq!((entry.client.as_deref(), entry.tenant.as_deref()), (Some("10.0.0.2"), Some("blue")));
        let error = "$msec".parse::<LogFormat>().unwrap().map("tenant", "x").unwrap_err();
        assert_eq!(error.to_string(), "the format does not have $x");
    }
}
