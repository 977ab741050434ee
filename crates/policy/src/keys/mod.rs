//! What a policy file may say, as one table: the reader, the JSON schema and the reference page all come from it.
//!
//! The table holds what is true of one key alone. What two keys say of each other is checked where they are read.

mod table;
pub(crate) use table::{
    ALGORITHMS, CONCURRENCY, DISCIPLINES, QUEUE, RATE_LIMIT, ROOT, ROUTE, SERVER, UPSTREAM,
};

mod protection;
pub(crate) use protection::{BREAKER, HEALTH_CHECK};
mod otlp;
pub(crate) use otlp::OTLP;
mod order;
pub(crate) use order::{FAIRNESS, FLOORS_MAX, PRIORITY, RETRIES, TENANT};

use std::time::Duration;

use crate::values::{duration_text, grouped};

/// A table of the file, or each of a list of tables.
#[derive(Debug)]
pub(crate) struct Section {
    /// The last part of its header; empty for the file itself.
    pub(crate) name: &'static str,
    /// The whole header without brackets.
    pub(crate) path: &'static str,
    pub(crate) shape: Shape,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
    pub(crate) inner: &'static [&'static Self],
    /// Keys and tables that are designed and not built: known, and refused.
    pub(crate) not_yet: &'static [&'static str],
}

/// How often a section may stand in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `[name]`
    One,
    /// `[[name]]`, at most so many times.
    Many {
        /// The most there may be.
        max: usize,
    },
}

impl Section {
    pub(crate) fn key(&self, name: &str) -> Option<(usize, &'static Key)> {
        self.keys.iter().enumerate().find(|(_, key)| key.name == name)
    }

    /// The header as it stands in the file.
    pub(crate) fn header(&self) -> String {
        match self.shape {
            Shape::One => format!("[{}]", self.path),
            Shape::Many { .. } => format!("[[{}]]", self.path),
        }
    }

    /// Every name that may stand in the section.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name).chain(self.inner.iter().map(|section| section.name))
    }
}

/// One key of a section.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) absent: Absent,
    pub(crate) doc: &'static str,
    /// What a zero would do, where it is not allowed; empty if there is nothing to explain.
    pub(crate) zero: &'static str,
}

impl Key {
    const fn new(name: &'static str, kind: Kind, absent: Absent, doc: &'static str) -> Self {
        Self { name, kind, absent, doc, zero: "" }
    }

    /// Why a zero is refused.
    const fn zero(self, zero: &'static str) -> Self {
        Self { zero, ..self }
    }
}

/// What it means if a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// An error.
    Required,
    /// As if this had been written, in TOML.
    Default(&'static str),
    /// Something that no single value says.
    Means(&'static str),
}

/// The type of a key with its bounds, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Integer { min: u32, max: u32 },
    /// One of these whole numbers.
    OneOf(&'static [u32]),
    /// A number more than `above`.
    Factor { above: f64, max: f64 },
    /// A number from 0.
    Share { max: f64 },
    /// A string with a unit of time.
    Duration { min: Duration, max: Duration },
    /// A string with a period.
    Rate,
    /// One of these words; `not_yet` are known and refused.
    Choice { of: &'static [&'static str], not_yet: &'static [&'static str] },
    /// The word `"adaptive"`, or a whole number.
    AdaptiveOr { min: u32, max: u32 },
    /// A string of this form.
    Text(Form),
    /// Strings of this form, none of them twice.
    List { of: Form, min: usize, max: usize },
}

/// The form of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Address,
    Class,
    ClassSource,
    Endpoint,
    FilePath,
    Header,
    Host,
    HostName,
    Method,
    Name,
    Network,
    Path,
    RateKey,
    Reference,
    ServiceName,
    Target,
    TenantName,
    TenantSource,
}

