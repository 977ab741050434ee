//! An entry in the making: readers hand in fields by their role, and what the log means by them is decided here, once
//! for all formats.
//!
//! It does not know how fields are told apart; that is the layouts' work.

use std::time::Duration;

use tidegate_engine::Timestamp;

use super::entry::{Entry, PATH_MAX, TEXT_MAX, cut};
use super::fault::{Fault, What};
use super::role::{Clock, Role};
use super::stamp::{Grain, Stamp, Zone};
use super::value::{self, Timer, Unit};

/// Whether an upstream had the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Served {
    #[default]
    Unknown,
    ByNobody,
    BySomebody,
}

/// An entry, and the second that it has to be spread over if its time has no finer grain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) entry: Entry,
    /// The time as the log has it, before a duration was taken off.
    pub(crate) stamp: Timestamp,
}

/// What is known of a request so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    start: Option<Stamp>,
    end: Option<Stamp>,
    head: Duration,
    total: Option<Duration>,
    /// The sum of the parts, if all were known; the outer `None` means that there were no parts.
    parts: Option<Option<Duration>>,
    queued: Option<Duration>,
    service: Option<Duration>,
    status: Option<u16>,
    method: Option<Box<str>>,
    path: Box<str>,
    host: Option<Box<str>>,
    client: Option<Box<str>>,
    forwarded_for: Option<Box<str>>,
    bytes: Option<u64>,
    route: Option<Box<str>>,
    tenant: Option<Box<str>>,
    served: Served,
    attempts: Option<u32>,
    refused: bool,
    left: bool,
}

impl Draft {
    /// Takes in a field. The error says what it should have been, as in "is not a time".
    pub(crate) fn set(&mut self, role: Role, text: &str, zone: &Zone) -> Result<(), &'static str> {
        match role {
            Role::Start(clock) => self.start = finest(self.start, read_stamp(clock, text, zone)?),
            Role::End(clock) => self.end = finest(self.end, read_stamp(clock, text, zone)?),
            Role::Head(unit) => self.head = read_timer(text, unit)?.unwrap_or_default(),
            Role::Total(unit) => self.total = read_timer(text, unit)?,
            Role::Part(unit) => {
                let part = read_timer(text, unit)?;
                let sum = self.parts.unwrap_or(Some(Duration::ZERO));
                self.parts = Some(sum.zip(part).map(|(sum, part)| sum.saturating_add(part)));
            }
            Role::Queued(unit) => self.queued = read_timer(text, unit)?,
            Role::Service(unit) => self.service = read_timer(text, unit)?,
            Role::ServiceList(unit) => self.read_list(text, unit)?,
            Role::Status => self.status = value::status(text).ok_or("a status")?,
            Role::Number | Role::Word => {}
            Role::Bytes => self.bytes = value::count(text).ok_or("a number of bytes")?,
            Role::Attempts => self.attempts = read_count(text)?,
            Role::Retries => {
                self.attempts = read_count(text)?.map(|retries| retries.saturating_add(1));
            }
            Role::Request => self.read_request(text),
            Role::Method => self.method = value::is_method(text).then(|| cut(text, TEXT_MAX)),
            Role::Target => self.read_target(text),
            Role::Flags => self.read_flags(text),
            Role::Reason => self.read_reason(text),
            Role::Termination => self.read_termination(text),
            Role::Upstream => {
                let nobody = value::is_absent(text);
                self.served_by(nobody);
                // nginx lists one address for each attempt.
                let attempts = text.matches([',']).count() + text.matches(" : ").count() + 1;
                if !nobody && attempts > 1 {
                    self.attempts = u32::try_from(attempts).ok();
                }
            }
            Role::Host => fill(&mut self.host, text),
            Role::Client => fill(&mut self.client, value::without_port(text)),
            Role::ForwardedFor => {
                let last = text.rsplit(',').next().unwrap_or_default().trim();
                fill(&mut self.forwarded_for, value::without_port(last));
            }
            Role::Route => fill(&mut self.route, text),
            Role::Tenant => fill(&mut self.tenant, text),
        }
        Ok(())
    }

    fn read_request(&mut self, text: &str) {
        let request = value::request_line(text);
        self.method = request.method.map(|method| cut(method, TEXT_MAX));
        if let Some(target) = request.target {
            self.read_target(target);
        }
    }

    fn read_target(&mut self, text: &str) {
        if !value::is_absent(text) {
            let (host, path) = value::target(text);
            self.path = cut(path, PATH_MAX);
            fill(&mut self.host, host.unwrap_or_default());
        }
    }

    /// nginx writes a comma between servers, and a colon between groups of servers, each with the time of one attempt.
    /// <https://nginx.org/en/docs/http/ngx_http_upstream_module.html#var_upstream_addr>
    fn read_list(&mut self, text: &str, unit: Unit) -> Result<(), &'static str> {
        self.served_by(value::is_absent(text));
        if value::is_absent(text) {
            return Ok(());
        }
        let (mut sum, mut attempts) = (None, 0_u32);
        for item in text.split(", ").flat_map(|items| items.split(" : ")) {
            if let Some(took) = read_timer(item, unit)? {
                sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(took));
            }
            attempts = attempts.saturating_add(1);
        }
        self.service = sum;
        if attempts > 1 || self.attempts.is_none() {
            self.attempts = Some(attempts);
        }
        Ok(())
    }

    /// One field that names somebody counts for more than others that are empty: an upstream that was given up on has an
    /// address and no time.
    fn served_by(&mut self, nobody: bool) {
        match (nobody, self.served) {
            (false, _) => self.served = Served::BySomebody,
            (true, Served::Unknown) => self.served = Served::ByNobody,
            (true, Served::ByNobody | Served::BySomebody) => {}
        }
    }

    /// <https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#response-flags>
    fn read_flags(&mut self, text: &str) {
        for flag in text.split(',') {
            match flag {
                // A circuit breaker, a rate limit, the overload manager, a drop that the control plane asked for.
                "UO" | "RL" | "OM" | "DO" | "UDO" => self.refused = true,
                "UpstreamOverflow" | "RateLimited" | "OverloadManagerTerminated" => self.refused = true,
                "DropOverload" | "UnconditionalDropOverload" => self.refused = true,
                "DC" | "DR" => self.left = true,
                "DownstreamConnectionTermination" | "DownstreamRemoteReset" => self.left = true,
                _ => {}
            }
        }
    }

    fn read_reason(&mut self, text: &str) {
        match text {
            "" | "-" | "upstream_timeout" | "upstream_connect" | "upstream_reset" => {}
            "client_left" => self.left = true,
            _ => self.refused = true,
        }
    }

    /// <https://docs.haproxy.org/2.6/configuration.html#8.5>
    fn read_termination(&mut self, text: &str) {
        self.left |= text.starts_with('C');
        // It ended in the queue, or before its head was complete.
        if matches!(text.as_bytes().get(1), Some(b'Q' | b'R')) {
            self.served = Served::ByNobody;
        }
        // Its time in the queue ran out; the process or the machine had no room for it.
        self.refused |= ["sQ", "PC", "RC"].iter().any(|state| text.starts_with(state));
    }

    /// The entry, once all fields are in.
    pub(crate) fn finish(self, line: u64) -> Result<Reading, Fault> {
        let Some(stamp) = self.start.or(self.end) else { return Err(Fault::missing("time")) };
        let span = match (self.start, self.end) {
            (Some(start), Some(end)) => Some(end.at.since(start.at)),
            _ => None,
        };
        let sum = self.parts.flatten();
        let total = self.total.or(span).or(sum).map(|total| total.saturating_sub(self.head));
        let arrived = match (self.start, total) {
            (Some(start), _) => start.at.after(self.head),
            (None, Some(total)) => before(stamp.at, total),
            (None, None) => stamp.at,
        };
        let unserved = self.served == Served::ByNobody && matches!(self.status, Some(429 | 503));
        let refused = self.refused || unserved;
        let attempts = match self.served {
            _ if refused => 0,
            Served::ByNobody => 0,
            _ => self.attempts.unwrap_or(1),
        };
        let entry = Entry {
            line,
            arrived,
            grain: stamp.grain,
            total,
            queued: self.queued,
            service: self.service,
            status: self.status,
            method: self.method,
            path: self.path,
            host: self.host,
            client: self.client.or(self.forwarded_for),
            bytes: self.bytes,
            route: self.route,
            tenant: self.tenant,
            attempts,
            refused,
            // nginx and its kin say 499, AWS says 460.
            left: self.left || matches!(self.status, Some(499 | 460)),
        };
        Ok(Reading { entry, stamp: stamp.at })
    }
}

