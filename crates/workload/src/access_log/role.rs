//! What the fields of a log are: the vocabulary that layouts use and drafts understand.

use super::stamp::{self, Stamp, Zone};
use super::value::{self, Unit};

/// What a field of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// When the request came.
    Start(Clock),
    /// When the answer was complete.
    End(Clock),
    /// From the start to the end of the request's head: a proxy decides when it has the head.
    Head(Unit),
    /// From the start to the end.
    Total(Unit),
    /// One of the spans that make up the time from the start to the end.
    Part(Unit),
    Queued(Unit),
    Service(Unit),
    /// The same, one for each attempt, as nginx lists them: `0.010, 0.200 : 0.003`. Nobody served it, if absent.
    ServiceList(Unit),
    Status,
    /// `GET /path HTTP/1.1`.
    Request,
    Method,
    /// A path, with or without its query, or a whole URL.
    Target,
    Host,
    /// An address, with or without its port.
    Client,
    /// `X-Forwarded-For`, of which the last was written by the proxy whose log it is.
    ForwardedFor,
    Bytes,
    /// A number that is of no use here; that it is one helps to find where it ends.
    Number,
    /// A word that is of no use here: what has no space.
    Word,
    Route,
    Tenant,
    /// Who served it. Nobody, if absent.
    Upstream,
    Attempts,
    Retries,
    /// Envoy's response flags.
    Flags,
    /// tidegate's reason for an answer of its own.
    Reason,
    /// HAProxy's state at the end of a session.
    Termination,
}

impl Role {
    /// What a field of this role is, if not every text will do; a cheap look before the place where it ends is settled.
    pub(crate) fn may_be(self, text: &str) -> bool {
        let first = text.bytes().next();
        match self {
            Self::Start(_) | Self::End(_) => first.is_some_and(|byte| byte.is_ascii_digit()),
            Self::Head(unit)
            | Self::Total(unit)
            | Self::Part(unit)
            | Self::Queued(unit)
            | Self::Service(unit) => value::timer(text, unit).is_some(),
            Self::ServiceList(unit) => {
                let mut items = text.split(", ").flat_map(|items| items.split(" : "));
                items.all(|item| value::timer(item, unit).is_some())
            }
            Self::Status => value::status(text).is_some(),
            Self::Bytes | Self::Number | Self::Attempts | Self::Retries => value::count(text).is_some(),
            Self::Client | Self::Flags | Self::Word => !text.contains(' '),
            Self::Upstream => !text.ends_with([',', ':']),
            _ => true,
        }
    }

    /// What a field of this role has to be, after "is not".
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Start(_) | Self::End(_) => "a time",
            Self::Head(_) | Self::Total(_) | Self::Part(_) | Self::Queued(_) | Self::Service(_) => {
                "a duration"
            }
            Self::ServiceList(_) => "a list of durations",
            Self::Status => "a status",
            Self::Bytes => "a number of bytes",
            Self::Number => "a number",
            Self::Word => "one word",
            Self::Client => "an address",
            Self::Flags => "a list of flags",
            Self::Attempts | Self::Retries => "a number of attempts",
            Self::Upstream => "a list of addresses",
            _ => "a text",
        }
    }
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `10/Oct/2000:13:55:36 -0700`.
    Common,
    /// ISO 8601.
    Iso,
    /// A number of units since 1970.
    Epoch(Unit),
    /// Whatever it looks like. A number counts in seconds below 10¹¹, then in milliseconds, in microseconds from 10¹⁴
    /// and in nanoseconds from 10¹⁷, which is right for every year from 1973 to 5138.
    Any,
}

impl Clock {
    pub(crate) fn read(self, text: &str, zone: &Zone) -> Option<Stamp> {
        match self {
            Self::Common => stamp::common(text, zone),
            Self::Iso => stamp::iso(text, zone),
            Self::Epoch(unit) => stamp::epoch_units(text, unit.nanos()),
            Self::Any => {
                let whole = text.split('.').next().unwrap_or_default();
                if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
                    return stamp::iso(text, zone).or_else(|| stamp::common(text, zone));
                }
                let unit = match whole.len() {
                    0..=11 => Unit::Seconds,
                    12..=14 => Unit::Millis,
                    15..=17 => Unit::Micros,
                    _ => Unit::Nanos,
                };
                stamp::epoch_units(text, unit.nanos())
            }
        }
    }
}
