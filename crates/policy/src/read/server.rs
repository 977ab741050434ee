//! `[server]`

use super::Places;
use super::priority;
use super::section::{Found, Section, choice, integer, switch, text};
use super::upstream::Names;
use crate::keys::{OTLP, SERVER};
use crate::model::{AccessLog, Fingerprint, RateLimitHeaders, Server};
use crate::problem::Report;
use crate::values;

/// The fields in which clients that retry say so by themselves: Envoy's, gRPC's, those of the SDKs of AWS, and of
/// those that Stainless generates.
const ATTEMPT_HEADERS: [&str; 4] =
    ["x-envoy-attempt-count", "grpc-previous-rpc-attempts", "amz-sdk-request", "x-stainless-retry-count"];

pub(crate) fn read(
    found: Option<Found<'_>>,
    classes: &Names<'_>,
    report: &mut Report,
    places: &mut Places,
) -> Server {
    let mut section = Section::open(&SERVER, 0, found, report, places);
    let server = Server {
        listen: section.value("listen", |_, value| values::address(text(value)?)),
        admin: section.value("admin", |_, value| values::address(text(value)?)),
        admin_token_file: section.optional("admin_token_file", |_, value| values::file_path(text(value)?)),
        admin_hosts: section.list("admin_hosts", values::host_name),
        workers: u16::try_from(section.value("workers", integer)).unwrap_or(u16::MAX),
        max_connections: section.value("max_connections", integer),
        max_upgrades: section.value("max_upgrades", integer),
        drain: section.duration("drain"),
        header_timeout: section.duration("header_timeout"),
        idle_timeout: section.duration("idle_timeout"),
        body_timeout: section.duration("body_timeout"),
        max_header_bytes: section.value("max_header_bytes", integer),
        trusted_proxies: section.list("trusted_proxies", values::network),
        deadline_headers: headers(
            &mut section,
            "deadline_headers",
            &["grpc-timeout", "x-envoy-expected-rq-timeout-ms"],
        ),
        priority_ceiling: class(&mut section, "priority_ceiling", classes)
            .unwrap_or_else(|| priority::default(classes)),
        prefetch_priority: class(&mut section, "prefetch_priority", classes),
        urgency: section.value("urgency", switch),
        untrusted_tenants: section.value("untrusted_tenants", switch),
        attempt_headers: headers(&mut section, "attempt_headers", &ATTEMPT_HEADERS),
        // In the order of the words in the key table.
        fingerprint: match section.value("fingerprint", choice) {
            0 => Fingerprint::Off,
            1 => Fingerprint::IdempotencyKey,
            _ => Fingerprint::Identified,
        },
        retry_after_max: section.duration("retry_after_max"),
        // Choices are in the order of the words in the key table.
        ratelimit_headers: match section.value("ratelimit_headers", choice) {
            0 => RateLimitHeaders::Off,
            1 => RateLimitHeaders::Draft,
            _ => RateLimitHeaders::XRateLimit,
        },
        ratelimit_headers_on_all: section.value("ratelimit_headers_on", choice) == 1,
        access_log: match section.value("access_log", choice) {
            0 => AccessLog::Off,
            1 => AccessLog::Refused,
            _ => AccessLog::All,
        },
        access_log_file: section.optional("access_log_file", |_, value| values::file_path(text(value)?)),
        otlp: None,
    };
    let otlp = section.child(&OTLP);
    if section.is_sound() && server.listen == server.admin && server.listen.port() != 0 {
        section.contradiction(
            if section.has("admin") { "admin" } else { "listen" },
            "`listen` and `admin` are the same address",
            "give each a port of its own",
        );
    }
    section.close();
    Server { otlp: super::otlp::read(otlp, report, places), ..server }
}

/// Where nothing is said, those that clients set by themselves.
fn headers(section: &mut Section<'_, '_>, key: &'static str, by_default: &[&str]) -> Vec<String> {
    let given = section.has(key);
    let names = section.list(key, values::header);
    if given { names } else { by_default.iter().map(|&name| name.to_owned()).collect() }
}

fn class(section: &mut Section<'_, '_>, key: &'static str, classes: &Names<'_>) -> Option<usize> {
    let name = section.optional(key, |_, value| Ok(text(value)?.to_owned()))?;
    Some(priority::refer(section, key, &name, classes))
}