impl Form {
    /// What the string is, for a reader.
    pub(crate) const fn says(self) -> &'static str {
        match self {
            Self::Address => "address and port",
            Self::Class => "name of a class",
            Self::ClassSource => "name of a class, or `header:NAME`",
            Self::Endpoint => "`http://host:port`",
            Self::FilePath => "path of a file",
            Self::Header => "name of a field",
            Self::Host => "host, perhaps with a port",
            Self::HostName => "name of a host",
            Self::Method => "method",
            Self::Name => "name",
            Self::Network => "address or network",
            Self::Path => "path pattern: `/x`, `/x/*` or `/*`",
            Self::RateKey => "`client-ip`, `header:NAME`, `tenant`, `route` or `global`",
            Self::Reference => "name of an upstream",
            Self::ServiceName => "name of a service",
            Self::Target => "path, with a query if need be",
            Self::TenantName => "name of a tenant",
            Self::TenantSource => "`header:NAME` or `client-ip`",
        }
    }

    /// A regular expression for editors; the reader is stricter.
    pub(crate) const fn pattern(self) -> &'static str {
        match self {
            Self::Address => r"^.+:[0-9]{1,5}$",
            Self::ClassSource => r"^([a-z0-9_-]{1,64}|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
            Self::Endpoint => r"^[hH][tT][tT][pP]://[^/?#@]+/?$",
            Self::FilePath => r"^.+$",
            Self::Header => r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$",
            Self::Method => r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$",
            Self::Class | Self::Name | Self::Reference => r"^[a-z0-9_-]{1,64}$",
            Self::Network => r"^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$",
            Self::Path => r"^/[^*?#;]*\*?$",
            Self::RateKey => r"^(client-ip|tenant|route|global|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
            Self::Host => r"^[^/@ ]+$",
            Self::HostName => r"^[0-9A-Za-z_.-]{1,253}$",
            Self::Target => r"^/[!-~]{0,255}$",
            Self::ServiceName | Self::TenantName => r"^[!-~]([ -~]{0,254}[!-~])?$",
            Self::TenantSource => r"^(client-ip|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
        }
    }
}

impl Kind {
    /// For editors: the reader is stricter, and exact.
    pub(crate) const DURATION_PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h)$";
    /// For editors: the reader is stricter, and exact.
    pub(crate) const RATE_PATTERN: &'static str = r"^[0-9]+/[0-9]*(s|sec|second|m|min|minute|h|hour|d|day)$";

    /// The type, for a reader.
    pub(crate) fn says(&self) -> String {
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Integer { .. } => "integer".to_owned(),
            Self::OneOf(numbers) => {
                numbers.iter().map(|number| format!("`{number}`")).collect::<Vec<_>>().join(", ")
            }
            Self::Factor { .. } | Self::Share { .. } => "number".to_owned(),
            Self::Duration { .. } => "duration".to_owned(),
            Self::Rate => "rate".to_owned(),
            Self::Choice { of, .. } => {
                of.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
            }
            Self::AdaptiveOr { .. } => "`\"adaptive\"` or integer".to_owned(),
            Self::Text(form) => form.says().to_owned(),
            Self::List { of, .. } => format!("list: {}", of.says()),
        }
    }

    /// The bounds, for a reader; empty if there are none.
    pub(crate) fn bounds(&self) -> String {
        match *self {
            Self::Integer { min, max } | Self::AdaptiveOr { min, max } => {
                format!("{} to {}", grouped(min), grouped(max))
            }
            Self::Factor { above, max } => format!("more than {above:?}, at most {max:?}"),
            Self::Share { max } => format!("0 to {max:?}"),
            Self::Duration { min, max } => format!("{} to {}", duration_text(min), duration_text(max)),
            Self::Rate => "more than 0; a period of at most 366 days".to_owned(),
            Self::List { min, max, .. } => {
                let max = u32::try_from(max).unwrap_or(u32::MAX);
                if min == 0 {
                    format!("at most {}", grouped(max))
                } else {
                    format!("{min} to {}", grouped(max))
                }
            }
            Self::Text(Form::ServiceName | Form::TenantName) => {
                "1 to 256 printable characters of ASCII".to_owned()
            }
            Self::Text(Form::Name | Form::Reference) => "1 to 64 of a-z, 0-9, `_`, `-`".to_owned(),
            Self::Switch | Self::OneOf(_) | Self::Choice { .. } | Self::Text(_) => String::new(),
        }
    }
}
