//! Logs that are JSON, an object a line: which key says what, for Envoy and its kin, Traefik, Caddy and tidegate.
//!
//! Keys are looked up by lists of names, since everybody spells them differently; of several that say the same, the
//! first with a value counts.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::draft::{Draft, bad};
use super::fault::{Fault, What};
use super::role::{Clock, Role};
use super::stamp::Zone;
use super::value::Unit;

/// A format of JSON lines.
#[derive(Debug)]
pub(crate) struct Table {
    /// A line of this format has one of each of these.
    marks: &'static [&'static [&'static str]],
    keys: &'static [(Role, &'static [&'static str])],
    /// Whether nobody served a request whose line has no key for who did.
    silent_when_unserved: bool,
}

/// The keys that Envoy's documentation, Istio and Envoy Gateway use; others may be chosen.
/// <https://istio.io/latest/docs/tasks/observability/logs/access-log/>,
/// <https://gateway.envoyproxy.io/docs/tasks/observability/proxy-accesslog/>
pub(crate) const ENVOY: Table = Table {
    marks: &[&["start_time", "startTime"], &["response_code", "responseCode", "status"], &["duration"]],
    keys: &[
        (Role::Start(Clock::Any), &["start_time", "startTime"]),
        (Role::Total(Unit::Millis), &["duration"]),
        (
            Role::Service(Unit::Millis),
            &["upstream_service_time", "x-envoy-upstream-service-time", "upstreamServiceTime"],
        ),
        (Role::Status, &["response_code", "responseCode", "status"]),
        (Role::Method, &["method", ":method"]),
        (Role::Target, &["path", "x-envoy-origin-path", "x-envoy-original-path", ":path", "uri_path"]),
        (Role::Host, &["authority", ":authority", "host"]),
        (Role::Client, &["downstream_remote_address", "downstreamRemoteAddress"]),
        (Role::ForwardedFor, &["x_forwarded_for", "x-forwarded-for", "xForwardedFor"]),
        (Role::Bytes, &["bytes_sent", "bytesSent"]),
        (Role::Route, &["upstream_cluster", "upstreamCluster", "route_name", "routeName"]),
        (Role::Upstream, &["upstream_host", "upstreamHost"]),
        (Role::Attempts, &["upstream_request_attempt_count", "attempt_count"]),
        (Role::Flags, &["response_flags", "responseFlags"]),
    ],
    silent_when_unserved: false,
};

/// <https://doc.traefik.io/traefik/observability/access-logs/>
pub(crate) const TRAEFIK: Table = Table {
    marks: &[&["StartUTC", "StartLocal"], &["DownstreamStatus", "OriginStatus"]],
    keys: &[
        (Role::Start(Clock::Iso), &["StartUTC", "StartLocal"]),
        (Role::Total(Unit::Nanos), &["Duration"]),
        (Role::Service(Unit::Nanos), &["OriginDuration"]),
        (Role::Status, &["DownstreamStatus", "OriginStatus"]),
        (Role::Method, &["RequestMethod"]),
        (Role::Target, &["RequestPath"]),
        (Role::Host, &["RequestHost", "RequestAddr"]),
        (Role::Client, &["ClientHost", "ClientAddr"]),
        (Role::Bytes, &["DownstreamContentSize"]),
        (Role::Route, &["RouterName", "ServiceName"]),
        (Role::Upstream, &["ServiceAddr", "ServiceURL"]),
        (Role::Retries, &["RetryAttempts"]),
    ],
    silent_when_unserved: true,
};

/// <https://caddyserver.com/docs/logging>
pub(crate) const CADDY: Table = Table {
    marks: &[&["ts"], &["request"], &["duration"], &["status"]],
    keys: &[
        (Role::End(Clock::Any), &["ts"]),
        (Role::Total(Unit::Seconds), &["duration"]),
        (Role::Status, &["status"]),
        (Role::Method, &["request.method"]),
        (Role::Target, &["request.uri"]),
        (Role::Host, &["request.host"]),
        (Role::Client, &["request.client_ip", "request.remote_ip", "request.remote_addr"]),
        (Role::Bytes, &["size"]),
    ],
    silent_when_unserved: false,
};

/// The gateway's own; see `crates/gateway/src/log.rs`.
pub(crate) const TIDEGATE: Table = Table {
    marks: &[&["time"], &["target"], &["total_ms"], &["queue_ms", "flag"]],
    keys: &[
        (Role::End(Clock::Iso), &["time"]),
        (Role::Total(Unit::Millis), &["total_ms"]),
        (Role::Queued(Unit::Millis), &["queue_ms"]),
        (Role::Service(Unit::Millis), &["upstream_ms"]),
        (Role::Status, &["status"]),
        (Role::Method, &["method"]),
        (Role::Target, &["target"]),
        (Role::Client, &["client"]),
        (Role::Bytes, &["bytes"]),
        (Role::Route, &["route", "upstream"]),
        (Role::Reason, &["reason"]),
    ],
    silent_when_unserved: false,
};

impl Table {
    /// Reads a line.
    pub(crate) fn read(&self, line: &str, zone: &Zone) -> Result<Draft, Fault> {
        let object = object(line)?;
        for names in self.marks {
            if !names.iter().any(|name| object.contains_key(*name)) {
                return Err(Fault::missing(&format!("key {:?}", names[0])));
            }
        }
        let mut draft = Draft::default();
        for (role, names) in self.keys {
            let mut seen = false;
            for name in *names {
                let Some(text) = lookup(&object, name) else { continue };
                // That somebody is named nobody is known too, if the key is there.
                let absent = matches!(&*text, "" | "-");
                if absent && seen {
                    continue;
                }
                seen = true;
                draft.set(*role, &text, zone).map_err(|kind| Fault::somewhere(bad(name, kind)))?;
                if !absent {
                    break;
                }
            }
            if *role == Role::Upstream && !seen && self.silent_when_unserved {
                draft.set(*role, "", zone).map_err(|kind| Fault::somewhere(bad("upstream", kind)))?;
            }
        }
        Ok(draft)
    }

    pub(crate) fn weight(&self) -> usize {
        self.keys.len()
    }
}

/// The object on a line.
pub(crate) fn object(line: &str) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_str(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Fault::at(0, What::NotObject)),
        Err(error) => {
            // serde_json counts bytes from 1, and 0 stands for the end of the line before.
            let at = error.column().saturating_sub(1).min(line.len());
            let why = match error.classify() {
                serde_json::error::Category::Eof => "the JSON ends too early",
                _ => "this is not JSON",
            };
            Err(Fault::at(at, What::NotJson(why)))
        }
    }
}

/// The value under a name, as text. A name with dots is first looked for as it is, and then as a way into objects.
/// An array counts as its first element.
pub(crate) fn lookup<'a>(object: &'a Map<String, Value>, name: &str) -> Option<Cow<'a, str>> {
    if let Some(value) = object.get(name) {
        return Some(text(value));
    }
    let (first, rest) = name.split_once('.')?;
    lookup(object.get(first)?.as_object()?, rest)
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Bool(yes) => Cow::Borrowed(if *yes { "true" } else { "false" }),
        Value::Array(values) => {
            values.first().filter(|value| !value.is_array()).map_or(Cow::Borrowed(""), text)
        }
        Value::Null | Value::Object(_) => Cow::Borrowed(""),
    }
}