/// The fault of a field whose text is not of its role.
pub(crate) fn bad(field: &str, kind: &'static str) -> What {
    What::Bad { field: field.into(), kind }
}

/// The finer of two times for the same: a format may have both `$time_local` and `$msec`.
fn finest(known: Option<Stamp>, read: Option<Stamp>) -> Option<Stamp> {
    match (known, read) {
        (Some(known), Some(read)) => Some(if read.grain > known.grain { read } else { known }),
        (known, read) => read.or(known),
    }
}

fn read_stamp(clock: Clock, text: &str, zone: &Zone) -> Result<Option<Stamp>, &'static str> {
    if value::is_absent(text) {
        return Ok(None);
    }
    clock.read(text, zone).map(Some).ok_or("a time")
}

fn read_timer(text: &str, unit: Unit) -> Result<Option<Duration>, &'static str> {
    match value::timer(text, unit) {
        Some(Timer::Took(took)) => Ok(Some(took)),
        Some(Timer::Absent) => Ok(None),
        None => Err("a duration"),
    }
}

fn read_count(text: &str) -> Result<Option<u32>, &'static str> {
    let count = value::count(text).ok_or("a number of attempts")?;
    Ok(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}

/// Sets what is not known yet: of several fields that say the same, the first counts.
fn fill(known: &mut Option<Box<str>>, text: &str) {
    if known.is_none() && !value::is_absent(text) {
        *known = Some(cut(text, TEXT_MAX));
    }
}

fn before(at: Timestamp, by: Duration) -> Timestamp {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    Timestamp::from_nanos(at.as_nanos().saturating_sub(by))
}

/// Whether entries of this grain share their times with all others of the second.
pub(crate) fn shares_its_second(entry: &Entry) -> bool {
    entry.grain == Grain::Second
}
